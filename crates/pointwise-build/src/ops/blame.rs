//! Which op an error of the device build is about.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::sources::Sources;
use crate::{
    Error,
    lint::{Rule, Violation},
};

/// The faults of ops, by their names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Blame {
    pub(crate) ops: BTreeMap<String, String>,
}

impl Blame {
    /// The ops that an error is about; the first one, if that cannot be told. `None` if the ops are not at fault. What the
    /// package's own compiler says, too, at its place, is left to that.
    pub(crate) fn of(error: &Error, sources: &Sources) -> Option<Blame> {
        let mut blame = Blame { ops: BTreeMap::new() };
        match error {
            Error::Compile { log, .. } => {
                let messages = messages(log);
                if messages.is_empty() {
                    // A dependency that cannot be had, for one.
                    return None;
                }
                let is_the_same = sources.cfgs().iter().all(|cfg| matches!(&**cfg, "feature" | "test" | "doc"));
                for message in messages.iter().filter(|message| !(is_the_same && is_plain(message))) {
                    let op = named(message, sources).or_else(|| first(sources))?;
                    blame.add(op, &in_the_package(message, sources));
                }
            }
            Error::Lint { violations, .. } => {
                let op = |violation: &Violation| {
                    let is_of = |op: &&super::sources::FoundOp| violation.op.as_ref() == Some(&op.name);
                    sources.ops().iter().find(is_of).map(|op| &*op.name)
                };
                // A violation outside of entries comes from one in an entry: it counts for the first such op.
                let other = violations.iter().find_map(op).or_else(|| first(sources))?;
                let mut by_op: BTreeMap<&str, Vec<_>> = BTreeMap::new();
                for violation in violations {
                    by_op.entry(op(violation).unwrap_or(other)).or_default().push(violation.clone());
                }
                for (op, violations) in by_op {
                    let Error::Lint { sm, .. } = error else { continue };
                    let causes: BTreeSet<&str> = violations.iter().filter_map(cause).collect();
                    causes.into_iter().for_each(|cause| blame.add(op, cause));
                    blame.add(op, &Error::Lint { sm: *sm, violations }.to_string());
                }
            }
            _ => return None,
        }
        Some(blame)
    }

    fn add(&mut self, op: &str, message: &str) {
        let text = self.ops.entry(op.to_owned()).or_insert_with(|| "not for the GPU:".to_owned());
        text.push('\n');
        text.push_str(message.trim_end());
    }
}

fn first(sources: &Sources) -> Option<&str> {
    sources.ops().first().map(|op| &*op.name)
}

/// True if a message is about types, loans or missing values. Both sides have it, if the file is the same on both. Messages
/// about other names and methods do not count: the package's side has more of them.
fn is_plain(message: &str) -> bool {
    const CODES: [&str; 33] = [
        "E0023", "E0026", "E0027", "E0040", "E0053", "E0061", "E0069", "E0070", "E0106", "E0107", "E0124", "E0191",
        "E0261", "E0277", "E0282", "E0283", "E0308", "E0369", "E0381", "E0382", "E0384", "E0499", "E0502", "E0505",
        "E0506", "E0507", "E0515", "E0600", "E0604", "E0605", "E0606", "E0608", "E0614",
    ];
    let Some((code, text)) = message.strip_prefix("error[").and_then(|rest| rest.split_once("]: ")) else {
        return false;
    };
    let text = text.lines().next().unwrap_or_default();
    CODES.contains(&code)
        || code == "E0425" && text.starts_with("cannot find value")
        || code == "E0599" && text.contains("type parameter")
}

/// Returns the likely cause of a violation in a formula, with advice.
fn cause(Violation { rule, text, .. }: &Violation) -> Option<&'static str> {
    const INDEX: &str = "an index may lie outside of its array, and a kernel cannot panic: choose by `if`, or work the \
                         value out";
    const DIVISOR: &str = "a whole number is divided by one that may be 0, and a kernel cannot panic: write \
                           `a.checked_div(n).unwrap_or(0)`, or divide numbers of the generic type";
    const PANIC: &str = "something may panic (`assert!`, `panic!`, `unwrap`, an overflow), which a kernel cannot: return \
                         a value, such as `T::constant(f64::NAN)`";
    const FUNCTION: &str = "a function that the formula calls stays a call: write `#[inline(always)]` before it, and no \
                            recursion";
    const TABLE: &str = "a table, or a `match` that became one, lies in memory: choose by `if`, or work the value out";
    const ARRAY: &str = "an array whose index is not known at compile time lies in memory, or the formula has more values \
                         at once than there are registers: choose by `if`, or split the op";
    let names = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    Some(match rule {
        Rule::Extern | Rule::Call | Rule::Function if names(&["panic_bounds_check", "slice_index"]) => INDEX,
        Rule::Extern | Rule::Call | Rule::Function
            if names(&["div_by_zero", "rem_by_zero", "div_overflow", "rem_overflow"]) =>
        {
            DIVISOR
        }
        Rule::Extern | Rule::Call | Rule::Function if names(&["panic", "unwrap_failed", "expect_failed"]) => PANIC,
        Rule::Trap => PANIC,
        Rule::Function => FUNCTION,
        Rule::Data if !names(&["alloc_", "anon."]) => TABLE,
        Rule::Local => ARRAY,
        _ => return None,
    })
}

/// The errors in what the compiler wrote, without those that only count others.
fn messages(log: &str) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    let mut is_error = false;
    for line in log.lines() {
        if line.starts_with("error") || line.starts_with("warning") {
            let counts = ["error: could not compile", "error: aborting due to"].iter().any(|it| line.starts_with(it));
            is_error = line.starts_with("error") && !counts;
            if is_error {
                messages.push(String::new());
            }
        } else if line.starts_with("For more information about") || line.starts_with("Some errors have detailed") {
            is_error = false;
        }
        if let Some(message) = messages.last_mut().filter(|_| is_error) {
            message.push_str(line);
            message.push('\n');
        }
    }
    // Both targets say the same.
    let mut once: Vec<String> = Vec::new();
    for message in messages {
        if !once.contains(&message) {
            once.push(message);
        }
    }
    once
}

/// The op at the first place in the package's files that a message names.
fn named<'a>(message: &str, sources: &'a Sources) -> Option<&'a str> {
    for line in message.lines() {
        let Some(place) = ["--> ", "::: "].iter().find_map(|arrow| line.trim_start().strip_prefix(arrow)) else {
            continue;
        };
        let mut parts = place.rsplitn(3, ':');
        let (_column, number, file) = (parts.next(), parts.next(), parts.next());
        let (Some(file), Some(number)) = (file, number.and_then(|number| number.trim().parse::<usize>().ok())) else {
            continue;
        };
        let here = sources.ops().iter().find(|op| {
            Path::new(file).ends_with(Path::new("src").join(&sources.files[op.file].place))
                && op.lines.contains(&number)
        });
        if let Some(op) = here {
            return Some(&op.name);
        }
    }
    None
}

/// A message with the package's files in the place of their copies.
fn in_the_package(message: &str, sources: &Sources) -> String {
    let mut text = message.to_owned();
    for file in &sources.files {
        let copy = format!(" src/{}:", file.place.display());
        text = text.replace(&copy, &format!(" {}:", file.path.display()));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use super::*;
    use crate::{Sm, lint::Rule};

    const TEXT: &str = "#[op(f32, exact)]\nfn one<T: Num>(x: T) -> T {\n    x\n}\n\n#[op(f32, exact)]\nfn two<T: Num>(x: T) \
                        -> T {\n    std::f()\n}\n";

    fn sources() -> (Sources, PathBuf) {
        read(TEXT)
    }

    fn read(text: &str) -> (Sources, PathBuf) {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("pointwise-blame-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("ops.rs");
        fs::write(&path, text).unwrap();
        let sources = Sources::read(&path).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        (sources, path)
    }

    fn compile(log: &str) -> Error {
        Error::Compile { kernel_crate: "k".into(), sm: Sm(80), status: "1".to_owned(), log: log.to_owned() }
    }

    #[test]
    fn a_message_is_shown_at_its_op() {
        let (sources, path) = sources();
        let log = "warning: x\n --> src/ops.rs:2:1\n\nerror[E0433]: no `std`\n --> src/ops.rs:8:5\n  |\n8 |     std::f()\n\n\
                   error: could not compile `k` (lib) due to 1 previous error\n";
        let blame = Blame::of(&compile(log), &sources).unwrap();
        let text =
            format!("not for the GPU:\nerror[E0433]: no `std`\n --> {}:8:5\n  |\n8 |     std::f()", path.display());
        assert_eq!(blame.ops.into_iter().collect::<Vec<_>>(), [("two".to_owned(), text)]);
    }

    #[test]
    fn what_the_package_says_is_not_said_twice() {
        let plain = "error[E0277]: cannot multiply `T` by a float\n --> src/ops.rs:3:5\n";
        let (sources, _) = sources();
        assert_eq!(Blame::of(&compile(plain), &sources), Some(Blame { ops: BTreeMap::new() }));
        let other = "error[E0599]: no method named `sin` found for type `f64`\n --> src/ops.rs:8:5\n";
        let blame = Blame::of(&compile(&format!("{plain}\n{other}")), &sources).unwrap();
        assert_eq!(blame.ops.keys().collect::<Vec<_>>(), ["two"]);
        assert!(!blame.ops["two"].contains("E0277"), "{blame:?}");
        // If the sides differ, the message may come from the device's side alone.
        let text = TEXT.replace("std::f()", "if cfg!(target_arch = \"nvptx64\") { 1 } else { x }");
        assert_eq!(Blame::of(&compile(plain), &read(&text).0).unwrap().ops.keys().collect::<Vec<_>>(), ["one"]);
    }

    #[test]
    fn the_cause_is_said_before_the_kernel_s_text() {
        let of = |rule, text: &str| {
            cause(&Violation { rule, entry: None, op: None, line: 1, text: text.into() }).unwrap_or_default()
        };
        assert!(of(Rule::Extern, ".extern .func _ZN4core9panicking18panic_bounds_check17h0E").starts_with("an index"));
        assert!(
            of(Rule::Extern, "_RNvNtNt4core9panicking11panic_const23panic_const_div_by_zero").contains("checked_div")
        );
        assert!(of(Rule::Call, "call _ZN4core6option13unwrap_failed17h0E").contains("panic"));
        assert!(of(Rule::Data, ".global .align 4 .b8 switch_table[16]").contains("`match`"));
        assert!(of(Rule::Generic, "ld.u32").is_empty());
    }

    #[test]
    fn a_message_without_a_place_is_shown_at_the_first_op() {
        let (sources, _) = sources();
        let blame = Blame::of(&compile("error: linking\n --> src/ops.rs:5:1\n"), &sources).unwrap();
        assert_eq!(blame.ops.keys().collect::<Vec<_>>(), ["one"]);
        assert_eq!(Blame::of(&compile("error: could not compile"), &sources), None);
        assert_eq!(Blame::of(&Error::SwitchedOff, &sources), None);
    }

    #[test]
    fn a_rule_that_a_kernel_breaks_is_shown_at_its_op() {
        let (sources, _) = sources();
        let violation = |entry: &str| Violation {
            rule: Rule::Trap,
            entry: Some(entry.into()),
            op: Some("two".into()),
            line: 1,
            text: "x".into(),
        };
        let of_the_module = Violation { rule: Rule::Trap, entry: None, op: None, line: 1, text: "y".into() };
        let violations =
            vec![of_the_module, violation("formula_two_f32_flat"), violation("formula_two_backward_f32_rows")];
        let blame = Blame::of(&Error::Lint { sm: Sm(80), violations }, &sources).unwrap();
        assert_eq!(blame.ops.keys().collect::<Vec<_>>(), ["two"]);
        assert!(blame.ops["two"].contains("formula_two_f32_flat"), "{blame:?}");
    }
}
