//! Measures the thread instructions that one host thread executes per second: `silu` in f32, checks off and on.

#![allow(missing_docs, reason = "criterion's macro makes a function")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pointwise_emulator::{Gpu, Launch, Module, Settings};

const TEXT: &str = include_str!("../data/silu.ptx");

fn silu(criterion: &mut Criterion) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool of one thread");
    let kernel = Module::parse(TEXT).expect("it is PTX").kernel("unary_silu_f32_register_copy").expect("it is there");
    let length = 1_u64 << 18;
    let mut group = criterion.benchmark_group("silu_f32");
    for checks in [false, true] {
        let gpu = Gpu::new(Settings { checks, ..Settings::default() });
        let [from, to] = [0; 2].map(|_| gpu.allocate(length as usize * 4).expect("memory"));
        let x: Vec<u8> = (0..length).flat_map(|i| (i as f32 * 1e-4 - 13.0).to_le_bytes()).collect();
        gpu.write(from, &x).expect("it is allocated");
        let mut arguments: Vec<u8> = [from, to, length].iter().flat_map(|value| value.to_le_bytes()).collect();
        // No element before the first vector, one vector a thread, no parameters.
        arguments.extend([0_u32, 1].iter().flat_map(|value| value.to_le_bytes()));
        arguments.extend([0; 32]);
        let results = to..to + length * 4;
        let mut launch = Launch::new([(length / 512) as u32, 1, 1], [128, 1, 1], &arguments);
        launch.results = Some(std::slice::from_ref(&results));
        let run = || pool.install(|| gpu.launch(&kernel, &launch).expect("it is right").thread_instructions);
        group.throughput(Throughput::Elements(run()));
        group.bench_function(if checks { "checks_on" } else { "checks_off" }, |bencher| bencher.iter(run));
    }
    group.finish();
}

criterion_group!(benches, silu);
criterion_main!(benches);
