//! Every level gives the same bits, wherever operands and result lie.

use std::array::from_fn;

use pointwise_core::element::Bool;
use pointwise_core::formula::{Formula, OpData, ParamWords};
use pointwise_core::launch::MAX_DIMS;
use pointwise_core::{At, Draw, Element, Num, OpInfo, Word, bf16};

use super::formula::{FormulaRun, formula};
use super::level::at_each;
use crate::kernel::{OpDef, Walk};
use crate::{DType, Device, Result, Shape, Tensor, TensorViewMut, info};

const TYPES: [DType; 6] = [DType::F32, DType::BF16, DType::F16, DType::F8E4M3, DType::I32, DType::I8];
/// Around a vector, a block, and several of them.
const SIZES: [usize; 5] = [1, 15, 33, 257, 1500];

/// `n` elements of any bits.
fn noise(dtype: DType, n: usize, seed: u64) -> Tensor {
    let mut state = seed;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    let bytes: Vec<u8> = (0..n * dtype.size()).map(|_| byte()).collect();
    Tensor::from_bytes(&Device::cpu(), dtype, &bytes, [n]).unwrap()
}

/// The bits, all NaNs as one.
fn bits(y: &Tensor) -> Vec<u8> {
    let is_nan = crate::ops::isnan(y).unwrap().to_bytes().unwrap();
    let size = y.dtype().size();
    let mut bytes = y.to_bytes().unwrap();
    for (element, _) in bytes.chunks_exact_mut(size).zip(is_nan).filter(|(_, is_nan)| *is_nan != 0) {
        element.fill(0xff);
    }
    bytes
}

/// The result of `run` at each level, in a new tensor; `inplace` gives it written over the first operand.
fn check(name: &str, fresh: impl Fn() -> Result<Tensor>, inplace: Option<&dyn Fn() -> Result<Tensor>>) {
    let mut expected = None;
    at_each(|level| {
        let y = bits(&fresh().unwrap());
        assert_eq!(expected.get_or_insert_with(|| y.clone()), &y, "{name} at level {level}");
        if let Some(inplace) = inplace {
            assert_eq!(expected.as_ref(), Some(&bits(&inplace().unwrap())), "{name} in place at level {level}");
        }
    });
}

#[test]
fn unary_ops_agree() {
    for dtype in TYPES {
        for def in info::all().filter(|def| def.info.is_unary() && def.info.supports(dtype)) {
            let same = def.info.result_type(0, dtype) == dtype;
            for n in SIZES {
                let x = noise(dtype, n, 1 + n as u64);
                let inplace = || {
                    let mut y = x.view().to_tensor()?;
                    def.unary_with(&[]).run_inplace(&mut y).map(|()| y)
                };
                let name = format!("{} of {n} {dtype}", def.info.name);
                check(&name, || def.unary_with(&[]).run(&x), same.then_some(&inplace));
            }
        }
    }
}

#[test]
fn angles_of_any_size_agree() {
    // One large angle in a block of small ones, at each end of a vector.
    for dtype in [DType::F32, DType::BF16, DType::F16] {
        for def in ["sin", "cos"].map(|name| info::op(name).unwrap()) {
            for at in [0, 255, 256, 600] {
                let mut angles: Vec<f32> = (0..700).map(|i| i as f32 * 0.37 - 100.0).collect();
                angles[at] = 60_000.0;
                let x = Tensor::from_slice(&Device::cpu(), &angles, [700]).unwrap().to_dtype(dtype).unwrap();
                check(&format!("{} of {dtype}", def.info.name), || def.unary_with(&[]).run(&x), None);
            }
        }
    }
}

#[test]
fn binary_ops_agree() {
    for dtype in TYPES {
        // The weight of prelu has a shape of its own.
        let is_binary = |def: &OpDef| {
            let info = &def.info;
            info.operands.len() == 2 && !info.is_gradient() && info.channel_operands == 0 && !def.takes_halves()
        };
        for def in info::all().filter(|def| is_binary(def) && def.info.supports(dtype)) {
            let kernel = def.binary_with(&[]);
            let same = def.info.result_type(0, dtype) == dtype;
            for n in SIZES {
                let (a, b, one) = (noise(dtype, n, 3), noise(dtype, n, 5), noise(dtype, 1, 7));
                // A second operand of its own, one that is the same for all, and a number.
                for b in [&b, &one] {
                    let inplace = || {
                        let mut y = a.view().to_tensor()?;
                        kernel.run_inplace(TensorViewMut::from(&mut y), b).map(|()| y)
                    };
                    let name = format!("{} of {n} {dtype}", def.info.name);
                    check(&name, || kernel.run(&a, b), same.then_some(&inplace));
                }
                check(&format!("{} of {n} {dtype} and 3", def.info.name), || kernel.run(&a, 3), None);
            }
        }
    }
}

const NAMES: &[&str] = &["a", "b", "c"];
const ROWS: usize = 3;
/// More than a block.
const COLUMNS: usize = 300;

/// The sum of operands, each of half the weight of the one before it, or a test if the sum is above 0. The operands of
/// `BOOLS` are bools.
#[derive(Clone, Copy)]
struct Mixed<const N: usize, const BOOLS: u16, const ANSWER: bool>;

impl<const N: usize, const BOOLS: u16, const ANSWER: bool> Mixed<N, BOOLS, ANSWER> {
    const OPERANDS: [Option<DType>; 3] = [bool_if(BOOLS & 1 == 1), bool_if(BOOLS & 2 == 2), bool_if(BOOLS & 4 == 4)];
    const RESULT: [Option<DType>; 1] = [bool_if(ANSWER)];
}

const fn bool_if(is_bool: bool) -> Option<DType> {
    if is_bool { Some(DType::Bool) } else { None }
}

impl<const N: usize, const BOOLS: u16, const ANSWER: bool> OpData for Mixed<N, BOOLS, ANSWER> {
    const INFO: OpInfo = OpInfo {
        operands: NAMES.split_at(N).0,
        operand_types: Self::OPERANDS.split_at(N).0,
        result_types: &Self::RESULT,
        ..OpInfo::FORMULA
    };

    fn from_words(_: &ParamWords) -> Self {
        Mixed
    }
}

impl<T: Num, const N: usize, const BOOLS: u16, const ANSWER: bool> Formula<T, N, 1> for Mixed<N, BOOLS, ANSWER> {
    fn apply(self, values: [T; N], truths: [bool; N], _: At<'_>) -> ([T; 1], [bool; 1]) {
        let mut sum = T::ZERO;
        for k in 0..N {
            let truth = if truths[k] { T::ONE } else { T::ZERO };
            sum = sum + sum + if BOOLS >> k & 1 == 1 { truth } else { values[k] };
        }
        ([sum], [sum > T::ZERO])
    }
}

/// The form of an operand.
#[derive(Clone, Copy, Debug)]
enum Form {
    Number,
    One,
    Row,
    Column,
    Full,
}

impl Form {
    const ALL: [Form; 5] = [Form::Number, Form::One, Form::Row, Form::Column, Form::Full];

    /// From one row to the next, and from one column to the next.
    fn steps(self) -> [usize; 2] {
        match self {
            Form::Number | Form::One => [0, 0],
            Form::Row => [0, 1],
            Form::Column => [1, 0],
            Form::Full => [COLUMNS, 1],
        }
    }

    fn place(self, row: usize, column: usize) -> usize {
        let [along_rows, along_columns] = self.steps();
        row * along_rows + column * along_columns
    }

    fn along(self) -> [i64; MAX_DIMS] {
        let mut along = [0; MAX_DIMS];
        for (along, step) in along.iter_mut().zip(self.steps()) {
            *along = step as i64;
        }
        along
    }
}

/// An op of one kind in one element type, each operand in each form, at each level; in a new result, and over each operand
/// and several at once, where these are the very same memory.
fn check_mixed<E: Element, const N: usize, const BOOLS: u16, const ANSWER: bool>()
where
    E::Compute: Num,
{
    let is_bool = |k: usize| BOOLS >> k & 1 == 1;
    let whole = |k: usize, i: usize| {
        let noise = (i as u64 * 31 + k as u64 * 17 + 5).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        if is_bool(k) { (noise % 2) as i64 } else { (noise % 19) as i64 - 9 }
    };
    for forms in 0..Form::ALL.len().pow(N as u32) {
        let forms: [Form; N] = from_fn(|k| Form::ALL[forms / Form::ALL.len().pow(k as u32) % Form::ALL.len()]);
        let len = |k: usize| forms[k].place(ROWS - 1, COLUMNS - 1) + 1;
        // No longer than they are read: what is behind them is not theirs.
        let values: [Vec<E>; N] = from_fn(|k| (0..len(k)).map(|i| E::from_f64(whole(k, i) as f64)).collect());
        let truths: [Vec<Bool>; N] = from_fn(|k| (0..len(k)).map(|i| Bool(u8::from(whole(k, i) == 1))).collect());
        let is_number = |k: usize| matches!(forms[k], Form::Number);
        let pointers: [*const u8; N] = from_fn(|k| match (is_number(k), is_bool(k)) {
            (true, _) => std::ptr::null(),
            (_, true) => truths[k].as_ptr().cast(),
            _ => values[k].as_ptr().cast(),
        });
        let word = |k: usize| if is_bool(k) { truths[k][0].widen().to_word() } else { values[k][0].widen().to_word() };
        let given: [Option<u64>; N] = from_fn(|k| is_number(k).then(|| word(k)));
        let along: [[i64; MAX_DIMS]; 4] = from_fn(|k| match k {
            0 => Form::Full.along(),
            _ => forms.get(k - 1).map_or([0; MAX_DIMS], |form| form.along()),
        });
        let walk = Walk::new(&Shape::new(&[ROWS, COLUMNS]).unwrap(), &along);
        let dtype = |is_bool: bool| if is_bool { DType::Bool } else { E::DTYPE };
        let may_be_result = |k: usize| is_bool(k) == ANSWER && matches!(forms[k], Form::Full);
        let check = |level: u8, over: u32| {
            let is_over = |k: usize| over >> k & 1 == 1;
            let first = over.trailing_zeros() as usize;
            let (mut y, mut answer) = match over {
                0 => (vec![E::from_f64(0.0); ROWS * COLUMNS], vec![Bool(0); ROWS * COLUMNS]),
                _ => (values[first].clone(), truths[first].clone()),
            };
            let result: *mut u8 = if ANSWER { answer.as_mut_ptr().cast() } else { y.as_mut_ptr().cast() };
            let operands: [*const u8; N] = from_fn(|k| if is_over(k) { result.cast_const() } else { pointers[k] });
            let run = FormulaRun {
                op: formula::<E, E, Mixed<N, BOOLS, ANSWER>, N, 1>,
                walk: &walk,
                operands: &operands,
                given: &given,
                results: &[result],
                dtypes: from_fn(|k| dtype(if k == 0 { ANSWER } else { is_bool(k - 1) })),
                words: &ParamWords::default(),
                draw: Draw::NONE,
            };
            // SAFETY: the walk's places lie in the vectors, of the types that the op has.
            unsafe { run.run() };
            for (i, (y, answer)) in y.iter().zip(&answer).enumerate() {
                let of = |k: usize| if is_over(k) { first } else { k };
                let part = |k: usize| whole(of(k), forms[k].place(i / COLUMNS, i % COLUMNS));
                let sum = (0..N).fold(0, |sum, k| 2 * sum + part(k));
                let (got, expected) =
                    if ANSWER { (answer.to_f64(), f64::from(u8::from(sum > 0))) } else { (y.to_f64(), sum as f64) };
                let name = format!("{}, bools {BOOLS:b}, {forms:?}, over {over:b}, at level {level}", E::DTYPE);
                assert_eq!(got, expected, "element {i} of {name}");
            }
        };
        let over = |over: &u32| (0..N).all(|k| over >> k & 1 == 0 || may_be_result(k));
        at_each(|level| (0..1 << N).filter(over).for_each(|over| check(level, over)));
    }
}

fn check_all_mixed<E: Element>()
where
    E::Compute: Num,
{
    check_mixed::<E, 1, 0, false>();
    check_mixed::<E, 1, 0b1, true>();
    check_mixed::<E, 2, 0, false>();
    check_mixed::<E, 2, 0, true>();
    check_mixed::<E, 2, 0b11, true>();
    check_mixed::<E, 3, 0, false>();
    check_mixed::<E, 2, 0b01, false>();
    check_mixed::<E, 2, 0b10, false>();
    check_mixed::<E, 3, 0b001, false>();
    check_mixed::<E, 3, 0b010, false>();
    check_mixed::<E, 3, 0b100, false>();
    check_mixed::<E, 3, 0b011, false>();
    check_mixed::<E, 3, 0b101, false>();
    check_mixed::<E, 3, 0b110, false>();
    check_mixed::<E, 2, 0b01, true>();
    check_mixed::<E, 2, 0b10, true>();
    check_mixed::<E, 3, 0b010, true>();
    check_mixed::<E, 3, 0b101, true>();
}

#[test]
fn bools_beside_elements_of_every_size_agree() {
    check_all_mixed::<i8>();
    check_all_mixed::<i16>();
    check_all_mixed::<f32>();
    check_all_mixed::<i64>();
    // Results of a rounded type go by blocks.
    check_mixed::<bf16, 1, 0, false>();
    check_mixed::<bf16, 2, 0, false>();
    check_mixed::<bf16, 2, 0b10, false>();
    check_mixed::<bf16, 2, 0b10, true>();
}

#[test]
fn a_number_that_no_element_has_is_not_rounded() {
    // 2 a + b is above 0 by less than bf16 can tell.
    let a = vec![bf16::from_f32(1.0); 700];
    let b = -2.0_f32 * (1.0 - f32::EPSILON * 64.0);
    let pointers = [a.as_ptr().cast(), std::ptr::null()];
    let mut steps = [[0; MAX_DIMS]; 4];
    (steps[0][0], steps[1][0]) = (1, 1);
    let walk = Walk::new(&Shape::new(&[a.len()]).unwrap(), &steps);
    at_each(|level| {
        let mut answer = vec![Bool(0); a.len()];
        let run = FormulaRun {
            op: formula::<bf16, bf16, Mixed<2, 0, true>, 2, 1>,
            walk: &walk,
            operands: &pointers,
            given: &[None, Some(b.to_word())],
            results: &[answer.as_mut_ptr().cast()],
            dtypes: [DType::Bool, DType::BF16, DType::BF16, DType::BF16],
            words: &ParamWords::default(),
            draw: Draw::NONE,
        };
        // SAFETY: the walk's places lie in the vectors, of the types that the op has.
        unsafe { run.run() };
        assert!(answer.iter().all(|answer| answer.0 == 1), "at level {level}");
    });
}
