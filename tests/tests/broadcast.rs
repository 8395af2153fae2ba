//! Ops of several operands on views of every kind, on the CPU, against the same ops on copies of whole shape.

use pointwise::info::op;
use pointwise::{DType, Device, Strategy, Tensor, kernels, ops};
use pointwise_testkit::layouts::{self, Case, Shaped};
use proptest::prelude::*;
use proptest::strategy::Strategy as _;

fn def(name: &str) -> &'static pointwise::kernel::OpDef {
    op(name).unwrap()
}

/// Ops of each template and width of result.
const OPS: &[(&str, DType)] = &[
    ("sub", DType::F32),
    ("sub", DType::BF16),
    ("sub", DType::I64),
    ("sub", DType::F8E5M2),
    ("lt", DType::F16),
    ("lt", DType::U8),
    ("logical_and", DType::I64),
    ("lerp", DType::F16),
    ("clamp_tensor", DType::I32),
    ("where", DType::BF16),
    ("where", DType::Bool),
    ("where", DType::I64),
    ("silu_and_mul", DType::F32),
];

#[test]
fn listed_cases() {
    for case in layouts::cases() {
        for &(name, dtype) in OPS {
            layouts::check(&Device::cpu(), def(name), dtype, Strategy::Auto, &case).unwrap();
        }
    }
}

#[test]
fn every_op_by_rows_and_strides() {
    let cases = layouts::cases();
    for op in tests::several() {
        for &dtype in op.info.types {
            for case in cases.iter().filter(|case| case.shape.len() == 3).take(6) {
                layouts::check(&Device::cpu(), op, dtype, Strategy::Auto, case).unwrap();
            }
        }
    }
}

fn shaped(broadcasts: bool) -> impl proptest::strategy::Strategy<Value = Shaped> {
    let (missing, ones) = if broadcasts { (0..3_usize, 0..32_u32) } else { (0..1, 0..1) };
    (missing, ones, prop_oneof![3 => Just(0), 1 => 0..32_u32], prop_oneof![2 => Just(0), 1 => 0..5_usize], 0..9_usize)
        .prop_map(|(missing, ones, stepped, rotated, offset)| Shaped { missing, ones, stepped, rotated, offset })
}

fn case() -> impl proptest::strategy::Strategy<Value = Case> {
    let dims = prop::collection::vec(prop_oneof![6 => 1..9_usize, 1 => Just(0), 3 => 14..40_usize], 0..5);
    (dims, prop::collection::vec(shaped(true), 3), shaped(false), any::<u32>())
        .prop_map(|(shape, operands, result, seed)| Case { shape, operands, result, seed: u64::from(seed) })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn any_case(case in case(), op in prop::sample::select(OPS)) {
        layouts::check(&Device::cpu(), def(op.0), op.1, Strategy::Auto, &case).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn unary_ops_read_views_in_place(case in case()) {
        let device = Device::cpu();
        let x = case.operands[0].tensor(&device, DType::I16, &case.shape, case.seed).unwrap();
        let view = case.operands[0].view(&x, &case.shape).unwrap().expand(case.shape.clone()).unwrap();
        let expected = ops::neg(&view.to_tensor().unwrap()).unwrap().to_bytes().unwrap();
        prop_assert_eq!(ops::neg(view).unwrap().to_bytes().unwrap(), expected);
    }
}

#[test]
fn a_large_call_is_split_among_threads() {
    let device = Device::cpu();
    let (rows, cols) = (301, 1001);
    let a: Vec<i32> = (0..rows * cols).collect();
    let b: Vec<i32> = (0..cols).map(|i| 7 * i).collect();
    let (n, m) = (rows as usize, cols as usize);
    let a = Tensor::from_slice(&device, &a, [n, m]).unwrap();
    let b = Tensor::from_slice(&device, &b, [m]).unwrap();
    let turned = a.view().transpose(0, 1).unwrap();
    let column = b.view().unsqueeze(1).unwrap();
    let y = ops::add(turned, column).unwrap().to_vec::<i32>().unwrap();
    for (at, y) in y.into_iter().enumerate() {
        let (i, j) = ((at / n) as i32, (at % n) as i32);
        assert_eq!(y, j * cols + i + 7 * i, "{i} {j}");
    }
}

#[test]
fn plans() {
    use pointwise::kernel::Class;
    let device = Device::cpu();
    let zeros = |shape: &[usize]| Tensor::zeros(&device, DType::BF16, shape).unwrap();
    let plan = |a: &[usize], b: &[usize], y: &[usize]| {
        let plan = kernels::sub(1.0).plan(&zeros(a), &zeros(b), &zeros(y)).unwrap();
        (plan.class, plan.dims)
    };
    assert_eq!(plan(&[16, 256, 56, 56], &[16, 256, 56, 56], &[16, 256, 56, 56]), (Class::Flat, 1));
    assert_eq!(plan(&[16, 256, 56, 56], &[1], &[16, 256, 56, 56]), (Class::Flat, 1));
    assert_eq!(plan(&[64, 128], &[128], &[64, 128]), (Class::Rows, 2));
    assert_eq!(plan(&[64, 128], &[64, 1], &[64, 128]), (Class::Rows, 2));
    assert_eq!(plan(&[64, 1], &[1, 128], &[64, 128]), (Class::Rows, 2));
    assert_eq!(plan(&[16, 8, 56, 56], &[8, 1, 1], &[16, 8, 56, 56]), (Class::Rows, 3));
    assert_eq!(plan(&[64, 127], &[127], &[64, 127]), (Class::Strided, 2));
    let x = zeros(&[64, 32]);
    let turned = x.view().transpose(0, 1).unwrap();
    let plan = kernels::sub(1.0).plan(turned, turned, &zeros(&[32, 64])).unwrap();
    assert_eq!((plan.class, plan.dims), (Class::Strided, 2));
    let plan = kernels::silu_and_mul().plan(&zeros(&[4, 64]), &zeros(&[4, 32])).unwrap();
    assert_eq!((plan.class, plan.lanes, plan.launches), (Class::Rows, 8, 1));
}

#[test]
fn plans_of_tables() {
    use pointwise::{Number, kernel::Class};
    let device = Device::cpu();
    let zeros = |dtype, shape: &[usize]| Tensor::zeros(&device, dtype, shape).unwrap();
    let plan = |dtype, shape: &[usize], strategy| {
        let x = zeros(dtype, shape);
        kernels::pow().strategy(strategy).plan(&x, &x, &x).unwrap()
    };
    let large: &[usize] = &[1 << 23];
    let (auto, table) = (Strategy::Auto, Strategy::Table);
    let found = plan(DType::F8E4M3, large, auto);
    assert_eq!((found.strategy, found.class, found.threads, found.replaced), (table, Class::Flat, 512, None));
    assert_eq!(plan(DType::F8E4M3, &[(1 << 23) - 1], auto).strategy, Strategy::RegisterCopy);
    assert_eq!(plan(DType::F8E4M3, large, Strategy::RegisterCopy).strategy, Strategy::RegisterCopy);
    assert_eq!(plan(DType::F8E5M2, &[64], table).strategy, table);
    assert!(plan(DType::BF16, &[64], table).replaced.is_some());
    // A gated op's operands lie in rows, other ops' where they say so; a number is no element of a table.
    let x = zeros(DType::F8E5M2, &[4, 64]);
    let y = zeros(DType::F8E5M2, &[4, 32]);
    let rows = kernels::silu_and_mul().strategy(table).plan(&x, &y).unwrap();
    assert_eq!((rows.strategy, rows.class, rows.replaced), (table, Class::Rows, None));
    let number = kernels::div().strategy(table).plan(&y, Number::Float(2.0), &y).unwrap();
    assert_eq!((number.strategy, number.replaced.is_some()), (Strategy::RegisterCopy, true));
    let scaled = kernels::add(1.0).strategy(table).plan(&y, &y, &y).unwrap();
    assert_eq!((scaled.strategy, scaled.replaced.is_some()), (Strategy::RegisterCopy, true));
    let turned = y.view().transpose(0, 1).unwrap();
    let strided = kernels::div().strategy(table).plan(turned, turned, &zeros(DType::F8E5M2, &[32, 4])).unwrap();
    assert_eq!(
        (strided.strategy, strided.threads, strided.replaced.is_some()),
        (Strategy::ExplicitParallel, 128, true)
    );
}

#[test]
fn plans_of_dropout() {
    let device = Device::cpu();
    let zeros = |dtype| Tensor::zeros(&device, dtype, [128]).unwrap();
    let (x, y, mask) = (zeros(DType::BF16), zeros(DType::BF16), zeros(DType::Bool));
    let plan = |at, mask_at| {
        let [x, y, mask] = [(&x, at), (&y, at), (&mask, mask_at)].map(|(of, at)| of.view().narrow(0, at, 100).unwrap());
        let plan = kernels::dropout(0.5).plan(x, y, Some(mask)).unwrap();
        (plan.strategy, plan.head)
    };
    // A mask's vectors begin where the operand's do: behind the head.
    let single = (Strategy::ExplicitParallel, 0);
    assert_eq!([plan(0, 0), plan(0, 8)], [(Strategy::RegisterCopy, 0), single]);
    assert_eq!([plan(3, 11), plan(3, 0)], [(Strategy::RegisterCopy, 5), single]);
    let threads = |strategy| kernels::dropout(0.5).strategy(strategy).threads(1024).plan(&x, &y, None).unwrap().threads;
    assert_eq!([Strategy::RegisterCopy, Strategy::ExplicitParallel].map(threads), [512, 1024]);
    let replaced = |strategy| {
        let plan = kernels::dropout(0.5).strategy(strategy).plan(&x, &y, None).unwrap();
        (plan.strategy, plan.replaced.is_some())
    };
    assert_eq!(
        [Strategy::Direct, Strategy::ExplicitParallel, Strategy::Table, Strategy::Auto].map(replaced),
        [
            (Strategy::ExplicitParallel, true),
            (Strategy::ExplicitParallel, false),
            (Strategy::RegisterCopy, true),
            (Strategy::RegisterCopy, false)
        ]
    );
}
