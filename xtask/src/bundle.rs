//! `cargo xtask gpu-bundle`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::licences;
use crate::shell::{cargo, output, root};

/// Folder of the bundle, ignored by git.
const FOLDER: &str = "bundle";

/// The contents of the bundle, for its reader.
const README: &str = "\
matrix      every (op, element type, strategy) on the GPU: ./matrix [FILTER]; POINTWISE_MATRIX=quick for a memory checker
special     dropout, ALiBi, the sinusoidal encoding and the tuner on the GPU: ./special [FILTER] [--ignored]
graphs      every op captured in a CUDA graph and replayed, threads and streams at once, two devices: ./graphs [FILTER]
stress      threads, captures, graphs and drops at once, on every GPU: ./stress [--seconds N] [--threads N] [--seed N]
emulator_bits  the GPU's bits beside the emulator's, over all codes and 2^20 f32 values: ./emulator_bits [FILTER]
fused       a user's own ops on the GPU: ./fused
forms       an op of each form on the GPU: ./forms
fused-block a user's fused op beside the same ops one by one and a copy: ./fused-block [ELEMENTS]
rows        ops on rows on the GPU: ./rows [FILTER]
fusion      fused kernels on the GPU: ./fusion [FILTER]; torch.compile beside others: peers/fused_chains.py
rope        the rotary embedding on the GPU: ./rope [FILTER] [--ignored]
golden      PyTorch's results against the CPU and the GPU: [POINTWISE_GOLDEN=DIR] ./golden [FILTER]
accuracy    every float op against f64, f32 over all 2^32 inputs: ./accuracy [--op RE] [--pairs 2^26] [--json FILE]
bandwidth   every op beside a copy: ./bandwidth [--n N] [--strategies] [--json FILE]
convert_bandwidth  every conversion between element types beside a copy: [--n N] [--from TYPE]
table_bandwidth  ops of two bytes by a table of all pairs and by the formula: [--op NAME] [--dtype TYPE]
row_bandwidth  norms, softmax and sums of rows beside a copy: [--op NAME] [--dtype TYPE] [--backward]; PyTorch: peers/row_ops.py
rope_bandwidth  the rotary embedding beside a copy: ./rope_bandwidth [--lines] [--json FILE]; --sweep tries launch settings
launch      host time of a call beside a bare launch
chain       calls that follow one another, in a stream and in a graph: ./chain [--dtype TYPE]; PyTorch: peers/chain.py
first_call  the first call in a new process: CUDA_CACHE_DISABLE=1 ./first_call gelu bf16
cpu         the CPU executor on one thread and two: CRITERION_HOME=criterion ./cpu --bench [FILTER]
bench       every op beside a copy: ./bench --set all --json ours.json
pointwise   the command: ./pointwise doctor | tour | list | run
THIRD-PARTY-NOTICES  the licences of other people's code in these programs
peers       PyTorch, Triton and others: python3 peers/compare.py times ./bench and them, and joins both in compare/;
            python3 peers/torch_accuracy.py --json torch.json says how accurate PyTorch is;
            python3 peers/row_accuracy.py how accurate both are on rows
";

/// The contents of `peers/`: the scripts, and the rows that they read.
const PEERS: &str = "benches/peers";
const WORKLOADS: &str = "benches/workloads.csv";

pub(crate) fn run() -> Result<()> {
    let tests = ["matrix", "special", "rope", "rows", "fusion", "graphs", "golden", "fused", "forms"]
        .map(|name| ["--test", name])
        .concat();
    // Each builds the whole workspace: a part of the packages would have other features, and pointwise be compiled for
    // each.
    let builds: [Vec<&str>; 3] = [
        [&["test", "--workspace", "--no-run", "--release"][..], &tests].concat(),
        vec!["bench", "--workspace", "--no-run", "--bench", "cpu"],
        vec!["build", "--workspace", "--release", "--bins"],
    ];
    let mut programs = Vec::new();
    for arguments in builds {
        let messages = output(
            cargo()
                .args(&arguments)
                .args(["--message-format=json-render-diagnostics", "--config"])
                .arg("profile.release.strip=true"),
        )?;
        programs.extend(executables(&messages).into_iter().filter(|program| is_listed(&program_name(program))));
    }
    if programs.is_empty() {
        bail!("cargo named no program among what it built");
    }
    // The old bundle stays until all of the new one is built.
    let folder = root().join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(&folder)?;
    let mut total = 0;
    for program in programs {
        let name = program_name(&program);
        let target = folder.join(&name);
        total += fs::copy(&program, &target).with_context(|| format!("cannot copy {}", program.display()))?;
        println!("{}", target.display());
    }
    fs::write(folder.join("README"), README)?;
    // A bundle is handed on, and with it the code of others.
    fs::write(folder.join(licences::FILE), licences::notices("", &["pointwise-cli", "tests", "benches"], "", true)?)?;
    copy_peers(&folder.join("peers"))?;
    println!("{:.1} MB", total as f64 / 1e6);
    Ok(())
}

/// Copies Python's side.
fn copy_peers(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let scripts =
        fs::read_dir(root().join(PEERS))?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    let scripts = scripts.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "py"));
    for path in scripts.chain([root().join(WORKLOADS)]) {
        let name = path.file_name().unwrap_or_default();
        fs::copy(&path, folder.join(name)).with_context(|| format!("cannot copy {}", path.display()))?;
    }
    Ok(())
}

/// True if the bundle's text describes a program.
fn is_listed(name: &str) -> bool {
    README.lines().any(|line| line.split_whitespace().next() == Some(name))
}

/// The programs that cargo's messages name.
fn executables(messages: &str) -> Vec<PathBuf> {
    let key = "\"executable\":\"";
    let found = messages.lines().filter(|line| line.contains("\"reason\":\"compiler-artifact\""));
    found.filter_map(|line| line.split_once(key)?.1.split_once('"')).map(|(path, _)| PathBuf::from(path)).collect()
}

/// A test program's name without cargo's hash.
fn program_name(program: &Path) -> String {
    let name = program.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    match name.rsplit_once('-') {
        Some((stem, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => stem.to_owned(),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_lie_beside_their_rows() {
        let folder = std::env::temp_dir().join(format!("pointwise-bundle-{}", std::process::id()));
        copy_peers(&folder).unwrap();
        for name in [
            "compare.py",
            "script.py",
            "peers.py",
            "agree.py",
            "runs.py",
            "timing.py",
            "rows.py",
            "torch_accuracy.py",
            "workloads.csv",
        ] {
            assert!(folder.join(name).is_file(), "{name}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
