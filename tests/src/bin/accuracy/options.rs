//! The command line.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use pointwise::Device;
use regex_lite::Regex;
use tests::accuracy::subjects;

/// The task.
#[derive(Debug)]
pub(crate) enum Options {
    /// Measures.
    Run(Run),
    /// Shows measurements.
    Table(Table),
}

/// The measurements to make.
#[derive(Debug)]
pub(crate) struct Run {
    /// The device.
    pub(crate) device: Device,
    /// The ops: all if none is given.
    ops: Vec<Regex>,
    /// Results of earlier runs: ops with complete results there are left out.
    pub(crate) done: Vec<PathBuf>,
    /// Random tuples of an op of two operands.
    pub(crate) random: u64,
    /// The step from one f32 code to the next.
    pub(crate) step: u64,
    /// The time after which no further op is begun.
    pub(crate) budget: Option<Duration>,
    /// The file for the results.
    pub(crate) json: Option<PathBuf>,
}

/// Files of results; rows of later files replace rows of earlier ones.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) ours: Vec<PathBuf>,
    pub(crate) peers: Vec<PathBuf>,
    /// The file for our results as one.
    pub(crate) json: Option<PathBuf>,
}

impl Run {
    /// True if an op is wanted.
    pub(crate) fn takes(&self, name: &str) -> bool {
        self.ops.is_empty() || self.ops.iter().any(|op| op.is_match(name))
    }
}

/// Reads the arguments.
pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, Box<dyn Error>> {
    let (mut device, mut ops, mut random, mut step) = (None, Vec::new(), 1 << 26, 1);
    let (mut budget, mut json) = (None, None);
    let (mut done, mut table, mut peers) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--device" => device = Some(Device::parse(&value()?)?),
            // A whole name: `exp` is not `expm1`.
            "--op" => ops.push(Regex::new(&format!("^(?:{})$", value()?))?),
            "--ops" => {
                for name in value()?.split(',') {
                    if !subjects().any(|subject| subject.info().name == name) {
                        return Err(format!("no op {name:?} with float types").into());
                    }
                    ops.push(Regex::new(&format!("^{name}$"))?);
                }
            }
            "--skip-done" => done.push(PathBuf::from(value()?)),
            "--pairs" => random = count(&value()?)?,
            "--sample" => step = 257,
            "--budget-s" => budget = Some(Duration::from_secs(value()?.parse()?)),
            "--json" => json = Some(PathBuf::from(value()?)),
            "--table" => table.push(PathBuf::from(value()?)),
            "--peers" => peers.push(PathBuf::from(value()?)),
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    if !table.is_empty() {
        return Ok(Options::Table(Table { ours: table, peers, json }));
    }
    let device = device.map_or_else(Device::best, Ok)?;
    Ok(Options::Run(Run { device, ops, done, random, step, budget, json }))
}

/// `2^26`, or a plain number.
fn count(text: &str) -> Result<u64, Box<dyn Error>> {
    match text.split_once('^') {
        Some(("2", power)) => Ok(1_u64.checked_shl(power.parse()?).ok_or("too many")?),
        Some(_) => Err("write 2^N".into()),
        None => Ok(text.parse()?),
    }
}
