//! What the op table says of an op, as data: read by the registry, the command, the docs, the tests and the benches.

use crate::dtype::DType;

/// The shape of an op: which template runs it, and how its operands go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `x -> y`.
    Unary,
    /// `(a, b) -> y`, broadcast.
    Binary,
    /// `(x, weight) -> y`: the weight is one of [`OpInfo::channel_operands`].
    Channel,
    /// `(gate, value) -> y`, the halves of one tensor's last dimension.
    Gated,
    /// `(a, b, c) -> y`, broadcast.
    Ternary,
    /// `(condition, a, b) -> a or b`, broadcast, for elements of any type.
    Select,
    /// `(x, random bits) -> y`, and a mask.
    Random,
    /// `index -> y`: no operand.
    Generator,
    /// `(grad, x) -> y`: the gradient of a unary op, broadcast.
    Backward,
    /// `(grad, a, ..) -> (grad_a, ..)`: the gradients of an op of several operands, broadcast.
    Gradients,
    /// `(condition, grad) -> (grad_a, grad_b)`, broadcast.
    SelectGradients,
    /// `(grad, x, weight) -> (grad_x, grad_weight)`: the weight as in [`Kind::Channel`].
    ChannelGradients,
    /// `(grad, gate, value) -> (grad_gate, grad_value)`: the last four are the halves of the last dimension of two
    /// tensors.
    GatedGradients,
    /// Any number of operands to any number of results, broadcast: an op that `#[op]` made, unless it is gated.
    Formula,
    /// `x -> y`: elements of one type as another.
    Convert,
}

impl Kind {
    /// See [`OpInfo::channel_operands`]: the weight is the last operand.
    #[doc(hidden)]
    #[must_use]
    pub const fn channel_operands(self) -> u16 {
        match self {
            Kind::Channel => 0b10,
            Kind::ChannelGradients => 0b100,
            _ => 0,
        }
    }

    /// See [`OpInfo::bool_operands`]: the condition of a selection is a bool.
    #[doc(hidden)]
    #[must_use]
    pub const fn bool_operands(self) -> u16 {
        matches!(self, Kind::Select | Kind::SelectGradients) as u16
    }

    /// The name in symbols and listings.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Unary => "unary",
            Kind::Binary => "binary",
            Kind::Channel => "channel",
            Kind::Gated => "gated",
            Kind::Ternary => "ternary",
            Kind::Select => "select",
            Kind::Random => "random",
            Kind::Generator => "generator",
            Kind::Backward => "backward",
            Kind::Gradients => "gradients",
            Kind::SelectGradients => "select_gradients",
            Kind::ChannelGradients => "channel_gradients",
            Kind::GatedGradients => "gated_gradients",
            Kind::Formula => "formula",
            Kind::Convert => "convert",
        }
    }
}

/// The element type of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultType {
    /// That of the input.
    Same,
    /// bool: a predicate or a comparison.
    Bool,
}

/// A row's element types, of which there must be one at least, and none twice: each is a kernel of its own.
#[doc(hidden)]
pub const fn checked_types(types: &'static [DType]) -> &'static [DType] {
    assert!(!types.is_empty(), "a row names no element type");
    let mut i = 1;
    while i < types.len() {
        let mut j = 0;
        while j < i {
            assert!(types[i] as u8 != types[j] as u8, "a row names an element type twice");
            j += 1;
        }
        i += 1;
    }
    types
}

impl ResultType {
    /// [`OpInfo::bool_results`] of one result.
    #[doc(hidden)]
    pub const fn bits(self) -> u16 {
        matches!(self, ResultType::Bool) as u16
    }

    /// The element type of the result for inputs of type `input`.
    pub const fn of(self, input: DType) -> DType {
        match self {
            ResultType::Same => input,
            ResultType::Bool => DType::Bool,
        }
    }
}

/// The largest error a result may have, in units in the last place of the result's type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Accuracy {
    /// The correctly rounded value in f32, which is rounded once more to 16 and 8 bits; the same bits on every device.
    Exact,
    /// f32: at most this many ULP from the exact value. 16-bit types: at most 1 ULP, and correctly rounded for at least
    /// 99.5 % of all inputs. fp8: correctly rounded.
    Ulp(f32),
    /// As [`Accuracy::Ulp`], of a gradient that is a sum of two terms: where they cancel, [`Accuracy::slack`] of the
    /// terms' size more.
    Cancels(f32),
}

impl Accuracy {
    /// The bound for results of type `dtype`, in ULP; 0.5 is correctly rounded.
    pub const fn bound(self, dtype: DType) -> f32 {
        match (self, dtype) {
            (Accuracy::Ulp(ulp) | Accuracy::Cancels(ulp), DType::F32) => ulp,
            (Accuracy::Ulp(_) | Accuracy::Cancels(_), DType::F16 | DType::BF16) => 1.0,
            _ => 0.5,
        }
    }

    /// The error that is allowed on top of the bound, as a part of what the derivative is multiplied with.
    pub const fn slack(self, dtype: DType) -> f64 {
        match (self, dtype) {
            // 2^-22 and 2^-18.
            (Accuracy::Cancels(_), DType::F32) => 1.0 / 4_194_304.0,
            (Accuracy::Cancels(_), _) => 1.0 / 262_144.0,
            _ => 0.0,
        }
    }
}

/// A scalar parameter of an op.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParamInfo {
    /// PyTorch's name for it.
    pub name: &'static str,
    /// PyTorch's default.
    pub default: f64,
    /// What numbers it takes.
    pub kind: ParamKind,
}

/// What numbers a parameter takes, and how the formula has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParamKind {
    /// Any that the element type can hold; in the formula of the compute type.
    Number,
    /// From 0 to 1; in the formula of the compute type.
    Probability,
    /// Whole numbers; in the formula an `i64`.
    Whole,
    /// 0 and 1, false and true; in the formula a `bool`.
    Flag,
    /// As `Number`, or none; in the formula an `Option` of the compute type.
    Open,
}

impl ParamInfo {
    /// A parameter that takes any number that the element type can hold.
    #[must_use]
    pub const fn number(name: &'static str, default: f64) -> ParamInfo {
        ParamInfo { name, default, kind: ParamKind::Number }
    }
}

impl ParamKind {
    /// How many words of a launch it takes.
    #[must_use]
    pub const fn words(self) -> usize {
        if matches!(self, ParamKind::Open) { 2 } else { 1 }
    }
}

/// What a row of the family's tables says of its formula beside the formula itself: words in its column of element types.
/// Most let templates choose faster code, and without them an op is as right. The function of a binary op
/// ([`Properties::function`]) and the last four say which of PyTorch's rules for numbers and bool hold for the op.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// The word `angle`: the formula takes the sine or cosine of the last operand itself. Where all of some elements are
    /// small, loops and kernels leave its long path out.
    pub angle: bool,
    /// The words `quotient`, `truncated_quotient`, `floored_quotient`, `modulo` and `power`: the function of its two
    /// operands that the formula of a binary op is. **A promise**: kernels take its short path
    /// ([`Value::short`](crate::Value::short)) for all elements of a vector, and the formula where that does not hold
    /// for one. A number that is an operand of it is rounded to the element type first where PyTorch's CUDA kernels do.
    pub function: Option<BinaryFunction>,
    /// The word `few_registers`: kernels of gradients keep to 32 registers in f32 and to 48 in 16 bits, a few less than
    /// the assembler takes by itself, so that more threads fit a multiprocessor.
    pub few_registers: bool,
    /// The word `truths`: the result is a bool that depends on nothing but which operands are true
    /// ([`Value::truth`](crate::Value::truth)). **A promise**: for elements of 8 and 16 bits kernels ask the formula
    /// for zeros and ones alone.
    pub truths: bool,
    /// The words `clears_sign` and `flips_sign`: what the op does to the sign of a float, and nothing else to it. **A
    /// promise**: 16-bit floats are then changed as bits.
    pub sign: Option<SignChange>,
    /// The word `constant`: the result depends on no operand, none of which kernels then read.
    pub constant: bool,
    /// The word `factor_alpha`: the parameter is the factor of PyTorch's `add` and `sub`, which wants the category of
    /// the result: no float for integers, no bool but for bool.
    pub factor_alpha: bool,
    /// The word `refuses_bool`: a bool operand is an error, whatever the other one is, as with PyTorch's `sub`. Without
    /// it a bool is converted where operands of different types meet.
    pub refuses_bool: bool,
    /// The word `copies_ints`: the result of an integer or bool is that element, whatever the parameters are, which may
    /// then be numbers that the type cannot hold.
    pub copies_ints: bool,
    /// The word `whole_parameter`: the parameters are whole numbers, as those that PyTorch takes as integers.
    pub whole_parameter: bool,
}

impl Properties {
    /// Those of a row that says nothing.
    pub const NONE: Properties = Properties {
        angle: false,
        function: None,
        few_registers: false,
        truths: false,
        sign: None,
        constant: false,
        factor_alpha: false,
        refuses_bool: false,
        copies_ints: false,
        whole_parameter: false,
    };
}

/// A function of two operands that takes a long path for few of them. See [`Properties::function`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryFunction {
    /// `a / b`.
    Quotient,
    /// [`Num::trunc_divide`](crate::Num::trunc_divide).
    TruncatedQuotient,
    /// [`Num::floor_divide`](crate::Num::floor_divide).
    FlooredQuotient,
    /// [`Num::remainder`](crate::Num::remainder).
    Modulo,
    /// [`Num::pow`](crate::Num::pow).
    Power,
}

impl BinaryFunction {
    /// Whether kernels take its short path for elements of a type, a vector at a time. Quotients have one in f16 and fp8,
    /// where it serves all: no number of f16, and no quotient of two, is near an end of f32's range. To find out of bf16
    /// took longer than the branches.
    pub const fn has_short_path(self, dtype: DType) -> bool {
        match self {
            BinaryFunction::Quotient | BinaryFunction::TruncatedQuotient => {
                matches!(dtype, DType::F16 | DType::F8E4M3 | DType::F8E5M2)
            }
            BinaryFunction::FlooredQuotient | BinaryFunction::Modulo | BinaryFunction::Power => {
                matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
            }
        }
    }

    /// Whether the short path for elements of a type gives bounds of a result, which decide most: those of 16 bits are
    /// then rounded as from the accurate formula of f32.
    pub const fn is_bounded(self, dtype: DType) -> bool {
        matches!((self, dtype), (BinaryFunction::Power, DType::F16 | DType::BF16))
    }

    /// Whether the short path is that of the first operand's magnitude, and [`Value::signed`](crate::Value::signed) tells
    /// what a sign makes of it.
    pub const fn takes_magnitudes(self) -> bool {
        matches!(self, BinaryFunction::Power)
    }
}

/// See [`Properties::sign`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignChange {
    /// The sign becomes plus.
    Clear,
    /// The sign becomes the other.
    Flip,
}

/// Whether bit `k` is set; a tensor that no op has, has none.
const fn has(bits: u16, k: usize) -> bool {
    k < u16::BITS as usize && bits >> k & 1 == 1
}

/// One op of a table.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// PyTorch's name.
    pub name: &'static str,
    /// Template and operands.
    pub kind: Kind,
    /// The names of the formula's operands.
    pub operands: &'static [&'static str],
    /// Bit `k`: operand `k` is a bool, whatever the element type.
    pub bool_operands: u16,
    /// Bit `k`: result `k` of a formula is a bool, whatever the element type.
    pub bool_results: u16,
    /// Bit `k`: operand `k` has one element for each channel, which is dimension 1 of what the others broadcast to, or one
    /// for all.
    pub channel_operands: u16,
    /// Whether a formula takes a random word for each element.
    pub is_random: bool,
    /// The names of its results; one that is alone is `y`.
    pub results: &'static [&'static str],
    /// Scalar parameters, in the order of the op's fields.
    pub params: &'static [ParamInfo],
    /// Element types of the operands.
    pub types: &'static [DType],
    /// Whether integers and bool are converted to f32 first: a float function of PyTorch's, such as `exp` or `div`.
    pub int_to_float: bool,
    /// Element type of the result.
    pub result: ResultType,
    /// Error bound.
    pub accuracy: Accuracy,
    /// The documentation of the table's row.
    pub doc: &'static str,
    /// The formula as it stands in the table.
    pub formula: &'static str,
    /// What the row says of it.
    pub properties: Properties,
}

impl OpInfo {
    /// What a formula has where nothing else is said.
    pub const FORMULA: OpInfo = OpInfo {
        name: "",
        kind: Kind::Formula,
        operands: &[],
        bool_operands: 0,
        bool_results: 0,
        channel_operands: 0,
        is_random: false,
        results: &["y"],
        params: &[],
        types: &[],
        int_to_float: false,
        result: ResultType::Same,
        accuracy: Accuracy::Exact,
        doc: "",
        formula: "",
        properties: Properties::NONE,
    };

    /// Whether operand `k` is a bool, whatever the element type: it has no say in the type of the call.
    #[must_use]
    pub const fn is_bool(&self, k: usize) -> bool {
        has(self.bool_operands, k)
    }

    /// Element type of operand `k` of an op on elements of type `dtype`.
    #[must_use]
    pub const fn operand_type(&self, k: usize, dtype: DType) -> DType {
        if self.is_bool(k) { DType::Bool } else { dtype }
    }

    /// Element type of result `k` of a formula on elements of type `dtype`.
    #[must_use]
    pub const fn result_type(&self, k: usize, dtype: DType) -> DType {
        if has(self.bool_results, k) { DType::Bool } else { dtype }
    }

    /// The names of the tensors, in call order, as files and the command have them.
    pub const fn arguments(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Gated => &["x"],
            Kind::GatedGradients => &["grad", "x"],
            _ => self.operands,
        }
    }

    /// The names of the tensors that come out, as [`OpInfo::arguments`].
    pub const fn outputs(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::GatedGradients => &["y"],
            _ => self.results,
        }
    }

    /// Whether operand `k` has one element for each channel, or one for all: see [`OpInfo::channel_operands`].
    #[must_use]
    pub const fn is_channel(&self, k: usize) -> bool {
        has(self.channel_operands, k)
    }

    /// Whether the op has kernels for operands of type `dtype`.
    pub fn supports(&self, dtype: DType) -> bool {
        self.types.contains(&dtype)
    }

    /// Whether operands of different types are converted to a common one. As in PyTorch they are not where a row lists
    /// floats alone (`lerp`, `prelu`), unless its op is a float function of numbers of any type (`div`).
    pub fn promotes(&self) -> bool {
        self.int_to_float || self.types.iter().any(|dtype| !dtype.is_float())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_that_an_op_does_not_have_is_no_bool() {
        let info = OpInfo { bool_operands: 0x8001, bool_results: 0x8001, channel_operands: 0x8001, ..OpInfo::FORMULA };
        for k in 0..80 {
            let is_set = k == 0 || k == 15;
            let dtype = if is_set { DType::Bool } else { DType::F32 };
            assert_eq!((info.is_bool(k), info.is_channel(k)), (is_set, is_set), "{k}");
            assert_eq!((info.operand_type(k, DType::F32), info.result_type(k, DType::F32)), (dtype, dtype), "{k}");
        }
    }
}
