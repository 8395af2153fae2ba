//! The values of the operands in timings: the distributions of the public run.

use std::collections::HashMap;

use pointwise::{DType, Device, F8E4M3, F8E5M2, Number, Operand, Tensor, TensorViewMut, bf16, f16, ops};

use crate::form::Form;
use crate::workload::Row;
use pointwise_cli::error::Result;
use pointwise_testkit::Random;

/// Values made on the host; a longer tensor repeats them. A MB and more: beyond the level-1 caches.
const BLOCK: usize = 1 << 20;

/// A distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fill {
    /// Standard normal, moved by a number.
    Normal(f64),
    /// From the first to the second.
    Uniform(f64, f64),
    /// Whole numbers, from the first to below the second.
    Whole(i64, i64),
    /// A quarter each of NaN, infinity, -infinity and normal values.
    Special,
}

impl Fill {
    /// The values that fill operand `k` of a row.
    pub(crate) fn of(row: &Row, form: &Form, k: usize) -> Fill {
        let dtype = form.operand(k, row.dtype);
        match (row.op.as_str(), k) {
            _ if dtype == DType::Bool => Fill::Whole(0, 2),
            ("bitwise_not", _) => Fill::Whole(-1024, 1024),
            _ if dtype.is_int() => Fill::Whole(-1000, 1000),
            ("div" | "div_trunc" | "remainder" | "pow" | "floor_divide", _) => Fill::Uniform(0.1, 1.1),
            ("log" | "sqrt" | "rsqrt" | "reciprocal" | "log1p", _) => Fill::Uniform(0.5, 1.5),
            ("isnan" | "isinf" | "isfinite", _) => Fill::Special,
            ("prelu", 1) | ("lerp", 2) => Fill::Uniform(0.0, 1.0),
            ("clamp" | "clamp_tensor", 1) if row.param("min") != Some("None") => Fill::Normal(-0.5),
            ("clamp" | "clamp_tensor", 1 | 2) => Fill::Normal(0.5),
            _ => Fill::Normal(0.0),
        }
    }

    fn draw(self, random: &mut Random) -> f64 {
        match self {
            Fill::Normal(mean) => mean + random.normal(),
            Fill::Uniform(low, high) => low + random.unit() * (high - low),
            Fill::Whole(low, high) => (low + (random.next_u64() % (high - low) as u64) as i64) as f64,
            Fill::Special => match random.next_u64() % 4 {
                0 => f64::NAN,
                1 => f64::INFINITY,
                2 => f64::NEG_INFINITY,
                _ => random.normal(),
            },
        }
    }
}

/// Makes tensors, and keeps the blocks they are made of.
pub(crate) struct Inputs {
    device: Device,
    blocks: HashMap<String, Tensor>,
}

impl Inputs {
    pub(crate) fn new(device: &Device) -> Inputs {
        Inputs { device: *device, blocks: HashMap::new() }
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// A tensor of these values. Operands of one call differ by `k`.
    ///
    /// # Errors
    /// Out of memory; errors of the driver.
    pub(crate) fn tensor(&mut self, fill: Fill, dtype: DType, shape: &[usize], k: usize) -> Result<Tensor> {
        let name = format!("{fill:?} {dtype} {k}");
        if !self.blocks.contains_key(&name) {
            let mut random = Random::new(k as u64 + 1);
            let bytes: Vec<u8> = (0..BLOCK).flat_map(|_| encode(dtype, fill.draw(&mut random))).collect();
            let block = Tensor::from_bytes(&self.device, dtype, &bytes, [BLOCK])?;
            self.blocks.insert(name.clone(), block);
        }
        let block = &self.blocks[&name];
        let n: usize = shape.iter().product();
        let mut tensor = Tensor::empty(&self.device, dtype, [n])?;
        let whole = n / BLOCK * BLOCK;
        if whole > 0 {
            let to = tensor.view_mut()?.narrow(0, 0, whole)?.reshape([whole / BLOCK, BLOCK])?;
            copy(Operand::View(block.view().expand([whole / BLOCK, BLOCK])?), to)?;
        }
        if n > whole {
            let to = tensor.view_mut()?.narrow(0, whole, n - whole)?;
            copy(Operand::View(block.view().narrow(0, 0, n - whole)?), to)?;
        }
        Ok(tensor.reshape(shape)?)
    }
}

/// Copies a broadcast view: the bits, of any element type.
fn copy(from: Operand<'_>, to: TensorViewMut<'_>) -> Result<()> {
    // A bool, since a number of a higher category would change the element type.
    Ok(ops::where_cond_into(Number::Bool(true), from, Number::Bool(false), to)?)
}

/// A number's bytes in a type.
fn encode(dtype: DType, x: f64) -> Vec<u8> {
    match dtype {
        DType::F32 => (x as f32).to_ne_bytes().to_vec(),
        DType::F16 => f16::from_f64(x).to_ne_bytes().to_vec(),
        DType::BF16 => bf16::from_f64(x).to_ne_bytes().to_vec(),
        DType::F8E4M3 => vec![F8E4M3::from_f32(x as f32).to_bits()],
        DType::F8E5M2 => vec![F8E5M2::from_f32(x as f32).to_bits()],
        DType::I8 => (x as i8).to_ne_bytes().to_vec(),
        DType::U8 | DType::Bool => vec![x as u8],
        DType::I16 => (x as i16).to_ne_bytes().to_vec(),
        DType::I32 => (x as i32).to_ne_bytes().to_vec(),
        DType::I64 => (x as i64).to_ne_bytes().to_vec(),
    }
}

/// Numbers as a tensor of an element type.
///
/// # Errors
/// Out of memory; errors of the driver.
pub(crate) fn tensor_of(device: &Device, dtype: DType, values: &[f32], shape: &[usize]) -> Result<Tensor> {
    let bytes: Vec<u8> = values.iter().flat_map(|&x| encode(dtype, f64::from(x))).collect();
    Ok(Tensor::from_bytes(device, dtype, &bytes, shape)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_of_their_distribution() {
        let mut inputs = Inputs::new(&Device::cpu());
        let mut draw = |fill, dtype, n: usize| inputs.tensor(fill, dtype, &[n], 0).unwrap();
        let n = BLOCK + 5;
        let normal = draw(Fill::Normal(-0.5), DType::F32, n).to_vec::<f32>().unwrap();
        let mean = normal.iter().map(|x| f64::from(*x)).sum::<f64>() / n as f64;
        let spread = normal.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / n as f64;
        assert!((mean + 0.5).abs() < 0.01 && (spread - 1.0).abs() < 0.01, "{mean} {spread}");
        assert_eq!(normal[..5], normal[BLOCK..], "the block is repeated");
        let uniform = draw(Fill::Uniform(0.1, 1.1), DType::F16, n).to_vec::<f16>().unwrap();
        assert!(uniform.iter().all(|x| (0.09..=1.1).contains(&x.to_f64())));
        let whole = draw(Fill::Whole(-1000, 1000), DType::I32, n).to_vec::<i32>().unwrap();
        assert!(whole.contains(&-1000) && whole.contains(&999) && whole.iter().all(|x| (-1000..1000).contains(x)));
        let bools = draw(Fill::Whole(0, 2), DType::Bool, n).to_vec::<bool>().unwrap();
        let share = bools.iter().filter(|x| **x).count() as f64 / n as f64;
        assert!((share - 0.5).abs() < 0.01, "{share}");
        let special = draw(Fill::Special, DType::BF16, n).to_vec::<bf16>().unwrap();
        let nans = special.iter().filter(|x| x.is_nan()).count() as f64 / n as f64;
        assert!((nans - 0.25).abs() < 0.01, "{nans}");
    }
}
