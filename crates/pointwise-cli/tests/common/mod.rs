//! Runs the built program, the `PROGRAM` of the test that has this module, on files in a folder of the test's own.
#![allow(dead_code, reason = "every test program uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that goes away with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    /// The names of what lies in it, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The program, in this folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(crate::PROGRAM);
        command.current_dir(&self.0).args(arguments);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Done {
        Done::of(self.command(arguments).output().unwrap(), arguments)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    what: String,
}

impl Done {
    pub(crate) fn of(output: Output, arguments: &[&str]) -> Done {
        let code = output.status.code().unwrap_or_else(|| panic!("{arguments:?} was killed: {:?}", output.status));
        let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        Done { code, stdout, stderr, what: arguments.join(" ") }
    }

    #[track_caller]
    pub(crate) fn succeeds(self) -> String {
        assert_eq!(self.code, 0, "{}: {}{}", self.what, self.stdout, self.stderr);
        assert_eq!(self.stderr, "", "{}", self.what);
        self.stdout
    }

    /// Ends with this code and one line that has these words.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{}: {}{}", self.what, self.stdout, self.stderr);
        assert_eq!(self.stderr.lines().count(), 1, "{}: {}", self.what, self.stderr);
        assert!(self.stderr.starts_with("error: "), "{}: {}", self.what, self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "{}: no {word:?} in: {}", self.what, self.stderr);
        }
    }
}

/// A safetensors file of this header and these data.
pub(crate) fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

/// A file of the one tensor `x`.
pub(crate) fn x(dtype: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
    file(&format!(r#"{{"x":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[0,{}]}}}}"#, data.len()), data)
}

pub(crate) fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
