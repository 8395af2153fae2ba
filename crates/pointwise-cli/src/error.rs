//! The errors of a command, and the exit code of each.

use std::io;

use pointwise::ErrorKind;

/// The result of a command.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The call makes no sense, whatever the data.
    #[error("{0}")]
    Usage(String),
    /// The data, the machine or a result is at fault.
    #[error("{0}")]
    Failed(String),
    /// The library refused.
    #[error("{}{source}", prefix(.what))]
    Op {
        /// The operand or the call; empty where the library's words suffice.
        what: String,
        /// The refusal.
        source: pointwise::Error,
    },
    /// The standard output cannot be written.
    #[error("cannot write to the standard output: {0}")]
    Stdout(io::Error),
}

impl Error {
    /// The exit code: 2 for faults of the call, 1 for all others.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            // The parameter stands on the command line, and that is where to mend it.
            Error::Op { source, .. } if matches!(source.kind(), ErrorKind::Parameter { .. }) => 2,
            Error::Failed(_) | Error::Op { .. } | Error::Stdout(_) => 1,
        }
    }

    /// For `map_err`: the library's refusal of `what`.
    pub(crate) fn of(what: impl Into<String>) -> impl FnOnce(pointwise::Error) -> Error {
        let what = what.into();
        move |source| Error::Op { what, source }
    }
}

impl From<pointwise::Error> for Error {
    fn from(source: pointwise::Error) -> Self {
        Error::Op { what: String::new(), source }
    }
}

fn prefix(what: &str) -> String {
    if what.is_empty() { String::new() } else { format!("{what}: ") }
}

/// `text` with control characters escaped, so that a file's name or a driver's log cannot break the line.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.trim_end().chars() {
        if c.is_control() { line.extend(c.escape_debug()) } else { line.push(c) }
    }
    line
}

/// clap's message in one line: what is wrong, and its tip where it has one.
pub(crate) fn usage_line(text: &str) -> String {
    let mut paragraphs = text.split("\n\n").map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    let first = paragraphs.next().unwrap_or_default();
    let mut line = first.strip_prefix("error: ").unwrap_or(&first).to_owned();
    for part in paragraphs {
        if let Some(tip) = part.strip_prefix("tip: ") {
            line += &format!(" ({tip})");
        }
    }
    line
}

/// The words of `known` that `word` may have been meant for, nearest first.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let word = word.to_lowercase();
    // A third of the letters may be wrong: more, and the guess helps nobody.
    let limit = (word.chars().count() / 3).max(1);
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|candidate| {
            let inside = word.len() >= 3 && (candidate.contains(&word) || word.contains(candidate));
            let distance = if inside { 1 } else { edit_distance(&word, candidate) };
            (distance <= limit).then_some((distance, candidate))
        })
        .collect();
    near.sort_unstable();
    near.into_iter().take(3).map(|(_, candidate)| candidate).collect()
}

/// `: did you mean a, b or c?`, or nothing.
pub(crate) fn did_you_mean(near: &[&str]) -> String {
    match near {
        [] => String::new(),
        [one] => format!(": did you mean {one}?"),
        [rest @ .., last] => format!(": did you mean {} or {last}?", rest.join(", ")),
    }
}

/// Letters inserted, left out, replaced, or swapped with their neighbour (optimal string alignment).
fn edit_distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let (mut before, mut above): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=b.len()).collect());
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let mut distance = (above[j] + usize::from(a[i] != b[j])).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                distance = distance.min(before[j - 1] + 1);
            }
            row.push(distance);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(edit_distance("silu", "silu"), 0);
        assert_eq!(edit_distance("sliu", "silu"), 1);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
    }

    #[test]
    fn guesses() {
        assert_eq!(nearest("SILU", ["relu", "silu", "gelu"])[0], "silu");
        assert_eq!(nearest("sigmod", ["sign", "sigmoid", "tanh"]), ["sigmoid"]);
        assert!(nearest("frobnicate", ["relu", "abs"]).is_empty());
        assert_eq!(did_you_mean(&["a", "b", "c"]), ": did you mean a, b or c?");
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(one_line("a\nb\u{1b}[0m\n"), "a\\nb\\u{1b}[0m");
        let text = "error: unexpected argument '--jsno' found\n\n  tip: a similar argument exists: '--json'\n\nUsage";
        assert_eq!(usage_line(text), "unexpected argument '--jsno' found (a similar argument exists: '--json')");
    }
}
