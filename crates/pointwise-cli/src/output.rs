//! Writing to the standard output.

use std::io::{self, IsTerminal, Write};

use crate::error::{Error, Result};

/// Writes a line; [`Error::Stdout`] where it cannot.
pub(crate) fn line(out: &mut impl Write, text: impl AsRef<str>) -> Result<()> {
    writeln!(out, "{}", text.as_ref()).map_err(Error::Stdout)
}

/// Shows what was written so far.
pub(crate) fn flush(out: &mut impl Write) -> Result<()> {
    out.flush().map_err(Error::Stdout)
}

/// Colours for people: on a terminal, unless `NO_COLOR` is set.
#[derive(Clone, Copy)]
pub(crate) struct Paint(bool);

impl Paint {
    pub(crate) fn for_stdout() -> Paint {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Paint(io::stdout().is_terminal() && !refused)
    }

    /// No colours.
    #[cfg(test)]
    pub(crate) fn none() -> Paint {
        Paint(false)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.code("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.code("1;31", text)
    }

    pub(crate) fn strong(self, text: &str) -> String {
        self.code("1", text)
    }

    fn code(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
