//! Plants faults in a target: the fuzzer finds and repeats each.

use std::process::{Command, Output};

fn fuzz(arguments: &[&str]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_fuzz")).args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    (output, text)
}

#[test]
fn every_kind_of_finding_is_found() {
    let (output, text) = fuzz(&["planted", "--seed", "1", "--seconds", "60", "--hang", "2"]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let limit = cfg!(target_os = "linux");
    let expected = [
        (1, "a wrong result"),
        (2, "a panic"),
        (3, "the process ended: signal: 6"),
        (4, "a hang: more than 2 s"),
        (5, if limit { "the process ended: signal: 6" } else { "" }),
        (6, "not one line of text"),
        (7, "the process ended: exit status: 7"),
    ];
    for (case, words) in expected {
        let repeat = format!("cargo xtask fuzz planted --seed 1 --case {case}");
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.iter().position(|line| line.trim() == repeat).unwrap_or_else(|| panic!("case {case}: {text}"));
        assert!(lines[at - 1].contains(words), "case {case}: {text}");
    }
}

#[test]
fn a_case_repeats_alone() {
    for (case, words) in [("1", "a wrong result"), ("2", "a panic")] {
        let (output, text) = fuzz(&["planted", "--seed", "1", "--case", case]);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("1 cases") && text.contains("1 findings") && text.contains(words), "{text}");
    }
    let (output, text) = fuzz(&["planted", "--seed", "1", "--case", "0"]);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("1 cases") && text.contains(" 0 findings"), "{text}");
}

/// A case depends only on its number and the seed.
#[test]
fn a_case_is_made_from_its_seed() {
    let counts = |seed: &str, case: &str| {
        let (_, text) = fuzz(&["library", "--seed", seed, "--case", case]);
        text.lines().nth(1).map(|line| line.split_once(" s, ").unwrap().1.to_owned()).unwrap()
    };
    let cases = ["0", "1", "2", "3", "4", "5", "6", "7"];
    let all = |seed| cases.map(|case| counts(seed, case));
    assert_eq!(all("1"), all("1"));
    assert_ne!(all("1"), all("2"));
}
