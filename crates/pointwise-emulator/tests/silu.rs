//! A shipped kernel, from its PTX to its results.

use pointwise_emulator::{Gpu, Launch, Module, Settings};

const TEXT: &str = include_str!("../data/silu.ptx");

#[test]
fn silu_of_all_lengths() {
    let kernel = Module::parse(TEXT).unwrap().kernel("unary_silu_f32_register_copy").unwrap();
    for length in [0_usize, 1, 3, 4, 5, 127, 128, 1000, 4097, 20_003] {
        for start in [0, 1, 2, 3] {
            let gpu = Gpu::new(Settings::default());
            let x: Vec<f32> = (0..length).map(|i| (i as f32 - 500.0) * 0.031).collect();
            let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
            let [from, to] = [0; 2].map(|_| gpu.allocate(length * 4 + 16).unwrap() + start * 4);
            gpu.write(from, &bytes).unwrap();
            // Single elements up to the first whole vector.
            let head = ((4 - start as usize) % 4).min(length);
            let per_thread = 3_u32;
            let vectors = (length - head) / 4;
            let blocks = vectors.div_ceil(128 * per_thread as usize).max(1);
            let mut arguments = Vec::new();
            for value in [from, to, length as u64] {
                arguments.extend(value.to_le_bytes());
            }
            for value in [head as u32, per_thread] {
                arguments.extend(value.to_le_bytes());
            }
            arguments.extend([0; 32]);
            let results = to..to + length as u64 * 4;
            let mut launch = Launch::new([blocks as u32, 1, 1], [128, 1, 1], &arguments);
            launch.results = Some(std::slice::from_ref(&results));
            let counts = gpu.launch(&kernel, &launch).unwrap_or_else(|fault| panic!("{length}: {fault}"));
            assert!(counts.thread_instructions > 0);
            let mut y = vec![0; length * 4];
            gpu.read(to, &mut y).unwrap();
            for (x, y) in x.iter().zip(y.chunks(4)) {
                let (x, y) = (f64::from(*x), f64::from(f32::from_le_bytes(y.try_into().unwrap())));
                let exact = x / (1.0 + (-x).exp());
                assert!((y - exact).abs() <= exact.abs() * 1e-6, "silu({x}) = {y}, not {exact}");
            }
        }
    }
}
