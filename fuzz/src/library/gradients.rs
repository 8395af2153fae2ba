//! Gradients of ops of several operands.

use pointwise::{DType, Operand, Tensor, TensorView, TensorViewMut, info, kernel::OpDef};

use crate::case::{Case, Outcome, must};
use crate::compare::{copy, into, same};
use crate::make::{self, Place};

/// A gradient of a gated op or of others, or now and then any, which is to be refused.
fn pick(case: &mut Case, gated: bool) -> &'static OpDef {
    let any = case.random.once_in(20);
    let is = |def: &&'static OpDef| def.info.results.len() > 1 && (any || def.takes_halves() == gated);
    let list: Vec<&'static OpDef> = info::all().filter(is).collect();
    case.random.pick(&list)
}

fn dtype(case: &mut Case) -> DType {
    if case.random.once_in(20) { make::dtype(&mut case.random) } else { case.random.pick(&make::WIDE_FLOATS) }
}

pub(super) fn several(case: &mut Case) -> Outcome {
    let def = pick(case, false);
    let full = make::shape(&mut case.random, 2000);
    let dtype = dtype(case);
    let (info, count) = (&def.info, def.info.operands.len());
    let mut stored = Vec::new();
    for k in 0..count + case.random.below(2) * usize::from(case.random.once_in(20)) {
        let dtype = info.operand_type(k, dtype);
        let shape = match () {
            () if info.is_channel(k) => vec![full.get(1).copied().unwrap_or(1)],
            () if info.channel_operands != 0 => full.clone(),
            _ => make::narrower(&mut case.random, &full),
        };
        let place = Place::to_read(&mut case.random, &shape);
        stored.push((place.tensor(case, dtype)?, place));
    }
    let views: Vec<TensorView<'_>> =
        stored.iter().map(|(tensor, place)| place.view(tensor)).collect::<Result<_, _>>()?;
    let mut operands: Vec<Operand<'_>> = views.iter().map(|view| Operand::View(*view)).collect();
    for operand in &mut operands {
        if case.random.once_in(9) {
            *operand = Operand::Number(make::number(&mut case.random));
        }
    }
    let kernel = def.kernel(&make::params(&mut case.random, &def.info));
    let what = format!("{} of {operands:?}", def.info.name);
    let Some(results) = case.outcome(kernel.run(&operands))? else { return Ok(()) };

    let copies = views.iter().zip(&stored).map(|(view, (tensor, _))| copy(view, tensor));
    let copies: Vec<Tensor> = copies.collect::<Result<_, _>>()?;
    let contiguous: Vec<Operand<'_>> = operands
        .iter()
        .zip(&copies)
        .map(|(operand, copy)| if let Operand::View(_) = operand { Operand::from(copy) } else { *operand })
        .collect();
    let of_copies = must(&what, kernel.run(&contiguous))?;
    for (got, want) in results.iter().zip(&of_copies) {
        same(&format!("{what}, strided"), got, want)?;
    }
    // One result goes into a strided view, the others into new tensors.
    for (which, want) in results.iter().enumerate() {
        let others = results.iter().map(|result| make::zeros(&case.device, result.dtype(), result.shape()));
        let mut others: Vec<Tensor> = others.collect::<Result<_, _>>()?;
        into(case, &what, want, |to| {
            let mut targets: Vec<TensorViewMut<'_>> = others.iter_mut().map(TensorViewMut::from).collect();
            targets[which] = to;
            kernel.run_into(&operands, &mut targets)
        })?;
        for (k, (other, want)) in others.iter().zip(&results).enumerate().filter(|(k, _)| *k != which) {
            same(&format!("{what}, result {k} beside {which}"), other, want)?;
        }
    }
    let views: Vec<TensorView<'_>> = results.iter().map(Tensor::view).collect();
    case.any(kernel.plan(&operands, &views))
}

pub(super) fn gated(case: &mut Case) -> Outcome {
    let def = pick(case, true);
    let full = make::shape(&mut case.random, 2000);
    let dtype = dtype(case);
    let mut doubled = full.clone();
    doubled.iter_mut().next_back().into_iter().for_each(|last| *last *= 2);
    let narrower = make::narrower(&mut case.random, &full);
    let places = [Place::to_read(&mut case.random, &narrower), Place::to_read(&mut case.random, &doubled)];
    let tensors = [places[0].tensor(case, dtype)?, places[1].tensor(case, dtype)?];
    let (grad, x) = (places[0].view(&tensors[0])?, places[1].view(&tensors[1])?);
    let kernel = def.gated_gradients(&make::params(&mut case.random, &def.info));
    let what = format!("{} of {grad:?} and {x:?}", def.info.name);
    let Some(y) = case.outcome(kernel.run(grad, x))? else { return Ok(()) };
    let copies = [copy(&grad, &tensors[0])?, copy(&x, &tensors[1])?];
    same(&format!("{what}, strided"), &y, &must(&what, kernel.run(&copies[0], &copies[1]))?)?;
    into(case, &what, &y, |to| kernel.run_into(grad, x, to))?;
    case.any(kernel.plan(grad, x, &y))?;
    let number = Operand::Number(make::number(&mut case.random));
    case.any(kernel.run(number, x))
}
