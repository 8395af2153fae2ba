//! The RoPE ops: their operands may be left out, and their settings are not all numbers.

use std::io::{self, IsTerminal, Write};

use pointwise::rope::{ROPE, ROPE_ARGUMENTS, ROPE_SETTINGS, RopeDef, RopeError, RopeOp, RopeOperands, RopeSetting};
use pointwise::{DType, Device, ErrorKind, Strategy, Tensor};
use pointwise_core::Element;
use pointwise_testkit::{judge, with_element};
use serde_json::{Value, json};

use crate::args::Run;
use crate::device::device;
use crate::error::{Error, Result, did_you_mean, nearest};
use crate::file::{Named, Source, Target};
use crate::output::{Paint, line};
use crate::samples::numbers;
use crate::table::{CELL, NAME, columns};

/// The element types that the ops take.
const TYPES: [DType; 3] = [DType::F32, DType::F16, DType::BF16];
/// The error allowed, in ULP of the sum of the magnitudes of a pair: the sine's, the products', and one rounding.
const BOUND: f64 = 2.0;

/// `pointwise run` of a RoPE op: reads q and the operands that the file has, writes q and k.
///
/// # Errors
/// The errors of the call, the files, the op and the device.
pub(crate) fn run(out: &mut impl Write, args: &Run, def: &'static RopeDef) -> Result<()> {
    if args.strategy != Strategy::Auto {
        return Err(Error::Usage(format!("{} chooses its strategy itself: leave --strategy out", def.name)));
    }
    let op = parse_settings(def, &args.set)?;
    let input = args.input()?;
    let target = Target::new(&args.output)?;
    let device = device(&args.device)?;

    let [q, others @ ..] = ROPE_ARGUMENTS;
    let mut file = Source::open(input)?;
    let is_given = |name: &str| args.set.iter().any(|(given, _)| given == name);
    if let Some(RopeSetting { name, .. }) = ROPE_SETTINGS.iter().find(|it| file.has(it.name) && !is_given(it.name)) {
        let why = format!("{} does not take {name} as a tensor: give --set {name}=..., or leave it out", def.name);
        return Err(file.refuse(name, &why));
    }
    let q = file.read(&[q], &device)?.remove(0);
    let others = file.read_present(&others, &device)?;
    let view = |name: &str| {
        let at = ROPE_ARGUMENTS.iter().skip(1).position(|known| *known == name)?;
        others.get(at)?.as_ref().map(Tensor::view)
    };
    let operands = RopeOperands {
        k: view("k"),
        position_ids: view("position_ids"),
        cos: view("cos"),
        sin: view("sin"),
        freqs: view("freqs"),
        ..RopeOperands::new(&q)
    };
    let (q, k) = op.run(&operands).map_err(|error| of_the_call(error, &args.set))?;
    let results: Vec<Named> = [Some(("q", q)), k.map(|k| ("k", k))].into_iter().flatten().collect();
    target.write(&results)?;
    if io::stdout().is_terminal() {
        for (name, result) in &results {
            let (dtype, shape, to) = (result.dtype(), result.shape(), args.output.display());
            line(out, format!("{}: {name} {dtype} {shape} on {device} -> {to}", def.name))?;
        }
    }
    Ok(())
}

/// The op with its settings.
fn parse_settings(def: &'static RopeDef, settings: &[(String, String)]) -> Result<RopeOp> {
    let mut op = def.op();
    for (i, (name, value)) in settings.iter().enumerate() {
        if settings[..i].iter().any(|(earlier, _)| earlier == name) {
            return Err(Error::Usage(format!("--set {name} is given twice")));
        }
        let names = ROPE_SETTINGS.iter().map(|setting| setting.name);
        if !names.clone().any(|known| known == name) {
            let near = did_you_mean(&nearest(name, names.clone()));
            let known = names.collect::<Vec<_>>().join(", ");
            return Err(Error::Usage(format!("{} has no parameter {name:?}{near} (it has {known})", def.name)));
        }
        op = op.set(name, value).map_err(pointwise::Error::from)?;
    }
    op.check().map_err(|error| Error::Usage(error.to_string()))?;
    Ok(op)
}

/// A refusal of a setting that was given, or of one that is missing, is a fault of the call; what is left is about the
/// files. No setting has the name of a key that is read from a `config` beside it.
fn of_the_call(error: pointwise::Error, settings: &[(String, String)]) -> Error {
    let at_fault = match error.kind() {
        ErrorKind::Rope(
            RopeError::LayerType { .. }
            | RopeError::NotRotated { .. }
            | RopeError::MissingKey { key: "rotary_dim", .. },
        ) => true,
        ErrorKind::Rope(RopeError::MissingKey { key, .. } | RopeError::ListLength { key, .. }) => {
            is_given(key, settings)
        }
        ErrorKind::Rope(RopeError::InvalidValue { key, .. }) => is_given(key, settings),
        ErrorKind::Rope(RopeError::Contradiction { key, other, .. }) => {
            is_given(key, settings) || is_given(other, settings)
        }
        _ => false,
    };
    if at_fault { Error::Usage(error.to_string()) } else { error.into() }
}

/// True if a key, or the list that it is an entry of, is a setting that was given.
fn is_given(key: &str, settings: &[(String, String)]) -> bool {
    let name = key.split('[').next().unwrap_or(key);
    settings.iter().any(|(given, _)| given == name)
}

/// The names of the ops, for suggestions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ROPE.iter().map(|def| def.name)
}

/// The ops' elements of `list --json`.
pub(crate) fn descriptions() -> impl Iterator<Item = Value> {
    ROPE.iter().map(|def| {
        let parameters: Vec<_> = ROPE_SETTINGS
            .iter()
            .map(|setting| {
                let default = if setting.default.is_empty() { Value::Null } else { json!(setting.default) };
                json!({ "name": setting.name, "default": default, "doc": setting.doc })
            })
            .collect();
        let types = TYPES.map(DType::name);
        json!({
            "name": def.name,
            "kind": "rope",
            "arguments": ROPE_ARGUMENTS,
            "parameters": parameters,
            "types": types,
            "result": "same",
            // Each call chooses its own.
            "strategies": [],
            "accuracy": accuracy(),
            "doc": def.doc,
        })
    })
}

/// In ULP of the sum of a pair's magnitudes.
fn accuracy() -> Value {
    let ulp: serde_json::Map<_, _> = TYPES.iter().map(|dtype| (dtype.name().to_owned(), json!(BOUND))).collect();
    json!({ "exact": false, "ulp": ulp })
}

/// The ops as `list` shows them: name with operands, element types, what it does.
pub(crate) fn rows() -> impl Iterator<Item = (String, String, &'static str)> {
    ROPE.iter().map(|def| {
        let [q, others @ ..] = ROPE_ARGUMENTS;
        let signature = format!("{}({q}, [{}], ...)", def.name, others.join(", "));
        (signature, TYPES.map(DType::name).join(" "), def.doc)
    })
}

/// Batch, sequence, heads, lanes of the tour's tensor.
const SHAPE: [usize; 4] = [2, 96, 4, 64];

/// The tour's part: each op on each type against the rotation at f64. Returns the number of pairs of op and type, and
/// the faults.
///
/// # Errors
/// The errors of the device and the standard output.
pub(crate) fn tour(out: &mut impl Write, device: &Device, paint: Paint) -> Result<(usize, Vec<String>)> {
    let (mut pairs, mut faults) = (0, Vec::new());
    for def in ROPE {
        let (mut cells, mut good) = (Vec::new(), true);
        for dtype in TYPES {
            pairs += 1;
            let error = error(device, def, dtype)?;
            if error.is_nan() || error > BOUND {
                good = false;
                faults.push(format!("{} of {dtype}: off by {error:.2} ULP of the largest value", def.name));
            }
            cells.push(format!("{error:<CELL$.2}"));
        }
        let mark = if good { paint.good("ok") } else { paint.bad("FAIL") };
        // No other type is rotated.
        cells.resize(columns().count(), format!("{:<CELL$}", "-"));
        line(out, format!("{:<NAME$} {} {mark}", def.name, cells.join(" ")))?;
    }
    Ok((pairs, faults))
}

/// The largest error of an op, in ULP of the type at the largest value of a pair.
fn error(device: &Device, def: &'static RopeDef, dtype: DType) -> Result<f64> {
    let [batch, seq, heads, lanes] = SHAPE;
    let samples: Vec<f64> =
        (0..batch * seq * heads * lanes).map(|i| ((i * 37 + 11) % 1009) as f64 / 252.25 - 2.0).collect();
    let bytes: Vec<u8> = with_element!(dtype, E => {
        samples.iter().flat_map(|&x| judge::as_bytes(&<E as Element>::from_f64(x)).to_vec()).collect()
    });
    let tensor = Tensor::from_bytes(device, dtype, &bytes, SHAPE)?;
    let op = def.op().set("precision", "exact").map_err(pointwise::Error::from)?;
    let (y, _) = op.run(&RopeOperands::new(&tensor))?;
    let (x, y) = (numbers(dtype, &bytes), numbers(dtype, &y.to_bytes()?));
    let config = op.config(lanes).map_err(pointwise::Error::from)?;
    let frequencies = config.frequencies(seq as u64).map_err(pointwise::Error::from)?;
    let neighbours = def.pairs == pointwise::rope::RopePairs::Interleaved;
    let mut worst = 0.0_f64;
    for (row, (x, y)) in x.chunks_exact(lanes).zip(y.chunks_exact(lanes)).enumerate() {
        let position = (row / heads % seq) as f64;
        for (pair, inverse) in frequencies.inv_freq_f64.iter().enumerate() {
            let (a, b) = if neighbours { (2 * pair, 2 * pair + 1) } else { (pair, pair + lanes / 2) };
            let (sin, cos) = (position * inverse).sin_cos();
            let (sin, cos) = (sin * frequencies.attention_factor, cos * frequencies.attention_factor);
            let ulp = (x[a].abs() + x[b].abs()).max(f64::MIN_POSITIVE) * judge::ulp_at(dtype, 1.0);
            worst = worst.max((y[a] - (x[a] * cos - x[b] * sin)).abs() / ulp);
            worst = worst.max((y[b] - (x[b] * cos + x[a] * sin)).abs() / ulp);
        }
    }
    Ok(worst)
}
