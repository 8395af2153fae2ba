//! Running programs.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Child, Command};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| here.clone(), PathBuf::from)
}

/// The cargo that runs this program.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Runs a command to its end, showing it first; anything but success is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", line(command));
    let status = command.status().with_context(|| format!("cannot run {}", line(command)))?;
    if !status.success() {
        bail!("{} failed ({status})", line(command));
    }
    Ok(())
}

/// A program that runs beside others, killed if it is dropped before its end.
pub(crate) struct Background {
    pub(crate) child: Child,
    line: String,
}

impl Background {
    /// Starts a command, showing it.
    pub(crate) fn start(command: &mut Command) -> Result<Background> {
        let line = line(command);
        println!("$ {line} &");
        let child = command.spawn().with_context(|| format!("cannot run {line}"))?;
        Ok(Background { child, line })
    }

    /// Waits for its end; anything but success is an error.
    pub(crate) fn end(mut self) -> Result<()> {
        let status = self.child.wait().with_context(|| format!("cannot wait for {}", self.line))?;
        if !status.success() {
            bail!("{} failed ({status})", self.line);
        }
        Ok(())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // If it has ended there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds the tests of a name in all packages, and the libraries and programs that they need. Returns cargo's messages.
///
/// It uses the features of the whole workspace, tests included, which `cargo test --workspace` has compiled. For one
/// package, or without tests, cargo would compile `pointwise` again.
pub(crate) fn build_tests(name: &str) -> Result<String> {
    let arguments = ["test", "--workspace", "--no-run", "--test", name, "--message-format=json-render-diagnostics"];
    output(cargo().args(arguments))
}

/// The file with an extension that cargo's messages name for a library, tests of it aside.
pub(crate) fn artifact(messages: &str, library: &str, extension: &str) -> Result<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let of_library = messages.filter(|of| of["target"]["name"] == library && of["profile"]["test"] == false);
    let files = of_library.filter_map(|of| of["filenames"].as_array().cloned()).flatten();
    let mut paths = files.filter_map(|file| file.as_str().map(PathBuf::from));
    paths
        .find(|path| path.extension().is_some_and(|of| of == extension))
        .with_context(|| format!("cargo named no {library}.{extension} among what it built"))
}

/// Returns the output of a command, if it succeeds.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {}", line(command)))?;
    if !output.status.success() {
        bail!("{} failed ({}): {}", line(command), output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
