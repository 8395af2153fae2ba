//! Shapes and views beyond all memory, and streams of the CPU: errors, not panics.

use pointwise::cuda::Event;
use pointwise::{DType, Device, Number, Operand, Shape, Stream, Tensor, kernel::result_type, ops, tensor::Layout};

use crate::case::{Case, Outcome, must};
use crate::make;
use crate::random::Random;

const STRANGE: [usize; 10] = [0, 1, 2, 3, 1 << 20, 1 << 32, 1 << 62, (1 << 63) - 1, usize::MAX - 1, usize::MAX];
const STRIDES: [i64; 10] = [0, 1, -1, 2, i64::MAX, i64::MIN, 1 << 60, -(1 << 59), 1 << 40, 7];

fn strange(random: &mut Random) -> usize {
    random.pick(&STRANGE)
}

pub(super) fn layouts(case: &mut Case) -> Outcome {
    let rank = case.random.below(11);
    let dims: Vec<usize> = (0..rank).map(|_| strange(&mut case.random)).collect();
    let extra = case.random.below(3) * usize::from(case.random.once_in(10));
    let strides: Vec<i64> = (0..rank + extra).map(|_| case.random.pick(&STRIDES)).collect();
    if let Some(shape) = case.outcome(Shape::new(&dims))? {
        let layout = Layout::contiguous(shape);
        let _ = (layout.may_repeat(), layout.is_contiguous(), layout.reach(), shape.numel(), format!("{layout:?}"));
        if let Some(layout) = case.outcome(Layout::strided(shape, &strides))? {
            let _ = (layout.may_repeat(), layout.is_contiguous(), layout.reach(), format!("{layout:?}"));
        }
        let others: Vec<usize> = (0..case.random.below(9)).map(|_| strange(&mut case.random)).collect();
        if let Some(other) = case.outcome(Shape::new(&others))? {
            case.any(Shape::broadcast(&[&shape, &other]))?;
        }
    }
    let tensor = make::tensor(case, DType::U8, &[1])?;
    let mut view = tensor.view();
    for _ in 0..case.random.below(6) {
        let random = &mut case.random;
        let d = random.pick(&[0, 1, 2, 7, usize::MAX]);
        let next = match random.below(9) {
            0 => view.expand(dims.as_slice()),
            1 => view.narrow(d, strange(random), strange(random)),
            2 => view.step(d, strange(random)),
            3 => view.select(d, strange(random)),
            4 => view.transpose(d, random.below(9)),
            5 => view.unsqueeze(d),
            6 => view.squeeze(d),
            7 => view.permute(&vec![d; random.below(4)]),
            _ => view.reshape(dims.as_slice()),
        };
        view = case.outcome(next)?.unwrap_or(view);
    }
    let _ = (view.span(), view.numel(), format!("{view:?}"), view.layout().may_repeat());
    if view.numel() < 1 << 16 {
        must("to_vec", view.to_vec::<u8>())?;
        let _ = format!("{view}");
    } else if view.numel() > 1 << 40 {
        // An impossible call must give an error, and the text shows a few elements.
        case.any(view.to_vec::<u8>())?;
        case.any(ops::neg(view))?;
        let _ = format!("{view}");
    }
    let huge = dims.iter().try_fold(8_usize, |bytes, &dim| bytes.checked_mul(dim)).is_none_or(|bytes| bytes > 1 << 40);
    if huge {
        let dtype = make::dtype(&mut case.random);
        case.any(Tensor::zeros(&case.device.clone(), dtype, dims.as_slice()))?;
        case.any(Tensor::full(&case.device.clone(), 1_u8, dims.as_slice()))?;
    }
    others(case)
}

/// Calls that take names, bytes and lists.
fn others(case: &mut Case) -> Outcome {
    let names = ["", "cpu", "CPU", "cpu:0", "cuda:", "cuda:99", "cuda:18446744073709551616", "cuda:016", "\u{e9}"];
    let name = case.random.pick(&names);
    case.any(Device::parse(name))?;
    let cpu = Device::cpu();
    case.any(cpu.stream().capture(|_| Ok(())))?;
    case.any(Event::new(&cpu))?;
    case.any(cpu.memory())?;
    case.any(Stream::new(&cpu))?;
    let heads = strange(&mut case.random).max(1 << 32);
    case.any(ops::alibi_slopes(heads))?;
    let heads = case.random.below(300);
    case.any(ops::alibi_slopes(heads))?;
    let bytes = vec![0_u8; case.random.below(20)];
    let (dtype, dims) = (make::dtype(&mut case.random), [case.random.below(4), case.random.below(4)]);
    let tensor = case.outcome(Tensor::from_bytes(&cpu, dtype, &bytes, dims))?;
    let shape: Vec<usize> = (0..case.random.below(11)).map(|_| 1).collect();
    let operands = [Operand::Number(Number::Default), Operand::Number(make::number(&mut case.random))];
    let count = case.random.below(3);
    case.any(result_type(&operands[..count]))?;
    tensor.map_or(Ok(()), |tensor| case.any(tensor.reshape(shape.as_slice())))
}
