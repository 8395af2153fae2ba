//! What the operands of a call must have in common.

use pointwise_core::op::Words;
use pointwise_core::{DType, Kind, OpInfo};

use super::{Operand, check, scalar};
use crate::error::{ErrorKind, Result};
use crate::shape::Shape;
use crate::tensor::TensorView;
use crate::{Device, Number};

/// Up to `N` operands whose types, shapes and devices go together.
pub(super) struct Ready<'a, const N: usize> {
    pub(super) dtype: DType,
    /// What they broadcast to.
    pub(super) shape: Shape,
    pub(super) device: Device,
    pub(super) views: [Option<TensorView<'a>>; N],
    /// Those that came as numbers.
    pub(super) given: [Option<u64>; N],
    pub(super) words: Words,
}

impl<'a, const N: usize> Ready<'a, N> {
    /// Checks operands: those of one call have one element type by now (but for a condition, which is bool) and device,
    /// and shapes that can be broadcast together.
    pub(super) fn new(info: &OpInfo, params: &[Number], operands: &[Operand<'a>]) -> Result<Self> {
        if operands.len() != info.operands.len() {
            return Err(check::wrong_count(info, "operands", info.operands, operands.len()));
        }
        let leader = operands.iter().enumerate().find_map(|(k, operand)| match operand {
            Operand::View(view) if !info.is_bool(k) => Some((info.operands[k], view)),
            _ => None,
        });
        let Some((leader, first)) = leader else {
            return Err(ErrorKind::Unsupported {
                what: format!("{} of numbers alone", info.name),
                advice: "give at least one operand as a tensor, which decides type and device".to_owned(),
            }
            .into());
        };
        let (dtype, device) = (first.dtype(), *first.device());
        check::dtype(info, dtype)?;
        let mut ready = Ready {
            dtype,
            shape: Shape::SCALAR,
            device,
            views: [None; N],
            given: [None; N],
            words: scalar::params(info, params, dtype)?,
        };
        let mut any = false;
        for (k, operand) in operands.iter().enumerate() {
            let what = || format!("operand {} of {}", info.operands[k], info.name);
            match operand {
                Operand::View(view) => {
                    let expected = if info.is_bool(k) { DType::Bool } else { dtype };
                    if view.dtype() != expected {
                        let op = match info.is_bool(k) {
                            true => what(),
                            false => format!("{} ({leader} is {dtype})", what()),
                        };
                        return Err(ErrorKind::DType { op, got: view.dtype(), allowed: vec![expected] }.into());
                    }
                    if view.device() != &device {
                        let got = *view.device();
                        return Err(ErrorKind::DeviceMismatch { what: what(), expected: device, got }.into());
                    }
                    ready.shape = if any { ready.shape.broadcast_with(view.shape())? } else { *view.shape() };
                    any = true;
                    ready.views[k] = Some(*view);
                }
                // Their kernels, of 16 and 8 bits, do not ask for numbers: `Map::NUMBERS`.
                Operand::Number(number) if info.kind == Kind::Gated => {
                    return Err(ErrorKind::Unsupported {
                        what: format!("{} as the number {number}", what()),
                        advice: "give it as a tensor, such as one without dimensions".to_owned(),
                    }
                    .into());
                }
                Operand::Number(number) => ready.given[k] = Some(scalar::operand(info, k, *number, dtype)?),
            }
        }
        Ok(ready)
    }
}
