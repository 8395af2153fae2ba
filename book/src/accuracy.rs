//! The figure of the largest errors in f32, by op, beside PyTorch's: from the tables of `docs/accuracy.md`.

use anyhow::{Context as _, Result, ensure};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use crate::canvas::{COLOURS, GREY, picture, text};
use crate::tables::cells;

/// The sections with a row for each op.
const SECTIONS: [&str; 2] = ["### One operand, f32", "### Several operands, f32"];

const WIDTH: i32 = 900;
/// Pixels of an op, with both its bars, and around all of them.
const ROW: i32 = 24;
const LEFT: i32 = 150;
const RIGHT: i32 = 110;
const TOP: i32 = 76;
const BOTTOM: i32 = 44;

/// The ends of the axis, in ULP.
const LOW: f64 = 0.1;
const HIGH: f64 = 1e8;

/// A largest error.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Largest {
    /// Every result is correctly rounded.
    Exact,
    Ulp(f64),
    /// NaN where a number must be, or the other way round.
    OtherNan,
}

/// An op, its largest error, and PyTorch's if it was measured.
type Row<'a> = (&'a str, Largest, Option<Largest>);

/// Reads a cell of a column `max`.
fn largest(cell: &str) -> Result<Largest> {
    match cell {
        "exact" => Ok(Largest::Exact),
        cell if cell.ends_with("other NaN") => Ok(Largest::OtherNan),
        cell => Ok(Largest::Ulp(cell.parse().with_context(|| format!("no error: {cell:?}"))?)),
    }
}

/// The rows that have a bar: ops that are not exact on both sides.
fn rows(page: &str) -> Result<Vec<Row<'_>>> {
    let mut rows = Vec::new();
    for section in SECTIONS {
        let (_, behind) = page.split_once(section).with_context(|| format!("no section {section:?}"))?;
        let table = behind.trim_start().lines().take_while(|line| line.starts_with('|')).skip(2);
        for line in table {
            let cells = cells(line);
            let [op, _, ours, _, _, _, theirs, ..] = cells.as_slice() else {
                anyhow::bail!("not a row of {section:?}: {line}")
            };
            let theirs = if theirs.is_empty() { None } else { Some(largest(theirs)?) };
            let row = (*op, largest(ours)?, theirs);
            if row.1 != Largest::Exact || row.2.is_some_and(|theirs| theirs != Largest::Exact) {
                rows.push(row);
            }
        }
    }
    ensure!(!rows.is_empty(), "no op has an error");
    Ok(rows)
}

/// Pixels from the left.
fn place(ulp: f64) -> i32 {
    let share = (ulp.clamp(LOW, HIGH) / LOW).log10() / (HIGH / LOW).log10();
    LEFT + (share * f64::from(WIDTH - LEFT - RIGHT)).round() as i32
}

/// The end of a bar, and what stands behind it.
fn bar(largest: Largest) -> (i32, String) {
    match largest {
        Largest::Exact => (place(0.5), "0.5".to_owned()),
        Largest::Ulp(ulp) if ulp < 1000.0 => (place(ulp), format!("{ulp:.2}")),
        Largest::Ulp(ulp) => (place(ulp), format!("{ulp:.1e}")),
        Largest::OtherNan => (place(HIGH), "other NaN".to_owned()),
    }
}

/// The picture of a page's tables.
///
/// # Errors
/// A page without them; the drawing library's.
pub(crate) fn draw(page: &str) -> Result<String> {
    let rows = rows(page)?;
    let bottom = TOP + ROW * rows.len() as i32;
    picture((WIDTH as u32, (bottom + BOTTOM) as u32), |area| {
        text(area, "Largest error in f32, in ULP (log scale)", (LEFT, 22), 17, HPos::Left)?;
        for (k, name) in ["pointwise", "PyTorch"].into_iter().enumerate() {
            let x = LEFT + 110 * k as i32;
            area.draw(&Rectangle::new([(x, 40), (x + 12, 52)], COLOURS[k].filled()))?;
            text(area, name, (x + 18, 46), 14, HPos::Left)?;
        }
        for decade in -1..=8 {
            let x = place(10_f64.powi(decade));
            area.draw(&PathElement::new(vec![(x, TOP - 6), (x, bottom)], GREY.mix(0.25)))?;
            let label = match decade {
                -1 => "0.1".to_owned(),
                0..=3 => 10_i32.pow(decade as u32).to_string(),
                _ => format!("1e{decade}"),
            };
            text(area, &label, (x, bottom + 14), 13, HPos::Center)?;
        }
        for (i, (op, ours, theirs)) in rows.iter().enumerate() {
            let y = TOP + ROW * i as i32;
            text(area, op, (LEFT - 8, y + ROW / 2 - 2), 14, HPos::Right)?;
            for (k, largest) in [Some(*ours), *theirs].into_iter().enumerate() {
                let Some(largest) = largest else { continue };
                let top = y + 9 * k as i32 + 1;
                let (end, label) = bar(largest);
                area.draw(&Rectangle::new([(LEFT, top), (end, top + 8)], COLOURS[k].filled()))?;
                text(area, &label, (end + 5, top + 4), 11, HPos::Left)?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_of_ops_with_an_error() {
        let head = "| op | bound | max | mean | rounded | at | PyTorch max |\n|---|\n";
        let page = format!(
            "{0}\n\n{head}| exp | 1 | 0.891 | 0 | 99 % | 1 | 1.931 |\n| abs | 0.5 | exact | 0 | all |  | exact |\n\n\
             {1}\n\n{head}| lerp | 0.5 | exact | 0 | all |  | 1.000 |\n| f | 4 | 3.9 | 0 | 1 % | 1 | 1.7e7, other NaN |\n\
             | g | 4 | 2.5 | 0 | 1 % | 1 |  |\n",
            SECTIONS[0], SECTIONS[1]
        );
        let expected = [
            ("exp", Largest::Ulp(0.891), Some(Largest::Ulp(1.931))),
            ("lerp", Largest::Exact, Some(Largest::Ulp(1.0))),
            ("f", Largest::Ulp(3.9), Some(Largest::OtherNan)),
            ("g", Largest::Ulp(2.5), None),
        ];
        assert_eq!(rows(&page).unwrap(), expected);
        assert_eq!([Largest::Exact, Largest::Ulp(1.7e7)].map(|of| bar(of).1), ["0.5", "1.7e7"]);
        assert!(rows(&page.replace("0.891", "?")).is_err() && rows("").is_err());
    }
}
