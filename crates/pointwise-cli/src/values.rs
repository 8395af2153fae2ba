//! Parameters from `NAME=VALUE`.

use pointwise::{
    Number,
    info::{CHOICES, Choice, ParamInfo},
};
use pointwise_core::op::MAX_PARAMS;

use crate::error::{Error, Result, did_you_mean, nearest};
use crate::file::Source;
use crate::number::{number_or_none, parse, truth};
use crate::registry::{Op, Params};
use crate::settings::{self, Setting, Settings};

/// A parameter of PyTorch's that belongs to an op of its own in the registry: setting it asks for that op.
struct Variant {
    /// The op that has the parameter in PyTorch.
    op: &'static str,
    /// The op of the registry that has it.
    with: &'static str,
}

const VARIANTS: &[Variant] = &[Variant { op: "round", with: "round_decimals" }];

/// An op whose parameters may be tensors: then it is another op of the registry, which has them as operands.
struct TensorForm {
    /// The op that has them as parameters.
    op: &'static str,
    /// The op of the registry that has them as operands.
    with: &'static str,
}

const TENSOR_FORMS: &[TensorForm] = &[TensorForm { op: "clamp", with: "clamp_tensor" }];

/// True if `none` leaves argument `k` out: an op that takes another's parameters as operands needs only one of them.
pub(crate) fn is_optional(op: Op, k: usize) -> bool {
    k > 0 && TENSOR_FORMS.iter().any(|form| form.with == op.info().name)
}

/// The op of the registry that takes an op's parameters as tensors.
fn tensor_form(op: Op) -> Option<Op> {
    let form = TENSOR_FORMS.iter().find(|form| form.op == op.info().name)?;
    Op::find(form.with).ok()
}

/// The op of the registry that has those parameters that an op has in PyTorch only.
fn variant(op: Op) -> Option<Op> {
    let variant = VARIANTS.iter().find(|variant| variant.op == op.info().name)?;
    Op::find(variant.with).ok()
}

/// The numbers that an op and its variant take.
fn params(op: Op) -> impl Iterator<Item = &'static ParamInfo> {
    let others = variant(op).map_or(&[][..], |variant| variant.info().params);
    op.info().params.iter().chain(others)
}

/// The choices of an op.
fn choices(op: Op) -> impl Iterator<Item = &'static Choice> {
    CHOICES.iter().filter(move |choice| choice.op == op.info().name)
}

/// Finds the op that a word chooses: of a flag also `1`, `0` and other cases.
///
/// # Errors
/// A word that is none of the choice's.
fn chosen(choice: &Choice, word: &str) -> Result<&'static str> {
    let value = match truth(word) {
        Some(true) if choice.is_flag() => "true",
        Some(false) if choice.is_flag() => "false",
        _ => word,
    };
    choice.chosen(value).ok_or_else(|| {
        let words: Vec<_> = choice.values.iter().map(|(word, _)| *word).collect();
        Error::Usage(format!("{}={word}: must be {}", choice.param, words.join(" or ")))
    })
}

/// The request of a call, without its tensors.
pub(crate) struct Call {
    pub(crate) op: Op,
    /// Parameters that are not set have their defaults.
    pub(crate) params: Params,
    /// The arguments given as numbers, in the order of [`Op::arguments`]; the others are in the file.
    pub(crate) numbers: Vec<Option<Number>>,
    /// Settings that are no parameters.
    pub(crate) settings: Settings,
    /// The op as the call names it; its settings may have chosen another.
    asked: Op,
}

impl Call {
    /// Combines the call with a file. No tensor of the file may go unused if it has the name of a parameter or operand
    /// of the op. A tensor with a parameter's name selects the op that takes it as an operand. A setting goes before a
    /// tensor of its name.
    ///
    /// # Errors
    /// A tensor that the op takes only as a number, or only as a part of another one; no bound at all.
    pub(crate) fn beside(mut self, file: &Source<'_>, settings: &[(String, String)]) -> Result<Call> {
        let asked = self.asked;
        let is_left = |name: &str| file.has(name) && !settings.iter().any(|(given, _)| given == name);
        let form = tensor_form(asked);
        if let Some(form) = form.filter(|form| form.arguments().iter().any(|name| is_left(name) && takes(asked, name)))
        {
            let names = form.arguments().iter();
            let given = |name: &&str| asked.info().params.iter().position(|info| info.name == *name);
            self.numbers = names.map(|name| given(name).map(|at| self.params[at])).collect();
            for (number, name) in self.numbers.iter_mut().zip(form.arguments()) {
                *number = number.filter(|_| !is_left(name));
            }
            self.params = [Number::Default; MAX_PARAMS];
            self.op = form;
        }
        let op = self.op;
        for (k, name) in op.arguments().iter().enumerate() {
            if is_optional(op, k) && self.numbers[k].is_none() && !file.has(name) {
                self.numbers[k] = Some(Number::Default);
            }
        }
        let is_used = |name: &str| op.arguments().contains(&name);
        let may_be_there = |it: &Beside| matches!(it, Beside::Setting(setting) if setting.may_be_in_file());
        let mut others = beside(asked).into_iter().filter(|it| !may_be_there(it)).map(Beside::name);
        if let Some(name) = others.find(|name| is_left(name) && !is_used(name)) {
            let has_all = |other: &Op| [name].iter().chain(asked.arguments()).all(|it| other.arguments().contains(it));
            let other = Op::all().find(has_all);
            let other = other.map_or_else(String::new, |other| format!(", run {}", other.info().name));
            let asked = asked.info().name;
            return Err(file.refuse(
                name,
                &format!("{asked} does not take {name} as a tensor: give --set {name}=...{other}, or leave it out"),
            ));
        }
        // A gated op's, which are parts of one tensor.
        let is_part = |part: &&&str| !is_used(part) && !takes(asked, part);
        if let Some(part) = asked.info().operands.iter().filter(is_part).find(|part| file.has(part)) {
            let why = format!("{} takes {part} as a half of x: join the halves, or leave it out", asked.info().name);
            return Err(file.refuse(part, &why));
        }
        if form.is_some_and(|form| form.info().name != op.info().name) && self.params == [Number::Default; MAX_PARAMS] {
            return Err(no_bound(op));
        }
        check_numbers(op, &self.numbers)?;
        Ok(self)
    }
}

/// The names of the arguments that are no tensors.
fn parameters(op: Op) -> impl Iterator<Item = &'static str> {
    beside(op).into_iter().map(Beside::name)
}

/// An argument of an op that is no tensor.
#[derive(Clone, Copy)]
pub(crate) enum Beside {
    Param(&'static ParamInfo),
    Choice(&'static Choice),
    Setting(Setting),
}

impl Beside {
    fn name(self) -> &'static str {
        match self {
            Beside::Param(param) => param.name,
            Beside::Choice(choice) => choice.param,
            Beside::Setting(setting) => setting.name,
        }
    }
}

/// Returns the arguments of an op that are no tensors, in the order of listings: an element type comes last.
pub(crate) fn beside(op: Op) -> Vec<Beside> {
    let (last, first): (Vec<Setting>, Vec<Setting>) = settings::of(op).into_iter().partition(|it| it.name == "dtype");
    let params = params(op).map(Beside::Param).chain(first.into_iter().map(Beside::Setting));
    params.chain(choices(op).map(Beside::Choice)).chain(last.into_iter().map(Beside::Setting)).collect()
}

/// True if the op takes a parameter of that name.
fn takes(op: Op, name: &str) -> bool {
    parameters(op).any(|known| known == name)
}

fn no_bound(op: Op) -> Error {
    Error::Usage(format!("{} needs one bound at least: min or max", op.info().name))
}

/// The op, the parameters and the scalar operands that settings ask for.
///
/// # Errors
/// An unknown name, a name given twice, a value that is none; no operand left for a tensor.
pub(crate) fn parse_settings(mut op: Op, settings: &[(String, String)]) -> Result<Call> {
    let asked = op;
    let mut params = [Number::Default; MAX_PARAMS];
    let mut numbers = vec![None; asked.arguments().len()];
    let mut extra = Settings::new(asked);
    for (i, (name, value)) in settings.iter().enumerate() {
        if settings[..i].iter().any(|(earlier, _)| earlier == name) {
            return Err(Error::Usage(format!("--set {name} is given twice")));
        }
        if let Some(choice) = choices(asked).find(|choice| choice.param == name) {
            op = Op::chosen(chosen(choice, value)?)?;
            continue;
        }
        if extra.set(name, value)? {
            continue;
        }
        if let Some(k) = asked.scalars().iter().position(|operand| operand == name) {
            numbers[k] = Some(number_or_none(name, value, is_optional(asked, k))?);
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
    check_numbers(op, &numbers)?;
    extra.check_complete(true)?;
    Ok(Call { op, params, numbers, settings: extra, asked })
}

/// A tensor decides element type and device, so that there must be one; not a condition, which is always bool.
fn check_numbers(op: Op, numbers: &[Option<Number>]) -> Result<()> {
    let (name, arguments) = (op.info().name, op.arguments());
    let decide = || (0..arguments.len()).filter(|&k| op.types(k) == op.info().types);
    if !arguments.is_empty() && !decide().any(|k| numbers[k].is_none()) {
        let names: Vec<_> = decide().map(|k| arguments[k]).collect();
        return Err(Error::Usage(format!("{name} of numbers alone: leave one of {} to the file", names.join(", "))));
    }
    let optional: Vec<usize> = (0..arguments.len()).filter(|&k| is_optional(op, k)).collect();
    if !optional.is_empty() && optional.iter().all(|&k| numbers[k] == Some(Number::Default)) {
        return Err(no_bound(op));
    }
    Ok(())
}

fn unknown(op: Op, name: &str) -> Error {
    let names: Vec<_> = parameters(op).chain(op.scalars().iter().copied()).collect();
    let known = match names.as_slice() {
        [] => "it has none".to_owned(),
        names => format!("it has {}", names.join(", ")),
    };
    let near = did_you_mean(&nearest(name, names.iter().copied()));
    Error::Usage(format!("{} has no parameter {name:?}{near} ({known})", op.info().name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(given: &[(&str, &str)]) -> Vec<(String, String)> {
        given.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn decimals_choose_the_op() {
        let round = Op::find("round").unwrap();
        let call = parse_settings(round, &set(&[("decimals", "2")])).unwrap();
        assert_eq!((call.op.info().name, call.params[0]), ("round_decimals", Number::Int(2)));
        assert_eq!(parse_settings(round, &[]).unwrap().op.info().name, "round");
        let error = parse_settings(round, &set(&[("digits", "2")])).err().unwrap();
        assert!(error.to_string().ends_with("(it has decimals)"), "{error}");
    }

    #[test]
    fn approximate_chooses_the_op() {
        let gelu = Op::find("gelu").unwrap();
        let chosen = |word| parse_settings(gelu, &set(&[("approximate", word)])).unwrap().op.info().name;
        assert_eq!((chosen("tanh"), chosen("none")), ("gelu_tanh", "gelu"));
        let error = parse_settings(gelu, &set(&[("approximate", "erf")])).err().unwrap();
        assert_eq!(error.to_string(), "approximate=erf: must be none or tanh");
    }

    #[test]
    fn operands_may_be_numbers() {
        let op = |name: &str, given: &[(&str, &str)]| parse_settings(Op::find(name).unwrap(), &set(given));
        let call = op("add", &[("b", "2"), ("alpha", "-1")]).unwrap();
        assert_eq!((call.numbers, call.params[0]), (vec![None, Some(Number::Int(2))], Number::Int(-1)));
        let call = op("clamp_tensor", &[("max", "none")]).unwrap();
        assert_eq!(call.numbers, [None, None, Some(Number::Default)]);
        assert!(op("where", &[("condition", "1"), ("b", "0.5")]).is_ok());
        for (name, given, words) in [
            ("add", &[("a", "1"), ("b", "2")][..], "add of numbers alone: leave one of a, b"),
            ("where", &[("a", "1"), ("b", "2")], "where of numbers alone: leave one of a, b"),
            ("clamp_tensor", &[("min", "none"), ("max", "none")], "needs one bound at least"),
            ("clamp_tensor", &[("x", "none")], "x=none: not a number"),
            ("silu_and_mul", &[("x", "1")], "no parameter \"x\""),
            ("lerp", &[("wieght", "1")], "did you mean weight? (it has a, b, weight)"),
        ] {
            let error = op(name, given).err().unwrap();
            assert!(error.to_string().contains(words), "{error}");
            assert_eq!(error.code(), 2);
        }
    }

    #[test]
    fn every_choice_is_an_op_of_the_same_arguments() {
        for choice in CHOICES {
            let asked = Op::find(choice.op).unwrap();
            for (_, op) in choice.values {
                assert_eq!(Op::chosen(op).unwrap().arguments(), asked.arguments(), "{op}");
            }
        }
    }
}
