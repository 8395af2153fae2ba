//! Tensors made of their indices: position encodings.

use crate::maths::phase::{exp2_f64, multiple, phase_of_exp2, sincos_phase, sincos_phase_coarse};
use crate::maths::prim::fma;
use crate::op::{DescribedOp, GeneratorOp, RUN, Words};
use crate::{Accuracy, DType, Kind, OpInfo, Properties};

/// The element types.
const TYPES: &[DType] = &DType::FLOATS;

/// The shared data of the encodings.
const ENCODING: OpInfo = OpInfo {
    kind: Kind::Generator,
    types: TYPES,
    properties: Properties { of_family: true, ..Properties::NONE },
    ..OpInfo::FORMULA
};

/// ALiBi's slope of head `head` of `heads` (Press, Smith and Lewis, "Train Short, Test Long", ICLR 2022): a geometric
/// sequence from `2^(-8/P)` on for the first `P`, the largest power of two among the head counts up to `heads`; then
/// every other slope of `2 P` heads. `None` for a head that does not exist.
pub fn alibi_slope(heads: u32, head: u32) -> Option<f64> {
    (head < heads).then(|| Alibi::new(heads).slope(head))
}

/// ALiBi's bias `-slope(plane) |row - column|`; a plane is a head.
#[derive(Clone, Copy, Debug)]
pub struct Alibi {
    /// The largest power of two that is at most the number of heads.
    power: u32,
}

/// A column of [`Alibi`]: the head's slope, negative, in two parts, and the column.
#[derive(Clone, Copy, Debug)]
pub struct AlibiColumn {
    high: f32,
    low: f32,
    index: u32,
}

impl Alibi {
    /// For a number of heads, at least 1.
    pub const fn new(heads: u32) -> Alibi {
        Alibi { power: 1 << (31 - (heads | 1).leading_zeros()) }
    }

    /// The parameters, as kernels take them.
    pub const fn words(self) -> Words {
        [self.power as u64, 0, 0, 0]
    }

    #[inline(always)]
    fn slope(self, head: u32) -> f64 {
        // Eighths of a power of two: every exponent is exact.
        let beyond = head.wrapping_sub(self.power);
        let halves = if head < self.power { 16 * (head as u64 + 1) } else { 8 * (2 * beyond as u64 + 1) };
        // A power of two divides exactly by its inverse, whose exponent is 1023 - log2.
        let inverse = f64::from_bits(((1023 - self.power.trailing_zeros()) as u64) << 52);
        exp2_f64(halves as f64 * -0.5 * inverse)
    }

    #[inline(always)]
    fn distance(column: AlibiColumn, row: u32) -> f32 {
        // Exact: a square of 2^24 rows fits no memory.
        (row as f32 - column.index as f32).abs()
    }
}

impl GeneratorOp for Alibi {
    type Column = AlibiColumn;
    #[inline(always)]
    fn column(self, plane: u32, column: u32) -> AlibiColumn {
        let slope = -self.slope(plane);
        let high = slope as f32;
        AlibiColumn { high, low: (slope - high as f64) as f32, index: column }
    }
    #[inline(always)]
    fn element(self, column: AlibiColumn, row: u32) -> f32 {
        let distance = Alibi::distance(column, row);
        // The low part makes it one rounding; added to 0, the diagonal is +0.
        fma(column.high, distance, fma(column.low, distance, 0.0))
    }
    #[inline(always)]
    fn next(self, column: AlibiColumn, row: u32) -> (f32, AlibiColumn) {
        // The nearest f32 of 24 bits is near enough to round to 3 or 4 of them.
        (fma(column.high, Alibi::distance(column, row), 0.0), column)
    }
}

impl DescribedOp for Alibi {
    const INFO: OpInfo = OpInfo {
        name: "alibi",
        shape: &["num_heads", "seq_len", "seq_len"],
        accuracy: Accuracy::Ulp(1.0),
        doc: "ALiBi's bias `-slope(h) |i - j|`, (num_heads, seq_len, seq_len).\n",
        formula: "-slope(h) * |i - j|",
        ..ENCODING
    };
    #[inline(always)]
    fn from_words([power, ..]: Words) -> Self {
        Alibi { power: power as u32 }
    }
}

/// [`Alibi`] with `-inf` behind the diagonal.
#[derive(Clone, Copy, Debug)]
pub struct AlibiCausal(
    /// The bias on and below the diagonal.
    pub Alibi,
);

impl GeneratorOp for AlibiCausal {
    type Column = AlibiColumn;
    const ROWS: [u32; 3] = [16, 8, 4];
    #[inline(always)]
    fn column(self, plane: u32, column: u32) -> AlibiColumn {
        self.0.column(plane, column)
    }
    #[inline(always)]
    fn element(self, column: AlibiColumn, row: u32) -> f32 {
        if column.index > row { f32::NEG_INFINITY } else { self.0.element(column, row) }
    }
    #[inline(always)]
    fn next(self, column: AlibiColumn, row: u32) -> (f32, AlibiColumn) {
        let (value, column) = self.0.next(column, row);
        (if column.index > row { f32::NEG_INFINITY } else { value }, column)
    }
}

impl DescribedOp for AlibiCausal {
    const INFO: OpInfo = OpInfo {
        name: "alibi_causal",
        doc: "ALiBi's bias, (num_heads, seq_len, seq_len), with -inf for `j > i`.\n",
        formula: "if j > i { -inf } else { -slope(h) * (i - j) }",
        ..Alibi::INFO
    };
    #[inline(always)]
    fn from_words(words: Words) -> Self {
        AlibiCausal(Alibi::from_words(words))
    }
}

/// The position encoding of Vaswani et al., "Attention Is All You Need" (2017), interleaved: column `2 i` is
/// `sin(p w)`, column `2 i + 1` is `cos(p w)`, with `w = 10000^(-2 i / d_model)`.
///
/// The angle is kept in 2^-64 turns, so that a multiple of it is exact modulo a turn: the error is 3 ulp of the result
/// and `p 2^-46 w` radians, where f32 angles have `p 2^-24 w`. What 16 bits are rounded from, four rows made of the
/// first of them, is within `2^-22` and `p 2^-46 w` of the result; 8 bits, a run of rows made of its first, within
/// `2^-18`.
#[derive(Clone, Copy, Debug)]
pub struct Sinusoidal {
    /// log2 of the ratio of a frequency to the one before.
    step: f64,
}

impl Sinusoidal {
    /// For an even number of columns, at least 2.
    pub fn new(d_model: u32) -> Sinusoidal {
        Sinusoidal { step: -2.0 * core::f64::consts::LOG2_10 * 4.0 / f64::from(d_model) }
    }

    /// The parameters, as kernels take them.
    pub const fn words(self, d_model: u32) -> Words {
        [self.step.to_bits(), d_model as u64 / 2, 0, 0]
    }

    #[inline(always)]
    fn frequency(self, pair: u32) -> u64 {
        phase_of_exp2(pair as f64 * self.step)
    }
}

/// A column of [`Sinusoidal`]: its frequency in 2^-64 turns, and whether it is a cosine; also what the next
/// rows are made of, in groups and in runs.
#[derive(Clone, Copy, Debug)]
pub struct SinusoidalColumn {
    frequency: u64,
    is_cosine: bool,
    /// Sine and cosine of the row at hand, in a group.
    here: (f32, f32),
    /// Those of the frequency.
    turn: (f32, f32),
    /// The element of the row at hand.
    value: f32,
    /// By how much the next row's is larger.
    change: f32,
    /// The change falls by this times the element, from row to row: `4 sin^2(w / 2)`.
    bend: f32,
}

impl SinusoidalColumn {
    #[inline(always)]
    fn new(frequency: u64, is_cosine: bool) -> Self {
        let turn = sincos_phase_coarse(frequency);
        SinusoidalColumn { frequency, is_cosine, here: (0.0, 0.0), turn, value: 0.0, change: 0.0, bend: 0.0 }
    }
    #[inline(always)]
    fn begin_group(self, phase: u64) -> Self {
        SinusoidalColumn { here: sincos_phase_coarse(phase), ..self }
    }
    #[inline(always)]
    fn turned(self) -> Self {
        let ((sin, cos), (turn_sin, turn_cos)) = (self.here, self.turn);
        let here = (fma(cos, turn_sin, sin * turn_cos), fma(-sin, turn_sin, cos * turn_cos));
        SinusoidalColumn { here, ..self }
    }
    #[inline(always)]
    fn begin(self, row: u32) -> Self {
        let phase = self.phase(row);
        // sin(p + w) - sin p = 2 sin(w / 2) cos(p + w / 2), and so on: small frequencies lose no digits.
        let half = self.frequency / 2;
        let chord = 2.0 * sincos_phase(half).0;
        let (sin, cos) = sincos_phase(phase.wrapping_add(half));
        let change = chord * if self.is_cosine { -sin } else { cos };
        SinusoidalColumn { value: self.at(row), change, bend: chord * chord, ..self }
    }
    #[inline(always)]
    fn next(self) -> (f32, Self) {
        let value = self.value + self.change;
        (self.value, SinusoidalColumn { value, change: fma(-self.bend, value, self.change), ..self })
    }
    #[inline(always)]
    fn at(self, row: u32) -> f32 {
        self.of(sincos_phase(self.phase(row)))
    }
    #[inline(always)]
    fn phase(self, row: u32) -> u64 {
        multiple(row, self.frequency)
    }
    #[inline(always)]
    fn of(self, (sin, cos): (f32, f32)) -> f32 {
        if self.is_cosine { cos } else { sin }
    }
}

impl GeneratorOp for Sinusoidal {
    type Column = SinusoidalColumn;
    const IS_BOUNDED: bool = true;
    const ROWS: [u32; 3] = [RUN, 8, 8];
    #[inline(always)]
    fn column(self, _: u32, column: u32) -> SinusoidalColumn {
        SinusoidalColumn::new(self.frequency(column / 2), column & 1 != 0)
    }
    #[inline(always)]
    fn begin_group(self, column: SinusoidalColumn, row: u32) -> SinusoidalColumn {
        // The column beside it shares what is the same in both.
        column.begin_group(column.phase(row))
    }
    #[inline(always)]
    fn next_of_group(self, column: SinusoidalColumn, _: u32) -> (f32, SinusoidalColumn) {
        (column.of(column.here), column.turned())
    }
    #[inline(always)]
    fn element(self, column: SinusoidalColumn, row: u32) -> f32 {
        column.at(row)
    }
    #[inline(always)]
    fn begin(self, column: SinusoidalColumn, row: u32) -> SinusoidalColumn {
        column.begin(row)
    }
    #[inline(always)]
    fn next(self, column: SinusoidalColumn, _: u32) -> (f32, SinusoidalColumn) {
        column.next()
    }
}

impl DescribedOp for Sinusoidal {
    const INFO: OpInfo = OpInfo {
        name: "sinusoidal",
        shape: &["seq_len", "d_model"],
        accuracy: Accuracy::Ulp(3.0),
        doc: "Sine and cosine position encoding, (seq_len, d_model), interleaved.\n",
        formula: "sin(p * 10000^(-2 i / d_model)), cos(p * 10000^(-2 i / d_model))",
        ..ENCODING
    };
    #[inline(always)]
    fn from_words([step, ..]: Words) -> Self {
        Sinusoidal { step: f64::from_bits(step) }
    }
}

/// [`Sinusoidal`] with all sines before all cosines.
#[derive(Clone, Copy, Debug)]
pub struct SinusoidalHalves {
    pairs: u32,
    frequencies: Sinusoidal,
}

impl GeneratorOp for SinusoidalHalves {
    type Column = SinusoidalColumn;
    const IS_BOUNDED: bool = true;
    const ROWS: [u32; 3] = [RUN; 3];
    #[inline(always)]
    fn column(self, _: u32, column: u32) -> SinusoidalColumn {
        let is_cosine = column >= self.pairs;
        let pair = if is_cosine { column - self.pairs } else { column };
        SinusoidalColumn::new(self.frequencies.frequency(pair), is_cosine)
    }
    #[inline(always)]
    fn begin_group(self, column: SinusoidalColumn, row: u32) -> SinusoidalColumn {
        // A cosine as a sine a quarter turn on: one formula for all columns.
        let quarter = if column.is_cosine { 1 << 62 } else { 0 };
        column.begin_group(column.phase(row).wrapping_add(quarter))
    }
    #[inline(always)]
    fn next_of_group(self, column: SinusoidalColumn, _: u32) -> (f32, SinusoidalColumn) {
        (column.here.0, column.turned())
    }
    #[inline(always)]
    fn element(self, column: SinusoidalColumn, row: u32) -> f32 {
        column.at(row)
    }
    #[inline(always)]
    fn begin(self, column: SinusoidalColumn, row: u32) -> SinusoidalColumn {
        column.begin(row)
    }
    #[inline(always)]
    fn next(self, column: SinusoidalColumn, _: u32) -> (f32, SinusoidalColumn) {
        column.next()
    }
}

impl DescribedOp for SinusoidalHalves {
    const INFO: OpInfo = OpInfo {
        name: "sinusoidal_halves",
        doc: "Sine and cosine position encoding, (seq_len, d_model), all sines first.\n",
        ..Sinusoidal::INFO
    };
    #[inline(always)]
    fn from_words(words: Words) -> Self {
        SinusoidalHalves { pairs: words[1] as u32, frequencies: Sinusoidal::from_words(words) }
    }
}
