//! Every way to call an op, and every signature that an op can have: a call gives the right values or an error, on the CPU
//! and in the emulator. Kernels of the ops below are not built; the emulator runs the family's.
#![forbid(unsafe_code)]

use pointwise::info;
use pointwise::kernel::OpDef;
use pointwise::prelude::*;

fn of<T: Num>(truth: bool) -> T {
    if truth { T::ONE } else { T::ZERO }
}

/// Ops of these operands: with each kind of results, up to two.
macro_rules! ops_of {
    ($($module:ident($($x:ident: $X:ident),*): $sum:expr;)*) => {
        $(mod $module {
            use super::*;

            #[op(f32, i64, exact, grad = none)]
            fn one<T: Num>($($x: $X),*) -> T {
                $sum
            }

            #[op(f32, i64, exact, grad = none)]
            fn flag<T: Num>($($x: $X),*) -> bool {
                $sum > T::ZERO
            }

            #[op(f32, i64, exact, grad = none, results(y, z))]
            fn two<T: Num>($($x: $X),*) -> (T, T) {
                ($sum, -$sum)
            }

            #[op(f32, i64, exact, grad = none, results(y, z))]
            fn one_flag<T: Num>($($x: $X),*) -> (T, bool) {
                ($sum, $sum > T::ZERO)
            }

            #[op(f32, i64, exact, grad = none, results(y, z))]
            fn flag_one<T: Num>($($x: $X),*) -> (bool, T) {
                ($sum > T::ZERO, $sum)
            }

            #[op(f32, i64, exact, grad = none, results(y, z))]
            fn flags<T: Num>($($x: $X),*) -> (bool, bool) {
                ($sum > T::ZERO, $sum > T::ONE)
            }

            pub(super) fn all() -> [&'static OpDef; 6] {
                [One::def(), Flag::def(), Two::def(), OneFlag::def(), FlagOne::def(), Flags::def()]
            }
        })*

        fn all() -> Vec<&'static OpDef> {
            [$($module::all()),*].concat()
        }
    };
}

ops_of! {
    t(a: T): a;
    tt(a: T, b: T): a + a + b;
    tb(a: T, b: bool): a + a + of::<T>(b);
    bt(a: bool, b: T): of::<T>(a) + of::<T>(a) + b;
    ttt(a: T, b: T, c: T): a + a - b + c;
    ttb(a: T, b: T, c: bool): a + a - b + of::<T>(c);
    tbt(a: T, b: bool, c: T): a + a - of::<T>(b) + c;
    btt(a: bool, b: T, c: T): of::<T>(a) + of::<T>(a) - b + c;
    tbb(a: T, b: bool, c: bool): a + a - of::<T>(b) + of::<T>(c);
    btb(a: bool, b: T, c: bool): of::<T>(a) + of::<T>(a) - b + of::<T>(c);
    bbt(a: bool, b: bool, c: T): of::<T>(a) + of::<T>(a) - of::<T>(b) + c;
}

const ROWS: usize = 2;
const COLUMNS: usize = 3;

/// Small whole numbers, or bools.
fn tensor(device: &Device, dtype: DType, columns: usize, seed: usize) -> Tensor {
    let noise = |i: usize| ((i + 1) * (seed + 3) * 7 % 11) as i64 - 4;
    let values: Vec<i64> =
        (0..ROWS * columns).map(|i| if dtype == DType::Bool { noise(i) & 1 } else { noise(i) }).collect();
    let tensor = Tensor::from_slice(&Device::cpu(), &values, [ROWS, columns]).unwrap();
    tensor.to_dtype(dtype).unwrap().to_device(device).unwrap()
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    let tensor = tensor.to_device(&Device::cpu()).unwrap().to_dtype(DType::F32).unwrap();
    tensor.to_vec::<f32>().unwrap().into_iter().map(f64::from).collect()
}

/// The halves of the last dimension.
fn halves(x: &Tensor) -> [Vec<f64>; 2] {
    [0, COLUMNS].map(|at| numbers(&x.narrow(1, at, COLUMNS).unwrap().to_tensor().unwrap()))
}

/// One op on one device, called in one way.
struct Call<'a> {
    def: &'static OpDef,
    device: &'a Device,
    /// True if an operand of the element type is of the tested type: logic on bools is not the formula at f64.
    has_element: bool,
    way: String,
}

/// True if a tensor of another type than bool stands where no bool must.
fn has_element(def: &'static OpDef, types: &[DType]) -> bool {
    types.iter().enumerate().any(|(k, dtype)| *dtype != DType::Bool && def.info.bool_operands() >> k & 1 == 0)
}

impl Call<'_> {
    /// Checks that the call is an error or the formula at f64.
    fn check(&self, operands: &[Vec<f64>], results: Result<Vec<Vec<f64>>>) {
        let Call { def, device, has_element: true, way } = self else { return };
        let Ok(results) = results else { return };
        let info = &def.info;
        let what = format!("{} of {:?} by {way} on {device}", info.name, info.operands);
        assert_eq!((operands.len(), results.len()), (info.operands.len(), info.results.len()), "{what}");
        let oracle = def.oracle(DType::F32, &[]).unwrap().expect("the formula at f64");
        for i in 0..ROWS * COLUMNS {
            let at: Vec<f64> = operands.iter().map(|operand| operand[if operand.len() == 1 { 0 } else { i }]).collect();
            for (k, (expected, result)) in oracle.at(&at, 0).into_iter().zip(&results).enumerate() {
                let got = result[i];
                let is_near = (got - expected).abs() <= 1e-3 * expected.abs().max(1.0);
                let is_right = got == expected || is_near || got.is_nan() && expected.is_nan();
                assert!(is_right, "{what}: result {k} of {at:?} is {got}, not {expected}");
            }
        }
    }

    /// As [`Call::check`], of new tensors.
    fn check_new(&self, operands: &[Vec<f64>], results: Result<Vec<Tensor>>) {
        if let (true, Ok(results)) = (self.has_element, &results) {
            for (k, result) in results.iter().enumerate() {
                let is_bool = self.def.info.bool_results() >> k & 1 == 1;
                assert_eq!(result.dtype() == DType::Bool, is_bool, "{} by {}", self.def.info.name, self.way);
            }
        }
        self.check(operands, results.map(|results| results.iter().map(numbers).collect()));
    }

    /// As [`Call::check`], of tensors that are there.
    fn check_into(&self, operands: &[Vec<f64>], done: Result<()>, results: &[Tensor]) {
        self.check_new(operands, done.and_then(|()| results.iter().map(Tensor::copy).collect()));
    }
}

/// The forms of an operand of the op's element type, or of a bool.
const GIVEN: [&str; 4] = ["element", "bool", "1", "true"];

/// An op on operands of every kind at each position, of every count.
fn check_op(def: &'static OpDef, dtype: DType, device: &Device) {
    for count in 1..=3 {
        for given in 0..GIVEN.len().pow(count as u32) {
            let given: Vec<usize> = (0..count).map(|k| given / GIVEN.len().pow(k as u32) % GIVEN.len()).collect();
            let tensors: Vec<Tensor> = (0..count)
                .map(|k| tensor(device, if given[k] == 0 { dtype } else { DType::Bool }, COLUMNS, k))
                .collect();
            let operands: Vec<Operand<'_>> = (0..count)
                .map(|k| match given[k] {
                    2 => Operand::from(1),
                    3 => Operand::from(true),
                    _ => Operand::from(&tensors[k]),
                })
                .collect();
            let values: Vec<Vec<f64>> =
                (0..count).map(|k| if given[k] < 2 { numbers(&tensors[k]) } else { vec![1.0] }).collect();
            let words: Vec<&str> = given.iter().map(|&given| GIVEN[given]).collect();
            // A number has no type of its own.
            let types: Vec<DType> = (0..count).map(|k| if given[k] == 0 { dtype } else { DType::Bool }).collect();
            let has_element = has_element(def, &types);
            let call = |way: &str| Call { def, device, has_element, way: format!("{way}({})", words.join(", ")) };
            let is_bool = |k: usize| def.info.bool_operands() >> k & 1 == 1;
            let fits = count == def.info.operands.len()
                && (0..count).all(|k| given[k] == usize::from(is_bool(k)))
                && def.info.supports(dtype);

            let made = def.kernel(&[]).run(&operands);
            if fits && device.is_cpu() {
                made.as_ref().expect(def.info.name);
            }
            call("run").check_new(&values, made);
            let one = |result: Result<Tensor>| result.map(|y| vec![y]);
            match operands[..] {
                [Operand::View(x)] => call("unary").check_new(&values, one(def.unary_with(&[]).run(x))),
                [a, b] => {
                    call("binary").check_new(&values, one(def.binary_with(&[]).run(a, b)));
                    call("pair").check_new(&values, one(def.gated_with(&[]).run_pair(a, b)));
                }
                [a, b, c] => call("ternary").check_new(&values, one(def.ternary_with(&[]).run(a, b, c))),
                _ => {}
            }
            for types in [&[dtype][..], &[DType::Bool], &[dtype; 2], &[dtype, DType::Bool], &[DType::Bool, dtype]] {
                check_into(def, device, types, &operands, &values, &call);
            }
            check_into(def, device, &[DType::Bool; 2], &operands, &values, &call);
            check_over(def, &tensors, &operands, &values, &call);
        }
    }
}

fn zeros(device: &Device, dtype: DType, columns: usize) -> Tensor {
    Tensor::zeros(device, dtype, [ROWS, columns]).unwrap()
}

/// Results of every type.
fn check_into<'a>(
    def: &'static OpDef,
    device: &Device,
    types: &[DType],
    operands: &[Operand<'_>],
    values: &[Vec<f64>],
    call: &dyn Fn(&str) -> Call<'a>,
) {
    let mut results: Vec<Tensor> = types.iter().map(|&dtype| zeros(device, dtype, COLUMNS)).collect();
    let views: Vec<TensorView<'_>> = results.iter().map(Tensor::view).collect();
    let planned = def.kernel(&[]).plan(operands, &views).is_ok();
    let mut views: Vec<TensorViewMut<'_>> = results.iter_mut().map(TensorViewMut::from).collect();
    let done = def.kernel(&[]).run_into(operands, &mut views);
    let call_into = call("run_into");
    // A power of a bool by a number is another op, and has no plan.
    if device.is_cpu() && call_into.has_element {
        assert_eq!(planned, done.is_ok(), "{} into {types:?} by {}", def.info.name, call_into.way);
    }
    call_into.check_into(values, done, &results);
    let [mut y] = match <[Tensor; 1]>::try_from(results) {
        Ok(one) => one,
        Err(_) => return,
    };
    let one = |way: &str, y: &Tensor, done: Result<()>| call(way).check_into(values, done, std::slice::from_ref(y));
    match operands[..] {
        [Operand::View(x)] => {
            let done = def.unary_with(&[]).run_into(x, &mut y);
            one("unary into", &y, done);
        }
        [a, b] => {
            let done = def.binary_with(&[]).run_into(a, b, &mut y);
            one("binary into", &y, done);
            let done = def.gated_with(&[]).run_pair_into(a, b, &mut y);
            one("pair into", &y, done);
        }
        [a, b, c] => {
            let done = def.ternary_with(&[]).run_into(a, b, c, &mut y);
            one("ternary into", &y, done);
        }
        _ => {}
    }
}

/// The result over an operand.
fn check_over<'a>(
    def: &'static OpDef,
    tensors: &[Tensor],
    operands: &[Operand<'_>],
    values: &[Vec<f64>],
    call: &dyn Fn(&str) -> Call<'a>,
) {
    let over = |way: &str, k: usize, run: &dyn Fn(&mut Tensor) -> Result<()>| {
        if matches!(operands[k], Operand::View(_)) {
            let mut y = tensors[k].copy().unwrap();
            let done = run(&mut y);
            call(way).check(values, done.map(|()| vec![numbers(&y)]));
        }
    };
    over("run_inplace", 0, &|y| def.kernel(&[]).run_inplace(y.into(), &operands[1..]));
    match *operands {
        [_] => over("unary in place", 0, &|y| def.unary_with(&[]).run_inplace(y)),
        [_, b] => over("binary in place", 0, &|y| def.binary_with(&[]).run_inplace(y, b)),
        [a, b, c] => {
            over("ternary in place", 0, &|y| def.ternary_with(&[]).run_inplace(y, b, c));
            over("ternary over the last", 2, &|y| def.ternary_with(&[]).run_over_last(a, b, y));
        }
        _ => {}
    }
}

/// Operands, and results, in the halves of a tensor.
fn check_halves(def: &'static OpDef, dtype: DType, device: &Device) {
    let is_right = |planned: bool, done: &Result<()>| !device.is_cpu() || planned == done.is_ok();
    for of_x in [dtype, DType::Bool] {
        let x = tensor(device, of_x, 2 * COLUMNS, 1);
        let [gate, value] = halves(&x);
        let has_element = has_element(def, &[of_x; 2]);
        let call = |way: &str| Call { def, device, has_element, way: format!("{way} of {of_x}") };
        let pair = [gate.clone(), value.clone()];
        call("gated").check_new(&pair, def.gated_with(&[]).run(&x).map(|y| vec![y]));
        for of_y in [dtype, DType::Bool] {
            let mut y = zeros(device, of_y, COLUMNS);
            let planned = def.gated_with(&[]).plan(&x, &y).is_ok();
            let done = def.gated_with(&[]).run_into(&x, &mut y);
            assert!(is_right(planned, &done), "{} of {of_x} into {of_y}", def.info.name);
            call("gated into").check_into(&pair, done, &[y]);
        }
        for of_grad in [dtype, DType::Bool] {
            check_gradients(def, dtype, device, (&x, of_grad));
        }
    }
}

/// The gradients of a gated op.
fn check_gradients(def: &'static OpDef, dtype: DType, device: &Device, (x, of_grad): (&Tensor, DType)) {
    let (of_x, grad) = (x.dtype(), tensor(device, of_grad, COLUMNS, 2));
    let [gate, value] = halves(x);
    let operands = [numbers(&grad), gate, value];
    let has_element = has_element(def, &[of_grad, of_x, of_x]);
    let what = format!("{} of {of_grad} and {of_x}", def.info.name);
    let call = |way: &str| Call { def, device, has_element, way: format!("{way} of {of_grad} and {of_x}") };
    let are_bools = |y: &Tensor| [y.dtype() == DType::Bool; 2];
    let must_be = [0, 1].map(|k| def.info.bool_results() >> k & 1 == 1);

    let made = def.gated_gradients(&[]).run(&grad, x);
    if let (true, Ok(y)) = (has_element, &made) {
        assert_eq!(are_bools(y), must_be, "{what}");
    }
    call("gated gradients").check(&operands, made.map(|y| halves(&y).into()));
    for of_y in [dtype, DType::Bool] {
        let mut y = zeros(device, of_y, 2 * COLUMNS);
        let planned = def.gated_gradients(&[]).plan(&grad, x, &y).is_ok();
        let done = def.gated_gradients(&[]).run_into(&grad, x, &mut y);
        assert!(!device.is_cpu() || planned == done.is_ok(), "{what} into {of_y}");
        assert!(!has_element || done.is_err() || are_bools(&y) == must_be, "{what} into {of_y}");
        call("gated gradients into").check(&operands, done.map(|()| halves(&y).into()));
    }
}

/// The CPU, and the emulator if there are kernels.
fn devices() -> Vec<Device> {
    Device::for_tests(pointwise::embed::embedded()).unwrap()
}

#[test]
fn every_signature_is_served_or_refused_by_every_call() {
    for device in devices() {
        for def in all() {
            for dtype in [DType::F32, DType::I64] {
                check_op(def, dtype, &device);
                check_halves(def, dtype, &device);
            }
        }
    }
}

#[test]
fn ops_of_the_family_are_served_or_refused_by_every_call() {
    for device in devices() {
        for def in info::all() {
            check_op(def, DType::F32, &device);
            check_halves(def, DType::F32, &device);
        }
    }
}

/// Results that are bools beside others cannot be the halves of one tensor.
#[test]
fn halves_are_of_the_types_that_the_results_have() {
    let cpu = Device::cpu();
    let (grad, x) = (tensor(&cpu, DType::F32, COLUMNS, 2), tensor(&cpu, DType::Bool, 2 * COLUMNS, 1));
    // Gate and value are bools: the results are as large as `grad`.
    let def = tbb::all()[2];
    assert_eq!(def.gated_gradients(&[]).run(&grad, &x).unwrap().dtype(), DType::F32);
    let mut y = zeros(&cpu, DType::Bool, 2 * COLUMNS);
    assert!(def.gated_gradients(&[]).run_into(&grad, &x, &mut y).unwrap_err().is_dtype());
    for def in [tbb::all()[3], tbb::all()[4]] {
        let error = def.gated_gradients(&[]).run(&grad, &x).unwrap_err().to_string();
        assert!(error.contains("tensors of their own"), "{error}");
    }
}

/// Ops of one operand and up to eight, with one result and up to four, and their gradients: the sum of the operands, each
/// of half the weight of the one before it; the result behind it has twice that, and so on.
macro_rules! ops_of_counts {
    ($($one:ident $two:ident $three:ident $four:ident: $first:ident $($x:ident)*;)*) => {
        $(#[op(f32, exact)]
        fn $one<T: Real>($first: T $(, $x: T)*) -> T {
            let sum = $first;
            $(let sum = sum + sum + $x;)*
            sum
        }

        #[op(f32, exact, results(y1, y2))]
        fn $two<T: Real>($first: T $(, $x: T)*) -> (T, T) {
            let sum = $first;
            $(let sum = sum + sum + $x;)*
            (sum, sum + sum)
        }

        #[op(f32, exact, results(y1, y2, y3))]
        fn $three<T: Real>($first: T $(, $x: T)*) -> (T, T, T) {
            let sum = $first;
            $(let sum = sum + sum + $x;)*
            let twice = sum + sum;
            (sum, twice, twice + twice)
        }

        #[op(f32, exact, results(y1, y2, y3, y4))]
        fn $four<T: Real>($first: T $(, $x: T)*) -> (T, T, T, T) {
            let sum = $first;
            $(let sum = sum + sum + $x;)*
            let twice = sum + sum;
            let four_times = twice + twice;
            (sum, twice, four_times, four_times + four_times)
        })*

        fn of_counts() -> Vec<&'static OpDef> {
            let names = [$(stringify!($one), stringify!($two), stringify!($three), stringify!($four)),*];
            let ops = info::declared_ops(env!("CARGO_PKG_NAME"));
            ops.into_iter().filter(|def| names.contains(&def.info.name)).collect()
        }
    };
}

ops_of_counts! {
    one_to_1 one_to_2 one_to_3 one_to_4: a;
    two_to_1 two_to_2 two_to_3 two_to_4: a b;
    three_to_1 three_to_2 three_to_3 three_to_4: a b c;
    four_to_1 four_to_2 four_to_3 four_to_4: a b c d;
    five_to_1 five_to_2 five_to_3 five_to_4: a b c d e;
    six_to_1 six_to_2 six_to_3 six_to_4: a b c d e f;
    seven_to_1 seven_to_2 seven_to_3 seven_to_4: a b c d e f g;
    eight_to_1 eight_to_2 eight_to_3 eight_to_4: a b c d e f g h;
}

/// Runs an op on as many operands as it has, and plans the call.
fn run_and_plan(def: &'static OpDef) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let cpu = Device::cpu();
    let tensors: Vec<Tensor> = (0..def.info.operands.len()).map(|k| tensor(&cpu, DType::F32, COLUMNS, k)).collect();
    let operands: Vec<Operand<'_>> = tensors.iter().map(Operand::from).collect();
    let results = def.kernel(&[]).run(&operands).unwrap();
    let views: Vec<TensorView<'_>> = results.iter().map(Tensor::view).collect();
    assert_eq!(def.kernel(&[]).plan(&operands, &views).unwrap().n, (ROWS * COLUMNS) as u64, "{}", def.info.name);
    (tensors.iter().map(numbers).collect(), results.iter().map(numbers).collect())
}

#[test]
fn every_count_of_operands_and_results_is_served() {
    let (mut counts, mut gradient_counts) = (Vec::new(), Vec::new());
    for def in of_counts() {
        let (operands, results) = run_and_plan(def);
        counts.push((operands.len(), results.len()));
        let backward = def.backward.unwrap();
        let (given, gradients) = run_and_plan(backward);
        gradient_counts.push((given.len(), gradients.len()));
        assert_eq!((given.len(), gradients.len()), (operands.len() + results.len(), operands.len()));
        for i in 0..ROWS * COLUMNS {
            let sum = operands.iter().fold(0.0, |sum, operand| 2.0 * sum + operand[i]);
            for (j, result) in results.iter().enumerate() {
                assert_eq!(result[i], sum * f64::from(1 << j), "result {j} of {}", def.info.name);
            }
            let flow: f64 = (0..results.len()).map(|j| given[j][i] * f64::from(1 << j)).sum();
            for (k, gradient) in gradients.iter().enumerate() {
                let weight = f64::from(1 << (operands.len() - 1 - k));
                assert_eq!(gradient[i], flow * weight, "gradient {k} of {}", def.info.name);
            }
        }
    }
    counts.sort_unstable();
    let expected: Vec<_> = (1..=8).flat_map(|operands| (1..=4).map(move |results| (operands, results))).collect();
    assert_eq!(counts, expected);
    assert!([(12, 8), (9, 8), (9, 5), (2, 1)].iter().all(|counts| gradient_counts.contains(counts)));
}
