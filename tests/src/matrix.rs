//! The cases of the matrix: an op in one element type, by one strategy or class of kernels.

use libtest_mimic::Failed;
use pointwise::{
    DType, Device, Number, Operand, Strategy, Tensor, TensorViewMut,
    info::{Accuracy, OpInfo},
    kernel::{Class, OpDef},
};
use pointwise_testkit::{calls, inputs, judge, layouts, params};

const GUARD: u8 = 0xA5;

/// Operand and result offsets in elements, from a 256-byte boundary.
const OFFSETS: &[(usize, usize)] = &[(0, 0), (1, 1), (3, 3), (7, 7), (1, 0), (0, 1), (5, 2)];
const SIZES: &[usize] = &[0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 63, 127, 255, 257, 1023, 1025, 4099];
const QUICK_SIZES: &[usize] = &[0, 1, 17, 1025];
const QUICK_OFFSETS: &[(usize, usize)] = &[(0, 0), (3, 3), (1, 0)];

/// Sizes and alignments of an op of one operand, each against the same elements of one large call.
///
/// # Errors
/// The fault, in words.
pub fn sizes(device: &Device, def: &'static OpDef, dtype: DType, strategy: Strategy) -> Result<(), Failed> {
    params::sets(&def.info, dtype).iter().try_for_each(|set| parts(device, def, dtype, strategy, set))
}

fn parts(
    device: &Device,
    def: &'static OpDef,
    dtype: DType,
    strategy: Strategy,
    set: &[Number; 4],
) -> Result<(), Failed> {
    let (sizes, offsets) = if is_quick() { (QUICK_SIZES, QUICK_OFFSETS) } else { (SIZES, OFFSETS) };
    let result = def.info.result_type(0, dtype);
    let kernel = def.unary_with(set).strategy(strategy);
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
            let into = y.view_mut()?.narrow(0, y_at, n)?;
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
                let mut inplace = x.copy()?;
                kernel.run_inplace(inplace.view_mut()?.narrow(0, x_at, n)?)?;
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

/// More elements than 32 bits can count.
///
/// # Errors
/// The fault, in words.
pub fn beyond_32_bits(device: &Device, strategy: Strategy) -> Result<(), Failed> {
    let n = (1_usize << 32) + 12_345;
    let codes: Vec<u8> = (0..n).map(|i| (i % 251) as u8).collect();
    let mut x = Tensor::from_bytes(device, DType::F8E4M3, &codes, [n])?;
    let op = pointwise::info::op("neg").expect("an op of the family");
    op.unary_with(&[]).strategy(strategy).run_inplace(&mut x)?;
    let bytes = x.to_bytes()?;
    match bytes.iter().zip(&codes).position(|(y, x)| *y != x ^ 0x80 && x & 0x7F != 0x7F) {
        None => Ok(()),
        Some(at) => Err(format!("element {at} is wrong").into()),
    }
}

fn is_quick() -> bool {
    std::env::var("POINTWISE_MATRIX").is_ok_and(|value| value == "quick")
}

/// An op by the kernels of one class, as a strategy chooses them: every code or special and mixed values, in place, and views
/// of all kinds.
///
/// # Errors
/// The fault, in words.
pub fn class(
    device: &Device,
    def: &'static OpDef,
    dtype: DType,
    class: Class,
    strategy: Strategy,
) -> Result<(), Failed> {
    let info = &def.info;
    let operands = calls::operands(info, dtype, 2);
    let Rows { tensors, inside, shape: [rows, cols] } = Rows::new(device, info, dtype, &operands, class)?;
    for set in params::sets(info, dtype) {
        let mut views = Vec::new();
        for tensor in &tensors {
            views.push(tensor.view().narrow(1, 0, cols)?);
        }
        let mut results = Vec::new();
        for k in 0..info.results.len() {
            results.push(Tensor::zeros(device, info.result_type(k, dtype), [rows, cols])?);
        }
        calls::run_views(def, &set, strategy, &views, results.iter_mut().map(TensorViewMut::from).collect())?;
        let mut bytes = Vec::new();
        for result in &results {
            bytes.push(result.to_bytes()?);
        }
        calls::check(def, dtype, &set, &inside, &bytes)?;
        if !device.is_cpu() && info.accuracy == Accuracy::Exact {
            let mut host = Vec::new();
            for (k, bytes) in inside.iter().enumerate() {
                host.push(Tensor::from_bytes(&Device::cpu(), info.operand_type(k, dtype), bytes, [rows, cols])?);
            }
            for (k, cpu) in calls::run(def, &set, Strategy::Auto, &host)?.iter().enumerate() {
                if let Some(at) = judge::same_bits(cpu.dtype(), &bytes[k], &cpu.to_bytes()?) {
                    return Err(format!("{}, {set:?}: element {at} differs from the CPU's", info.results[k]).into());
                }
            }
        }
        // The first result over the last operand of its type and shape, unless the result is bool.
        let last = (0..tensors.len()).rev().find(|k| !info.is_bool(*k));
        if let (Some(last), true) = (last, info.result_type(0, dtype) == dtype) {
            let mut target = tensors[last].copy()?;
            let alias = target.view();
            // SAFETY: the same memory as operand and result is what is tested; the tensor outlives both views.
            let source = unsafe {
                let (shape, strides) = (*alias.shape(), alias.strides());
                pointwise::TensorView::from_raw_parts(device, alias.device_ptr(), dtype, shape, strides)
            }?;
            views[last] = source.narrow(1, 0, cols)?;
            let mut targets = vec![target.view_mut()?.narrow(1, 0, cols)?];
            targets.extend(results[1..].iter_mut().map(TensorViewMut::from));
            calls::run_views(def, &set, strategy, &views, targets)?;
            if let Some(at) = judge::same_bits(dtype, &target.view().narrow(1, 0, cols)?.to_bytes()?, &bytes[0]) {
                return Err(format!("{set:?}: element {at} is wrong in place").into());
            }
        }
        if info.is_gradient() && def.takes_halves() {
            gated(device, def, dtype, strategy, &inside, &bytes, [rows, cols])?;
        }
    }
    let step = if is_quick() { 7 } else { 1 };
    for case in layouts::cases().iter().step_by(step) {
        layouts::check(device, def, dtype, strategy, case)?;
    }
    Ok(())
}

/// Operands as rows of whole vectors, with a gap behind each where the class is not to be flat.
struct Rows {
    tensors: Vec<Tensor>,
    /// The elements outside of the gaps.
    inside: Vec<Vec<u8>>,
    shape: [usize; 2],
}

impl Rows {
    fn new(
        device: &Device,
        info: &OpInfo,
        dtype: DType,
        operands: &[Vec<u8>],
        class: Class,
    ) -> Result<Rows, pointwise::Error> {
        let (cols, gap) = (64, if class == Class::Flat { 0 } else { 16 });
        let rows = operands[0].len() / info.operand_type(0, dtype).size() / cols;
        let (mut tensors, mut inside) = (Vec::new(), Vec::new());
        for (k, bytes) in operands.iter().enumerate() {
            let dtype = info.operand_type(k, dtype);
            let mut padded = vec![0; rows * (cols + gap) * dtype.size()];
            let (from, to) = (cols * dtype.size(), (cols + gap) * dtype.size());
            for (row, source) in padded.chunks_exact_mut(to).zip(bytes.chunks_exact(from)) {
                row[..from].copy_from_slice(source);
            }
            tensors.push(Tensor::from_bytes(device, dtype, &padded, [rows, cols + gap])?);
            inside.push(bytes[..rows * from].to_vec());
        }
        Ok(Rows { tensors, inside, shape: [rows, cols] })
    }
}

/// Gate and value as the halves of one tensor, over which their gradients are written.
fn gated(
    device: &Device,
    def: &'static OpDef,
    dtype: DType,
    strategy: Strategy,
    operands: &[Vec<u8>],
    expected: &[Vec<u8>],
    [rows, cols]: [usize; 2],
) -> Result<(), Failed> {
    let beside = |parts: &[Vec<u8>]| {
        let row = cols * dtype.size();
        let pairs = parts[0].chunks_exact(row).zip(parts[1].chunks_exact(row));
        pairs.flat_map(|(gate, value)| [gate, value].concat()).collect::<Vec<u8>>()
    };
    let grad = Tensor::from_bytes(device, dtype, &operands[0], [rows, cols])?;
    let x = Tensor::from_bytes(device, dtype, &beside(&operands[1..]), [rows, 2 * cols])?;
    let mut y = Tensor::zeros(device, dtype, [rows, 2 * cols])?;
    let operands = [Operand::from(&grad), Operand::from(&x)];
    def.kernel(&[]).strategy(strategy).run_into(&operands, &mut [y.view_mut()?])?;
    match judge::same_bits(dtype, &y.to_bytes()?, &beside(expected)) {
        None => Ok(()),
        Some(at) => Err(format!("element {at} of the halves is wrong").into()),
    }
}

/// More elements than 32 bits can count, in several launches.
///
/// # Errors
/// The fault, in words.
pub fn map_beyond_32_bits(device: &Device, class: Class) -> Result<(), Failed> {
    let (rows, cols) = ((1_usize << 16) + 1, 1_usize << 16);
    let codes: Vec<u8> = (0..rows * cols).map(|i| (i % 251) as u8).collect();
    let column: Vec<u8> = (0..rows).map(|i| (i % 241) as u8).collect();
    let mut x = Tensor::from_bytes(device, DType::U8, &codes, [rows, cols])?;
    let column_tensor = Tensor::from_bytes(device, DType::U8, &column, [rows, 1])?;
    let strategy = if class == Class::Strided { Strategy::ExplicitParallel } else { Strategy::Auto };
    let kernel = pointwise::kernels::bitwise_xor().strategy(strategy);
    match class {
        Class::Flat => kernel.run_inplace(&mut x, 77)?,
        Class::Rows | Class::Strided => kernel.run_inplace(&mut x, &column_tensor)?,
    }
    let bytes = x.to_bytes()?;
    let other = |i: usize| if class == Class::Flat { 77 } else { column[i / cols] };
    match bytes.iter().zip(&codes).enumerate().position(|(i, (y, x))| *y != x ^ other(i)) {
        None => Ok(()),
        Some(at) => Err(format!("element {at} is wrong").into()),
    }
}
