//! Bounds that hold on every GPU: each op with float types in the emulator, its approximate instructions as wrong as the
//! PTX ISA allows (`POINTWISE_EMULATOR_APPROX=worst`). One named case for each op and type, on the inputs of `matrix`.
//!
//! An op keeps the bound of its row. The gradients of `BEYOND` keep it for ordinary operands: finite, not zero, of a
//! magnitude of at most 1,000. How many of all results are beyond the bound stands in docs/accuracy.md.

use libtest_mimic::{Arguments, Failed, Trial};
use pointwise::{DType, Device, Number, Strategy};
use pointwise_core::Element;
use pointwise_core::op::MAX_PARAMS;
use pointwise_testkit::{Op, Report, inputs, judge, with_element};
use tests::accuracy::{Subject, subjects};

/// Parameters have their defaults.
const DEFAULTS: [Number; MAX_PARAMS] = [Number::Default; MAX_PARAMS];
const FLOATS: [DType; 5] = [DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2];

/// Gradients, by the op's name and the element type, that the ISA's errors carry beyond the bound for operands that are
/// not ordinary: where a function underflows, it may be off by a subnormal number, which a huge gradient multiplies.
const BEYOND: &[(&str, DType)] = &[
    ("gelu_tanh_backward", DType::BF16),
    ("silu_backward", DType::BF16),
    ("tanh_backward", DType::F16),
    ("tanh_backward", DType::BF16),
    ("pow_backward", DType::F16),
    ("pow_backward", DType::BF16),
    ("silu_and_mul_backward", DType::F16),
    ("silu_and_mul_backward", DType::BF16),
    ("gelu_tanh_and_mul_backward", DType::F16),
    ("gelu_tanh_and_mul_backward", DType::BF16),
];

/// The largest magnitude of an ordinary operand.
const ORDINARY: f64 = 1000.0;

const PAGE: &str = include_str!("../../docs/accuracy.md");

fn main() {
    // SAFETY: no other thread runs yet.
    unsafe { std::env::set_var("POINTWISE_EMULATOR_APPROX", "worst") };
    let arguments = Arguments::from_args();
    if pointwise::embedded().is_empty() {
        eprintln!("NOT TESTED: no kernels are embedded to emulate: {}", pointwise::embedded().note());
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
    let operands = match op {
        Op::Unary(_) => vec![inputs::codes(dtype, 1 << 16, 2)],
        _ => op.operands(dtype, 2),
    };
    let results = op.run(&Device::emulated()?, dtype, &DEFAULTS, Strategy::Auto, &operands)?;
    let call = Call { op, dtype, operands, results };
    let is_beyond = BEYOND.contains(&(op.info().name, dtype));
    let broken = call.failures(&call.reports()?);
    match (broken.is_empty(), is_beyond) {
        (true, false) => return Ok(()),
        (false, false) => return Err(broken.join("; ").into()),
        (true, true) => return Err("it keeps its bound: strike it out of `BEYOND` and of docs/accuracy.md".into()),
        (false, true) => {}
    }
    let reports = call.only(|operands| operands.iter().all(|x| x.abs() <= ORDINARY && *x != 0.0)).reports()?;
    if let Some(broken) = call.failures(&reports).first() {
        return Err(format!("for ordinary operands: {broken}").into());
    }
    let mut missing = Vec::new();
    for (k, report) in reports.iter().enumerate() {
        missing.extend(Some(call.row(k, report)?).filter(|row| !PAGE.contains(row)));
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("docs/accuracy.md has not these lines:\n{}", missing.join("\n")).into())
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

    /// How many elements there are.
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

    /// The line of docs/accuracy.md for result `k`, of which `ordinary` is the report for ordinary operands.
    fn row(&self, k: usize, ordinary: &Report) -> pointwise::Result<String> {
        let mut beyond = 0;
        for i in 0..self.len() {
            let pick = |bytes: &Vec<u8>| self.element(bytes, i).to_vec();
            let operands = self.operands.iter().map(pick).collect();
            let results = self.results.iter().map(pick).collect();
            let alone = Call { operands, results, ..*self };
            beyond += usize::from(!self.op.keeps(&alone.reports()?[k], self.dtype));
        }
        let most = match ordinary {
            Report { not_rounded: 0, .. } => "exact".to_owned(),
            Report { worst_ulp: 0.0, .. } => "allowed".to_owned(),
            _ => format!("{:.3}", ordinary.worst_ulp),
        };
        Ok(format!("| {} | {} | {most} | {beyond} of {} |", self.names()[k], self.dtype, self.len()))
    }
}
