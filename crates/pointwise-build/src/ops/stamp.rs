//! The stamp, which shows if anything has changed since the ops were compiled.

use std::{fs, path::PathBuf};

use super::sources::Hash;
use crate::{Error, artifacts};

/// A file that says what the kernels were made of: the settings, then the inputs, each with the hash of its bytes.
pub(crate) struct Stamp {
    path: PathBuf,
    settings: String,
}

impl Stamp {
    pub(crate) fn new(path: PathBuf, settings: String) -> Stamp {
        Stamp { path, settings: settings.replace('\n', " ") }
    }

    /// The inputs, if they and the settings are what they were.
    pub(crate) fn unchanged(&self) -> Option<Vec<PathBuf>> {
        let text = fs::read_to_string(&self.path).ok()?;
        let mut lines = text.lines();
        if lines.next() != Some(&*self.settings) {
            return None;
        }
        let mut inputs = Vec::new();
        for line in lines {
            let (hash, path) = line.split_once(' ')?;
            let path = PathBuf::from(path);
            if hash_of(&path)? != hash {
                return None;
            }
            inputs.push(path);
        }
        Some(inputs)
    }

    pub(crate) fn write(&self, inputs: &[PathBuf]) -> Result<(), Error> {
        let mut text = self.settings.clone();
        for input in inputs {
            let Some(hash) = hash_of(input) else { continue };
            text += &format!("\n{hash} {}", input.display());
        }
        artifacts::write_file(&self.path, text.as_bytes())
    }
}

fn hash_of(path: &PathBuf) -> Option<String> {
    let mut hash = Hash::new();
    hash.write(&fs::read(path).ok()?);
    Some(format!("{:016x}", hash.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_inputs_count() {
        let folder = std::env::temp_dir().join(format!("pointwise-stamp-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (input, path) = (folder.join("input.rs"), folder.join("stamp"));
        fs::write(&input, "a").unwrap();
        let stamp = Stamp::new(path.clone(), "one\ntwo".to_owned());
        assert_eq!(stamp.unchanged(), None);
        stamp.write(std::slice::from_ref(&input)).unwrap();
        assert_eq!(stamp.unchanged(), Some(vec![input.clone()]));
        assert_eq!(Stamp::new(path, "one".to_owned()).unchanged(), None);
        fs::write(&input, "b").unwrap();
        assert_eq!(stamp.unchanged(), None);
        fs::remove_file(&input).unwrap();
        assert_eq!(stamp.unchanged(), None);
        fs::remove_dir_all(folder).unwrap();
    }
}
