//! Numbers as operands of an op of two operands, on either side of every value.

use pointwise::{DType, Device, Number, Operand, Result, Strategy, Tensor, info::Accuracy, kernel::OpDef};
use pointwise_core::Element;
use pointwise_core::op::MAX_PARAMS;
use pointwise_testkit::{calls, inputs, judge, with_element};

type Outcome = std::result::Result<(), String>;

const DEFAULTS: [Number; MAX_PARAMS] = [Number::Default; MAX_PARAMS];

/// Ordinary numbers, those that no 16-bit type has, and the ends of f32's range, where a quotient overflows or vanishes.
const FLOATS: &[f64] = &[
    0.0,
    -0.0,
    0.3,
    1.0,
    -2.5,
    7e4,
    1e-7,
    8.6e-19,
    -1.2e18,
    1e-36,
    -1e36,
    1.2e-38,
    1e-45,
    3.4e38,
    -3e38,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];
const INTEGERS: &[i64] = &[0, 1, 3, -2, 127];

/// True if [`check`] can compare the op's results with anything.
#[must_use]
pub fn checks(device: &Device, def: &OpDef, dtype: DType) -> bool {
    let info = &def.info;
    info.operands.len() == 2
        && !info.is_of_rows()
        && !def.takes_halves()
        && info.channel_operands == 0
        && !info.is_gradient()
        && def.info.accuracy == Accuracy::Exact
        && (!device.is_cpu() || quotient(def, dtype).is_some())
}

/// Tries every code, or 2^14 mixed values, with each number as the second and as the first operand. The results must be
/// the CPU's bits. Quotients that are not computed in f32 must be the f32 quotients, rounded.
///
/// # Errors
/// The first wrong result, in words; the errors of the library.
pub fn check(device: &Device, def: &'static OpDef, dtype: DType) -> Outcome {
    let numbers: Vec<Number> = if dtype.is_float() {
        FLOATS.iter().map(|&x| Number::Float(x)).collect()
    } else {
        INTEGERS.iter().map(|&x| Number::Int(x)).collect()
    };
    let x = inputs::codes(dtype, 1 << 14, 3);
    for number in numbers {
        for at in [0, 1] {
            let run = |device: &Device| call(device, def, dtype, &x, number, at);
            let what = || format!("{} of {dtype} with {number} as operand {at}", def.info.name);
            let (got, cpu) = match (run(device), run(&Device::cpu())) {
                (Ok(got), Ok(cpu)) => (got, cpu),
                // A number that the type cannot hold is none on any device.
                (Err(got), Err(cpu)) if got.to_string() == cpu.to_string() => continue,
                (got, cpu) => return Err(format!("{}: {:?}, on the CPU {:?}", what(), got.err(), cpu.err())),
            };
            if let Some(i) = judge::same_bits(def.info.result_type(0, dtype), &got, &cpu) {
                return Err(format!("{}: element {i} differs from the CPU's", what()));
            }
            if let Some(quotient) = quotient(def, dtype) {
                let expected = with_element!(dtype, E => quotients::<E>(quotient, &x, number, at));
                if let Some(i) = judge::same_bits(dtype, &got, &expected) {
                    return Err(format!("{}: element {i} is no rounded quotient", what()));
                }
            }
        }
    }
    Ok(())
}

/// Rounded quotients of values and a number. As the dividend it is rounded to the element type, as the divisor an f32.
fn quotients<E: Element>(quotient: fn(f32, f32) -> f32, x: &[u8], number: Number, at: usize) -> Vec<u8> {
    let Number::Float(number) = number else { unreachable!("floats have floats") };
    let widened = |x: E| x.to_f64() as f32;
    let rounded = |x: f32| E::from_f64(f64::from(x));
    x.chunks_exact(size_of::<E>())
        .flat_map(|code| {
            let x = widened(judge::from_bytes::<E>(code));
            let number = number as f32;
            let y = if at == 0 { quotient(widened(rounded(number)), x) } else { quotient(x, number) };
            judge::as_bytes(&rounded(y)).to_vec()
        })
        .collect()
}

fn call(device: &Device, def: &'static OpDef, dtype: DType, x: &[u8], number: Number, at: usize) -> Result<Vec<u8>> {
    let x = Tensor::from_bytes(device, dtype, x, [x.len() / dtype.size()])?;
    let mut y = Tensor::zeros(device, def.info.result_type(0, dtype), x.shape())?;
    let mut operands = [Operand::from(&x); 2];
    operands[at] = Operand::from(number);
    calls::run_into(def, &DEFAULTS, Strategy::Auto, &operands, vec![y.view_mut()?])?;
    y.to_bytes()
}

/// The f32 quotient of an op that, for this type, divides another way.
fn quotient(def: &OpDef, dtype: DType) -> Option<fn(f32, f32) -> f32> {
    if !matches!(dtype, DType::F16 | DType::F8E4M3 | DType::F8E5M2) {
        return None;
    }
    match def.info.name {
        "div" => Some(|a, b| a / b),
        "div_trunc" => Some(|a, b| (a / b).trunc()),
        _ => None,
    }
}
