//! Numbers and truth values from text.

use pointwise::{Number, info::ParamInfo};

use crate::error::{Error, Result};

/// A number as PyTorch's users write it: `2`, `-0.5`, `1e-3`, `inf`, `nan`, `true`; `none` for a bound that is open.
///
/// # Errors
/// Text that is no number.
pub(crate) fn parse(info: &ParamInfo, value: &str) -> Result<Number> {
    number_or_none(info.name, value, is_open(info))
}

/// Like [`parse`], but the value must be there.
///
/// # Errors
/// Text that is no number.
pub(crate) fn number(name: &str, value: &str) -> Result<Number> {
    number_or_none(name, value, false)
}

/// Like [`parse`], but `is_open` says whether `none` is a value.
///
/// # Errors
/// Text that is no number.
pub(crate) fn number_or_none(name: &str, value: &str, is_open: bool) -> Result<Number> {
    match value.to_ascii_lowercase().as_str() {
        "true" => return Ok(Number::Bool(true)),
        "false" => return Ok(Number::Bool(false)),
        "none" if is_open => return Ok(Number::Default),
        _ => {}
    }
    if let Ok(value) = value.parse::<i64>() {
        return Ok(Number::Int(value));
    }
    value.parse::<f64>().map(Number::Float).map_err(|_| {
        let or_none = if is_open { ", or none" } else { "" };
        Error::Usage(format!(
            "{name}={value}: not a number; write it as 2, -0.5, 1e-3, inf, nan, true or false{or_none}"
        ))
    })
}

/// True if PyTorch's default is `None`: a bound without effect, or a value that depends on the element type.
pub(crate) fn is_open(info: &ParamInfo) -> bool {
    info.default.is_infinite() || info.default.abs() == f64::MAX
}

/// Reads `true`, `false`, `1` or `0`.
pub(crate) fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let slope = ParamInfo::number("negative_slope", 0.01);
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
        let open = ParamInfo::number("max", f64::INFINITY);
        assert_eq!(parse(&open, "None").unwrap(), Number::Default);
    }
}
