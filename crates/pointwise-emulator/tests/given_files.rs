//! Decodes and runs all PTX in the files of `POINTWISE_EMULATOR_PTX` (separated by `:`), if it is set.

use std::{collections::BTreeMap, env, fs};

use pointwise_emulator::{Fault, Gpu, Kernel, Launch, Module, Settings};

#[test]
fn every_entry_of_given_files_is_understood() {
    let Ok(files) = env::var("POINTWISE_EMULATOR_PTX") else { return };
    for file in files.split(':') {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}")).replace('\0', "");
        // A file may hold several modules.
        let mut starts: Vec<usize> = text.match_indices(".version ").map(|(at, _)| at).collect();
        starts.push(text.len());
        let (mut kernels, mut failures) = (Vec::new(), Vec::new());
        for module in starts.windows(2) {
            match Module::parse(&text[module[0]..module[1]]) {
                Ok(module) => kernels.extend(module.kernels().to_vec()),
                Err(error) => failures.push(error.to_string()),
            }
        }
        assert!(
            failures.is_empty(),
            "{} fail, such as\n{}",
            failures.len(),
            failures[..failures.len().min(10)].join("\n")
        );
        println!("{file}: {} kernels", kernels.len());
        let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
        for (kernel, seed) in kernels.iter().zip(1_u64..) {
            for try_ in 0..3 {
                let outcome = match run(kernel, seed * 3 + try_) {
                    Ok(()) => "runs".to_owned(),
                    Err(Fault::Found(finding)) => {
                        format!("{:?}", finding.problem).split([' ', '(']).next().unwrap_or("").to_owned()
                    }
                    Err(fault) => panic!("{fault}"),
                };
                *outcomes.entry(outcome).or_default() += 1;
            }
        }
        println!("{file}: {outcomes:?}");
    }
}

/// Runs a kernel with arguments that mean nothing: it must end, with or without a finding.
fn run(kernel: &Kernel, seed: u64) -> Result<(), Fault> {
    let gpu = Gpu::new(Settings { limit: 20_000, ..Settings::default() });
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut arguments = vec![0; kernel.parameter_bytes()];
    for parameter in kernel.parameters() {
        for at in (0..parameter.bytes).step_by(8) {
            // Addresses, small numbers and zeros in turn.
            let value = match next() % 4 {
                _ if at == 0 && parameter.bytes == 8 && parameter.offset < 32 => None,
                0 => None,
                1 => Some(next() % 64),
                2 => Some(next() % 8),
                _ => Some(0),
            };
            let value = value.unwrap_or_else(|| {
                let address = gpu.allocate(1 << 14).expect("memory");
                let bytes: Vec<u8> = (0..1 << 14).map(|at| (at * 37 % 251) as u8).collect();
                gpu.write(address, &bytes).expect("it is allocated");
                address
            });
            let length = 8.min(parameter.bytes - at);
            arguments[parameter.offset + at..][..length].copy_from_slice(&value.to_le_bytes()[..length]);
        }
    }
    let launch = Launch::new([2, 1, 1], [64, 1, 1], &arguments);
    gpu.launch(kernel, &Launch { shared: 1 << 16, early: true, ..launch }).map(|_| ())
}
