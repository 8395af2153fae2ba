//! Reads the golden files: PyTorch's results, made by `tests/golden/make.py`, which describes their format.

use std::path::Path;

use pointwise::interop::safetensors::dtype;
use pointwise::{DType, Number};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;
use serde_json::Value;

/// The files that are compiled in, by group.
pub const EMBEDDED: &[(&str, &[u8])] = &[
    ("unary", include_bytes!("../golden/unary.safetensors")),
    ("binary", include_bytes!("../golden/binary.safetensors")),
    ("comparison", include_bytes!("../golden/comparison.safetensors")),
    ("bitwise", include_bytes!("../golden/bitwise.safetensors")),
    ("scalar", include_bytes!("../golden/scalar.safetensors")),
    ("ternary", include_bytes!("../golden/ternary.safetensors")),
    ("prelu", include_bytes!("../golden/prelu.safetensors")),
    ("gated", include_bytes!("../golden/gated.safetensors")),
    ("broadcast", include_bytes!("../golden/broadcast.safetensors")),
    ("promotion", include_bytes!("../golden/promotion.safetensors")),
    ("gradients", include_bytes!("../golden/gradients.safetensors")),
    ("fp8", include_bytes!("../golden/fp8.safetensors")),
    ("rows", include_bytes!("../golden/rows.safetensors")),
    ("encodings", include_bytes!("../golden/encodings.safetensors")),
];

/// One file.
#[derive(Clone, Debug)]
pub struct Group {
    /// The GPU whose kernels made it, or `cpu`.
    pub device: String,
    /// Its cases.
    pub cases: Vec<Case>,
}

/// One call of PyTorch.
#[derive(Clone, Debug)]
pub struct Case {
    /// Op, element types and form.
    pub name: String,
    /// The op, by its name here.
    pub op: String,
    /// Parameters that are not left at their default.
    pub params: Vec<(String, Number)>,
    /// Operands in call order.
    pub inputs: Vec<Input>,
    /// PyTorch's results.
    pub outputs: Vec<Data>,
    /// The same in f64, where the result is a float.
    pub exact: Vec<Option<Vec<f64>>>,
}

/// An operand.
#[derive(Clone, Debug)]
pub enum Input {
    /// A tensor.
    Tensor(Data),
    /// A number.
    Number(Number),
    /// Left out.
    Missing,
}

/// The contents of a tensor.
#[derive(Clone, Debug)]
pub struct Data {
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub shape: Vec<usize>,
    /// Elements in row-major order.
    pub bytes: Vec<u8>,
}

/// Returns all groups, from the folder `POINTWISE_GOLDEN` if it is set, else from the program.
///
/// # Errors
/// A file that is missing or has another format.
pub fn groups() -> Result<Vec<(&'static str, Group)>, String> {
    let folder = std::env::var_os("POINTWISE_GOLDEN");
    let read = |&(name, embedded): &(&'static str, &[u8])| {
        let group = match &folder {
            None => parse(embedded),
            Some(folder) => {
                let path = Path::new(folder).join(format!("{name}.safetensors"));
                let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                parse(&bytes)
            }
        };
        Ok((name, group.map_err(|why| format!("{name}.safetensors: {why}"))?))
    };
    EMBEDDED.iter().map(read).collect()
}

fn parse(bytes: &[u8]) -> Result<Group, String> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let about = metadata.metadata().as_ref().and_then(|map| map.get("golden")).ok_or("no golden metadata")?;
    let about: Value = serde_json::from_str(about).map_err(|error| error.to_string())?;
    if about["format"] != 1 {
        return Err(format!("format {}, not 1", about["format"]));
    }
    let cases = about["cases"].as_array().ok_or("no cases")?;
    let cases = cases.iter().map(|json| case(json, &tensors)).collect::<Result<_, _>>()?;
    Ok(Group { device: text(&about["device"])?, cases })
}

fn case(json: &Value, tensors: &SafeTensors<'_>) -> Result<Case, String> {
    let list = |key: &str| json[key].as_array().ok_or_else(|| format!("no {key}"));
    let params = json["params"].as_object().ok_or("no params")?;
    Ok(Case {
        name: text(&json["name"])?,
        op: text(&json["op"])?,
        params: params.iter().map(|(name, value)| Ok((name.clone(), number(value)?))).collect::<Result<_, String>>()?,
        inputs: list("inputs")?.iter().map(|json| input(json, tensors)).collect::<Result<_, _>>()?,
        outputs: list("outputs")?.iter().map(|name| data(name, tensors)).collect::<Result<_, _>>()?,
        exact: list("exact")?.iter().map(|name| exact(name, tensors)).collect::<Result<_, _>>()?,
    })
}

fn text(json: &Value) -> Result<String, String> {
    json.as_str().map(str::to_owned).ok_or_else(|| format!("{json} is not a string"))
}

fn number(json: &Value) -> Result<Number, String> {
    let number = json.as_i64().map(Number::Int);
    let number = number.or_else(|| json.as_bool().map(Number::Bool)).or_else(|| json.as_f64().map(Number::Float));
    let number = number.or_else(|| json.as_str()?.parse().ok().map(Number::Float));
    number.ok_or_else(|| format!("{json} is not a number"))
}

fn input(json: &Value, tensors: &SafeTensors<'_>) -> Result<Input, String> {
    Ok(match json {
        Value::Null => Input::Missing,
        Value::String(_) => Input::Tensor(data(json, tensors)?),
        Value::Object(object) => match object.iter().next().ok_or("an operand of no kind")? {
            // 3.0 is written as it is, but 3e20 without a point.
            (kind, value) if kind == "float" => match number(value)? {
                Number::Int(whole) => Input::Number(Number::Float(whole as f64)),
                number => Input::Number(number),
            },
            (_, value) => Input::Number(number(value)?),
        },
        other => return Err(format!("{other} is no operand")),
    })
}

fn data(name: &Value, tensors: &SafeTensors<'_>) -> Result<Data, String> {
    let view = tensors.tensor(&text(name)?).map_err(|error| error.to_string())?;
    let dtype = dtype(view.dtype()).map_err(|error| format!("{name}: {error}"))?;
    Ok(Data { dtype, shape: view.shape().to_vec(), bytes: view.data().to_vec() })
}

fn exact(name: &Value, tensors: &SafeTensors<'_>) -> Result<Option<Vec<f64>>, String> {
    if name.is_null() {
        return Ok(None);
    }
    let view = tensors.tensor(&text(name)?).map_err(|error| error.to_string())?;
    if view.dtype() != Dtype::F64 {
        return Err(format!("{name} is of type {:?}, not f64", view.dtype()));
    }
    let (eights, _) = view.data().as_chunks();
    Ok(Some(eights.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect()))
}
