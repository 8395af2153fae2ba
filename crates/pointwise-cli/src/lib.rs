//! The commands of `pointwise`: `tour`, `list`, `explain`, `run`, `doctor`, `completions` and `man`.
//!
//! Exit codes: 0 done, 1 the op or the data was at fault, 2 the call was. An error is one line on stderr.
//!
//! Other programs of the project share the public modules with the command: they fail, print and write files in the
//! same way.

mod args;
mod beside;
pub mod device;
mod doctor;
pub mod draft;
pub mod error;
mod explain;
mod expression;
mod file;
mod list;
mod manual;
mod number;
pub mod output;
pub mod program;
pub mod progress;
mod registry;
mod request;
mod rope;
mod run;
mod samples;
mod settings;
mod table;
mod tour;
mod unfinished;
mod values;
mod verdict;

use std::io::Write;
use std::process::ExitCode;

use args::{Args, Command};
use error::Result;

/// Runs the command that the program's arguments ask for.
pub fn main() -> ExitCode {
    program::run(dispatch)
}

fn dispatch(args: &Args, out: &mut impl Write) -> Result<()> {
    match &args.command {
        Command::Tour { device } => tour::tour(out, device),
        Command::List { json } => list::list(out, *json),
        Command::Explain(explain) => explain::explain(out, explain),
        Command::Run(run) => run::run(out, run),
        Command::Doctor => doctor::doctor(out),
        Command::Completions { shell } => manual::completions(out, *shell),
        Command::Man { command } => manual::man(out, command.as_deref()),
    }
}
