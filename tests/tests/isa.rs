//! Bounds that hold on every GPU: each op with float types in the emulator, its approximate instructions as wrong as the
//! PTX ISA allows (`POINTWISE_EMULATOR_APPROX=worst`). One named case for each op and type, on the inputs of `matrix`.
//!
//! An op keeps the bound of its row. The ops of `BEYOND` keep it in 16 bits for ordinary operands: finite, not zero, of a
//! magnitude of at most 100; of all operands one result in 50 may be beyond it. docs/accuracy.md has their figures, which
//! `POINTWISE_BLESS=1 cargo test -p tests --test isa -- --nocapture` prints.

use libtest_mimic::{Arguments, Failed, Trial};
use pointwise::{DType, Device, Number, Strategy};
use pointwise_core::Element;
use pointwise_core::op::MAX_PARAMS;
use pointwise_testkit::{Op, Report, judge, with_element};
use tests::accuracy::{Subject, subjects};

/// Parameters have their defaults.
const DEFAULTS: [Number; MAX_PARAMS] = [Number::Default; MAX_PARAMS];
const FLOATS: [DType; 5] = [DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2];

/// Ops that the ISA's errors carry beyond their bound in 16 bits for operands that are not ordinary: where a function
/// underflows, it may be off by a subnormal number, which a huge operand multiplies.
const BEYOND: &[&str] = &[
    "silu_and_mul",
    "gelu_tanh_and_mul",
    "gelu_tanh_backward",
    "silu_backward",
    "sigmoid_backward",
    "tanh_backward",
    "pow_backward",
    "silu_and_mul_backward",
    "gelu_tanh_and_mul_backward",
];

/// The largest magnitude of an ordinary operand.
const ORDINARY: f64 = 100.0;
/// One result in so many may be beyond the bound.
const SELDOM: usize = 50;

fn main() {
    // SAFETY: no other thread runs yet.
    unsafe { std::env::set_var("POINTWISE_EMULATOR_APPROX", "worst") };
    let arguments = Arguments::from_args();
    if pointwise::embed::embedded().is_empty() {
        eprintln!("NOT TESTED: no kernels are embedded to emulate: {}", pointwise::embed::embedded().note());
        libtest_mimic::run(&arguments, Vec::new()).exit();
    }
    let mut trials = Vec::new();
    // `masked_fill`, which is of no table, computes nothing.
    let ops = subjects().filter_map(|subject| if let Subject::Op(op) = subject { Some(op) } else { None });
    for op in ops {
        for dtype in FLOATS.into_iter().filter(|&dtype| op.info().supports(dtype)) {
            trials.push(Trial::test(format!("{}::{dtype}", op.info().name), move || check(op, dtype)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn check(op: Op, dtype: DType) -> Result<(), Failed> {
    let operands = op.operands(dtype, 2);
    let results = op.run(&Device::emulated()?, dtype, &DEFAULTS, Strategy::Auto, &operands)?;
    let call = Call { op, dtype, operands, results };
    let broken = call.failures(&call.reports()?);
    if broken.is_empty() {
        return Ok(());
    }
    if !BEYOND.contains(&op.info().name) || !matches!(dtype, DType::F16 | DType::BF16) {
        return Err(broken.join("; ").into());
    }
    let ordinary = call.only(|operands| operands.iter().all(|x| x.abs() <= ORDINARY && *x != 0.0)).reports()?;
    if let Some(broken) = call.failures(&ordinary).first() {
        return Err(format!("for ordinary operands: {broken}").into());
    }
    for (k, name) in call.names().iter().enumerate() {
        let (beyond, all) = (call.beyond(k)?, call.len());
        let most = match ordinary[k] {
            Report { not_rounded: 0, .. } => "exact".to_owned(),
            Report { worst_ulp: 0.0, .. } => "allowed".to_owned(),
            Report { worst_ulp, .. } => format!("{worst_ulp:.3}"),
        };
        let row = format!("| {name} | {dtype} | {most} | {beyond} of {all} |");
        if beyond * SELDOM > all {
            return Err(format!("more than one result in {SELDOM} is beyond the bound: {row}").into());
        }
        if std::env::var_os("POINTWISE_BLESS").is_some() {
            println!("{row}");
        }
    }
    Ok(())
}

/// A call, and what came of it.
struct Call {
    op: Op,
    dtype: DType,
    operands: Vec<Vec<u8>>,
    results: Vec<Vec<u8>>,
}

impl Call {
    fn reports(&self) -> pointwise::Result<Vec<Report>> {
        self.op.judge(self.dtype, &DEFAULTS, &self.operands, &self.results)
    }

    /// A name for each result.
    fn names(&self) -> Vec<String> {
        Subject::Op(self.op).results()
    }

    /// The results that do not keep the bound, in words.
    fn failures(&self, reports: &[Report]) -> Vec<String> {
        let failed = self.names().into_iter().zip(reports).filter(|(_, report)| !self.op.keeps(report, self.dtype));
        failed.map(|(name, report)| format!("{name} {}: {report}", self.dtype)).collect()
    }

    /// Returns the number of elements.
    fn len(&self) -> usize {
        self.results[0].len() / self.dtype.size()
    }

    /// The elements for whose operands something holds.
    fn only(&self, holds: impl Fn(&[f64]) -> bool) -> Call {
        let kept: Vec<usize> = (0..self.len()).filter(|&i| holds(&self.operands_of(i))).collect();
        let pick =
            |bytes: &Vec<u8>| -> Vec<u8> { kept.iter().flat_map(|&i| self.element(bytes, i)).copied().collect() };
        Call {
            operands: self.operands.iter().map(pick).collect(),
            results: self.results.iter().map(pick).collect(),
            ..*self
        }
    }

    fn element<'a>(&self, bytes: &'a [u8], i: usize) -> &'a [u8] {
        &bytes[i * self.dtype.size()..(i + 1) * self.dtype.size()]
    }

    fn operands_of(&self, i: usize) -> Vec<f64> {
        let value =
            |bytes: &Vec<u8>| with_element!(self.dtype, E => judge::from_bytes::<E>(self.element(bytes, i)).to_f64());
        self.operands.iter().map(value).collect()
    }

    /// Returns the number of elements of result `k` beyond the bound.
    fn beyond(&self, k: usize) -> pointwise::Result<usize> {
        let mut beyond = 0;
        for i in 0..self.len() {
            let pick = |bytes: &Vec<u8>| self.element(bytes, i).to_vec();
            let operands = self.operands.iter().map(pick).collect();
            let results = self.results.iter().map(pick).collect();
            let alone = Call { operands, results, ..*self };
            beyond += usize::from(!self.op.keeps(&alone.reports()?[k], self.dtype));
        }
        Ok(beyond)
    }
}
