//! Compiles a small crate of kernels. Without a compiler for GPU code these tests say so, and test nothing.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use pointwise_build::{
    Artifacts, Error, GENERATED, Kernels, Sm,
    lint::{Lint, Rule, Vectors},
    ptxas, toolchain,
};

const NAMES: [&str; 3] = ["double", "increment", "wait"];

/// Returns the fixture, with the target directories of the family's kernels. There `core`, which takes most of the
/// time, is compiled already, or once for all tests.
fn fixture() -> Kernels {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    Kernels::new(manifest.join("tests/kernels-fixture"))
        .target_dir(Path::new(env!("CARGO_TARGET_TMPDIR")).join("../ptx"))
        .targets([90])
}

/// Returns a lock to hold while the fixture is compiled: cargo writes one list of inputs for all its features.
fn alone() -> MutexGuard<'static, ()> {
    static COMPILES: Mutex<()> = Mutex::new(());
    COMPILES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn has_toolchain() -> bool {
    match toolchain::find() {
        Ok(_) => true,
        Err(error) => {
            println!("skipped: {error}");
            false
        }
    }
}

/// Returns both parts for two targets, compiled once for all tests; `None` without a compiler.
fn artifacts() -> Option<&'static Artifacts> {
    static ARTIFACTS: OnceLock<Option<Artifacts>> = OnceLock::new();
    ARTIFACTS
        .get_or_init(|| {
            let _alone = alone();
            let kernels = fixture().targets([90, 80, 90]).features([""; 0]).features(["more"]).expect_entries(NAMES);
            has_toolchain().then(|| kernels.compile().unwrap_or_else(|error| panic!("{error}")))
        })
        .as_ref()
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    folder
}

fn broken(kernels: &Kernels) -> Vec<(Option<String>, Rule)> {
    match kernels.compile() {
        Err(Error::Lint { violations, .. }) => violations.into_iter().map(|it| (it.entry, it.rule)).collect(),
        other => panic!("expected broken rules, got {other:?}"),
    }
}

#[test]
fn parts_are_merged_for_every_target() {
    let Some(artifacts) = artifacts() else { return };
    assert!(artifacts.note.starts_with("rustc "), "{}", artifacts.note);
    assert_eq!(artifacts.symbols().collect::<Vec<_>>(), NAMES);
    let versions: Vec<_> = artifacts.targets.iter().map(|target| (target.sm, target.version)).collect();
    assert_eq!(versions, [(Sm(80), (7, 0)), (Sm(90), (7, 8))]);
    for end in ["kernels-fixture/src/lib.rs", "kernels-fixture/Cargo.toml", "kernels-fixture/Cargo.lock"] {
        assert!(artifacts.inputs.iter().any(|input| input.ends_with(end)), "{end} in {:?}", artifacts.inputs);
    }
    assert_eq!(artifacts.target_for(Sm(89)).map(|target| target.sm), Some(Sm(80)));
    assert!(artifacts.target_for(Sm(75)).is_none());
}

#[test]
fn an_entry_is_a_module_with_what_it_needs() {
    let Some(artifacts) = artifacts() else { return };
    let target = &artifacts.targets[1];
    let wait = target.module(["wait"]);
    assert!(wait.starts_with(".version 7.8\n.target sm_90\n.address_size 64\n.shared"), "{wait}");
    assert!(wait.contains(".visible .entry wait(") && !wait.contains("//"), "{wait}");
    let double = target.module(["double"]);
    assert!(double.contains(".target sm_90\n") && !double.contains(".shared"), "{double}");
    let whole = target.whole();
    assert_eq!((whole.matches(".entry").count(), whole.matches("fixture_table[256]").count()), (3, 1));
    let module = pointwise_build::ptx::parse(&whole).unwrap();
    assert_eq!(module.entries.len(), 3);
    for entry in &module.entries {
        let first = entry.statements().find(|statement| !statement.text.starts_with('.')).map(|it| it.text);
        assert_eq!(first, Some("griddepcontrol.wait"), "{}", entry.text);
    }
    // For sm_80, which does not know the instruction, it is a comment.
    let older = artifacts.targets[0].whole();
    assert_eq!((older.matches("//griddepcontrol.wait;").count(), older.matches("griddepcontrol").count()), (3, 3));
}

#[test]
fn an_entry_that_an_older_target_has_the_same_is_that_one() {
    let Some(artifacts) = artifacts() else { return };
    let own = |target: usize| artifacts.targets[target].own().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!((own(0), own(1)), (NAMES.to_vec(), vec!["increment", "wait"]));
    let double = |target: usize| &artifacts.targets[target].modules["double"];
    assert_eq!((double(1), double(1).sm), (double(0), Sm(80)));
}

#[test]
fn what_is_written_holds_every_entry() {
    let Some(artifacts) = artifacts() else { return };
    let folder = scratch("written");
    artifacts.write(&folder).unwrap();
    let generated = std::fs::read_to_string(folder.join(GENERATED)).unwrap();
    assert!(generated.starts_with("(\n    \"rustc "), "{generated}");
    let list = std::fs::read_to_string(folder.join("pointwise_kernels.txt")).unwrap();
    assert_eq!(list, NAMES.join("\n").replace("double", "double 00000000000000ff"));
    let rows = artifacts.targets[1].modules.values().map(|module| module.row);
    assert_eq!(rows.collect::<Vec<_>>(), [Some((255, 0)), None, None]);
    for target in &artifacts.targets {
        let file = format!("{}.ptx.zst", target.sm);
        assert!(generated.contains(&format!("pointwise_files::include_bytes!({file:?})")), "{generated}");
        let bytes = zstd::decode_all(&std::fs::read(folder.join(file)).unwrap()[..]).unwrap();
        let (names, texts): (Vec<&str>, Vec<String>) =
            target.own().map(|(name, _)| (name, target.module([name]) + "\0")).unzip();
        assert_eq!(String::from_utf8(bytes).unwrap(), texts.concat());
        if names != NAMES {
            let file = format!("{}.txt", target.sm);
            assert!(generated.contains(&format!("pointwise_files::include_str!({file:?})")), "{generated}");
            assert_eq!(std::fs::read_to_string(folder.join(file)).unwrap(), names.join("\n"));
        }
    }
}

#[test]
fn kernels_assemble_where_ptxas_is_there() {
    let Some(artifacts) = artifacts() else { return };
    let ptxas = match ptxas::find() {
        Ok(ptxas) => ptxas,
        Err(error) => return println!("skipped: {error}"),
    };
    for sm in [80, 90, 100] {
        let figures = artifacts.assemble(&ptxas, Sm(sm)).unwrap();
        let names: Vec<_> = figures.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, NAMES);
        assert!(figures.iter().all(|entry| entry.registers > 0 && entry.code > 0), "{figures:?}");
        ptxas::deny_spills(&figures, Sm(sm)).unwrap();
    }
    assert!(matches!(artifacts.assemble(&ptxas, Sm(75)), Err(Error::Settings(_))));
    let refused = ptxas.assemble(".version 7.8\n.target sm_90\n.address_size 64\nnonsense\n", Sm(90)).unwrap_err();
    assert!(matches!(&refused, Error::Tool { log, .. } if log.contains("line 4")), "{refused}");
}

#[test]
fn broken_rules_stop_a_build() {
    if !has_toolchain() {
        return;
    }
    let _alone = alone();
    let found = broken(&fixture().features(["broken"]));
    assert!(found.contains(&(None, Rule::Extern)), "{found:?}");
    assert!(found.contains(&(Some("bounds".to_owned()), Rule::Call)), "{found:?}");
    assert!(found.contains(&(Some("spread".to_owned()), Rule::Local)), "{found:?}");
}

#[test]
fn expectations_and_promises_are_checked() {
    if !has_toolchain() {
        return;
    }
    let _alone = alone();
    let kernels = fixture();
    let name = |name: &str| Some(name.to_owned());
    let found = broken(&kernels.clone().expect_entries(["increment", "decrement"]));
    assert_eq!(found, [(name("decrement"), Rule::Missing), (name("wait"), Rule::Unexpected)]);
    let lint = Lint {
        vectors: |name| {
            if name == "increment" { Vectors::BOTH } else { Vectors::NONE }
        },
        ..Lint::default()
    };
    let found = broken(&kernels.clone().lint(lint));
    assert_eq!(found, [(name("increment"), Rule::NoVectorLoad), (name("increment"), Rule::NoVectorStore)]);
    let found = broken(&kernels.clone().features([""; 0]).features([""; 0]));
    assert_eq!(found, [(name("increment"), Rule::Twice), (name("wait"), Rule::Twice)]);

    // A crate that exports no kernel.
    let none = kernels.clone().features(["none"]).compile().unwrap_err();
    assert!(matches!(&none, Error::Output { why, .. } if why.contains("exports no kernel")), "{none}");

    // A compiler that refuses the crate: its words are in the message.
    let refused = kernels.features(["no-such-feature"]).compile().unwrap_err();
    assert!(matches!(&refused, Error::Compile { log, .. } if log.contains("no-such-feature")), "{refused}");
    assert!(!refused.is_absence());
}

#[test]
fn settings_that_make_no_sense() {
    let toolchain = toolchain::Toolchain {
        rustc: "/nowhere/rustc".into(),
        version: "rustc 1.96.0".to_owned(),
        kind: toolchain::ToolchainKind::Named,
        sysroot: "/nowhere".into(),
    };
    let error = |kernels: Kernels| kernels.compile_with(&toolchain).unwrap_err().to_string();
    assert!(error(Kernels::new("/nowhere/kernels")).contains("no kernel crate at /nowhere/kernels"));
    for package in [".", "src/..", env!("CARGO_MANIFEST_DIR")] {
        assert!(error(Kernels::new(package)).contains("kernels are a crate of their own"), "{package}");
    }
    assert!(error(fixture().targets([])).starts_with("no targets"));
    assert!(error(fixture().cubins([80])).contains("add 80 to the targets"));
}
