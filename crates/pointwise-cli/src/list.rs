//! `pointwise list`: the ops.

use std::io::Write;

use pointwise::{
    DType, Strategy,
    info::{Accuracy, OpInfo, ParamInfo, ParamKind},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::number::is_open;
use crate::output::line;
use crate::registry::Op;
use crate::rope;
use crate::values::{Beside, beside};

/// Runs the command.
///
/// # Errors
/// The errors of the standard output.
pub(crate) fn list(out: &mut impl Write, json: bool) -> Result<()> {
    if json {
        let describe = |op| serde_json::to_value(describe(op)).map_err(|error| Error::Stdout(error.into()));
        let mut ops: Vec<Value> = Op::all().map(describe).collect::<Result<_>>()?;
        ops.extend(rope::descriptions());
        serde_json::to_writer_pretty(&mut *out, &ops).map_err(|error| Error::Stdout(error.into()))?;
        return line(out, "");
    }
    let types = |op: Op| {
        let star = if op.info().properties.int_to_float { " *" } else { "" };
        type_groups(op.info().types) + star
    };
    let of_table = |op: Op| (signature(op), types(op), op.info());
    let rows: Vec<[String; 5]> = Op::all()
        .map(of_table)
        .map(|(signature, types, info)| {
            [signature, types, result(info).to_owned(), accuracy(info.accuracy), gist(info.doc)]
        })
        .collect();
    let (a, b) = (width("op", rows.iter().map(|row| &row[0])), width("types", rows.iter().map(|row| &row[1])));
    line(out, format!("{:a$}  {:b$}  {:6}  {:8}  what it does", "op", "types", "result", "accuracy"))?;
    for [signature, types, result, accuracy, gist] in &rows {
        line(out, format!("{signature:a$}  {types:b$}  {result:6}  {accuracy:8}  {gist}"))?;
    }
    line(out, "")?;
    for (signature, types, gist) in rope::rows() {
        line(out, format!("{signature}  {types}  {gist}"))?;
    }
    line(out, "")?;
    line(
        out,
        "*: integers and bool are converted to f32. Operands of different types meet as torch.result_type says.",
    )?;
    let [floats, ints] = [DType::is_float, DType::is_int].map(names_of);
    line(out, format!("floats: {floats}; ints: {ints}. Accuracy is that of f32 results;"))?;
    line(out, "16-bit ones are within 1 ULP, fp8 ones correctly rounded. Strategies: `pointwise list --json`.")
}

/// An element of `list --json`. Names and meanings of its keys stay as they are; new ones may come.
#[derive(Serialize)]
struct Description {
    name: &'static str,
    kind: &'static str,
    arguments: &'static [&'static str],
    parameters: Vec<Value>,
    types: Vec<&'static str>,
    int_to_float: bool,
    result: &'static str,
    results: &'static [&'static str],
    strategies: Vec<Value>,
    accuracy: Value,
    doc: String,
}

fn describe(op: Op) -> Description {
    let info = op.info();
    let names = |dtypes: &[DType]| dtypes.iter().map(|dtype| dtype.name()).collect::<Vec<_>>();
    let all = beside(op);
    // If the op has settings, each parameter says if it must be given.
    let has_settings = all.iter().any(|it| matches!(it, Beside::Setting(_)));
    let parameters = all.into_iter().map(|it| match it {
        Beside::Param(param) if has_settings => {
            json!({ "name": param.name, "default": default_json(param), "required": false })
        }
        Beside::Param(param) => json!({ "name": param.name, "default": default_json(param) }),
        Beside::Choice(choice) if choice.is_flag() => {
            json!({ "name": choice.param, "default": false, "required": false })
        }
        Beside::Choice(choice) => {
            let values: Vec<_> = choice.values.iter().map(|(word, _)| *word).collect();
            json!({ "name": choice.param, "default": values.first(), "values": values })
        }
        Beside::Setting(setting) => setting.described(),
    });
    let strategies = Strategy::ALL.into_iter().filter_map(|strategy| {
        let types: Vec<_> = info.types.iter().copied().filter(|&dtype| op.serves(strategy, dtype)).collect();
        (!types.is_empty()).then(|| json!({ "name": strategy.name(), "types": names(&types) }))
    });
    let bound = |dtype: &DType| (dtype.name().to_owned(), json!(info.accuracy.bound(info.result_type(0, *dtype))));
    Description {
        name: info.name,
        kind: kind(op),
        arguments: op.arguments(),
        parameters: parameters.collect(),
        types: names(info.types),
        int_to_float: info.properties.int_to_float,
        result: result(info),
        results: info.outputs(),
        strategies: strategies.collect(),
        accuracy: json!({
            "exact": info.accuracy == Accuracy::Exact,
            "ulp": info.types.iter().map(bound).collect::<serde_json::Map<_, _>>(),
        }),
        doc: doc(info.doc),
    }
}

/// null is PyTorch's None. JSON has no infinities, and no default is one but those that are None.
fn default_json(param: &ParamInfo) -> Value {
    match param.kind {
        _ if is_open(param) => Value::Null,
        ParamKind::Whole => json!(param.whole),
        _ => json!(param.default),
    }
}

/// The shape of an op, in one word.
fn kind(op: Op) -> &'static str {
    let info = op.info();
    let [forward, gradient] = match () {
        () if info.is_of_rows() => ["rows"; 2],
        () if info.is_of_indices() => ["generator"; 2],
        () if info.is_random() => ["random"; 2],
        () if op.takes_halves() => ["gated", "gated_gradients"],
        () if info.channel_operands != 0 => ["channel", "channel_gradients"],
        () if info.properties.moves || info.is_gradient() && info.bool_operands() != 0 => {
            ["select", "select_gradients"]
        }
        () => {
            let forward = match info.operands.len() {
                1 => "unary",
                2 => "binary",
                _ => "ternary",
            };
            [forward, if info.results.len() == 1 { "backward" } else { "gradients" }]
        }
    };
    if info.is_gradient() { gradient } else { forward }
}

fn result(info: &OpInfo) -> &'static str {
    match info.result_type(0, DType::F32) {
        DType::Bool => "bool",
        _ if info.is_row_result(0) => "row",
        _ => "same",
    }
}

/// `leaky_relu(x, negative_slope=0.01)`.
pub(crate) fn signature(op: Op) -> String {
    let info = op.info();
    let mut parts: Vec<String> = op.arguments().iter().map(|&name| name.to_owned()).collect();
    parts.extend(beside(op).into_iter().map(|it| match it {
        Beside::Param(param) => {
            let default = match param.kind {
                _ if is_open(param) => "None".to_owned(),
                ParamKind::Whole => param.whole.to_string(),
                _ => param.default.to_string(),
            };
            format!("{}={default}", param.name)
        }
        Beside::Choice(choice) if choice.is_flag() => format!("{}=false", choice.param),
        Beside::Choice(choice) => {
            let words: Vec<_> = choice.values.iter().map(|(word, _)| *word).collect();
            format!("{}={}", choice.param, words.join("|"))
        }
        Beside::Setting(setting) => setting.shown(),
    }));
    format!("{}({})", info.name, parts.join(", "))
}

/// The names of the element types of a group.
fn names_of(is_in: fn(DType) -> bool) -> String {
    let group: Vec<_> = DType::ALL.into_iter().filter(|&dtype| is_in(dtype)).map(DType::name).collect();
    group.join(" ")
}

/// The element types with their two great groups by name.
pub(crate) fn type_groups(types: &[DType]) -> String {
    let mut words = Vec::new();
    let mut add = |group: &'static str, is_in: fn(DType) -> bool| {
        let all = DType::ALL.into_iter().filter(|&dtype| is_in(dtype));
        if all.clone().all(|dtype| types.contains(&dtype)) {
            words.push(group);
        } else {
            words.extend(all.filter(|&dtype| types.contains(&dtype)).map(DType::name));
        }
    };
    add("floats", DType::is_float);
    add("ints", DType::is_int);
    add("bool", |dtype| dtype == DType::Bool);
    words.join(" ")
}

pub(crate) fn accuracy(accuracy: Accuracy) -> String {
    match accuracy {
        Accuracy::Exact => "exact".to_owned(),
        Accuracy::Ulp(ulp) | Accuracy::Cancels(ulp) => format!("{ulp} ULP"),
    }
}

/// The first paragraph of the documentation, in one line.
pub(crate) fn doc(text: &str) -> String {
    let words = text.lines().map(str::trim).skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Its first clause, for a table.
fn gist(text: &str) -> String {
    let doc = doc(text).replace('`', "");
    doc.split(';').next().unwrap_or_default().trim_end_matches('.').to_owned()
}

fn width<'a>(title: &str, cells: impl Iterator<Item = &'a String>) -> usize {
    cells.map(String::len).chain([title.len()]).max().unwrap_or_default()
}
