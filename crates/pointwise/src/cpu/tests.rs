//! Every level gives the same bits, wherever operands and result lie.

use super::level::at_each;
use crate::{
    DType, Device, Result, Tensor, TensorViewMut,
    info::{BINARY, UNARY},
};

const TYPES: [DType; 6] = [DType::F32, DType::BF16, DType::F16, DType::F8E4M3, DType::I32, DType::I8];
/// Around a vector, a block, and several of them.
const SIZES: [usize; 5] = [1, 15, 33, 257, 1500];

/// `n` elements of any bits.
fn noise(dtype: DType, n: usize, seed: u64) -> Tensor {
    let mut state = seed;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    let bytes: Vec<u8> = (0..n * dtype.size()).map(|_| byte()).collect();
    Tensor::from_bytes(&Device::cpu(), dtype, &bytes, [n]).unwrap()
}

/// The bits, all NaNs as one.
fn bits(y: &Tensor) -> Vec<u8> {
    let is_nan = crate::ops::isnan(y).unwrap().to_bytes().unwrap();
    let size = y.dtype().size();
    let mut bytes = y.to_bytes().unwrap();
    for (element, _) in bytes.chunks_exact_mut(size).zip(is_nan).filter(|(_, is_nan)| *is_nan != 0) {
        element.fill(0xff);
    }
    bytes
}

/// The result of `run` at each level, in a new tensor; `inplace` gives it written over the first operand.
fn check(name: &str, fresh: impl Fn() -> Result<Tensor>, inplace: Option<&dyn Fn() -> Result<Tensor>>) {
    let mut expected = None;
    at_each(|level| {
        let y = bits(&fresh().unwrap());
        assert_eq!(expected.get_or_insert_with(|| y.clone()), &y, "{name} at level {level}");
        if let Some(inplace) = inplace {
            assert_eq!(expected.as_ref(), Some(&bits(&inplace().unwrap())), "{name} in place at level {level}");
        }
    });
}

#[test]
fn unary_ops_agree() {
    for dtype in TYPES {
        for def in UNARY.iter().filter(|def| def.info.supports(dtype)) {
            let same = def.info.result.of(dtype) == dtype;
            for n in SIZES {
                let x = noise(dtype, n, 1 + n as u64);
                let inplace = || {
                    let mut y = x.view().to_tensor()?;
                    def.unary_with(&[]).run_inplace(&mut y).map(|()| y)
                };
                let name = format!("{} of {n} {dtype}", def.info.name);
                check(&name, || def.unary_with(&[]).run(&x), same.then_some(&inplace));
            }
        }
    }
}

#[test]
fn angles_of_any_size_agree() {
    // One large angle in a block of small ones, at each end of a vector.
    for dtype in [DType::F32, DType::BF16, DType::F16] {
        for def in UNARY.iter().filter(|def| ["sin", "cos"].contains(&def.info.name)) {
            for at in [0, 255, 256, 600] {
                let mut angles: Vec<f32> = (0..700).map(|i| i as f32 * 0.37 - 100.0).collect();
                angles[at] = 60_000.0;
                let x = Tensor::from_slice(&Device::cpu(), &angles, [700]).unwrap().to_dtype(dtype).unwrap();
                check(&format!("{} of {dtype}", def.info.name), || def.unary_with(&[]).run(&x), None);
            }
        }
    }
}

#[test]
fn binary_ops_agree() {
    for dtype in TYPES {
        // The weight of prelu has a shape of its own.
        for def in BINARY.iter().filter(|def| def.info.supports(dtype) && def.info.name != "prelu") {
            let kernel = def.binary_with(&[]);
            let same = def.info.result.of(dtype) == dtype;
            for n in SIZES {
                let (a, b, one) = (noise(dtype, n, 3), noise(dtype, n, 5), noise(dtype, 1, 7));
                // A second operand of its own, one that is the same for all, and a number.
                for b in [&b, &one] {
                    let inplace = || {
                        let mut y = a.view().to_tensor()?;
                        kernel.run_inplace(TensorViewMut::from(&mut y), b).map(|()| y)
                    };
                    let name = format!("{} of {n} {dtype}", def.info.name);
                    check(&name, || kernel.run(&a, b), same.then_some(&inplace));
                }
                check(&format!("{} of {n} {dtype} and 3", def.info.name), || kernel.run(&a, 3), None);
            }
        }
    }
}
