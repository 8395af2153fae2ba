//! The command: `pointwise run` on generated and mutated files and arguments. It ends with exit code 0, 1 or 2 and says
//! in one line what is wrong; what it writes is whole, and nothing else in its folder changes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pointwise::rope::{ROPE, ROPE_ARGUMENTS, ROPE_SETTINGS};
use pointwise::{
    DType, Device, Strategy, Tensor,
    info::{self, CHOICES, MASKED_FILL, OpInfo},
};
use safetensors::SafeTensors;
use serde_json::{Map, Value, json};

use crate::case::{Case, Outcome};
use crate::compare::same;
use crate::config::{GOOD, damage};
use crate::make;
use crate::random::Random;
use crate::worker;

/// The file to read and the one to write, in the folder that is watched.
const IN: &str = "in.safetensors";
const OUT: &str = "out.safetensors";

/// An op as the command knows it.
struct Op {
    name: String,
    operands: Vec<&'static str>,
    settings: Vec<&'static str>,
    info: Option<&'static OpInfo>,
}

pub(crate) fn run(case: &mut Case) -> Outcome {
    worker::empty(case)?;
    let call = prepare(case).map_err(|error| format!("the fuzzer's own files: {error}"))?;
    let before = snapshot(&call.folder).map_err(|error| format!("the fuzzer's own files: {error}"))?;
    let what = format!("{:?}", call.arguments);
    let ended = execute(case, &call)?;
    let says = fs::read(case.folder.join("stderr")).unwrap_or_default();
    let says = String::from_utf8_lossy(&says).into_owned();
    let after = snapshot(&call.folder).map_err(|error| format!("{what}: the folder afterwards: {error}"))?;
    let fault = |why: String| Err(format!("{why}; {what}; it says {says:?}"));
    match ended.code() {
        Some(0) => case.answers += 1,
        Some(1 | 2) => case.errors += 1,
        None if call.ended_early => {}
        _ => return fault(format!("it ended with {ended}")),
    }
    let failed = ended.code().is_some_and(|code| code != 0);
    let one_line = says.starts_with("error: ") && says.trim_end().lines().count() == 1;
    if failed && !one_line && !call.arguments.is_empty() {
        return fault("what is wrong is not said in one line".to_owned());
    }
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed: Vec<&String> = names.into_iter().filter(|name| before.get(*name) != after.get(*name)).collect();
    if let [_, _, ..] = changed[..] {
        return fault(format!("it changed {changed:?}"));
    }
    for name in changed {
        let may = !failed && (call.writes == Writes::Any || call.writes == Writes::File(name.clone()));
        match after.get(name) {
            Some(Entry::File(bytes)) if may && SafeTensors::deserialize(bytes).is_ok() => {}
            Some(Entry::File(bytes)) if may => return fault(format!("{name} is no whole file: {bytes:?}")),
            Some(_) => return fault(format!("it wrote {name}")),
            None => return fault(format!("it removed {name}")),
        }
    }
    if ended.success()
        && let (Some(x), Some(Entry::File(bytes))) = (&call.x, after.get(OUT))
    {
        check_result(&call, x, bytes).map_err(|why| format!("{why}; {what}"))?;
    }
    Ok(())
}

/// Checks that the result of a plain unary call is the library's.
fn check_result(call: &Call, x: &Tensor, bytes: &[u8]) -> Outcome {
    let is_plain = |info: &&OpInfo| info.is_unary() && !info.is_random();
    let Some(def) = call.op.info.filter(is_plain).and_then(|info| info::op(info.name)) else {
        return Ok(());
    };
    let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let y = file.tensor("y").map_err(|error| error.to_string())?;
    let want =
        def.unary_with(&[]).run(x).map_err(|error| format!("the library refuses what the command took: {error}"))?;
    let got =
        Tensor::from_bytes(&Device::cpu(), want.dtype(), y.data(), y.shape()).map_err(|error| error.to_string())?;
    same("the command's result", &got, &want)
}

/// The files that a call may write in the folder.
#[derive(PartialEq)]
enum Writes {
    None,
    /// This file.
    File(String),
    /// One file, whichever the arguments come to name.
    Any,
}

/// A call of the command.
struct Call {
    op: Op,
    arguments: Vec<OsString>,
    /// The folder that it runs in. The fuzzer watches it.
    folder: PathBuf,
    writes: Writes,
    /// True if a signal ends it.
    ended_early: bool,
    /// The operand, if op, file and arguments are good and plain.
    x: Option<Tensor>,
}

fn prepare(case: &mut Case) -> io::Result<Call> {
    let folder = case.folder.join("work");
    fs::create_dir(&folder)?;
    let random = &mut case.random;
    let mut op = op(random);
    let plain = random.once_in(3);
    if plain && op.needs_settings() {
        op = self::op(random);
    }
    if plain && op.info.is_none() {
        // q and k.
        op.operands.truncate(2);
    }
    let (mut file, x) = file(random, &op, plain);
    let damaged = !plain && random.once_in(4);
    if damaged {
        damage(random, &mut file);
    }
    fs::write(folder.join(IN), &file)?;
    let mut config = random.pick(&GOOD).as_bytes().to_vec();
    if random.once_in(4) {
        damage(random, &mut config);
    }
    fs::write(folder.join("config.json"), config)?;
    let (out, result) = if plain { (OUT, Some(OUT)) } else { place(random, &folder)? };

    let mut arguments: Vec<OsString> = vec!["run".into(), op.name.clone().into()];
    if plain || !op.info.is_some_and(OpInfo::is_of_indices) {
        arguments.push(IN.into());
    }
    arguments.extend(["-o".into(), out.into(), "--device".into(), "cpu".into()]);
    let mut writes = result.map_or(Writes::None, |name| Writes::File(name.to_owned()));
    if !plain {
        for (name, value) in settings(random, &op) {
            arguments.extend(["--set".into(), format!("{name}={value}").into()]);
        }
        if random.once_in(4) {
            let strategy = random.pick(&[Strategy::ALL.map(Strategy::name).to_vec(), vec!["auto", "", "x"]].concat());
            arguments.push(format!("--strategy={strategy}").into());
        }
        if random.once_in(8) {
            scramble(random, &mut arguments);
            writes = Writes::Any;
        }
    }
    let ended_early = !plain && random.once_in(10);
    let x = x.filter(|_| plain);
    Ok(Call { op, arguments, folder, writes, ended_early, x })
}

impl Op {
    /// The op of these data.
    fn of(info: &'static OpInfo) -> Op {
        let mut operands = info.operands.to_vec();
        if is_fill(info) {
            // The value is a number.
            operands.truncate(2);
        }
        let mut settings: Vec<&'static str> = info.params.iter().map(|param| param.name).collect();
        settings.extend(info.operands.iter().chain(info.shape));
        settings.dedup();
        if info.is_random() {
            settings.extend(["training", "seed", "offset"]);
        }
        if info.is_of_indices() {
            settings.push("dtype");
        }
        Op { name: info.name.to_owned(), operands, settings, info: Some(info) }
    }

    /// True if the op has settings without defaults.
    fn needs_settings(&self) -> bool {
        self.info.is_some_and(|info| is_fill(info) || info.is_of_indices())
    }

    /// The element type of the operand of a name, if it does not depend on the call's.
    fn fixed(&self, name: &str) -> Option<DType> {
        let info = self.info?;
        info.fixed_operand(info.operands.iter().position(|operand| *operand == name)?)
    }
}

/// True if the op is `masked_fill`, which the registry does not have.
fn is_fill(info: &OpInfo) -> bool {
    info.name == MASKED_FILL.name
}

fn op(random: &mut Random) -> Op {
    let infos: Vec<&'static OpInfo> = info::listed().collect();
    let has_more = |info: &&&OpInfo| is_fill(info) || info.is_random() || info.is_of_indices();
    let special = |name: &str, operands: &[&'static str], settings: &[&'static str]| Op {
        name: name.to_owned(),
        operands: operands.to_vec(),
        settings: settings.to_vec(),
        info: None,
    };
    match random.below(10) {
        // Ops that have settings beside parameters, more often than others.
        0..=3 => Op::of(random.pick(&infos.iter().filter(has_more).copied().collect::<Vec<_>>())),
        4 | 5 => {
            let name = random.pick(&ROPE.iter().map(|def| def.name).collect::<Vec<_>>());
            special(name, &ROPE_ARGUMENTS, &ROPE_SETTINGS.iter().map(|setting| setting.name).collect::<Vec<_>>())
        }
        6 if random.once_in(3) => special(random.pick(&["", "sliu", "--help", "-", "\u{e9}\n"]), &["x"], &["alpha"]),
        _ => Op::of(random.pick(&infos)),
    }
}

/// A safetensors file with the op's operands; its tensor `x`, if it is there.
fn file(random: &mut Random, op: &Op, plain: bool) -> (Vec<u8>, Option<Tensor>) {
    let mut full = make::shape(random, 300);
    if op.name.starts_with("rope") {
        full = random.pick(&[vec![1, 3, 2, 8], vec![2, 1, 1, 64], vec![1, 2, 1, 7]]);
    }
    let dtype = match op.info {
        Some(info) if plain => random.pick(info.types),
        _ => make::float(random),
    };
    let mut names = op.operands.clone();
    if !plain {
        names.retain(|_| !random.once_in(12));
        names.extend(
            (0..random.below(3)).map(|_| random.pick(&["x", "y", "min", "max", "weight", "value", "\u{e9}", "b"])),
        );
        if op.name.starts_with("rope") {
            names.retain(|name| *name == "q" || random.once_in(2));
        }
    }
    let (mut header, mut data, mut x) = (Map::new(), Vec::new(), None);
    for name in names {
        let dtype = match name {
            "position_ids" => DType::I64,
            _ if !plain && random.once_in(20) => make::dtype(random),
            _ => op.fixed(name).unwrap_or(dtype),
        };
        let shape = match name {
            "position_ids" => vec![full[0], full[1]],
            "cos" | "sin" | "freqs" => vec![full[1], full[3] / 2],
            "q" | "k" => full.clone(),
            _ if plain => full.clone(),
            _ => make::narrower(random, &full),
        };
        let numel = shape.iter().product();
        // Positions that tables have.
        let bytes = if name == "position_ids" { vec![0; 8 * numel] } else { make::bytes(random, dtype, numel) };
        if name == "x" {
            x = Tensor::from_bytes(&Device::cpu(), dtype, &bytes, shape.as_slice()).ok();
        }
        let begin = data.len();
        data.extend(bytes);
        let info = json!({"dtype": dtype.safetensors_name(), "shape": shape, "data_offsets": [begin, data.len()]});
        header.insert(name.to_owned(), info);
    }
    if !plain && random.once_in(6) {
        lie(random, &mut header);
    }
    let header = Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.into_bytes());
    file.extend(data);
    (file, x)
}

/// Changes one thing that a header says.
fn lie(random: &mut Random, header: &mut Map<String, Value>) {
    let names: Vec<String> = header.keys().cloned().collect();
    if names.is_empty() || random.once_in(4) {
        header.insert(
            "__metadata__".to_owned(),
            random.pick(&[json!({"a": "b"}), json!(null), json!({"a": 1}), json!([])]),
        );
        return;
    }
    let entry = &mut header[&random.pick(&names)];
    let sizes = [0, 1, 2, 3, 1 << 32, 1 << 40, 1 << 62, u64::MAX];
    match random.below(4) {
        0 => entry["dtype"] = json!(random.pick(&["F64", "U16", "F4", "x", "", "F8_E8M0", "BOOL"])),
        1 => entry["shape"] = (0..random.below(10)).map(|_| random.pick(&sizes)).collect(),
        2 => entry["data_offsets"] = json!([random.pick(&sizes), random.pick(&sizes)]),
        _ => entry["shape"] = random.pick(&[json!(null), json!([-1]), json!([1.5]), json!("x"), json!([[1]])]),
    }
}

/// Returns the path to write, and the file of the folder that it leads to.
fn place(random: &mut Random, folder: &Path) -> io::Result<(&'static str, Option<&'static str>)> {
    let out = folder.join(OUT);
    match random.below(14) {
        0 => Ok((IN, Some(IN))),
        1 => Ok(("missing/out.safetensors", None)),
        2 => Ok((".", None)),
        3 => Ok(("new/", None)),
        4 => Ok(("/dev/full", None)),
        5 => Ok(("/dev/null", None)),
        6 => Ok(("", None)),
        kind @ 7..=10 => {
            fs::write(&out, "old")?;
            match kind {
                7 => {
                    let mut permissions = fs::metadata(&out)?.permissions();
                    permissions.set_readonly(true);
                    fs::set_permissions(&out, permissions)?;
                    Ok((OUT, None))
                }
                8 => {
                    link(OUT, &folder.join("link"))?;
                    Ok(("link", Some(OUT)))
                }
                _ => Ok((OUT, Some(OUT))),
            }
        }
        11 => {
            link("nothing", &folder.join("link"))?;
            Ok(("link", None))
        }
        _ => Ok((OUT, Some(OUT))),
    }
}

#[cfg(unix)]
fn link(to: &str, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(to, at)
}

#[cfg(not(unix))]
fn link(_: &str, at: &Path) -> io::Result<()> {
    fs::write(at, "no links here")
}

fn settings(random: &mut Random, op: &Op) -> Vec<(String, &'static str)> {
    // Sizes are small, or more than there is.
    let sizes = ["0", "1", "3", "8", "64", "4294967296", "18446744073709551615", "-1"];
    let numbers = [
        "0.5", "1", "0", "-1", "2", "1e300", "nan", "inf", "-inf", "1e-320", "true", "false", "None", "0x1", "\u{e9}",
        " 1 ", "=", "1=2",
    ];
    let words = ["tanh", "none", "floor", "trunc", "half", "interleaved", "bhsd", "f16", "f64", "exact", "1,1,1,1"];
    let mut given = Vec::new();
    let is_size = |name: &str| op.info.is_some_and(|info| info.shape.contains(&name));
    for name in op.settings.clone() {
        let value = match name {
            _ if is_size(name) && !random.once_in(12) => random.pick(&sizes),
            "config" if random.once_in(6) => {
                random.pick(&["config.json", "config.json", IN, ".", "/dev/zero", "nothing"])
            }
            "dtype" if random.once_in(8) => "x",
            "dtype" if random.once_in(2) => random.pick(&DType::ALL).name(),
            _ if !random.once_in(op.settings.len().max(5)) => continue,
            _ if random.once_in(2) => random.pick(&words),
            _ => random.pick(&numbers),
        };
        given.push((name.to_owned(), value));
    }
    // Words that choose another op, and numbers that are none.
    if random.once_in(6) {
        let words: Vec<_> = CHOICES.iter().flat_map(|choice| choice.values).map(|(word, _)| *word).collect();
        let word = if random.once_in(8) { "1" } else { random.pick(&words) };
        given.push((random.pick(&CHOICES).param.to_owned(), word));
    }
    if random.once_in(12) {
        given.push((random.pick(&["", "nope", "x", " p", "a.b"]).to_owned(), "1"));
    }
    given
}

/// Drops, repeats, swaps or replaces arguments.
fn scramble(random: &mut Random, arguments: &mut Vec<OsString>) {
    for _ in 0..1 + random.below(3) {
        if arguments.is_empty() {
            return;
        }
        let (at, other) = (random.below(arguments.len()), random.below(arguments.len()));
        match random.below(5) {
            0 => drop(arguments.remove(at)),
            1 => arguments.insert(at, arguments[other].clone()),
            2 => arguments.swap(at, other),
            3 => {
                arguments[at] =
                    random.pick(&["", "--", "-", "--nope", "--set", "=", "list", "--version", "\u{1F980}"]).into()
            }
            _ => arguments[at] = no_text(random),
        }
    }
}

/// An argument that is no UTF-8, where there are such.
#[cfg(unix)]
fn no_text(random: &mut Random) -> OsString {
    let bytes = (0..1 + random.below(6)).map(|_| 1 + random.below(255) as u8).collect();
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

#[cfg(not(unix))]
fn no_text(_: &mut Random) -> OsString {
    "?".into()
}

/// An entry of the folder.
#[derive(PartialEq)]
enum Entry {
    File(Vec<u8>),
    Link(PathBuf),
    Other,
}

fn snapshot(folder: &Path) -> io::Result<BTreeMap<String, Entry>> {
    let mut entries = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let content = match () {
            () if kind.is_symlink() => Entry::Link(fs::read_link(entry.path())?),
            () if kind.is_file() => Entry::File(fs::read(entry.path())?),
            () => Entry::Other,
        };
        entries.insert(entry.file_name().to_string_lossy().into_owned(), content);
    }
    Ok(entries)
}

/// Runs the command to its end, which a signal may bring.
fn execute(case: &mut Case, call: &Call) -> Result<ExitStatus, String> {
    let own = |error: io::Error| format!("cannot run the command, which `cargo xtask fuzz` builds: {error}");
    let program =
        std::env::current_exe().map_err(own)?.with_file_name(format!("pointwise{}", std::env::consts::EXE_SUFFIX));
    let stderr = File::create(case.folder.join("stderr")).map_err(own)?;
    let mut command = Command::new(program);
    command.args(&call.arguments).current_dir(&call.folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    let mut child = command.spawn().map_err(own)?;
    if call.ended_early {
        std::thread::sleep(Duration::from_micros(case.random.below(8000) as u64));
        end(&child).map_err(own)?;
    }
    // Before the parent takes this process for hanging.
    let limit = Duration::from_secs(case.hang.saturating_sub(1).max(1));
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(own)? {
            return Ok(status);
        }
        if start.elapsed() > limit {
            child.kill().and_then(|()| child.wait()).map_err(own)?;
            return Err(format!("a hang: more than {limit:?}; {:?}", call.arguments));
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Asks the process to end.
#[cfg(target_os = "linux")]
fn end(child: &Child) -> io::Result<()> {
    use rustix::process::{Pid, Signal, kill_process};

    Ok(kill_process(Pid::from_child(child), Signal::TERM)?)
}

#[cfg(not(target_os = "linux"))]
fn end(_: &Child) -> io::Result<()> {
    Ok(())
}
