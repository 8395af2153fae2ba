//! The commands of `pointwise`: `tour`, `list`, `run`, `bench` and `doctor`.
//!
//! Exit codes: 0 done, 1 the op or the data was at fault, 2 the call was. What went wrong is one line on stderr.

mod args;
mod bench;
mod beside;
mod check;
mod doctor;
pub mod draft;
mod error;
mod file;
pub mod formulas;
mod list;
mod output;
mod progress;
mod random;
mod reference;
mod registry;
mod rope;
mod run;
mod samples;
mod special;
pub mod timing;
mod tour;
mod unfinished;
mod values;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};
use error::{Error, Result};

/// Runs the command that the program's arguments ask for.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return report_usage(&error),
    };
    finish(dispatch(&args.command))
}

/// The exit code of an outcome; says what went wrong.
fn finish(outcome: Result<()>) -> ExitCode {
    match outcome.or_else(ignore_closed_pipe) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(error.code())
        }
    }
}

fn dispatch(command: &Command) -> Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match command {
        Command::Tour { device } => tour::tour(&mut out, device),
        Command::List { json } => list::list(&mut out, *json),
        Command::Run(run) => run::run(&mut out, run),
        Command::Bench(bench) => bench::bench(&mut out, bench),
        Command::Doctor => doctor::doctor(&mut out),
    }?;
    out.flush().map_err(Error::Stdout)
}

/// A reader such as `head` that has seen enough is no fault.
fn ignore_closed_pipe(error: Error) -> Result<()> {
    match error {
        Error::Stdout(cause) if cause.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Err(other),
    }
}

/// What clap has to say: help and version as they are, anything else as one line.
fn report_usage(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let printed = error.print().and_then(|()| io::stdout().flush()).map_err(Error::Stdout);
            finish(printed)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(2)
        }
        _ => {
            complain(&error::usage_line(&error.to_string()));
            ExitCode::from(2)
        }
    }
}

/// One line on stderr. Nothing can be done where stderr is closed.
fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "error: {}", error::one_line(message));
}
