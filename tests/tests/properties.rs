//! Compares the properties of rows with their formulas.

use pointwise::{DType, Number, info::OpInfo};
use pointwise_core::op::MAX_PARAMS;
use pointwise_core::{BinaryFunction, SignChange};

const DEFAULTS: [Number; MAX_PARAMS] = [Number::Default; MAX_PARAMS];

const VALUES: [f64; 9] = [0.0, -0.0, 1.0, -1.0, 2.5, -7.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];

fn infos() -> impl Iterator<Item = &'static OpInfo> {
    tests::all().map(|def| &def.info)
}

/// Every sine or cosine of the family is of the last operand.
#[test]
fn rows_of_a_sine_or_cosine_say_so() {
    for info in infos() {
        let has = |function: &str| info.formula.contains(function);
        let last = info.operands.last().unwrap();
        let angle = [".sin()", ".cos()"].iter().any(|function| has(&format!("{last}{function}")));
        assert_eq!(info.properties.angle, angle, "{}: {}", info.name, info.formula);
    }
    assert_eq!(infos().filter(|info| info.properties.angle).count(), 4);
}

#[test]
fn rows_that_are_a_function_of_two_operands_say_so() {
    let functions = [
        (BinaryFunction::Quotient, "a / b"),
        (BinaryFunction::TruncatedQuotient, "a.trunc_divide(b)"),
        (BinaryFunction::FlooredQuotient, "a.floor_divide(b)"),
        (BinaryFunction::Modulo, "a.remainder(b)"),
        (BinaryFunction::Power, "a.pow(b)"),
    ];
    for info in infos() {
        let is = functions.iter().find(|(_, formula)| !info.is_gradient() && info.formula == *formula);
        assert_eq!(info.properties.function, is.map(|(function, _)| *function), "{}: {}", info.name, info.formula);
    }
    for (function, formula) in functions {
        let rows = infos().filter(|info| info.properties.function == Some(function)).count();
        assert_eq!(rows, 1, "{formula}");
    }
}

#[test]
fn rows_have_pytorchs_rules_for_numbers_and_bool() {
    let names = |has: fn(&OpInfo) -> bool| infos().filter(|info| has(info)).map(|info| info.name).collect::<Vec<_>>();
    assert_eq!(names(|info| info.properties.factor_alpha), ["add", "sub"]);
    assert_eq!(names(|info| info.properties.refuses_bool), ["sub"]);
    assert_eq!(names(|info| info.properties.whole_parameter), ["round_decimals"]);
    assert_eq!(names(|info| info.properties.copies_ints), ["round_decimals", "nan_to_num"]);
}

/// The op's formula in f64 on up to three operands.
type Oracle = Box<dyn Fn([f64; 3]) -> f64>;

/// Ops that have one, with their formula.
fn oracles() -> Vec<(&'static OpInfo, Oracle)> {
    let mut all: Vec<(&OpInfo, Oracle)> = Vec::new();
    for def in tests::all().filter(|def| def.info.supports(DType::F32) && def.info.results.len() == 1) {
        let oracle = def.oracle(DType::F32, &DEFAULTS).unwrap().unwrap();
        all.push((&def.info, Box::new(move |x| oracle.of(&x[..def.info.operands.len()]))));
    }
    all
}

fn tuples() -> impl Iterator<Item = [f64; 3]> {
    (0..VALUES.len().pow(3)).map(|at| [at / 81, at / 9 % 9, at % 9].map(|k| VALUES[k]))
}

#[test]
fn what_rows_promise_is_what_their_formulas_do() {
    let mut promises = [0; 3];
    for (info, oracle) in oracles() {
        let as_truth = |x: f64| if x == 0.0 { 0.0 } else { 1.0 };
        let by_truths = tuples().all(|x| oracle(x) == oracle(x.map(as_truth)));
        assert_eq!(
            info.properties.truths,
            info.bool_results() == 1 && by_truths,
            "{}: by the truth of its operands alone",
            info.name
        );
        let first = oracle([0.0; 3]).to_bits();
        let constant = tuples().all(|x| oracle(x).to_bits() == first);
        assert_eq!(info.properties.constant, constant, "{}: depends on no operand", info.name);
        let changes = |sign: fn(f64) -> f64| tuples().all(|x| oracle(x).to_bits() == sign(x[0]).to_bits());
        let sign = match () {
            () if info.operands.len() > 1 => None,
            () if changes(f64::abs) => Some(SignChange::Clear),
            () if changes(|x| -x) => Some(SignChange::Flip),
            () => None,
        };
        assert_eq!(info.properties.sign, sign, "{}: what it does to the sign", info.name);
        promises[0] += usize::from(by_truths && info.properties.truths);
        promises[1] += usize::from(constant);
        promises[2] += usize::from(sign.is_some());
    }
    assert_eq!(promises, [3, 6, 2], "truths, constant, sign");
}

#[test]
fn gradients_that_read_nothing_say_so() {
    for def in tests::gradients() {
        let oracle = def.oracle(DType::F32, &DEFAULTS).unwrap().unwrap();
        let bits = |x: [f64; 4]| oracle.at(&x, 0).into_iter().map(f64::to_bits).collect::<Vec<_>>();
        let first = bits([0.0; 4]);
        let constant = tuples().all(|[a, b, c]| bits([a, b, c, a]) == first);
        assert_eq!(def.info.properties.constant, constant, "{}", def.info.name);
    }
}
