//! The tuner's file: good ones, mutated ones, garbage. Reading it never fails, and leaves it as it is.

use std::fs;

use pointwise::{Tensor, embed::embedded, kernels, tuner::Tuner};
use serde_json::{Value, json};

use crate::case::{Case, Outcome, must};
use crate::compare::same;
use crate::config::damage;
use crate::random::Random;
use crate::worker;

const DEVICES: [&str; 6] = [
    "abababababababababababababababab, driver 13.1, X",
    "ab, driver 1.1, X",
    ", driver ",
    "\u{e9}",
    "ababababababababababababababababab, driver 99999999999.1, X",
    "\u{ff}bababababababababababababababab, driver 13.1, X",
];

const ENTRIES: [&str; 8] = [
    "unary silu bf16 flat 2^24",
    "unary silu bf16 flat 2^99999999999",
    "unary  silu",
    "unary silu f64 flat 2^1",
    "unary silu bf16 flat 2^-1",
    "",
    "unary silu bf16 strided 2^3",
    "\u{e9} \u{1F980} bf16 flat 2^1\n",
];

const FIELDS: [&str; 3] = ["strategy", "threads", "microseconds"];

fn strange(random: &mut Random) -> Value {
    let values = [
        json!(256),
        json!(-1),
        json!(1e300),
        json!("direct"),
        json!("auto"),
        json!(null),
        json!([]),
        json!({}),
        json!(0),
        json!(65),
        json!(u64::MAX),
        json!("table"),
    ];
    random.pick(&values)
}

pub(crate) fn run(case: &mut Case) -> Outcome {
    worker::empty(case)?;
    let (bytes, good) = file(&mut case.random);
    let path = case.folder.join(case.random.pick(&["tuner-3.json", "a\nb", "\u{e9} \u{1F980}"]));
    let written = fs::write(&path, &bytes);
    written.map_err(|error| format!("the fuzzer's own file: {error}"))?;
    let tuner = Tuner::load_from(&path);
    let warnings = tuner.warnings();
    if good && !(warnings.is_empty() && format!("{tuner:?}").contains("threads: 256")) {
        return Err(format!("a good file is not taken in: {tuner:?}"));
    }
    if let Some(warning) = warnings.iter().find(|warning| warning.chars().any(char::is_control)) {
        return Err(format!("a warning is not one line of text: {warning:?}"));
    }
    // A choice is for a device; on the CPU none changes anything.
    let x = must("a tensor", Tensor::full(&case.device, 1.5_f32, [4]))?;
    same(
        "silu, tuned",
        &must("silu", kernels::silu().tuned(&tuner).run(&x))?,
        &must("silu", kernels::silu().run(&x))?,
    )?;
    match warnings.is_empty() {
        true => case.answers += 1,
        false => case.errors += 1,
    }
    let mut tuner = tuner;
    let mut y = must("a tensor", x.copy())?;
    case.any(tuner.tune(&kernels::silu(), &x, &mut y))?;
    match fs::read(&path) {
        Ok(after) if after == bytes => Ok(()),
        Ok(_) => Err("reading the file changed it".to_owned()),
        Err(error) => Err(format!("reading the file removed it: {error}")),
    }
}

/// A file's bytes, and whether it is good.
fn file(random: &mut Random) -> (Vec<u8>, bool) {
    let good = random.once_in(10);
    let (device, name) = match good {
        true => (DEVICES[0], ENTRIES[0]),
        false => (random.pick(&DEVICES), random.pick(&ENTRIES)),
    };
    let mut entry = json!({"strategy": "register_copy", "threads": 256, "microseconds": 1.5});
    // The version of this crate is the library's.
    let build = format!("{}, {}", env!("CARGO_PKG_VERSION"), embedded().note());
    if good {
        let file = json!({"format": "pointwise tuner 3", "builds": {build: {device: {name: entry}}}});
        return (file.to_string().into_bytes(), true);
    }
    for _ in 0..random.below(3) {
        entry[random.pick(&FIELDS)] = strange(random);
    }
    let mut file = json!({"format": "pointwise tuner 3", "builds": {build.as_str(): {device: {name: entry}}}});
    match random.below(9) {
        0 => file["builds"] = strange(random),
        1 => file["format"] = strange(random),
        2 => file["format"] = json!(random.pick(&["pointwise tuner", "pointwise tuner 3\n", "other"])),
        3 => file["builds"][build.as_str()] = strange(random),
        4 => file["builds"][build.as_str()][device] = strange(random),
        _ => {}
    }
    let mut bytes = file.to_string().into_bytes();
    if random.once_in(3) {
        damage(random, &mut bytes);
    }
    (bytes, false)
}
