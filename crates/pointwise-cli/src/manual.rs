//! `pointwise completions` and `pointwise man`: the command line for shells and for `man`.

use std::io::Write;

use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory as _};
use clap_complete::Shell;

use crate::args::Args;
use crate::error::{Error, Result, did_you_mean, nearest};
use crate::registry::Op;
use crate::rope;

/// Prints the completions of a shell: commands, options and the names of the ops.
///
/// # Errors
/// The errors of the standard output.
pub(crate) fn completions(out: &mut impl Write, shell: Shell) -> Result<()> {
    let names = || Op::all().map(|op| op.info().name).chain(rope::names()).collect();
    // Only for completions: a wrong name gets a better answer from the op's own check.
    let with_ops = |command: Command, names: Vec<&'static str>| {
        command.mut_args(|arg| match arg.get_id() == "op" {
            true => arg.value_parser(PossibleValuesParser::new(&names)),
            false => arg,
        })
    };
    let mut command = Args::command()
        .mut_subcommand("explain", |explain| with_ops(explain, names()))
        .mut_subcommand("run", |run| with_ops(run, names()));
    // clap_complete writes to memory alone: it panics where it cannot write.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, "pointwise", &mut text);
    out.write_all(&text).map_err(Error::Stdout)
}

/// Prints the manual page of the program, or of one of its commands.
///
/// # Errors
/// An unknown command; errors of the standard output.
pub(crate) fn man(out: &mut impl Write, command: Option<&str>) -> Result<()> {
    let mut program = Args::command();
    // Gives the commands the names of their pages.
    program.build();
    let page = match command {
        None => program,
        Some(name) => program.find_subcommand(name).cloned().ok_or_else(|| {
            let near = nearest(name, program.get_subcommands().map(Command::get_name));
            Error::Usage(format!("there is no command {name}{}", did_you_mean(&near)))
        })?,
    };
    clap_mangen::Man::new(page).render(out).map_err(Error::Stdout)
}
