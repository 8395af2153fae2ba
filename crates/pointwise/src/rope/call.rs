//! Checks a call's tensors and settings and makes a [`Call`] of them.

use std::ptr::null;

use pointwise_core::DType;
use pointwise_core::rope::{
    AXES, AXES_IN_TURN, BATCH_OFFSETS, Count, IDS, INTERLEAVED_IN, INTERLEAVED_OUT, RopeWalk, SEQUENCES, Side,
};

use super::check::{self, Shape4};
use super::plan::{Planned, RopePlan, plan};
use super::{
    MropeLayout, OutOfRange, Pointers, RopeAngles, RopeDirection, RopeError, RopeKernel, RopeLayout, RopePairs,
    RopePositions, RopePrecision, RotatedLanes, Source,
};
use crate::Device;
use crate::error::{ErrorKind, Result};
use crate::tensor::TensorView;

/// A checked call.
pub(super) struct Call {
    pub(super) dtype: DType,
    pub(super) device: Device,
    pub(super) source: Source,
    /// The launch; `None` on the CPU and if there is nothing to rotate.
    pub(super) plan: Option<RopePlan>,
    pub(super) pointers: Pointers,
    pub(super) walk: RopeWalk,
}

impl RopeKernel<'_> {
    /// Visits the tensors of positions and angles, with their names.
    pub(super) fn each_operand(
        &self,
        mut visit: impl FnMut(&'static str, &TensorView<'_>) -> Result<()>,
    ) -> Result<()> {
        match &self.positions {
            RopePositions::Offset(_) => {}
            RopePositions::BatchOffsets(offsets) => visit("offsets", offsets)?,
            RopePositions::Ids(ids) | RopePositions::Axes { ids, .. } => visit("position_ids", ids)?,
            RopePositions::Sequences { cu_seqlens, offsets } => {
                visit("cu_seqlens", cu_seqlens)?;
                offsets.as_ref().map_or(Ok(()), |offsets| visit("offsets", offsets))?;
            }
        }
        match &self.angles {
            RopeAngles::Frequencies(frequencies, _) => {
                visit("inv_freq", &frequencies.inv_freq.view())?;
                visit("inv_freq", &frequencies.turns.view())
            }
            RopeAngles::Raw(angles) => visit("freqs", angles),
            RopeAngles::Tables { cos, sin } => {
                visit("cos", cos)?;
                visit("sin", sin)
            }
        }
    }

    /// Checks everything and makes the walk.
    pub(super) fn call(
        &self,
        (q, k): (&TensorView<'_>, Option<&TensorView<'_>>),
        (q_out, k_out): (&TensorView<'_>, Option<&TensorView<'_>>),
        targets: (*mut u8, Option<*mut u8>),
    ) -> Result<Call> {
        let (dtype, device) = (q.dtype(), *q.device());
        check::dtype(q)?;
        check::launch(&self.launch, self.scales)?;
        self.stream.as_ref().map_or(Ok(()), |stream| stream.check_device(&device))?;
        self.each_operand(|name, view| {
            check::device(name, &device, view.device())?;
            [Some(q_out), k_out].into_iter().flatten().try_for_each(|out| check::unwritten(name, view, out))
        })?;
        let shape = check::shape("q", q, self.layout)?;
        let mut k_heads = 0;
        if let Some(k) = k {
            k_heads = check::second(q, k, &shape, self.layout)?;
        }
        for out in [Some(q_out), k_out].into_iter().flatten() {
            check::shape("an output", out, self.layout)?;
        }
        let mut walk = RopeWalk {
            q: self.side(shape.heads, q, q_out, self.scales[0]),
            k: k.zip(k_out).map_or_else(Side::default, |(k, k_out)| self.side(k_heads, k, k_out, self.scales[1])),
            tokens: shape.tokens()?,
            seq: Count::new(shape.seq as u32),
            factor: 1.0,
            sin_sign: if self.direction == RopeDirection::Backward { -1.0 } else { 1.0 },
            rows: i64::MAX,
            ..RopeWalk::default()
        };
        let mut pointers = Pointers {
            qx: q.as_ptr(),
            qy: targets.0,
            kx: k.map_or(null(), TensorView::as_ptr),
            ky: targets.1.unwrap_or(std::ptr::null_mut()),
            ids: null(),
            starts: null(),
            first: null(),
            second: null(),
        };
        let (source, rotary_dim, per_token) = self.angles(dtype, &shape, &mut walk, &mut pointers)?;
        self.lanes(&shape, rotary_dim, &mut walk)?;
        self.place(&shape, per_token, &mut walk, &mut pointers)?;
        // A call in place that does not scale leaves the lanes that do not rotate as they are. A tensor without
        // elements has an arbitrary address.
        let stay = |side: &Side, x: *const u8, y: *mut u8| side.heads == 0 || x.addr() == y.addr() && side.scale == 1.0;
        if stay(&walk.q, pointers.qx, pointers.qy) && stay(&walk.k, pointers.kx, pointers.ky) {
            walk.rest_lanes = 0;
        }
        let plan = match device.info() {
            Some(info) => {
                let (multiprocessors, l2_bytes) = (info.multiprocessors, info.l2_bytes as u64);
                let planned = Planned { multiprocessors, l2_bytes, dtype, source, pointers: &pointers };
                plan(&self.launch, &planned, &mut walk)?
            }
            None => None,
        };
        Ok(Call { dtype, device, source, plan, pointers, walk })
    }

    fn side(&self, heads: usize, input: &TensorView<'_>, output: &TensorView<'_>, scale: f32) -> Side {
        let strides = |view: &TensorView<'_>| self.layout.dims().map(|dim| dim.map_or(0, |dim| view.strides()[dim]));
        let (input, output) = (strides(input), strides(output));
        Side { heads: heads as u32, groups: 1, input, output, step: [input[2], output[2]], scale }
    }

    /// Checks the angles and writes them into the walk. Returns their source, the rotary dimension, and true if tables
    /// have a row for each token.
    fn angles(
        &self,
        dtype: DType,
        shape: &Shape4,
        walk: &mut RopeWalk,
        pointers: &mut Pointers,
    ) -> Result<(Source, usize, bool)> {
        let mut factor = 1.0;
        let (source, rotary_dim, per_token) = match &self.angles {
            RopeAngles::Frequencies(frequencies, precision) => {
                factor = frequencies.attention_factor;
                let rotary_dim = frequencies.rotary_dim();
                if let Some(asked) = self.rotary_dim.filter(|asked| *asked != rotary_dim) {
                    let detail = format!("{asked} lanes, but there are frequencies for {rotary_dim}");
                    return Err(RopeError::contradiction("rotary_dim", "inv_freq", detail).into());
                }
                let (source, list) = match precision {
                    RopePrecision::Hf => (Source::Hf, &frequencies.inv_freq),
                    RopePrecision::Exact => (Source::Exact, &frequencies.turns),
                };
                pointers.first = list.as_ptr();
                (source, rotary_dim, false)
            }
            RopeAngles::Raw(angles) => {
                let table = check::table("freqs", angles, &[DType::F32], shape)?;
                pointers.first = angles.as_ptr();
                (walk.first, walk.rows) = (table.strides, table.rows);
                (Source::Angles, table.rotary_dim(self.rotary_dim, shape)?, table.per_token)
            }
            RopeAngles::Tables { cos, sin } => {
                let (table, other) = (
                    check::table("cos", cos, &[DType::F32, dtype], shape)?,
                    check::table("sin", sin, &[cos.dtype()], shape)?,
                );
                if cos.shape() != sin.shape() {
                    return Err(ErrorKind::ShapeMismatch {
                        what: "sin".to_owned(),
                        expected: *cos.shape(),
                        got: *sin.shape(),
                    }
                    .into());
                }
                (pointers.first, pointers.second) = (cos.as_ptr(), sin.as_ptr());
                (walk.first, walk.second, walk.rows) = (table.strides, other.strides, table.rows);
                let source = if cos.dtype() == DType::F32 { Source::Tables } else { Source::OwnTables };
                (source, table.rotary_dim(self.rotary_dim, shape)?, table.per_token)
            }
        };
        let factor = self.attention_factor.unwrap_or(factor);
        // Kernels take the factor as f32.
        if !(factor as f32).is_finite() {
            return Err(RopeError::invalid("attention_factor", factor, "give a finite number that fits f32").into());
        }
        walk.factor = factor as f32;
        Ok((source, rotary_dim, per_token))
    }

    /// Checks the rotary dimension, and sets the lanes that rotate and their pairs.
    fn lanes(&self, shape: &Shape4, rotary_dim: usize, walk: &mut RopeWalk) -> Result<()> {
        if rotary_dim == 0 || !rotary_dim.is_multiple_of(2) {
            let expected = "lanes rotate in pairs; make it even and above 0";
            return Err(RopeError::invalid("rotary_dim", rotary_dim, expected).into());
        }
        if rotary_dim > shape.head_dim {
            let detail = format!("{rotary_dim} lanes of a head of {} cannot rotate", shape.head_dim);
            return Err(RopeError::contradiction("rotary_dim", "head_dim", detail).into());
        }
        let rest = (shape.head_dim - rotary_dim) as u32;
        walk.half = (rotary_dim / 2) as u32;
        (walk.rotated_at, walk.rest_at) = match self.rotated {
            RotatedLanes::Lead => (0, rotary_dim as u32),
            RotatedLanes::Trail => (rest, 0),
        };
        (walk.pair_lanes, walk.rest_lanes) = (walk.half, rest);
        walk.flags |= match (self.pairs, self.direction) {
            (RopePairs::Half, _) => 0,
            (RopePairs::Interleaved, _) => INTERLEAVED_IN | INTERLEAVED_OUT,
            (RopePairs::InterleavedToHalf, RopeDirection::Forward) => INTERLEAVED_IN,
            (RopePairs::InterleavedToHalf, RopeDirection::Backward) => INTERLEAVED_OUT,
        };
        Ok(())
    }

    /// Checks the positions and sets their source. With [`OutOfRange::Error`], the tables must have every position that
    /// the host can read.
    fn place(&self, shape: &Shape4, per_token: bool, walk: &mut RopeWalk, pointers: &mut Pointers) -> Result<()> {
        let strict = self.out_of_range == OutOfRange::Error;
        if per_token && !matches!(self.positions, RopePositions::Offset(0)) {
            return Err(ErrorKind::Unsupported {
                what: "positions with a table that has a row for each token".to_owned(),
                advice: "leave the positions out, or give a table of [rows, width]".to_owned(),
            }
            .into());
        }
        match &self.positions {
            RopePositions::Offset(offset) => {
                walk.offset = *offset;
                let last = i64::try_from(shape.seq).ok().and_then(|seq| offset.checked_add(seq));
                let last = last.ok_or_else(|| ErrorKind::Parameter {
                    name: "offset",
                    value: offset.to_string(),
                    why: "positions would overflow".to_owned(),
                })?;
                if strict && walk.rows != i64::MAX && (*offset < 0 || last > walk.rows) && walk.tokens > 0 {
                    return Err(check::beyond(*offset, last - 1, walk.rows).into());
                }
            }
            RopePositions::BatchOffsets(offsets) => {
                check::positions("offsets", offsets, &[&[shape.batch]])?;
                (pointers.ids, walk.ids) = (offsets.as_ptr(), [offsets.strides()[0], 0]);
                walk.flags |= BATCH_OFFSETS | check::wide(offsets);
                if strict {
                    check::host_positions(offsets, walk.rows, shape.seq)?;
                }
            }
            RopePositions::Ids(ids) => {
                let (batch, seq) = (shape.batch, shape.seq);
                check::positions("position_ids", ids, &[&[seq], &[batch, seq], &[1, seq]])?;
                pointers.ids = ids.as_ptr();
                walk.ids = match ids.strides() {
                    [token] => [0, *token],
                    [_, token] if ids.shape()[0] == 1 => [0, *token],
                    strides => [strides[0], strides[1]],
                };
                walk.flags |= IDS | check::wide(ids);
                if strict {
                    check::host_positions(ids, walk.rows, 1)?;
                }
            }
            RopePositions::Axes { ids, sections } => {
                let (batch, seq) = (shape.batch, shape.seq);
                check::positions("position_ids", ids, &[&[3, seq], &[3, batch, seq]])?;
                let sum = sections.sections.iter().try_fold(0_usize, |sum, section| sum.checked_add(*section));
                if sum != Some(walk.half as usize) {
                    let value = format!("{:?}", sections.sections);
                    let expected = format!("the sections must sum to the {} pairs", walk.half);
                    return Err(RopeError::invalid("mrope_section", value, &expected).into());
                }
                pointers.ids = ids.as_ptr();
                (walk.axis, walk.ids) = match ids.strides() {
                    [axis, token] => (*axis, [0, *token]),
                    strides => (strides[0], [strides[1], strides[2]]),
                };
                walk.sections = sections.sections.map(|section| section as u32);
                walk.flags |= IDS | AXES | check::wide(ids);
                if sections.layout == MropeLayout::Interleaved {
                    walk.flags |= AXES_IN_TURN;
                }
                if strict {
                    check::host_positions(ids, walk.rows, 1)?;
                }
            }
            RopePositions::Sequences { cu_seqlens, offsets } => {
                if self.layout != RopeLayout::Thd {
                    return Err(ErrorKind::Unsupported {
                        what: format!("cu_seqlens with the layout {}", self.layout.describe()),
                        advice: "it goes with thd, [tokens, heads, head_dim]".to_owned(),
                    }
                    .into());
                }
                walk.sequences = check::starts(cu_seqlens)?;
                pointers.starts = cu_seqlens.as_ptr();
                walk.flags |= SEQUENCES | check::wide(cu_seqlens);
                if let Some(offsets) = offsets {
                    check::positions("offsets", offsets, &[&[walk.sequences as usize]])?;
                    if offsets.dtype() != cu_seqlens.dtype() {
                        return Err(ErrorKind::DType {
                            op: "the offsets beside cu_seqlens".to_owned(),
                            got: offsets.dtype(),
                            allowed: vec![cu_seqlens.dtype()],
                        }
                        .into());
                    }
                    (pointers.ids, walk.ids) = (offsets.as_ptr(), [offsets.strides()[0], 0]);
                    walk.flags |= BATCH_OFFSETS;
                }
                if strict {
                    check::host_sequences(cu_seqlens, offsets.as_ref(), walk.rows)?;
                }
            }
        }
        Ok(())
    }
}
