//! Every op on a GPU and in the emulator, compared bit by bit: on all codes of 8 and 16 bits and on mixed values of the
//! other types. Exact ops must have the same bits; of the others the greatest difference is told, in ULP of the result.
//!
//! `emulator_bits [FILTER] [--elements N] [--device cuda:N]`; the exit code is 1 if an exact op differs.

use std::process::ExitCode;

use pointwise::{
    DType, Device, Strategy, Tensor,
    info::{Accuracy, OpInfo},
};
use pointwise_testkit::{calls, inputs, judge, params};

/// The findings for one op in one element type.
#[derive(Default)]
struct Found {
    elements: usize,
    differing: usize,
    ulp: f64,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, Box<dyn std::error::Error>> {
    let mut filter = String::new();
    let (mut elements, mut device) = (1_usize << 20, "cuda".to_owned());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--elements" => elements = value()?.parse()?,
            "--device" => device = value()?,
            _ => filter = argument,
        }
    }
    let gpu = Device::parse(&device)?;
    let sm = gpu.info().map_or(90, |info| info.sm).min(90);
    let devices = [gpu, Device::emulated_as(if sm < 90 { 80 } else { 90 })?];
    println!("{} and {}", devices[0], devices[1]);
    let (mut same, mut exact, mut others) = (true, 0, 0);
    let mut tell = |info: &OpInfo, dtype: DType, found: &Found| {
        let is_exact = info.accuracy == Accuracy::Exact;
        *if is_exact { &mut exact } else { &mut others } += 1;
        same &= !is_exact || found.differing == 0;
        if found.differing > 0 {
            println!(
                "{} {dtype}{}: {} of {} elements differ, by at most {:.2} ULP",
                info.name,
                if is_exact { " (exact)" } else { "" },
                found.differing,
                found.elements,
                found.ulp
            );
        }
    };
    for def in tests::all().filter(|def| def.info.name.contains(&filter)) {
        for &dtype in def.info.types {
            let mut found = Found::default();
            for set in params::sets(&def.info, dtype) {
                let results = on_each(&devices, &def.info, dtype, elements, |operands| {
                    calls::run(def, &set, Strategy::Auto, operands)
                })?;
                for (k, (gpu, emulated)) in results[0].iter().zip(&results[1]).enumerate() {
                    found.add(def.info.result_type(k, dtype), gpu, emulated);
                }
            }
            tell(&def.info, dtype, &found);
        }
    }
    println!("{exact} exact and {others} other pairs of op and element type compared");
    Ok(same)
}

/// The results' bytes on each device: of so many elements of one operand, of the matrix's operands of several.
fn on_each(
    devices: &[Device; 2],
    info: &OpInfo,
    dtype: DType,
    elements: usize,
    run: impl Fn(&[Tensor]) -> pointwise::Result<Vec<Tensor>>,
) -> pointwise::Result<Vec<Vec<Vec<u8>>>> {
    let operands = match info.operands.len() {
        1 => vec![inputs::codes(dtype, elements, 2)],
        _ => calls::operands(info, dtype, 2),
    };
    let n = operands[operands.len() - 1].len() / dtype.size();
    let mut results = Vec::new();
    for device in devices {
        let mut tensors = Vec::new();
        for (k, bytes) in operands.iter().enumerate() {
            let dtype = info.operand_type(k, dtype);
            tensors.push(Tensor::from_bytes(device, dtype, &bytes[..n * dtype.size()], [1, n])?);
        }
        results.push(run(&tensors)?.iter().map(|tensor| tensor.to_bytes()).collect::<pointwise::Result<_>>()?);
    }
    Ok(results)
}

impl Found {
    /// Counts where the bits differ (all NaN are one), and by how much.
    fn add(&mut self, dtype: DType, gpu: &[u8], emulated: &[u8]) {
        let size = dtype.size();
        self.elements += gpu.len() / size;
        for (a, b) in gpu.chunks_exact(size).zip(emulated.chunks_exact(size)) {
            if judge::same_bits(dtype, a, b).is_some() {
                self.differing += 1;
                self.ulp = self.ulp.max(judge::ulp_apart(dtype, a, b));
            }
        }
    }
}
