//! Views of all shapes and strides, and the model that checks ops on them.

use pointwise::{
    DType, Device, Number, Result, Strategy, Tensor, TensorView, TensorViewMut, info::OpInfo, kernel::OpDef,
};
use pointwise_core::op::MAX_PARAMS;

use crate::{Random, calls, inputs};

/// The layout of an operand in a tensor of its own: the broadcast dimensions, and the places of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shaped {
    /// Leading dimensions that are left out.
    pub missing: usize,
    /// Bit `d`: dimension `d` has size 1.
    pub ones: u32,
    /// Bit `d`: only every second element of dimension `d` is taken.
    pub stepped: u32,
    /// The number of places that dimensions are rotated in memory.
    pub rotated: usize,
    /// Elements of the innermost dimension that are skipped.
    pub offset: usize,
}

impl Shaped {
    /// A contiguous operand of the whole shape.
    pub const WHOLE: Shaped = Shaped { missing: 0, ones: 0, stepped: 0, rotated: 0, offset: 0 };

    /// Returns a tensor with the operand in it. `seed` decides its elements.
    ///
    /// # Errors
    /// Fails if the library refuses the call.
    pub fn tensor(&self, device: &Device, dtype: DType, shape: &[usize], seed: u64) -> Result<Tensor> {
        let storage = self.storage(&self.dims(shape));
        let n: usize = storage.iter().product();
        let bytes = if dtype == DType::Bool || dtype.size() > 1 {
            inputs::mixed(dtype, n, seed)
        } else {
            let mut random = Random::new(seed);
            (0..n).map(|_| random.next_u64() as u8).collect()
        };
        Tensor::from_bytes(device, dtype, &bytes, storage)
    }

    /// Returns the operand in its tensor.
    ///
    /// # Errors
    /// Fails if the library refuses the call.
    pub fn view<'a>(&self, tensor: &'a Tensor, shape: &[usize]) -> Result<TensorView<'a>> {
        let dims = self.dims(shape);
        let rank = dims.len();
        let mut view = tensor.view();
        if rank > 0 {
            view = view.narrow(rank - 1, self.offset, view.shape()[rank - 1] - self.offset)?;
            // From the order in memory to the shape's order.
            let order: Vec<usize> = (0..rank).map(|d| (d + rank - self.rotated % rank) % rank).collect();
            view = view.permute(&order)?;
            for (d, _) in dims.iter().enumerate().filter(|(d, _)| self.stepped >> d & 1 == 1) {
                view = view.step(d, 2)?;
            }
        }
        Ok(view)
    }

    fn dims(&self, shape: &[usize]) -> Vec<usize> {
        let missing = self.missing.min(shape.len());
        shape[missing..].iter().enumerate().map(|(d, &size)| if self.ones >> d & 1 == 1 { 1 } else { size }).collect()
    }

    /// Returns the shape in memory.
    fn storage(&self, dims: &[usize]) -> Vec<usize> {
        let rank = dims.len();
        let mut sizes: Vec<usize> = dims
            .iter()
            .enumerate()
            .map(|(d, &size)| if self.stepped >> d & 1 == 1 { size * 2 } else { size })
            .collect();
        if rank > 0 {
            sizes.rotate_left(self.rotated % rank);
            sizes[rank - 1] += self.offset;
        }
        sizes
    }
}

/// One call: a shape, and the layouts of its operands and results.
#[derive(Clone, Debug)]
pub struct Case {
    /// The shape of the result.
    pub shape: Vec<usize>,
    /// One for each operand. Extra ones are ignored; operands without one are whole.
    pub operands: Vec<Shaped>,
    /// The results' layout: no dimension is missing or of size 1.
    pub result: Shaped,
    /// Seed of the elements.
    pub seed: u64,
}

/// The bytes around and between the elements of a result.
const GUARD: u8 = 0xA5;

/// Runs the case, and compares each element with the same op on copies of whole shape. Bytes outside of the results
/// must stay as they were.
///
/// # Errors
/// Fails at a difference, or if the library refuses the call.
pub fn check(
    device: &Device,
    def: &'static OpDef,
    dtype: DType,
    strategy: Strategy,
    case: &Case,
) -> std::result::Result<(), String> {
    run(device, def, dtype, strategy, case).map_err(|error| error.to_string())?
}

/// Returns the operands' memory.
fn tensors(device: &Device, info: &OpInfo, dtype: DType, case: &Case, shaped: &[&Shaped]) -> Result<Vec<Tensor>> {
    let one = |(k, shaped): (usize, &&Shaped)| {
        shaped.tensor(device, info.operand_type(k, dtype), &case.shape, case.seed + 2 * k as u64)
    };
    shaped.iter().enumerate().map(one).collect()
}

fn views<'a>(shaped: &[&Shaped], tensors: &'a [Tensor], shape: &[usize]) -> Result<Vec<TensorView<'a>>> {
    let view = |(shaped, tensor): (&&Shaped, &'a Tensor)| {
        let view = shaped.view(tensor, shape)?;
        // One operand is broadcast by nothing but itself.
        if tensors.len() == 1 { view.expand(shape) } else { Ok(view) }
    };
    shaped.iter().zip(tensors).map(view).collect()
}

/// True if the operands broadcast to the shape. They do not if each has size 1 in the same dimension.
fn reaches(views: &[TensorView<'_>], shape: &[usize]) -> Result<bool> {
    let shapes: Vec<&pointwise::Shape> = views.iter().map(TensorView::shape).collect();
    Ok(&*pointwise::Shape::broadcast(&shapes)? == shape)
}

/// Returns the operands at full size; `None` if they do not broadcast to the shape.
fn copies(views: &[TensorView<'_>], shape: &[usize]) -> Result<Option<Vec<Tensor>>> {
    if !reaches(views, shape)? {
        return Ok(None);
    }
    views.iter().map(|view| view.expand(shape)?.to_tensor()).collect::<Result<_>>().map(Some)
}

fn run(
    device: &Device,
    def: &'static OpDef,
    dtype: DType,
    strategy: Strategy,
    case: &Case,
) -> Result<std::result::Result<(), String>> {
    let (set, shape, info) = ([Number::Default; MAX_PARAMS], &*case.shape, &def.info);
    let shaped = operands(info, case);
    let tensors = tensors(device, info, dtype, case, &shaped)?;
    let views = views(&shaped, &tensors, shape)?;
    let Some(copies) = copies(&views, shape)? else {
        return Ok(Ok(()));
    };
    let expected = calls::run(def, &set, Strategy::Auto, &copies)?;
    let mut results = guarded_all(device, info, dtype, case)?;
    let targets = results.iter_mut().map(|y| inside(y, &case.result, shape)).collect::<Result<Vec<_>>>()?;
    calls::run_views(def, &set, strategy, &views, targets)?;
    for ((y, expected), name) in results.iter().zip(&expected).zip(info.results) {
        if let Err(what) = compare(y, &case.result, shape, &expected.to_bytes()?)? {
            return Ok(Err(format!("{name} of {} {dtype} {strategy} {case:?}: {what}", info.name)));
        }
    }
    Ok(Ok(()))
}

/// Returns the layouts of an op's operands. Operands that the case does not have are whole.
fn operands<'a>(info: &OpInfo, case: &'a Case) -> Vec<&'a Shaped> {
    case.operands.iter().chain(std::iter::repeat(&Shaped::WHOLE)).take(info.operands.len()).collect()
}

/// Returns the memory of each result. All have the same layout.
fn guarded_all(device: &Device, info: &OpInfo, dtype: DType, case: &Case) -> Result<Vec<Tensor>> {
    let one = |k| guarded(device, &case.result, &case.shape, info.result_type(k, dtype));
    (0..info.results.len()).map(one).collect()
}

/// Returns the bytes that the case leaves in the memory of the results; none if the operands do not broadcast to the
/// shape.
///
/// # Errors
/// Fails if the library refuses the call.
pub fn outcome(device: &Device, def: &'static OpDef, dtype: DType, strategy: Strategy, case: &Case) -> Result<Vec<u8>> {
    let (set, shape) = ([Number::Default; MAX_PARAMS], &*case.shape);
    let shaped = operands(&def.info, case);
    let tensors = tensors(device, &def.info, dtype, case, &shaped)?;
    let views = views(&shaped, &tensors, shape)?;
    if !reaches(&views, shape)? {
        return Ok(Vec::new());
    }
    let mut results = guarded_all(device, &def.info, dtype, case)?;
    let targets = results.iter_mut().map(|y| inside(y, &case.result, shape)).collect::<Result<Vec<_>>>()?;
    calls::run_views(def, &set, strategy, &views, targets)?;
    let bytes = results.iter().map(|y| y.to_bytes()).collect::<Result<Vec<_>>>()?;
    Ok(bytes.concat())
}

/// Returns the byte around a result. A bool buffer holds nothing but 0 and 1.
fn guard(dtype: DType) -> u8 {
    if dtype == DType::Bool { 1 } else { GUARD }
}

/// Returns a tensor of guard bytes for a result with the layout `shaped`.
fn guarded(device: &Device, shaped: &Shaped, shape: &[usize], dtype: DType) -> Result<Tensor> {
    let storage = shaped.storage(shape);
    let n: usize = storage.iter().product();
    Tensor::from_bytes(device, dtype, &vec![guard(dtype); n * dtype.size()], storage)
}

/// Returns the result in its tensor.
fn inside<'a>(y: &'a mut Tensor, shaped: &Shaped, shape: &[usize]) -> Result<TensorViewMut<'a>> {
    let rank = shape.len();
    let mut view = y.view_mut()?;
    if rank > 0 {
        let len = view.shape()[rank - 1] - shaped.offset;
        view = view.narrow(rank - 1, shaped.offset, len)?;
        let order: Vec<usize> = (0..rank).map(|d| (d + rank - shaped.rotated % rank) % rank).collect();
        view = view.permute(&order)?;
        for d in (0..rank).filter(|d| shaped.stepped >> d & 1 == 1) {
            view = view.step(d, 2)?;
        }
    }
    Ok(view)
}

/// Compares the result with the expected bytes, and checks that the guard bytes are left.
fn compare(y: &Tensor, shaped: &Shaped, shape: &[usize], expected: &[u8]) -> Result<std::result::Result<(), String>> {
    let (dtype, guard) = (y.dtype(), guard(y.dtype()));
    let got = shaped.view(y, shape)?.to_bytes()?;
    if let Some(at) = crate::judge::same_bits(dtype, &got, expected) {
        return Ok(Err(format!("element {at} is wrong")));
    }
    // Counts the guard bytes that are left. Equal bytes within elements of the result belong to the result.
    let all = y.to_bytes()?;
    let kept = all.iter().filter(|&&byte| byte == guard).count();
    let in_result = got.iter().filter(|&&byte| byte == guard).count();
    let is_kept = kept - in_result == all.len() - got.len();
    Ok(if is_kept { Ok(()) } else { Err("wrote outside the result".to_owned()) })
}

/// Returns shapes and layouts that reach each class of kernels and each ending of a row.
#[must_use]
pub fn cases() -> Vec<Case> {
    let whole = || Shaped::WHOLE;
    let ones = |ones: u32| Shaped { ones, ..Shaped::WHOLE };
    let missing = |missing: usize| Shaped { missing, ..Shaped::WHOLE };
    let mut cases = Vec::new();
    let mut add = |shape: &[usize], operands: [Shaped; 3], result: Shaped| {
        cases.push(Case {
            shape: shape.to_vec(),
            operands: operands.to_vec(),
            result,
            seed: 2 * cases.len() as u64 + 1,
        });
    };
    // Same shape, of every size about a vector's; empty; no dimensions.
    for n in (0..36).chain([255, 1025, 4099]) {
        add(&[n], [whole(), whole(), whole()], whole());
    }
    add(&[], [whole(), whole(), whole()], whole());
    add(&[3, 0, 4], [whole(), missing(2), ones(1)], whole());
    // Heads: common offsets, and offsets that no vector suits.
    for offset in [1, 3, 5, 8] {
        let at = || Shaped { offset, ..whole() };
        add(&[101], [at(), at(), at()], at());
        add(&[101], [at(), whole(), at()], whole());
    }
    // One value.
    add(&[259], [whole(), ones(1), whole()], whole());
    add(&[259], [ones(1), whole(), ones(1)], whole());
    add(&[5, 64], [missing(2), whole(), missing(2)], whole());
    // Bias, scale, outer product, channels, masks; rows that vectors fit and rows that they do not.
    for cols in [1, 2, 3, 16, 31, 32, 48, 64, 65] {
        add(&[7, cols], [whole(), missing(1), whole()], whole());
        add(&[7, cols], [whole(), ones(2), missing(1)], whole());
        add(&[7, cols], [ones(2), missing(1), ones(1)], whole());
        add(&[2, 3, cols], [whole(), ones(4), missing(2)], whole());
        add(&[2, 3, 5, cols], [whole(), Shaped { missing: 1, ones: 6, ..whole() }, ones(0b1010)], whole());
        add(&[2, 3, cols], [ones(2), whole(), ones(5)], whole());
    }
    // Transposed, stepped, sliced operands and results.
    for rotated in [1, 2] {
        let turned = || Shaped { rotated, ..whole() };
        add(&[6, 5, 32], [turned(), whole(), whole()], whole());
        add(&[6, 5, 32], [whole(), turned(), turned()], turned());
        add(&[6, 5, 32], [turned(), turned(), turned()], turned());
        add(&[2, 3, 2, 4, 2, 3], [turned(), ones(0b10101), Shaped { rotated: 3, ..whole() }], whole());
    }
    for stepped in [1, 2, 3] {
        let every = || Shaped { stepped, ..whole() };
        add(&[6, 48], [every(), whole(), every()], whole());
        add(&[6, 48], [whole(), whole(), whole()], every());
    }
    let sliced = |offset| Shaped { offset, ..whole() };
    for offset in [1, 16, 32] {
        add(&[9, 32], [sliced(offset), whole(), sliced(16)], whole());
        add(&[9, 32], [sliced(offset), missing(1), whole()], sliced(offset));
    }
    // The most dimensions.
    add(&[2; 8], [whole(), ones(0b1010_1010), ones(0b0101_0101)], whole());
    add(&[2; 8], [Shaped { rotated: 5, ..whole() }, ones(0b1100_1100), ones(0b11)], Shaped { rotated: 3, ..whole() });
    cases
}
