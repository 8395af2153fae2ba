//! Files that users name: what is no regular file is refused, and never waited for.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use pointwise::rope::{RopeConfig, RopeError};
use pointwise::tuner::Tuner;

/// A pipe that nobody writes to.
struct Pipe(PathBuf);

impl Pipe {
    fn new(name: &str) -> Pipe {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        Pipe(path)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The outcome of a call that must end.
fn within<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(call()));
    receiver.recv_timeout(Duration::from_secs(20)).expect("it waits")
}

#[test]
fn a_tuner_does_not_wait_for_a_pipe() {
    let pipe = Pipe::new("tuner");
    for path in [pipe.0.clone(), PathBuf::from("/dev/zero")] {
        let warnings = within(move || Tuner::load_from(path).warnings().to_vec());
        assert!(warnings.iter().any(|warning| warning.contains("not a regular file")), "{warnings:?}");
    }
}

#[test]
fn a_warning_is_one_line_whatever_the_files_name() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tuner\n{}", std::process::id()));
    std::fs::write(&path, "{").unwrap();
    let warnings = Tuner::load_from(&path).warnings().to_vec();
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(&warnings[..], [one] if one.contains("damaged") && !one.contains('\n')), "{warnings:?}");
}

#[test]
fn a_configuration_is_a_regular_file() {
    let pipe = Pipe::new("config");
    for path in [pipe.0.clone(), PathBuf::from("/dev/zero"), PathBuf::from("/")] {
        let message = match within(move || RopeConfig::from_path(path)) {
            Err(RopeError::Io { source, .. }) => source.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(message.contains("not a regular file") || message.contains("directory"), "{message}");
    }
}
