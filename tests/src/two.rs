//! Threads with several vectors that are loaded at once, against threads with one.

use pointwise::{
    DType, Device, Operand, Tensor, TensorView, TensorViewMut,
    kernel::{MapDef, UnaryDef},
};
use pointwise_core::Kind;
use pointwise_testkit::{inputs, judge};

type Checked = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Threads of a block.
const THREADS: u32 = 64;
/// Elements beside whole blocks of two vectors a thread.
const BESIDE: &[isize] = &[-9, -1, 0, 1, 8, 77, 600];
/// Elements before the first of a view.
const OFFSETS: &[usize] = &[0, 3];

/// Sizes around those of one to five blocks of two vectors a thread.
fn sizes(dtype: DType) -> impl Iterator<Item = usize> {
    let block = (2 * THREADS as usize * 16 / dtype.size()) as isize;
    [1, 2, 5].into_iter().flat_map(move |blocks| BESIDE.iter().map(move |beside| (blocks * block + beside) as usize))
}

fn same(what: &str, dtype: DType, got: &Tensor, expected: &Tensor) -> Checked {
    match judge::same_bits(dtype, &got.to_bytes()?, &expected.to_bytes()?) {
        None => Ok(()),
        Some(at) => Err(format!("{what}: element {at} differs").into()),
    }
}

/// A unary op with two to five vectors a thread, to another tensor and in place.
///
/// # Errors
/// The first difference, and those of the library.
pub fn check_unary(device: &Device, def: &'static UnaryDef, dtype: DType) -> Checked {
    let result = def.info.result.of(dtype);
    let most = sizes(dtype).max().unwrap_or(0) + 16;
    let x = Tensor::from_bytes(device, dtype, &inputs::mixed(dtype, most, 6), [most])?;
    let kernel = |vectors| def.kernel().threads(THREADS).vectors_per_thread(vectors);
    for n in sizes(dtype) {
        for &offset in OFFSETS {
            let run = |vectors| -> pointwise::Result<Tensor> {
                let mut y = Tensor::zeros(device, result, [most])?;
                kernel(vectors).run_into(x.view().narrow(0, offset, n)?, y.view_mut()?.narrow(0, offset, n)?)?;
                Ok(y)
            };
            let one = run(1)?;
            for vectors in 2..6 {
                let what = format!("{vectors} vectors, size {n}, offset {offset}");
                same(&what, result, &run(vectors)?, &one)?;
                if result == dtype {
                    let (mut expected, mut inplace) = (x.copy()?, x.copy()?);
                    kernel(1).run_inplace(expected.view_mut()?.narrow(0, offset, n)?)?;
                    kernel(vectors).run_inplace(inplace.view_mut()?.narrow(0, offset, n)?)?;
                    same(&format!("{what}, in place"), dtype, &inplace, &expected)?;
                }
            }
        }
    }
    Ok(())
}

/// An op of several operands with two vectors a thread: flat, along rows with a gap behind each, and with the last
/// operand one row for all.
///
/// # Errors
/// The first difference, and those of the library.
pub fn check_map(device: &Device, def: &'static MapDef, dtype: DType) -> Checked {
    let most = sizes(dtype).max().unwrap_or(0) + 16;
    let (cols, gap) = (48, 16);
    let count = def.info.operands.len();
    let mut tensors = Vec::new();
    for k in 0..count {
        let dtype = def.info.operand_type(k, dtype);
        let bytes = inputs::mixed(dtype, 2 * most, 7 + k as u64);
        tensors.push(Tensor::from_bytes(device, dtype, &bytes, [2 * most])?);
    }
    let both = |what: &str, operands: &[TensorView<'_>], shape: &[usize], offset: usize| -> Checked {
        let operands: Vec<Operand<'_>> = operands.iter().map(|&view| Operand::View(view)).collect();
        let n: usize = shape.iter().product();
        let run = |vectors| -> pointwise::Result<Tensor> {
            let mut y = Tensor::zeros(device, dtype, [most])?;
            run_into(def, vectors, &operands, y.view_mut()?.narrow(0, offset, n)?.reshape(shape)?)?;
            Ok(y)
        };
        same(what, dtype, &run(2)?, &run(1)?)
    };
    for n in sizes(dtype) {
        for &offset in OFFSETS {
            let mut flat = Vec::new();
            for tensor in &tensors {
                flat.push(tensor.view().narrow(0, offset, n)?);
            }
            both(&format!("size {n}, offset {offset}"), &flat, &[n], offset)?;
        }
        let rows = n / cols;
        let mut padded = Vec::new();
        for tensor in &tensors {
            let whole = tensor.view().narrow(0, 0, rows * (cols + gap))?;
            padded.push(whole.reshape([rows, cols + gap])?.narrow(1, 0, cols)?);
        }
        both(&format!("{rows} rows"), &padded, &[rows, cols], 0)?;
        padded[count - 1] = tensors[count - 1].view().narrow(0, 0, cols)?;
        both(&format!("{rows} rows and one"), &padded, &[rows, cols], 0)?;
    }
    Ok(())
}

/// What a call with two vectors a thread leaves in the result's memory: rows with a gap behind each, or one whose
/// elements begin behind as many.
///
/// # Errors
/// Those of the library.
pub fn outcome(
    device: &Device,
    def: &'static MapDef,
    dtype: DType,
    [rows, cols]: [usize; 2],
    gap: usize,
) -> pointwise::Result<Vec<u8>> {
    let wide = [rows, cols + gap];
    let at = if rows == 1 { gap } else { 0 };
    let mut tensors = Vec::new();
    for k in 0..def.info.operands.len() {
        let dtype = def.info.operand_type(k, dtype);
        let bytes = inputs::mixed(dtype, rows * (cols + gap), 7 + k as u64);
        tensors.push(Tensor::from_bytes(device, dtype, &bytes, wide)?);
    }
    let mut operands = Vec::new();
    for tensor in &tensors {
        operands.push(Operand::View(tensor.view().narrow(1, at, cols)?));
    }
    let mut y = Tensor::zeros(device, def.info.result.of(dtype), wide)?;
    run_into(def, 2, &operands, y.view_mut()?.narrow(1, at, cols)?)?;
    y.to_bytes()
}

fn run_into(
    def: &'static MapDef,
    vectors: u32,
    operands: &[Operand<'_>],
    y: TensorViewMut<'_>,
) -> pointwise::Result<()> {
    match *operands {
        [a, b] if matches!(def.info.kind, Kind::Binary | Kind::Backward) => {
            def.binary_with(&[]).threads(THREADS).vectors_per_thread(vectors).run_into(a, b, y)
        }
        [a, b] => def.gated_with(&[]).threads(THREADS).vectors_per_thread(vectors).run_pair_into(a, b, y),
        [a, b, c] => def.ternary_with(&[]).threads(THREADS).vectors_per_thread(vectors).run_into(a, b, c, y),
        _ => unreachable!("two or three operands"),
    }
}
