//! The parameters of a call as the words that a formula takes.

use pointwise_core::formula::{MAX_WORDS, ParamWords};
use pointwise_core::{DType, OpInfo, ParamInfo, ParamKind};

use super::scalar;
use crate::Number;
use crate::error::{Error, ErrorKind, Result};

/// The parameters that a kernel object was given, kept until a call checks them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Params {
    numbers: [Number; MAX_WORDS],
    /// The first for which there was no room.
    beyond: Option<Number>,
    /// True if there are any.
    any: bool,
}

impl Params {
    /// Keeps parameters of any count. Defaults need no room.
    pub(crate) fn new(params: &[Number]) -> Params {
        let mut kept = Params { any: !params.is_empty(), ..Params::default() };
        kept.numbers.iter_mut().zip(params).for_each(|(kept, number)| *kept = *number);
        kept.beyond = params.iter().skip(MAX_WORDS).copied().find(|&number| number != Number::Default);
        kept
    }

    /// Those of an op.
    ///
    /// # Errors
    /// More than it has.
    pub(crate) fn of(&self, info: &OpInfo) -> Result<&[Number]> {
        let (own, more) = self.numbers.split_at(info.params.len().min(MAX_WORDS));
        match more.iter().chain(&self.beyond).find(|&&number| number != Number::Default) {
            None => Ok(own),
            Some(number) => Err(too_many(info, *number)),
        }
    }
}

/// The words of parameters for elements of type `dtype`; those that are left out have their defaults.
///
/// # Errors
/// More parameters than the op has, or a number that one does not take.
#[inline]
pub(crate) fn words(info: &OpInfo, params: &Params, dtype: DType) -> Result<ParamWords> {
    if info.params.is_empty() && !params.any {
        return Ok(ParamWords::default());
    }
    some_words(info, params, dtype)
}

/// [`words`], where there is something to look at.
fn some_words(info: &OpInfo, params: &Params, dtype: DType) -> Result<ParamWords> {
    if info.properties.copies_ints && !dtype.is_float() {
        each(info, params, |_, _| Ok(0))?;
        return Ok(ParamWords::default());
    }
    each(info, params, |number, param| {
        let number = if info.properties.factor_alpha { scalar::alpha(number, dtype)? } else { number };
        number.word(param, dtype)
    })
}

/// The words of parameters for the formula in f64.
///
/// # Errors
/// As [`words`].
pub(super) fn oracle_words(info: &OpInfo, params: &Params, dtype: DType) -> Result<ParamWords> {
    if info.properties.copies_ints && !dtype.is_float() {
        return words(info, params, dtype);
    }
    each(info, params, |number, param| Ok(number.oracle(param, dtype)?.to_bits()))
}

/// The words of parameters for the formula in f64 on elements of f64: not rounded to an element type.
///
/// # Errors
/// As [`words`].
pub(super) fn exact_words(info: &OpInfo, params: &Params) -> Result<ParamWords> {
    each(info, params, |number, param| Ok(number.to_f64(param).to_bits()))
}

/// The words of each parameter, a number's by `of_type`.
fn each(info: &OpInfo, params: &Params, of_type: impl Fn(Number, &ParamInfo) -> Result<u64>) -> Result<ParamWords> {
    let params = params.of(info)?;
    scalar::check_whole(info, params)?;
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
                    return Err(refuse(param, number, "must be a probability, from 0 to 1"));
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

/// More parameters than the op has, of which this is one.
#[cold]
fn too_many(info: &OpInfo, number: Number) -> Error {
    let names: Vec<_> = info.params.iter().map(|param| param.name).collect();
    let takes = if names.is_empty() { "no parameter".to_owned() } else { format!("only {}", names.join(", ")) };
    let why = format!("{} takes {takes}: leave it out", info.name);
    ErrorKind::Parameter { name: "params", value: number.to_string(), why }.into()
}

/// A whole number that an i64 holds.
fn whole(param: &ParamInfo, number: Number) -> Result<i64> {
    match number {
        Number::Default => return Ok(param.whole),
        Number::Int(value) => return Ok(value),
        Number::Float(_) | Number::Bool(_) => {}
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
        ParamInfo { kind: ParamKind::Probability, ..ParamInfo::number("p", 0.1) },
        ParamInfo::whole("n", 9_007_199_254_740_993),
        ParamInfo { kind: ParamKind::Flag, ..ParamInfo::number("flag", 1.0) },
        ParamInfo { kind: ParamKind::Open, ..ParamInfo::number("bound", 0.0) },
    ];
    const INFO: OpInfo = OpInfo { name: "op", params: PARAMS, ..OpInfo::FORMULA };

    fn f32s(value: f32) -> u64 {
        u64::from(value.to_bits())
    }

    #[test]
    fn every_kind_has_its_words() {
        let defaults = words(&INFO, &Params::default(), DType::F16).unwrap();
        assert_eq!(defaults, [f32s(0.5), f32s(0.1), 9_007_199_254_740_993, 1, 0, 0, 0, 0]);
        let given: [Number; 5] = [2.into(), 1.0.into(), (-4).into(), false.into(), 0.0.into()];
        let given = Params::new(&given);
        assert_eq!(
            words(&INFO, &given, DType::F32).unwrap(),
            [f32s(2.0), f32s(1.0), -4_i64 as u64, 0, 1, f32s(0.0), 0, 0]
        );
        let oracle = oracle_words(&INFO, &given, DType::F32).unwrap();
        assert_eq!((oracle[0], oracle[2], oracle[4]), (2.0_f64.to_bits(), -4_i64 as u64, 1));
    }

    #[test]
    fn what_a_parameter_does_not_take_is_refused() {
        let with = |k: usize, number: Number| {
            let mut given = [Number::Default; 5];
            given[k] = number;
            words(&INFO, &Params::new(&given), DType::F32).unwrap_err().to_string()
        };
        for p in [-0.1, 1.5, f64::NAN] {
            assert!(with(1, p.into()).contains("p") && with(1, p.into()).contains("from 0 to 1"));
        }
        for n in [0.5, f64::INFINITY, 1e19] {
            assert!(with(2, n.into()).contains("whole number"));
        }
        assert!(with(3, 2.into()).contains("true"));
        let mut nine = [Number::Default; 9];
        assert!(words(&INFO, &Params::new(&nine), DType::F32).is_ok());
        for beyond in [5, 8] {
            nine[beyond] = 1.into();
            let error = words(&INFO, &Params::new(&nine), DType::F32).unwrap_err().to_string();
            assert!(error.contains("op takes only a, p, n, flag, bound"), "{error}");
        }
    }
}
