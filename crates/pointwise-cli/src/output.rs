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

/// A text in lines of at most `width` columns, where its words allow it. What is between backticks, a command to copy,
/// stays in one.
#[must_use]
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_open = false;
    for word in text.split_whitespace() {
        match words.last_mut().filter(|_| is_open) {
            Some(last) => *last += &format!(" {word}"),
            None => words.push(word.to_owned()),
        }
        is_open ^= word.matches('`').count() % 2 == 1;
    }
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => *line += &format!(" {word}"),
            _ => lines.push(word),
        }
    }
    lines
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_stay_whole() {
        assert_eq!(wrapped("say `a b c` and d", 7), ["say", "`a b c`", "and d"]);
        assert_eq!(wrapped("a-long-word b", 4), ["a-long-word", "b"]);
        assert!(wrapped("", 4).is_empty());
    }
}
