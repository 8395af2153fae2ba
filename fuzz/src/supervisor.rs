//! The process that watches a worker: starts it, reads what it reports, ends it when it hangs, starts it again behind a
//! case that ended it.

use std::fmt;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::{Arguments, Target, worker};

/// A run with so many findings has shown enough.
const MOST_FINDINGS: usize = 20;

/// The result of a target.
pub(crate) struct Report {
    target: String,
    cases: u64,
    answers: u64,
    errors: u64,
    seconds: f64,
    /// The most characters of a finding that are shown.
    shown: usize,
    pub(crate) findings: Vec<Finding>,
}

/// A finding.
pub(crate) struct Finding {
    words: String,
    /// The command that repeats it.
    repeat: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { target, cases, answers, errors, seconds, findings, .. } = self;
        write!(
            f,
            "{target}: {cases} cases in {seconds:.0} s, {answers} answers, {errors} typed errors, {} findings",
            findings.len()
        )?;
        for Finding { words, repeat } in findings {
            // Whoever repeats it sees all of them.
            let shown: String = words.chars().take(self.shown).collect();
            let words = if shown.len() < words.len() { shown + " .." } else { shown };
            write!(f, "\n  {words}\n    {repeat}")?;
        }
        Ok(())
    }
}

/// Runs a target for its time, or its one case.
pub(crate) fn watch(arguments: &Arguments, target: Target, seed: u64) -> Result<Report> {
    let start = Instant::now();
    let name = target.name();
    let shown = if arguments.case.is_some() { usize::MAX } else { 600 };
    let mut report =
        Report { target: name, cases: 0, answers: 0, errors: 0, seconds: 0.0, shown, findings: Vec::new() };
    let mut next = Some(arguments.case.unwrap_or(0));
    while let Some(from) = next {
        let left = arguments.seconds.saturating_sub(start.elapsed().as_secs());
        let done = report.findings.len() >= MOST_FINDINGS || (from > 0 && arguments.case.is_none() && left == 0);
        if done {
            break;
        }
        next = run_worker(&mut report, arguments, target, seed, (from, left))?;
        // One case is not followed by others.
        next = next.filter(|_| arguments.case.is_none());
    }
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}

/// Runs a worker to its end; the case to go on with if it was cut short.
fn run_worker(
    report: &mut Report,
    arguments: &Arguments,
    target: Target,
    seed: u64,
    (from, seconds): (u64, u64),
) -> Result<Option<u64>> {
    let mut child = start(arguments, target, seed, (from, seconds))?;
    let Some(output) = child.stdout.take() else { bail!("the worker has no standard output") };
    let (sender, receiver) = channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(std::result::Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let repeat = |case: u64| command_of(arguments, target, seed, case);
    let mut seen = Seen { case: None, answers: 0, errors: 0 };
    let (mut ended, mut hung) = (false, false);
    loop {
        match receiver.recv_timeout(Duration::from_secs(arguments.hang)) {
            Ok(line) => match line.split_once(' ') {
                Some(("case", rest)) => seen = Seen::of(rest)?,
                Some(("end", rest)) => {
                    seen = Seen::of(rest)?;
                    ended = true;
                }
                Some(("finding", rest)) => {
                    let (case, words) = rest.split_once(' ').unwrap_or((rest, ""));
                    let case = case.parse().with_context(|| format!("the worker's line {line:?}"))?;
                    report.findings.push(Finding { words: words.to_owned(), repeat: repeat(case) });
                    if report.findings.len() >= MOST_FINDINGS {
                        child.kill()?;
                        break;
                    }
                }
                // The library prints nothing: a line of its own is a finding.
                _ => report.findings.push(Finding {
                    words: format!("something printed {line:?}"),
                    repeat: repeat(seen.case.unwrap_or(from)),
                }),
            },
            Err(RecvTimeoutError::Timeout) => {
                hung = true;
                child.kill()?;
                break;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let process = child.id();
    let status = child.wait()?;
    let _ = reader.join();
    let _ = fs::remove_dir_all(worker::folder_of(process));
    report.answers += seen.answers;
    report.errors += seen.errors;
    let Some(case) = seen.case else { bail!("the worker did not begin ({status})") };
    if ended && status.success() {
        report.cases += case - from;
        return Ok(None);
    }
    report.cases += case + 1 - from;
    if report.findings.len() < MOST_FINDINGS {
        let words = if hung {
            format!("a hang: more than {} s", arguments.hang)
        } else {
            format!("the process ended: {status}")
        };
        report.findings.push(Finding { words, repeat: repeat(case) });
    }
    Ok(Some(case + 1))
}

/// The last case that a worker began, and its counts up to there.
struct Seen {
    case: Option<u64>,
    answers: u64,
    errors: u64,
}

impl Seen {
    fn of(text: &str) -> Result<Seen> {
        let numbers: Vec<u64> = text.split(' ').map_while(|word| word.parse().ok()).collect();
        let [case, answers, errors] = numbers[..] else { bail!("the worker's counts are {text:?}") };
        Ok(Seen { case: Some(case), answers, errors })
    }
}

fn start(arguments: &Arguments, target: Target, seed: u64, (from, seconds): (u64, u64)) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([&target.name(), "--seed", &seed.to_string(), "--seconds", &seconds.to_string()]);
    command.args(["--worker-from", &from.to_string(), "--device", &arguments.device]);
    command.args(["--memory", &arguments.memory.to_string(), "--hang", &arguments.hang.to_string()]);
    command.args(arguments.case.map(|case| format!("--case={case}")));
    if arguments.case.is_none() {
        // An abort says where it was when it is repeated.
        command.env("RUST_BACKTRACE", "0");
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.spawn().context("cannot start the worker")
}

/// The command that repeats a case.
fn command_of(arguments: &Arguments, target: Target, seed: u64, case: u64) -> String {
    let device = if arguments.device == "cpu" { String::new() } else { format!(" --device {}", arguments.device) };
    format!("cargo xtask fuzz {} --seed {seed} --case {case}{device}", target.name())
}
