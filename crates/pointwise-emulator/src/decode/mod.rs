//! Decodes PTX text to programs: every instruction once, before anything runs.
//!
//! `items` cuts a body into statements, `registers` gives registers and numbers their slots, `entry` walks the
//! statements and hands each instruction to the decoder of its family: `integer`, `float`, `convert`, `compare`,
//! `moves`, `memory`, `control`.

mod compare;
mod control;
mod convert;
mod entry;
mod float;
mod integer;
mod items;
mod memory;
mod moves;
mod opcode;
mod registers;
mod types;

use std::sync::Arc;

use pointwise_ptx::Kind;

use crate::program::{Parameter, Program};

pub(crate) use registers::{PARAMETER_BASE, SHARED_BASE, SHARED_WINDOW};

/// A PTX text, ready to run.
#[derive(Clone, Debug)]
pub struct Module {
    kernels: Vec<Kernel>,
}

/// A kernel of a [`Module`]. Clones share it.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub(crate) program: Arc<Program>,
}

/// The reason why a PTX text cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The emulator cannot take the text apart as PTX.
    #[error("line {line} of the PTX: {why}")]
    Text {
        /// Line number, from 1.
        line: usize,
        /// The mistake there.
        why: String,
    },
    /// The emulator does not know an instruction, or a form of it.
    #[error("kernel `{kernel}`, line {line} of the PTX: `{text}`: {why}")]
    Instruction {
        /// The entry's name.
        kernel: String,
        /// Line number, from 1.
        line: usize,
        /// The instruction or directive.
        text: String,
        /// The part that is not understood.
        why: String,
    },
}

impl Module {
    /// Decodes all kernels of a PTX text. Ignores NUL bytes at its end.
    ///
    /// # Errors
    /// Fails if the text is no PTX, or has an instruction that the emulator does not know.
    pub fn parse(ptx: &str) -> Result<Module, LoadError> {
        let ptx = ptx.trim_end_matches('\0');
        let module = pointwise_ptx::parse(ptx).map_err(|error| LoadError::Text { line: error.line, why: error.why })?;
        for declaration in &module.declarations {
            let why = match declaration.kind {
                Kind::Shared => continue,
                Kind::Data => "the emulator has no variables in global or constant memory",
                Kind::Extern | Kind::Function => "the emulator calls no functions",
                Kind::Other => "the emulator does not know this declaration",
            };
            let first = declaration.text.lines().next().unwrap_or("");
            return Err(LoadError::Text { line: declaration.line, why: format!("`{first}`: {why}") });
        }
        let shared: Vec<_> =
            module.declarations.iter().map(|declaration| (declaration.text, declaration.line)).collect();
        let kernels = module
            .entries
            .iter()
            .map(|entry| Ok(Kernel { program: Arc::new(entry::decode(entry, &shared)?) }))
            .collect::<Result<_, _>>()?;
        Ok(Module { kernels })
    }

    /// Returns the kernel with a name.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<Kernel> {
        self.kernels.iter().find(|kernel| kernel.name() == name).cloned()
    }

    /// Returns all kernels, in the order of the text.
    #[must_use]
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }
}

impl Kernel {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.program.name
    }

    /// Its parameters, in order.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.program.parameters
    }

    /// Returns the bytes of arguments that it takes.
    #[must_use]
    pub fn parameter_bytes(&self) -> usize {
        self.program.parameter_bytes
    }

    /// Returns the number of its instructions.
    #[must_use]
    pub fn instructions(&self) -> usize {
        self.program.code.len()
    }
}
