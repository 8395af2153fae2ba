//! A report of the tools that were found, for a person whose kernels are not built.

use std::fmt;

use crate::{
    Error, Toolchain,
    ptxas::{self, Ptxas},
    toolchain,
};

/// The tools found here.
#[derive(Debug)]
#[non_exhaustive]
pub struct Report {
    /// The compiler for device code, without which nothing is built.
    pub toolchain: Result<Toolchain, Error>,
    /// The assembler, which only checks and machine code need.
    pub ptxas: Result<Ptxas, Error>,
}

/// Looks for the tools.
#[must_use]
pub fn report() -> Report {
    Report { toolchain: toolchain::find(), ptxas: ptxas::find() }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.toolchain {
            Ok(toolchain) => writeln!(f, "device compiler: {toolchain}")?,
            Err(error) => writeln!(f, "device compiler: {error}")?,
        }
        match &self.ptxas {
            Ok(ptxas) => write!(f, "assembler (optional): {ptxas}"),
            Err(error) => write!(f, "assembler (optional): {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_both_tools_found_or_not() {
        let report = Report {
            toolchain: Err(Error::SwitchedOff),
            ptxas: Ok(Ptxas { path: "/opt/ptxas".into(), version: "release 13.0".to_owned() }),
        };
        assert_eq!(
            report.to_string(),
            "device compiler: POINTWISE_DEVICE_RUSTC=none: no GPU code is built\n\
             assembler (optional): ptxas release 13.0 (/opt/ptxas)"
        );
    }
}
