//! One case: its random numbers, its device, and its counts.

use std::fmt::{Debug, Display};
use std::path::PathBuf;

use pointwise::Device;

use crate::random::Random;

/// The outcome of a case: a finding in words.
pub(crate) type Outcome = Result<(), String>;

/// A case that runs.
pub(crate) struct Case {
    pub(crate) random: Random,
    pub(crate) number: u64,
    pub(crate) device: Device,
    /// A folder of its own, empty when the case begins, for targets that need files.
    pub(crate) folder: PathBuf,
    pub(crate) hang: u64,
    /// Calls that gave a result.
    pub(crate) answers: u64,
    /// Calls that were refused by a typed error.
    pub(crate) errors: u64,
}

impl Case {
    /// Counts a call's result; a typed error, whose words are checked, gives `None`.
    pub(crate) fn outcome<T, E: Display + Debug>(&mut self, result: Result<T, E>) -> Result<Option<T>, String> {
        match result {
            Ok(answer) => {
                self.answers += 1;
                Ok(Some(answer))
            }
            Err(error) => {
                self.errors += 1;
                let (words, _) = (error.to_string(), format!("{error:?}"));
                if words.trim().is_empty() || words.chars().any(char::is_control) {
                    return Err(format!("an error is not one line of text: {words:?}"));
                }
                Ok(None)
            }
        }
    }

    /// [`Case::outcome`], where the result itself does not matter.
    pub(crate) fn any<T, E: Display + Debug>(&mut self, result: Result<T, E>) -> Outcome {
        self.outcome(result).map(drop)
    }
}

/// The result of a call that must succeed.
pub(crate) fn must<T, E: Display>(what: &str, result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| format!("{what}: {error}"))
}
