//! The data of an op. The registry, the command, the docs, the tests and the benches read them.

use crate::dtype::DType;

/// The template that runs an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Any number of operands to any number of results, broadcast.
    Formula,
    /// `(gate, value) -> y`, a formula of the halves of one tensor's last dimension, or of two tensors.
    Gated,
    /// `(grad, gate, value) -> (grad_gate, grad_value)`: the last four are the halves of the last dimension of two
    /// tensors.
    GatedGradients,
    /// `(x, random bits) -> y`, and a mask.
    Random,
    /// `index -> y`: no operand.
    Generator,
    /// `x -> y`: converts elements of one type to another.
    Convert,
    /// Operands to results, along rows that the formula reduces: the last dimension, or groups of it.
    Rows,
}

impl Kind {
    /// Returns the name in listings.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Formula => "formula",
            Kind::Gated => "gated",
            Kind::GatedGradients => "gated_gradients",
            Kind::Random => "random",
            Kind::Generator => "generator",
            Kind::Convert => "convert",
            Kind::Rows => "rows",
        }
    }
}

/// The elements that share a random word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Each {
    /// Each element has its own.
    Element,
    /// All of one index in the first dimension share one.
    Sample,
    /// All of one index in the first dimension and in the second share one.
    Channel,
    /// All along the last dimension share one.
    Row,
}

/// The largest error a result may have, in units in the last place of the result's type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Accuracy {
    /// The correctly rounded value in f32, which is rounded once more to 16 and 8 bits; the same bits on every device.
    Exact,
    /// f32: at most this many ULP from the exact value. 16-bit types: at most 1 ULP, and correctly rounded for at least
    /// 99.5 % of all inputs. fp8: correctly rounded.
    Ulp(f32),
    /// Like [`Accuracy::Ulp`], for a gradient that is a sum of two terms. They may cancel, so [`Accuracy::slack`] times
    /// the incoming gradient is allowed on top.
    Cancels(f32),
}

impl Accuracy {
    /// Returns the bound for results of type `dtype`, in ULP; 0.5 means correctly rounded.
    pub const fn bound(self, dtype: DType) -> f32 {
        match (self, dtype) {
            (Accuracy::Ulp(ulp) | Accuracy::Cancels(ulp), DType::F32) => ulp,
            (Accuracy::Ulp(_) | Accuracy::Cancels(_), DType::F16 | DType::BF16) => 1.0,
            _ => 0.5,
        }
    }

    /// Returns the error that is allowed on top of the bound, as a fraction of the incoming gradient.
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
    /// PyTorch's default; of a whole number as near as an f64 comes to it.
    pub default: f64,
    /// The default of a whole number ([`ParamKind::Whole`]); 0 for others.
    pub whole: i64,
    /// The numbers that it takes.
    pub kind: ParamKind,
}

/// The numbers that a parameter takes, and its type in the formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParamKind {
    /// Any number that the element type can hold; in the formula the compute type.
    Number,
    /// From 0 to 1; in the formula the compute type.
    Probability,
    /// Whole numbers; in the formula an `i64`.
    Whole,
    /// 0 and 1, false and true; in the formula a `bool`.
    Flag,
    /// A `Number`, or none; in the formula an `Option` of the compute type.
    Open,
}

impl ParamInfo {
    /// Returns a parameter that takes any number that the element type can hold.
    #[must_use]
    pub const fn number(name: &'static str, default: f64) -> ParamInfo {
        ParamInfo { name, default, whole: 0, kind: ParamKind::Number }
    }

    /// A parameter that takes whole numbers.
    #[must_use]
    pub const fn whole(name: &'static str, default: i64) -> ParamInfo {
        ParamInfo { name, default: default as f64, whole: default, kind: ParamKind::Whole }
    }
}

impl ParamKind {
    /// Returns the words that it takes in a launch.
    #[must_use]
    pub const fn words(self) -> usize {
        if matches!(self, ParamKind::Open) { 2 } else { 1 }
    }
}

/// Properties of a formula: the words `__hints(..)` and `__rules(..)` of the family's ops. Most let templates choose faster
/// code, and an op is right without them. [`Properties::function`] and the rules choose PyTorch's rules for numbers and
/// bool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// The hint `angle`: the formula takes the sine or cosine of the last operand itself. If some elements are all
    /// small, loops and kernels skip its long path for them.
    pub angle: bool,
    /// The hints `quotient`, `truncated_quotient`, `floored_quotient`, `modulo` and `power`: the formula of a binary op
    /// is this function of its two operands. **A promise**: kernels take its short path
    /// ([`Value::short`](crate::Value::short)) for all elements of a vector, and the formula if the path does not hold
    /// for one of them. A number as an operand is rounded to the element type first where PyTorch's CUDA kernels do so.
    pub function: Option<BinaryFunction>,
    /// The hint `few_registers`: kernels of gradients keep to 32 registers in f32 and to 48 in 16 bits, and kernels that hold a row
    /// to 64 or 72 in 16 bits, a few less than the assembler takes by itself, so that more threads fit a multiprocessor.
    pub few_registers: bool,
    /// The hint `truths`: the result is a bool that depends only on the truth of the operands
    /// ([`Value::truth`](crate::Value::truth)). **A promise**: for elements of 8 and 16 bits kernels give the formula
    /// only zeros and ones.
    pub truths: bool,
    /// The hint `moves`: the result is the second or the third operand, bit for bit, chosen by the first, a bool. **A
    /// promise**: the op has kernels for each width of elements, not for each type, and they move elements as integers.
    pub moves: bool,
    /// The hints `clears_sign` and `flips_sign`: the op changes the sign of a float, and nothing else. **A promise**:
    /// kernels change 16-bit floats as bits.
    pub sign: Option<SignChange>,
    /// The hint `constant`: the result depends on no operand, so kernels read none.
    pub constant: bool,
    /// The op belongs to the family, whose build checks that no kernel spills: its kernels keep to the registers that
    /// their templates allow.
    pub of_family: bool,
    /// The rule `int_to_float`: integers and bool are converted to f32 first, as for PyTorch's float functions (`exp`,
    /// `div`).
    pub int_to_float: bool,
    /// The rule `factor_alpha`: the parameter is the factor of PyTorch's `add` and `sub`. It must be of the result's
    /// category: no float for integers, and a bool only for bool.
    pub factor_alpha: bool,
    /// The rule `refuses_bool`: a bool operand is an error, whatever the other one is, as with PyTorch's `sub`. Without
    /// it a bool is converted where operands of different types meet.
    pub refuses_bool: bool,
    /// The rule `copies_ints`: integers and bools are copied, whatever the parameters are. These may be numbers that
    /// the type cannot hold.
    pub copies_ints: bool,
    /// The rule `whole_parameter`: the parameters are whole numbers, which PyTorch takes as integers.
    pub whole_parameter: bool,
    /// The rule `beneath`: other ops run this one, and PyTorch has no name for it.
    pub beneath: bool,
}

impl Properties {
    /// The properties of an op without these words.
    pub const NONE: Properties = Properties {
        angle: false,
        function: None,
        few_registers: false,
        truths: false,
        moves: false,
        sign: None,
        constant: false,
        of_family: false,
        int_to_float: false,
        factor_alpha: false,
        refuses_bool: false,
        copies_ints: false,
        whole_parameter: false,
        beneath: false,
    };
}

/// A function of two operands with a long path that few of them need. See [`Properties::function`].
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
    /// True if kernels take its short path for elements of a type, a vector at a time. Quotients have one in f16 and
    /// fp8, where it is right for all numbers: no f16, and no quotient of two, is near an end of f32's range. In bf16
    /// the check took longer than the branches.
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

    /// True if the short path for elements of a type gives two bounds of a result. They decide most results: such a
    /// result rounds to 16 bits as the accurate formula of f32 does.
    pub const fn is_bounded(self, dtype: DType) -> bool {
        matches!((self, dtype), (BinaryFunction::Power, DType::F16 | DType::BF16))
    }

    /// True if the short path takes the first operand's magnitude, and [`Value::signed`](crate::Value::signed) corrects
    /// the result for its sign.
    pub const fn takes_magnitudes(self) -> bool {
        matches!(self, BinaryFunction::Power)
    }
}

/// See [`Properties::sign`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignChange {
    /// The sign becomes plus.
    Clear,
    /// The sign becomes the opposite.
    Flip,
}

/// True if tensors of a type have gradients.
const fn has_gradient(fixed: Option<DType>) -> bool {
    matches!(fixed, None | Some(DType::F32 | DType::F16 | DType::BF16))
}

/// Returns the bytes of an element.
const fn size(fixed: Option<DType>, element: usize) -> usize {
    match fixed {
        Some(dtype) => dtype.size(),
        None => element,
    }
}

/// Returns bit `k` for each type that is a bool.
const fn bools(types: &[Option<DType>]) -> u16 {
    let (mut bits, mut k) = (0, 0);
    while k < types.len() {
        if matches!(types[k], Some(DType::Bool)) {
            bits |= 1 << k;
        }
        k += 1;
    }
    bits
}

/// Returns the type of tensor `k`, if it is fixed and no bool.
const fn stored(types: &[Option<DType>], k: usize) -> Option<DType> {
    match k < types.len() {
        true if !matches!(types[k], Some(DType::Bool)) => types[k],
        _ => None,
    }
}

/// True if bit `k` is set; a tensor that no op has, has none.
const fn has(bits: u16, k: usize) -> bool {
    k < u16::BITS as usize && bits >> k & 1 == 1
}

/// The elements of a tensor, beside the shape that the operands of its call broadcast to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// One for each.
    Elements,
    /// One for each entry of dimension 1, or one for all.
    Channel,
    /// One for each row: there is no last dimension, or one of groups.
    Row,
    /// Two for each: the last dimension is twice as long. It has a gate, then a value.
    Halves,
}

impl Domain {
    /// Returns its name, such as `elements`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Domain::Elements => "elements",
            Domain::Channel => "channel",
            Domain::Row => "row",
            Domain::Halves => "halves",
        }
    }
}

/// An op as data.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// PyTorch's name.
    pub name: &'static str,
    /// The template that runs it.
    pub kind: Kind,
    /// The op whose gradients it computes, if it is an op of gradients.
    pub gradient_of: Option<&'static str>,
    /// The names of the formula's operands.
    pub operands: &'static [&'static str],
    /// The element types of operands that do not have the op's, bool among them; shorter than the operands if the rest
    /// have it.
    pub operand_types: &'static [Option<DType>],
    /// Bit `k`: operand `k` has one element for each channel (dimension 1 of the shape that the others broadcast to),
    /// or one for all.
    pub channel_operands: u16,
    /// The elements of a row that is a group of neighbours along the last dimension, which is a multiple of it; 0 where the row is
    /// the last dimension.
    pub group: u32,
    /// Bit `k`: operand `k` has one element for each row: its shape has no last dimension, or one of groups.
    pub row_operands: u16,
    /// Bit `k`: operand `k` is a weight: a row that serves all rows. A call may give it otherwise.
    pub weight_operands: u16,
    /// Bit `k`: operand `k` has the gradient of the operand before it, as both are added.
    pub shared_gradients: u16,
    /// Bit `k`: result `k` has one element for each row: its shape has no last dimension, or one of groups.
    pub row_results: u16,
    /// Bit `k`: result `k` is the gradient of a weight, in the order of the weights among the operands. It is summed over the
    /// rows if every weight of the call is one row or one element.
    pub weight_results: u16,
    /// The element types of results that do not have the op's, bool among them; shorter than the results if the rest
    /// have it.
    pub result_types: &'static [Option<DType>],
    /// Bit `k`: result `k` is for the gradient alone, which reads it.
    pub kept_results: u16,
    /// The random words that the formula takes, at most two, by the elements that share each.
    pub random: &'static [Each],
    /// The indices of its element that the formula takes beside operands: column; row and column; plane, row and column.
    pub indices: u8,
    /// The names of its results; a single one is `y`.
    pub results: &'static [&'static str],
    /// The names of the dimensions of the result, of an op without operands; the same name for equal ones.
    pub shape: &'static [&'static str],
    /// Scalar parameters, in the order of the op's fields.
    pub params: &'static [ParamInfo],
    /// Element types of the operands.
    pub types: &'static [DType],
    /// Error bound.
    pub accuracy: Accuracy,
    /// The documentation of the function.
    pub doc: &'static str,
    /// The text of the function's body.
    pub formula: &'static str,
    /// The element types of one byte in which a table of the results of all pairs of operands is faster than the formula, and
    /// the power of two of elements from which on it is (H200, `docs/notebook/one-byte.md`).
    pub pairs_pay: &'static [(DType, u32)],
    /// Its hints and rules.
    pub properties: Properties,
}

impl OpInfo {
    /// The defaults of a formula.
    pub const FORMULA: OpInfo = OpInfo {
        name: "",
        kind: Kind::Formula,
        gradient_of: None,
        operands: &[],
        operand_types: &[],
        channel_operands: 0,
        group: 0,
        row_operands: 0,
        weight_operands: 0,
        shared_gradients: 0,
        row_results: 0,
        weight_results: 0,
        result_types: &[],
        kept_results: 0,
        random: &[],
        indices: 0,
        results: &["y"],
        shape: &[],
        params: &[],
        types: &[],
        accuracy: Accuracy::Exact,
        doc: "",
        formula: "",
        pairs_pay: &[],
        properties: Properties::NONE,
    };

    /// True if the op computes the gradients of another op.
    #[must_use]
    pub const fn is_gradient(&self) -> bool {
        self.gradient_of.is_some()
    }

    /// True if the op has one operand and one result, and computes no gradient.
    #[must_use]
    pub const fn is_unary(&self) -> bool {
        self.operands.len() == 1 && self.results.len() == 1 && !self.is_gradient()
    }

    /// True if operand `k` is a bool, whatever the element type. It does not count for the type of the call.
    #[must_use]
    pub const fn is_bool(&self, k: usize) -> bool {
        matches!(self.fixed_operand(k), Some(DType::Bool))
    }

    /// True if result `k` is a bool, whatever the element type.
    #[must_use]
    pub const fn is_bool_result(&self, k: usize) -> bool {
        matches!(self.fixed_result(k), Some(DType::Bool))
    }

    /// Returns the element type of operand `k`, if it is the same for all element types of the op. Such an operand does not
    /// count for the type of the call.
    #[must_use]
    pub const fn fixed_operand(&self, k: usize) -> Option<DType> {
        if k < self.operand_types.len() { self.operand_types[k] } else { None }
    }

    /// Returns the element type of result `k`, if it is the same for all element types of the op.
    #[must_use]
    pub const fn fixed_result(&self, k: usize) -> Option<DType> {
        if k < self.result_types.len() { self.result_types[k] } else { None }
    }

    /// Returns the element type of operand `k` of an op on elements of type `dtype`.
    #[must_use]
    pub const fn operand_type(&self, k: usize, dtype: DType) -> DType {
        match self.fixed_operand(k) {
            Some(fixed) => fixed,
            None => dtype,
        }
    }

    /// Returns the element type of result `k` of a formula on elements of type `dtype`.
    #[must_use]
    pub const fn result_type(&self, k: usize, dtype: DType) -> DType {
        match self.fixed_result(k) {
            Some(fixed) => fixed,
            None => dtype,
        }
    }

    /// True if operand `k` has a gradient, where the op has any: it has the op's type, or is f32, f16 or bf16.
    #[must_use]
    pub const fn operand_has_gradient(&self, k: usize) -> bool {
        has_gradient(self.fixed_operand(k))
    }

    /// Returns the result of the op of gradients that is the gradient of operand `k`, if it has one.
    #[must_use]
    pub const fn gradient_of_operand(&self, k: usize) -> Option<usize> {
        if !self.operand_has_gradient(k) {
            return None;
        }
        let (mut count, mut operand) = (0, 0);
        while operand <= k {
            count += (self.operand_has_gradient(operand) && !self.shares_gradient(operand)) as usize;
            operand += 1;
        }
        Some(count - 1)
    }

    /// True if gradients come from result `k`, where the op has any.
    #[must_use]
    pub const fn result_has_gradient(&self, k: usize) -> bool {
        has_gradient(self.fixed_result(k)) && !self.is_kept_result(k)
    }

    /// True if result `k` is for the gradient alone, which reads it.
    #[must_use]
    pub const fn is_kept_result(&self, k: usize) -> bool {
        has(self.kept_results, k)
    }

    /// Returns the bytes of an element of operand `k`, where those of the op's type have `element`.
    #[must_use]
    pub const fn operand_size(&self, k: usize, element: usize) -> usize {
        size(self.fixed_operand(k), element)
    }

    /// Returns the bytes of an element of result `k`, where those of the op's type have `element`.
    #[must_use]
    pub const fn result_size(&self, k: usize, element: usize) -> usize {
        size(self.fixed_result(k), element)
    }

    /// Returns the operands that are bools: bit `k` for operand `k`.
    #[must_use]
    pub const fn bool_operands(&self) -> u16 {
        bools(self.operand_types)
    }

    /// Returns the results that are bools: bit `k` for result `k`.
    #[must_use]
    pub const fn bool_results(&self) -> u16 {
        bools(self.result_types)
    }

    /// Returns the element type of operand `k`, if it is fixed and no bool: its elements are converted to the compute type.
    #[must_use]
    pub const fn stored_operand(&self, k: usize) -> Option<DType> {
        stored(self.operand_types, k)
    }

    /// Returns the element type of result `k`, if it is fixed and no bool: its elements are converted from the compute
    /// type.
    #[must_use]
    pub const fn stored_result(&self, k: usize) -> Option<DType> {
        stored(self.result_types, k)
    }

    /// True if an operand or a result has a fixed type that is no bool.
    #[must_use]
    pub const fn has_stored(&self) -> bool {
        let (mut found, mut k) = (false, 0);
        while k < self.operand_types.len() {
            found |= self.stored_operand(k).is_some();
            k += 1;
        }
        k = 0;
        while k < self.result_types.len() {
            found |= self.stored_result(k).is_some();
            k += 1;
        }
        found
    }

    /// Returns the bytes of the largest element among those of the op's type, of `element` bytes, and the operands that have
    /// an element for each of the results. Of an op on elements the results count, too.
    #[must_use]
    #[inline(always)]
    pub const fn widest(&self, element: usize) -> usize {
        let (mut widest, mut k) = (element, 0);
        while k < self.operand_types.len() {
            if let Some(dtype) = self.operand_types[k]
                && !self.is_row_operand(k)
                && dtype.size() > widest
            {
                widest = dtype.size();
            }
            k += 1;
        }
        k = 0;
        while k < self.result_types.len() && !self.is_of_rows() {
            if let Some(dtype) = self.result_types[k]
                && dtype.size() > widest
            {
                widest = dtype.size();
            }
            k += 1;
        }
        widest
    }

    /// True if the formula draws random words.
    #[must_use]
    pub const fn is_random(&self) -> bool {
        !self.random.is_empty()
    }

    /// True if a formula with operands knows its element's place: it draws a random word, or takes indices. The place is the
    /// index in the result, which is contiguous.
    #[must_use]
    pub const fn has_place(&self) -> bool {
        self.is_random() || self.indices > 0
    }

    /// True if the op has no operands: its elements are made of their indices.
    #[must_use]
    pub const fn is_of_indices(&self) -> bool {
        matches!(self.kind, Kind::Generator)
    }

    /// True if the op reduces over rows.
    #[must_use]
    pub const fn is_of_rows(&self) -> bool {
        matches!(self.kind, Kind::Rows)
    }

    /// True if operand `k` has one element for each row.
    #[must_use]
    pub const fn is_row_operand(&self, k: usize) -> bool {
        has(self.row_operands, k)
    }

    /// True if result `k` has one element for each row.
    #[must_use]
    pub const fn is_row_result(&self, k: usize) -> bool {
        has(self.row_results, k)
    }

    /// True if operand `k` is a weight: see [`OpInfo::weight_operands`].
    #[must_use]
    pub const fn is_weight(&self, k: usize) -> bool {
        has(self.weight_operands, k)
    }

    /// True if operand `k` has the gradient of the operand before it: see [`OpInfo::shared_gradients`].
    #[must_use]
    pub const fn shares_gradient(&self, k: usize) -> bool {
        has(self.shared_gradients, k)
    }

    /// True if result `k` is the gradient of a weight: see [`OpInfo::weight_results`].
    #[must_use]
    pub const fn is_weight_result(&self, k: usize) -> bool {
        has(self.weight_results, k)
    }

    /// Returns the operand whose gradient result `k` is, of the gradient of a weight.
    #[must_use]
    pub const fn weight_of(&self, k: usize) -> Option<usize> {
        if !self.is_weight_result(k) {
            return None;
        }
        let (mut left, mut operand) = ((self.weight_results & ((1 << k) - 1)).count_ones(), 0);
        while operand < self.operands.len() {
            if self.is_weight(operand) {
                if left == 0 {
                    return Some(operand);
                }
                left -= 1;
            }
            operand += 1;
        }
        None
    }

    /// Returns the names of the operand tensors, in call order, as files and the command use them.
    pub const fn arguments(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Gated => &["x"],
            Kind::GatedGradients => &["grad", "x"],
            _ => self.operands,
        }
    }

    /// Returns the names of the result tensors, likewise: a single one is `y`.
    pub const fn outputs(&self) -> &'static [&'static str] {
        match (self.kind, self.results.len()) {
            (Kind::GatedGradients, _) | (_, 1) => &["y"],
            _ => self.results,
        }
    }

    /// Returns the domain of tensor `k` of [`OpInfo::arguments`].
    #[must_use]
    pub const fn argument_domain(&self, k: usize) -> Domain {
        match self.kind {
            Kind::Gated | Kind::GatedGradients if k + 1 == self.arguments().len() => Domain::Halves,
            _ if self.is_channel(k) => Domain::Channel,
            _ if self.is_row_operand(k) => Domain::Row,
            _ => Domain::Elements,
        }
    }

    /// Returns the domain of tensor `k` of [`OpInfo::outputs`].
    #[must_use]
    pub const fn output_domain(&self, k: usize) -> Domain {
        match self.kind {
            Kind::GatedGradients => Domain::Halves,
            _ if self.is_row_result(k) => Domain::Row,
            _ => Domain::Elements,
        }
    }

    /// True if operand `k` has one element for each channel, or one for all: see [`OpInfo::channel_operands`].
    #[must_use]
    pub const fn is_channel(&self, k: usize) -> bool {
        has(self.channel_operands, k)
    }

    /// True if the op has kernels for operands of type `dtype`.
    pub fn supports(&self, dtype: DType) -> bool {
        self.types.contains(&dtype)
    }

    /// True if operands of different types are converted to a common one. An op that lists only floats (`lerp`,
    /// `prelu`) does not convert, as in PyTorch, unless it is a float function of numbers of any type (`div`).
    pub fn promotes(&self) -> bool {
        self.properties.int_to_float || self.types.iter().any(|dtype| !dtype.is_float())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_that_an_op_does_not_have_is_no_bool() {
        const TYPES: &[Option<DType>] = &[Some(DType::Bool), None, Some(DType::I64)];
        let info = OpInfo { operand_types: TYPES, result_types: TYPES, channel_operands: 0x8001, ..OpInfo::FORMULA };
        for k in 0..80 {
            let dtype = [DType::Bool, DType::F16, DType::I64].get(k).copied().unwrap_or(DType::F16);
            assert_eq!((info.is_bool(k), info.is_channel(k)), (k == 0, k == 0 || k == 15), "{k}");
            assert_eq!((info.operand_type(k, DType::F16), info.result_type(k, DType::F16)), (dtype, dtype), "{k}");
            assert_eq!(info.stored_operand(k), (k == 2).then_some(DType::I64), "{k}");
        }
        assert_eq!((info.bool_operands(), info.bool_results(), info.has_stored()), (1, 1, true));
    }

    #[test]
    fn tensors_have_domains() {
        use Domain::{Channel, Elements, Halves, Row};
        let of = |info: OpInfo| [info.argument_domain(0), info.argument_domain(1), info.output_domain(0)];
        let info = OpInfo { operands: &["x", "w"], ..OpInfo::FORMULA };
        assert_eq!(of(OpInfo { channel_operands: 2, ..info }), [Elements, Channel, Elements]);
        assert_eq!(of(OpInfo { row_operands: 2, row_results: 1, ..info }), [Elements, Row, Row]);
        assert_eq!(of(OpInfo { kind: Kind::GatedGradients, ..info }), [Elements, Halves, Halves]);
        assert_eq!(of(OpInfo { kind: Kind::Gated, ..info }), [Halves, Elements, Elements]);
    }

    #[test]
    fn the_widest_element_counts() {
        const TYPES: &[Option<DType>] = &[None, Some(DType::I64)];
        let info = OpInfo { operand_types: TYPES, ..OpInfo::FORMULA };
        assert_eq!((OpInfo::FORMULA.widest(2), info.widest(2)), (2, 8));
        assert_eq!(OpInfo { row_operands: 2, ..info }.widest(2), 2);
        let of_results = OpInfo { result_types: TYPES, ..OpInfo::FORMULA };
        assert_eq!((of_results.widest(4), OpInfo { kind: Kind::Rows, ..of_results }.widest(4)), (8, 4));
    }
}
