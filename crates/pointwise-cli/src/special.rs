//! Ops beside the tables: their operands and settings are their own.

use std::io::{self, IsTerminal, Write};

use pointwise::{
    DType, Number, Philox, Strategy, Tensor,
    info::{Accuracy, MASKED_FILL, OpInfo},
    kernel::SinusoidalLayout,
    kernels, ops,
};
use serde_json::{Value, json};

use crate::args::Run;
use crate::device::device;
use crate::error::{Error, Result, did_you_mean, nearest};
use crate::file::{Source, Target};
use crate::output::line;
use crate::registry::Replaced;
use crate::run::{check_type, input, note};
use crate::values;

/// An op.
pub(crate) struct Special {
    /// Its name.
    pub(crate) name: &'static str,
    kind: &'static str,
    /// The tensors it takes.
    arguments: &'static [&'static str],
    /// Names and defaults of its settings; no default where one must be given.
    settings: &'static [(&'static str, Option<&'static str>)],
    /// The settings that may be a tensor without dimensions instead, as in PyTorch.
    tensors: &'static [&'static str],
    /// The strategies that the user may choose.
    strategies: &'static [Strategy],
    /// Its entry in the table.
    info: fn() -> &'static OpInfo,
    run: fn(&Work<'_>) -> Result<Done>,
}

/// The result, and the strategy that ran instead of the given one.
type Done = (Tensor, Option<Replaced>);

/// A call whose operands are read.
struct Work<'a> {
    settings: &'a Settings<'a>,
    operands: &'a [Tensor],
    /// The settings that are tensors of the file.
    numbers: &'a [(&'static str, Number)],
    device: &'a pointwise::Device,
    strategy: Strategy,
}

/// The settings of a call.
struct Settings<'a> {
    op: &'static Special,
    given: &'a [(String, String)],
}

/// Every op.
const ALL: &[Special] = &[
    Special {
        name: "masked_fill",
        kind: "select",
        arguments: &["x", "mask"],
        settings: &[("value", None)],
        tensors: &["value"],
        strategies: &[],
        info: || &MASKED_FILL,
        run: masked_fill,
    },
    Special {
        name: "dropout",
        kind: "random",
        arguments: &["x"],
        settings: &[("p", Some("0.5")), ("training", Some("true")), ("seed", Some("0")), ("offset", Some("0"))],
        tensors: &[],
        strategies: &[Strategy::ExplicitParallel, Strategy::RegisterCopy],
        info: || kernels::dropout(0.5).info(),
        run: dropout,
    },
    Special {
        name: "alibi",
        kind: "generator",
        arguments: &[],
        settings: &[("num_heads", None), ("seq_len", None), ("causal", Some("false")), ("dtype", Some("f32"))],
        tensors: &[],
        strategies: &[Strategy::Direct, Strategy::RegisterCopy],
        info: || kernels::alibi().info(),
        run: alibi,
    },
    Special {
        name: "sinusoidal",
        kind: "generator",
        arguments: &[],
        settings: &[("seq_len", None), ("d_model", None), ("halves", Some("false")), ("dtype", Some("f32"))],
        tensors: &[],
        strategies: &[Strategy::Direct, Strategy::RegisterCopy],
        info: || kernels::sinusoidal(SinusoidalLayout::Interleaved).info(),
        run: sinusoidal,
    },
];

/// Every op, in the order of `list`.
pub(crate) fn all() -> &'static [Special] {
    ALL
}

/// The op of a name.
pub(crate) fn find(name: &str) -> Option<&'static Special> {
    ALL.iter().find(|op| op.name == name)
}

/// The names of the ops, for suggestions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|op| op.name)
}

/// `pointwise run` of one of these ops.
///
/// # Errors
/// The errors of the call, the files, the op and the device.
pub(crate) fn run(out: &mut impl Write, args: &Run, op: &'static Special) -> Result<()> {
    let settings = Settings { op, given: &args.set };
    settings.check()?;
    if op.strategies.is_empty() && args.strategy != Strategy::Auto {
        return Err(Error::Usage(format!("{} chooses its strategy itself: leave --strategy out", op.name)));
    }
    let file = match (op.arguments.is_empty(), &args.input) {
        (true, None) => None,
        (true, Some(given)) => {
            let given = given.display();
            return Err(Error::Usage(format!("{} makes its tensor from --set alone: leave {given} out", op.name)));
        }
        (false, _) => Some(input(args)?),
    };
    let target = Target::new(&args.output)?;
    let device = device(&args.device)?;
    let mut file = file.map(Source::open).transpose()?;
    let numbers = file.as_mut().map_or(Ok(Vec::new()), |file| settings.of_file(file, &device))?;
    settings.check_complete(&numbers.iter().map(|(name, _)| *name).collect::<Vec<_>>())?;
    let operands = file.as_mut().map_or(Ok(Vec::new()), |file| file.read(op.arguments, &device))?;
    for (name, operand) in op.arguments.iter().zip(&operands) {
        let types = if *name == "mask" { &[DType::Bool] } else { op.types() };
        check_type(op.name, name, operand.dtype(), types)?;
    }
    let work =
        Work { settings: &settings, operands: &operands, numbers: &numbers, device: &device, strategy: args.strategy };
    let (y, replaced) = (op.run)(&work)?;
    drop(operands);
    let (dtype, shape) = (y.dtype(), *y.shape());
    target.write(&[("y", y)])?;
    note(args.strategy, replaced);
    if io::stdout().is_terminal() {
        line(out, format!("{}: y {dtype} {shape} on {device} -> {}", op.name, args.output.display()))?;
    }
    Ok(())
}

fn masked_fill(work: &Work<'_>) -> Result<Done> {
    let [x, mask] = work.operands else { return Err(work.wrong()) };
    let value = match work.numbers {
        [("value", value)] => *value,
        _ => values::number("value", work.settings.text("value"))?,
    };
    Ok((ops::masked_fill(x, mask, value)?, None))
}

fn dropout(work: &Work<'_>) -> Result<Done> {
    let [x] = work.operands else { return Err(work.wrong()) };
    let settings = work.settings;
    let rng = Philox { seed: settings.whole("seed")?, offset: settings.whole("offset")? };
    let p = match values::number("p", settings.text("p"))? {
        Number::Float(p) => p,
        Number::Int(p) => p as f64,
        _ => return Err(settings.refuse("p", "a probability, from 0 to 1")),
    };
    let kernel = kernels::dropout(p).training(settings.flag("training")?).strategy(work.strategy);
    let y = kernel.run(x, rng)?;
    let plan = (!x.device().is_cpu()).then(|| kernel.plan(x, &y, None)).transpose()?;
    Ok((y, plan.and_then(|plan| Some((plan.strategy, plan.replaced?)))))
}

fn alibi(work: &Work<'_>) -> Result<Done> {
    let settings = work.settings;
    let (heads, len) = (settings.size("num_heads")?, settings.size("seq_len")?);
    let kernel = if settings.flag("causal")? { kernels::alibi_causal() } else { kernels::alibi() };
    work.generate(&kernel, &[heads, len, len])
}

fn sinusoidal(work: &Work<'_>) -> Result<Done> {
    let settings = work.settings;
    let halves = settings.flag("halves")?;
    let layout = if halves { SinusoidalLayout::Halves } else { SinusoidalLayout::Interleaved };
    work.generate(&kernels::sinusoidal(layout), &[settings.size("seq_len")?, settings.size("d_model")?])
}

impl Work<'_> {
    fn wrong(&self) -> Error {
        let op = self.settings.op;
        Error::Failed(format!("{} takes the operands {}", op.name, op.arguments.join(", ")))
    }

    fn generate(&self, kernel: &pointwise::kernel::GeneratorKernel, shape: &[usize]) -> Result<Done> {
        let kernel = kernel.clone().strategy(self.strategy);
        let mut y = kernel.run(self.device, self.settings.dtype()?, shape)?;
        let plan = if !self.device.is_cpu() { Some(kernel.plan(&mut y)?) } else { None };
        Ok((y, plan.and_then(|plan| Some((plan.strategy, plan.replaced?)))))
    }
}

impl Settings<'_> {
    /// Checks that every setting is known, is given once and has a valid value.
    fn check(&self) -> Result<()> {
        let op = self.op;
        let names = || op.settings.iter().map(|(name, _)| *name);
        for (i, (name, _)) in self.given.iter().enumerate() {
            if self.given[..i].iter().any(|(earlier, _)| earlier == name) {
                return Err(Error::Usage(format!("--set {name} is given twice")));
            }
            if !names().any(|known| known == name) {
                let (near, known) = (did_you_mean(&nearest(name, names())), names().collect::<Vec<_>>().join(", "));
                return Err(Error::Usage(format!("{} has no parameter {name:?}{near} (it has {known})", op.name)));
            }
        }
        // A file may have some of those without a default: it is read later.
        self.check_complete(op.tensors)?;
        for (name, _) in op.settings.iter().filter(|(name, _)| !self.text(name).is_empty()) {
            match *name {
                "training" | "causal" | "halves" => drop(self.flag(name)?),
                "seed" | "offset" => drop(self.whole(name)?),
                "num_heads" | "seq_len" | "d_model" => drop(self.size(name)?),
                "dtype" => drop(self.dtype()?),
                _ => drop(values::number(name, self.text(name))?),
            }
        }
        Ok(())
    }

    /// Checks that the settings without a default are given, except those in `elsewhere`.
    fn check_complete(&self, elsewhere: &[&str]) -> Result<()> {
        let is_missing = |name: &str| self.text(name).is_empty() && !elsewhere.contains(&name);
        match self.op.settings.iter().find(|(name, _)| is_missing(name)) {
            Some((name, _)) => Err(Error::Usage(format!("{} needs --set {name}=...", self.op.name))),
            None => Ok(()),
        }
    }

    /// The settings that are not given, but tensors of the file.
    ///
    /// # Errors
    /// A tensor of a setting's name that cannot be one.
    fn of_file(&self, file: &mut Source<'_>, device: &pointwise::Device) -> Result<Vec<(&'static str, Number)>> {
        let mut numbers = Vec::new();
        for (name, _) in self.op.settings {
            if !file.has(name) || self.given.iter().any(|(given, _)| given == name) {
                continue;
            }
            let is_number = self.op.tensors.contains(name);
            let tensor = if is_number { file.read(&[*name], device)?.pop() } else { None };
            match tensor.filter(|tensor| tensor.shape().rank() == 0) {
                Some(tensor) => numbers.push((*name, element(&tensor)?)),
                None => {
                    let unless = if is_number { " with dimensions" } else { "" };
                    let op = self.op.name;
                    let why = format!(
                        "{op} does not take {name} as a tensor{unless}: give --set {name}=..., or leave it out"
                    );
                    return Err(file.refuse(name, &why));
                }
            }
        }
        Ok(numbers)
    }

    /// The value given, or the default; empty where there is neither.
    fn text(&self, name: &str) -> &str {
        let default = self.op.settings.iter().find(|(known, _)| *known == name).and_then(|(_, default)| *default);
        let given = self.given.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str());
        given.or(default).unwrap_or_default()
    }

    fn flag(&self, name: &str) -> Result<bool> {
        match self.text(name).to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(self.refuse(name, "true or false")),
        }
    }

    fn whole(&self, name: &str) -> Result<u64> {
        self.text(name).parse().map_err(|_| self.refuse(name, "a whole number from 0 to 2^64 - 1"))
    }

    fn size(&self, name: &str) -> Result<usize> {
        self.text(name).parse().map_err(|_| self.refuse(name, "a size: a whole number from 0"))
    }

    fn dtype(&self) -> Result<DType> {
        let types = self.op.types();
        types.iter().copied().find(|dtype| dtype.name() == self.text("dtype")).ok_or_else(|| {
            let names: Vec<_> = types.iter().map(|dtype| dtype.name()).collect();
            self.refuse("dtype", &format!("one of {}", names.join(", ")))
        })
    }

    fn refuse(&self, name: &str, must: &str) -> Error {
        Error::Usage(format!("{name}={}: must be {must}", self.text(name)))
    }
}

/// The element of a tensor without dimensions.
fn element(tensor: &Tensor) -> Result<Number> {
    Ok(match tensor.dtype() {
        DType::Bool => Number::Bool(tensor.item::<bool>()?),
        dtype if dtype.is_int() => Number::Int(tensor.to_dtype(DType::I64)?.item::<i64>()?),
        _ => Number::Float(tensor.to_dtype(DType::F32)?.item::<f32>()?.into()),
    })
}

impl Special {
    /// The element types of `x`, or of the result.
    pub(crate) fn types(&self) -> &'static [DType] {
        (self.info)().types
    }

    /// The error allowed.
    pub(crate) fn accuracy(&self) -> Accuracy {
        (self.info)().accuracy
    }

    fn doc(&self) -> &'static str {
        (self.info)().doc.trim()
    }
}

/// A line of `list`.
pub(crate) struct Row {
    /// Name, operands and settings.
    pub(crate) signature: String,
    pub(crate) types: &'static [DType],
    pub(crate) accuracy: Accuracy,
    pub(crate) doc: &'static str,
}

/// The ops as `list` shows them.
pub(crate) fn rows() -> impl Iterator<Item = Row> {
    ALL.iter().map(|op| {
        let settings = op.settings.iter().map(|(name, default)| match default {
            Some(default) => format!("{name}={default}"),
            None => (*name).to_owned(),
        });
        let parts: Vec<String> = op.arguments.iter().map(|&name| name.to_owned()).chain(settings).collect();
        let signature = format!("{}({})", op.name, parts.join(", "));
        Row { signature, types: op.types(), accuracy: op.accuracy(), doc: op.doc() }
    })
}

/// The ops' elements of `list --json`.
pub(crate) fn descriptions() -> impl Iterator<Item = Value> {
    ALL.iter().map(|op| {
        let parameters: Vec<_> = op
            .settings
            .iter()
            .map(|(name, default)| {
                // A number or a bool where it is one; else a word.
                let value = default.map(|text| serde_json::from_str(text).unwrap_or_else(|_| json!(text)));
                json!({ "name": name, "default": value, "required": default.is_none() })
            })
            .collect();
        let types: Vec<_> = op.types().iter().map(|dtype| dtype.name()).collect();
        let strategies: Vec<_> =
            op.strategies.iter().map(|strategy| json!({ "name": strategy.name(), "types": types })).collect();
        let bound = |dtype: &DType| (dtype.name().to_owned(), json!(op.accuracy().bound(*dtype)));
        json!({
            "name": op.name,
            "kind": op.kind,
            "arguments": op.arguments,
            "parameters": parameters,
            "types": types,
            "result": "same",
            "strategies": strategies,
            "accuracy": {
                "exact": op.accuracy() == Accuracy::Exact,
                "ulp": op.types().iter().map(bound).collect::<serde_json::Map<_, _>>(),
            },
            "doc": op.doc(),
        })
    })
}
