//! Ops of one operand, conversions, and tensors as text.

use pointwise::{Strategy, info, kernels, ops};

use crate::case::{Case, Outcome, must};
use crate::compare::{copy, into, proper, same};
use crate::make;

pub(super) fn unary(case: &mut Case) -> Outcome {
    let unary = info::all().filter(|def| def.info.is_unary());
    let list: Vec<_> = if case.random.once_in(10) { info::beneath().collect() } else { unary.collect() };
    let def = case.random.pick(&list);
    let most = make::most(case);
    let (shape, dtype) = (make::shape(&mut case.random, most), make::dtype(&mut case.random));
    let tensor = make::tensor(case, dtype, &shape)?;
    let x = make::view(&mut case.random, tensor.view());
    let params = make::params(&mut case.random, &def.info);
    let mut kernel = def.unary_with(&params).strategy(case.random.pick(&Strategy::ALL));
    if case.random.once_in(8) {
        kernel = kernel.threads(case.random.pick(&[0, 31, 32, 1024, u32::MAX]));
    }
    let what = format!("{} {params:?} of {x:?}", def.info.name);
    let Some(y) = case.outcome(kernel.run(x))? else { return Ok(()) };
    proper(&what, &y)?;
    let contiguous = copy(&x, &tensor)?;
    same(&format!("{what}, strided"), &y, &must(&what, kernel.run(&contiguous))?)?;
    into(case, &what, &y, |to| kernel.run_into(x, to))?;
    let mut over = contiguous;
    match kernel.run_inplace(&mut over) {
        Ok(()) => same(&format!("{what}, in place"), &over, &y)?,
        Err(error) if over.dtype() == y.dtype() => return Err(format!("{what}, in place: {error}")),
        refused => case.any(refused)?,
    }
    case.any(kernel.plan(x, &y))?;
    let at = make::number(&mut case.random);
    let at = if let pointwise::Number::Float(at) = at { at } else { 0.5 };
    case.any(def.oracle(dtype, &params).map(|oracle| oracle.map(|oracle| oracle.of(&[at]))))
}

pub(super) fn convert(case: &mut Case) -> Outcome {
    let most = make::most(case);
    let shape = make::shape(&mut case.random, most);
    let (from, to) = (make::dtype(&mut case.random), make::dtype(&mut case.random));
    let tensor = make::tensor(case, from, &shape)?;
    let x = make::view(&mut case.random, tensor.view());
    let what = format!("to_dtype({to}) of {x:?}");
    let y = must(&what, x.to_dtype(to))?;
    case.answers += 1;
    proper(&what, &y)?;
    same(&format!("{what}, strided"), &y, &must(&what, copy(&x, &tensor)?.to_dtype(to))?)?;
    same("to_tensor", &must("to_tensor", x.to_tensor())?, &copy(&x, &tensor)?)?;
    into(case, &what, &y, |out| ops::to_dtype_into(x, out))?;
    into(case, "copy_into", &copy(&x, &tensor)?, |out| x.copy_into(out))?;
    let kernel = kernels::to_dtype().strategy(case.random.pick(&Strategy::ALL));
    case.any(kernel.run(x, to))
}

pub(super) fn display(case: &mut Case) -> Outcome {
    let (shape, dtype) = (make::shape(&mut case.random, 300), make::dtype(&mut case.random));
    let tensor = make::tensor(case, dtype, &shape)?;
    let x = make::view(&mut case.random, tensor.view());
    let (precision, width) = (case.random.pick(&[0, 1, 7, 20, 300]), case.random.pick(&[0, 9, 40]));
    let text = match case.random.below(5) {
        0 => format!("{x}"),
        1 => format!("{x:.precision$}"),
        2 => format!("{x:width$.precision$}"),
        3 => format!("{tensor:?}{x:?}"),
        _ => format!("{x:#?}"),
    };
    if text.is_empty() {
        return Err(format!("no text for {x:?}"));
    }
    case.any(x.item::<f32>())?;
    case.any(x.to_vec::<i64>())?;
    case.any(x.as_slice::<u8>())
}
