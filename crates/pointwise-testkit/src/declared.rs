//! The ops that `#[op]` made in a package, against their own formulas at f64.

use pointwise::info::{Accuracy, declared_generators, declared_ops};
use pointwise::kernel::{Class, Entry, GeneratorDef, OpDef, Variant};
use pointwise::{DType, Device, F8E4M3, F8E5M2, Operand, Philox, Tensor, bf16, f16};

use crate::Error;
use crate::judge::{largest, ulp_at};

/// Where random ops draw from.
const RNG: Philox = Philox::new(42);

/// Checks every op that `#[op]` made in a package, and its gradients, in every element type and several layouts, on each
/// of the devices:
///
/// ```no_run
/// // In a test of the package, with pointwise's feature `emulator`: `use my_package as _;` links the ops.
/// # #[cfg(any())]
/// let devices = pointwise::Device::for_tests(pointwise::embed::embedded())?;
/// # let devices = [pointwise::Device::cpu()];
/// pointwise_testkit::check_all(env!("CARGO_PKG_NAME"), &devices)?;
/// # Ok::<(), pointwise_testkit::Error>(())
/// ```
///
/// Numbers are between -4 and 4, and parameters have their defaults. Where several operands go into a result, so that
/// terms may cancel, the bound counts from the size of the operands.
///
/// # Errors
/// The first result that is wrong; a call that fails; a package without ops; an op without kernels. Such an op is checked on
/// the CPU alone where nothing has kernels, since there is no compiler for GPU code, unless `POINTWISE_KERNELS=required`; and
/// with `POINTWISE_KERNELS=none`, which says that there are none.
pub fn check_all(package: &str, devices: &[Device]) -> Result<(), Error> {
    let (ops, generators) = (declared_ops(package), declared_generators(package));
    if ops.is_empty() && generators.is_empty() {
        return Err(Error::Wrong(format!("{package} has no ops, or is not linked with this program")));
    }
    let said = std::env::var("POINTWISE_KERNELS").unwrap_or_default();
    let is_required = said == "required" || said != "none" && !pointwise::embed::embedded().is_empty();
    for def in ops.into_iter().flat_map(|def| std::iter::once(def).chain(def.backward)) {
        for &dtype in def.info.types {
            for device in devices {
                if can_check(device, def.entry(dtype, Class::Flat)?, is_required)? {
                    check(def, dtype, device)?;
                }
            }
        }
    }
    for def in generators {
        for &dtype in def.info.types {
            for device in devices {
                if can_check(device, def.entry(dtype, Variant::Direct)?, is_required)? {
                    check_generator(def, dtype, device)?;
                }
            }
        }
    }
    Ok(())
}

/// Whether the device has the kernel. Fails if there is none, and must be.
fn can_check(device: &Device, entry: &Entry, is_required: bool) -> Result<bool, Error> {
    if entry.is_embedded() {
        return Ok(true);
    }
    if is_required {
        let (symbol, why) = (entry.symbol(), entry.note());
        let what = format!("no kernel {symbol}: {why}. For ops of the CPU alone, set POINTWISE_KERNELS=none");
        return Err(Error::Wrong(what));
    }
    Ok(device.is_cpu())
}

/// Planes of rows that are whole vectors, and of others.
fn check_generator(def: &'static GeneratorDef, dtype: DType, device: &Device) -> Result<(), Error> {
    let info = &def.info;
    let Some(oracle) = def.oracle(dtype, &[])? else { return Ok(()) };
    for [planes, rows, columns] in [[2, 5, 64], [1, 37, 19]] {
        let y = def.kernel(&[]).run(device, dtype, [planes, rows, columns])?;
        for (i, got) in decode(dtype, &y.to_bytes()?).into_iter().enumerate() {
            let at = [i / (rows * columns), i / columns % rows, i % columns].map(|index| index as u32);
            let exact = oracle(at);
            if !is_close(info.accuracy, dtype, got, exact, &[exact]) {
                let name = info.name;
                let what =
                    format!("{name} of {dtype} on {device}: [plane, row, column] {at:?} is {got:e}, not {exact:e}");
                return Err(Error::Wrong(what));
            }
        }
    }
    Ok(())
}

/// Runs of elements; broadcast rows and columns; a transposed operand.
fn check(def: &'static OpDef, dtype: DType, device: &Device) -> Result<(), Error> {
    for (rows, columns) in [(1, 67), (5, 24), (3, 1)] {
        for turn in 0..=def.info.operands.len() {
            if let Some(wrong) = compare(def, dtype, device, [rows, columns], turn)? {
                let name = def.info.name;
                let what = format!("{name} of {dtype} on {device}, {rows} x {columns}, layout {turn}: {wrong}");
                return Err(Error::Wrong(what));
            }
        }
    }
    Ok(())
}

/// An operand's values, and where in it the element of a row and a column is.
struct Input {
    values: Vec<f64>,
    tensor: Tensor,
    strides: [usize; 2],
    /// Whether the tensor is the transposed operand.
    is_turned: bool,
}

/// What is wrong with a call, if anything. In `turn` 0 all operands lie like the result. In others, one is a row, the next a column, and the last is transposed.
fn compare(
    def: &'static OpDef,
    dtype: DType,
    device: &Device,
    [rows, columns]: [usize; 2],
    turn: usize,
) -> Result<Option<String>, Error> {
    let info = &def.info;
    let mut inputs = Vec::new();
    // The first operand has all elements, so that the result does; what has one for each channel cannot.
    let whole = (0..info.operands.len()).find(|&k| !info.is_channel(k));
    for k in 0..info.operands.len() {
        let turned = (k + turn) % 4;
        let (shape, strides) = match turned {
            _ if info.is_channel(k) => (vec![columns], [0, 1]),
            1 if turn > 0 && Some(k) != whole => (vec![1, columns], [0, 1]),
            2 if turn > 0 && Some(k) != whole => (vec![rows, 1], [1, 0]),
            3 if turn > 0 => (vec![columns, rows], [1, rows]),
            _ => (vec![rows, columns], [columns, 1]),
        };
        let of = info.operand_type(k, dtype);
        let codes: Vec<f64> = (0..shape.iter().product()).map(|i| sample(i, k + turn * 31)).collect();
        let (bytes, values) = encode(of, &codes);
        let is_turned = shape == [columns, rows] && turn > 0 && turned == 3;
        let tensor = Tensor::from_bytes(device, of, &bytes, shape)?;
        inputs.push(Input { values, tensor, strides, is_turned });
    }
    let operands = inputs.iter().map(|input| {
        let view = input.tensor.view();
        if input.is_turned { view.transpose(0, 1).map(Operand::View) } else { Ok(Operand::View(view)) }
    });
    let operands = operands.collect::<pointwise::Result<Vec<_>>>()?;
    let results = def.kernel(&[]).rng(RNG).run(&operands)?;
    let Some(oracle) = def.oracle(dtype, &[])? else { return Ok(None) };
    let got: Vec<Vec<f64>> = (0..results.len())
        .map(|k| Ok(decode(info.result_type(k, dtype), &results[k].to_bytes()?)))
        .collect::<pointwise::Result<_>>()?;
    for i in 0..rows * columns {
        let (row, column) = (i / columns, i % columns);
        let at = |input: &Input| input.values[row * input.strides[0] + column * input.strides[1]];
        let x: Vec<f64> = inputs.iter().map(at).collect();
        let exact = oracle.at(&x, RNG.word(i as u64));
        for (k, (&exact, got)) in exact.iter().zip(&got).enumerate() {
            let (got, of) = (got[i], info.result_type(k, dtype));
            if !is_close(info.accuracy, of, got, exact, &x) {
                return Ok(Some(format!("{}[{i}] of {x:?} is {got:e}, not {exact:e}", info.results[k])));
            }
        }
    }
    Ok(None)
}

/// Whether a result keeps the bound. Where terms may cancel, the error of f32 in the largest operand is allowed, too.
fn is_close(accuracy: Accuracy, dtype: DType, got: f64, exact: f64, x: &[f64]) -> bool {
    if !dtype.is_float() || exact.is_nan() || exact.is_infinite() {
        return got == exact || got.is_nan() && exact.is_nan();
    }
    let bound = f64::from(accuracy.bound(dtype));
    let terms = match accuracy {
        Accuracy::Exact => 0.0,
        Accuracy::Cancels(ulp) => {
            let scale = x.iter().fold(1.0, |product, x| product * x.abs().max(1.0));
            f64::from(ulp) * ulp_at(DType::F32, scale.max(exact.abs()))
        }
        _ if x.len() == 1 => 0.0,
        accuracy => {
            let scale = x.iter().fold(exact.abs(), |scale, x| scale.max(x.abs()));
            f64::from(accuracy.bound(DType::F32)) * ulp_at(DType::F32, scale)
        }
    };
    // Rounded to f32 first, half an ULP of a narrower type may be a little more.
    let tolerance = bound * ulp_at(dtype, exact) * (1.0 + 1e-3) + terms;
    let largest = largest(dtype);
    (got - exact).abs() <= tolerance || exact.abs() > largest * 0.95 && (got.abs() >= largest * 0.9 || got.is_nan())
}

/// Numbers between -4 and 4, some of them special.
fn sample(i: usize, seed: usize) -> f64 {
    let hash = ((i * 64 + seed) as u32).wrapping_mul(0x9E37_79B9) ^ 0x5bd1_e995;
    match hash % 13 {
        0 => 0.0,
        1 => 1.0,
        2 => -3.0,
        _ => f64::from(hash.wrapping_mul(0x85eb_ca6b) >> 8) / f64::from(1 << 21) - 4.0,
    }
}

/// The numbers as elements, and what these are.
fn encode(dtype: DType, numbers: &[f64]) -> (Vec<u8>, Vec<f64>) {
    let bytes: Vec<u8> = numbers
        .iter()
        .flat_map(|&x| match dtype {
            DType::F32 => (x as f32).to_le_bytes().to_vec(),
            DType::F16 => f16::from_f64(x).to_le_bytes().to_vec(),
            DType::BF16 => bf16::from_f64(x).to_le_bytes().to_vec(),
            DType::F8E4M3 => vec![F8E4M3::from_f32(x as f32).to_bits()],
            DType::F8E5M2 => vec![F8E5M2::from_f32(x as f32).to_bits()],
            DType::I8 | DType::U8 => vec![x.abs() as u8],
            DType::I16 => (x as i16).to_le_bytes().to_vec(),
            DType::I32 => (x as i32).to_le_bytes().to_vec(),
            DType::I64 => (x as i64).to_le_bytes().to_vec(),
            DType::Bool => vec![u8::from(x > 0.0)],
        })
        .collect();
    let values = decode(dtype, &bytes);
    (bytes, values)
}

fn decode(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    let value = |word: u64| match dtype {
        DType::F32 => f64::from(f32::from_bits(word as u32)),
        DType::F16 => f16::from_bits(word as u16).to_f64(),
        DType::BF16 => bf16::from_bits(word as u16).to_f64(),
        DType::F8E4M3 => f64::from(F8E4M3::from_bits(word as u8).to_f32()),
        DType::F8E5M2 => f64::from(F8E5M2::from_bits(word as u8).to_f32()),
        DType::I8 => f64::from(word as i8),
        DType::U8 => f64::from(word as u8),
        DType::I16 => f64::from(word as i16),
        DType::I32 => f64::from(word as i32),
        DType::I64 => word as i64 as f64,
        DType::Bool => f64::from(u8::from(word != 0)),
    };
    bytes.chunks_exact(dtype.size()).map(|bytes| value(word(bytes))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_close_is_told() {
        let close = |accuracy, dtype, got: f64| is_close(accuracy, dtype, got, 1.0, &[1.0]);
        let step = f64::from(f32::EPSILON);
        assert!(
            close(Accuracy::Exact, DType::F32, 1.0 + step / 2.0) && !close(Accuracy::Exact, DType::F32, 1.0 + step)
        );
        assert!(close(Accuracy::Ulp(2.0), DType::F32, 1.0 + 2.0 * step));
        assert!(
            !close(Accuracy::Ulp(2.0), DType::F32, 1.0 + 3.0 * step) && !close(Accuracy::Ulp(2.0), DType::BF16, 1.1)
        );
        assert!(!close(Accuracy::Ulp(2.0), DType::F32, f64::NAN) && !close(Accuracy::Exact, DType::I32, 2.0));
        assert!(!is_close(Accuracy::Cancels(2.0), DType::F32, 1.0 + 50.0 * step, 1.0, &[1.0, 2.0]));
    }

    #[test]
    fn a_package_without_ops_is_an_error() {
        let error = check_all("no such package", &[Device::cpu()]).unwrap_err();
        assert!(error.to_string().contains("no ops"));
    }
}
