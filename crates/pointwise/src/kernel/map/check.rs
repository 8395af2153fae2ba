//! What operands and result of a call must have in common.

use pointwise_core::op::Words;
use pointwise_core::{DType, Kind};

use super::call::Call;
use crate::Device;
use crate::error::{ErrorKind, Result};
use crate::kernel::{Operand, promote, scalar};
use crate::shape::Shape;
use crate::tensor::{Overlap, TensorView, overlap};

/// Operands whose types, shapes and devices go together.
pub(super) struct Ready<'a> {
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    pub(super) device: Device,
    pub(super) views: [Option<TensorView<'a>>; 3],
    pub(super) given: [Option<u64>; 3],
    pub(super) words: Words,
}

impl Call {
    /// Checks operands: those of one call have one element type by now (but for a condition, which is bool) and device,
    /// and shapes that can be broadcast together.
    pub(super) fn ready<'a>(&self, operands: &[Operand<'a>]) -> Result<Ready<'a>> {
        let info = &self.def.info;
        if operands.len() != info.operands.len() {
            return Err(ErrorKind::Unsupported {
                what: format!("{} with {} operands", info.name, operands.len()),
                advice: format!("they are {}", info.operands.join(", ")),
            }
            .into());
        }
        let is_condition = |k: usize| info.kind == Kind::Select && k == 0;
        let mut leader: Option<(usize, &TensorView<'a>)> = None;
        for (k, operand) in operands.iter().enumerate() {
            if let Operand::View(view) = operand
                && !is_condition(k)
                && leader.is_none()
            {
                leader = Some((k, view));
            }
        }
        let Some((first, leader)) = leader else {
            return Err(ErrorKind::Unsupported {
                what: format!("{} of numbers alone", info.name),
                advice: "give at least one operand as a tensor, which decides type and device".to_owned(),
            }
            .into());
        };
        let (dtype, device) = (leader.dtype(), *leader.device());
        self.def.check_dtype(dtype)?;
        let mut ready = Ready {
            dtype,
            shape: Shape::SCALAR,
            device,
            views: [None; 3],
            given: [None; 3],
            words: scalar::params(info, &self.params, dtype)?,
        };
        let mut any = false;
        for (k, operand) in operands.iter().enumerate() {
            let name = info.operands[k];
            match operand {
                Operand::View(view) => {
                    let expected = if is_condition(k) { DType::Bool } else { dtype };
                    if view.dtype() != expected {
                        let op = if is_condition(k) {
                            format!("operand {name} of {}", info.name)
                        } else {
                            format!(
                                "operand {name} of {} (convert one: {} is {dtype})",
                                info.name, info.operands[first]
                            )
                        };
                        return Err(ErrorKind::DType { op, got: view.dtype(), allowed: vec![expected] }.into());
                    }
                    if view.device() != &device {
                        return Err(ErrorKind::DeviceMismatch {
                            what: format!("operand {name} of {}", info.name),
                            expected: device,
                            got: *view.device(),
                        }
                        .into());
                    }
                    ready.shape = if any { ready.shape.broadcast_with(view.shape())? } else { *view.shape() };
                    any = true;
                    ready.views[k] = Some(*view);
                }
                Operand::Number(number) => ready.given[k] = Some(scalar::operand(info, k, *number, dtype)?),
            }
        }
        Ok(ready)
    }

    /// The element type that a call runs in: that in which its operands meet.
    pub(crate) fn dtype(&self, operands: &[Operand<'_>]) -> Result<DType> {
        match promote::map_type(&self.def.info, operands)? {
            Some(dtype) => Ok(dtype),
            None => Ok(self.ready(operands)?.dtype),
        }
    }

    /// Checks the tensor that a result is to be written to.
    pub(super) fn check_output(&self, ready: &Ready<'_>, y: &TensorView<'_>) -> Result<()> {
        let info = &self.def.info;
        let result = info.result.of(ready.dtype);
        let what = || format!("the output of {}", info.name);
        if y.dtype() != result {
            let op = format!("the output of {} of {}", info.name, ready.dtype);
            return Err(ErrorKind::DType { op, got: y.dtype(), allowed: vec![result] }.into());
        }
        if y.shape() != &ready.shape {
            return Err(ErrorKind::ShapeMismatch { what: what(), expected: ready.shape, got: *y.shape() }.into());
        }
        if y.device() != &ready.device {
            return Err(ErrorKind::DeviceMismatch { what: what(), expected: ready.device, got: *y.device() }.into());
        }
        if info.kind == Kind::Random {
            // An element's place is its index.
            y.layout().require_contiguous("run_into")?;
        }
        for (k, view) in ready.views.iter().enumerate() {
            if let Some(view) = view
                && overlap(view, y) == Overlap::Partial
            {
                let what = format!("operand {} and the output of {}", info.operands[k], info.name);
                return Err(ErrorKind::Overlap { what }.into());
            }
        }
        Ok(())
    }
}
