//! Rotary embedding by tables of cosines and sines, as kernels of torch, and the tables of the named variants.

use pointwise::TensorView;
use pointwise::rope::{
    RopeAngles, RopeDirection, RopeError, RopeKernel, RopeLayout, RopePairs, RopePositions, RopePrecision,
    RotatedLanes, rope_op,
};

use crate::abi::{Api, Element, Word};
use crate::arguments::Arguments;
use crate::call::Stage;
use crate::layout;
use crate::tensor::{Raw, Tensor};
use crate::view::{say, view, view_mut};

/// A kernel of the rotary embedding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rope {
    /// True if k is rotated with q.
    pub(crate) pair: bool,
    /// True if it writes to given tensors.
    pub(crate) out: bool,
}

impl Rope {
    /// All four forms.
    pub(crate) const ALL: [Rope; 4] = [
        Rope { pair: false, out: false },
        Rope { pair: false, out: true },
        Rope { pair: true, out: false },
        Rope { pair: true, out: true },
    ];

    /// The name of the op.
    pub(crate) fn name(self) -> &'static str {
        if self.pair { "rope" } else { "rope_one" }
    }

    /// The schema, with the name.
    pub(crate) fn schema(self) -> String {
        let (tensors, results, outs) = match self.pair {
            true => ("Tensor q, Tensor k", "(Tensor, Tensor)", "Tensor(a!) out_q, Tensor(b!) out_k"),
            false => ("Tensor q", "Tensor", "Tensor(a!) out_q"),
        };
        let settings = "Tensor cos, Tensor sin, Tensor? position_ids, int offset, int? rotary_dim, str layout, str pairs, \
            str rotated_lanes, float q_scale, float k_scale, bool backward";
        match self.out {
            true => format!("{}.out({tensors}, {settings}, {outs}) -> ()", self.name()),
            false => format!("{}({tensors}, {settings}) -> {results}", self.name()),
        }
    }

    /// Takes the arguments off the stack, rotates, and puts the results there.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub(crate) fn run(self, api: &Api, words: &mut [Word], count: usize) -> Result<(), String> {
        let mut stack = Arguments { api, words: words[..count].iter() };
        let inputs: Vec<Tensor> = (0..1 + usize::from(self.pair)).map(|_| stack.tensor()).collect();
        let (cos, sin, ids) = (stack.tensor(), stack.tensor(), stack.optional_tensor());
        let offset = stack.next() as i64;
        let rotary_dim = stack.optional_word().map(|word| word as i64);
        let (layout, pairs, rotated_lanes) = (stack.string(), stack.string(), stack.string());
        let scales = [stack.float(), stack.float()];
        let backward = stack.next() as u8 != 0;
        let settings = Settings { offset, rotary_dim, layout, pairs, rotated_lanes, scales, backward };
        let mut outs: Vec<Tensor> = if self.out { inputs.iter().map(|_| stack.tensor()).collect() } else { Vec::new() };

        let raws = inputs.iter().map(|input| input.raw(api)).collect::<Result<Vec<_>, _>>()?;
        if !self.out {
            for raw in &raws {
                let strides = layout::of_result(raw.sizes, &[(raw.sizes, raw.strides)])?;
                outs.push(Tensor::empty(api, raw.sizes, &strides, raw.element, raw.place)?);
            }
        }
        let stage = Stage::new(api, raws[0].place)?;
        let seen = |raw: &Raw<'_>| {
            if raw.place != raws[0].place {
                return Err(format!(
                    "Expected all tensors of rope to be on {:?}, but one is on {:?}",
                    raws[0].place, raw.place
                ));
            }
            // SAFETY: torch vouches for its tensors, which are held here until the call has returned.
            unsafe { view(&stage.device, raw.data, raw.element, raw.sizes, raw.strides) }
        };
        let (cos, sin) = (cos.raw(api)?, sin.raw(api)?);
        let ids = ids.as_ref().map(|ids| ids.raw(api)).transpose()?;
        let ids = ids.as_ref().map(seen).transpose()?;
        let mut kernel = settings.kernel(seen(&cos)?, seen(&sin)?, ids)?;
        if let Some(stream) = &stage.stream {
            kernel = kernel.on(stream);
        }
        let views = raws.iter().map(seen).collect::<Result<Vec<_>, _>>()?;
        let mut targets = Vec::new();
        for (out, raw) in outs.iter().zip(&raws) {
            let target = out.raw(api)?;
            if target.place != raw.place || target.element == Element::F64 {
                return Err(format!("rope: a result on {:?} of {:?}", target.place, target.element));
            }
            // SAFETY: as above.
            targets
                .push(unsafe { view_mut(&stage.device, target.data, target.element, target.sizes, target.strides) }?);
        }
        let mut targets = targets.into_iter();
        let Some(q) = targets.next() else { return Err("rope has no result".to_owned()) };
        kernel.run_into(views[0], views.get(1).copied(), q, targets.next()).map_err(say)?;
        if !self.out {
            for (word, out) in words.iter_mut().zip(outs) {
                *word = out.into_handle() as Word;
            }
        }
        Ok(())
    }
}

/// The settings of a call, in the words of Python's `rope`.
pub(crate) struct Settings {
    pub(crate) offset: i64,
    pub(crate) rotary_dim: Option<i64>,
    pub(crate) layout: String,
    pub(crate) pairs: String,
    pub(crate) rotated_lanes: String,
    /// The factors of q and of k.
    pub(crate) scales: [f64; 2],
    pub(crate) backward: bool,
}

impl Settings {
    /// The kernel of the call.
    ///
    /// # Errors
    /// A word that is none of a setting's.
    pub(crate) fn kernel<'a>(
        &self,
        cos: TensorView<'a>,
        sin: TensorView<'a>,
        ids: Option<TensorView<'a>>,
    ) -> Result<RopeKernel<'a>, String> {
        let wrong = |e: RopeError| e.to_string();
        let positions = ids.map_or(RopePositions::Offset(self.offset), RopePositions::Ids);
        let direction = if self.backward { RopeDirection::Backward } else { RopeDirection::Forward };
        let pairs = self.pairs.parse::<RopePairs>().map_err(wrong)?;
        let kernel = RopeKernel::new(RopeAngles::Tables { cos, sin }, pairs)
            .layout(self.layout.parse::<RopeLayout>().map_err(wrong)?)
            .rotated_lanes(self.rotated_lanes.parse::<RotatedLanes>().map_err(wrong)?)
            .positions(positions)
            .output_scale(self.scales[0] as f32, self.scales[1] as f32)
            .direction(direction);
        Ok(match self.rotary_dim {
            None => kernel,
            Some(lanes) => {
                let lanes = usize::try_from(lanes).map_err(|_| format!("rope: {lanes} lanes cannot rotate"))?;
                kernel.rotary_dim(lanes)
            }
        })
    }
}

/// Cosines and sines of a named variant for positions from 0 to `length`, one row after another, as f32.
///
/// # Errors
/// An unknown name or setting; parameters that make no frequencies.
pub(crate) fn tables(
    name: &str,
    settings: &[(String, String)],
    head_dim: usize,
    length: u32,
) -> Result<(Vec<f32>, Vec<f32>), String> {
    let say = |e: pointwise::rope::RopeError| e.to_string();
    let mut op = rope_op(name).ok_or_else(|| format!("there is no rotary embedding {name}"))?.op();
    let (mut precision, mut seq_len) = (RopePrecision::default(), u64::from(length));
    for (setting, value) in settings {
        match setting.as_str() {
            "precision" => precision = value.parse().map_err(say)?,
            "seq_len" => seq_len = value.parse().map_err(|_| format!("seq_len is {value}: give a number"))?,
            _ => op = op.set(setting, value.clone()).map_err(say)?,
        }
    }
    let frequencies = op.config(head_dim).and_then(|config| config.frequencies(seq_len)).map_err(say)?;
    let positions: Vec<i64> = (0..i64::from(length)).collect();
    Ok(frequencies.cos_sin(&positions, precision))
}
