//! Tests `ops` in a build script: this program runs itself as one.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use proc_macro2::{TokenStream, TokenTree};

const PACKAGE: &str = "POINTWISE_TEST_OPS";

/// Not a test by itself: the build script that the other tests run.
#[test]
fn build_script() {
    if std::env::var_os(PACKAGE).is_some() {
        // In these directories `core` is compiled already, for the family's kernels or for other tests.
        pointwise_build::ops("src/ops.rs")
            .targets([80])
            .target_dir(Path::new(env!("CARGO_TARGET_TMPDIR")).join("../ptx"))
            .build();
        println!("{TIME}{}", processor_time());
        let second = pointwise_build::ops("src/more.rs").try_build();
        println!("second: {}", second.unwrap_err());
    }
}

/// The beginning of the line with the script's time. The tests read that line, and cargo ignores it.
const TIME: &str = "processor time: ";

/// The time of the processor that the programs took which this one has started and which have ended, in hundredths of a second;
/// 0 where the system does not say.
fn processor_time() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may have any sign, come the fields from the third on; it is the 16th and the 17th.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(13).take(2);
    fields.filter_map(|field| field.parse::<u64>().ok()).sum()
}

const OPS: &str = "use pointwise::prelude::*;\n\n#[op(f32, f8e4m3, exact, grad = none)]\npub fn twice<T: Real>(x: T) -> T {\n    \
                   inner::sum(x, x)\n}\n\nmod inner;\n";
const INNER: &str = "use pointwise::prelude::*;\n\npub fn sum<T: Real>(a: T, b: T) -> T {\n    a + b\n}\n\n#[op(f32, exact, \
                     grad = none)]\npub fn thrice<T: Real>(x: T) -> T {\n    sum(sum(x, x), x)\n}\n";

struct Package(PathBuf);

impl Package {
    fn new(name: &str) -> Package {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ops-{name}"));
        let _ = fs::remove_dir_all(&folder);
        for part in ["src/ops", "out"] {
            fs::create_dir_all(folder.join(part)).unwrap();
        }
        let package = Package(folder);
        package.write("src/ops.rs", OPS);
        package.write("src/ops/inner.rs", INNER);
        package
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).unwrap();
    }

    /// Returns the script's words to cargo. It succeeds, whatever is in the ops.
    fn build(&self, rustc: Option<&str>) -> String {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "build_script", "--nocapture"])
            .env(PACKAGE, "1")
            .env("OUT_DIR", self.0.join("out"))
            .env("CARGO_MANIFEST_DIR", &self.0)
            .env_remove("POINTWISE_DEVICE_RUSTC");
        let output = command.envs(rustc.map(|rustc| ("POINTWISE_DEVICE_RUSTC", rustc))).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    /// Why no op has kernels.
    fn none(&self) -> Option<String> {
        fs::read_to_string(self.0.join("out/pointwise_ops/none.txt")).ok()
    }

    fn pack(&self, op: &str, file: &str) -> Option<String> {
        fs::read_to_string(self.0.join("out/pointwise_ops").join(op).join(file)).ok()
    }
}

/// Returns the hash that both compilations get.
fn source(told: &str) -> &str {
    let line = told.lines().find_map(|line| line.strip_prefix("cargo::rustc-env=POINTWISE_SOURCE="));
    line.expect("the hash of the sources")
}

#[test]
fn without_a_compiler_the_ops_have_no_kernels() {
    let package = Package::new("none");
    let told = package.build(Some("none"));
    assert!(told.contains("cargo::warning=built without GPU kernels: POINTWISE_DEVICE_RUSTC=none"), "{told}");
    for file in ["src/ops.rs", "src/ops", "src/ops/inner.rs"] {
        let line = format!("cargo::rerun-if-changed={}\n", package.0.join(file).display());
        assert!(told.contains(&line), "{line} is not in {told}");
    }
    assert_eq!(package.none().unwrap(), "POINTWISE_DEVICE_RUSTC=none: no GPU code is built");
    // A comment changes nothing, a token does.
    package.write("src/ops.rs", &format!("// A comment.\n{OPS}"));
    let commented = package.build(Some("none"));
    package.write("src/ops.rs", &OPS.replace("(x, x)", "(x, -x)"));
    let other = package.build(Some("none"));
    assert_eq!(source(&told), source(&commented));
    assert_ne!(source(&told), source(&other));
}

/// The build warns of files that would have no kernels.
#[test]
fn what_is_left_out_is_warned_of() {
    let package = Package::new("left-out");
    package.write("src/lib.rs", "");
    package.write("src/ops/alone.rs", INNER);
    let told = package.build(Some("none"));
    for warning in [
        "ops.rs is no module of the package: write `pub mod ops;` in src/lib.rs",
        "alone.rs is no module of the package: write `mod alone;` in src/ops.rs",
    ] {
        assert!(told.contains(warning), "{warning} is not in {told}");
    }
    assert!(!told.contains("inner.rs is no module"), "{told}");
    assert!(
        told.contains("second: the build script calls pointwise_build::ops a second time, for src/more.rs"),
        "{told}"
    );
    package.write("src/lib.rs", "pub mod ops;");
    package.write("src/ops.rs", &OPS.replace("mod inner;", "mod inner;\nmod alone;"));
    let told = package.build(Some("none"));
    assert!(!told.contains("is no module"), "{told}");
}

/// A file that does not parse is left to the compiler of the package.
#[test]
fn what_is_no_rust_has_no_kernels() {
    let package = Package::new("broken");
    package.build(Some("none"));
    package.write("src/ops.rs", "fn (");
    package.write("src/ops/inner.rs", "");
    package.build(Some("none"));
    assert_eq!(package.pack("twice", "pointwise_kernels.rs"), None);
}

/// Needs a compiler for GPU code, like the other tests of this crate that compile.
#[test]
fn kernels_are_compiled_once_and_mistakes_are_said_at_the_op() {
    let package = Package::new("compiled");
    package.build(None);
    for op in ["twice", "thrice"] {
        let expression = package.pack(op, "pointwise_kernels.rs").unwrap();
        assert!(expression.contains("(80, (7, 0), \"*\", b\"(\\xb5/\\xfd"), "{expression}");
        // It has no names, which could mean something else where it stands.
        let is_literal = |token: TokenTree| !matches!(token, TokenTree::Ident(_));
        assert!(flat(expression.parse().unwrap()).into_iter().all(is_literal), "{expression}");
        let symbols = expression.split('"').nth(3).unwrap().replace("\\n", "\n");
        let names: Vec<&str> = symbols.lines().filter_map(|line| line.split(' ').next()).collect();
        // The kernel by table has shared memory, which the crate's root declares.
        let of_fp8 = ["flat", "rows", "strided", "table"].map(|class| format!("formula_twice_f8e4m3_{class}"));
        // Elements of 8 bits are computed by the body of 16, which this op does not have.
        let of_f32 = ["body", "flat", "rows", "strided"].map(|class| format!("formula_{op}_f32_{class}"));
        let of_fp8 = if op == "twice" { &of_fp8[..] } else { &[] };
        assert_eq!(names, [&of_f32, of_fp8].concat());
        assert_eq!(package.pack(op, "error.txt"), None);
    }
    // Nothing has changed, and nothing is compiled: the files stay as they are.
    package.write("out/pointwise_ops/twice/pointwise_kernels.rs", "as it was");
    let told = package.build(None);
    assert_eq!(package.pack("twice", "pointwise_kernels.rs").unwrap(), "as it was");
    assert!(told.contains("pointwise-device/src/formula/mod.rs"), "{told}");

    package.write("src/ops/inner.rs", &INNER.replace("sum(sum(x, x), x)", "let _ = std::env::args();\n    x"));
    package.build(None);
    let error = package.pack("thrice", "error.txt").expect("a kernel has no std");
    assert!(error.contains("std") && error.contains("ops/inner.rs:9:"), "{error}");
    assert_eq!(package.pack("twice", "error.txt"), None);
    assert!(package.none().unwrap().starts_with("the device compiler refused the package's ops"));

    package.write("src/ops/inner.rs", INNER);
    package.build(None);
    assert_eq!((package.pack("thrice", "error.txt"), package.none()), (None, None));
}

/// An op with a gradient whose formula has so many lines: each a step of arithmetic, and every tenth a function or a branch.
fn long(lines: usize) -> String {
    let head = "use pointwise::prelude::*;\n\n#[op(f32, ulp = 1e9)]\npub fn long<T: Real>(a: T, b: T, c: T) -> T {\n";
    let mut text = head.to_owned();
    text += "    let (x0, y0) = (a * b, b + c);\n";
    for k in 1..lines {
        let (x, y) = (k - 1, k - 1);
        let step = match k % 10 {
            0 => format!("x{x}.tanh()"),
            5 => format!("x{x}.if_above(y{y}, x{x} * a, y{y} - b)"),
            _ => format!("x{x} * y{y} + c"),
        };
        text += &format!("    let (x{k}, y{k}) = ({step}, y{y} + x{x} * T::constant(0.{k}));\n");
    }
    text + &format!("    x{k} + y{k}\n}}\n", k = lines - 1)
}

/// A formula of 60 lines with gradients by three operands once took a compiler minutes, and one of 300 did not end. The test says
/// what they take.
#[test]
fn long_formulas_compile() {
    for lines in [60, 300] {
        let package = Package::new(&format!("long-{lines}"));
        package.write("src/ops.rs", &long(lines));
        package.write("src/ops/inner.rs", "");
        let told = package.build(None);
        assert_eq!((package.pack("long", "error.txt"), package.none()), (None, None), "{lines} lines");
        assert!(package.pack("long", "pointwise_kernels.rs").unwrap().contains("formula_long_backward_f32_flat"));
        let time = told.lines().find_map(|line| line.split(TIME).nth(1)).expect("the script says its time");
        let seconds = time.trim().parse::<f64>().unwrap() / 100.0;
        println!("{lines} lines: {seconds} s of a processor");
    }
}

/// All tokens but groups.
fn flat(tokens: TokenStream) -> Vec<TokenTree> {
    let each = tokens.into_iter().flat_map(|token| match token {
        TokenTree::Group(group) => flat(group.stream()),
        token => vec![token],
    });
    each.collect()
}
