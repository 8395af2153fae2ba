//! The CPU executor, on one thread and on two: `cargo bench -p benches --bench cpu [-- FILTER]`.
//!
//! Benchmarks are named `OP/TYPE/THREADS`. Results go to tensors that are there; values lie between -8 and 8. PyTorch's
//! times for the same work: `benches/peers/torch_cpu.py`, and both in one table: `benches/peers/cpu_table.py`.

use std::time::Duration;

use benches::random;
use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use pointwise::rope::{RopeAngles, RopeKernel, RopeLayout, RopePairs};
use pointwise::{BINARY, DType, Device, GATED, Result, Tensor, TensorViewMut, UNARY};

/// Elements of a result: 4 MB of f32.
const ROWS: usize = 1024;
const COLUMNS: usize = 1024;
const TYPES: [DType; 2] = [DType::F32, DType::BF16];
const THREADS: [usize; 2] = [1, 2];

/// Tokens, heads of q and of k, lanes of a head: one prompt of Llama 3 8B.
const ROPE: [usize; 4] = [128, 32, 8, 128];

/// Benchmarks one piece of work in pools of one and two threads; `n` is the number of elements of its result.
fn measure(criterion: &mut Criterion, op: &str, dtype: DType, n: usize, mut work: impl FnMut() -> Result<()> + Send) {
    let mut group = criterion.benchmark_group(op);
    group.throughput(Throughput::Elements(n as u64));
    // Many short samples of few calls each: what else the machine does disturbs some of them, not all.
    group.sampling_mode(SamplingMode::Flat);
    for threads in THREADS {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool of few threads");
        group.bench_function(BenchmarkId::new(dtype.name(), threads), |bencher| {
            pool.install(|| bencher.iter(|| work().expect("the op takes these operands")));
        });
    }
    group.finish();
}

fn unary(criterion: &mut Criterion) {
    let device = Device::cpu();
    for dtype in TYPES {
        let x = random(&device, dtype, ROWS * COLUMNS).expect("memory");
        for def in UNARY.iter().filter(|def| def.info.supports(dtype)) {
            let mut y = Tensor::empty(&device, def.info.result.of(dtype), x.shape()).expect("memory");
            let kernel = def.kernel();
            measure(criterion, def.info.name, dtype, x.shape().numel(), || kernel.run_into(&x, &mut y));
        }
    }
}

/// A matrix and a row.
fn broadcast(criterion: &mut Criterion) {
    let device = Device::cpu();
    for dtype in TYPES {
        let a = random(&device, dtype, ROWS * COLUMNS).and_then(|a| a.reshape([ROWS, COLUMNS])).expect("memory");
        let b = random(&device, dtype, COLUMNS).expect("memory");
        let mut y = Tensor::empty(&device, dtype, a.shape()).expect("memory");
        for def in BINARY.iter().filter(|def| ["add", "mul", "div"].contains(&def.info.name)) {
            let kernel = def.binary_with(Default::default());
            measure(criterion, def.info.name, dtype, ROWS * COLUMNS, || kernel.run_into(&a, &b, &mut y));
        }
    }
}

fn gated(criterion: &mut Criterion) {
    let device = Device::cpu();
    for dtype in TYPES {
        let x =
            random(&device, dtype, 2 * ROWS * COLUMNS).and_then(|x| x.reshape([ROWS, 2 * COLUMNS])).expect("memory");
        let mut y = Tensor::empty(&device, dtype, [ROWS, COLUMNS]).expect("memory");
        for def in GATED.iter().filter(|def| def.info.name == "silu_and_mul") {
            let kernel = def.gated_with(Default::default());
            measure(criterion, def.info.name, dtype, ROWS * COLUMNS, || kernel.run_into(&x, &mut y));
        }
    }
}

/// q and k in one call, cosines and sines given.
fn rope(criterion: &mut Criterion) {
    let device = Device::cpu();
    let [tokens, q_heads, k_heads, lanes] = ROPE;
    for dtype in TYPES {
        let tensor = |shape: &[usize]| {
            random(&device, dtype, shape.iter().product()).and_then(|x| x.reshape(shape)).expect("memory")
        };
        let (q, k) = (tensor(&[1, tokens, q_heads, lanes]), tensor(&[1, tokens, k_heads, lanes]));
        let (mut q_out, mut k_out) = (tensor(&[1, tokens, q_heads, lanes]), tensor(&[1, tokens, k_heads, lanes]));
        let (cos, sin) = (tensor(&[tokens, lanes / 2]), tensor(&[tokens, lanes / 2]));
        let angles = RopeAngles::Tables { cos: cos.view(), sin: sin.view() };
        let kernel = RopeKernel::new(angles, RopePairs::Half).layout(RopeLayout::Bshd);
        let n = tokens * (q_heads + k_heads) * lanes;
        measure(criterion, "rope", dtype, n, || {
            kernel.run_into(&q, Some(k.view()), &mut q_out, Some(TensorViewMut::from(&mut k_out)))
        });
    }
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(300))
        .configure_from_args();
    unary(&mut criterion);
    broadcast(&mut criterion);
    gated(&mut criterion);
    rope(&mut criterion);
    criterion.final_summary();
}
