//! Ops of two and three operands.

use pointwise::{
    DType, Number, Operand, Result, Strategy, Tensor, TensorView, TensorViewMut, info,
    kernel::{KernelPlan, OpDef},
};

use crate::case::{Case, Outcome, must};
use crate::compare::{copy, into, proper, same};
use crate::make::{self, Place};

pub(super) fn binary(case: &mut Case) -> Outcome {
    several(case, &of(|def| def.info.operands.len() == 2 && !def.takes_halves() && !def.info.is_gradient()))
}

pub(super) fn ternary(case: &mut Case) -> Outcome {
    several(case, &of(|def| def.info.operands.len() == 3 && !def.info.is_gradient()))
}

pub(super) fn backward(case: &mut Case) -> Outcome {
    several(case, &of(|def| def.info.is_gradient() && def.info.results.len() == 1))
}

/// The ops that a rule is true of.
fn of(is: impl Fn(&OpDef) -> bool) -> Vec<&'static OpDef> {
    info::all().filter(|def| is(def)).collect()
}

/// A call of an op of two or three operands.
struct Call {
    def: &'static OpDef,
    params: [Number; 4],
    strategy: Strategy,
}

impl Call {
    fn run(&self, operands: &[Operand<'_>]) -> Result<Tensor> {
        match *operands {
            [a, b] => self.def.binary_with(&self.params).strategy(self.strategy).run(a, b),
            [a, b, c] => self.def.ternary_with(&self.params).strategy(self.strategy).run(a, b, c),
            _ => unreachable!("ops of two and three operands"),
        }
    }

    fn run_into(&self, operands: &[Operand<'_>], y: TensorViewMut<'_>) -> Result<()> {
        match *operands {
            [a, b] => self.def.binary_with(&self.params).strategy(self.strategy).run_into(a, b, y),
            [a, b, c] => self.def.ternary_with(&self.params).strategy(self.strategy).run_into(a, b, c, y),
            _ => unreachable!("ops of two and three operands"),
        }
    }

    /// Over the first operand, or over the last of three.
    fn run_over(&self, operands: &[Operand<'_>], last: bool, y: &mut Tensor) -> Result<()> {
        match *operands {
            [_, b] => self.def.binary_with(&self.params).strategy(self.strategy).run_inplace(y, b),
            [a, b, _] if last => self.def.ternary_with(&self.params).strategy(self.strategy).run_over_last(a, b, y),
            [_, b, c] => self.def.ternary_with(&self.params).strategy(self.strategy).run_inplace(y, b, c),
            _ => unreachable!("ops of two and three operands"),
        }
    }

    fn plan(&self, operands: &[Operand<'_>], y: &Tensor) -> Result<KernelPlan> {
        match *operands {
            [a, b] => self.def.binary_with(&self.params).plan(a, b, y),
            [a, b, c] => self.def.ternary_with(&self.params).plan(a, b, c, y),
            _ => unreachable!("ops of two and three operands"),
        }
    }
}

fn several(case: &mut Case, list: &[&'static OpDef]) -> Outcome {
    let def = case.random.pick(list);
    let (info, count) = (&def.info, def.info.operands.len());
    let most = make::most(case);
    let full = make::shape(&mut case.random, most);
    let common = make::dtype(&mut case.random);
    let call = Call {
        def,
        params: make::params(&mut case.random, &def.info),
        strategy: match case.random.below(5) {
            0 => Strategy::Auto,
            other => Strategy::ALL[other - 1],
        },
    };
    let mut stored = Vec::new();
    for k in 0..count {
        let dtype = match () {
            () if info.is_bool(k) && !case.random.once_in(10) => DType::Bool,
            _ if case.random.once_in(5) => make::dtype(&mut case.random),
            _ => common,
        };
        let shape = match () {
            () if info.is_channel(k) && full.len() > 1 && !case.random.once_in(4) => vec![full[1]],
            () if info.is_channel(k) => vec![1],
            () if info.channel_operands != 0 => full.clone(),
            _ => make::narrower(&mut case.random, &full),
        };
        let place = Place::to_read(&mut case.random, &shape);
        stored.push((place.tensor(case, dtype)?, place));
    }
    let views: Vec<TensorView<'_>> =
        stored.iter().map(|(tensor, place)| place.view(tensor)).collect::<std::result::Result<_, _>>()?;
    let numbers: Vec<Option<Number>> =
        views.iter().map(|_| case.random.once_in(6).then(|| make::number(&mut case.random))).collect();
    let mut operands: Vec<Operand<'_>> = views.iter().map(|view| Operand::View(*view)).collect();
    for (operand, number) in operands.iter_mut().zip(&numbers) {
        *operand = number.map_or(*operand, Operand::Number);
    }
    let what = format!("{} {:?} {} of {operands:?}", def.info.name, call.params, call.strategy);
    let Some(y) = case.outcome(call.run(&operands))? else { return Ok(()) };
    proper(&what, &y)?;

    // Copies of the shape that they are broadcast to or of their own; without dimensions a tensor counts as another type.
    let mut copies = Vec::new();
    for (k, (view, (tensor, _))) in views.iter().zip(&stored).enumerate() {
        let own = view.shape().rank() == 0 || info.is_channel(k) || case.random.once_in(2);
        let whole = if own || numbers[k].is_some() { *view } else { must("expand", view.expand(y.shape()))? };
        copies.push(copy(&whole, tensor)?);
    }
    let contiguous: Vec<Operand<'_>> = copies
        .iter()
        .zip(&numbers)
        .map(|(copy, number)| number.map_or_else(|| Operand::from(copy), Operand::Number))
        .collect();
    same(&format!("{what}, strided"), &y, &must(&what, call.run(&contiguous))?)?;
    into(case, &what, &y, |to| call.run_into(&operands, to))?;
    case.any(call.plan(&operands, &y))?;

    // In place, over the first operand and over the last.
    for (k, last) in [(0, false), (count - 1, true)] {
        if numbers[k].is_some() || (last && count == 2) {
            continue;
        }
        let mut over = copy(&views[k], &stored[k].0)?;
        match call.run_over(&operands, last, &mut over) {
            Ok(()) => same(&format!("{what}, over operand {k}"), &over, &must("to_dtype", y.to_dtype(over.dtype()))?)?,
            Err(error) if over.shape() == y.shape() && over.dtype() == y.dtype() => {
                return Err(format!("{what}, over operand {k}: {error}"));
            }
            refused => case.any(refused)?,
        }
    }
    Ok(())
}

pub(super) fn gated(case: &mut Case) -> Outcome {
    let def = case.random.pick(&of(|def| def.takes_halves() && !def.info.is_gradient()));
    let mut shape = make::shape(&mut case.random, 2000);
    if !case.random.once_in(10) {
        shape.iter_mut().next_back().into_iter().for_each(|last| *last *= 2);
    }
    let dtype = make::float(&mut case.random);
    let place = Place::to_read(&mut case.random, &shape);
    let tensor = place.tensor(case, dtype)?;
    let x = place.view(&tensor)?;
    let kernel = def.gated_with(&make::params(&mut case.random, &def.info));
    let what = format!("{} of {x:?}", def.info.name);
    let Some(y) = case.outcome(kernel.run(x))? else { return Ok(()) };
    same(&format!("{what}, strided"), &y, &must(&what, kernel.run(&copy(&x, &tensor)?))?)?;
    into(case, &what, &y, |to| kernel.run_into(x, to))?;
    let (last, half) = (shape.len() - 1, shape[shape.len() - 1] / 2);
    let (gate, value) = (must("narrow", x.narrow(last, 0, half))?, must("narrow", x.narrow(last, half, half))?);
    same(&format!("{what}, as a pair"), &must(&what, kernel.run_pair(gate, value))?, &y)?;
    into(case, &what, &y, |to| kernel.run_pair_into(gate, value, to))?;
    case.any(kernel.plan(x, &y))
}

/// Kernel objects of another number of operands than the op has.
pub(super) fn wrong_arity(case: &mut Case) -> Outcome {
    let def = case.random.pick(&of(|def| def.info.operands.len() > 1 && def.info.results.len() == 1));
    let (dtype, params) = (make::dtype(&mut case.random), make::params(&mut case.random, &def.info));
    let x = make::tensor(case, dtype, &[2, 2])?;
    let mut y = make::tensor(case, dtype, &[2, 2])?;
    case.any(def.binary_with(&params).run(&x, &x))?;
    case.any(def.binary_with(&params).run_inplace(&mut y, &x))?;
    case.any(def.binary_with(&params).plan(&x, 2, &y))?;
    case.any(def.ternary_with(&params).run(&x, &x, &x))?;
    case.any(def.ternary_with(&params).run_inplace(&mut y, &x, 1))?;
    case.any(def.ternary_with(&params).run_over_last(&x, 1, &mut y))?;
    case.any(def.ternary_with(&params).plan(&x, &x, 2, &y))?;
    case.any(def.gated_with(&params).run(&x))?;
    case.any(def.gated_with(&params).run_pair(&x, &x))?;
    case.any(def.gated_with(&params).plan(&x, &y))
}
