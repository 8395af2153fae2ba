//! `cargo xtask test`.

use std::time::Instant;

use anyhow::Result;

use crate::shell::{Background, cargo, run};
use crate::{book, build_ptx, cpu_loops, fuzz, setup};

pub(crate) fn run_all(consent: setup::Consent) -> Result<()> {
    let mut steps = Steps::new();
    setup::device_toolchain(consent)?;
    build_ptx::run(consent, false)?;
    steps.end("kernels: compile, check, assemble");
    run(cargo().args(["test", "--workspace", "--no-run"]))?;
    steps.end("tests: build");
    // Most tests are one thread, and so is most of the loops' compilation.
    let (fuzzers, mdbook, loops) = (fuzz::start()?, book::start_install()?, cpu_loops::start()?);
    run(cargo().args(["test", "--workspace"]).env("POINTWISE_KERNELS", "required"))?;
    fuzzers.end()?;
    steps.end("tests: run; fuzzers");
    // If mdBook cannot be installed, the book says so.
    let _ = mdbook.map(Background::end);
    book::build_if_possible()?;
    steps.end("book: build, check links");
    if let Some(loops) = loops {
        loops.check()?;
    }
    steps.end("CPU loops: compile (beside the tests), read");
    steps.print();
    Ok(())
}

/// The times of the parts.
struct Steps {
    start: Instant,
    /// Name, seconds, and seconds of processors where they are known.
    ended: Vec<(&'static str, f64, Option<f64>)>,
}

impl Steps {
    fn new() -> Steps {
        Steps { start: Instant::now(), ended: Vec::new() }
    }

    fn end(&mut self, name: &'static str) {
        let before: f64 = self.ended.iter().map(|(_, seconds, _)| seconds).sum();
        let processors_before: f64 = self.ended.iter().filter_map(|(.., processors)| *processors).sum();
        let processors = of_children().map(|seconds| seconds - processors_before);
        self.ended.push((name, self.start.elapsed().as_secs_f64() - before, processors));
    }

    fn print(&self) {
        println!("\n{:<48}{:>8}{:>12}", "step", "s", "CPU s");
        for (name, seconds, processors) in &self.ended {
            let processors = processors.map_or_else(|| "?".to_owned(), |seconds| format!("{seconds:.0}"));
            println!("{name:<48}{seconds:>8.0}{processors:>12}");
        }
        println!("everything passed, in {:.0} s", self.start.elapsed().as_secs_f64());
    }
}

/// Seconds of processors of all programs that this one has run to their end. Only Linux says.
fn of_children() -> Option<f64> {
    /// The kernel's unit in this file, whatever its own is.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the program's name, which may have spaces: the 14th and 15th field are user's and system's time.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(13);
    let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(ticks as f64 / TICKS)
}
