//! Writing to the standard output.

use std::io::{self, IsTerminal, Write};

use crate::error::{Error, Result};

/// Writes a line.
///
/// # Errors
/// [`Error::Stdout`].
pub fn line(out: &mut impl Write, text: impl AsRef<str>) -> Result<()> {
    writeln!(out, "{}", text.as_ref()).map_err(Error::Stdout)
}

/// Shows what was written so far.
///
/// # Errors
/// [`Error::Stdout`].
pub fn flush(out: &mut impl Write) -> Result<()> {
    out.flush().map_err(Error::Stdout)
}

/// Colours for people: on a terminal, unless `NO_COLOR` is set.
#[derive(Debug, Clone, Copy)]
pub struct Paint(bool);

impl Paint {
    /// Colours where the standard output is a terminal.
    #[must_use]
    pub fn for_stdout() -> Paint {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Paint(io::stdout().is_terminal() && !refused)
    }

    /// No colours.
    #[must_use]
    pub fn none() -> Paint {
        Paint(false)
    }

    /// Green.
    #[must_use]
    pub fn good(self, text: &str) -> String {
        self.code("32", text)
    }

    /// Red and bold.
    #[must_use]
    pub fn bad(self, text: &str) -> String {
        self.code("1;31", text)
    }

    /// Bold.
    #[must_use]
    pub fn strong(self, text: &str) -> String {
        self.code("1", text)
    }

    fn code(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
