//! The rotation in f64, and comparisons with it.

use std::f64::consts::TAU;

use pointwise::rope::{
    Frequencies, RopeAngles, RopeConfig, RopeFrequencies, RopeKernel, RopePairs, RopePrecision, RotatedLanes,
};
use pointwise::{DType, Device, Tensor, TensorViewMut};

use crate::Outcome;
use crate::logical::{Logical, Model, encode, rounded, rounding};

/// The oracle's settings: cosine and sine of each batch entry, token and pair in f64, and what is done with them.
pub(crate) struct Turn<'a> {
    pub(crate) model: Model,
    pub(crate) angle: &'a dyn Fn(usize, usize, usize) -> (f64, f64),
    pub(crate) backward: bool,
    pub(crate) scale: f64,
    pub(crate) factor: f64,
}

/// Returns the results in f64 and the sizes of the sums, which are the measure of rounding errors.
pub(crate) fn oracle(x: &Logical, turn: &Turn<'_>) -> (Logical, Vec<f64>) {
    let (model, rot) = (turn.model, turn.model.rotary_dim);
    let base = if model.lanes == RotatedLanes::Trail { model.head_dim - rot } else { 0 };
    let of_half = |i: usize| (base + i, base + i + rot / 2);
    let of_neighbours = |i: usize| (base + 2 * i, base + 2 * i + 1);
    let mut y = x.clone();
    y.values.iter_mut().for_each(|value| *value *= turn.scale);
    let mut size: Vec<f64> = y.values.iter().map(|value| value.abs()).collect();
    let [b, s, h, _] = x.dims;
    for i in 0..rot / 2 {
        let ((from1, from2), (to1, to2)) = match (model.pairs, turn.backward) {
            (RopePairs::Half, _) => (of_half(i), of_half(i)),
            (RopePairs::Interleaved, _) => (of_neighbours(i), of_neighbours(i)),
            (RopePairs::InterleavedToHalf, false) => (of_neighbours(i), of_half(i)),
            (RopePairs::InterleavedToHalf, true) => (of_half(i), of_neighbours(i)),
        };
        for b in 0..b {
            for s in 0..s {
                let (cos, sin) = (turn.angle)(b, s, i);
                let scale = turn.scale * turn.factor;
                let (cos, sin) = (cos * scale, if turn.backward { -sin } else { sin } * scale);
                for h in 0..h {
                    let (x1, x2) = (x.values[x.at([b, s, h, from1])], x.values[x.at([b, s, h, from2])]);
                    let (at1, at2) = (x.at([b, s, h, to1]), x.at([b, s, h, to2]));
                    y.values[at1] = x1 * cos - x2 * sin;
                    y.values[at2] = x2 * cos + x1 * sin;
                    let sum = (x1.abs() + x2.abs()) * scale.abs();
                    (size[at1], size[at2]) = (sum, sum);
                }
            }
        }
    }
    (y, size)
}

pub(crate) fn compare(what: &str, dtype: DType, got: &Logical, expected: &(Logical, Vec<f64>)) -> Outcome {
    let (expected, size) = expected;
    for (i, ((got, expected), size)) in got.values.iter().zip(&expected.values).zip(size).enumerate() {
        // The sine's 2 ULP and the rounded products, then one rounding.
        let allowed = expected.abs() * rounding(dtype) * 1.01 + size * 4e-7 + 1e-7 * f64::from(dtype == DType::F16);
        // A NaN is not right.
        let right = (got - expected).abs() <= allowed;
        if !right {
            return Err(format!("{what}: element {i} is {got}, not {expected} (allowed: {allowed:e})").into());
        }
    }
    Ok(())
}

/// Tables and frequencies of one case, on the device and for the oracle.
pub(crate) struct Angles {
    pub(crate) frequencies: Frequencies,
    pub(crate) on_device: RopeFrequencies,
    pub(crate) rows: usize,
    pub(crate) raw: Tensor,
    pub(crate) cos: Tensor,
    pub(crate) sin: Tensor,
    pub(crate) own_cos: Tensor,
    pub(crate) own_sin: Tensor,
}

pub(crate) const SOURCES: [&str; 5] = ["hf", "exact", "raw", "tables", "own_tables"];

impl Angles {
    pub(crate) fn new(device: &Device, dtype: DType, rotary_dim: usize, rows: usize) -> Angles {
        let config = RopeConfig::default_rope(rotary_dim, 10_000.0);
        let frequencies = config.frequencies(0).unwrap();
        let positions: Vec<i64> = (0..rows as i64).collect();
        let (cos, sin) = frequencies.cos_sin(&positions, RopePrecision::Hf);
        let raw: Vec<f32> =
            positions.iter().flat_map(|p| frequencies.inv_freq.iter().map(move |inv| *p as f32 * inv)).collect();
        let shape = [rows, rotary_dim / 2];
        let own = |table: &[f32]| {
            let mut bytes = vec![0; table.len() * dtype.size()];
            for (value, to) in table.iter().zip(bytes.chunks_exact_mut(dtype.size())) {
                encode(dtype, f64::from(*value), to);
            }
            Tensor::from_bytes(device, dtype, &bytes, shape).unwrap()
        };
        Angles {
            on_device: RopeFrequencies::new(device, &frequencies).unwrap(),
            raw: Tensor::from_slice(device, &raw, shape).unwrap(),
            own_cos: own(&cos),
            own_sin: own(&sin),
            cos: Tensor::from_slice(device, &cos, shape).unwrap(),
            sin: Tensor::from_slice(device, &sin, shape).unwrap(),
            rows,
            frequencies,
        }
    }

    pub(crate) fn of(&self, source: &str) -> RopeAngles<'_> {
        match source {
            "hf" => RopeAngles::Frequencies(&self.on_device, RopePrecision::Hf),
            "exact" => RopeAngles::Frequencies(&self.on_device, RopePrecision::Exact),
            "raw" => RopeAngles::Raw(self.raw.view()),
            "tables" => RopeAngles::Tables { cos: self.cos.view(), sin: self.sin.view() },
            _ => RopeAngles::Tables { cos: self.own_cos.view(), sin: self.own_sin.view() },
        }
    }

    /// Cosine and sine of a position in f64; not turned where a table ends.
    pub(crate) fn at(&self, source: &str, dtype: DType, position: i64, pair: usize) -> (f64, f64) {
        let turned = |angle: f64| (angle.cos(), angle.sin());
        let known = (0..self.rows as i64).contains(&position);
        let product = f64::from(position as f32 * self.frequencies.inv_freq[pair]);
        match source {
            "hf" => turned(product),
            "exact" => {
                let turns = (position as u64).wrapping_mul(self.frequencies.turns[pair]);
                turned(turns as i64 as f64 / 2.0_f64.powi(64) * TAU)
            }
            _ if !known => (1.0, 0.0),
            "raw" => turned(product),
            "tables" => {
                let (cos, sin) = turned(product);
                (rounded(DType::F32, cos), rounded(DType::F32, sin))
            }
            _ => {
                let (cos, sin) = self.frequencies.cos_sin(&[position], RopePrecision::Hf);
                (rounded(dtype, f64::from(cos[pair])), rounded(dtype, f64::from(sin[pair])))
            }
        }
    }
}

/// Runs the kernel on tensors of a layout, in place or not.
pub(crate) fn run(
    kernel: &RopeKernel<'_>,
    q: &Tensor,
    k: Option<&Tensor>,
    inplace: bool,
) -> pointwise::Result<[Option<Tensor>; 2]> {
    if inplace {
        let mut q = q.copy()?;
        let mut k = k.map(Tensor::copy).transpose()?;
        kernel.run_inplace(&mut q, k.as_mut().map(TensorViewMut::from))?;
        return Ok([Some(q), k]);
    }
    let (q, k) = kernel.run(q, k.map(Tensor::view))?;
    Ok([Some(q), k])
}

pub(crate) fn same_bits(what: &str, a: &[Option<Tensor>], b: &[Option<Tensor>]) -> Outcome {
    for (a, b) in a.iter().zip(b) {
        if let (Some(a), Some(b)) = (a, b) {
            let (a_bytes, b_bytes) = (a.to_bytes()?, b.to_bytes()?);
            if let Some(at) = a_bytes.iter().zip(&b_bytes).position(|(a, b)| a != b) {
                return Err(format!("{what}: byte {at} differs from the CPU's").into());
            }
        }
    }
    Ok(())
}
