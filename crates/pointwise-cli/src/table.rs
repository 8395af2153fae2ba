//! The tour's table: an op a line, the element types as columns.

use pointwise::DType;

use crate::output::Paint;
use crate::verdict::Case;

/// Width of the column of names.
pub(crate) const NAME: usize = 26;
/// Width of a cell: rows fit a terminal of 80 columns.
pub(crate) const CELL: usize = 6;

/// The columns: a float type each, the integers together, bool.
pub(crate) fn columns() -> impl Iterator<Item = (&'static str, Vec<DType>)> {
    let floats = DType::FLOATS.into_iter().map(|dtype| (dtype.name(), vec![dtype]));
    let ints = DType::ALL.into_iter().filter(|dtype| dtype.is_int()).collect();
    floats.chain([("ints", ints), ("bool", vec![DType::Bool])])
}

/// The line of an op: the largest error of each column, beside the bound of its type.
pub(crate) fn row(name: &str, bound: impl Fn(DType) -> f32, cases: &[Case], paint: Paint) -> String {
    let mut text = format!("{name:<NAME$}");
    for (_, types) in columns() {
        let in_cell: Vec<&Case> = cases.iter().filter(|case| types.contains(&case.dtype)).collect();
        let cell = match in_cell.as_slice() {
            [] => format!("{:<CELL$}", "-"),
            cases if cases.iter().any(|case| case.verdict.fault.is_some()) => paint.bad(&format!("{:<CELL$}", "FAIL")),
            [first, ..] => {
                let bound = bound(first.dtype);
                let error = in_cell.iter().filter_map(|case| case.verdict.error).reduce(f64::max);
                format!("{:<CELL$}", error.map_or("exact".to_owned(), |error| fitted(error, bound)))
            }
        };
        text += &format!(" {cell}");
    }
    let good = cases.iter().all(|case| case.verdict.fault.is_none());
    let mark = if good { paint.good("ok") } else { paint.bad("FAIL") };
    format!("{text} {mark}")
}

/// An error and its bound, with as many decimals as a cell has room for.
fn fitted(error: f64, bound: f32) -> String {
    let texts = [2, 1, 0].map(|decimals| format!("{error:.decimals$}/{bound}"));
    texts.iter().find(|text| text.len() <= CELL).unwrap_or(&texts[2]).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_room() {
        assert_eq!(fitted(0.786, 1.0), "0.79/1");
        assert_eq!(fitted(3.0, 16.0), "3.0/16");
        assert_eq!(fitted(12.3, 16.0), "12/16");
    }
}
