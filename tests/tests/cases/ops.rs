//! Every op of the registry as a call of its kernel object's `run_into`.

use std::collections::HashSet;

use pointwise::rope::{ROPE, RopeAngles, RopeDef, RopeFrequencies, RopeKernel, RopePrecision};
use pointwise::{
    DType, Device, Operand, Philox, Result, Stream, Tensor, TensorViewMut,
    info::Accuracy,
    kernel::{BinaryKernel, GatedKernel, Kernel, OpDef, SinusoidalLayout, TernaryKernel, UnaryKernel},
    kernels,
};
use pointwise_testkit::{calls, inputs, judge, params};

const FLOATS: [DType; 5] = [DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2];
/// Rows and columns: whole vectors, so that broadcasts have rows of them.
const ROWS: usize = 29;
const COLS: usize = 64;
const N: usize = ROWS * COLS;

/// An operand with two sets of values.
pub(crate) struct Input {
    dtype: DType,
    shape: Vec<usize>,
    pub(crate) sets: [Vec<u8>; 2],
}

type Run = Box<dyn Fn(&[Tensor], &mut [Tensor]) -> Result<()>>;
type Prepare = Box<dyn Fn(&Device, Option<&Stream>) -> std::result::Result<Run, libtest_mimic::Failed> + Send + Sync>;

/// One op in one element type.
pub(crate) struct Case {
    /// `op::type`.
    pub(crate) name: String,
    pub(crate) inputs: Vec<Input>,
    outputs: Vec<(DType, Vec<usize>)>,
    /// The call on a device, on a stream where there is one. All that it needs besides the operands is made
    /// before.
    pub(crate) prepare: Prepare,
    pub(crate) accuracy: Accuracy,
    /// Errors are relative to no less than this.
    pub(crate) floor: f64,
}

impl Case {
    /// The element types of its tensors.
    pub(crate) fn types(&self) -> Vec<DType> {
        self.inputs.iter().map(|input| input.dtype).chain(self.outputs.iter().map(|(dtype, _)| *dtype)).collect()
    }

    pub(crate) fn inputs(&self, device: &Device, set: usize) -> Result<Vec<Tensor>> {
        self.inputs.iter().map(|x| Tensor::from_bytes(device, x.dtype, &x.sets[set], &x.shape[..])).collect()
    }

    pub(crate) fn outputs(&self, device: &Device) -> Result<Vec<Tensor>> {
        self.outputs.iter().map(|(dtype, shape)| Tensor::zeros(device, *dtype, &shape[..])).collect()
    }
}

/// Every op in every element type.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for def in tests::unary() {
        cases.extend(def.info.types.iter().map(|&dtype| unary(def, dtype)));
    }
    for def in tests::forward() {
        cases.extend(def.info.types.iter().map(|&dtype| several(def, dtype)));
    }
    for def in tests::backward() {
        cases.extend(def.info.types.iter().map(|&dtype| backward(def, dtype)));
    }
    for def in tests::gradients() {
        cases.extend(def.info.types.iter().map(|&dtype| gradients(def, dtype)));
    }
    for from in DType::ALL {
        cases.extend(DType::ALL.map(|to| convert(from, to)));
    }
    for dtype in FLOATS {
        cases.extend([dropout(dtype), alibi(dtype, false), alibi(dtype, true)]);
        cases.extend([SinusoidalLayout::Interleaved, SinusoidalLayout::Halves].map(|layout| sinusoidal(dtype, layout)));
        let rotates = matches!(dtype, DType::F32 | DType::F16 | DType::BF16);
        cases.extend(ROPE.iter().filter(|_| rotates).map(|def| rope(def, dtype)));
    }
    cases
}

/// Every op in the last of its types: fp8 for most, which no other test needs to have used.
pub(crate) fn one_type_each() -> Vec<Case> {
    let mut seen = HashSet::new();
    let mut cases = all();
    cases.reverse();
    cases.retain(|case| seen.insert(case.name.rsplit_once("::").map(|(op, _)| op.to_owned())));
    cases
}

/// `len` elements of a list from its start, and from behind its first third; a list that is too short is repeated.
fn parts(bytes: &[u8], dtype: DType, len: usize) -> [Vec<u8>; 2] {
    let size = dtype.size();
    let part = |from: usize| bytes.chunks_exact(size).cycle().skip(from).take(len).flatten().copied().collect();
    [part(0), part(bytes.len() / size / 3 + 1)]
}

fn mixed(dtype: DType, shape: &[usize], seed: u64) -> Input {
    let n = shape.iter().product();
    Input { dtype, shape: shape.to_vec(), sets: [inputs::mixed(dtype, n, seed), inputs::mixed(dtype, n, seed + 100)] }
}

/// A kernel on a stream, where there is one; `on` is the kernel's.
fn on<K>(stream: Option<&Stream>, kernel: K, on: impl FnOnce(K, &Stream) -> K) -> K {
    match stream {
        Some(stream) => on(kernel, stream),
        None => kernel,
    }
}

fn unary(def: &'static OpDef, dtype: DType) -> Case {
    let set = params::sets(&def.info, dtype)[0];
    Case {
        name: format!("{}::{dtype}", def.info.name),
        inputs: vec![mixed(dtype, &[N + 3], 20)],
        outputs: vec![(def.info.result_type(0, dtype), vec![N + 3])],
        prepare: Box::new(move |_, stream| {
            let kernel = on(stream, def.unary_with(&set), UnaryKernel::on);
            Ok(Box::new(move |x, y| kernel.run_into(&x[0], &mut y[0])))
        }),
        accuracy: def.info.accuracy,
        floor: 0.0,
    }
}

/// Two calls: operands of one shape, and the last broadcast along the rows.
fn several(def: &'static OpDef, dtype: DType) -> Case {
    let info = &def.info;
    let set = params::sets(info, dtype)[0];
    let result = info.result_type(0, dtype);
    let mut operands: Vec<Input> = calls::operands(info, dtype, 2)
        .iter()
        .enumerate()
        .map(|(k, bytes)| {
            let dtype = info.operand_type(k, dtype);
            Input { dtype, shape: vec![ROWS, COLS], sets: parts(bytes, dtype, N) }
        })
        .collect();
    let is_gated = def.takes_halves();
    match () {
        () if is_gated => operands = vec![mixed(dtype, &[ROWS, 2 * COLS], 21)],
        () if info.is_channel(1) => operands[1] = mixed(dtype, &[COLS], 22),
        () => {
            let last = &operands[operands.len() - 1];
            let sets = [0, 1].map(|set| last.sets[set][..COLS * last.dtype.size()].to_vec());
            operands.push(Input { dtype: last.dtype, shape: vec![COLS], sets });
        }
    }
    let (is_channel, count) = (info.is_channel(1), info.operands.len());
    let prepare: Prepare = Box::new(move |_, stream| {
        let binary = on(stream, def.binary_with(&set), BinaryKernel::on);
        let gated = on(stream, def.gated_with(&set), GatedKernel::on);
        let ternary = on(stream, def.ternary_with(&set), TernaryKernel::on);
        Ok(match count {
            _ if is_gated => Box::new(move |x, y| gated.run_into(&x[0], &mut y[0])),
            _ if is_channel => Box::new(move |x, y| binary.run_into(&x[0], &x[1], &mut y[0])),
            2 => Box::new(move |x, y| {
                binary.run_into(&x[0], &x[1], &mut y[0])?;
                binary.run_into(&x[0], &x[2], &mut y[1])
            }),
            _ => Box::new(move |x, y| {
                ternary.run_into(&x[0], &x[1], &x[2], &mut y[0])?;
                ternary.run_into(&x[0], &x[1], &x[3], &mut y[1])
            }),
        })
    });
    let calls = if is_gated || is_channel { 1 } else { 2 };
    Case {
        name: format!("{}::{dtype}", info.name),
        inputs: operands,
        outputs: vec![(result, vec![ROWS, COLS]); calls],
        prepare,
        accuracy: info.accuracy,
        floor: 0.0,
    }
}

/// Numbers between -2 and 2, in steps of 2^-12, of a float type; of another any.
fn numbers(dtype: DType, shape: &[usize], seed: u64) -> Input {
    if !dtype.is_float() {
        return mixed(dtype, shape, seed);
    }
    let n: usize = shape.iter().product();
    let set = |seed: u64| -> Vec<u8> {
        let bytes = inputs::mixed(DType::I16, n, seed);
        let numbers = bytes.chunks_exact(2).map(|two| f64::from(i16::from_le_bytes([two[0], two[1]])) / 16384.0);
        pointwise_testkit::with_element!(dtype, E => {
            numbers.flat_map(|x| judge::as_bytes(&<E as pointwise_core::Element>::from_f64(x)).to_vec()).collect()
        })
    };
    Input { dtype, shape: shape.to_vec(), sets: [set(seed), set(seed + 100)] }
}

/// Steps of a gradient may cancel: its error is one of terms of this size at most.
fn of_steps(accuracy: Accuracy) -> (Accuracy, f64) {
    (Accuracy::Ulp(accuracy.bound(DType::F32).max(2.0)), 4.0)
}

/// The gradient of a unary op.
fn backward(def: &'static OpDef, dtype: DType) -> Case {
    let set = params::sets(&def.info, dtype)[0];
    let (accuracy, floor) = of_steps(def.info.accuracy);
    Case {
        name: format!("{}::{dtype}", def.info.name),
        inputs: vec![numbers(dtype, &[ROWS, COLS], 26), numbers(dtype, &[ROWS, COLS], 27)],
        outputs: vec![(dtype, vec![ROWS, COLS])],
        prepare: Box::new(move |_, stream| {
            let kernel = on(stream, def.binary_with(&set), BinaryKernel::on);
            Ok(Box::new(move |x, y| kernel.run_into(&x[0], &x[1], &mut y[0])))
        }),
        accuracy,
        floor,
    }
}

/// The gradients of an op of several operands.
fn gradients(def: &'static OpDef, dtype: DType) -> Case {
    let info = &def.info;
    let set = params::sets(info, dtype)[0];
    let (accuracy, floor) = of_steps(info.accuracy);
    let plain = vec![ROWS, COLS];
    let (operands, outputs): (Vec<Input>, _) = if def.takes_halves() {
        let wide = [ROWS, 2 * COLS];
        (vec![numbers(dtype, &plain, 28), numbers(dtype, &wide, 29)], vec![(dtype, wide.to_vec())])
    } else {
        let operand = |k: usize| match () {
            () if info.is_bool(k) => mixed(DType::Bool, &plain, 30),
            () if info.is_channel(k) => numbers(dtype, &[COLS], 30),
            () => numbers(dtype, &plain, 30 + k as u64),
        };
        let outputs = vec![(dtype, plain.clone()); info.results.len()];
        ((0..info.operands.len()).map(operand).collect(), outputs)
    };
    Case {
        name: format!("{}::{dtype}", info.name),
        inputs: operands,
        outputs,
        prepare: Box::new(move |_, stream| {
            let kernel = on(stream, def.kernel(&set), Kernel::on);
            Ok(Box::new(move |x, y| {
                let operands: Vec<Operand<'_>> = x.iter().map(Operand::from).collect();
                let mut results: Vec<TensorViewMut<'_>> = y.iter_mut().map(TensorViewMut::from).collect();
                kernel.run_into(&operands, &mut results)
            }))
        }),
        accuracy,
        floor,
    }
}

/// One after another, and turned.
fn convert(from: DType, to: DType) -> Case {
    Case {
        name: format!("to_dtype_{from}::{to}"),
        inputs: vec![mixed(from, &[N + 3], 36)],
        outputs: vec![(to, vec![N + 3]), (to, vec![COLS, ROWS])],
        prepare: Box::new(|_, stream| {
            let kernel = kernels::to_dtype();
            let kernel = stream.map_or_else(|| kernel.clone(), |stream| kernel.clone().on(stream));
            Ok(Box::new(move |x, y| {
                kernel.run_into(&x[0], &mut y[0])?;
                let turned = x[0].view().narrow(0, 0, N)?.reshape([ROWS, COLS])?.transpose(0, 1)?;
                kernel.run_into(turned, &mut y[1])
            }))
        }),
        accuracy: Accuracy::Exact,
        floor: 0.0,
    }
}

/// Without and with a mask.
fn dropout(dtype: DType) -> Case {
    Case {
        name: format!("dropout::{dtype}"),
        inputs: vec![mixed(dtype, &[N + 3], 23)],
        outputs: vec![(dtype, vec![N + 3]), (dtype, vec![N + 3]), (DType::Bool, vec![N + 3])],
        prepare: Box::new(|_, stream| {
            let kernel = kernels::dropout(0.3);
            let kernel = stream.map_or_else(|| kernel.clone(), |stream| kernel.clone().on(stream));
            Ok(Box::new(move |x, y| {
                let place = Philox::new(7);
                let [first, second, mask, ..] = y else { unreachable!("three results") };
                kernel.run_into(&x[0], first, place)?;
                kernel.run_with_mask_into(&x[0], second, mask, place)
            }))
        }),
        accuracy: kernels::dropout(0.3).def().info.accuracy,
        floor: 0.0,
    }
}

fn alibi(dtype: DType, causal: bool) -> Case {
    Case {
        name: format!("alibi_{}::{dtype}", if causal { "causal" } else { "symmetric" }),
        inputs: Vec::new(),
        outputs: vec![(dtype, vec![3, 48, 48])],
        prepare: Box::new(move |_, stream| {
            let kernel = if causal { kernels::alibi_causal() } else { kernels::alibi() };
            let kernel = stream.map_or_else(|| kernel.clone(), |stream| kernel.clone().on(stream));
            Ok(Box::new(move |_, y| kernel.run_into(&mut y[0])))
        }),
        accuracy: kernels::alibi().def().info.accuracy,
        floor: 0.0,
    }
}

fn sinusoidal(dtype: DType, layout: SinusoidalLayout) -> Case {
    Case {
        name: format!("sinusoidal_{layout:?}::{dtype}").to_lowercase(),
        inputs: Vec::new(),
        outputs: vec![(dtype, vec![33, 64])],
        prepare: Box::new(move |_, stream| {
            let kernel = kernels::sinusoidal(layout);
            let kernel = stream.map_or_else(|| kernel.clone(), |stream| kernel.clone().on(stream));
            Ok(Box::new(move |_, y| kernel.run_into(&mut y[0])))
        }),
        accuracy: kernels::sinusoidal(layout).def().info.accuracy,
        floor: 0.0,
    }
}

/// q and k of other heads.
fn rope(def: &'static RopeDef, dtype: DType) -> Case {
    let shapes = [[1, 17, 4, 64], [1, 17, 2, 64]];
    Case {
        name: format!("{}::{dtype}", def.name),
        // Finite and of one size: a rotation adds products.
        inputs: vec![numbers(dtype, &shapes[0], 24), numbers(dtype, &shapes[1], 25)],
        outputs: shapes.iter().map(|shape| (dtype, shape.to_vec())).collect(),
        prepare: Box::new(move |device, stream| {
            let config = def.op().config(64)?;
            let frequencies = RopeFrequencies::new(device, &config.frequencies(17)?)?;
            let stream = stream.cloned();
            Ok(Box::new(move |x, y| {
                let angles = RopeAngles::Frequencies(&frequencies, RopePrecision::Hf);
                let kernel = RopeKernel::new(angles, def.pairs);
                let kernel = stream.iter().fold(kernel, |kernel, stream| kernel.on(stream));
                let [q, k, ..] = y else { unreachable!("two results") };
                kernel.run_into(&x[0], Some(x[1].view()), q, Some(k.view_mut()?))
            }))
        }),
        accuracy: Accuracy::Ulp(2.0),
        floor: 2.0,
    }
}
