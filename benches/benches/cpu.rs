//! The CPU executor, on one thread and on two: `cargo bench -p benches --bench cpu [-- FILTER]`.
//!
//! Benchmarks are named `OP/TYPE/ELEMENTS-THREADS`. Results go to existing tensors; values lie between -8 and 8. Each
//! sample is the fastest of its calls: other work of the machine makes a call longer, never shorter.
//! `benches/peers/torch_cpu.py` measures PyTorch's times for the same work in the same way;
//! `benches/peers/cpu_table.py` puts both in one table.

use std::time::{Duration, Instant};

use benches::random;
use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use pointwise::rope::{RopeAngles, RopeKernel, RopeLayout, RopePairs};
use pointwise::{DType, Device, Philox, Result, Tensor, TensorViewMut, info, kernel::OpDef, kernels};

/// Elements of a result: operands and result in the second-level cache, and in none.
const SIZES: [usize; 2] = [1 << 16, 1 << 22];
/// Elements of a row.
const COLUMNS: usize = 1024;
const TYPES: [DType; 4] = [DType::F32, DType::BF16, DType::F16, DType::I32];
const THREADS: [usize; 2] = [1, 2];

/// Heads of q and of k, lanes of a head, as in Llama 3.2 3B: 2^12 elements a token.
const HEADS: [usize; 2] = [24, 8];
const LANES: usize = 128;

/// The tools of the measurement: the criterion, and pools of one and two threads.
struct Bench {
    criterion: Criterion,
    pools: Vec<rayon::ThreadPool>,
}

impl Bench {
    /// Benchmarks one piece of work in each pool; `n` is the number of elements of its result.
    fn measure(&mut self, op: &str, dtype: DType, n: usize, mut work: impl FnMut() -> Result<()> + Send) {
        let mut group = self.criterion.benchmark_group(op);
        group.throughput(Throughput::Elements(n as u64));
        group.sampling_mode(SamplingMode::Flat);
        for pool in &self.pools {
            let id = BenchmarkId::new(dtype.name(), format!("{n}-{}", pool.current_num_threads()));
            group.bench_function(id, |bencher| {
                pool.install(|| {
                    bencher.iter_custom(|calls| {
                        let mut least = Duration::MAX;
                        for _ in 0..calls {
                            let start = Instant::now();
                            work().expect("the op takes these operands");
                            least = least.min(start.elapsed());
                        }
                        least * calls as u32
                    });
                });
            });
        }
        group.finish();
    }

    fn unary(&mut self, dtype: DType, n: usize) {
        let x = tensor(dtype, &[n]);
        for def in info::all().filter(|def| def.info.is_unary() && def.info.supports(dtype)) {
            let mut y = empty(def.info.result_type(0, dtype), &[n]);
            let kernel = def.unary_with(&[]);
            self.measure(def.info.name, dtype, n, || kernel.run_into(&x, &mut y));
        }
    }

    fn binary(&mut self, dtype: DType, n: usize) {
        let (a, b) = (tensor(dtype, &[n]), tensor(dtype, &[n]));
        for def in all(&["add", "mul", "div", "maximum", "eq"], dtype) {
            let mut y = empty(def.info.result_type(0, dtype), &[n]);
            let kernel = def.binary_with(&[]);
            self.measure(def.info.name, dtype, n, || kernel.run_into(&a, &b, &mut y));
        }
    }

    /// A matrix and a row.
    fn broadcast(&mut self, dtype: DType, n: usize) {
        let (a, b) = (tensor(dtype, &[n / COLUMNS, COLUMNS]), tensor(dtype, &[COLUMNS]));
        let mut y = empty(dtype, &[n / COLUMNS, COLUMNS]);
        let kernel = kernels::add(1);
        self.measure("add_row", dtype, n, || kernel.run_into(&a, &b, &mut y));
    }

    fn ternary(&mut self, dtype: DType, n: usize) {
        let (a, b, c) = (tensor(dtype, &[n]), tensor(dtype, &[n]), tensor(dtype, &[n]));
        let condition = pointwise::ops::gt(&a, 0.0).expect("a comparison");
        let mut y = empty(dtype, &[n]);
        for def in all(&["where", "lerp"], dtype) {
            let kernel = def.ternary_with(&[]);
            let first = if def.info.name == "where" { &condition } else { &a };
            self.measure(def.info.name, dtype, n, || kernel.run_into(first, &b, &c, &mut y));
        }
    }

    fn gated(&mut self, dtype: DType, n: usize) {
        let x = tensor(dtype, &[n / COLUMNS, 2 * COLUMNS]);
        let mut y = empty(dtype, &[n / COLUMNS, COLUMNS]);
        for def in all(&["silu_and_mul"], dtype) {
            let kernel = def.gated_with(&[]);
            self.measure(def.info.name, dtype, n, || kernel.run_into(&x, &mut y));
        }
    }

    fn dropout(&mut self, dtype: DType, n: usize) {
        let x = tensor(dtype, &[n]);
        let mut y = empty(dtype, &[n]);
        let kernel = kernels::dropout(0.5);
        self.measure("dropout", dtype, n, || kernel.run_into(&x, &mut y, Philox { seed: 1, offset: 0 }));
    }

    /// q and k in one call, cosines and sines given.
    fn rope(&mut self, dtype: DType, n: usize) {
        let tokens = n / ((HEADS[0] + HEADS[1]) * LANES);
        let [q, k] = HEADS.map(|heads| tensor(dtype, &[1, tokens, heads, LANES]));
        let [mut q_out, mut k_out] = HEADS.map(|heads| empty(dtype, &[1, tokens, heads, LANES]));
        let [cos, sin] = [0; 2].map(|_| tensor(dtype, &[tokens, LANES / 2]));
        let angles = RopeAngles::Tables { cos: cos.view(), sin: sin.view() };
        let kernel = RopeKernel::new(angles, RopePairs::Half).layout(RopeLayout::Bshd);
        self.measure("rope", dtype, n, || {
            kernel.run_into(&q, Some(k.view()), &mut q_out, Some(TensorViewMut::from(&mut k_out)))
        });
    }
}

/// The ops of these names that take a type.
fn all(names: &[&str], dtype: DType) -> impl Iterator<Item = &'static OpDef> {
    info::all().filter(move |def| names.contains(&def.info.name) && def.info.supports(dtype))
}

fn tensor(dtype: DType, shape: &[usize]) -> Tensor {
    random(&Device::cpu(), dtype, shape.iter().product()).and_then(|x| x.reshape(shape)).expect("memory")
}

fn empty(dtype: DType, shape: &[usize]) -> Tensor {
    Tensor::empty(&Device::cpu(), dtype, shape).expect("memory")
}

fn main() {
    let criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(20))
        .measurement_time(Duration::from_millis(150))
        .sample_size(20)
        // The table reads the samples themselves.
        .nresamples(100)
        .without_plots()
        .configure_from_args();
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool of few threads");
    let mut bench = Bench { criterion, pools: THREADS.map(pool).into() };
    for dtype in TYPES {
        for n in SIZES {
            bench.unary(dtype, n);
            bench.binary(dtype, n);
            bench.broadcast(dtype, n);
            bench.ternary(dtype, n);
            if dtype.is_float() {
                bench.gated(dtype, n);
                bench.dropout(dtype, n);
                bench.rope(dtype, n);
            }
        }
    }
    bench.criterion.final_summary();
}
