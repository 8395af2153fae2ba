//! The word that binds a row to its kernels, and the checks of a row against the types of its op.
//!
//! Anybody may implement [`DescribedOp`] in code that forbids `unsafe`. Host and device call the functions here for every
//! element type of a row, as constants. A row that contradicts the types does not compile.
//! The host launches a kernel only if the device made the same word of its row. The checks track their caller, so that
//! the compiler's error is at the row.

use crate::dtype::DType;
use crate::element::Element;
use crate::formula::{Formula, MAX_INPUTS, MAX_OUTPUTS, MAX_WORDS, OpData};
use crate::info::{Kind, OpInfo, Properties};
use crate::op::{DescribedOp, GeneratorOp, MAX_PARAMS, RandomOp};
use crate::rows::{MAX_ANSWERS, MAX_GIVEN, RowData, RowOp, first_answer};

/// The version of the agreement between kernels and host: this crate's version, the structs that kernels get, and
/// [`CONVENTION`].
const VERSION: u64 = {
    let hash = (START ^ CONVENTION).wrapping_mul(PRIME);
    let hash = mix(hash, env!("CARGO_PKG_VERSION"));
    let hash = mix(hash, include_str!("launch.rs"));
    let hash = mix(hash, include_str!("philox.rs"));
    let hash = mix(hash, include_str!("rows.rs"));
    mix(hash, include_str!("rope/mod.rs"))
};

/// Raise this when an entry's parameters or a template's assumptions change, and no file in `VERSION` shows it.
const CONVENTION: u64 = 4;

/// FNV-1a of 64 bits: its first value and its factor.
const START: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// Continues a hash by a text and its end. Spaces do not count: compilers of different versions write a formula's
/// tokens with different ones.
const fn mix(mut hash: u64, text: &str) -> u64 {
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        if !bytes[i].is_ascii_whitespace() {
            hash = (hash ^ bytes[i] as u64).wrapping_mul(PRIME);
        }
        i += 1;
    }
    (hash ^ 0xff).wrapping_mul(PRIME)
}

const fn mix_all(mut hash: u64, texts: &[&str]) -> u64 {
    let mut i = 0;
    while i < texts.len() {
        hash = mix(hash, texts[i]);
        i += 1;
    }
    (hash ^ 0xfe).wrapping_mul(PRIME)
}

/// The hash of a row, computed once for each type.
trait Text {
    const TEXT: u64;
}

impl<O: DescribedOp> Text for O {
    const TEXT: u64 = text(&O::INFO);
}

/// Returns the hash of the parts of a row that its kernels depend on. Documentation, accuracy and defaults matter only
/// to the host.
const fn text(info: &OpInfo) -> u64 {
    let mut hash = mix(VERSION, info.name);
    hash = mix(hash, info.kind.name());
    hash = mix_all(hash, info.operands);
    hash = mix_all(hash, info.results);
    let mut i = 0;
    while i < info.params.len() {
        hash = mix(hash, info.params[i].name);
        i += 1;
    }
    hash = mix(hash, info.formula);
    let Properties {
        angle,
        function,
        few_registers,
        truths,
        moves,
        sign,
        constant,
        of_family,
        int_to_float,
        factor_alpha,
        refuses_bool,
        copies_ints,
        whole_parameter,
        beneath,
    } = info.properties;
    let flags = [
        angle as u64,
        match function {
            Some(function) => 1 + function as u64,
            None => 0,
        },
        few_registers as u64,
        truths as u64,
        moves as u64,
        match sign {
            Some(sign) => 1 + sign as u64,
            None => 0,
        },
        constant as u64,
        of_family as u64,
        int_to_float as u64,
        factor_alpha as u64,
        refuses_bool as u64,
        copies_ints as u64,
        whole_parameter as u64,
        beneath as u64,
    ];
    let mut i = 0;
    while i < flags.len() {
        hash = (hash ^ flags[i]).wrapping_mul(PRIME);
        i += 1;
    }
    hash
}

/// Returns the word of a row at some types. The fields that memory safety depends on are its upper half, four bits
/// each, below those of the class: rows that differ in them never share a word. The lower half is a hash of the rest.
const fn word(info: &OpInfo, [first, others, result]: [DType; 3], text: u64) -> u64 {
    let fields = [
        info.kind as u64,
        first as u64,
        others as u64,
        result as u64,
        info.operands.len() as u64,
        info.results.len() as u64,
        info.params.len() as u64,
    ];
    let (mut word, mut i) = (0, 0);
    while i < fields.len() {
        assert!(fields[i] < 16);
        word = word << 4 | fields[i];
        i += 1;
    }
    word << 32 | (text ^ text >> 32) as u32 as u64
}

/// The class of an entry, which decides what a launch passes to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryClass {
    /// A formula of tensors that lie flat.
    Flat = 1,
    /// A formula along rows of tensors.
    Rows,
    /// A formula of tensors with any strides.
    Strided,
    /// A formula by a table of its results.
    Table,
    /// A formula of one element over registers, which nothing launches.
    Body,
    /// An op on rows in registers.
    Held,
    /// An op on rows that are read once for each round.
    Streamed,
    /// An op on rows that are no aligned vectors, in registers by way of shared memory.
    Staged,
    /// As `Held`, with sums over rows.
    HeldSum,
    /// As `Streamed`, with sums over rows.
    StreamedSum,
    /// The sums of all chunks of rows.
    Fold,
    /// Single elements of a generator or of dropout.
    Direct,
    /// Vectors of a generator or of dropout.
    Vectors,
}

/// Bits of a class, the upper ones of a word.
const CLASS_BITS: u32 = 4;

/// Returns the word of an entry of a class: `word` is the row's, whose upper bits are 0.
#[must_use]
#[track_caller]
pub const fn of_class(word: u64, class: EntryClass) -> u64 {
    assert!(word >> (64 - CLASS_BITS) == 0, "the word has a class");
    (class as u64) << (64 - CLASS_BITS) | word
}

/// Checks kind and number of parameters.
#[track_caller]
const fn check_kind(info: &OpInfo, kinds: &[Kind], params: usize) {
    let (mut fits, mut i) = (false, 0);
    while i < kinds.len() {
        fits |= info.kind as u8 == kinds[i] as u8;
        i += 1;
    }
    assert!(fits, "the row says another kind than its op is of");
    assert!(info.params.len() <= params, "the row has more parameters than an op of its kind can have");
}

/// Returns the word of a generator of elements `E`; `source` is a hash of the text that it was compiled from.
#[must_use]
#[track_caller]
pub const fn of_generator<E: Element, O: DescribedOp + GeneratorOp>(source: u64) -> u64 {
    let info = &O::INFO;
    check_kind(info, &[Kind::Generator], MAX_PARAMS);
    assert!(info.operands.is_empty() && info.results.len() == 1, "a generator has no operands and one result");
    word(info, [E::DTYPE; 3], (O::TEXT ^ source).wrapping_mul(PRIME))
}

/// Checks that `word`, of [`of_generator`], is that of the op `O` for elements of type `dtype`.
#[track_caller]
pub const fn check_generator<O: DescribedOp + GeneratorOp>(dtype: DType, source: u64, word: u64) {
    let own = self::word(&O::INFO, [dtype; 3], (O::TEXT ^ source).wrapping_mul(PRIME));
    assert!(own == word, "the definition and its kernels are of different generators");
}

/// Returns the word of dropout of elements `E`.
#[must_use]
#[track_caller]
pub const fn of_random<E: Element, O: DescribedOp + RandomOp<E::Compute>>() -> u64 {
    let info = &O::INFO;
    check_kind(info, &[Kind::Random], MAX_PARAMS);
    assert!(info.operands.len() == 1 && info.results.len() == 1, "dropout has one operand and one result");
    word(info, [E::DTYPE; 3], O::TEXT)
}

/// The bits of a formula's word below the class, which hold the element type; [`of_data`] is below.
const DTYPE_BITS: u32 = 4;
/// The bits of [`of_data`].
const DATA_BITS: u32 = 64 - CLASS_BITS - DTYPE_BITS;

/// Returns the word of a formula on elements `E`; `source` is a hash of the text that it was compiled from.
///
/// The fields that memory safety depends on are in the upper bits, below the class: the element type, the numbers of
/// operands, results and parameter words, the bools among operands and results, and a bit for random words. A hash of the
/// rest is below.
#[must_use]
#[track_caller]
pub const fn of_formula<E: Element, O, const N: usize, const R: usize>(source: u64) -> u64
where
    O: OpData + Formula<E::Compute, N, R>,
{
    let info = &O::INFO;
    check_kind(info, &[Kind::Formula, Kind::Gated, Kind::GatedGradients], MAX_WORDS);
    check_counts(info, N, R);
    assert!(E::DTYPE as u64 >> DTYPE_BITS == 0);
    assert!(E::DTYPE.is_float() || !info.has_stored(), "only floats are computed from operands of other types");
    (E::DTYPE as u64) << DATA_BITS | of_data(info, source)
}

/// Returns the word of an op on rows of elements `E`, as [`of_formula`].
#[must_use]
#[track_caller]
pub const fn of_rows<E: Element, O, const N: usize, const R: usize>(source: u64) -> u64
where
    O: RowData + RowOp<f32, N, R>,
{
    let info = &O::INFO;
    check_kind(info, &[Kind::Rows], MAX_WORDS);
    check_counts(info, N, R);
    assert!(E::DTYPE.is_float(), "rows are of floats");
    let mut round = 0;
    while round < O::ROUNDS.len() {
        assert!(O::ROUNDS[round].len() <= MAX_GIVEN);
        round += 1;
    }
    assert!(first_answer(O::ROUNDS, O::ROUNDS.len()) <= MAX_ANSWERS);
    (E::DTYPE as u64) << DATA_BITS | of_data(info, source)
}

/// Checks the numbers of tensors and parameters.
#[track_caller]
const fn check_counts(info: &OpInfo, operands: usize, results: usize) {
    assert!(
        info.operands.len() == operands && operands >= 1 && operands <= MAX_INPUTS,
        "the data name another number of operands"
    );
    assert!(
        info.results.len() == results && results >= 1 && results <= MAX_OUTPUTS,
        "the data name another number of results"
    );
    assert!(param_words(info) <= MAX_WORDS, "the parameters take more than eight words");
    assert!(info.operand_types.len() <= operands);
    assert!(info.row_operands >> operands == 0 && info.row_results >> results == 0);
    assert!(info.weight_operands >> operands == 0 && info.weight_results >> results == 0);
    let weights = info.weight_results.count_ones();
    assert!(weights == 0 || weights == info.weight_operands.count_ones(), "each weight has a gradient, or none has");
    assert!(info.weight_results & (info.row_results | info.bool_results()) == 0);
    assert!(info.result_types.len() <= results);
}

/// Bits of a tensor in [`slots`].
const SLOT_BITS: u32 = 5;

/// Returns the element types that are not the op's, which tensors have an element for each row, and which results are gradients of
/// weights: what memory safety depends on, too, and does not fit into the word. An op and its kernels are compared by both.
///
/// A bit for each result that is the gradient of a weight; then five bits for each operand, and for each result: the lower four are
/// 0 for the op's type and for a bool, which is in the word.
#[must_use]
pub const fn slots(info: &OpInfo) -> u128 {
    let (mut slots, mut i) = (info.weight_results as u128, 0);
    while i < MAX_INPUTS + MAX_OUTPUTS {
        let (stored, is_row) = if i < MAX_INPUTS {
            (info.stored_operand(i), info.row_operands as u64 >> i & 1)
        } else {
            (info.stored_result(i - MAX_INPUTS), info.row_results as u64 >> (i - MAX_INPUTS) & 1)
        };
        assert!(code(stored) < 16);
        slots = slots << SLOT_BITS | (is_row << 4 | code(stored)) as u128;
        i += 1;
    }
    slots
}

/// Checks that the data of an op's definition are the data in `word`, a result of [`of_formula`], and `slots`.
#[track_caller]
pub const fn check_data(info: &OpInfo, source: u64, word: u64, slots: u128) {
    assert!(of_data(info, source) == data_of(word), "the op's row differs by the type of its parameters");
    assert!(self::slots(info) == slots, "the op's row differs by the types of its operands and results");
}

/// Returns a word of [`of_formula`] without the element type.
const fn data_of(word: u64) -> u64 {
    word & ((1 << DATA_BITS) - 1)
}

/// Returns the part of a word of [`of_formula`] that is the same for all element types.
const fn of_data(info: &OpInfo, source: u64) -> u64 {
    let (word, left) = shape(info);
    let mut hash = (text(info) ^ source).wrapping_mul(PRIME);
    let mut i = 0;
    while i < info.params.len() {
        hash = (hash ^ info.params[i].kind as u64).wrapping_mul(PRIME);
        i += 1;
    }
    hash = (hash ^ (info.row_operands as u64) << 16 ^ info.row_results as u64).wrapping_mul(PRIME);
    let mut random = 0;
    i = 0;
    while i < info.random.len() {
        random = (random << 4) | (info.random[i] as u64 + 1);
        i += 1;
    }
    hash = (hash ^ random << 8 ^ info.indices as u64).wrapping_mul(PRIME);
    let mut i = 0;
    while i < info.operands.len() {
        hash = (hash ^ code(info.stored_operand(i))).wrapping_mul(PRIME);
        i += 1;
    }
    i = 0;
    while i < info.results.len() {
        hash = (hash ^ code(info.stored_result(i))).wrapping_mul(PRIME);
        i += 1;
    }
    word << left | (hash ^ hash >> 32) & ((1 << left) - 1)
}

/// Returns a number for a fixed element type, 0 for the op's.
const fn code(fixed: Option<DType>) -> u64 {
    match fixed {
        Some(dtype) => 1 + dtype as u64,
        None => 0,
    }
}

/// Returns the fields between the element type and the hash, which the word has as they are, and the bits left for the hash.
const fn shape(info: &OpInfo) -> (u64, u32) {
    let fields = [
        (info.operands.len() as u64, 4),
        (info.results.len() as u64, 4),
        (param_words(info) as u64, 4),
        (info.bool_operands() as u64, MAX_INPUTS as u32),
        (info.bool_results() as u64, MAX_OUTPUTS as u32),
        (info.has_place() as u64, 1),
        (info.is_of_rows() as u64, 1),
    ];
    let (mut word, mut left, mut i) = (0, DATA_BITS, 0);
    while i < fields.len() {
        let (field, bits) = fields[i];
        assert!(field >> bits == 0);
        word = word << bits | field;
        left -= bits;
        i += 1;
    }
    (word, left)
}

/// Checks that `word`, of [`of_formula`], is that of an op which tables of all pairs of codes serve: of two operands of the
/// element type to one result, without parameters or random words.
#[track_caller]
pub const fn check_pairs(word: u64) {
    const PAIRS: OpInfo = OpInfo { operands: &["a", "b"], ..OpInfo::FORMULA };
    const PREDICATE: OpInfo = OpInfo { result_types: &[Some(DType::Bool)], ..PAIRS };
    let (of_pairs, left) = shape(&PAIRS);
    let own = data_of(word) >> left;
    assert!(own == of_pairs || own == shape(&PREDICATE).0, "a table of pairs is of two operands and nothing else");
}

/// Returns the number of words that the parameters of a formula take.
#[must_use]
pub const fn param_words(info: &OpInfo) -> usize {
    let (mut words, mut i) = (0, 0);
    while i < info.params.len() {
        words += info.params[i].kind.words();
        i += 1;
    }
    words
}

/// Returns the word of a kernel that belongs to no op.
#[must_use]
pub const fn of_symbol(symbol: &str) -> u64 {
    let hash = mix(VERSION, symbol);
    0xffff_ffff << 32 | (hash ^ hash >> 32) as u32 as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Each;
    use crate::f16;

    const RELU: OpInfo = OpInfo { name: "relu", operands: &["x"], formula: "x.relu()", ..OpInfo::FORMULA };

    #[test]
    fn every_part_of_a_row_counts_but_its_spaces() {
        const PARAMS: &[crate::ParamInfo] = &[crate::ParamInfo::number("p", 1.0)];
        let constant = Properties { constant: true, ..RELU.properties };
        let others = [
            OpInfo { name: "other", ..RELU },
            OpInfo { kind: Kind::Gated, ..RELU },
            OpInfo { operands: &["a"], ..RELU },
            OpInfo { operands: &["x", "x"], ..RELU },
            OpInfo { results: &["y", "y"], ..RELU },
            OpInfo { params: PARAMS, ..RELU },
            OpInfo { properties: Properties { int_to_float: true, ..RELU.properties }, ..RELU },
            OpInfo { formula: "x", ..RELU },
            OpInfo { properties: constant, ..RELU },
        ];
        let texts: std::collections::BTreeSet<u64> = others.iter().chain([&RELU]).map(text).collect();
        assert_eq!(texts.len(), others.len() + 1);
        let spaced = |formula| text(&OpInfo { formula, ..RELU });
        assert_eq!(spaced("{ x.abs()\n    + a }"), spaced("{x.abs()+a}"));
        assert_ne!(spaced("x.abs() + a"), spaced("x.abs() - a"));
        assert_eq!(text(&OpInfo { doc: "other", ..RELU }), text(&RELU));
    }

    #[test]
    fn types_and_counts_stand_in_the_word() {
        let f32s = of_formula::<f32, One, 1, 1>(0);
        let f16s = of_formula::<f16, One, 1, 1>(0);
        assert!(f32s != f16s && data_of(f32s) == data_of(f16s));
        let two = of_formula::<f32, Two<false, false>, 2, 1>(0);
        assert_eq!([f32s, two].map(|word| word >> 44 & 0xfff), [0x111, 0x210]);
        check_data(&One::INFO, 0, f32s, slots(&One::INFO));
        assert_formulas_differ();
        assert_ne!(of_symbol("convert_f32_f16_flat"), of_symbol("convert_f16_f32_flat"));
        assert_eq!((of_symbol("any") >> 32) as u32, u32::MAX);
    }

    /// Whoever gives a row's definition chooses the hash of its sources, so that a hash alone tells no types apart.
    #[test]
    fn types_of_slots_are_compared_exactly() {
        const LABELS: OpInfo = OpInfo { operand_types: &[Some(DType::I64)], row_operands: 1, ..RELU };
        const BYTES: OpInfo = OpInfo { operand_types: &[Some(DType::I8)], ..LABELS };
        const WHOLE: OpInfo = OpInfo { row_operands: 0, ..LABELS };
        const RESULT: OpInfo =
            OpInfo { operand_types: &[], result_types: &[Some(DType::I64)], row_operands: 0, ..LABELS };
        assert_eq!(slots(&RELU), 0);
        let all = [slots(&RELU), slots(&LABELS), slots(&BYTES), slots(&WHOLE), slots(&RESULT)];
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
        check_data(&LABELS, 0, of_data(&LABELS, 0), slots(&LABELS));
        // The word alone is right.
        let checked = std::panic::catch_unwind(|| check_data(&BYTES, 0, of_data(&BYTES, 0), slots(&LABELS)));
        assert!(checked.is_err());
        // The last operand and the last result have their slots.
        const MANY: OpInfo = OpInfo { operand_types: &[Some(DType::I64); MAX_INPUTS], row_operands: 0xfff, ..RELU };
        const ALL: OpInfo = OpInfo { result_types: &[Some(DType::I64); MAX_OUTPUTS], row_results: 0xff, ..MANY };
        assert_eq!(slots(&ALL).count_ones(), (MAX_INPUTS + MAX_OUTPUTS) as u32 * slots(&LABELS).count_ones());
        const SUMS: OpInfo = OpInfo { weight_results: 0xff, ..ALL };
        assert_eq!(slots(&SUMS).count_ones(), slots(&ALL).count_ones() + 8);
    }

    #[test]
    fn classes_stand_in_the_word() {
        let word = of_formula::<f32, One, 1, 1>(0);
        let [flat, rows] = [EntryClass::Flat, EntryClass::Rows].map(|class| of_class(word, class));
        assert_eq!([flat, rows].map(|word| word >> (64 - CLASS_BITS)), [1, 2]);
        assert_eq!(flat << CLASS_BITS, rows << CLASS_BITS);
        assert!(std::panic::catch_unwind(|| of_class(flat, EntryClass::Rows)).is_err());
        // Kernels that belong to no op have all bits.
        assert!((EntryClass::Vectors as u64) < (1 << CLASS_BITS) - 1);
    }

    #[test]
    fn pairs_are_two_operands_and_nothing_else() {
        check_pairs(of_formula::<f16, Two<false, false>, 2, 1>(3));
        let others = [
            of_formula::<f16, Two<true, false>, 2, 1>(3),
            of_formula::<f16, Two<false, true>, 2, 1>(3),
            of_formula::<f32, One, 1, 1>(0),
        ];
        for word in others {
            assert!(std::panic::catch_unwind(|| check_pairs(word)).is_err(), "{word:x}");
        }
    }

    /// One operand and a parameter.
    #[derive(Clone, Copy)]
    struct One;

    impl OpData for One {
        const INFO: OpInfo = OpInfo { params: &[crate::ParamInfo::number("p", 1.0)], ..RELU };
        fn from_words(_: &crate::ParamWords) -> Self {
            One
        }
    }

    impl<T: Copy> Formula<T, 1, 1> for One {
        fn apply(self, x: [T; 1], _: [bool; 1], _: crate::At<'_>) -> ([T; 1], [bool; 1]) {
            (x, [false])
        }
    }

    #[derive(Clone, Copy)]
    struct Two<const BOOL: bool, const RANDOM: bool>;

    impl<const BOOL: bool, const RANDOM: bool> OpData for Two<BOOL, RANDOM> {
        const INFO: OpInfo = OpInfo {
            name: "two",
            operands: &["a", "b"],
            operand_types: if BOOL { &[None, Some(DType::Bool)] } else { &[] },
            random: if RANDOM { &[Each::Element] } else { &[] },
            ..OpInfo::FORMULA
        };
        fn from_words(_: &crate::ParamWords) -> Self {
            Two
        }
    }

    impl<T: Copy, const BOOL: bool, const RANDOM: bool> Formula<T, 2, 1> for Two<BOOL, RANDOM> {
        fn apply(self, [a, _]: [T; 2], _: [bool; 2], _: crate::At<'_>) -> ([T; 1], [bool; 1]) {
            ([a], [false])
        }
    }

    fn assert_formulas_differ() {
        let words = [
            of_formula::<f32, Two<false, false>, 2, 1>(0),
            of_formula::<f16, Two<false, false>, 2, 1>(0),
            of_formula::<f32, Two<true, false>, 2, 1>(0),
            of_formula::<f32, Two<false, true>, 2, 1>(0),
            of_formula::<f32, Two<false, false>, 2, 1>(1),
        ];
        let upper: std::collections::BTreeSet<u64> = words[..4].iter().map(|word| word >> 22).collect();
        assert_eq!(upper.len(), 4);
        assert_eq!(words[0] >> 22, words[4] >> 22);
        assert_ne!(words[0], words[4]);
        assert_eq!(words[0] >> 44, (DType::F32 as u64) << 12 | 0x210);
    }
}
