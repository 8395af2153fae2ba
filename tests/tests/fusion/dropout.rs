//! Dropout in fused kernels: the masks of `ops::dropout`, in rows, views and gradients.

use pointwise::fusion::{Graph, Lazy, eval_all};
use pointwise::kernel::Rng;
use pointwise::{DType, Device, Philox, Tensor, TensorView, ops};

use crate::{Outcome, add, same, tensor};

/// Sizes of vectors, of vectors and a tail, and of less than one vector.
const SIZES: [&[usize]; 5] = [&[7], &[4099], &[33, 64], &[3, 5, 9], &[2048]];
/// The second offset is beyond 32 bits.
const PLACES: [Philox; 2] = [Philox::new(42), Philox { seed: 0xFEDC_BA98_7654_3210, offset: 0xFFFF_FFFF_FFFF }];

/// A formula of dropout alone is the op, bit for bit, by numbers and by a tensor of seed and offset.
pub(crate) fn alone(device: &Device) -> Outcome {
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        for (shape, place) in SIZES.into_iter().flat_map(|shape| PLACES.map(|place| (shape, place))) {
            let x = tensor(device, dtype, shape, 90)?;
            let words = [place.seed, place.offset].map(u64::cast_signed);
            let in_memory = Tensor::from_slice(device, &words, [2])?;
            for p in [0.0, 0.1, 0.5, 1.0] {
                let (wanted, kept) = ops::dropout_with_mask(&x, p, place)?;
                let what = format!("dropout of {dtype} {shape:?}, {p}");
                same(&what, &x.lazy().dropout(p, place).eval()?, &wanted)?;
                same(&what, &x.lazy().dropout(p, &in_memory).eval()?, &wanted)?;
                same(&what, &x.lazy().dropout_mask(p, place).eval()?, &kept)?;
            }
        }
    }
    Ok(())
}

/// Two masks of a softmax, in rows that are held, streamed, and no vectors.
pub(crate) fn of_rows(device: &Device) -> Outcome {
    let [first, second] = PLACES;
    for shape in [[5, 64], [3, 1000], [2, 37], [4, 1], [2, 20_000]] {
        let x = tensor(device, DType::F32, &shape, 91)?;
        let e = (x.lazy() - x.lazy().row_max()).exp();
        let y = &e / e.row_sum();
        let alone = y.eval()?;
        let one = y.dropout(0.3, first) + 1.0;
        let [a, b] = &eval_all([&one, &y.dropout(0.7, second)])?[..] else { return Err("two results".into()) };
        let wanted = ops::add(&ops::dropout(&alone, 0.3, first)?, 1.0)?;
        same(&format!("softmax {shape:?}"), a, &wanted)?;
        same(&format!("softmax {shape:?}, again"), b, &ops::dropout(&alone, 0.7, second)?)?;
    }
    Ok(())
}

/// Operands that are turned, broadcast or begin between vectors: an element is counted where the result has it.
pub(crate) fn of_views(device: &Device) -> Outcome {
    let place = PLACES[1];
    let turned = tensor(device, DType::F32, &[24, 16], 92)?;
    let turned = turned.view().transpose(0, 1)?;
    let dense = turned.to_tensor()?;
    same("turned", &turned.lazy().dropout(0.5, place).eval()?, &ops::dropout(&dense, 0.5, place)?)?;
    let [column, row] = [[33, 1], [1, 48]].map(|shape| tensor(device, DType::F32, &shape, 93));
    let (column, row) = (column?, row?);
    let sum = column.lazy() + row.lazy();
    same("broadcast", &sum.dropout(0.5, place).eval()?, &ops::dropout(&ops::add(&column, &row)?, 0.5, place)?)?;
    let many = tensor(device, DType::BF16, &[1001], 94)?;
    let part = many.view().narrow(0, 3, 900)?;
    same("a part", &part.lazy().dropout(0.2, place).eval()?, &ops::dropout(part, 0.2, place)?)?;
    // The result is turned.
    let mut y = Tensor::zeros(device, DType::F32, [24, 16])?;
    turned.lazy().dropout(0.5, place).eval_into(y.view_mut()?.transpose(0, 1)?)?;
    same("a turned result", &y.view().transpose(0, 1)?.to_tensor()?, &ops::dropout(&dense, 0.5, place)?)
}

/// The gradient draws the same mask, and a mask has none.
pub(crate) fn gradient(device: &Device) -> Outcome {
    let mut graph = Graph::new();
    let [x, w] = [graph.operand(DType::F32, false)?, graph.operand(DType::F32, false)?];
    let product = add(&mut graph, "mul", &[x, w])?;
    let kept = graph.dropout_mask(product, 0.25)?;
    let zero = graph.number(0.0);
    let y = add(&mut graph, "where", &[kept, product, zero])?;
    let fused = graph.fuse(&[y])?;
    let place = PLACES[0];
    let [x, w, grad] = [95, 96, 97].map(|seed| tensor(device, DType::F32, &[9, 40], seed));
    let (x, w, grad) = (x?, w?, grad?);
    let given = [grad.view(), x.view(), w.view()];
    let found = fused.backward()?.rngs([Rng::from(place)]).run(&given)?;
    let (_, kept) = ops::dropout_with_mask(&x, 0.25, place)?;
    let masked = ops::where_cond(&kept, &grad, 0.0)?;
    same("the gradient of x", &found[0], &ops::mul(&masked, &w)?)?;
    same("the gradient of w", &found[1], &ops::mul(&masked, &x)?)?;
    let views: [TensorView<'_>; 2] = [x.view(), w.view()];
    let reports = fused.rngs([Rng::from(place)]).check(&views)?;
    if reports.iter().any(|report| report.beyond > 0 || report.elements == 0) {
        Err(format!("{reports:?}").into())
    } else {
        Ok(())
    }
}

/// Bad input is a typed error that says what to do.
pub(crate) fn errors() -> Outcome {
    let x = tensor(&Device::cpu(), DType::F32, &[4, 8], 98)?;
    let row = tensor(&Device::cpu(), DType::F32, &[8], 99)?;
    let place = PLACES[0];
    let wrong = Tensor::zeros(&Device::cpu(), DType::F32, [2])?;
    let mut many = x.lazy();
    for _ in 0..5 {
        many = many.dropout(0.5, place);
    }
    let mut graph = Graph::new();
    let of = graph.operand(DType::F32, false)?;
    let mask = graph.dropout_mask(of, 0.5)?;
    let fused = graph.fuse(&[mask])?;
    let refused = [
        ("fewer elements", (row.lazy().dropout(0.5, place) + x.lazy()).eval().err(), "fewer elements"),
        ("rows", (x.lazy().row_sum().dropout(0.5, place) + x.lazy()).eval().err(), "one for each row"),
        ("p", x.lazy().dropout(1.5, place).eval().err(), "from 0 to 1"),
        ("NaN", x.lazy().dropout(f64::NAN, place).eval().err(), "from 0 to 1"),
        ("places in f32", x.lazy().dropout(0.5, &wrong).eval().err(), "i64"),
        ("masks", many.eval().err(), "masks of dropout"),
        ("no places", fused.run(&[x.view()]).err(), "rngs"),
        ("two places", fused.clone().rngs([place.into(), place.into()]).run(&[x.view()]).err(), "rngs"),
    ];
    for (what, error, word) in refused {
        match error {
            Some(error) if error.to_string().contains(word) => {}
            other => return Err(format!("{what}: {other:?}").into()),
        }
    }
    Ok(())
}
