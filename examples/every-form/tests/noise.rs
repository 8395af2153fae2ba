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
