//! The command's output in a terminal of 80 columns. `INSTA_UPDATE=always` writes the files of `snapshots/`. Text that
//! depends on the machine or the build is left out.

mod common;

use common::{Done, Folder};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_pointwise");

fn run(arguments: &[&str]) -> Done {
    let folder = Folder::new("snapshots");
    let output = folder.command(arguments).env("COLUMNS", "80").env_remove("POINTWISE_CPU").output().unwrap();
    Done::of(output, arguments)
}

#[track_caller]
fn assert_fits(text: &str) {
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "wider than 80 columns: {wide:#?}");
}

#[test]
fn help() {
    let text = run(&["--help"]).succeeds();
    assert_fits(&text);
    insta::assert_snapshot!(text);
    for command in ["tour", "list", "explain", "run", "doctor", "completions", "man"] {
        assert_fits(&run(&[command, "--help"]).succeeds());
    }
    insta::assert_snapshot!("help_run", run(&["run", "--help"]).succeeds());
}

/// Without what is said of the kernel's code: a build for the CPU alone has none.
fn explained(arguments: &[&str]) -> String {
    let text = run(arguments).succeeds();
    let line = |line: &str| match line.strip_prefix("kernel ") {
        Some(kernel) => {
            let name = kernel.trim_start().split([' ', ',']).next().unwrap_or_default();
            format!("kernel     {name} [code]\n")
        }
        None if line.ends_with("of machine code for sm_90") => "           [registers, machine code]\n".to_owned(),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[test]
fn explain() {
    insta::assert_snapshot!("explain_gelu", explained(&["explain", "gelu"]));
    insta::assert_snapshot!("explain_dropout", explained(&["explain", "dropout"]));
    insta::assert_snapshot!("explain_rope", explained(&["explain", "rope_yarn"]));
    insta::assert_snapshot!("explain_add", explained(&["explain", "add", "--dtype", "bf16", "--shape", "2048x4096"]));
}

#[test]
fn list() {
    let text = run(&["list"]).succeeds();
    let shown = ["op ", "exp(", "leaky_relu(", "gelu(", "add(", "where(", "dropout(", "rope_yarn(", "*: "];
    let lines = text.lines().filter(|line| shown.iter().any(|start| line.starts_with(start)));
    insta::assert_snapshot!(lines.map(|line| format!("{line}\n")).collect::<String>());
}

#[test]
fn faults() {
    let faults = [
        &["explain", "sliu"][..],
        &["run", "silu", "none.safetensors", "-o", "out.safetensors"],
        &["explain", "silu", "--dtype", "i32"],
        &["tour", "--device", "gpu"],
        &["completions", "cmd"],
        &["man", "rn"],
    ];
    let said = faults.map(|arguments| {
        let Done { code, stderr, .. } = run(arguments);
        format!("$ pointwise {}\n{stderr}exit code {code}\n", arguments.join(" "))
    });
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn doctor() {
    let text = run(&["doctor"]).succeeds();
    // Words that cannot be broken, such as paths, may be longer.
    let known =
        ["pointwise ", "cpu ", "kernels ", "cuda", "driver ", "emulator ", "compiler ", "ptxas ", "Works: ", "To do: "];
    for line in text.lines().filter(|line| !line.is_empty()) {
        assert!(line.starts_with(' ') || known.iter().any(|label| line.starts_with(label)), "{line:?} in {text}");
    }
    let first: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let place = |label: &str| first.iter().position(|word| *word == label).unwrap_or_else(|| panic!("{label}: {text}"));
    assert!(
        place("cpu") < place("kernels") && place("kernels") < place("compiler") && place("ptxas") < place("Works:")
    );
}

#[test]
fn tour() {
    let text = run(&["tour", "--device", "cpu"]).succeeds();
    assert_fits(&text);
    let notes = text.split("\n\n").nth(2).unwrap_or_else(|| panic!("{text}"));
    insta::assert_snapshot!(notes);
}

#[test]
fn completions_have_commands_and_ops() {
    for shell in ["bash", "zsh"] {
        let text = run(&["completions", shell]).succeeds();
        for word in ["doctor", "explain", "--strategy", "silu_and_mul", "rope_yarn", "dropout"] {
            assert!(text.contains(word), "{shell}: no {word}");
        }
    }
    for shell in ["elvish", "fish", "powershell"] {
        assert!(run(&["completions", shell]).succeeds().contains("doctor"), "{shell}");
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let text = run(&["man"]).succeeds();
    for word in [".TH pointwise 1", "pointwise\\-run(1)", "Exit codes"] {
        assert!(text.contains(word), "no {word} in {text}");
    }
    for command in ["tour", "list", "explain", "run", "doctor", "completions", "man"] {
        let page = run(&["man", command]).succeeds();
        assert!(page.contains(&format!(".TH pointwise-{command} 1")), "{page}");
    }
}
