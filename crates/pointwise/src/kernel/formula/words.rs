//! The parameters of a call as the words that a formula takes.

use pointwise_core::formula::ParamWords;
use pointwise_core::{DType, OpInfo, ParamInfo, ParamKind};

use crate::Number;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::check;

/// The words of parameters for elements of type `dtype`; those that are left out have their defaults.
///
/// # Errors
/// More parameters than the op has, or a number that one does not take.
pub(super) fn params(info: &OpInfo, params: &[Number], dtype: DType) -> Result<ParamWords> {
    words(info, params, |number, param| number.word(param, dtype))
}

/// The words of parameters for the formula in f64.
///
/// # Errors
/// As [`params`].
pub(super) fn oracle_params(info: &OpInfo, params: &[Number], dtype: DType) -> Result<ParamWords> {
    words(info, params, |number, param| Ok(number.oracle(param, dtype)?.to_bits()))
}

/// The words of parameters for the formula in f64 on elements of f64: not rounded to an element type.
///
/// # Errors
/// As [`params`].
pub(super) fn exact_params(info: &OpInfo, params: &[Number]) -> Result<ParamWords> {
    words(info, params, |number, param| Ok(number.to_f64(param).to_bits()))
}

/// Parameters without the defaults behind the last number: these are none.
pub(super) fn given(params: &[Number]) -> &[Number] {
    let count = params.iter().rposition(|&number| number != Number::Default).map_or(0, |last| last + 1);
    &params[..count]
}

fn words(info: &OpInfo, params: &[Number], of_type: impl Fn(Number, &ParamInfo) -> Result<u64>) -> Result<ParamWords> {
    let params = given(params);
    if params.len() > info.params.len() {
        return Err(too_many(info, params.len()));
    }
    let mut words = ParamWords::default();
    let mut slots = words.iter_mut();
    let mut put = |word| {
        if let Some(slot) = slots.next() {
            *slot = word;
        }
    };
    for (k, param) in info.params.iter().enumerate() {
        let number = params.get(k).copied().unwrap_or_default();
        let value = number.to_f64(param);
        match param.kind {
            ParamKind::Probability => {
                if !(0.0..=1.0).contains(&value) {
                    return Err(refuse(param, number, "must be from 0 to 1"));
                }
                put(of_type(number, param)?);
            }
            ParamKind::Whole => put(whole(param, number)? as u64),
            ParamKind::Flag => {
                if value != 0.0 && value != 1.0 {
                    return Err(refuse(param, number, "must be true, false, 1 or 0"));
                }
                put(u64::from(value != 0.0));
            }
            ParamKind::Open => {
                let is_there = number != Number::Default;
                put(u64::from(is_there));
                put(if is_there { of_type(number, param)? } else { 0 });
            }
            _ => put(of_type(number, param)?),
        }
    }
    Ok(words)
}

/// More parameters than the op has.
#[cold]
pub(super) fn too_many(info: &OpInfo, given: usize) -> Error {
    let names: Vec<&str> = info.params.iter().map(|param| param.name).collect();
    check::wrong_count(info, "parameters", &names, given)
}

/// A whole number that an i64 holds.
fn whole(param: &ParamInfo, number: Number) -> Result<i64> {
    if let Number::Int(value) = number {
        return Ok(value);
    }
    let value = number.to_f64(param);
    // 2^63, which an f64 holds, is the first that is too large.
    if value.fract() != 0.0 || !(-(2.0_f64.powi(63))..2.0_f64.powi(63)).contains(&value) {
        return Err(refuse(param, number, "must be a whole number of 64 bits"));
    }
    Ok(value as i64)
}

#[cold]
fn refuse(param: &ParamInfo, number: Number, why: &str) -> Error {
    let value = match number {
        Number::Default => param.default.to_string(),
        number => number.to_string(),
    };
    ErrorKind::Parameter { name: param.name, value, why: why.to_owned() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: &[ParamInfo] = &[
        ParamInfo::number("a", 0.5),
        ParamInfo { name: "p", default: 0.1, kind: ParamKind::Probability },
        ParamInfo { name: "n", default: 3.0, kind: ParamKind::Whole },
        ParamInfo { name: "flag", default: 1.0, kind: ParamKind::Flag },
        ParamInfo { name: "bound", default: 0.0, kind: ParamKind::Open },
    ];
    const INFO: OpInfo = OpInfo { name: "op", params: PARAMS, ..OpInfo::FORMULA };

    fn f32s(value: f32) -> u64 {
        u64::from(value.to_bits())
    }

    #[test]
    fn every_kind_has_its_words() {
        let defaults = params(&INFO, &[], DType::F16).unwrap();
        assert_eq!(defaults, [f32s(0.5), f32s(0.1), 3, 1, 0, 0, 0, 0]);
        let given: [Number; 5] = [2.into(), 1.0.into(), (-4).into(), false.into(), 0.0.into()];
        let words = params(&INFO, &given, DType::F32).unwrap();
        assert_eq!(words, [f32s(2.0), f32s(1.0), -4_i64 as u64, 0, 1, f32s(0.0), 0, 0]);
        let oracle = oracle_params(&INFO, &given, DType::F32).unwrap();
        assert_eq!((oracle[0], oracle[2], oracle[4]), (2.0_f64.to_bits(), -4_i64 as u64, 1));
    }

    #[test]
    fn what_a_parameter_does_not_take_is_refused() {
        let with = |k: usize, number: Number| {
            let mut given = [Number::Default; 5];
            given[k] = number;
            params(&INFO, &given, DType::F32).unwrap_err().to_string()
        };
        for p in [-0.1, 1.5, f64::NAN] {
            assert!(with(1, p.into()).contains("p") && with(1, p.into()).contains("from 0 to 1"));
        }
        for n in [0.5, f64::INFINITY, 1e19] {
            assert!(with(2, n.into()).contains("whole number"));
        }
        assert!(with(3, 2.into()).contains("true"));
        let mut six = [Number::Default; 6];
        assert!(params(&INFO, &six, DType::F32).is_ok());
        six[5] = 1.into();
        assert!(params(&INFO, &six, DType::F32).unwrap_err().to_string().contains("6 parameters"));
    }
}
