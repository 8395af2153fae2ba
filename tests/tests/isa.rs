//! Bounds that hold on every GPU: each op with float types in the emulator, its approximate instructions as wrong as the
//! PTX ISA allows (`POINTWISE_EMULATOR_APPROX=worst`). One named case for each op and type, on the inputs of `matrix`.
//!
//! An op keeps the bound of its row. The gradients of `BEYOND` keep it for ordinary operands: finite, not zero, of a
//! magnitude of at most 1,000. How many of all results are beyond the bound stands in docs/accuracy.md.

use libtest_mimic::{Arguments, Failed, Trial};
use pointwise::{DType, Device};
use pointwise_core::Element;
use pointwise_testkit::judge::{self, Report};
use pointwise_testkit::{inputs, map, with_element};
use tests::accuracy::{Subject, subjects};

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
    // `masked_fill` computes nothing.
    for subject in subjects().filter(|subject| !matches!(subject, Subject::Fill)) {
        for dtype in FLOATS.into_iter().filter(|&dtype| subject.info().supports(dtype)) {
            let name = format!("{}::{dtype}", subject.info().name);
            trials.push(Trial::test(name, move || check(subject, dtype)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn check(subject: Subject, dtype: DType) -> Result<(), Failed> {
    let info = subject.info();
    let operands = match subject.operands().len() {
        1 => vec![inputs::codes(dtype, 1 << 16, 2)],
        _ => map::operands(info, dtype, 2),
    };
    let results = subject.run(&Device::emulated()?, dtype, &operands)?;
    let call = Call { subject, dtype, operands, results };
    let all_codes = call.operands.len() == 1 && dtype.size() == 2;
    let is_beyond = BEYOND.contains(&(info.name, dtype));
    let broken: Vec<String> = call.failures(&call.reports(), all_codes).collect();
    match (broken.is_empty(), is_beyond) {
        (true, false) => return Ok(()),
        (false, false) => return Err(broken.join("; ").into()),
        (true, true) => return Err("it keeps its bound: strike it out of `BEYOND` and of docs/accuracy.md".into()),
        (false, true) => {}
    }
    let reports = call.only(|operands| operands.iter().all(|x| x.abs() <= ORDINARY && *x != 0.0)).reports();
    if let Some(broken) = call.failures(&reports, false).next() {
        return Err(format!("for ordinary operands: {broken}").into());
    }
    let rows = subject.results().into_iter().enumerate().map(|(k, name)| call.row(k, &name, &reports[k]));
    let missing: Vec<String> = rows.filter(|row| !PAGE.contains(row)).collect();
    if !missing.is_empty() {
        return Err(format!("docs/accuracy.md has not these lines:\n{}", missing.join("\n")).into());
    }
    Ok(())
}

/// A call, and what came of it.
struct Call {
    subject: Subject,
    dtype: DType,
    operands: Vec<Vec<u8>>,
    results: Vec<Vec<u8>>,
}

impl Call {
    fn reports(&self) -> Vec<Report> {
        self.subject.judge(self.dtype, &self.operands, &self.results).expect("operands and parameters of the op")
    }

    fn keeps(&self, report: &Report, all_codes: bool) -> bool {
        let info = self.subject.info();
        report.keeps(info.accuracy, info.result.of(self.dtype), all_codes)
    }

    /// The results that do not keep the bound, in words.
    fn failures(&self, reports: &[Report], all_codes: bool) -> impl Iterator<Item = String> {
        let pairs = self.subject.results().into_iter().zip(reports.to_vec());
        let failed: Vec<String> = pairs
            .filter(|(_, report)| !self.keeps(report, all_codes))
            .map(|(name, report)| format!("{name} {}: {report}, operands {:?}", self.dtype, report.worst_at))
            .collect();
        failed.into_iter()
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
    fn row(&self, k: usize, name: &str, ordinary: &Report) -> String {
        let alone = |i: usize| {
            let pick = |bytes: &Vec<u8>| self.element(bytes, i).to_vec();
            let operands: Vec<Vec<u8>> = self.operands.iter().map(pick).collect();
            let results: Vec<Vec<u8>> = self.results.iter().map(pick).collect();
            self.subject.judge(self.dtype, &operands, &results).expect("operands and parameters of the op")[k]
        };
        let beyond = (0..self.len()).filter(|&i| !self.keeps(&alone(i), false)).count();
        let most = match ordinary {
            Report { not_rounded: 0, .. } => "exact".to_owned(),
            Report { worst_ulp: 0.0, .. } => "allowed".to_owned(),
            _ => format!("{:.3}", ordinary.worst_ulp),
        };
        format!("| {name} | {} | {most} | {beyond} of {} |", self.dtype, self.len())
    }
}
