//! One op in one element type over its inputs.

use pointwise::{DType, Device, Result};
use pointwise_testkit::Report;
use rayon::prelude::*;

use super::{Inputs, Subject};

/// Inputs of a call.
const CHUNK: u64 = 1 << 21;

/// Runs the op over all inputs, a chunk a thread: each chunk goes to the device and back by itself. Returns the
/// comparison of each result.
///
/// # Errors
/// The errors of the library.
pub fn sweep(device: &Device, subject: Subject, dtype: DType, inputs: Inputs) -> Result<Vec<Report>> {
    let count = inputs.count();
    let chunk = |at: u64| {
        let start = at * CHUNK;
        let len = CHUNK.min(count - start) as usize;
        let operands: Vec<Vec<u8>> = (0..subject.operands().len())
            .map(|k| inputs.operand(subject.operand_type(dtype, k), k, start, len))
            .collect();
        let results = subject.run(device, dtype, &operands)?;
        subject.judge(dtype, &operands, &results)
    };
    let none = || vec![Report::default(); subject.results().len()];
    let merge = |a: Vec<Report>, b: Vec<Report>| Ok(a.into_iter().zip(b).map(|(a, b)| a.merge(b)).collect());
    (0..count.div_ceil(CHUNK)).into_par_iter().map(chunk).try_reduce(none, merge)
}
