//! The operands and results of a call, checked.

use pointwise_core::convert::rounded;
use pointwise_core::formula::ParamWords;
use pointwise_core::{DType, Kind, OpInfo};

use super::call::Kernel;
use super::groups;
use super::rows::{result_shape, shape_of_rows};
use crate::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::promote::{self, Converted};
use crate::kernel::{Operand, check, params, scalar};
use crate::shape::Shape;
use crate::tensor::{Overlap, TensorView, interleave, overlap};

/// Up to `N` checked operands.
pub(super) struct CheckedOperands<'a, const N: usize> {
    pub(super) dtype: DType,
    /// The shape that they broadcast to; each group is a row of it.
    pub(super) shape: Shape,
    pub(super) device: Device,
    pub(super) views: [Option<TensorView<'a>>; N],
    /// Those that came as numbers.
    pub(super) given: [Option<u64>; N],
    pub(super) words: ParamWords,
}

impl<const N: usize> CheckedOperands<'_, N> {
    /// To be filled in where it lies: it is large, and a call should not copy it.
    pub(super) fn new() -> Self {
        CheckedOperands {
            dtype: DType::F32,
            shape: Shape::SCALAR,
            device: Device::cpu(),
            views: [None; N],
            given: [None; N],
            words: ParamWords::default(),
        }
    }
}

/// The places of results, in a call of at most `T` tensors.
pub(super) struct Results<'a, const T: usize> {
    pub(super) pointers: [*mut u8; T],
    pub(super) views: [Option<TensorView<'a>>; T],
    /// The caller's memory for sums.
    pub(super) workspace: Option<(*mut u8, &'a TensorView<'a>)>,
    pub(super) shared: Shared<'a>,
}

/// The tensors that results may share memory with.
#[derive(Clone, Copy)]
pub(super) enum Shared<'a> {
    /// None: the results are new.
    Nothing,
    /// Each may be the very memory of operands.
    Operands,
    /// They are the halves of `y`, which may be the very memory of `x`, whose halves are the operands behind the first.
    Halves { x: &'a TensorView<'a>, y: &'a TensorView<'a> },
}

impl<'a, const T: usize> Results<'a, T> {
    pub(super) fn new(shared: Shared<'a>) -> Self {
        Results { pointers: [std::ptr::null_mut(); T], views: [None; T], workspace: None, shared }
    }

    /// The `k`-th result.
    pub(super) fn set(&mut self, k: usize, pointer: *mut u8, view: TensorView<'a>) {
        self.pointers[k] = pointer;
        self.views[k] = Some(view);
    }
}

impl<'r> Kernel<'r> {
    pub(super) fn check_operands(&self, operands: &[Operand<'_>]) -> Result<()> {
        let info = &self.def.info;
        if operands.len() != info.operands.len() {
            return Err(check::wrong_count(info, "operands", info.operands, operands.len()));
        }
        Ok(())
    }

    pub(super) fn check_count(&self, results: usize) -> Result<()> {
        let info = &self.def.info;
        if results != info.results.len() {
            return Err(check::wrong_count(info, "results", info.results, results));
        }
        Ok(())
    }

    /// [`Kernel::ready`], of operands that are converted to the type in which they meet; those of one stay as they are.
    pub(super) fn ready_promoted<'a, const N: usize>(
        &self,
        operands: &[Operand<'a>],
        converted: &'a mut Converted<N>,
        ready: &mut CheckedOperands<'a, N>,
    ) -> Result<()> {
        self.check_operands(operands)?;
        let info = &self.def.info;
        match promote::common_type(info, operands, self.params.of(info)?)? {
            None => self.ready(operands, ready),
            Some(dtype) => {
                let promoted = promote::convert_all(info, operands, dtype, self.stream(), converted)?;
                self.ready(&promoted[..operands.len()], ready)
            }
        }
    }

    /// Returns the operand that decides type and device, by name and as a view, and the element type of the call. Where no
    /// operand has the op's type, that is the type that was set, or the first of the op's.
    pub(super) fn led<'a, 'v>(&self, operands: &'a [Operand<'v>]) -> Result<(&'static str, &'a TensorView<'v>, DType)> {
        let info = &self.def.info;
        let (name, view) = leader(info, operands)?;
        let dtype = if has_free(info) { view.dtype() } else { self.dtype.unwrap_or(info.types[0]) };
        Ok((name, view, dtype))
    }

    /// Checks operands: those of the element type have one, bools are bools, all are on one device, and their shapes can
    /// be broadcast together, those of channels along dimension 1.
    pub(super) fn ready<'a, const N: usize>(
        &self,
        operands: &[Operand<'a>],
        ready: &mut CheckedOperands<'a, N>,
    ) -> Result<()> {
        let info = &self.def.info;
        self.check_operands(operands)?;
        let (leader, first, dtype) = self.led(operands)?;
        let device = *first.device();
        check::dtype(info, dtype)?;
        (ready.dtype, ready.device) = (dtype, device);
        ready.words = params::words(info, &self.params, dtype)?;
        let channels_of = channels_of(info, operands)?;
        let mut any = false;
        for (k, operand) in operands.iter().enumerate() {
            let what = || format!("operand {} of {}", info.operands[k], info.name);
            match operand {
                Operand::View(view) => {
                    let expected = info.operand_type(k, dtype);
                    if view.dtype() != expected {
                        let op = match info.fixed_operand(k) {
                            Some(_) => what(),
                            None => format!("{} ({leader} is {dtype})", what()),
                        };
                        return Err(ErrorKind::DType { op, got: view.dtype(), allowed: vec![expected] }.into());
                    }
                    if view.device() != &device {
                        let got = *view.device();
                        return Err(ErrorKind::DeviceMismatch { what: what(), expected: device, got }.into());
                    }
                    let slot = &mut ready.views[k];
                    let view = match &channels_of {
                        // Below, of all together.
                        _ if info.group != 0 => slot.insert(*view),
                        _ if info.is_row_operand(k) => slot.insert(view.unsqueeze(view.shape().rank())?),
                        Some(others) if info.is_channel(k) => slot.insert(channel(others, view, what)?),
                        _ => slot.insert(*view),
                    };
                    let counted;
                    let shape = match info.group {
                        0 => view.shape(),
                        _ => {
                            counted = groups::counted(info, k, view.shape())?;
                            &counted
                        }
                    };
                    if !any {
                        ready.shape = *shape;
                    } else if *shape != ready.shape {
                        ready.shape = ready.shape.broadcast_with(shape)?;
                    }
                    any = true;
                }
                // Their kernels, of 16 and 8 bits, do not ask for numbers.
                Operand::Number(number) if info.kind == Kind::Gated => {
                    return Err(ErrorKind::Unsupported {
                        what: format!("{} as the number {number}", what()),
                        advice: "give it as a tensor, such as one without dimensions".to_owned(),
                    }
                    .into());
                }
                Operand::Number(number) => {
                    let word = scalar::operand(info, k, *number, dtype)?;
                    ready.given[k] = Some(if info.is_of_rows() { element_of(info, k, word, dtype) } else { word });
                }
            }
        }
        if info.group != 0 {
            ready.shape = groups::split(info, &ready.shape)?;
            for (k, view) in ready.views.iter_mut().enumerate() {
                *view = view.map(|view| groups::view(info, &view, info.is_row_operand(k))).transpose()?;
            }
        }
        Ok(())
    }

    /// Returns results of groups as the op's rows have them, checked to be of their types, shapes and device.
    #[inline(never)]
    pub(super) fn in_groups<'t, const N: usize, const T: usize>(
        &self,
        ready: &CheckedOperands<'_, N>,
        targets: &Results<'t, T>,
    ) -> Result<Results<'t, T>> {
        let info = &self.def.info;
        self.check_count(targets.views.iter().flatten().count())?;
        let mut grouped = Results { views: [None; T], ..*targets };
        for (k, (to, view)) in grouped.views.iter_mut().zip(&targets.views).enumerate() {
            let Some(view) = view else { continue };
            let types = (ready.dtype, info.result_type(k, ready.dtype));
            let shape = result_shape(info, k, &ready.shape, &ready.views)?;
            check::output(|| output(info, k), view, types, &shape, &ready.device)?;
            *to = Some(if info.is_row_result(k) { *view } else { groups::view(info, view, false)? });
        }
        Ok(grouped)
    }

    /// Checks results, whoever made them: there are as many as the op has, of their types, of the operands' shape and
    /// device, and they share memory as they may.
    pub(super) fn check_results<const N: usize, const T: usize>(
        &self,
        ready: &CheckedOperands<'_, N>,
        targets: &Results<'_, T>,
    ) -> Result<()> {
        let info = &self.def.info;
        self.check_count(targets.views.iter().flatten().count())?;
        check_indices(info, &ready.shape)?;
        if let Shared::Halves { x, y } = targets.shared {
            check_halves(info, ready, (x, y))?;
        }
        for (k, view) in targets.views.iter().flatten().enumerate() {
            let what = || output(info, k);
            let types = (ready.dtype, info.result_type(k, ready.dtype));
            let of_rows;
            let shape = if info.is_of_rows() {
                of_rows = shape_of_rows(info, k, &ready.shape, &ready.views)?;
                &of_rows
            } else {
                &ready.shape
            };
            check::output(what, view, types, shape, &ready.device)?;
            if info.is_of_rows() && !info.is_row_result(k) {
                check_dense(info, k, view)?;
            }
            if info.has_place() {
                // An element's place is its index.
                view.layout().require_contiguous("the output of an op that knows its elements' places")?;
            }
            if !matches!(targets.shared, Shared::Operands) {
                continue;
            }
            for (operand, source) in info.operands.iter().zip(&ready.views) {
                // A result that a row has once is written before the row's elements are read for the last time.
                let met = source.map_or(Overlap::None, |source| overlap(&source, view));
                let is_apart = info.is_row_result(k) || self.def.own().is_some_and(|own| own.is_apart(k));
                if met == Overlap::Partial || met != Overlap::None && is_apart {
                    return Err(overlapping(&format!("operand {operand}"), &what()));
                }
            }
            for (other, earlier) in info.results.iter().zip(targets.views[..k].iter().flatten()) {
                // Gradients of halves are the halves of one tensor.
                if overlap(earlier, view) != Overlap::None && !interleave(earlier, view) {
                    return Err(overlapping(&format!("the output {other}"), &what()));
                }
            }
        }
        Ok(())
    }

    pub(super) fn check_rng<const N: usize, const T: usize>(
        &self,
        ready: &CheckedOperands<'_, N>,
        targets: &Results<'_, T>,
    ) -> Result<()> {
        let info = &self.def.info;
        if !info.is_random() {
            return Ok(());
        }
        self.rng.check(info.name, &ready.device, targets.views.iter().flatten())
    }
}

/// Fails if an index beyond 32 bits is asked for.
pub(super) fn check_indices(info: &OpInfo, shape: &Shape) -> Result<()> {
    match shape.iter().rev().take(2).find(|&&size| info.indices > 0 && u32::try_from(size).is_err()) {
        None => Ok(()),
        Some(size) => Err(ErrorKind::Unsupported {
            what: format!("{} of a dimension of {size}", info.name),
            advice: "an index has 32 bits: take views of a part each".to_owned(),
        }
        .into()),
    }
}

/// Returns the shape that the operands without an element for each channel broadcast to; `None` if all have one, or none has.
pub(super) fn channels_of(info: &OpInfo, operands: &[Operand<'_>]) -> Result<Option<Shape>> {
    if info.channel_operands == 0 {
        return Ok(None);
    }
    let mut shape: Option<Shape> = None;
    for (k, operand) in operands.iter().enumerate() {
        if let (Operand::View(view), false) = (operand, info.is_channel(k)) {
            shape = Some(match shape {
                Some(shape) => shape.broadcast_with(view.shape())?,
                None => *view.shape(),
            });
        }
    }
    Ok(shape)
}

/// An operand as it broadcasts to the shape of the others: of one element, of one for each of dimension 1, or of the
/// rank of the others, as it lies.
fn channel<'a>(others: &Shape, view: &TensorView<'a>, what: impl Fn() -> String) -> Result<TensorView<'a>> {
    let shape = view.shape();
    if others.rank() >= 2 && shape.rank() == others.rank() {
        return Ok(*view);
    }
    if shape.rank() <= 1 && view.numel() == 1 {
        return view.reshape([]);
    }
    if others.rank() < 2 || shape.rank() != 1 || shape[0] != others[1] {
        let channels = if others.rank() < 2 { 1 } else { others[1] };
        let what = format!("{} beside a shape of {others} (one element, or one for each of dimension 1)", what());
        return Err(ErrorKind::ShapeMismatch { what, expected: Shape::new(&[channels])?, got: *shape }.into());
    }
    let mut view = *view;
    for rank in 1..others.rank() - 1 {
        view = view.unsqueeze(rank)?;
    }
    Ok(view)
}

/// True if some operand has the op's element type.
pub(super) fn has_free(info: &OpInfo) -> bool {
    info.operand_types.len() < info.operands.len() || info.operand_types.contains(&None)
}

/// The tensor that decides the device, and its name: the first that has the op's element type, or the first of all where
/// none has.
pub(super) fn leader<'a, 'v>(info: &OpInfo, operands: &'a [Operand<'v>]) -> Result<(&'static str, &'a TensorView<'v>)> {
    let view = |k: usize| match &operands[k] {
        Operand::View(view) => Some((info.operands[k], view)),
        Operand::Number(_) => None,
    };
    let is_free = has_free(info);
    let mut leading = (0..operands.len()).filter(|&k| !is_free || info.fixed_operand(k).is_none());
    leading.find_map(view).ok_or_else(|| no_tensor(info))
}

/// A number as an operand of an op on rows has it: an element.
fn element_of(info: &OpInfo, k: usize, word: u64, dtype: DType) -> u64 {
    if info.fixed_operand(k).is_some() {
        return word;
    }
    rounded(f32::from_bits(word as u32), dtype).to_bits().into()
}

/// Checks that the elements of a row lie one after another in a result.
fn check_dense(info: &OpInfo, k: usize, view: &TensorView<'_>) -> Result<()> {
    match (view.shape().last(), view.strides().last()) {
        (Some(&size), Some(&stride)) if size > 1 && stride != 1 => Err(ErrorKind::Unsupported {
            what: format!("{} whose rows have strides of {stride}", output(info, k)),
            advice: "write to a tensor whose last dimension is contiguous".to_owned(),
        }
        .into()),
        _ => Ok(()),
    }
}

/// Result `k` in words.
fn output(info: &OpInfo, k: usize) -> String {
    match info.results {
        [_] => format!("the output of {}", info.name),
        names => format!("the output {} of {}", names[k], info.name),
    }
}

/// Checks tensors whose halves are operands and results.
fn check_halves<const N: usize>(
    info: &OpInfo,
    ready: &CheckedOperands<'_, N>,
    (x, y): (&TensorView<'_>, &TensorView<'_>),
) -> Result<()> {
    let what = || format!("the output y of {}", info.name);
    check::output(what, y, (ready.dtype, info.result_type(0, ready.dtype)), x.shape(), x.device())?;
    if overlap(x, y) == Overlap::Partial {
        return Err(overlapping("operand x", &what()));
    }
    match &ready.views[0] {
        Some(grad) if overlap(grad, y) != Overlap::None => Err(overlapping("operand grad", &what())),
        _ => Ok(()),
    }
}

#[cold]
fn no_tensor(info: &OpInfo) -> Error {
    if info.is_of_indices() {
        return ErrorKind::Unsupported {
            what: format!("{} without a shape", info.name),
            advice: "it has no operands: call `Kernel::generate`, or write to a tensor that is there".to_owned(),
        }
        .into();
    }
    let free: Vec<&str> =
        (0..info.operands.len()).filter(|&k| info.fixed_operand(k).is_none()).map(|k| info.operands[k]).collect();
    let which = if free.len() == info.operands.len() { String::new() } else { format!(" of {}", free.join(", ")) };
    ErrorKind::Unsupported {
        what: format!("{} of numbers alone", info.name),
        advice: format!("give at least one operand{which} as a tensor, which decides type and device"),
    }
    .into()
}

#[cold]
fn overlapping(a: &str, b: &str) -> Error {
    ErrorKind::Overlap { what: format!("{a} and {b}") }.into()
}
