//! A call: operands viewed where they lie, results allocated beside them, and one launch.

use candle_core::op::BackpropOp;
use candle_core::{DType as CandleType, Result, Shape as CandleShape, Storage, Tensor, Var};
use pointwise::{DType, Number, Operand, Shape, Stream, TensorViewMut};

use crate::memory::{View, error};
use crate::queue::{Queue, view};

/// An operand: a tensor, or a number that stands for a tensor of any shape.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Arg {
    /// Elements, broadcast.
    Tensor(Tensor),
    /// One value for all elements.
    Number(Number),
}

impl Arg {
    /// Returns the tensor, if it is one.
    pub(crate) fn tensor(&self) -> Option<&Tensor> {
        match self {
            Arg::Tensor(tensor) => Some(tensor),
            Arg::Number(_) => None,
        }
    }
}

impl From<&Tensor> for Arg {
    fn from(tensor: &Tensor) -> Self {
        Arg::Tensor(tensor.clone())
    }
}

impl From<&Var> for Arg {
    fn from(var: &Var) -> Self {
        var.as_tensor().into()
    }
}

impl From<Tensor> for Arg {
    fn from(tensor: Tensor) -> Self {
        Arg::Tensor(tensor)
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(impl From<$number> for Arg {
            fn from(number: $number) -> Self {
                Arg::Number(number.into())
            }
        })*
    };
}
numbers!(f64 f32 i64 i32 u8 bool Number);

/// Makes the operands of a call of tensors and numbers: `args![&x, &weight, 0.5]`.
#[macro_export]
macro_rules! args {
    ($($arg:expr),* $(,)?) => {
        [$($crate::Arg::from($arg)),*]
    };
}

/// A result that is no tensor yet.
pub(crate) type Made = (Storage, Shape);

/// A call: it runs, and candle's graph keeps it for the gradients.
pub(crate) trait Call: Send + Sync + 'static {
    /// Names the op.
    fn name(&self) -> &'static str;

    /// Returns the operands.
    fn operands(&self) -> &[Arg];

    /// True if result `at` is for the gradients alone.
    fn is_kept(&self, _at: usize) -> bool {
        false
    }

    /// True if the gradients read result `at`, whatever the loss depends on.
    fn is_saved(&self, _at: usize) -> bool {
        false
    }

    /// Names the type that operand `k` is read as, where that is not its own.
    fn read_as(&self, _k: usize) -> Option<DType> {
        None
    }

    /// Returns element type and shape of each result.
    ///
    /// # Errors
    /// Fails where the operands do not go together.
    fn results(&self, operands: &[Operand<'_>]) -> pointwise::Result<Vec<(DType, Shape)>>;

    /// Runs the op.
    ///
    /// # Errors
    /// Fails as the op does.
    fn run(
        &self,
        operands: &[Operand<'_>],
        results: &mut [TensorViewMut<'_>],
        stream: Option<&Stream>,
    ) -> pointwise::Result<()>;

    /// Returns the gradient of each operand, in its shape: `None` for a number and a condition. `results` and `grads` have one
    /// entry for each result. Where the loss does not depend on a result, its entry is missing, unless the result is saved.
    ///
    /// # Errors
    /// Fails for an op without gradients, and as its gradients do.
    fn gradients(&self, results: &[Option<Tensor>], grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>>;
}

/// Runs a call, and returns its results without a graph.
pub(crate) fn call_detached(call: &impl Call) -> Result<Vec<Tensor>> {
    Ok(forward(call)?.into_iter().map(detached).collect())
}

/// Makes a tensor without a graph.
pub(crate) fn detached((storage, shape): Made) -> Tensor {
    Tensor::from_storage(storage, CandleShape::from(shape.dims()), BackpropOp::none(), false)
}

/// Locks the operands for reading, allocates the results and runs the op.
///
/// # Errors
/// Fails for numbers alone, for operands that the op does not take, and as the op does.
pub(crate) fn forward(call: &impl Call) -> Result<Vec<Made>> {
    let args = call.operands();
    let Some(first) = args.iter().find_map(Arg::tensor) else {
        return Err(error(format!("{} of numbers alone: give at least one tensor", call.name())));
    };
    let queue = Queue::of(first.device())?;
    let locked: Vec<_> = args.iter().map(|arg| arg.tensor().map(Tensor::storage_and_layout)).collect();
    let mut views: Vec<Option<View<'_>>> = Vec::with_capacity(args.len());
    for (k, locked) in locked.iter().enumerate() {
        views.push(match locked {
            Some((storage, layout)) => Some(view(storage, layout, call.read_as(k), &queue)?),
            None => None,
        });
    }
    let operands: Vec<Operand<'_>> = args.iter().zip(&views).map(|(arg, view)| operand(arg, view.as_ref())).collect();
    let wanted = call.results(&operands).map_err(error)?;
    allocated(&queue, &wanted, |results, stream| call.run(&operands, results, stream))
}

/// Returns an operand as pointwise takes it.
fn operand<'a>(arg: &Arg, view: Option<&'a View<'_>>) -> Operand<'a> {
    match (arg, view) {
        (_, Some(view)) => Operand::View(view.view()),
        (Arg::Number(number), None) => Operand::Number(*number),
        (Arg::Tensor(_), None) => Operand::Number(Number::Default),
    }
}

/// Allocates results, and runs what writes them.
pub(crate) fn allocated(
    queue: &Queue,
    wanted: &[(DType, Shape)],
    run: impl FnOnce(&mut [TensorViewMut<'_>], Option<&Stream>) -> pointwise::Result<()>,
) -> Result<Vec<Made>> {
    let mut made: Vec<Made> = Vec::with_capacity(wanted.len());
    for (dtype, shape) in wanted {
        made.push((queue.allocate(*dtype, shape.numel())?, *shape));
    }
    let mut targets: Vec<View<'_>> = Vec::with_capacity(made.len());
    for ((storage, shape), (dtype, _)) in made.iter_mut().zip(wanted) {
        targets.push(queue.target(storage, *dtype, shape)?);
    }
    let mut results = Vec::with_capacity(targets.len());
    for target in &mut targets {
        results.push(target.view_mut().map_err(error)?);
    }
    run(&mut results, queue.stream()).map_err(error)?;
    drop(results);
    drop(targets);
    for (storage, shape) in &mut made {
        // SAFETY: an op that succeeds has written every element of its results.
        unsafe { Queue::written(storage, shape.numel()) };
    }
    Ok(made)
}

/// Returns a gradient in the shape of its operand: summed over the dimensions along which that was broadcast, in f32.
///
/// `channel` is true for an operand of one element for each entry of dimension 1.
///
/// # Errors
/// Fails as candle's sums do.
pub(crate) fn summed_to(grad: Tensor, operand: &Tensor, channel: bool) -> Result<Tensor> {
    if grad.dims() == operand.dims() {
        return Ok(grad);
    }
    let own = operand.dims();
    // A sum over rows has no more dimensions than one.
    let missing = own.len().saturating_sub(grad.rank());
    let grad = grad.reshape([vec![1; missing], grad.dims().to_vec()].concat())?;
    let rank = grad.rank();
    // An operand of channels lies along dimension 1, others along the last.
    let first = if channel && operand.rank() == 1 && rank > 1 { 1 } else { rank.saturating_sub(own.len()) };
    let is_summed = |dim: &usize| match dim.checked_sub(first).and_then(|at| own.get(at)) {
        Some(&size) => size == 1 && grad.dims()[*dim] != 1,
        None => true,
    };
    let dims: Vec<usize> = (0..rank).filter(is_summed).collect();
    let dtype = grad.dtype();
    let sum = match dtype {
        // candle adds 16-bit numbers in 16 bits.
        CandleType::BF16 | CandleType::F16 => grad.to_dtype(CandleType::F32)?.sum(dims)?.to_dtype(dtype)?,
        _ => grad.sum(dims)?,
    };
    sum.reshape(own)
}
