//! The rows to measure, from `workloads.csv` and from the program's own sets.
//!
//! `workloads.csv` holds the elementwise, rope, dropout, ALiBi, sinusoidal and gated cases of a public nightly
//! benchmark run of TileOPs (`tile-ai/TileOPs`, branch `nightly-bench`, commit `a4551ab7`, `bench_results.xml`, of the
//! code at `52dbc086`): shapes, parameters, bytes, and the medians of TileOPs, PyTorch eager and inductor, in some
//! rows of another library, on one H200. Its times are device-busy times of CUPTI after a flush of the level-2 cache.
//! `fair` is 0 where the two sides did not do the same work. It is the one file of workloads: `benches/peers/peers.py`
//! reads it too, and row numbers count its data rows from 0.

use pointwise::DType;
use serde::{Deserialize, Serialize};

use crate::form::Form;
use pointwise_cli::error::{Error, Result};

/// The file.
const CSV: &str = include_str!("../../../workloads.csv");
/// Its columns.
const COLUMNS: &str =
    "op,case,dtype,shapes,params,bytes_moved_MB,tileops_us,torch_us,inductor_us,other_us,other_name,fair";

/// The name of a row in files: its number in `workloads.csv`, or `SET/OP/DTYPE`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum RowId {
    Number(usize),
    Name(String),
}

/// A call to be measured.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) id: RowId,
    pub(crate) set: &'static str,
    /// The name in the file; [`Form`] makes a call of it.
    pub(crate) op: String,
    pub(crate) case: String,
    pub(crate) dtype: DType,
    /// The shapes of the tensors in the order of the call; the result's shape for an op without tensors.
    pub(crate) shapes: Vec<Vec<usize>>,
    pub(crate) params: Vec<(String, String)>,
    pub(crate) published: Option<Published>,
}

/// Times of the public run, in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Published {
    /// The roofline's bytes.
    pub(crate) bytes: u64,
    pub(crate) tileops_us: f64,
    pub(crate) torch_us: f64,
    pub(crate) inductor_us: f64,
    pub(crate) other_us: Option<f64>,
    pub(crate) other_name: Option<String>,
    /// True if both sides did the same work.
    pub(crate) fair: bool,
}

impl Published {
    /// The smallest of the times.
    pub(crate) fn best_us(&self) -> f64 {
        [self.torch_us, self.inductor_us].into_iter().chain(self.other_us).fold(self.tileops_us, f64::min)
    }
}

/// The rows of `workloads.csv`.
///
/// # Errors
/// The file is built in: only if it was broken when the program was built.
pub(crate) fn reference() -> Result<Vec<Row>> {
    parse(CSV)
}

fn parse(text: &str) -> Result<Vec<Row>> {
    let mut lines = text.lines();
    if lines.next() != Some(COLUMNS) {
        return Err(Error::Failed(format!("workloads.csv does not begin with the columns {COLUMNS}")));
    }
    lines
        .enumerate()
        .map(|(number, line)| {
            row(number, line).ok_or_else(|| Error::Failed(format!("workloads.csv, row {number}: cannot read {line:?}")))
        })
        .collect()
}

fn row(number: usize, line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split(',').collect();
    let [op, case, dtype, shapes, params, megabytes, tileops, torch, inductor, other, other_name, fair] = fields[..]
    else {
        return None;
    };
    let optional = |text: &str| if text.is_empty() { Some(None) } else { text.parse::<f64>().ok().map(Some) };
    let published = Published {
        bytes: (megabytes.parse::<f64>().ok()? * 1e6).round() as u64,
        tileops_us: tileops.parse().ok()?,
        torch_us: torch.parse().ok()?,
        inductor_us: inductor.parse().ok()?,
        other_us: optional(other)?,
        other_name: (!other_name.is_empty()).then(|| other_name.to_owned()),
        fair: fair == "1",
    };
    Some(Row {
        id: RowId::Number(number),
        set: "reference",
        op: op.to_owned(),
        case: case.to_owned(),
        dtype: DType::from_name(dtype)?,
        shapes: shapes.split(';').map(read_shape).collect::<Option<_>>()?,
        params: read_params(params)?,
        published: Some(published),
    })
}

fn read_shape(text: &str) -> Option<Vec<usize>> {
    text.split('x').map(|size| size.parse().ok()).collect()
}

/// Parameters as they stand in the file: `name=value`, `;` between them.
pub(crate) fn read_params(text: &str) -> Option<Vec<(String, String)>> {
    let pair = |part: &str| part.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    text.split(';').filter(|part| !part.is_empty()).map(pair).collect()
}

impl Row {
    /// A parameter's text.
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The shapes as the file writes them.
    pub(crate) fn shapes_text(&self) -> String {
        let shape = |shape: &Vec<usize>| shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        self.shapes.iter().map(shape).collect::<Vec<_>>().join(";")
    }

    /// The parameters as the file writes them.
    pub(crate) fn params_text(&self) -> String {
        self.params.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(";")
    }

    /// The row with no dimension longer than `most`, a power of two: dimensions that belong together stay alike, one
    /// that is twice another stays so.
    pub(crate) fn shrunk(&self, most: usize) -> Row {
        let mut row = self.clone();
        row.shapes.iter_mut().flatten().for_each(|size| *size = (*size).min(most));
        if let ([grad, x], [small, _]) = (&self.shapes[..], &mut row.shapes[..])
            && let (Some(grad), Some(x), Some(last)) = (grad.last(), x.last(), small.last_mut())
            && 2 * grad == *x
        {
            *last = (*last).min(most / 2);
        }
        row
    }

    /// The row, or the largest shrunk one whose bytes are at most `most`.
    pub(crate) fn within(&self, form: &Form, most: u64) -> Row {
        let longest = self.shapes.iter().flatten().copied().max().unwrap_or(1).next_power_of_two();
        let mut row = self.clone();
        let mut limit = longest;
        while form.bytes(&row) > most && limit > 2 {
            limit /= 2;
            row = self.shrunk(limit);
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_its_rows() {
        let rows = reference().unwrap();
        assert_eq!(rows.len(), 431);
        assert_eq!(rows.iter().filter(|row| row.published.as_ref().is_some_and(|known| known.fair)).count(), 420);
        let row = &rows[3];
        assert_eq!((row.op.as_str(), row.dtype, &row.id), ("gelu", DType::F16, &RowId::Number(3)));
        assert_eq!(row.shapes, [[2048, 14336]]);
        assert_eq!(row.param("approximate"), Some("none"));
        assert_eq!(row.published.as_ref().unwrap().best_us(), 47.808);
        let broadcast = rows.iter().find(|row| row.case == "cnn-feat-broadcast").unwrap();
        assert_eq!(broadcast.shapes_text(), "16x256x56x56;256x1x1");
        assert_eq!(broadcast.params_text(), "alpha=1");
        assert_eq!(rows.iter().filter(|row| row.published.as_ref().unwrap().other_us.is_some()).count(), 11);
    }

    #[test]
    fn lines_that_are_none() {
        let good = "relu,x,f16,2x4,,0.1,1,1,1,,,1";
        assert_eq!(parse(&format!("{COLUMNS}\n{good}")).unwrap().len(), 1);
        for bad in
            ["", "relu,x,f16,2x4,,0.1,1,1,1,,", "relu,x,f17,2x4,,0.1,1,1,1,,,1", "relu,x,f16,2xx4,,0.1,1,1,1,,,1"]
        {
            let error = parse(&format!("{COLUMNS}\n{good}\n{bad}\n")).unwrap_err().to_string();
            assert!(error.contains("row 1"), "{error}");
        }
        assert!(parse("op,case\n").is_err());
    }

    /// The bytes by our formulas equal the bytes of the run.
    #[test]
    fn bytes_are_those_recorded() {
        for row in reference().unwrap() {
            let form = Form::of(&row).unwrap();
            assert_eq!(form.bytes(&row), row.published.as_ref().unwrap().bytes, "{row:?}");
        }
    }
}
