//! The `pointwise` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    pointwise_cli::main()
}
