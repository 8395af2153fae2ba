//! The accuracy of every op that has float types, against f64.
//!
//! `accuracy [--device D] [--op RE]... [--pairs 2^N] [--budget-s S] [--sample] [--json FILE]` runs the ops: those of one
//! operand over all 2^32 f32 inputs (`--sample`: every 257th), all 65,536 of f16 and bf16 and all 256 of fp8; those of
//! several over the grid of special values and 2^N random tuples (2^26 unless told; a quarter of three operands), and in
//! fp8 over all tuples. It says where a bound is not kept, and fails.
//!
//! `accuracy --table OURS.json [--peers TORCH.json] [--figure FILE.svg]` prints the tables of docs/accuracy.md.

mod figure;
mod options;
mod record;
mod table;

use std::error::Error;
use std::time::Instant;

use options::{Options, Run, Table};
use pointwise::DType;
use record::{Record, Row};
use tests::accuracy::{Inputs, subjects, sweep};

fn main() -> Result<(), Box<dyn Error>> {
    match options::parse(std::env::args().skip(1))? {
        Options::Run(options) => run(&options),
        Options::Table(options) => print_tables(&options),
    }
}

fn run(options: &Run) -> Result<(), Box<dyn Error>> {
    let device = options.device;
    let mut record = Record {
        device: device.info().map_or_else(|| "the CPU".to_owned(), |info| info.name.clone()),
        torch: None,
        rows: Vec::new(),
    };
    eprintln!("device {device}: {}", record.device);
    let start = Instant::now();
    let (mut above, mut left_out) = (Vec::new(), Vec::new());
    for subject in subjects().filter(|subject| options.takes(subject.info().name)) {
        let info = subject.info();
        if options.budget.is_some_and(|budget| start.elapsed() > budget) {
            left_out.push(info.name);
            continue;
        }
        for &dtype in info.types.iter().filter(|dtype| dtype.is_float()) {
            let began = Instant::now();
            // 2^28 pairs are a sixteenth of all there are of a 16-bit type.
            let random = if dtype == DType::F32 { options.random } else { options.random.min(1 << 28) };
            let inputs = Inputs::of(subject, dtype, options.step, random);
            let report = sweep(&device, subject, dtype, inputs)?;
            let row = Row::new(subject, dtype, inputs, &report, began.elapsed());
            println!("{row}");
            if !row.kept {
                above.push(format!("{} {dtype}", info.name));
            }
            record.rows.push(row);
        }
        if let Some(path) = &options.json {
            // After every op: what is done stays if the time is cut short.
            record.write(path)?;
        }
    }
    eprintln!("{} rows, {:.0} s", record.rows.len(), start.elapsed().as_secs_f64());
    if !left_out.is_empty() {
        eprintln!("left out, the time being spent: {}", left_out.join(" "));
    }
    if !above.is_empty() {
        return Err(format!("above the bound: {}", above.join(", ")).into());
    }
    Ok(())
}

fn print_tables(options: &Table) -> Result<(), Box<dyn Error>> {
    let ours = Record::read(&options.ours)?;
    let peers = options.peers.as_deref().map(Record::read).transpose()?;
    print!("{}", table::markdown(&ours, peers.as_ref()));
    if let Some(path) = &options.figure {
        figure::write(path, &ours, peers.as_ref())?;
    }
    Ok(())
}
