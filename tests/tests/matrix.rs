//! Every op in every element type by every strategy, one named case each (`silu::bf16::register_copy`), on the device of
//! `POINTWISE_DEVICE` (`auto`, `cpu`, `cuda`, `cuda:N`). On the CPU a case is the executor's.
//!
//! A case runs all codes (8 and 16 bits) or 65,536 mixed values against the CPU and the oracle, then sizes from 0 up at
//! several alignments, with guard bytes around the output, and in place. `POINTWISE_MATRIX=quick` takes fewer sizes, for
//! a memory checker.

use libtest_mimic::{Arguments, Failed, Trial};
use pointwise::{Accuracy, DType, Device, Number, Strategy, Tensor, UNARY, UnaryDef};
use tests::{inputs, judge, params};

const GUARD: u8 = 0xA5;

fn main() {
    let arguments = Arguments::from_args();
    let name = std::env::var("POINTWISE_DEVICE").unwrap_or_else(|_| "auto".to_owned());
    let device = Device::parse(&name).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        std::process::exit(2);
    });
    let mut trials = Vec::new();
    for def in UNARY {
        for &dtype in def.info.types {
            if device.is_cpu() {
                trials.push(trial(def, dtype, "cpu", move || case(&device, def, dtype, Strategy::Auto)));
                continue;
            }
            for strategy in Strategy::ALL.into_iter().filter(|s| s.serves_unary(dtype, def.info.result)) {
                trials.push(trial(def, dtype, strategy.name(), move || case(&device, def, dtype, strategy)));
            }
        }
    }
    if device.is_cuda() {
        for strategy in Strategy::ALL {
            let name = format!("beyond_2_to_32::f8e4m3::{strategy}");
            trials.push(Trial::test(name, move || beyond_32_bits(&device, strategy)).with_ignored_flag(true));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn trial(
    def: &'static UnaryDef,
    dtype: DType,
    strategy: &str,
    run: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    Trial::test(format!("{}::{dtype}::{strategy}", def.info.name), run)
}

/// Operand and result offsets in elements, from a 256-byte boundary.
const OFFSETS: &[(usize, usize)] = &[(0, 0), (1, 1), (3, 3), (7, 7), (1, 0), (0, 1), (5, 2)];
const SIZES: &[usize] = &[0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 63, 127, 255, 257, 1023, 1025, 4099];
const QUICK_SIZES: &[usize] = &[0, 1, 17, 1025];
const QUICK_OFFSETS: &[(usize, usize)] = &[(0, 0), (3, 3), (1, 0)];

fn case(device: &Device, def: &'static UnaryDef, dtype: DType, strategy: Strategy) -> Result<(), Failed> {
    let x = if dtype.size() <= 2 { inputs::every_code(dtype) } else { inputs::mixed(dtype, 1 << 16, 2) };
    for set in params::sets(&def.info, dtype) {
        whole(device, def, dtype, strategy, &set, &x)?;
        parts(device, def, dtype, strategy, &set)?;
    }
    Ok(())
}

/// The whole input against the oracle, and against the CPU where both must be the same bits.
fn whole(
    device: &Device,
    def: &UnaryDef,
    dtype: DType,
    strategy: Strategy,
    set: &[Number; 4],
    x: &[u8],
) -> Result<(), Failed> {
    let n = x.len() / dtype.size();
    let kernel = kernel(def, set, strategy);
    let y = kernel.run(&Tensor::from_bytes(device, dtype, x, [n])?)?.to_bytes()?;
    let result = def.info.result.of(dtype);
    let report = judge::unary(def, dtype, set, x, &y);
    if !report.keeps(def.info.accuracy, result, dtype.size() == 2) {
        return Err(format!("{set:?}: {report}").into());
    }
    if device.is_cuda() && def.info.accuracy == Accuracy::Exact {
        let cpu = kernel.run(&Tensor::from_bytes(&Device::cpu(), dtype, x, [n])?)?.to_bytes()?;
        if let Some(at) = judge::same_bits(result, &y, &cpu) {
            return Err(format!("{set:?}: element {at} differs from the CPU's").into());
        }
    }
    Ok(())
}

/// Sizes and alignments, each against the same elements of one large call.
fn parts(
    device: &Device,
    def: &UnaryDef,
    dtype: DType,
    strategy: Strategy,
    set: &[Number; 4],
) -> Result<(), Failed> {
    let quick = std::env::var("POINTWISE_MATRIX").is_ok_and(|value| value == "quick");
    let (sizes, offsets) = if quick { (QUICK_SIZES, QUICK_OFFSETS) } else { (SIZES, OFFSETS) };
    let result = def.info.result.of(dtype);
    let kernel = kernel(def, set, strategy);
    let largest = sizes.iter().max().copied().unwrap_or(0);
    let x_bytes = inputs::mixed(dtype, largest + 16, 4);
    let x = Tensor::from_bytes(device, dtype, &x_bytes, [largest + 16])?;
    let exact = kernel.run(&x)?.to_bytes()?;
    // A bool buffer holds nothing but 0 and 1.
    let guard = if result == DType::Bool { 1 } else { GUARD };
    for &n in sizes {
        for &(x_at, y_at) in offsets {
            let total = n + 32;
            let guards = vec![guard; total * result.size()];
            let mut y = Tensor::from_bytes(device, result, &guards, [total])?;
            let into = y.view_mut().narrow(0, y_at, n)?;
            kernel.run_into(x.view().narrow(0, x_at, n)?, into)?;
            let bytes = y.to_bytes()?;
            let (start, end) = (y_at * result.size(), (y_at + n) * result.size());
            let expected = &exact[x_at * result.size()..(x_at + n) * result.size()];
            if let Some(at) = judge::same_bits(result, &bytes[start..end], expected) {
                return Err(format!("size {n}, offsets {x_at} and {y_at}: element {at} is wrong").into());
            }
            if bytes[..start].iter().chain(&bytes[end..]).any(|&byte| byte != guard) {
                return Err(format!("size {n}, offsets {x_at} and {y_at}: wrote outside the output").into());
            }
            if result == dtype && x_at == y_at {
                let mut inplace = x.try_clone()?;
                kernel.run_inplace(inplace.view_mut().narrow(0, x_at, n)?)?;
                let bytes = inplace.to_bytes()?;
                if let Some(at) = judge::same_bits(result, &bytes[start..end], expected) {
                    return Err(format!("in place, size {n}, offset {x_at}: element {at} is wrong").into());
                }
                if bytes[..start] != x_bytes[..start] || bytes[end..] != x_bytes[end..] {
                    return Err(format!("in place, size {n}, offset {x_at}: wrote outside the view").into());
                }
            }
        }
    }
    Ok(())
}

fn kernel(def: &UnaryDef, set: &[Number; 4], strategy: Strategy) -> pointwise::UnaryKernel {
    pointwise::op(def.info.name).expect("the op comes from the list").kernel_with(*set).strategy(strategy)
}

/// More elements than 32 bits can count.
fn beyond_32_bits(device: &Device, strategy: Strategy) -> Result<(), Failed> {
    let n = (1_usize << 32) + 12_345;
    let codes: Vec<u8> = (0..n).map(|i| (i % 251) as u8).collect();
    let mut x = Tensor::from_bytes(device, DType::F8E4M3, &codes, [n])?;
    let op = pointwise::op("neg").expect("an op of the family");
    op.kernel().strategy(strategy).run_inplace(&mut x)?;
    let bytes = x.to_bytes()?;
    match bytes.iter().zip(&codes).position(|(y, x)| *y != x ^ 0x80 && x & 0x7F != 0x7F) {
        None => Ok(()),
        Some(at) => Err(format!("element {at} is wrong").into()),
    }
}
