//! Any op of a registry as a function of candle's tensors.

use std::collections::HashMap;
use std::sync::LazyLock;

use candle_core::{DType as CandleType, Result, Tensor};
use pointwise::info::{self, OpInfo};
use pointwise::kernel::{Kernel, OpDef};
use pointwise::{DType, Number, Operand, Philox, Shape, Stream, TensorView, TensorViewMut};

use crate::call::{Arg, Call, call_detached, summed_to};
use crate::graph::call;
use crate::inplace::{self, InPlace};
use crate::memory::{self, error};

/// An op with its parameters, to run on candle's tensors: one of pointwise's family or a package's own.
///
/// ```
/// use candle_core::{Device, Tensor};
/// use pointwise_candle::{args, op};
///
/// # fn main() -> candle_core::Result<()> {
/// let x = Tensor::new(&[[3.0_f32, 4.0]], &Device::Cpu)?;
/// let weight = Tensor::new(&[1.0_f32, 2.0], &Device::Cpu)?;
/// let y = op("rms_norm")?.set("eps", 1e-5)?.run_one(&args![&x, &weight])?;
/// assert_eq!(y.dims(), [1, 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Op {
    def: &'static OpDef,
    params: Vec<Number>,
    rng: Philox,
    dtype: Option<DType>,
}

/// Returns the ops of the family that [`op`] finds: those that take operands and draw nothing, without gradients.
pub fn ops() -> impl Iterator<Item = &'static OpDef> {
    let is_found = |info: &OpInfo| !info.is_gradient() && !info.is_random() && !info.is_of_indices();
    info::every().filter(move |def| is_found(&def.info))
}

/// Finds an op of the family by PyTorch's name: `silu`, `add`, `rms_norm`.
///
/// # Errors
/// Fails for a name that no op has.
pub fn op(name: &str) -> Result<Op> {
    static OPS: LazyLock<HashMap<&str, &OpDef>> = LazyLock::new(|| ops().map(|def| (def.info.name, def)).collect());
    OPS.get(name)
        .map(|def| Op::from(*def))
        .ok_or_else(|| error(format!("no op is named {name}: see docs/ops.md or `pointwise list`")))
}

/// A name of an op of the family, the data of any op, or an [`Op`].
pub trait IntoOp {
    /// Makes an op with the parameters' defaults.
    ///
    /// # Errors
    /// Fails for a name that no op has.
    fn into_op(self) -> Result<Op>;
}

impl IntoOp for &str {
    fn into_op(self) -> Result<Op> {
        op(self)
    }
}

impl IntoOp for &'static OpDef {
    fn into_op(self) -> Result<Op> {
        Ok(self.into())
    }
}

impl IntoOp for Op {
    fn into_op(self) -> Result<Op> {
        Ok(self)
    }
}

impl IntoOp for &Op {
    fn into_op(self) -> Result<Op> {
        Ok(self.clone())
    }
}

/// An op of your own, by the data that `#[op]` makes: `Snake::<f64>::def()`.
impl From<&'static OpDef> for Op {
    fn from(def: &'static OpDef) -> Self {
        Op { def, params: vec![Number::Default; def.info.params.len()], rng: Philox::default(), dtype: None }
    }
}

impl Op {
    /// Returns the op's data: names of operands, results and parameters, element types, documentation.
    pub fn info(&self) -> &'static OpInfo {
        &self.def.info
    }

    /// Sets a parameter by its name, which is PyTorch's.
    ///
    /// # Errors
    /// Fails for a name that no parameter has. Numbers are checked in the call.
    pub fn set(mut self, name: &str, value: impl Into<Number>) -> Result<Op> {
        let params = self.def.info.params;
        let Some(k) = params.iter().position(|param| param.name == name) else {
            let names: Vec<_> = params.iter().map(|param| param.name).collect();
            let (op, names) = (self.def.info.name, names.join(", "));
            return Err(error(format!("{op} has no parameter {name}: it has ({names})")));
        };
        self.params[k] = value.into();
        Ok(self)
    }

    /// Sets the place in a random sequence that a random op draws from. Other ops ignore it.
    #[must_use]
    pub fn rng(mut self, rng: Philox) -> Op {
        self.rng = rng;
        self
    }

    /// Sets the element type of the results, for an op whose operands all have types of their own, such as whole numbers and an
    /// f32 scale: without it, the first of the op's types. Other ops ignore it.
    ///
    /// # Errors
    /// Fails for a type that pointwise does not have.
    pub fn of_type(mut self, dtype: CandleType) -> Result<Op> {
        self.dtype = Some(memory::dtype(dtype)?);
        Ok(self)
    }

    /// Runs the op, with gradients for the operands that candle tracks. A gated op takes `x` whose last dimension holds
    /// gate and value, or two tensors.
    ///
    /// # Errors
    /// Fails for operands of another number, of types without a common one, of shapes that do not broadcast or on several
    /// devices, for an element type or parameter that the op does not take, and on Metal. A walk back fails at an op
    /// without gradients.
    pub fn run(&self, operands: &[Arg]) -> Result<Vec<Tensor>> {
        call(OpCall { op: self.clone(), operands: self.widened(operands, 0)? })
    }

    /// Runs an op of one result, beside those that it keeps for its gradient: see [`Op::run`].
    ///
    /// # Errors
    /// Fails as [`Op::run`] does, and for an op of several results.
    pub fn run_one(&self, operands: &[Arg]) -> Result<Tensor> {
        let info = &self.def.info;
        let results = (0..info.results.len()).filter(|&k| !info.is_kept_result(k)).count();
        match self.run(operands)?.into_iter().enumerate().find(|(k, _)| !info.is_kept_result(*k)) {
            Some((_, result)) if results == 1 => Ok(result),
            _ => Err(error(format!("{} has {results} results: call run", info.name))),
        }
    }

    /// Runs the op and writes the result over `x`, its first operand. candle tracks no writes: `x` is to be no part of a graph
    /// whose gradients are still wanted.
    ///
    /// # Errors
    /// Fails as [`Op::run`] does, for more than three tensors, for an op of several results, for a result of another type
    /// than `x`, and where an operand shares a part of the memory of `x`.
    pub fn run_inplace(&self, x: &Tensor, others: &[Arg]) -> Result<()> {
        inplace::run(self, x, &self.widened(others, 1)?)
    }

    /// Returns the operands from `first` on, with whole numbers as i64 where the op has that: candle's labels are u32.
    fn widened(&self, operands: &[Arg], first: usize) -> Result<Vec<Arg>> {
        let each =
            operands.iter().enumerate().map(|(k, operand)| match (self.def.info.fixed_operand(first + k), operand) {
                (Some(DType::I64), Arg::Tensor(x)) if x.dtype().is_int() => {
                    Ok(Arg::Tensor(x.to_dtype(CandleType::I64)?))
                }
                _ => Ok(operand.clone()),
            });
        each.collect()
    }

    /// Returns the kernel on a stream.
    fn kernel(&self, stream: Option<&Stream>) -> Kernel<'static> {
        let kernel = self.def.kernel(&self.params).rng(self.rng);
        let kernel = match self.dtype {
            Some(dtype) => kernel.of_type(dtype),
            None => kernel,
        };
        on(kernel, stream, Kernel::on)
    }
}

impl InPlace for Op {
    fn name(&self) -> &'static str {
        self.def.info.name
    }

    fn read_as(&self, k: usize) -> Option<DType> {
        // candle has bools as u8.
        self.def.info.is_bool(k).then_some(DType::Bool)
    }

    fn write(&self, x: TensorViewMut<'_>, others: &[Operand<'_>], stream: Option<&Stream>) -> pointwise::Result<()> {
        self.kernel(stream).run_inplace(x, others)
    }
}

/// Sets a kernel's stream, if there is one.
pub(crate) fn on<K>(kernel: K, stream: Option<&Stream>, on: impl FnOnce(K, &Stream) -> K) -> K {
    match stream {
        Some(stream) => on(kernel, stream),
        None => kernel,
    }
}

/// Returns the tensor that an operand is.
pub(crate) fn tensor<'a>(operand: &Operand<'a>, what: &'static str) -> pointwise::Result<TensorView<'a>> {
    match operand {
        Operand::View(view) => Ok(*view),
        _ => Err(pointwise::ErrorKind::Unsupported {
            what: format!("a number as {what}"),
            advice: "give a tensor".to_owned(),
        }
        .into()),
    }
}

/// A call of an op, or of another op's gradients.
struct OpCall {
    op: Op,
    operands: Vec<Arg>,
}

impl Call for OpCall {
    fn name(&self) -> &'static str {
        self.op.name()
    }

    fn operands(&self) -> &[Arg] {
        &self.operands
    }

    fn is_kept(&self, at: usize) -> bool {
        self.op.def.info.is_kept_result(at)
    }

    fn is_saved(&self, at: usize) -> bool {
        let name = self.op.def.info.results.get(at);
        name.zip(self.op.def.backward).is_some_and(|(name, def)| def.info.operands.contains(name))
    }

    fn read_as(&self, k: usize) -> Option<DType> {
        self.op.read_as(k)
    }

    fn results(&self, operands: &[Operand<'_>]) -> pointwise::Result<Vec<(DType, Shape)>> {
        self.op.kernel(None).results(operands)
    }

    fn run(
        &self,
        operands: &[Operand<'_>],
        results: &mut [TensorViewMut<'_>],
        stream: Option<&Stream>,
    ) -> pointwise::Result<()> {
        self.op.kernel(stream).run_into(operands, results)
    }

    fn gradients(&self, results: &[Option<Tensor>], grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let info = &self.op.def.info;
        let gradients = call_detached(&self.backward(results, grads)?)?;
        let channel = |k: usize| info.is_channel(k);
        let each = self.operands.iter().enumerate().map(|(k, operand)| {
            match (info.gradient_of_operand(k).and_then(|at| gradients.get(at)), operand.tensor()) {
                (Some(grad), Some(x)) if x.track_op() => {
                    Ok(Some(summed_to(grad.clone(), x, channel(k))?.to_dtype(x.dtype())?))
                }
                _ => Ok(None),
            }
        });
        each.collect()
    }
}

impl OpCall {
    /// Returns the call of the gradients.
    ///
    /// It fills in the operands by their names: gradients of results, operands and results of the op.
    fn backward(&self, results: &[Option<Tensor>], grads: &[Option<Tensor>]) -> Result<OpCall> {
        let info = &self.op.def.info;
        let Some(def) = self.op.def.backward else {
            return Err(error(format!("{} has no gradient: detach its operands (detach)", info.name)));
        };
        let mut op = Op { rng: self.op.rng, dtype: self.op.dtype, ..Op::from(def) };
        for (slot, param) in op.params.iter_mut().zip(def.info.params) {
            if let Some(k) = info.params.iter().position(|own| own.name == param.name) {
                *slot = self.op.params[k];
            }
        }
        // Gate and value of a gated op may be the halves of one tensor.
        let halves = self.operands.len() < info.operands.len();
        let names = if halves { def.info.arguments() } else { def.info.operands };
        let mut operands = Vec::with_capacity(names.len());
        for &name in names {
            operands.push(self.operand_of_gradient(name, halves, results, grads).ok_or_else(|| {
                error(format!("{} reads {name}, which {} does not have; please report this", def.info.name, info.name))
            })?);
        }
        // Operands met in the type of a result.
        let mut of_results = grads.iter().enumerate().filter(|(k, _)| info.fixed_result(*k).is_none());
        if let Some(grad) = of_results.find_map(|(_, grad)| grad.as_ref()) {
            for (k, operand) in operands.iter_mut().enumerate() {
                if let (Arg::Tensor(x), None) = (&*operand, def.info.fixed_operand(k)) {
                    *operand = Arg::Tensor(x.to_dtype(grad.dtype())?);
                }
            }
        }
        Ok(OpCall { op, operands })
    }

    /// Finds an operand of the gradients by its name.
    fn operand_of_gradient(
        &self,
        name: &str,
        halves: bool,
        results: &[Option<Tensor>],
        grads: &[Option<Tensor>],
    ) -> Option<Arg> {
        let info = &self.op.def.info;
        let result = |name: &str| info.results.iter().position(|result| *result == name);
        let at = match name.strip_prefix("grad") {
            Some("") => (0..info.results.len()).find(|&k| info.result_has_gradient(k)),
            Some(rest) => rest.strip_prefix('_').and_then(result),
            None => None,
        };
        if let Some(at) = at {
            // A result that the loss does not depend on.
            let grad = grads.get(at).cloned().flatten();
            return Some(grad.map_or(Arg::Number(Number::Float(0.0)), Arg::Tensor));
        }
        let names = if halves { info.arguments() } else { info.operands };
        match names.iter().position(|operand| *operand == name) {
            Some(k) => self.operands.get(k).cloned(),
            None => results.get(result(name)?)?.clone().map(Arg::Tensor),
        }
    }
}
