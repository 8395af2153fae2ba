//! Noise: its distributions, and its gradients, which draw the same words again. `forms` checks values and bounds.

use every_form::ops::noise;
use pointwise::{DType, Device, Philox, Tensor, ops};

const N: usize = 1 << 14;
const RNG: Philox = Philox::new(7);

fn devices() -> Vec<Device> {
    Device::for_tests(pointwise::embed::embedded()).unwrap()
}

fn values(x: &Tensor) -> Vec<f64> {
    ops::to_dtype(x, DType::F32).unwrap().to_vec::<f32>().unwrap().into_iter().map(f64::from).collect()
}

/// Mean and variance.
fn moments(x: &Tensor) -> [f64; 2] {
    let x = values(x);
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    [mean, x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / x.len() as f64]
}

fn full(device: &Device, value: f32) -> Tensor {
    Tensor::full(device, value, [N]).unwrap()
}

/// Within five deviations of a mean of 2^14 samples.
#[test]
fn distributions_have_their_moments() {
    for device in devices() {
        let x = full(&device, 0.0);
        for (what, y, mean, variance) in [
            ("uniform", noise::uniform_noise(&x, 2.0, RNG), 0.0, 1.0 / 3.0),
            ("normal", noise::normal_noise(&x, 2.0, RNG), 0.0, 4.0),
            ("Gumbel", noise::gumbel_noise(&x, 1.0, RNG), 0.577_216, 1.644_934),
            ("Bernoulli", noise::bernoulli(&full(&device, 0.25), RNG), 0.25, 0.1875),
        ] {
            let [got_mean, got_variance] = moments(&y.unwrap());
            assert!((got_mean - mean).abs() < 0.04 * f64::sqrt(variance), "{what} on {device}: mean {got_mean}");
            assert!((got_variance / variance - 1.0).abs() < 0.1, "{what} on {device}: variance {got_variance}");
        }
    }
}

#[test]
fn gradients_draw_the_same_noise() {
    for device in devices() {
        let x = full(&device, 0.0);
        let y = noise::normal_noise(&x, 1.0, RNG).unwrap();
        let (grad_x, grad_sigma) = noise::normal_noise_backward(1.0, &x, 1.0, RNG).unwrap();
        assert_eq!((values(&grad_x), values(&grad_sigma)), (vec![1.0; N], values(&y)), "{device}");

        let half = full(&device, 0.5);
        let kept = noise::bernoulli(&half, RNG).unwrap();
        let (grad_x, grad_p) = noise::bernoulli_keep_backward(1.0, &x, &half, RNG).unwrap();
        assert_eq!((values(&grad_x), values(&grad_p)), (values(&kept), vec![0.0; N]), "{device}");

        let grad = noise::gumbel_noise_backward(1.0, &x, 0.5, RNG).unwrap();
        assert_eq!(values(&grad), vec![2.0; N], "{device}");
        assert_eq!(values(&noise::uniform_noise_backward(3.0, &x, None, RNG).unwrap()), vec![3.0; N], "{device}");
        assert_eq!(values(&noise::stochastic_bf16_backward(1.0, &half, RNG).unwrap()), vec![0.0; N], "{device}");
    }
}

/// The two neighbours in bf16, and on average the number.
#[test]
fn stochastic_rounding_has_the_mean() {
    for device in devices() {
        for (x, below, above) in [
            (1.002_f32, 1.0, 1.0078125),
            (-3.3, -3.3125, -3.296875),
            (255.75, 255.0, 256.0),
            // Subnormal in bf16, whose smallest number is 2^-133.
            (3.0e-40, 3.0 * 2.0_f64.powi(-133), 4.0 * 2.0_f64.powi(-133)),
        ] {
            let exact = f64::from(x);
            let y = values(&noise::stochastic_bf16(&full(&device, x), RNG).unwrap());
            let near = |y: f64, to: f64| (y / to - 1.0).abs() < 1e-6;
            assert!(y.iter().all(|&y| near(y, below) || near(y, above)), "{x} on {device}");
            let mean = y.iter().sum::<f64>() / N as f64;
            assert!((mean - exact).abs() < 0.03 * (above - below), "{x} on {device}: {mean}");
        }
    }
}

/// Samples, channels and rows of `shape`, which are of `len` elements each, have one value each.
fn groups(y: &Tensor, len: usize) -> Vec<f64> {
    values(y)
        .chunks(len)
        .map(|group| {
            assert!(group.iter().all(|y| *y == group[0]), "{group:?}");
            group[0]
        })
        .collect()
}

#[test]
fn samples_channels_and_rows_share_words() {
    for device in devices() {
        // Groups that vectors straddle, of a vector, and of many; kernels of rows and strided ones, too.
        for shape in [[300, 2, 1, 3], [41, 8, 2, 8], [3, 5, 61, 100], [7, 1, 1, 1]] {
            for dtype in [DType::F32, DType::BF16, DType::F8E5M2] {
                let ones = Tensor::full(&device, 1.0, shape).unwrap().to_dtype(dtype).unwrap();
                let turned = ones.view().transpose(2, 3).unwrap();
                let [n, c, h, w] = shape;
                let samples = groups(&noise::drop_path(0.0, &ones, 0.5, RNG).unwrap(), c * h * w);
                let channels = groups(&noise::channel_dropout(&ones, 0.5, RNG).unwrap(), h * w);
                let rows = groups(&noise::row_gain(&ones, 1.0, 0.0, RNG).unwrap(), w);
                let keeps = |i: usize| RNG.word(i as u64) < 1 << 31;
                let expected = |n: usize| (0..n).map(|i| if keeps(i) { 2.0 } else { 0.0 }).collect::<Vec<_>>();
                assert_eq!((samples, channels), (expected(n), expected(n * c)), "{shape:?} of {dtype} on {device}");
                assert_eq!(
                    groups(&noise::channel_dropout(turned, 0.5, RNG).unwrap(), h * w),
                    expected(n * c),
                    "{device}"
                );
                let gain = |i: usize| 2.0 * (RNG.word(i as u64) >> 8) as f64 / f64::from(1 << 24);
                for (i, got) in rows.into_iter().enumerate() {
                    assert!(
                        (got - gain(i)).abs() <= 0.13 * gain(i),
                        "row {i} of {shape:?}, {dtype} on {device}: {got}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_second_word_is_another() {
    for device in devices() {
        let zeros = full(&device, 0.0);
        let second = values(&noise::row_gain(&zeros, 0.0, 1.0, RNG).unwrap());
        let first = values(&noise::uniform_noise(&zeros, 1.0, RNG).unwrap());
        let product = |(a, b): (&f64, &f64)| a * b;
        let correlation = second.iter().zip(&first).map(product).sum::<f64>() / N as f64 * 12.0;
        assert!(correlation.abs() < 5.0 / f64::sqrt(N as f64), "{device}: {correlation}");
    }
}

#[test]
fn gradients_draw_shared_words_again() {
    for device in devices() {
        let x = Tensor::full(&device, 1.0, [37, 5, 3]).unwrap();
        let y = noise::drop_path(0.0, &x, 0.25, RNG).unwrap();
        let (residual, branch) = noise::drop_path_backward(1.0, &x, &x, 0.25, RNG).unwrap();
        assert_eq!((values(&residual), values(&branch)), (vec![1.0; 37 * 15], values(&y)), "{device}");
        let y = noise::row_gain(&x, 0.5, 0.0, RNG).unwrap();
        assert_eq!(values(&noise::row_gain_backward(1.0, &x, 0.5, 0.0, RNG).unwrap()), values(&y), "{device}");
    }
}
