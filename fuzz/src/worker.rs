//! The process that runs cases. It tells the parent, a line each on the standard output, which case begins, with the
//! counts so far (`case N ANSWERS ERRORS`), what was found (`finding N WORDS`), and the counts at the end (`end N ..`).

use std::any::Any;
use std::backtrace::Backtrace;
use std::fs;
use std::io::{self, Write as _};
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use pointwise::Device;

use crate::case::{Case, Outcome};
use crate::random::Random;
use crate::{Arguments, Target};

/// The place and the message of the last panic.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

pub(crate) fn run(arguments: &Arguments, target: Target, seed: u64, from: u64) -> Result<()> {
    let device = match target {
        Target::Library | Target::Rope | Target::Fusion => Device::parse(&arguments.device)?,
        _ => Device::cpu(),
    };
    if device.is_cpu() && arguments.memory > 0 {
        limit_memory(arguments.memory << 20)?;
    }
    let repeats = arguments.case.is_some();
    panic::set_hook(Box::new(move |info| {
        if let Ok(mut last) = PANIC.lock() {
            *last = Some(info.to_string());
        }
        if repeats {
            eprintln!("{info}\n{}", Backtrace::capture());
        }
    }));
    let folder = Folder::new()?;
    let (mut answers, mut errors) = (0, 0);
    let (start, mut out) = (Instant::now(), io::stdout().lock());
    let mut number = from;
    while arguments.case.map_or(start.elapsed() < Duration::from_secs(arguments.seconds), |only| number == only) {
        writeln!(out, "case {number} {answers} {errors}")?;
        let mut case = Case {
            random: Random::of(seed, number),
            number,
            device,
            folder: folder.0.clone(),
            hang: arguments.hang,
            answers: 0,
            errors: 0,
        };
        let ran = panic::catch_unwind(AssertUnwindSafe(|| target.run(&mut case)));
        if let Err(words) = ran.unwrap_or_else(|payload| Err(panicked(payload.as_ref()))) {
            writeln!(out, "finding {number} {}", words.escape_debug())?;
        }
        answers += case.answers;
        errors += case.errors;
        number += 1;
    }
    writeln!(out, "end {number} {answers} {errors}")?;
    Ok(())
}

/// The words of a panic.
fn panicked(payload: &(dyn Any + Send)) -> String {
    let said = PANIC.lock().ok().and_then(|mut last| last.take());
    let text = payload.downcast_ref::<String>().cloned();
    format!("panic: {}", said.or(text).unwrap_or_else(|| "without words".to_owned()))
}

/// Limits the address space: what asks for more gets an error, or ends the process.
#[cfg(target_os = "linux")]
fn limit_memory(bytes: u64) -> Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};

    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    setrlimit(Resource::As, limit).context("cannot limit the address space")
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_: u64) -> Result<()> {
    Ok(())
}

/// A folder that goes away with the process, or that the parent removes.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder> {
        let path = folder_of(std::process::id());
        fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The folder of a worker.
pub(crate) fn folder_of(process: u32) -> PathBuf {
    std::env::temp_dir().join(format!("pointwise-fuzz-{process}"))
}

/// Empties a case's folder.
pub(crate) fn empty(case: &Case) -> Outcome {
    let emptied = fs::remove_dir_all(&case.folder).and_then(|()| fs::create_dir_all(&case.folder));
    emptied.map_err(|error| format!("the fuzzer's own folder {}: {error}", case.folder.display()))
}
