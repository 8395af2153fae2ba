//! The command line of `pointwise`.

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Parser, Subcommand};
use clap_complete::Shell;
use pointwise::{DType, Strategy};

use crate::device::device_name;
use crate::error::Error;

/// The files of `run`: the tensors that it reads and writes.
const RUN_HELP: &str = "\
The operands are the file's tensors of the names that `pointwise list` shows. \
Any operand of an op of several may be a number instead: --set b=2, which goes before a tensor b. \
The bounds of clamp and the value of masked_fill may be tensors, too. \
A tensor with the name of another parameter is refused, all others are ignored.

OUT gets the tensor `y` (rotary ops: `q` and `k`; gradients of several operands: each by its name), \
and is replaced only when it is complete. OUT may be IN.

Examples:
  pointwise run silu in.safetensors -o out.safetensors
  pointwise run leaky_relu in.safetensors -o out.safetensors \\
      --set negative_slope=0.1
  pointwise run gelu in.safetensors -o out.safetensors \\
      --set approximate=tanh --device cpu
  pointwise run div in.safetensors -o out.safetensors \\
      --set b=3 --set rounding_mode=floor
  pointwise run dropout in.safetensors -o out.safetensors \\
      --set p=0.1 --set seed=42
  pointwise run alibi -o out.safetensors \\
      --set num_heads=8 --set seq_len=128 --set dtype=bf16";

/// Elementwise GPU kernels written in Rust: see them run, use them on files.
#[derive(Debug, Parser)]
#[command(
    name = "pointwise",
    version,
    arg_required_else_help = true,
    infer_long_args = false,
    disable_help_subcommand = true,
    after_help = "Start here:\n  pointwise doctor      what works on this machine\n  pointwise tour        every \
                  op, checked\n  pointwise run silu in.safetensors -o out.safetensors\n\n\
                  Exit codes: 0 done, 1 the op or the data was at fault, 2 the call was."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run every op on every element type and check the results
    ///
    /// The results are compared with the formula at f64.
    #[command(
        after_help = "Examples:\n  pointwise tour\n  pointwise tour --device cuda:1\n  pointwise tour --device emulated"
    )]
    Tour {
        /// The device: auto (cuda if it is there, else the CPU), cpu, cuda, cuda:N, emulated (the kernels on the CPU,
        /// checked; slow) or emulated:80
        #[arg(long, default_value = "auto", value_parser = device_name)]
        device: String,
    },
    /// List the ops: arguments, parameters, element types, accuracy
    #[command(after_help = "Examples:\n  pointwise list\n  pointwise list --json | jq -r '.[].name'")]
    List {
        /// Print a JSON array of objects, one an op
        #[arg(long)]
        json: bool,
    },
    /// Say what an op computes, how accurately, and by which kernel
    #[command(
        after_help = "Examples:\n  pointwise explain silu\n  pointwise explain add --dtype bf16 --shape 2048x4096\n  \
                      pointwise explain gelu --strategy direct"
    )]
    Explain(Explain),
    /// Run one op on tensors of a safetensors file
    #[command(after_help = RUN_HELP)]
    Run(Run),
    /// Say what works on this machine, and how to mend what does not
    Doctor,
    /// Print what a shell needs to complete this command's words
    #[command(
        after_help = "Examples:\n  pointwise completions bash \\\n      > ~/.local/share/bash-completion/completions/pointwise\n  \
                      pointwise completions fish > ~/.config/fish/completions/pointwise.fish\n  \
                      pointwise completions zsh > ~/.zfunc/_pointwise"
    )]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page of this command, or of one of its commands
    #[command(after_help = "Examples:\n  pointwise man > ~/.local/share/man/man1/pointwise.1\n  \
                      pointwise man run > ~/.local/share/man/man1/pointwise-run.1")]
    Man {
        /// A command, such as run
        #[arg(value_name = "COMMAND")]
        command: Option<String>,
    },
}

/// The arguments of `explain`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Explain {
    /// The op, by PyTorch's name; `pointwise list` has them all
    #[arg(required_unless_present = "expr")]
    pub(crate) op: Option<String>,
    /// An expression instead of an op, such as "residual + gelu(x + b) * gate": prints the plan and the PTX of its kernel
    #[arg(long, conflicts_with = "op")]
    pub(crate) expr: Option<String>,
    /// The element type of the call; the op's first one if it is left out
    #[arg(long, value_name = "T")]
    pub(crate) dtype: Option<DType>,
    /// The shape of all tensors of the call
    #[arg(long, value_name = "AxB", default_value = "1024x4096", value_parser = shape)]
    pub(crate) shape: std::vec::Vec<usize>,
    /// How a CUDA kernel goes about it: auto, direct, explicit_parallel, register_copy or table
    #[arg(long, default_value = "auto", value_parser = strategy)]
    pub(crate) strategy: Strategy,
}

impl Explain {
    /// The op.
    pub(crate) fn op(&self) -> &str {
        self.op.as_deref().unwrap_or_default()
    }
}

impl Run {
    /// The op; with an expression the file to read, which is the first argument then.
    pub(crate) fn op(&self) -> &str {
        self.op.as_deref().unwrap_or_default()
    }

    /// The file to read.
    ///
    /// # Errors
    /// None was named.
    pub(crate) fn input(&self) -> Result<&Path, Error> {
        let missing = || {
            Error::Usage(format!("the following required arguments were not provided: <IN>, which {} reads", self.op()))
        };
        self.input.as_deref().ok_or_else(missing)
    }
}

/// The most elements of a call that is explained: tensors of so many are made.
const MOST_ELEMENTS: usize = 1 << 30;

fn shape(text: &str) -> Result<Vec<usize>, String> {
    let sizes: Option<Vec<usize>> = text.split('x').map(|size| size.trim().parse().ok()).collect();
    let sizes = sizes.ok_or("a shape is sizes with x between them, such as 1024x4096")?;
    match sizes.iter().try_fold(1_usize, |product, &size| product.checked_mul(size)) {
        Some(elements) if (1..=MOST_ELEMENTS).contains(&elements) => Ok(sizes),
        _ => Err(format!("a shape has 1 to {MOST_ELEMENTS} elements")),
    }
}

/// The arguments of `run`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Run {
    /// The op, by PyTorch's name; `pointwise list` has them all. With --expr there is none, and IN comes first
    #[arg(required = true)]
    op: Option<String>,
    /// An expression instead of an op, such as "silu(gate) * up": tensors by their names in IN, the result `y`
    #[arg(long)]
    pub(crate) expr: Option<String>,
    /// The safetensors file to read; position encodings (alibi, sinusoidal) take none
    #[arg(value_name = "IN")]
    pub(crate) input: Option<PathBuf>,
    /// The safetensors file to write
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// The device: auto (cuda if it is there, else the CPU), cpu, cuda, cuda:N, emulated (the kernels on the CPU,
    /// checked; slow) or emulated:80
    #[arg(long, default_value = "auto", value_parser = device_name)]
    pub(crate) device: String,
    /// How a CUDA kernel goes about it: auto, direct, explicit_parallel, register_copy or table
    #[arg(long, default_value = "auto", value_parser = strategy)]
    pub(crate) strategy: Strategy,
    /// A parameter by PyTorch's name, such as alpha=0.5, or an operand; may be given again for another
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,
}

fn strategy(name: &str) -> Result<Strategy, String> {
    Strategy::from_name(name).ok_or_else(|| {
        let names: Vec<_> = Strategy::ALL.iter().map(|strategy| strategy.name()).collect();
        format!("a strategy is auto, {}", names.join(", "))
    })
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("a setting is NAME=VALUE, such as alpha=0.5".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }
}
