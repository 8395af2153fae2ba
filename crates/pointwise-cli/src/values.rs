//! Parameters from `NAME=VALUE`.

use pointwise::{Number, ParamInfo};
use pointwise_core::op::MAX_PARAMS;

use crate::error::{Error, Result, did_you_mean, nearest};
use crate::registry::{Op, Params};

/// A parameter of PyTorch's that is a word and chooses between ops of the table.
pub(crate) struct Choice {
    /// The op that has the parameter.
    pub(crate) op: &'static str,
    /// The parameter.
    pub(crate) param: &'static str,
    /// Each value and the op it stands for; the first is the default.
    pub(crate) values: &'static [(&'static str, &'static str)],
}

const CHOICES: &[Choice] =
    &[Choice { op: "gelu", param: "approximate", values: &[("none", "gelu"), ("tanh", "gelu_tanh")] }];

/// A parameter of PyTorch's that the table gives to an op of its own: setting it asks for that op.
struct Variant {
    /// The op that has the parameter in PyTorch.
    op: &'static str,
    /// The op of the table that has it.
    with: &'static str,
}

const VARIANTS: &[Variant] = &[Variant { op: "round", with: "round_decimals" }];

/// The op of the table that has those parameters that an op has in PyTorch only.
fn variant(op: Op) -> Option<Op> {
    let variant = VARIANTS.iter().find(|variant| variant.op == op.info().name)?;
    Op::find(variant.with).ok()
}

/// The numbers that an op takes, those of its variant included.
pub(crate) fn params(op: Op) -> impl Iterator<Item = &'static ParamInfo> {
    let others = variant(op).map_or(&[][..], |variant| variant.info().params);
    op.info().params.iter().chain(others)
}

/// The choices of an op.
pub(crate) fn choices(op: Op) -> impl Iterator<Item = &'static Choice> {
    CHOICES.iter().filter(move |choice| choice.op == op.info().name)
}

/// The op and the parameters that settings ask for; parameters that are not set have their defaults.
///
/// # Errors
/// An unknown name, a name given twice, a value that is none.
pub(crate) fn settle(mut op: Op, settings: &[(String, String)]) -> Result<(Op, Params)> {
    let asked = op;
    let mut params = [Number::Default; MAX_PARAMS];
    for (i, (name, value)) in settings.iter().enumerate() {
        if settings[..i].iter().any(|(earlier, _)| earlier == name) {
            return Err(Error::Usage(format!("--set {name} is given twice")));
        }
        if let Some(choice) = choices(asked).find(|choice| choice.param == name) {
            let chosen = choice.values.iter().find(|(word, _)| word == value).ok_or_else(|| {
                let words: Vec<_> = choice.values.iter().map(|(word, _)| *word).collect();
                Error::Usage(format!("{name}={value}: must be {}", words.join(" or ")))
            })?;
            op = Op::find(chosen.1)?;
            continue;
        }
        let position = |op: Op| op.info().params.iter().position(|info| info.name == name);
        let at = match position(asked) {
            Some(at) => at,
            None => {
                op = variant(asked).ok_or_else(|| unknown(asked, name))?;
                position(op).ok_or_else(|| unknown(asked, name))?
            }
        };
        params[at] = parse(&op.info().params[at], value)?;
    }
    Ok((op, params))
}

fn unknown(op: Op, name: &str) -> Error {
    let names: Vec<_> = params(op).map(|info| info.name).chain(choices(op).map(|choice| choice.param)).collect();
    let known = match names.as_slice() {
        [] => "it has none".to_owned(),
        names => format!("it has {}", names.join(", ")),
    };
    let near = did_you_mean(&nearest(name, names.iter().copied()));
    Error::Usage(format!("{} has no parameter {name:?}{near} ({known})", op.info().name))
}

/// A number as PyTorch's users write it: `2`, `-0.5`, `1e-3`, `inf`, `nan`, `true`; `none` for a bound that is open.
fn parse(info: &ParamInfo, value: &str) -> Result<Number> {
    match value.to_ascii_lowercase().as_str() {
        "true" => return Ok(Number::Bool(true)),
        "false" => return Ok(Number::Bool(false)),
        "none" if is_open(info) => return Ok(Number::Default),
        _ => {}
    }
    if let Ok(value) = value.parse::<i64>() {
        return Ok(Number::Int(value));
    }
    value.parse::<f64>().map(Number::Float).map_err(|_| {
        let or_none = if is_open(info) { ", or none" } else { "" };
        Error::Usage(format!(
            "{}={value}: not a number; write it as 2, -0.5, 1e-3, inf, nan, true or false{or_none}",
            info.name
        ))
    })
}

/// Whether PyTorch's default is `None`: a bound that does not bind, or a value that depends on the element type.
pub(crate) fn is_open(info: &ParamInfo) -> bool {
    info.default.is_infinite() || info.default.abs() == f64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(given: &[(&str, &str)]) -> Vec<(String, String)> {
        given.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn numbers() {
        let slope = ParamInfo { name: "negative_slope", default: 0.01 };
        for (text, number) in [
            ("2", Number::Int(2)),
            ("-3", Number::Int(-3)),
            ("0.5", Number::Float(0.5)),
            ("1e3", Number::Float(1e3)),
            ("-inf", Number::Float(f64::NEG_INFINITY)),
            ("True", Number::Bool(true)),
            ("9223372036854775808", Number::Float(9_223_372_036_854_775_808.0)),
        ] {
            assert_eq!(parse(&slope, text).unwrap(), number, "{text}");
        }
        assert!(matches!(parse(&slope, "NaN").unwrap(), Number::Float(value) if value.is_nan()));
        for bad in ["", "x", "0x10", "1,5", "1 2", "none", "--1", "tru"] {
            assert_eq!(parse(&slope, bad).unwrap_err().code(), 2, "{bad}");
        }
        let open = ParamInfo { name: "max", default: f64::INFINITY };
        assert_eq!(parse(&open, "None").unwrap(), Number::Default);
    }

    #[test]
    fn decimals_choose_the_op() {
        let round = Op::find("round").unwrap();
        let (op, params) = settle(round, &settings(&[("decimals", "2")])).unwrap();
        assert_eq!((op.info().name, params[0]), ("round_decimals", Number::Int(2)));
        let (op, _) = settle(round, &[]).unwrap();
        assert_eq!(op.info().name, "round");
        let error = settle(round, &settings(&[("digits", "2")])).err().unwrap();
        assert!(error.to_string().ends_with("(it has decimals)"), "{error}");
    }

    #[test]
    fn approximate_chooses_the_op() {
        let gelu = Op::find("gelu").unwrap();
        let (op, _) = settle(gelu, &settings(&[("approximate", "tanh")])).unwrap();
        assert_eq!(op.info().name, "gelu_tanh");
        let (op, _) = settle(gelu, &settings(&[("approximate", "none")])).unwrap();
        assert_eq!(op.info().name, "gelu");
        let error = settle(gelu, &settings(&[("approximate", "erf")])).err().unwrap();
        assert_eq!(error.to_string(), "approximate=erf: must be none or tanh");
    }

    #[test]
    fn every_choice_is_an_op() {
        for choice in CHOICES {
            assert!(Op::find(choice.op).is_ok());
            for (_, op) in choice.values {
                assert!(Op::find(op).is_ok(), "{op}");
            }
        }
    }
}
