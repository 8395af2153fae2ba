//! Gradients of fused kernels: the graph again, then its steps backwards by the gradients of their ops. Parts are added, and shared, by
//! ops of the family.

use pointwise_core::rows::Reduction;
use pointwise_core::{DType, OpInfo};

use super::formulas::{Add, Div, Eq, Ne, Where};
use crate::error::Result;
use crate::fusion::graph::{Arg, Graph, Source, Step, StepKind, Value, unsupported};
use crate::fusion::{Fused, Program};
use crate::kernel::OpDef;

impl Fused<'_> {
    /// Returns the kernel of the gradients. Its operands are a gradient of each result that is a float, then the operands; its
    /// results are a gradient of each operand that is a float. Floats of 8 bits have none. All have the shape that the operands
    /// broadcast to: the gradient of an operand that was broadcast is to be summed over the dimensions along which it was.
    ///
    /// # Errors
    /// Fails if an op has no gradient, if no operand is a float, and if the kernel has too many operands or steps.
    pub fn backward(&self) -> Result<Fused<'static>> {
        Backward::new(&self.program)?.fused()
    }
}

/// True for the floats that have gradients.
fn has_gradient(dtype: DType) -> bool {
    dtype.is_float() && dtype.size() > 1
}

/// An argument of a step whose types are known: a value, or a word of the compute type.
#[derive(Clone, Copy)]
enum Given {
    Value(Value),
    Word(u64),
}

impl Graph {
    /// Adds the number of elements of a row, as an f32: one value for each row.
    fn row_len(&mut self) -> Result<Value> {
        self.check_steps()?;
        Ok(self.step(StepKind::Len, Vec::new(), DType::F32, vec![DType::F32])[0])
    }

    /// Adds an op of values and words of a known type.
    fn op_of_words(&mut self, def: &'static OpDef, args: &[Given], params: &[u64], dtype: DType) -> Result<Vec<Value>> {
        self.check_steps()?;
        let words = self.words.len();
        self.words.extend(params);
        let mut own = Vec::with_capacity(args.len());
        for (k, arg) in args.iter().enumerate() {
            own.push(match arg {
                Given::Value(value) if def.info.is_bool(k) => Arg::Value(value.0),
                Given::Value(value) => Arg::Value(self.to_dtype(*value, dtype)?.0),
                Given::Word(word) => {
                    self.words.push(*word);
                    Arg::Word(self.words.len() - 1)
                }
            });
        }
        let types = (0..def.info.results.len()).map(|k| def.info.result_type(k, dtype)).collect();
        Ok(self.step(StepKind::Op { def, words }, own, dtype, types))
    }
}

struct Backward<'a> {
    program: &'a Program,
    graph: Graph,
    /// The values of the graph, in the new one.
    values: Vec<Value>,
    /// The gradient of each, as far as it is known.
    grads: Vec<Option<Value>>,
}

impl<'a> Backward<'a> {
    /// The graph again, behind the gradients of its results.
    fn new(program: &'a Program) -> Result<Backward<'a>> {
        let (of, mut graph) = (&program.graph, Graph::new());
        let mut given = Vec::new();
        for &result in &program.results {
            let dtype = of.values[result].dtype;
            given.push(if has_gradient(dtype) { Some(graph.operand(dtype, false)?) } else { None });
        }
        let mut values = Vec::with_capacity(of.values.len());
        let mut operands = Vec::new();
        for known in of.values.iter().take(of.operands.len()) {
            operands.push(graph.operand(known.dtype, known.is_scalar)?);
        }
        let mut operands = operands.into_iter();
        for known in &of.values {
            values.push(match known.source {
                Source::Operand => operands.next().unwrap_or(Value(0)),
                Source::Number(number) => graph.number(number),
                // Filled in below.
                Source::Step(_) => Value(0),
            });
        }
        for step in &of.steps {
            let args = step.args.iter().map(|arg| match arg {
                Arg::Value(value) => Given::Value(values[*value]),
                Arg::Word(word) => Given::Word(of.words[*word]),
            });
            let args: Vec<Given> = args.collect();
            let results = match (step.kind, &args[..]) {
                (StepKind::Op { def, words }, args) => {
                    let count = pointwise_core::row::param_words(&def.info);
                    graph.op_of_words(def, args, &of.words[words..words + count], step.dtype)?
                }
                (StepKind::Len, _) => vec![graph.row_len()?],
                (StepKind::Reduce(reduction), &[Given::Value(arg)]) => vec![graph.reduce(reduction, arg)?],
                (StepKind::Convert { to }, &[Given::Value(arg)]) if to == step.dtype => vec![graph.stored(arg)?],
                (StepKind::Convert { to }, &[Given::Value(arg)]) => vec![graph.to_dtype(arg, to)?],
                (StepKind::DropoutMask { draw, limit }, &[Given::Value(arg)]) => {
                    vec![graph.mask(arg, of.words[limit], draw)?]
                }
                // These take one value.
                _ => continue,
            };
            for (k, result) in results.into_iter().enumerate() {
                values[step.first + k] = result;
            }
        }
        let mut own = Backward { program, graph, grads: vec![None; of.values.len()], values };
        for (&result, given) in program.results.iter().zip(given) {
            let Some(mut grad) = given else { continue };
            if of.values[result].is_row {
                // It has one element for each row, which every element of the row reads.
                grad = own.graph.reduce(Reduction::Max, grad)?;
            }
            own.add(result, grad)?;
        }
        Ok(own)
    }

    /// Adds a part of a value's gradient.
    fn add(&mut self, value: usize, mut part: Value) -> Result<()> {
        if self.program.graph.values[value].is_row && !self.graph.known(part)?.is_row {
            part = self.graph.reduce(Reduction::Sum, part)?;
        }
        let dtype = match self.program.graph.values[value].dtype {
            // Ops do not compute in it.
            dtype if !has_gradient(dtype) => DType::F32,
            dtype => dtype,
        };
        part = self.graph.to_dtype(part, dtype)?;
        self.grads[value] = Some(match self.grads[value] {
            None => part,
            Some(sum) => self.one(Add::def(), &[sum, part])?,
        });
        Ok(())
    }

    /// Adds an op with one result.
    fn one(&mut self, def: &'static OpDef, args: &[Value]) -> Result<Value> {
        Ok(self.graph.op(def, args, &[])?[0])
    }

    fn fused(mut self) -> Result<Fused<'static>> {
        let of = &self.program.graph;
        for step in of.steps.iter().rev() {
            let results = step.first..step.first + step.results;
            if results.clone().any(|value| self.grads[value].is_some()) {
                self.step(step)?;
            }
        }
        let mut gradients = Vec::new();
        for (operand, dtype) in of.operands.iter().enumerate() {
            if !has_gradient(*dtype) {
                continue;
            }
            let value = self.values[operand];
            // An element for each of the operands', also where it is the same for a row.
            let always = self.one(Eq::def(), &[value, value])?;
            let zero = self.graph.number(0.0);
            let grad = self.grads[operand].unwrap_or(zero);
            gradients.push(match self.graph.known(grad)? {
                known if known.is_row => self.one(Where::def(), &[always, grad, grad])?,
                known if matches!(known.source, Source::Number(_)) => {
                    let never = self.one(Ne::def(), &[always, always])?;
                    self.graph.to_dtype(never, *dtype)?
                }
                _ => grad,
            });
        }
        if gradients.is_empty() {
            return Err(unsupported("gradients of integers".to_owned(), "floats have gradients"));
        }
        self.graph.fuse(&gradients)
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        match step.kind {
            StepKind::Op { def, words } => self.op(step, def, words),
            StepKind::Len | StepKind::DropoutMask { .. } => Ok(()),
            StepKind::Convert { .. } => {
                let (Some(Arg::Value(arg)), Some(grad)) = (step.args.first().copied(), self.grads[step.first]) else {
                    return Ok(());
                };
                if step.dtype.is_float() { self.add(arg, grad) } else { Ok(()) }
            }
            StepKind::Reduce(reduction) => {
                let (Some(Arg::Value(arg)), Some(grad)) = (step.args.first().copied(), self.grads[step.first]) else {
                    return Ok(());
                };
                let part = match reduction {
                    Reduction::Sum => grad,
                    Reduction::Mean => {
                        let len = self.graph.row_len()?;
                        self.one(Div::def(), &[grad, len])?
                    }
                    Reduction::Max | Reduction::Min => {
                        // The elements that are the answer share it.
                        let is = self.one(Eq::def(), &[self.values[arg], self.values[step.first]])?;
                        let ones = self.graph.to_dtype(is, DType::F32)?;
                        let count = self.graph.reduce(Reduction::Sum, ones)?;
                        let share = self.one(Div::def(), &[grad, count])?;
                        let zero = self.graph.number(0.0);
                        self.one(Where::def(), &[is, share, zero])?
                    }
                };
                self.add(arg, part)
            }
        }
    }

    fn op(&mut self, step: &Step, def: &'static OpDef, words: usize) -> Result<()> {
        let info = &def.info;
        let is_wanted =
            |arg: &Arg| matches!(arg, Arg::Value(value) if self.program.graph.values[*value].dtype.is_float());
        if !step.args.iter().any(is_wanted) {
            return Ok(());
        }
        let Some(backward) = def.backward else {
            let what = format!("the gradient of {} in a fused kernel", info.name);
            return Err(unsupported(what, "it has none: compute it apart"));
        };
        let mut given = Vec::new();
        // Gradients of the results that are floats come first, then operands and results by their names.
        let float_results: Vec<usize> = (0..step.results).filter(|k| info.result_has_gradient(*k)).collect();
        for (at, name) in backward.info.operands.iter().enumerate() {
            given.push(match float_results.get(at) {
                Some(k) => self.grads[step.first + k].map_or(Given::Word(0), Given::Value),
                None => match info.operands.iter().position(|own| own == name) {
                    Some(k) => match step.args[k] {
                        Arg::Value(value) => Given::Value(self.values[value]),
                        Arg::Word(word) => Given::Word(self.program.graph.words[word]),
                    },
                    None => {
                        let k = info.results.iter().position(|own| own == name).unwrap_or(0);
                        Given::Value(self.values[step.first + k])
                    }
                },
            });
        }
        let params = self.params(info, &backward.info, words);
        let results = self.graph.op_of_words(backward, &given, &params, step.dtype)?;
        let of_type = (0..info.operands.len()).filter(|k| info.operand_has_gradient(*k));
        for (k, grad) in of_type.zip(results) {
            if let Arg::Value(value) = step.args[k] {
                self.add(value, grad)?;
            }
        }
        Ok(())
    }

    /// The words of the parameters that the gradient takes, too.
    fn params(&self, info: &OpInfo, backward: &OpInfo, words: usize) -> Vec<u64> {
        let mut params = Vec::new();
        for param in backward.params {
            let mut at = words;
            for own in info.params {
                let count = own.kind.words();
                if own.name == param.name {
                    params.extend(&self.program.graph.words[at..at + count]);
                }
                at += count;
            }
        }
        params
    }
}
