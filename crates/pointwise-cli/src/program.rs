//! Runs a program with a command line: an exit code, and an error as one line on stderr.

use std::io::{self, StdoutLock, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::error::{self, Error, Result};

/// Reads the program's arguments and does what they ask for. `work` gets the arguments and the standard output.
pub fn run<A: Parser>(work: impl FnOnce(&A, &mut io::BufWriter<StdoutLock<'static>>) -> Result<()>) -> ExitCode {
    let args = match A::try_parse() {
        Ok(args) => args,
        Err(error) => return report_usage(&error),
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let outcome = work(&args, &mut out).and_then(|()| out.flush().map_err(Error::Stdout));
    // The output comes before the error.
    drop(out);
    finish(outcome)
}

/// Returns the exit code of an outcome, and prints the error.
fn finish(outcome: Result<()>) -> ExitCode {
    match outcome.or_else(ignore_closed_pipe) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(error.code())
        }
    }
}

/// A reader such as `head` that has seen enough is no fault.
fn ignore_closed_pipe(error: Error) -> Result<()> {
    match error {
        Error::Stdout(cause) if cause.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Err(other),
    }
}

/// Prints a message of clap: help and version as they are, anything else as one line.
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
