//! Fused kernels: graphs of random ops, each step against its op in f64.

use pointwise::DType;
use pointwise_testkit::fusion::RandomGraph;
use pointwise_testkit::{Error, Random};

use crate::case::{Case, Outcome};

/// The types that fused kernels have.
const TYPES: [DType; 7] = [DType::F32, DType::F16, DType::BF16, DType::I8, DType::I32, DType::I64, DType::U8];

pub(crate) fn run(case: &mut Case) -> Outcome {
    let dtype = case.random.pick(&TYPES);
    let mut random = Random::new(case.random.word());
    let checked = RandomGraph::new(dtype, &mut random).and_then(|graph| graph.check(&[case.device]));
    match checked {
        Err(Error::Wrong(what)) => Err(what),
        Err(Error::Library(error)) => case.any(Err::<(), _>(error)),
        Ok(()) => case.any(Ok::<_, pointwise::Error>(())),
    }
}
