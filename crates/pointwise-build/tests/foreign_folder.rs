//! The search for tools executes nothing in the current folder.
#![cfg(unix)]

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

const CHILD: &str = "POINTWISE_TEST_LOOKS_FOR_TOOLS";

/// Not a test by itself: the other test runs it in a folder of its choice.
#[test]
fn looks_for_tools() {
    if std::env::var_os(CHILD).is_some() {
        println!("{}", pointwise_build::doctor::report());
    }
}

/// Writes a program that appends its folder and its arguments to `log`.
fn spy(path: &Path, log: &Path) {
    fs::write(path, format!("#!/bin/sh\necho \"$(basename \"$0\") in $(pwd): $*\" >>'{}'\n", log.display())).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn no_file_of_the_current_folder_is_executed() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("foreign-folder");
    let _ = fs::remove_dir_all(&folder);
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let (log, marker) = (folder.join("log"), folder.join("executed"));
    fs::write(folder.join("nvidia.py"), format!("open({:?}, 'w')\n", marker.display().to_string())).unwrap();
    fs::write(folder.join("rust-toolchain.toml"), "[toolchain]\npath = \"toolchain\"\n").unwrap();
    let look = |path: &str| {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "looks_for_tools", "--nocapture"])
            .current_dir(&folder)
            .env(CHILD, "1")
            .env("PATH", path)
            .env_remove("POINTWISE_DEVICE_RUSTC")
            .env_remove("POINTWISE_PTXAS")
            .env_remove("POINTWISE_VENV")
            .env_remove("RUSTC")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };

    // With this machine's Python, if it has one.
    let path = std::env::var("PATH").unwrap();
    look(&path);
    assert!(!marker.exists(), "nvidia.py was executed");

    // With programs that log how they are run.
    for name in ["python3", "rustc", "ptxas"] {
        spy(&bin.join(name), &log);
    }
    look(&format!("{}:{path}", bin.display()));
    let log = fs::read_to_string(log).unwrap();
    for line in ["python3 in /: -I -c", "rustc in /: --version", "ptxas in /: --version"] {
        assert!(log.contains(line), "no `{line}` in\n{log}");
    }
    for line in log.lines().filter(|line| line.contains(" in ")) {
        assert!(line.contains(" in /: "), "{line}");
    }
}
