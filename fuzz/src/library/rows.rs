//! Ops on rows: the same bits for views and contiguous copies, for one row and all, and on the CPU.

use pointwise::{Device, Operand, Tensor, TensorView, TensorViewMut, info, kernel::OpDef};

use crate::case::{Case, Outcome, must};
use crate::compare::{copy, into_place, same};
use crate::make::{self, Place};

/// A shape with a row, which is now and then long.
fn shape(case: &mut Case) -> Vec<usize> {
    let most = make::most(case);
    let mut full = make::shape(&mut case.random, most.min(600));
    full.truncate(7);
    let rows: usize = full.iter().product::<usize>().max(1);
    let len = match case.random.below(8) {
        0 => case.random.below(3),
        // Places have margins: a few times as many elements.
        1 => 1 + case.random.below(most / rows + 1),
        2 => case.random.pick(&[32, 64, 256, 264]),
        _ => 1 + case.random.below(70),
    };
    full.push(len);
    full
}

/// Every op on rows, forward and backward.
pub(super) fn rows(case: &mut Case) -> Outcome {
    let list: Vec<&'static OpDef> = info::every().filter(|def| def.info.is_of_rows()).collect();
    let def = case.random.pick(&list);
    let info = &def.info;
    let full = shape(case);
    let dtype =
        if case.random.once_in(20) { make::dtype(&mut case.random) } else { case.random.pick(&make::WIDE_FLOATS) };
    let mut stored = Vec::new();
    for k in 0..info.operands.len() {
        let own = if case.random.once_in(40) { make::dtype(&mut case.random) } else { info.operand_type(k, dtype) };
        let shape = match () {
            () if info.is_row_operand(k) => full[..full.len() - 1].to_vec(),
            () if k == 0 || case.random.once_in(2) => full.clone(),
            () => make::narrower(&mut case.random, &full),
        };
        let place = Place::to_read(&mut case.random, &shape);
        stored.push((place.tensor(case, own)?, place));
    }
    let views: Vec<TensorView<'_>> =
        stored.iter().map(|(tensor, place)| place.view(tensor)).collect::<Result<_, _>>()?;
    let mut operands: Vec<Operand<'_>> = views.iter().map(|view| Operand::View(*view)).collect();
    for operand in &mut operands[1..] {
        if case.random.once_in(9) {
            *operand = Operand::Number(make::number(&mut case.random));
        }
    }
    let kernel = def.kernel(&make::params(&mut case.random, info));
    let what = format!("{} of {operands:?}", info.name);
    let Some(results) = case.outcome(kernel.run(&operands))? else { return Ok(()) };

    let copies = views.iter().zip(&stored).map(|(view, (tensor, _))| copy(view, tensor));
    let copies: Vec<Tensor> = copies.collect::<Result<_, _>>()?;
    for device in [case.device, Device::cpu()] {
        let there = copies.iter().map(|copy| must("to_device", copy.to_device(&device)));
        let there: Vec<Tensor> = there.collect::<Result<_, _>>()?;
        let contiguous = operands.iter().zip(&there).map(|(operand, copy)| match operand {
            Operand::View(_) => Operand::from(copy),
            _ => *operand,
        });
        let of_copies = must(&what, kernel.run(&contiguous.collect::<Vec<_>>()))?;
        for (k, (got, want)) in results.iter().zip(&of_copies).enumerate() {
            let got = must("to_device", got.to_device(&device))?;
            same(&format!("{what}, result {k}, contiguous on {device}"), &got, want)?;
        }
    }
    // One result goes into a larger tensor, whose rows stay whole, the others into new tensors.
    let which = case.random.below(results.len());
    let want = &results[which];
    let others = results.iter().map(|result| make::zeros(&case.device, result.dtype(), result.shape()));
    let mut others: Vec<Tensor> = others.collect::<Result<_, _>>()?;
    // More dimensions lie in more ways than a kernel takes.
    let place = match want.shape().rank() {
        ..=3 if info.is_row_result(which) => Place::to_write(&mut case.random, want.shape()),
        ..=3 => Place::lanes(&mut case.random, want.shape()),
        _ => Place::rows(&mut case.random, want.shape()),
    };
    into_place(case, &what, want, &place, |to| {
        let mut targets: Vec<TensorViewMut<'_>> = others.iter_mut().map(TensorViewMut::from).collect();
        targets[which] = to;
        kernel.run_into(&operands, &mut targets)
    })?;
    let views: Vec<TensorView<'_>> = results.iter().map(Tensor::view).collect();
    case.any(kernel.plan(&operands, &views))
}
