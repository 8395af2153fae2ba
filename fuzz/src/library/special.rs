//! Dropout, the position encodings, `masked_fill` and `clamp` with bounds.

use pointwise::{DType, Operand, Philox, Strategy, kernel::SinusoidalLayout, kernels, ops};

use crate::case::{Case, Outcome, must};
use crate::compare::{copy, into, into_place, proper, same};
use crate::make::{self, Place};

pub(super) fn dropout(case: &mut Case) -> Outcome {
    let most = make::most(case);
    let (shape, dtype) = (make::shape(&mut case.random, most), make::float(&mut case.random));
    let tensor = make::tensor(case, dtype, &shape)?;
    let x = make::view(&mut case.random, tensor.view());
    let random = &mut case.random;
    let p =
        random.pick(&[0.0, 0.5, 1.0, 0.1, 1e-12, 1.0 - 1e-12, 0.999_999_9, f64::NAN, -0.1, 1.1, 5e-324, f64::INFINITY]);
    let offset = if random.once_in(2) { u64::MAX - random.below(300) as u64 } else { random.word() };
    let place = Philox { seed: random.word(), offset };
    let kernel = kernels::dropout(p).training(!random.once_in(10)).strategy(random.pick(&Strategy::ALL));
    let what = format!("{kernel:?} of {x:?} at {place:?}");
    let Some((y, mask)) = case.outcome(kernel.run_with_mask(x, place))? else { return Ok(()) };
    proper(&what, &mask)?;
    let contiguous = copy(&x, &tensor)?;
    same(&format!("{what}, without mask"), &must(&what, kernel.run(x, place))?, &y)?;
    same(&format!("{what}, strided"), &must(&what, kernel.run(&contiguous, place))?, &y)?;
    // A dropped element is +0. The random word at its place decides: smaller words are kept.
    let kept = must("to_vec", mask.to_vec::<bool>())?;
    let bytes = must("to_bytes", y.to_bytes())?;
    let zeros = bytes.chunks(dtype.size()).map(|element| element.iter().all(|byte| *byte == 0));
    if let Some(at) = kept.iter().zip(zeros).position(|(kept, zero)| !kept && !zero) {
        return Err(format!("{what}: element {at} is dropped by the mask, but is not 0"));
    }
    let mut words: Vec<(u32, bool)> = (0..).map(|i| place.word(i)).zip(kept).collect();
    words.sort_unstable();
    if words.windows(2).any(|pair| !pair[0].1 && pair[1].1) {
        return Err(format!("{what}: the mask keeps a word and drops a smaller one"));
    }
    let mut over = must("a copy", contiguous.copy())?;
    must(&what, kernel.run_inplace(&mut over, place))?;
    same(&format!("{what}, in place"), &over, &y)?;
    let rows = Place::rows(&mut case.random, y.shape());
    into_place(case, &what, &y, &rows, |to| kernel.run_into(&contiguous, to, place))?;
    into_place(case, &what, &mask, &rows, |to| kernel.run_with_mask_into(&contiguous, &mut over, to, place))?;
    case.any(kernel.plan(&contiguous, &y, Some(mask.view())))
}

pub(super) fn generator(case: &mut Case) -> Outcome {
    let small = if case.device.is_emulated() { 9 } else { 100 };
    // The last cannot be had: they are to be refused, not tried.
    let mut size = || match case.random.below(8) {
        0 => case.random.pick(&[1 << 31, (1 << 31) + 1, 1 << 40, usize::MAX]),
        1 => case.random.pick(&[0, 1]),
        _ => case.random.below(small),
    };
    let (planes, rows, columns) = (size(), size(), size());
    let square = if case.random.once_in(10) { columns } else { rows };
    let dtype = make::float(&mut case.random);
    let layout = case.random.pick(&[SinusoidalLayout::Halves, SinusoidalLayout::Interleaved]);
    let (kernel, shape) = match case.random.below(3) {
        0 => (kernels::alibi(), vec![planes, rows, square]),
        1 => (kernels::alibi_causal(), vec![planes, rows, square]),
        _ => (kernels::sinusoidal(layout), vec![rows, if case.random.once_in(4) { columns } else { columns & !1 }]),
    };
    // Sizes in between take memory and time, and fail only if memory runs out.
    let numel = shape.iter().try_fold(1_usize, |numel, &dim| numel.checked_mul(dim));
    if numel.is_some_and(|numel| numel > 1 << 20 && numel < 1 << 36) {
        return Ok(());
    }
    let kernel = kernel.strategy(case.random.pick(&[Strategy::Auto, Strategy::Direct, Strategy::RegisterCopy]));
    let what = format!("{} {dtype} {shape:?}", kernel.def().info.name);
    let Some(y) = case.outcome(kernel.run(&case.device.clone(), dtype, shape.as_slice()))? else { return Ok(()) };
    if shape.iter().any(|&dim| dim > 1000) {
        // It has no elements; a margin would have too many.
        return Ok(());
    }
    let rows = Place::rows(&mut case.random, y.shape());
    into_place(case, &what, &y, &rows, |to| kernel.run_into(to))
}

pub(super) fn masked_fill(case: &mut Case) -> Outcome {
    let full = make::shape(&mut case.random, 1000);
    let dtype = make::dtype(&mut case.random);
    let mask_type = if case.random.once_in(10) { make::dtype(&mut case.random) } else { DType::Bool };
    let shapes = [make::narrower(&mut case.random, &full), make::narrower(&mut case.random, &full)];
    let places = shapes.map(|shape| Place::to_read(&mut case.random, &shape));
    let tensors = [places[0].tensor(case, dtype)?, places[1].tensor(case, mask_type)?];
    let (x, mask) = (places[0].view(&tensors[0])?, places[1].view(&tensors[1])?);
    let value_type = make::dtype(&mut case.random);
    let value_shape: &[usize] = if case.random.once_in(20) { &[1] } else { &[] };
    let value = make::tensor(case, value_type, value_shape)?;
    let number = make::number(&mut case.random);
    let value = if case.random.once_in(4) { Operand::from(&value) } else { Operand::Number(number) };
    let what = format!("masked_fill of {x:?}, {mask:?} and {value:?}");
    let Some(y) = case.outcome(ops::masked_fill(x, mask, value))? else { return Ok(()) };
    let copies = [copy(&x, &tensors[0])?, copy(&mask, &tensors[1])?];
    same(&format!("{what}, strided"), &y, &must(&what, ops::masked_fill(&copies[0], &copies[1], value))?)?;
    into(case, &what, &y, |to| ops::masked_fill_into(x, mask, value, to))?;
    let [mut over, _] = copies;
    match ops::masked_fill_inplace(&mut over, mask, value) {
        Ok(()) => same(&format!("{what}, in place"), &over, &y)?,
        Err(error) if over.shape() == y.shape() => return Err(format!("{what}, in place: {error}")),
        refused => case.any(refused)?,
    }
    case.any(ops::masked_fill_backward(x, mask))
}

pub(super) fn clamp(case: &mut Case) -> Outcome {
    let full = make::shape(&mut case.random, 1000);
    let common = make::float(&mut case.random);
    let mut stored = Vec::new();
    for _ in 0..3 {
        let dtype = if case.random.once_in(8) { make::dtype(&mut case.random) } else { common };
        let shape = make::narrower(&mut case.random, &full);
        let place = Place::to_read(&mut case.random, &shape);
        stored.push((place.tensor(case, dtype)?, place));
    }
    let views = stored.iter().map(|(tensor, place)| place.view(tensor)).collect::<Result<Vec<_>, _>>()?;
    let mut bound = |k: usize| match case.random.below(6) {
        0 | 1 => None,
        2 => Some(Operand::Number(make::number(&mut case.random))),
        _ => Some(Operand::View(views[k])),
    };
    let (min, max) = (bound(1), bound(2));
    let what = format!("clamp of {:?}, {min:?} and {max:?}", views[0]);
    if let Some(y) = case.outcome(ops::clamp(views[0], min, max))? {
        let copies = views.iter().zip(&stored).map(|(view, (tensor, _))| copy(view, tensor));
        let copies = copies.collect::<Result<Vec<_>, _>>()?;
        let contiguous = |k: usize, bound: Option<Operand<'_>>| match bound {
            Some(Operand::View(_)) => Some(Operand::View(copies[k].view())),
            Some(Operand::Number(number)) => Some(Operand::Number(number)),
            _ => None,
        };
        let of_copies = ops::clamp(&copies[0], contiguous(1, min), contiguous(2, max));
        same(&format!("{what}, strided"), &y, &must(&what, of_copies)?)?;
        into(case, &what, &y, |to| ops::clamp_into(views[0], min, max, to))?;
    }
    case.any(ops::clamp_backward(views[0], views[0], min, max))
}
