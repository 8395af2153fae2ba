//! Random calls: op, element type, size, offsets and parameters. Each result equals a call's on its element alone,
//! and nothing around the output changes. On the devices of `Device::for_tests`.

use pointwise::{DType, Device, Number, Strategy, Tensor, info::ParamInfo, kernel::UnaryKernel};
use pointwise_testkit::{inputs, judge};
use proptest::prelude::{any, prop_assert};
use proptest::sample::Index;
use proptest::strategy::Strategy as _;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

/// Elements in front of and behind the output that must stay as they are.
const MARGIN: usize = 17;

#[derive(Clone, Debug)]
struct Call {
    op: Index,
    dtype: Index,
    strategy: Index,
    n: usize,
    x_at: usize,
    y_at: usize,
    params: [Option<i8>; 4],
    seed: u64,
    /// Elements that get a call of their own on a GPU: each costs a launch and copies. On the CPU all get one.
    singles: [Index; 8],
}

fn calls() -> impl proptest::strategy::Strategy<Value = Call> {
    let indices = (any::<Index>(), any::<Index>(), any::<Index>());
    let places = (0..=1025_usize, 0..MARGIN, 0..MARGIN);
    (indices, places, any::<[Option<i8>; 4]>(), any::<u64>(), any::<[Index; 8]>()).prop_map(
        |((op, dtype, strategy), (n, x_at, y_at), params, seed, singles)| Call {
            op,
            dtype,
            strategy,
            n,
            x_at,
            y_at,
            params,
            seed,
            singles,
        },
    )
}

#[test]
fn random_calls() {
    for device in Device::for_tests(pointwise::embed::embedded()).expect("devices that can be used") {
        let config = Config { cases: 4096, failure_persistence: None, ..Config::default() };
        let outcome = TestRunner::new(config).run(&calls(), |call| check(&device, &call));
        outcome.unwrap_or_else(|error| panic!("{device}: {error}"));
    }
}

fn check(device: &Device, call: &Call) -> Result<(), TestCaseError> {
    let fail = |error: pointwise::Error| TestCaseError::fail(error.to_string());
    let all: Vec<_> = tests::unary().collect();
    let def = *call.op.get(&all);
    let dtype = *call.dtype.get(def.info.types);
    let strategies: Vec<Strategy> = Strategy::ALL.into_iter().filter(|s| s.serves(&def.info, dtype)).collect();
    let mut params = [Number::Default; 4];
    for ((slot, given), info) in params.iter_mut().zip(call.params).zip(def.info.params) {
        *slot = given.map_or(Number::Default, |given| parameter(info, dtype, given));
    }
    let kernel = def.unary_with(&params).strategy(*call.strategy.get(&strategies));

    let x_bytes = inputs::mixed(dtype, call.x_at + call.n, call.seed);
    let x = Tensor::from_bytes(device, dtype, &x_bytes, [call.x_at + call.n]).map_err(fail)?;
    let result = def.info.result_type(0, dtype);
    // A bool buffer holds nothing but 0 and 1.
    let guard = if result == DType::Bool { 1 } else { 0xA5 };
    let total = call.y_at + call.n + MARGIN;
    let mut y = Tensor::from_bytes(device, result, &vec![guard; total * result.size()], [total]).map_err(fail)?;
    let into = y.view_mut().map_err(fail)?.narrow(0, call.y_at, call.n).map_err(fail)?;
    kernel.run_into(x.view().narrow(0, call.x_at, call.n).map_err(fail)?, into).map_err(fail)?;
    let y = y.to_bytes().map_err(fail)?;

    let (start, end) = (call.y_at * result.size(), (call.y_at + call.n) * result.size());
    let outside = y[..start].iter().chain(&y[end..]).all(|&byte| byte == guard);
    prop_assert!(outside, "{} {dtype}: wrote outside of the output", def.info.name);
    let some = call.singles.iter().filter(|_| call.n > 0).map(|index| index.index(call.n));
    let all: Vec<usize> = if device.is_cpu() { (0..call.n).collect() } else { some.collect() };
    for i in all {
        let operand = &x_bytes[(call.x_at + i) * dtype.size()..][..dtype.size()];
        let alone = single(device, &kernel, dtype, operand).map_err(fail)?;
        let got = &y[start..end][i * result.size()..][..result.size()];
        prop_assert!(
            judge::same_bits(result, got, &alone).is_none(),
            "{} {dtype} {params:?}: element {i}, {operand:02x?}, is {got:02x?}; alone it is {alone:02x?}",
            def.info.name
        );
    }
    Ok(())
}

/// The result of a call on one element.
fn single(device: &Device, kernel: &UnaryKernel, dtype: DType, operand: &[u8]) -> pointwise::Result<Vec<u8>> {
    let kernel = kernel.clone().strategy(Strategy::Direct);
    kernel.run(&Tensor::from_bytes(device, dtype, operand, [1])?)?.to_bytes()
}

/// A parameter that the element type takes. Digits to round to stay small, so that a power of ten is finite.
fn parameter(info: &ParamInfo, dtype: DType, given: i8) -> Number {
    match dtype {
        DType::Bool => Number::Bool(given > 0),
        DType::U8 => Number::Int(i64::from(given.unsigned_abs())),
        _ if info.name == "decimals" => Number::Int(i64::from(given % 4)),
        _ if dtype.is_int() => Number::Int(i64::from(given)),
        _ => Number::Float(f64::from(given) / 16.0),
    }
}
