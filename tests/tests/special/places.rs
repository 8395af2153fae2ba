//! Dropout from a seed and an offset in memory: it draws as a `Philox`, a graph draws from the place at its replay; errors.

use pointwise::kernel::Rng;
use pointwise::{DType, Device, ErrorKind, Philox, Strategy, Stream, Tensor, TensorView, kernels, ops};
use pointwise_testkit::inputs;

use crate::dropout::around_words;
use crate::{Outcome, same_on_the_cpu};

/// All bits count, and the counter wraps.
const PLACES: [Philox; 3] = [
    Philox { seed: 42, offset: 0 },
    Philox { seed: 0x8123_4567_89AB_CDEF, offset: (1 << 32) - 3 },
    Philox { seed: u64::MAX, offset: u64::MAX - 1 },
];

/// The elements of a tensor for a place.
fn words(place: Philox) -> [i64; 2] {
    [place.seed.cast_signed(), place.offset.cast_signed()]
}

/// The same result and mask from memory as from the call, for any alignment, and for elements that need all bits of
/// their words.
pub(crate) fn as_given(device: &Device, dtype: DType, strategy: Strategy) -> Outcome {
    let (most, size) = (4_097, dtype.size());
    let bytes = inputs::mixed(dtype, most + 3, 12);
    let x = Tensor::from_bytes(device, dtype, &bytes, [most + 3])?;
    let check = |place: Philox, p: f64, n: usize, [x_at, y_at, mask_at]: [usize; 3]| -> Outcome {
        // Aligned to an element, and no more.
        let [seed, offset] = words(place);
        let memory = Tensor::from_slice(device, &[7, seed, offset], [3])?;
        let memory = memory.view().narrow(0, 1, 2)?;
        let kernel = kernels::dropout(p).strategy(strategy);
        let results = [Rng::from(place), Rng::from(memory)].map(|rng| -> pointwise::Result<_> {
            let mut y = Tensor::from_bytes(device, dtype, &vec![0x11; (most + 3) * size], [most + 3])?;
            let mut mask = Tensor::full(device, true, [most + 3])?;
            let source = x.view().narrow(0, x_at, n)?;
            kernel.run_into(source, y.view_mut()?.narrow(0, y_at, n)?, rng)?;
            let plain = y.to_bytes()?;
            kernel.run_with_mask_into(
                source,
                y.view_mut()?.narrow(0, y_at, n)?,
                mask.view_mut()?.narrow(0, mask_at, n)?,
                rng,
            )?;
            Ok([plain, y.to_bytes()?, mask.to_bytes()?])
        });
        let [given, read] = results;
        if given? != read? {
            return Err(format!("{place:?}, p {p}, {n} elements: memory gives others than the call").into());
        }
        Ok(())
    };
    for place in PLACES {
        for n in [1, 8, 1_023, most] {
            for offsets in [[0, 0, 0], [3, 3, 3], [1, 0, 1]] {
                check(place, 0.25, n, offsets)?;
            }
        }
    }
    for (place, _, p, _) in around_words(61).into_iter().step_by(5) {
        check(place, p, 61, [0, 0, 0])?;
    }
    Ok(())
}

/// A graph draws what the tensor says at each launch; forward and backward the same.
pub(crate) fn replays(device: &Device) -> Outcome {
    let (n, cpu) = (5_000, Device::cpu());
    let stream = Stream::new(device)?;
    let x = Tensor::full(device, 1.0_f32, [n])?;
    let on_cpu = x.to_device(&cpu)?;
    let mut memory = Tensor::from_slice(device, &[0_i64, 0], [2])?;
    let (mut y, mut z) = (Tensor::zeros(device, DType::F32, [n])?, Tensor::zeros(device, DType::F32, [n])?);
    let mut gradient = Tensor::zeros(device, DType::F32, [n])?;
    let mut mask = Tensor::zeros(device, DType::Bool, [n])?;
    let kernel = kernels::dropout(0.3).on(&stream);
    let mut graph = stream.capture(|_| {
        kernel.run_into(&x, &mut y, &memory)?;
        kernel.run_with_mask_into(&x, &mut z, &mut mask, &memory)?;
        kernel.run_into(&x, &mut gradient, &memory)
    })?;
    let mut seen = Vec::new();
    for place in PLACES {
        memory.copy_from_bytes(&words(place).map(i64::to_ne_bytes).concat())?;
        graph.launch(&stream)?;
        stream.synchronize()?;
        let (expected, kept) = ops::dropout_with_mask(&on_cpu, 0.3, place)?;
        for (what, result) in [("plain", &y), ("with a mask", &z), ("backward", &gradient)] {
            same_on_the_cpu(result, &expected, what)?;
        }
        same_on_the_cpu(&mask, &kept, "the mask")?;
        seen.push(mask.to_bytes()?);
    }
    assert!(seen[0] != seen[1] && seen[1] != seen[2] && seen[0] != seen[2], "each launch draws anew");
    Ok(())
}

/// On the CPU a call reads what the tensor holds then, too.
pub(crate) fn on_the_cpu() -> Outcome {
    let cpu = Device::cpu();
    let x = Tensor::full(&cpu, 1.0_f32, [1_000])?;
    let mut memory = Tensor::zeros(&cpu, DType::I64, [2])?;
    for place in PLACES {
        memory.as_mut_slice::<i64>()?.copy_from_slice(&words(place));
        let expected = ops::dropout(&x, 0.3, place)?;
        same_on_the_cpu(&ops::dropout(&x, 0.3, &memory)?, &expected, "forward")?;
        same_on_the_cpu(&ops::dropout_backward(&x, 0.3, &memory)?, &expected, "backward")?;
        let mut z = x.copy()?;
        ops::dropout_inplace(&mut z, 0.3, &memory)?;
        same_on_the_cpu(&z, &expected, "in place")?;
    }
    Ok(())
}

/// A tensor that is no seed and offset is an error, also if the call draws nothing.
pub(crate) fn place_errors(device: &Device) -> Outcome {
    let x = Tensor::full(device, 1.0_f32, [4])?;
    let mut y = Tensor::full(device, 7.0_f32, [4])?;
    for p in [0.5, 0.0, 1.0] {
        let mut refused = |rng: TensorView<'_>| match ops::dropout_into(&x, &mut y, p, rng) {
            Err(error) => error,
            Ok(()) => panic!("p {p}: {rng:?} is taken"),
        };
        assert!(refused(Tensor::zeros(device, DType::I32, [2])?.view()).is_dtype());
        let longs = Tensor::zeros(device, DType::I64, [2, 2])?;
        for shape in [&longs.view(), &longs.view().narrow(0, 0, 1)?, &longs.view().reshape([4])?.narrow(0, 0, 1)?] {
            assert!(refused(*shape).is_shape());
        }
        let error = refused(longs.view().select(1, 0)?);
        assert!(matches!(error.kind(), ErrorKind::NotContiguous { .. }), "{error}");
        if !device.is_cpu() {
            let error = refused(Tensor::zeros(&Device::cpu(), DType::I64, [2])?.view());
            assert!(matches!(error.kind(), ErrorKind::DeviceMismatch { .. }), "{error}");
        }
    }
    assert_eq!(y.to_vec::<f32>()?, [7.0; 4]);
    // SAFETY: a view for one call, refused before it is read.
    let shared = unsafe { TensorView::from_raw_parts(device, y.device_ptr(), DType::I64, [2], &[1])? };
    let error = ops::dropout_into(&x, &mut y, 0.5, shared).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Overlap { .. }), "{error}");
    Ok(())
}
