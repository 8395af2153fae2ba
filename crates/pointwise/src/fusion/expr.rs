//! Formulas of tensors, computed in one pass when they are asked for.

use std::collections::HashMap;
use std::sync::Arc;

use pointwise_core::DType;
use pointwise_core::rows::Reduction;

use super::graph::{Graph, MAX_FUSED_STEPS, Value};
use super::{Fused, FusedPlan};
use crate::Number;
use crate::error::{ErrorKind, Result};
use crate::kernel::{OpDef, Rng};
use crate::tensor::{Tensor, TensorView, TensorViewMut};

/// A formula of tensors and numbers. Nothing is computed before [`Expr::eval`]; a clone is the same formula, which is computed once.
///
/// Each op of pointwise that computes element by element has a method of its name; [`Expr::apply`] takes any other. Errors are those
/// of [`Expr::eval`].
#[derive(Clone, Debug)]
pub struct Expr<'a>(Arc<Formula<'a>>);

/// A formula, and the longest chain of formulas in it.
#[derive(Debug)]
struct Formula<'a> {
    node: Node<'a>,
    depth: usize,
}

/// The longest chain of formulas. A longer one is an error of `eval`: no kernel has so many steps, and the parts of a chain are dropped by
/// recursion.
const MAX_DEPTH: usize = 8 * MAX_FUSED_STEPS;

/// The op or the tensor of a formula.
#[derive(Debug)]
enum Node<'a> {
    Tensor(TensorView<'a>),
    Number(Number),
    Op {
        def: &'static OpDef,
        operands: Vec<Expr<'a>>,
        params: Vec<Number>,
    },
    /// Result `k` of an op.
    Result(Expr<'a>, usize),
    Convert(Expr<'a>, DType),
    Stored(Expr<'a>),
    Reduce(Reduction, Expr<'a>),
    /// A mask of dropout: its probability, and the place that it draws from.
    DropoutMask(Expr<'a>, f64, Rng<'a>),
    /// A formula that is too long to be kept.
    TooLong,
}

impl<'a> Node<'a> {
    /// The formulas that it is of.
    fn parts(&self) -> &[Expr<'a>] {
        match self {
            Node::Op { operands, .. } => operands,
            Node::Result(of, _)
            | Node::Convert(of, _)
            | Node::Stored(of)
            | Node::Reduce(_, of)
            | Node::DropoutMask(of, ..) => std::slice::from_ref(of),
            Node::Tensor(_) | Node::Number(_) | Node::TooLong => &[],
        }
    }
}

/// A tensor as a formula.
pub trait Lazy {
    /// Returns the formula that is the tensor itself.
    fn lazy(&self) -> Expr<'_>;
}

impl Lazy for Tensor {
    fn lazy(&self) -> Expr<'_> {
        Expr::new(Node::Tensor(self.view()))
    }
}

impl Lazy for TensorView<'_> {
    fn lazy(&self) -> Expr<'_> {
        Expr::new(Node::Tensor(*self))
    }
}

impl<'a> From<&Expr<'a>> for Expr<'a> {
    fn from(expr: &Expr<'a>) -> Self {
        expr.clone()
    }
}

impl<'a> From<&'a Tensor> for Expr<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        tensor.lazy()
    }
}

impl<'a> From<TensorView<'a>> for Expr<'a> {
    fn from(view: TensorView<'a>) -> Self {
        Expr::new(Node::Tensor(view))
    }
}

impl From<Number> for Expr<'_> {
    fn from(number: Number) -> Self {
        Expr::new(Node::Number(number))
    }
}

macro_rules! numbers {
    ($($T:ty)*) => { $(
        impl From<$T> for Expr<'_> {
            fn from(number: $T) -> Self {
                Number::from(number).into()
            }
        }
    )* };
}
numbers!(f64 f32 i64 i32 bool);

impl<'a> Expr<'a> {
    fn new(node: Node<'a>) -> Expr<'a> {
        let depth = 1 + node.parts().iter().map(|part| part.0.depth).max().unwrap_or(0);
        let node = if depth > MAX_DEPTH { Node::TooLong } else { node };
        Expr(Arc::new(Formula { node, depth }))
    }

    /// Returns an op of formulas, with parameters in the order of its data; those that are left out have their defaults. Of an op with
    /// several results it is the first.
    pub fn apply(def: &'static OpDef, operands: impl IntoIterator<Item = Expr<'a>>, params: &[Number]) -> Expr<'a> {
        Expr::new(Node::Op { def, operands: operands.into_iter().collect(), params: params.to_vec() })
    }

    /// Returns result `k` of an op with several results.
    #[must_use]
    pub fn result(&self, k: usize) -> Expr<'a> {
        Expr::new(Node::Result(self.clone(), k))
    }

    /// Returns the values as elements of another type; to a narrower float they are rounded.
    #[must_use]
    pub fn to_dtype(&self, dtype: DType) -> Expr<'a> {
        Expr::new(Node::Convert(self.clone(), dtype))
    }

    /// Returns the values rounded to their element type, as if they were stored and read again.
    #[must_use]
    pub fn stored(&self) -> Expr<'a> {
        Expr::new(Node::Stored(self.clone()))
    }

    /// Returns the mask of dropout with probability `p`: true where an element of the formula's shape is kept. Element `i`, counted in
    /// row-major order, takes word `i` of `rng`.
    #[must_use]
    pub fn dropout_mask(&self, p: f64, rng: impl Into<Rng<'a>>) -> Expr<'a> {
        Expr::new(Node::DropoutMask(self.clone(), p, rng.into()))
    }

    fn reduce(&self, reduction: Reduction) -> Expr<'a> {
        Expr::new(Node::Reduce(reduction, self.clone()))
    }

    /// Returns the sum over the last dimension, which stays with size 1.
    #[must_use]
    pub fn row_sum(&self) -> Expr<'a> {
        self.reduce(Reduction::Sum)
    }

    /// Returns the mean over the last dimension, which stays with size 1.
    #[must_use]
    pub fn row_mean(&self) -> Expr<'a> {
        self.reduce(Reduction::Mean)
    }

    /// Returns the largest over the last dimension, which stays with size 1; NaN if there is one.
    #[must_use]
    pub fn row_max(&self) -> Expr<'a> {
        self.reduce(Reduction::Max)
    }

    /// Returns the smallest over the last dimension, which stays with size 1; NaN if there is one.
    #[must_use]
    pub fn row_min(&self) -> Expr<'a> {
        self.reduce(Reduction::Min)
    }

    /// Computes the formula in a new contiguous tensor.
    ///
    /// # Errors
    /// Fails for a formula without a tensor, for what [`Graph`] refuses, and as [`Fused::run`].
    pub fn eval(&self) -> Result<Tensor> {
        let [y] = <[Tensor; 1]>::try_from(eval_all([self])?).map_err(|_| no_tensor())?;
        Ok(y)
    }

    /// Computes the formula into a tensor that is there.
    ///
    /// # Errors
    /// Fails as [`Expr::eval`] and [`Fused::run_into`].
    pub fn eval_into(&self, y: TensorViewMut<'_>) -> Result<()> {
        let (fused, operands) = fuse(&[self])?;
        fused.run_into(&operands, &mut [y])
    }

    /// Returns what [`Expr::eval`] would launch.
    ///
    /// # Errors
    /// Fails as [`Expr::eval`], before it computes.
    pub fn plan(&self) -> Result<FusedPlan> {
        let (fused, operands) = fuse(&[self])?;
        fused.plan(&operands)
    }

    /// Returns the PTX that [`Expr::eval`] would launch on a device of a compute capability (90 is 9.0).
    ///
    /// # Errors
    /// Fails as [`Expr::plan`], and for an op without a body.
    pub fn ptx(&self, sm: u32) -> Result<String> {
        let (fused, operands) = fuse(&[self])?;
        fused.ptx(&operands, sm)
    }
}

/// Computes several formulas by one kernel, each in a new contiguous tensor. What they have in common is computed once.
///
/// # Errors
/// Fails as [`Expr::eval`].
pub fn eval_all<'e, 'a: 'e>(formulas: impl IntoIterator<Item = &'e Expr<'a>>) -> Result<Vec<Tensor>> {
    let formulas: Vec<&Expr<'a>> = formulas.into_iter().collect();
    let (fused, operands) = fuse(&formulas)?;
    fused.run(&operands)
}

/// The kernel of formulas, and its operands.
fn fuse<'a>(formulas: &[&Expr<'a>]) -> Result<(Fused<'a>, Vec<TensorView<'a>>)> {
    let mut builder = Builder::default();
    // Operands come first.
    let mut order = Vec::new();
    let mut seen = HashMap::new();
    for formula in formulas {
        builder.visit(formula, &mut seen, &mut order)?;
    }
    for formula in &order {
        builder.add(formula)?;
    }
    let mut results = Vec::with_capacity(formulas.len());
    for formula in formulas {
        results.push(builder.value(formula)?);
    }
    Ok((builder.graph.fuse(&results)?.rngs(builder.rngs), builder.operands))
}

/// The values of formulas in a graph.
#[derive(Default)]
struct Builder<'a> {
    graph: Graph,
    operands: Vec<TensorView<'a>>,
    /// The places that masks of dropout draw from.
    rngs: Vec<Rng<'a>>,
    /// The results of each formula, by its address.
    values: HashMap<*const (), Vec<Value>>,
}

fn address(expr: &Expr<'_>) -> *const () {
    Arc::as_ptr(&expr.0).cast()
}

impl<'a> Builder<'a> {
    /// Puts a formula and what it is of in an order in which they can be computed; adds the tensors. Not by recursion: a formula
    /// may be a long chain.
    fn visit(
        &mut self,
        formula: &Expr<'a>,
        seen: &mut HashMap<*const (), ()>,
        order: &mut Vec<Expr<'a>>,
    ) -> Result<()> {
        let mut open = vec![(formula.clone(), false)];
        while let Some((expr, is_entered)) = open.pop() {
            if is_entered {
                order.push(expr);
                continue;
            }
            if seen.insert(address(&expr), ()).is_some() {
                continue;
            }
            open.push((expr.clone(), true));
            match &expr.0.node {
                Node::Tensor(view) => self.operand(&expr, view)?,
                Node::TooLong => {
                    let what = format!("a formula that is a chain of more than {MAX_DEPTH}");
                    let advice = "compute a part of it first".to_owned();
                    return Err(ErrorKind::Unsupported { what, advice }.into());
                }
                node => open.extend(node.parts().iter().rev().map(|it| (it.clone(), false))),
            }
        }
        Ok(())
    }

    /// A tensor, which is one operand wherever it stands.
    fn operand(&mut self, expr: &Expr<'a>, view: &TensorView<'a>) -> Result<()> {
        let is_same = |other: &TensorView<'_>| {
            other.device() == view.device()
                && other.address() == view.address()
                && other.dtype() == view.dtype()
                && other.shape() == view.shape()
                && other.strides() == view.strides()
        };
        let value = match self.operands.iter().position(is_same) {
            Some(at) => Value(at),
            None => {
                self.operands.push(*view);
                self.graph.operand(view.dtype(), view.shape().rank() == 0)?
            }
        };
        self.values.insert(address(expr), vec![value]);
        Ok(())
    }

    fn add(&mut self, expr: &Expr<'a>) -> Result<()> {
        let values = match &expr.0.node {
            Node::Tensor(_) | Node::TooLong => return Ok(()),
            Node::Number(number) => vec![self.graph.number(*number)],
            Node::Op { def, operands, params } => {
                let mut args = Vec::with_capacity(operands.len());
                for operand in operands {
                    args.push(self.value(operand)?);
                }
                self.graph.op(def, &args, params)?
            }
            Node::Result(of, k) => {
                let values = self.values.get(&address(of)).map_or(&[][..], Vec::as_slice);
                let Some(value) = values.get(*k) else {
                    let what = format!("result {k} of an op with {}", values.len());
                    return Err(ErrorKind::Unsupported { what, advice: "count from 0".to_owned() }.into());
                };
                vec![*value]
            }
            Node::Convert(of, dtype) => {
                let value = self.value(of)?;
                vec![self.graph.to_dtype(value, *dtype)?]
            }
            Node::Stored(of) => {
                let value = self.value(of)?;
                vec![self.graph.stored(value)?]
            }
            Node::Reduce(reduction, of) => {
                let value = self.value(of)?;
                vec![self.graph.reduce(*reduction, value)?]
            }
            Node::DropoutMask(of, p, rng) => {
                let value = self.value(of)?;
                self.rngs.push(*rng);
                vec![self.graph.dropout_mask(value, *p)?]
            }
        };
        self.values.insert(address(expr), values);
        Ok(())
    }

    fn value(&self, expr: &Expr<'a>) -> Result<Value> {
        self.values.get(&address(expr)).and_then(|values| values.first()).copied().ok_or_else(no_tensor)
    }
}

fn no_tensor() -> crate::Error {
    let what = "a formula without a tensor".to_owned();
    ErrorKind::Unsupported { what, advice: "give it at least one".to_owned() }.into()
}
