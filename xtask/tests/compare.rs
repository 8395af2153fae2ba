//! `benches/peers/compare.py`, which `cargo xtask compare` and the bundle run, with programs that only write down how
//! they were called: no GPU, no PyTorch. Without a Python 3 there is nothing to run.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder with the script, a `peers.py` and a `bench` that write their arguments into the files they are told to
/// make, and a `torch` with or without a GPU.
struct Scene(PathBuf);

const BENCH: &str = "#!/bin/sh
echo \"a table\"
while [ $# -gt 0 ]; do
  [ \"$1\" = --json ] && echo \"$all\" > \"$2\"
  all=\"$all $1\"
  shift
done
";
const PEERS: &str = "import sys
with open(sys.argv[sys.argv.index('--out') + 1], 'w') as out:
    print(*sys.argv[1:], file=out)
sys.exit(1)
";
const TORCH: &str = "__version__ = '2.0'
class version:
    cuda = '13.0'
class cuda:
    is_available = staticmethod(lambda: HAS_GPU)
    get_device_name = staticmethod(lambda index: 'a GPU')
";

impl Scene {
    /// None where there is no Python.
    fn new(name: &str, has_gpu: bool) -> Option<Scene> {
        Command::new("python3").arg("--version").output().ok().filter(|output| output.status.success())?;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("peers")).unwrap();
        fs::create_dir_all(folder.join("packages/nvidia/cu13/lib")).unwrap();
        let scene = Scene(folder);
        for script in ["compare.py", "medians.py", "other_ops.py", "script.py"] {
            let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/peers").join(script);
            fs::copy(from, scene.path("peers").join(script)).unwrap();
        }
        fs::write(scene.path("peers/peers.py"), PEERS).unwrap();
        let has_gpu = if has_gpu { "True" } else { "False" };
        fs::write(scene.path("packages/torch.py"), TORCH.replace("HAS_GPU", has_gpu)).unwrap();
        fs::write(scene.path("packages/nvidia/cu13/lib/libcupti.so.13"), "").unwrap();
        fs::write(scene.path("bench"), BENCH).unwrap();
        fs::set_permissions(scene.path("bench"), fs::Permissions::from_mode(0o755)).unwrap();
        Some(scene)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Runs the script in the folder, with no packages but its own.
    fn run(&self, arguments: &[&str]) -> Output {
        let mut python = Command::new("python3");
        python.current_dir(&self.0).args(["-S", "peers/compare.py"]).args(arguments);
        python.env("PYTHONPATH", self.path("packages")).output().unwrap()
    }

    fn fails(&self, arguments: &[&str], words: &[&str]) {
        let output = self.run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?} succeeded");
        assert!(words.iter().all(|word| stderr.contains(word)), "{arguments:?}: no {words:?} in {stderr}");
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn both_sides_are_timed_and_joined() {
    let Some(scene) = Scene::new("compare", true) else { return };
    // The peers of this scene end with 1: what they wrote is joined all the same.
    scene.fails(&["--set", "reference", "--out", "results"], &["error: peers.py ended with 1"]);
    let read = |name: &str| fs::read_to_string(scene.path("results").join(name)).unwrap();
    let ours = read("ours.json");
    assert!(ours.contains("--device cuda --set reference"), "{ours}");
    let peers = read("peers.jsonl");
    assert!(peers.contains("--set reference --out results/peers.jsonl --clock cupti --budget-s 460"), "{peers}");
    assert!(read("joined.json").contains("--from results/ours.json --peers results/peers.jsonl"));
    assert_eq!(read("joined.txt"), "a table\n");

    let output = scene.run(&["--steps", "join", "--out", "results", "--clock", "events"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("joined.json"), "{text}");
    scene.fails(&["--steps", "join", "--out", "elsewhere"], &["elsewhere/ours.json is not there"]);
}

/// A run's files: our times of a row and a peer's, cold, warm and busy; a peer that failed.
fn write_run(scene: &Scene, name: &str, ours: [f64; 3], peer: [f64; 3], row: u32) {
    let folder = scene.path(name);
    fs::create_dir_all(&folder).unwrap();
    let [cold, warm, busy] = ours.map(|us| format!(r#"{{"us": {us}, "p10_us": {us}}}"#));
    let times = format!(r#""cold": {cold}, "warm": {warm}, "busy": {busy}, "graph_us": null, "host_us": 2.0"#);
    let report = format!(r#"{{"launch_floor": {{{times}}}, "rows": [{{"row": {row}, "skipped": null, {times}}}]}}"#);
    fs::write(folder.join("ours.json"), report).unwrap();
    let [cold, warm, busy] = peer;
    let lines = format!(
        "{{\"meta\": {{\"gpu\": \"G\"}}}}\n\
         {{\"row\": {row}, \"peer\": \"torch\", \"cold_us\": {cold}, \"p10_us\": {cold}, \"warm_us\": {warm}}}\n\
         {{\"row\": {row}, \"peer\": \"torch\", \"busy_us\": {busy}}}\n\
         {{\"row\": {row}, \"peer\": \"cupy\", \"error\": \"no nvcc\"}}\n\
         {{\"end\": {{\"unreached\": [7]}}}}\n"
    );
    fs::write(folder.join("peers.jsonl"), lines).unwrap();
}

#[test]
fn of_several_runs_the_middle_is_joined() {
    let Some(scene) = Scene::new("compare-runs", true) else { return };
    let join = ["--steps", "join", "--out", "results", "--clock", "events", "--runs", "3"];
    write_run(&scene, "results/run1", [3.0, 1.0, 2.0], [10.0, 30.0, 20.0], 5);
    write_run(&scene, "results/run2", [1.0, 2.0, 3.0], [20.0, 10.0, 30.0], 5);
    scene.fails(&join, &["cannot read", "run3/ours.json"]);
    write_run(&scene, "results/run3", [2.0, 3.0, 1.0], [30.0, 20.0, 10.0], 5);
    let output = scene.run(&join);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| fs::read_to_string(scene.path("results").join(name)).unwrap();
    let ours: String = read("ours.json").split_whitespace().collect();
    let two = r#"{"us":2,"p10_us":2}"#;
    let times = format!(r#""cold":{two},"warm":{two},"busy":{two},"graph_us":null,"host_us":2.0"#);
    assert_eq!(ours.matches(&times).count(), 2, "the floor's and the row's in {ours}");
    let peers = read("peers.jsonl");
    for line in [
        r#"{"row": 5, "peer": "torch", "cold_us": 20, "p10_us": 20, "warm_us": 20}"#,
        r#"{"row": 5, "peer": "torch", "busy_us": 20}"#,
        r#"{"row": 5, "peer": "cupy", "error": "no nvcc"}"#,
        r#"{"end": {"unreached": [7]}}"#,
    ] {
        assert_eq!(peers.lines().filter(|found| *found == line).count(), 1, "{line} in {peers}");
    }
    assert!(read("joined.json").contains("--from results/ours.json --peers results/peers.jsonl"));
    write_run(&scene, "results/run3", [2.0, 3.0, 1.0], [30.0, 20.0, 10.0], 6);
    scene.fails(&join, &["not of the same rows"]);
    // peers.jsonl as peers.py leaves it if its first process fails, after which the runs are joined.
    fs::write(scene.path("results/run2/peers.jsonl"), "").unwrap();
    scene.fails(&join, &["error: results/run2/peers.jsonl is empty"]);
    // The scene's programs write files that cannot be joined: both faults are reported.
    scene.fails(&["--runs", "2", "--out", "two"], &["error: peers.py ended with 1", "cannot read two/run1/ours.json"]);
    scene.fails(&["--runs", "0"], &["'0' is no whole number above 0"]);
}

#[test]
fn what_is_missing_is_said() {
    let Some(scene) = Scene::new("compare-missing", true) else { return };
    let text = String::from_utf8_lossy(&scene.run(&["--check"]).stdout).into_owned();
    for words in ["PyTorch 2.0 on a GPU", "libcupti.so.13", "liger is missing", "pip install liger-kernel"] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    // A package that is there, but not what it needs.
    fs::create_dir_all(scene.path("packages/liger_kernel")).unwrap();
    fs::write(scene.path("packages/liger_kernel/__init__.py"), "import some_other_package").unwrap();
    let text = String::from_utf8_lossy(&scene.run(&["--check"]).stdout).into_owned();
    assert!(text.contains("liger is missing: ModuleNotFoundError: No module named 'some_other_package'"), "{text}");
    fs::remove_file(scene.path("packages/nvidia/cu13/lib/libcupti.so.13")).unwrap();
    let text = String::from_utf8_lossy(&scene.run(&["--check"]).stdout).into_owned();
    assert!(text.contains("no busy times") && text.contains("pip install nvidia-cuda-cupti"), "{text}");
    scene.fails(&["--steps", "ours,tea"], &["no step tea"]);
    fs::remove_file(scene.path("bench")).unwrap();
    scene.fails(&[], &["no program bench", "cargo build --release -p benches --bin bench"]);
    fs::remove_file(scene.path("packages/torch.py")).unwrap();
    scene.fails(&["--check"], &["PyTorch is missing", "pip install torch"]);
    let Some(scene) = Scene::new("compare-no-gpu", false) else { return };
    scene.fails(&["--check"], &["sees no GPU", "built for CUDA 13.0", "nvidia-smi"]);
}
