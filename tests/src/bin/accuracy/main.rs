//! The accuracy of every op that has float types, against f64.
//!
//! `accuracy [--device D] [--op RE]... [--ops NAME,NAME] [--skip-done FILE]... [--pairs 2^N] [--budget-s S] [--sample]
//! [--json FILE]` runs the ops. Ops of one operand run over all 2^32 f32 inputs (`--sample`: every 257th), all 65,536
//! of f16 and bf16 and all 256 of fp8. Ops of several run over the grid of special values and 2^N random tuples (by
//! default 2^26; a quarter for more operands), or over all tuples if there are at most 2^24, as in fp8. Gradients of
//! ops of one operand take in 16 bits every code of `x` with 16 grads before the random pairs; `--pairs 2^32` takes all
//! pairs. Ops that may be off come before exact ones, quick ones before slow ones. `--skip-done` leaves out the results
//! of an earlier run. If a bound is not kept, the program says where and fails.
//!
//! `accuracy --table OURS.json... [--peers TORCH.json]... [--json MERGED.json]` prints the tables of docs/accuracy.md;
//! rows of later files replace rows of earlier ones.

mod options;
mod record;
mod table;

use std::error::Error;
use std::time::Instant;

use options::{Options, Run, Table};
use pointwise::{DType, info::Accuracy};
use record::{Record, Row};
use tests::accuracy::{Inputs, Subject, subjects, sweep};

fn main() -> Result<(), Box<dyn Error>> {
    match options::parse(std::env::args().skip(1))? {
        Options::Run(options) => run(&options),
        Options::Table(options) => print_tables(&options),
    }
}

/// An op, with the types and inputs to run it on.
struct Job {
    subject: Subject,
    sweeps: Vec<(DType, Inputs)>,
}

impl Job {
    /// The cost of the op, in inputs of one operand in f32: random ones are drawn and compared one by one.
    fn cost(&self) -> u64 {
        let of = |inputs: &Inputs| if matches!(inputs, Inputs::Codes { .. }) { 1 } else { DRAWN } * inputs.count();
        self.subject.results().len() as u64 * self.sweeps.iter().map(|(_, inputs)| of(inputs)).sum::<u64>()
    }
}

/// The measured cost of a tuple beside a code.
const DRAWN: u64 = 4;

/// The jobs that are asked for and not done, the most telling first.
fn jobs(options: &Run) -> Result<Vec<Job>, Box<dyn Error>> {
    let done = Record::merged(&options.done)?;
    let mut jobs = Vec::new();
    for subject in subjects().filter(|subject| options.takes(subject.info().name)) {
        let info = subject.info();
        let inputs = |dtype: DType| (dtype, Inputs::of(subject, dtype, options.step, options.random));
        let results = subject.results();
        let is_left = |(dtype, inputs): &(DType, Inputs)| {
            let is_done = |done: &Record| results.iter().all(|name| done.has(name, *dtype, *inputs));
            !done.as_ref().is_some_and(is_done)
        };
        let sweeps: Vec<_> =
            info.types.iter().copied().filter(|dtype| dtype.is_float()).map(inputs).filter(is_left).collect();
        if !sweeps.is_empty() {
            jobs.push(Job { subject, sweeps });
        }
    }
    jobs.sort_by_key(|job| (job.subject.info().accuracy == Accuracy::Exact, job.cost()));
    Ok(jobs)
}

fn run(options: &Run) -> Result<(), Box<dyn Error>> {
    let device = options.device;
    let mut record = Record {
        device: device.info().map_or_else(|| "the CPU".to_owned(), |info| info.name.clone()),
        torch: None,
        rows: Vec::new(),
    };
    eprintln!("device {device}: {}", record.device);
    let jobs = jobs(options)?;
    if jobs.is_empty() {
        return Err("no such op, or all are done".into());
    }
    let all: u64 = jobs.iter().map(Job::cost).sum();
    let start = Instant::now();
    let (mut above, mut left_out, mut spent) = (Vec::new(), Vec::new(), 0);
    for (at, job) in jobs.iter().enumerate() {
        let info = job.subject.info();
        if options.budget.is_some_and(|budget| start.elapsed() > budget) {
            left_out.push(info.name);
            continue;
        }
        for &(dtype, inputs) in &job.sweeps {
            let began = Instant::now();
            let results = sweep(&device, job.subject, dtype, inputs)?;
            let time = began.elapsed();
            for (name, report) in job.subject.results().into_iter().zip(&results) {
                let row = Row::new(name, job.subject, dtype, inputs, report, time);
                println!("{row}");
                if !row.kept {
                    above.push(format!("{} {dtype}", row.op));
                }
                record.rows.push(row);
            }
        }
        spent += job.cost();
        let seconds = start.elapsed().as_secs_f64();
        let more = seconds * (all - spent) as f64 / spent as f64;
        eprintln!("{} of {} ops, {seconds:.0} s, about {more:.0} s more", at + 1, jobs.len());
        if let Some(path) = &options.json {
            // After every op: what is done stays if the time is cut short.
            record.write(path)?;
        }
    }
    eprintln!("{} rows, {:.0} s", record.rows.len(), start.elapsed().as_secs_f64());
    if !left_out.is_empty() {
        eprintln!("left out, the time being spent (--skip-done goes on from here): {}", left_out.join(" "));
    }
    if !above.is_empty() {
        return Err(format!("above the bound: {}", above.join(", ")).into());
    }
    Ok(())
}

fn print_tables(options: &Table) -> Result<(), Box<dyn Error>> {
    let ours = Record::merged(&options.ours)?.ok_or("no results")?;
    let peers = Record::merged(&options.peers)?;
    print!("{}", table::markdown(&ours, peers.as_ref()));
    options.json.as_ref().map_or(Ok(()), |path| ours.write(path))
}
