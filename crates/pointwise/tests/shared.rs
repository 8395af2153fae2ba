//! Clones share memory, which is written only when one tensor alone has it.

use std::sync::Barrier;
use std::thread;

use pointwise::{DType, Device, Error, ErrorKind, Tensor, TensorViewMut, kernels, ops};

const CPU: Device = Device::cpu();

fn of(data: &[f32]) -> Tensor {
    Tensor::from_slice(&CPU, data, [data.len()]).unwrap()
}

fn is_shared(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Shared)
}

#[test]
fn clones_and_reshaped_tensors_share_and_copies_do_not() {
    let x = of(&[1.0, 2.0, 3.0, 4.0]);
    let (clone, square, copy) = (x.clone(), x.reshape([2, 2]).unwrap(), x.copy().unwrap());
    assert_eq!([clone.as_ptr(), square.as_ptr()], [x.as_ptr(); 2]);
    assert_ne!(copy.as_ptr(), x.as_ptr());
    drop((x, clone));
    assert_eq!(square.shape(), &[2, 2]);
    assert_eq!(square.to_vec::<f32>().unwrap(), copy.to_vec::<f32>().unwrap());
}

#[test]
fn nothing_writes_what_is_shared() {
    let mut x = of(&[-1.0, 2.0]);
    let other = of(&[5.0, 6.0]);
    let clone = x.clone();
    let mut mask = Tensor::zeros(&CPU, DType::Bool, [2]).unwrap();
    let mask_clone = mask.clone();
    let rng = pointwise::Philox::new(1);
    let view = TensorViewMut::from(&mut x);
    assert!(is_shared(&ops::relu_inplace(view.narrow(0, 0, 1).unwrap()).unwrap_err()), "parts of it");
    let writes = [
        x.view_mut().map(drop),
        x.as_mut_ptr().map(drop),
        x.as_mut_slice::<f32>().map(drop),
        TensorViewMut::from(&mut x).as_mut_slice::<f32>().map(drop),
        TensorViewMut::from(&mut x).reborrow().as_mut_ptr().map(drop),
        x.copy_from_slice(&[0.0_f32; 2]),
        x.copy_from_bytes(&[0; 8]),
        x.set_zero(),
        x.copy_from(&other),
        x.copy_from(&clone),
        other.view().copy_into(&mut x),
        ops::relu_inplace(&mut x),
        ops::neg_into(&other, &mut x),
        ops::neg_into(&clone, &mut x),
        ops::add_inplace(&mut x, 1),
        ops::add_into(&other, 1, &mut x),
        ops::pow_inplace(&mut x, 2),
        ops::lerp_into(&other, &clone, 0.5, &mut x),
        ops::masked_fill_inplace(&mut x, &mask_clone, 1),
        ops::dropout_inplace(&mut x, 0.5, rng),
        ops::dropout_with_mask_into(&other, &mut of(&[0.0; 2]), &mut mask, 0.5, rng),
        ops::mul_backward_into(&other, &other, &other, &mut x, &mut of(&[0.0; 2])),
        kernels::to_dtype().run_into(&other, &mut x),
    ];
    for (k, written) in writes.into_iter().enumerate() {
        let error = written.expect_err(&format!("write {k}"));
        assert!(is_shared(&error), "write {k}: {error}");
        assert!(error.to_string().contains("copy()"), "{error}");
    }
    assert_eq!(clone.to_vec::<f32>().unwrap(), [-1.0, 2.0]);
    drop(clone);
    ops::relu_inplace(&mut x).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [0.0, 2.0]);
}

/// A reader sees the elements as they were when it got its clone; the writer waits until it alone has them.
#[test]
fn threads_with_clones_do_not_race() {
    const N: usize = 1 << 12;
    for round in 0..50 {
        let mut mine = Tensor::full(&CPU, 1.0_f32, [N]).unwrap();
        let theirs = mine.clone();
        let start = Barrier::new(2);
        let refused = thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let theirs = theirs;
                start.wait();
                let seen = theirs.to_vec::<f32>().unwrap();
                drop(theirs);
                seen
            });
            start.wait();
            let mut refused = 0_u64;
            loop {
                match ops::neg_inplace(&mut mine) {
                    Ok(()) => break,
                    Err(error) => assert!(is_shared(&error), "{error}"),
                }
                refused += 1;
                thread::yield_now();
            }
            assert_eq!(reader.join().unwrap(), vec![1.0; N], "round {round}");
            refused
        });
        assert_eq!(mine.to_vec::<f32>().unwrap(), vec![-1.0; N], "after {refused} refusals");
    }
}

/// Two tensors in two threads share memory: at most one is written, and only after the other is gone.
#[test]
fn two_writers_exclude_each_other() {
    for _ in 0..50 {
        let first = of(&[1.0; 64]);
        let second = first.clone();
        let start = Barrier::new(2);
        let write = |mut x: Tensor| {
            start.wait();
            let written = ops::add_inplace(&mut x, 1);
            (written.is_ok(), x.to_vec::<f32>().unwrap())
        };
        let results = thread::scope(|scope| {
            let (a, b) = (scope.spawn(|| write(first)), scope.spawn(|| write(second)));
            [a, b].map(|thread| thread.join().unwrap())
        });
        assert!(results.iter().any(|(written, _)| !written), "one found it shared");
        for (written, seen) in results {
            assert_eq!(seen, vec![if written { 2.0 } else { 1.0 }; 64]);
        }
    }
}
