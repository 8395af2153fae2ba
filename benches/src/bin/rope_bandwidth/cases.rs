//! The cases to time: models, ways to run the kernel, the reference workloads.

use pointwise::DType;
use pointwise::rope::{RopeDirection, RopeLayout, RopePairs, RotatedLanes};

/// Heads of q and k, lanes, lanes that rotate.
#[derive(Clone, Copy)]
pub(crate) struct Model {
    pub(crate) name: &'static str,
    pub(crate) q: usize,
    pub(crate) k: usize,
    pub(crate) head_dim: usize,
    pub(crate) rotary_dim: usize,
    pub(crate) pairs: RopePairs,
    pub(crate) lanes: RotatedLanes,
}

impl Model {
    /// Elements of q and k.
    pub(crate) fn elements(&self, tokens: usize) -> usize {
        tokens * (self.q + self.k) * self.head_dim
    }
}

const fn model(name: &'static str, q: usize, k: usize, head_dim: usize) -> Model {
    let (pairs, lanes) = (RopePairs::Half, RotatedLanes::Lead);
    Model { name, q, k, head_dim, rotary_dim: head_dim, pairs, lanes }
}

/// The models of the default run come first.
pub(crate) const MODELS: &[Model] = &[
    model("llama-8b", 32, 8, 128),
    model("llama-70b", 64, 8, 128),
    Model {
        rotary_dim: 64,
        pairs: RopePairs::Interleaved,
        lanes: RotatedLanes::Trail,
        ..model("deepseek-v3", 128, 128, 192)
    },
    model("phi-3.5", 32, 32, 96),
    Model { rotary_dim: 64, pairs: RopePairs::Interleaved, ..model("gpt-j", 16, 16, 256) },
    model("gpt-oss", 64, 8, 64),
    model("qwen2.5-7b", 28, 4, 128),
    // One tensor.
    model("rows-128", 1, 0, 128),
    model("rows-64", 1, 0, 64),
    model("heads-32", 32, 0, 128),
];
/// The number of them in the default run.
pub(crate) const COMMON: usize = 5;

pub(crate) const TOKENS: &[usize] = &[1, 16, 512, 4096, 8192, 32_768];
pub(crate) const DTYPES: &[DType] = &[DType::BF16, DType::F16, DType::F32];

/// One way to run the kernel.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    /// `hf` and `exact` on the fly, tables of `angles`, of cosines and sines in f32 (`tables`) or the tensor's type
    /// (`own_tables`), the latter twice as wide as needed (`hf_tables`).
    pub(crate) source: &'static str,
    pub(crate) layout: RopeLayout,
    pub(crate) direction: RopeDirection,
    pub(crate) inplace: bool,
    /// True if tokens have position ids, out of order.
    pub(crate) ids: bool,
}

impl Way {
    pub(crate) const PLAIN: Way =
        Way { source: "hf", layout: RopeLayout::Bshd, direction: RopeDirection::Forward, inplace: false, ids: false };

    pub(crate) fn name(&self) -> String {
        let layout = format!("{:?}", self.layout).to_lowercase();
        let direction = if self.direction == RopeDirection::Forward { "forward" } else { "backward" };
        let ids = if self.ids { " ids" } else { "" };
        format!("{} {layout} {direction} {}{ids}", self.source, if self.inplace { "in place" } else { "out" })
    }

    /// Every way of the given sources.
    pub(crate) fn all(sources: &[&'static str]) -> Vec<Way> {
        let mut ways = Vec::new();
        for &source in sources {
            for layout in [RopeLayout::Bshd, RopeLayout::Bhsd, RopeLayout::Thd] {
                for direction in [RopeDirection::Forward, RopeDirection::Backward] {
                    ways.extend([false, true].map(|inplace| Way { source, layout, direction, inplace, ids: false }));
                }
            }
        }
        ways
    }
}

/// A rope row of TileOPs' nightly benchmark on an H200: one tensor, and its times of TileOPs, PyTorch, `torch.compile`
/// and vLLM. These times are the kernels' busy time alone; events add about the time of an empty launch.
pub(crate) struct Workload {
    pub(crate) case: &'static str,
    pub(crate) dtype: DType,
    /// Batch, sequence, heads, lanes; a batch of 0 stands for `[sequence, heads, lanes]` with position ids.
    pub(crate) shape: [usize; 4],
    pub(crate) pairs: RopePairs,
    /// Microseconds: TileOPs, PyTorch, `torch.compile`, and another if there is one.
    pub(crate) peers: [Option<f64>; 4],
}

const fn row(case: &'static str, dtype: DType, shape: [usize; 4], peers: [f64; 3]) -> Workload {
    let peers = [Some(peers[0]), Some(peers[1]), Some(peers[2]), None];
    Workload { case, dtype, shape, pairs: RopePairs::Half, peers }
}

const BF16: DType = DType::BF16;
const F16: DType = DType::F16;

pub(crate) const WORKLOADS: &[Workload] = &[
    row("neox-1d-2k-d64", F16, [1, 2048, 1, 64], [1.824, 9.44, 1.984]),
    row("neox-1d-4k-d128", BF16, [1, 4096, 1, 128], [2.592, 12.319, 3.136]),
    row("neox-2d-b2-s2k-h32-d128", F16, [2, 2048, 32, 128], [30.88, 272.128, 18.464]),
    Workload {
        pairs: RopePairs::Interleaved,
        ..row("non-neox-1d-2k-d64", F16, [1, 2048, 1, 64], [2.176, 9.44, 1.984])
    },
    Workload {
        pairs: RopePairs::Interleaved,
        ..row("non-neox-2d-b2-s2k-h32-d128", BF16, [2, 2048, 32, 128], [25.184, 274.527, 19.039])
    },
    row("llama31-1d-8k-d128", BF16, [1, 8192, 1, 128], [3.616, 15.905, 4.1445]),
    row("llama31-2d-b1-s8k-h32-d128", F16, [1, 8192, 32, 128], [59.3915, 492.673, 34.817]),
    row("yarn-1d-8k-d128", BF16, [1, 8192, 1, 128], [3.616, 15.936, 4.16]),
    row("yarn-2d-b1-s8k-h32-d128", F16, [1, 8192, 32, 128], [59.488, 492.306, 34.849]),
    row("longrope-1d-8k-d128", BF16, [1, 8192, 1, 128], [3.584, 15.9035, 4.16]),
    row("longrope-2d-b1-s8k-h32-d128", F16, [1, 8192, 32, 128], [59.392, 492.289, 34.817]),
    Workload {
        peers: [Some(27.8395), Some(129.441), Some(11.872), Some(24.257)],
        ..row("position-ids-s2k-h32-d128", F16, [0, 2048, 32, 128], [0.0; 3])
    },
    Workload {
        peers: [Some(45.502), Some(249.633), Some(22.304), Some(44.672)],
        ..row("position-ids-s4k-h32-d128", BF16, [0, 4096, 32, 128], [0.0; 3])
    },
];
