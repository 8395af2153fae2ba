//! Ops of two operands of one byte each, by their table of all pairs and by their formula, from 2^20 elements to 2^28:
//! `table_bandwidth [--op NAME]... [--dtype TYPE]...`. The result shows where the table is faster:
//! `crates/pointwise/src/kernel/lookup.rs` should say the same.
//!
//! Times are medians of events around single launches, twice the level-2 cache written before each; the operands have
//! arbitrary bytes.

use benches::{median, times_after};
use pointwise::{DType, Device, Operand, Strategy, Tensor, info, kernel::OpDef};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut names, mut types): (Vec<String>, Vec<String>) = Default::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--op" => names.extend(arguments.next()),
            "--dtype" => types.extend(arguments.next()),
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    let chosen = |list: &[String], name: &str| list.is_empty() || list.iter().any(|one| one == name);
    let device = Device::cuda(0)?;
    let info = device.info().ok_or("no device information")?;
    println!(
        "# {}, CUDA {}.{}, cold; microseconds of the table over those of the formula",
        info.name, info.driver.0, info.driver.1
    );
    let mut flush = Tensor::empty(&device, DType::U8, [2 * info.l2_bytes])?;
    for dtype in [DType::F8E4M3, DType::F8E5M2, DType::I8, DType::U8] {
        if !chosen(&types, dtype.name()) {
            continue;
        }
        let is_of_two = |def: &&'static OpDef| def.info.operands.len() == 2 && !def.info.is_gradient();
        for def in info::all().filter(is_of_two) {
            // Without parameters, and with two tensors of a size: the others have no table that could pay.
            let has_table = def.info.params.is_empty() && !def.info.operands.contains(&"weight");
            let gives = def.info.supports(dtype) && def.info.result_type(0, dtype) == dtype;
            if !(has_table && gives && chosen(&names, def.info.name)) {
                continue;
            }
            let mut line = String::new();
            for log in 20..=28 {
                let n = 1_usize << log;
                let operand = |seed: u32| {
                    let bytes: Vec<u8> =
                        (0..n as u32).map(|i| ((i ^ seed).wrapping_mul(0x9E37_79B1) >> 21) as u8).collect();
                    Tensor::from_bytes(&device, dtype, &bytes, [n])
                };
                let (a, b, mut y) = (operand(0)?, operand(0x5555)?, Tensor::empty(&device, dtype, [n])?);
                let mut us = |strategy| -> pointwise::Result<f64> {
                    let kernel = def.kernel(&[]).strategy(strategy);
                    let mut call = || kernel.run_into(&[Operand::from(&a), Operand::from(&b)], &mut [y.view_mut()?]);
                    call()?;
                    Ok(1e3 * median(times_after(&device, 21, || flush.set_zero(), call)?))
                };
                let (table, formula) = (us(Strategy::Table)?, us(Strategy::RegisterCopy)?);
                line += &format!(" 2^{log} {table:.1}/{formula:.1}={:.2}", table / formula);
            }
            println!("{:14} {:7}{line}", def.info.name, dtype.name());
        }
    }
    Ok(())
}
