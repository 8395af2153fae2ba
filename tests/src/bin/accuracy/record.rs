//! Results as JSON, from this program and from `benches/peers/torch_accuracy.py`.

use std::error::Error;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pointwise::DType;
use pointwise::info::op;
use pointwise_testkit::Report;
use serde::{Deserialize, Serialize};
use tests::accuracy::{Inputs, Subject, subjects};

/// The results of a run.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Record {
    /// The GPU's name.
    pub(crate) device: String,
    /// PyTorch's version, in its own results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) torch: Option<String>,
    pub(crate) rows: Vec<Row>,
}

/// One result of an op in one element type.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Row {
    /// The op's name; of gradients of several operands the gradient's behind it, `mul_backward/grad_a`.
    pub(crate) op: String,
    pub(crate) dtype: String,
    /// Results compared.
    pub(crate) compared: u64,
    /// Inputs tried; some have no exact result to compare with. 0 in older files, which lack it.
    #[serde(default)]
    pub(crate) inputs: u64,
    /// True if these are the results of all inputs.
    pub(crate) all: bool,
    /// Operands of the op.
    #[serde(default)]
    pub(crate) operands: usize,
    /// The largest distance; `None` if a NaN or a zero's sign is wrong.
    pub(crate) max_ulp: Option<f64>,
    pub(crate) mean_ulp: f64,
    pub(crate) not_rounded: u64,
    /// Results that are NaN where they must not be or the other way round; PyTorch's are counted apart.
    #[serde(default)]
    pub(crate) wrong_nan: u64,
    /// The input of the largest distance.
    pub(crate) worst: Vec<String>,
    /// The op's bound, in ULP; of PyTorch's results none.
    #[serde(default)]
    pub(crate) bound: Option<f32>,
    #[serde(default)]
    pub(crate) kept: bool,
    #[serde(default)]
    pub(crate) seconds: f64,
}

impl Row {
    /// Result `op` of a subject.
    pub(crate) fn new(
        op: String,
        subject: Subject,
        dtype: DType,
        inputs: Inputs,
        report: &Report,
        time: Duration,
    ) -> Self {
        let info = subject.info();
        let result = info.result_type(0, dtype);
        let operands = subject.operands().len();
        // With one operand, every code of a 16-bit type is tried: the promised share of correctly rounded results
        // counts these.
        let all_codes = operands == 1 && inputs.is_all();
        Row {
            op,
            dtype: dtype.to_string(),
            compared: report.compared,
            inputs: inputs.count(),
            all: inputs.is_all(),
            operands,
            max_ulp: report.worst_ulp.is_finite().then_some(report.worst_ulp),
            mean_ulp: report.mean_ulp(),
            not_rounded: report.not_rounded,
            wrong_nan: 0,
            worst: report.worst_at.iter().take(operands).map(|x| format!("{x:e}")).collect(),
            bound: Some(info.accuracy.bound(result)),
            kept: report.keeps(info.accuracy, result, all_codes),
            seconds: time.as_secs_f64(),
        }
    }

    /// True if it is a gradient, of an op of one operand or of several.
    pub(crate) fn is_gradient(&self) -> bool {
        let name = self.op.split_once('/').map_or(&*self.op, |(name, _)| name);
        op(name).is_some_and(|def| def.info.is_gradient())
    }

    /// Inputs tried.
    fn tried(&self) -> u64 {
        self.inputs.max(self.compared)
    }

    /// The share of correctly rounded results.
    pub(crate) fn rounded(&self) -> f64 {
        1.0 - self.not_rounded as f64 / self.compared.max(1) as f64
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let max = self.max_ulp.unwrap_or(f64::INFINITY);
        let of = self.bound.map_or_else(String::new, |bound| format!(" of {bound}"));
        write!(f, "{:23} {:7} max {max:.4}{of} ULP", self.op, self.dtype)?;
        write!(f, ", mean {:.4}, {:.4} % rounded", self.mean_ulp, 100.0 * self.rounded())?;
        if self.not_rounded > 0 {
            write!(f, ", at {}", self.worst.join(" "))?;
        }
        write!(f, ", of {}, {:.1} s{}", self.compared, self.seconds, if self.kept { "" } else { "  ABOVE ITS BOUND" })
    }
}

impl Record {
    pub(crate) fn read(path: &Path) -> Result<Self, Box<dyn Error>> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?)
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        // If the write fails, the earlier record stays.
        let draft = path.with_added_extension("tmp");
        fs::write(&draft, serde_json::to_string_pretty(self)? + "\n")?;
        Ok(fs::rename(draft, path)?)
    }

    /// Merges the results of several runs: rows of a later run replace rows of an earlier one, in the order of the
    /// ops.
    ///
    /// # Errors
    /// A file that cannot be read, or of another device or PyTorch.
    pub(crate) fn merged(paths: &[PathBuf]) -> Result<Option<Self>, Box<dyn Error>> {
        let mut merged: Option<Record> = None;
        for path in paths {
            let later = Record::read(path)?;
            let Some(all) = &mut merged else {
                merged = Some(later);
                continue;
            };
            if (&all.device, &all.torch) != (&later.device, &later.torch) {
                let torch = |record: &Record| record.torch.as_ref().map_or(String::new(), |torch| format!(", {torch}"));
                let what = |record: &Record| format!("{}{}", record.device, torch(record));
                return Err(format!("{} is of {}, not of {}", path.display(), what(&later), what(all)).into());
            }
            all.rows.retain(|row| later.row(&row.op, &row.dtype).is_none());
            all.rows.extend(later.rows);
        }
        if let Some(all) = &mut merged {
            let names: Vec<String> = subjects().flat_map(Subject::results).collect();
            // Stable: the types of an op stay as they were. Ops that are no longer there come last.
            all.rows.sort_by_key(|row| names.iter().position(|name| *name == row.op).unwrap_or(names.len()));
        }
        Ok(merged)
    }

    /// True if the record has an op's result in a type, from as many inputs or more.
    pub(crate) fn has(&self, op: &str, dtype: DType, inputs: Inputs) -> bool {
        let enough = |row: &Row| row.all || !inputs.is_all() && row.tried() >= inputs.count();
        self.row(op, dtype.name()).is_some_and(enough)
    }

    /// The row of an op in a type.
    pub(crate) fn row(&self, op: &str, dtype: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.op == op && row.dtype == dtype)
    }
}

// Not `tests`, which is the crate.
#[cfg(test)]
mod checks {
    use super::*;

    fn row(op: &str, dtype: &str, compared: u64, all: bool) -> Row {
        let text = format!(
            r#"{{"op": {op:?}, "dtype": {dtype:?}, "compared": {compared}, "all": {all}, "max_ulp": 0.0,
            "mean_ulp": 0.0, "not_rounded": 0, "worst": []}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn write(name: &str, device: &str, rows: Vec<Row>) -> PathBuf {
        let path = std::env::temp_dir().join(format!("pointwise-accuracy-{}-{name}", std::process::id()));
        Record { device: device.to_owned(), torch: None, rows }.write(&path).unwrap();
        path
    }

    #[test]
    fn later_rows_take_the_place_of_earlier_ones() {
        let gradient = row("mul_backward/grad_b", "f32", 3, false);
        let first = write("1", "G", vec![gradient, row("add", "f32", 7, false), row("exp", "f32", 5, false)]);
        let second = write("2", "G", vec![row("exp", "f32", 9, true), row("exp", "f16", 9, true)]);
        let other = write("3", "another G", Vec::new());
        let merged = Record::merged(&[first.clone(), second.clone()]).unwrap().unwrap();
        let rows: Vec<_> = merged.rows.iter().map(|row| (&*row.op, &*row.dtype, row.compared)).collect();
        // In the order of the ops.
        let gradient = ("mul_backward/grad_b", "f32", 3);
        assert_eq!(rows, [("exp", "f32", 9), ("exp", "f16", 9), ("add", "f32", 7), gradient]);
        let all = Inputs::Codes { step: 1 };
        assert!(merged.has("exp", DType::F32, all) && !merged.has("exp", DType::BF16, all));
        assert!(merged.has("exp", DType::F32, Inputs::Codes { step: 257 }), "all are more than some");
        let pairs = |count| Inputs::Random { operands: 0, count };
        assert!(merged.has("add", DType::F32, pairs(6)) && !merged.has("add", DType::F32, pairs(7)), "1 of the grid");
        assert!(Record::merged(&[]).unwrap().is_none());
        let fault = Record::merged(&[first.clone(), other.clone()]).unwrap_err().to_string();
        assert!(fault.contains("is of another G, not of G"), "{fault}");
        for path in [first, second, other] {
            fs::remove_file(path).unwrap();
        }
    }
}
