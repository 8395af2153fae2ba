//! The scripts of `benches/peers` where nothing is installed: each shows its help, and says in one line what it needs.
//! Without a Python 3 there is nothing to run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/peers")
}

/// Runs a script with Python's own modules alone; none where there is no Python.
fn run(script: &str, arguments: &[&str]) -> Option<Output> {
    // Nothing is written beside the sources.
    let mut python = Command::new("python3");
    python.args(["-S", "-B"]).arg(folder().join(script)).args(arguments);
    python.current_dir(env!("CARGO_TARGET_TMPDIR")).env_remove("PYTHONPATH").output().ok()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// With PyTorch, where this machine has it, the tests with tensors too.
#[test]
fn the_comparison_of_results() {
    let mut python = Command::new("python3");
    python.arg("-B").arg(folder().join("test_agree.py")).current_dir(env!("CARGO_TARGET_TMPDIR"));
    let Ok(output) = python.output() else { return };
    let words = text(&output.stderr);
    assert!(output.status.success() && words.contains("\nOK"), "{words}");
}

#[test]
fn every_script_has_help() {
    let mut count = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // Scripts without it are modules of the others.
        if !name.ends_with(".py") || !fs::read_to_string(&path).unwrap().contains("if __name__ == \"__main__\"") {
            continue;
        }
        let Some(output) = run(&name, &["--help"]) else { return };
        let (help, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success() && help.starts_with("usage: "), "{name}: {stderr}");
        count += 1;
    }
    assert!(count >= 12, "{count} scripts");
}

#[test]
fn what_a_script_needs_is_one_line() {
    let cases: &[(&str, &[&str], &str)] = &[
        ("chain.py", &[], "error: PyTorch is missing"),
        ("peers.py", &["--check"], "error: PyTorch is missing"),
        ("peers.py", &["--out", "peers.jsonl"], "error: PyTorch is missing"),
        ("error_curves.py", &["python3", "cpu"], "error: PyTorch is missing"),
        ("roofline.py", &["python3"], "error: PyTorch is missing"),
        ("rope_torch.py", &[], "error: PyTorch is missing"),
        ("rope_golden.py", &["."], "error: numpy is missing"),
        ("rope_parity.py", &["python3", "cpu"], "error: PyTorch is missing"),
        ("torch_accuracy.py", &["--device", "cpu"], "error: PyTorch is missing"),
        ("torch_calls.py", &[], "error: PyTorch is missing"),
        ("torch_cpu.py", &[], "error: PyTorch is missing"),
        ("torch_parity.py", &["python3", "cpu"], "error: PyTorch is missing"),
    ];
    for (script, arguments, words) in cases {
        let Some(output) = run(script, arguments) else { return };
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(1) && stderr.lines().count() == 1, "{script}: {stderr}");
        assert!(stderr.starts_with(words) && stderr.contains(" -m pip install "), "{script}: {stderr}");
    }
}

#[test]
fn arguments_that_make_no_sense_are_said() {
    let cases: &[(&str, &[&str], &str)] = &[
        ("torch_parity.py", &[], "the following arguments are required: pointwise"),
        ("torch_parity.py", &["no/pointwise"], "no program 'no/pointwise'"),
        ("doc_tables.py", &[], "the following arguments are required: joined, document"),
        ("doc_tables.py", &["nowhere.json", "x.md"], "error: cannot read nowhere.json"),
        ("cpu_table.py", &["nowhere", "nowhere.json"], "error: cannot read nowhere.json"),
        ("peers.py", &["--op", "("], "'(' is no regular expression"),
        ("peers.py", &["--workers", "0"], "'0' is no whole number above 0"),
        ("torch_cpu.py", &["--json", "no/where.json"], "cannot write 'no/where.json'"),
        ("torch_accuracy.py", &["--pairs", "2^-1"], "invalid count value: '2^-1'"),
    ];
    for (script, arguments, words) in cases {
        let Some(output) = run(script, arguments) else { return };
        let stderr = text(&output.stderr);
        assert!(!output.status.success() && stderr.contains(words), "{script} {arguments:?}: {stderr}");
        assert!(!stderr.contains("Traceback"), "{script} {arguments:?}: {stderr}");
    }
}
