//! Tests `Kernels::build` in a build script: this program runs itself as one.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use pointwise_build::{GENERATED, Kernels};

const FIXTURE: &str = "POINTWISE_TEST_KERNELS";

/// Not a test by itself: the build script that the other tests run.
#[test]
fn build_script() {
    if let Some(kernels) = std::env::var_os(FIXTURE) {
        // In these directories `core` is compiled already, for the family's kernels or for other tests.
        Kernels::new(PathBuf::from(kernels)).target_dir(Path::new(env!("CARGO_TARGET_TMPDIR")).join("../ptx")).build();
    }
}

struct Package(PathBuf);

impl Package {
    fn new(name: &str) -> Package {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("package-{name}"));
        fs::create_dir_all(&folder).unwrap();
        for left in ["prebuilt", "kernels", "out"] {
            let _ = fs::remove_dir_all(folder.join(left));
        }
        fs::create_dir(folder.join("out")).unwrap();
        Package(folder)
    }

    /// Runs the script. Returns true if it succeeded, its words to cargo, and its words to people.
    fn build(&self, kernels: &str, rustc: &str) -> (bool, String, String) {
        self.build_with(kernels, rustc, "")
    }

    /// [`Package::build`] with a value for `POINTWISE_CUBINS`.
    fn build_with(&self, kernels: &str, rustc: &str, cubins: &str) -> (bool, String, String) {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "build_script", "--nocapture"])
            .env(FIXTURE, kernels)
            .env("OUT_DIR", self.0.join("out"))
            .env("CARGO_MANIFEST_DIR", &self.0)
            .env("POINTWISE_DEVICE_RUSTC", rustc)
            .env("POINTWISE_CUBINS", cubins)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    }

    fn generated(&self) -> String {
        fs::read_to_string(self.0.join("out").join(GENERATED)).unwrap()
    }
}

#[test]
fn without_a_compiler_the_kernels_are_empty() {
    let package = Package::new("empty");
    let (success, out, _) = package.build("kernels", "none");
    assert!(success);
    assert!(out.contains("cargo::warning=built without GPU kernels: POINTWISE_DEVICE_RUSTC=none"), "{out}");
    // The variables for the compiler, and for the assembler only if it is needed. The `PATH` is not among them.
    let asked = |out: &str, variable: &str| out.contains(&format!("cargo::rerun-if-env-changed={variable}\n"));
    let assemblers = ["POINTWISE_PTXAS", "POINTWISE_VENV", "CUDA_HOME", "CUDA_PATH"];
    assert!(["POINTWISE_DEVICE_RUSTC", "POINTWISE_CUBINS"].iter().all(|name| asked(&out, name)), "{out}");
    assert!(!assemblers.iter().any(|name| asked(&out, name)), "{out}");
    let (_, out, _) = package.build_with("kernels", "none", "90");
    assert!(assemblers.iter().all(|name| asked(&out, name)), "{out}");
    let none = "(\"POINTWISE_DEVICE_RUSTC=none: no GPU code is built\", \"\", &[])\n";
    assert_eq!(package.generated(), none);
}

#[test]
fn a_compiler_named_wrongly_stops_the_build() {
    let package = Package::new("named");
    let (success, _, error) = package.build("kernels", "/nowhere/rustc");
    assert!(!success);
    assert!(error.contains("error: POINTWISE_DEVICE_RUSTC=/nowhere/rustc: cannot be run"), "{error}");
    assert!(!error.contains("panicked"), "{error}");
}

#[test]
fn prebuilt_kernels_need_no_compiler() {
    let package = Package::new("prebuilt");
    let prebuilt = package.0.join("prebuilt");
    fs::create_dir(&prebuilt).unwrap();
    fs::write(prebuilt.join(GENERATED), "(..)").unwrap();
    fs::write(prebuilt.join("sm_80.ptx.zst"), [1, 2, 3]).unwrap();
    let (success, out, _) = package.build("kernels", "/nowhere/rustc");
    assert!(success);
    assert!(out.contains(&format!("cargo::rerun-if-changed={}\n", prebuilt.display())), "{out}");
    assert!(!out.contains("cargo::warning"), "{out}");
    assert_eq!(package.generated(), "(..)");
    assert_eq!(fs::read(package.0.join("out/sm_80.ptx.zst")).unwrap(), [1, 2, 3]);

    // If the sources of the kernels are there, too, changes to them have no effect.
    fs::create_dir(package.0.join("kernels")).unwrap();
    fs::write(package.0.join("kernels/Cargo.toml"), "").unwrap();
    let (success, out, _) = package.build("kernels", "/nowhere/rustc");
    assert!(success && out.contains("cargo::warning=embedding the kernels in "), "{out}");
    // The kernels are embedded as they are, which may not be what is asked for.
    let (success, out, _) = package.build_with("kernels", "", "90");
    assert!(success && out.contains("cargo::warning=POINTWISE_CUBINS makes no machine code here"), "{out}");
    let (success, _, _) = package.build("kernels", "none");
    assert!(success && package.generated().ends_with(", \"\", &[])\n"), "{}", package.generated());
}

#[test]
fn with_a_compiler_cargo_is_told_every_input() {
    let toolchain = match pointwise_build::toolchain::find() {
        Ok(toolchain) => toolchain,
        Err(error) => return println!("skipped: {error}"),
    };
    let package = Package::new("compiled");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels-fixture");
    let rustc = toolchain.rustc.to_str().unwrap();
    let (success, out, error) = package.build(fixture.to_str().unwrap(), rustc);
    assert!(success, "{error}");
    for input in ["src/lib.rs", "Cargo.toml", "Cargo.lock"] {
        assert!(out.contains(&format!("cargo::rerun-if-changed={}\n", fixture.join(input).display())), "{out}");
    }
    let generated = package.generated();
    for part in ["(80, (7, 0), \"*\", pointwise_files::include_bytes!(\"sm_80.ptx.zst\")", "(90, (7, 8), "] {
        assert!(generated.contains(part), "{generated}");
    }
    assert!(package.0.join("out/sm_90.ptx.zst").is_file());
}

/// `cargo build --locked` writes no lock file, not even for a kernel crate in a workspace of its own.
#[test]
#[cfg(target_os = "linux")]
fn a_locked_build_writes_no_lock_file() {
    let toolchain = match pointwise_build::toolchain::find() {
        Ok(toolchain) => toolchain,
        Err(error) => return println!("skipped: {error}"),
    };
    let package = Package::new("locked");
    let folder = package.0.join("user");
    let _ = fs::remove_dir_all(&folder);
    let write = |path: &str, text: &str| {
        fs::create_dir_all(folder.join(path).parent().unwrap()).unwrap();
        fs::write(folder.join(path), text).unwrap();
    };
    let manifest =
        |name: &str| format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n");
    // Its build script is this program, as a child of the outer cargo.
    let script = "fn main() {\n    use std::os::unix::process::CommandExt as _;\n    \
         panic!(\"{}\", std::process::Command::new(PROGRAM)\
         .args([\"--exact\", \"build_script\", \"--nocapture\"]).exec());\n}\n"
        .replace("PROGRAM", &format!("{:?}", std::env::current_exe().unwrap()));
    write("Cargo.toml", &manifest("user"));
    write("build.rs", &script);
    write("src/lib.rs", "");
    write("kernels/Cargo.toml", &manifest("kernels"));
    write("kernels/src/lib.rs", "#![no_std]\n");
    let build = |limit: &[&str]| {
        Command::new(env!("CARGO"))
            .arg("build")
            .args(limit)
            .arg("--target-dir")
            .arg(package.0.join("out/user-target"))
            .current_dir(&folder)
            .env(FIXTURE, "kernels")
            .env("POINTWISE_DEVICE_RUSTC", &toolchain.rustc)
            .output()
            .unwrap()
    };
    fs::write(folder.join("Cargo.lock"), "version = 4\n\n[[package]]\nname = \"user\"\nversion = \"0.1.0\"\n").unwrap();
    let locked = build(&["--locked"]);
    let words = String::from_utf8_lossy(&locked.stderr).into_owned();
    assert!(!locked.status.success() && words.contains("--locked"), "{words}");
    assert!(!folder.join("kernels/Cargo.lock").exists(), "the lock file was written");
    let free = build(&[]);
    // The crate has no kernel. This error comes later than the lock file.
    let words = String::from_utf8_lossy(&free.stderr).into_owned();
    assert!(words.contains("it exports no kernel"), "{words}");
    assert!(folder.join("kernels/Cargo.lock").is_file());
}
