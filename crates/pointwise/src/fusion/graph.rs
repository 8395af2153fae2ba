//! Graphs of ops: values and steps, with PyTorch's rules of types.

use pointwise_core::formula::MAX_TENSORS;
use pointwise_core::philox::last_kept;
use pointwise_core::rows::Reduction;
use pointwise_core::{DType, OpInfo, ParamInfo, row};

use super::Fused;
use crate::Number;
use crate::element::{is_fp8, is_narrow};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::params::{self, Params};
use crate::kernel::{OpDef, computed_type, met, promoted, scalar};

/// The most tensors that a fused kernel reads.
pub const MAX_FUSED_OPERANDS: usize = 12;
/// The most tensors that a fused kernel writes.
pub const MAX_FUSED_RESULTS: usize = 8;
/// The most steps of a fused kernel.
pub const MAX_FUSED_STEPS: usize = 96;
/// The most masks of dropout in a fused kernel.
pub const MAX_FUSED_DRAWS: usize = 4;

/// The most numbers and parameters of a fused kernel: a launch passes 4 KiB.
const MAX_WORDS: usize = 384;

/// A value of a [`Graph`]: an operand, a number, or the result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value(pub(crate) usize);

/// Ops that are to become one kernel. Steps are added in the order of their computation.
///
/// Floats are computed in f32, and rounded once, where they are stored: [`Graph::stored`] rounds in between. Operands of different
/// types are converted as `torch.result_type` says.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub(crate) operands: Vec<DType>,
    pub(crate) values: Vec<Known>,
    pub(crate) steps: Vec<Step>,
    /// Numbers and parameters as words, which a kernel is given at its launch.
    pub(crate) words: Vec<u64>,
    /// The places that masks of dropout draw from.
    pub(crate) draws: usize,
}

/// A value, as far as it is known without elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) dtype: DType,
    pub(crate) source: Source,
    /// Its tensors have no dimensions, so that they count less for the type of a step.
    pub(crate) is_scalar: bool,
    /// The reductions that it needs one after another.
    pub(crate) depth: usize,
    /// It is one value for each row.
    pub(crate) is_row: bool,
}

/// The source of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    Operand,
    Number(Number),
    Step(usize),
}

/// A step.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) kind: StepKind,
    pub(crate) args: Vec<Arg>,
    /// The element type that it computes in.
    pub(crate) dtype: DType,
    /// Its results: so many values from this one on.
    pub(crate) first: usize,
    pub(crate) results: usize,
}

/// The kind of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StepKind {
    /// An op, and where its parameters are among the graph's words.
    Op { def: &'static OpDef, words: usize },
    /// A conversion from the step's type; to a narrower float it rounds.
    Convert { to: DType },
    /// A reduction over the row.
    Reduce(Reduction),
    /// The elements of a row, as a float. Gradients alone have it, behind a reduction.
    #[allow(dead_code)] // without the family there are none
    Len,
    /// True where dropout keeps an element: by the words of place `draw`. The graph's word `limit` says how many words keep.
    DropoutMask { draw: usize, limit: usize },
}

/// An argument of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arg {
    Value(usize),
    /// One of the graph's words.
    Word(usize),
}

impl Graph {
    /// Returns a graph without values.
    #[must_use]
    pub fn new() -> Graph {
        Graph::default()
    }

    /// Adds a tensor of elements of a type. `is_scalar` says that it has no dimensions.
    ///
    /// # Errors
    /// Fails if there are [`MAX_FUSED_OPERANDS`] already, and behind a step.
    pub fn operand(&mut self, dtype: DType, is_scalar: bool) -> Result<Value> {
        if self.operands.len() == MAX_FUSED_OPERANDS {
            let what = format!("a fused kernel of more than {MAX_FUSED_OPERANDS} operands");
            return Err(unsupported(what, "compute a part of it first"));
        }
        if !self.steps.is_empty() {
            return Err(unsupported("an operand behind a step".to_owned(), "add all operands first"));
        }
        self.operands.push(dtype);
        Ok(self.value(Known { dtype, source: Source::Operand, is_scalar, depth: 0, is_row: false }))
    }

    /// Adds a number. It takes the type of the values that it meets, by PyTorch's rules.
    pub fn number(&mut self, number: impl Into<Number>) -> Value {
        let number = number.into();
        let dtype = match number {
            Number::Int(_) => DType::I64,
            Number::Bool(_) => DType::Bool,
            _ => DType::F32,
        };
        self.value(Known { dtype, source: Source::Number(number), is_scalar: true, depth: 0, is_row: false })
    }

    /// Adds an op of values, with parameters in the order of [`OpInfo::params`]; those that are left out have their defaults.
    /// Returns its results.
    ///
    /// # Errors
    /// Fails for an op that reduces over rows, draws random words or has tensors of fixed types other than bool, another number of arguments than it has, numbers alone, 8-bit
    /// floats, types that have no common one or that the op does not take, and a parameter that it does not take.
    pub fn op(&mut self, def: &'static OpDef, args: &[Value], params: &[Number]) -> Result<Vec<Value>> {
        let info = &def.info;
        let why = match () {
            () if info.is_random() => Some("it draws random words"),
            () if info.indices > 0 => Some("it takes the indices of its elements"),
            () if info.is_of_rows() => Some("it reduces over rows"),
            () if info.has_stored() => Some("it has tensors of several types"),
            () => None,
        };
        if let Some(why) = why {
            return Err(unsupported(format!("{} in a fused kernel ({why})", info.name), "run it by itself"));
        }
        if args.len() != info.operands.len() {
            let what = format!("{} of {} operands instead of {}", info.name, args.len(), info.operands.len());
            return Err(unsupported(what, "give as many as it has"));
        }
        self.check_steps()?;
        let dtype = self.common_type(info, args)?;
        if is_fp8(dtype) {
            let what = format!("{} of {dtype} in a fused kernel", info.name);
            return Err(unsupported(what, "convert the values to f32, f16 or bf16 first"));
        }
        let words = self.words.len();
        let of_params = params::words(info, &Params::new(params), dtype)?;
        self.words.extend(&of_params[..row::param_words(info)]);
        let mut own = Vec::with_capacity(args.len());
        for (k, arg) in args.iter().enumerate() {
            let known = self.known(*arg)?;
            own.push(match known.source {
                Source::Number(number) => {
                    self.words.push(word_of(info, k, number, dtype)?);
                    Arg::Word(self.words.len() - 1)
                }
                _ if info.is_bool(k) && known.dtype != DType::Bool => {
                    let what = format!("{} with {} of type {}", info.name, info.operands[k], known.dtype);
                    return Err(unsupported(what, "give a bool"));
                }
                _ if info.is_bool(k) => Arg::Value(arg.0),
                _ => Arg::Value(self.to_dtype(*arg, dtype)?.0),
            });
        }
        let types = (0..info.results.len()).map(|k| info.result_type(k, dtype)).collect();
        Ok(self.step(StepKind::Op { def, words }, own, dtype, types))
    }

    /// Converts a value. To a narrower float it rounds, as `Tensor.to` does. To an integer it drops the fraction; a number beyond the
    /// range becomes the nearest end, NaN becomes 0, and u8 has the low bits of the whole number. From a wider integer it keeps the low
    /// bits.
    ///
    /// # Errors
    /// Fails for a number, and for a value of another graph.
    pub fn to_dtype(&mut self, value: Value, dtype: DType) -> Result<Value> {
        let known = self.known(value)?;
        if let Source::Number(_) = known.source {
            return Err(unsupported("a conversion of a number".to_owned(), "give it to an op"));
        }
        if known.dtype == dtype {
            return Ok(value);
        }
        self.convert(value, dtype)
    }

    /// Rounds a value to its element type, as if it was stored and read again.
    ///
    /// # Errors
    /// Fails for a number, and for a value of another graph.
    pub fn stored(&mut self, value: Value) -> Result<Value> {
        let known = self.known(value)?;
        match known.source {
            Source::Number(_) => Err(unsupported("a number to be stored".to_owned(), "give it to an op")),
            _ if is_narrow(known.dtype) => self.convert(value, known.dtype),
            _ => Ok(value),
        }
    }

    /// Reduces a value over the last dimension of the operands' common shape, which then has size 1.
    ///
    /// # Errors
    /// Fails for a value that is no float, is a number, or is one for each row already.
    pub fn reduce(&mut self, reduction: Reduction, value: Value) -> Result<Value> {
        let known = self.known(value)?;
        if matches!(known.source, Source::Number(_)) || known.is_row || !known.dtype.is_float() {
            let what =
                format!("a reduction of {}", if known.is_row { "what is one for each row" } else { "no floats" });
            return Err(unsupported(what, "reduce a tensor of floats, or what is computed from one"));
        }
        self.check_steps()?;
        let [result] =
            self.step(StepKind::Reduce(reduction), vec![Arg::Value(value.0)], known.dtype, vec![known.dtype])[..]
        else {
            return Ok(value);
        };
        let at = &mut self.values[result.0];
        (at.depth, at.is_row) = (known.depth + 1, true);
        Ok(result)
    }

    /// Adds a mask of dropout with probability `p`, of the shape of a value: a bool, true where an element is kept, as
    /// [`ops::dropout_with_mask`](crate::ops::dropout_with_mask) has it. Each mask draws from a place of its own, which
    /// [`Fused::rngs`] gives to a call.
    ///
    /// # Errors
    /// Fails for a `p` outside 0 to 1, a number, a value that is one for each row, and more than [`MAX_FUSED_DRAWS`] masks. A call
    /// fails if the value's shape is smaller than the one that the operands broadcast to.
    pub fn dropout_mask(&mut self, value: Value, p: f64) -> Result<Value> {
        let known = self.known(value)?;
        if matches!(known.source, Source::Number(_)) || known.is_row {
            let what = format!("dropout of {}", if known.is_row { "what is one for each row" } else { "a number" });
            return Err(unsupported(what, "drop elements of a tensor, or of what is computed from one"));
        }
        if !(0.0..=1.0).contains(&p) {
            let why = "a probability is from 0 to 1".to_owned();
            return Err(ErrorKind::Parameter { name: "p", value: p.to_string(), why }.into());
        }
        if self.draws == MAX_FUSED_DRAWS {
            let what = format!("a fused kernel of more than {MAX_FUSED_DRAWS} masks of dropout");
            return Err(unsupported(what, "compute a part of it first"));
        }
        self.draws += 1;
        self.mask(value, last_kept(p as f32).map_or(0, |last| u64::from(last) + 1), self.draws - 1)
    }

    /// Adds a mask from a place, which so many random words keep.
    pub(crate) fn mask(&mut self, value: Value, words: u64, draw: usize) -> Result<Value> {
        self.check_steps()?;
        self.words.push(words);
        self.draws = self.draws.max(draw + 1);
        let kind = StepKind::DropoutMask { draw, limit: self.words.len() - 1 };
        Ok(self.step(kind, vec![Arg::Value(value.0)], DType::Bool, vec![DType::Bool])[0])
    }

    /// Returns the element type of a value.
    ///
    /// # Errors
    /// Fails for a value of another graph.
    pub fn dtype(&self, value: Value) -> Result<DType> {
        Ok(self.known(value)?.dtype)
    }

    /// Makes one kernel of the graph, which computes these values.
    ///
    /// # Errors
    /// Fails without results or with more than [`MAX_FUSED_RESULTS`], and for a result that is a number.
    pub fn fuse(mut self, results: &[Value]) -> Result<Fused<'static>> {
        if results.is_empty() || results.len() > MAX_FUSED_RESULTS {
            let what = format!("a fused kernel of {} results", results.len());
            return Err(unsupported(what, "ask for 1 to 8"));
        }
        if self.operands.len() + results.len() + usize::from(self.draws > 0) > MAX_TENSORS {
            let what = format!("dropout in a fused kernel of {MAX_TENSORS} tensors");
            return Err(unsupported(what, "compute a part of it first"));
        }
        let mut own = Vec::with_capacity(results.len());
        for result in results {
            let known = self.known(*result)?;
            own.push(match known.source {
                Source::Number(_) => {
                    return Err(unsupported("a result that is a number".to_owned(), "make a tensor by Tensor::full"));
                }
                // A copy: another result may be written to the operand's memory.
                Source::Operand => self.convert(*result, known.dtype)?.0,
                Source::Step(_) => result.0,
            });
        }
        Ok(Fused::new(self, own))
    }

    pub(crate) fn known(&self, value: Value) -> Result<Known> {
        self.values
            .get(value.0)
            .copied()
            .ok_or_else(|| unsupported("a value of another graph".to_owned(), "give each graph its own operands"))
    }

    fn value(&mut self, known: Known) -> Value {
        self.values.push(known);
        Value(self.values.len() - 1)
    }

    pub(crate) fn check_steps(&self) -> Result<()> {
        let what = match (self.steps.len(), self.words.len()) {
            (MAX_FUSED_STEPS.., _) => format!("a fused kernel of more than {MAX_FUSED_STEPS} steps"),
            (_, MAX_WORDS..) => format!("a fused kernel of more than {MAX_WORDS} numbers and parameters"),
            _ => return Ok(()),
        };
        Err(unsupported(what, "compute a part of it first"))
    }

    fn convert(&mut self, value: Value, to: DType) -> Result<Value> {
        self.check_steps()?;
        let from = self.known(value)?.dtype;
        Ok(self.step(StepKind::Convert { to }, vec![Arg::Value(value.0)], from, vec![to])[0])
    }

    pub(crate) fn step(&mut self, kind: StepKind, args: Vec<Arg>, dtype: DType, types: Vec<DType>) -> Vec<Value> {
        let (first, results, at) = (self.values.len(), types.len(), self.steps.len());
        let values = || {
            args.iter().filter_map(|arg| match arg {
                Arg::Value(value) => Some(self.values[*value]),
                Arg::Word(_) => None,
            })
        };
        // The length of a row is of no values; a step of numbers alone is computed for each element.
        let has_values = values().next().is_some();
        let known = Known {
            dtype,
            source: Source::Step(at),
            is_scalar: has_values && values().all(|it| it.is_scalar),
            depth: values().map(|it| it.depth).max().unwrap_or(0),
            is_row: matches!(kind, StepKind::Len) || has_values && values().all(|it| it.is_row),
        };
        self.steps.push(Step { kind, args, dtype, first, results });
        types.into_iter().map(|dtype| self.value(Known { dtype, ..known })).collect()
    }

    /// The type in which an op computes: as `torch.result_type`.
    fn common_type(&self, info: &OpInfo, args: &[Value]) -> Result<DType> {
        let (mut tensors, mut scalars, mut numbers) = (None, None, None);
        for (_, arg) in args.iter().enumerate().filter(|(k, _)| !info.is_bool(*k)) {
            let known = self.known(*arg)?;
            match known.source {
                Source::Number(Number::Default) => {}
                Source::Number(_) => numbers = promoted(info.name, numbers, Some(known.dtype))?,
                _ if known.is_scalar => scalars = promoted(info.name, scalars, Some(known.dtype))?,
                _ => tensors = promoted(info.name, tensors, Some(known.dtype))?,
            }
        }
        if tensors.or(scalars).is_none() {
            let what = format!("{} of numbers alone in a fused kernel", info.name);
            return Err(unsupported(what, "give at least one value that is no number"));
        }
        let found = met(info.name, tensors, scalars, numbers)?.unwrap_or(DType::F32);
        computed_type(info, found)
    }
}

/// Operand `k` of an op, given as a number, as a word of the compute type.
fn word_of(info: &OpInfo, k: usize, number: Number, dtype: DType) -> Result<u64> {
    let name = info.operands[k];
    let scalar = ParamInfo::number(name, 0.0);
    if number == Number::Default {
        let why = "an operand has no default".to_owned();
        return Err(ErrorKind::Parameter { name, value: number.to_string(), why }.into());
    }
    if info.is_bool(k) {
        return number.word(&scalar, DType::Bool);
    }
    let is_rounded = info.properties.moves || scalar::is_element(info, k);
    if is_rounded { number.rounded_word(&scalar, dtype) } else { number.word(&scalar, dtype) }
}

pub(crate) fn unsupported(what: String, advice: &str) -> Error {
    ErrorKind::Unsupported { what, advice: advice.to_owned() }.into()
}
