//! The errors of functions over their input, ours and PyTorch's, as `benches/peers/error_curves.py` measured them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use pointwise::info::{OpInfo, op};

use crate::canvas::{Area, COLOURS, Drawn, GREY, picture, text};
use crate::curves::{FROM, Point, TO};
use crate::plot::{Axes, Curve, draw_over};

/// The measurements, in the folder of the pages.
pub(crate) const FILE: &str = "data/error-curves.csv";
/// The libraries of the file, in the order of their colours.
const LIBRARIES: [&str; 2] = ["pointwise", "PyTorch"];
/// A curve of PyTorch's is drawn up to this or, if that is more, to twice our largest error.
const MOST: f64 = 4.0;
/// Gradients near a zero have larger errors than this, ours too.
const LIMIT: f64 = 10.0;

/// The curves of the file.
pub(crate) struct Errors<'a> {
    /// The machine and the date of the measurement.
    machine: &'a str,
    curves: BTreeMap<(&'a str, &'a str, &'a str), Vec<Point>>,
}

impl<'a> Errors<'a> {
    /// Reads the file's text.
    ///
    /// # Errors
    /// A line that is none of the file.
    pub(crate) fn read(text: &'a str) -> Result<Self> {
        let mut lines = text.lines();
        let machine =
            lines.next().and_then(|line| line.strip_prefix("# ")).context("the first line names no machine")?;
        let mut curves = BTreeMap::new();
        for line in lines {
            let [op, dtype, library, values] = line.splitn(4, ',').collect::<Vec<_>>()[..] else {
                bail!("no curve of errors: {line}")
            };
            let values: Vec<&str> = values.split(',').collect();
            let width = (TO - FROM) / values.len() as f64;
            let point = |(k, value): (usize, &&str)| {
                // A part without a number has no error.
                let ulp = if value.is_empty() { f64::NAN } else { value.parse()? };
                Ok((FROM + width * (k as f64 + 0.5), ulp))
            };
            let points = values.iter().enumerate().map(point).collect::<Result<Vec<Point>>>();
            curves.insert((op, dtype, library), points.with_context(|| format!("in the errors of {op}"))?);
        }
        Ok(Errors { machine, curves })
    }

    fn of(&self, op: &'a str, dtype: &'a str) -> Option<[&[Point]; 2]> {
        let [ours, theirs] = LIBRARIES.map(|library| self.curves.get(&(op, dtype, library)).map(Vec::as_slice));
        Some([ours?, theirs?])
    }

    /// Draws the errors of an op and of its gradient in f32 and in bf16; returns the lines of its page that show them.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn figures(&self, folder: &Path, info: &OpInfo, x: &str) -> Result<Vec<String>> {
        let mut lines = self.of_function(folder, info.name, x, || self.explanation(info, x))?;
        let backward = op(info.name).and_then(|def| def.backward);
        let gradient = backward.and_then(|def| self.curves.keys().find(|(op, ..)| *op == def.info.name));
        if let Some((gradient, ..)) = gradient {
            let explanation = || {
                "The same of the gradient, where that of the result is 1. Near a zero of the derivative its terms cancel, \
                 and the error grows beside what is left.\n"
                    .to_owned()
            };
            lines.extend(self.of_function(folder, gradient, x, explanation)?);
        }
        Ok(lines)
    }

    fn of_function(
        &self,
        folder: &Path,
        name: &'a str,
        x: &str,
        explanation: impl Fn() -> String,
    ) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for dtype in ["f32", "bf16"] {
            let Some([ours, theirs]) = self.of(name, dtype) else { continue };
            let [most, largest] = [ours, theirs].map(largest);
            let cut = MOST.max(2.0 * most).min(LIMIT);
            let curves = [Curve { name: LIBRARIES[0], points: ours }, Curve { name: LIBRARIES[1], points: theirs }];
            let both = [Curve { name: "pointwise and PyTorch: the same", points: ours }];
            let axes = Axes { x, y: &format!("error in ULP, {dtype}"), from: FROM, to: TO };
            let file = format!("{name}-error-{dtype}.svg");
            let drawn: &[Curve<'_>] = if is_same(ours, theirs) { &both } else { &curves };
            draw_over(&folder.join(&file), drawn, &axes, Some(cut))?;
            if lines.is_empty() {
                lines.push(explanation());
            }
            lines.push(format!("![error of {name} in {dtype}]({file})\n"));
            if most > cut {
                let (most, largest) = (rounded(most), rounded(largest));
                lines.push(format!("In {dtype} it reaches {most} ULP, PyTorch's {largest}, above the figure.\n"));
            } else if largest > cut {
                lines.push(format!("PyTorch's error in {dtype} reaches {} ULP, above the figure.\n", rounded(largest)));
            }
        }
        Ok(lines)
    }

    fn explanation(&self, info: &OpInfo, x: &str) -> String {
        let others: Vec<&str> = info.operands.iter().filter(|name| **name != x).copied().collect();
        let others = match others.as_slice() {
            [] => String::new(),
            names => format!(", while {} takes values from {FROM} to {TO}", names.join(" and ")),
        };
        format!(
            "The largest error near each {x}{others}, in units in the last place (ULP) of the result. A correctly \
             rounded result is off by at most 0.5. Measured on an {}:\n",
            self.machine
        )
    }

    /// The picture of all functions, in f32.
    ///
    /// # Errors
    /// The drawing library's.
    pub(crate) fn picture(&self) -> Result<String> {
        let ops: BTreeSet<&str> = self.curves.keys().map(|(op, ..)| *op).collect();
        let is_drawn = |op: &&str| !is_gradient(op) && self.of(op, "f32").is_some_and(|[ours, _]| largest(ours) > 0.0);
        let ops: Vec<&str> = ops.into_iter().filter(is_drawn).collect();
        let rows = ops.len().div_ceil(COLUMNS) as u32;
        picture((CELL.0 * COLUMNS as u32, CELL.1 * rows + HEAD), |area| {
            for (k, (library, colour)) in LIBRARIES.iter().zip(COLOURS).enumerate() {
                let x = 40 + 110 * k as i32;
                area.draw(&PathElement::new([(x, 12), (x + 18, 12)], colour.stroke_width(2)))?;
                text(area, library, (x + 24, 12), 14, HPos::Left)?;
            }
            text(area, "largest error near x, in ULP, f32", (280, 12), 14, HPos::Left)?;
            let (_, below) = area.split_vertically(HEAD);
            for (op, cell) in ops.iter().zip(below.split_evenly((rows as usize, COLUMNS))) {
                let Some(curves) = self.of(op, "f32") else { continue };
                small(&cell, op, curves)?;
            }
            Ok(())
        })
    }
}

/// Charts side by side.
const COLUMNS: usize = 4;
/// Pixels of one of them.
const CELL: (u32, u32) = (220, 130);
/// Pixels above them.
const HEAD: u32 = 26;

fn small(area: &Area<'_>, op: &str, curves: [&[Point]; 2]) -> Drawn {
    let style = ("sans-serif", 12).into_font().color(&GREY);
    let mut chart = ChartBuilder::on(area)
        .margin(4)
        .margin_top(20)
        .margin_right(12)
        .x_label_area_size(18)
        .y_label_area_size(26)
        .build_cartesian_2d(FROM..TO, 0.0..MOST)?;
    let named = style.pos(Pos::new(HPos::Left, VPos::Center));
    area.draw(&Text::new(op.to_owned(), (32, 11), named))?;
    chart
        .configure_mesh()
        .axis_style(GREY)
        .bold_line_style(GREY.mix(0.25))
        .light_line_style(TRANSPARENT)
        .x_labels(3)
        .y_labels(5)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .label_style(("sans-serif", 11).into_font().color(&GREY))
        .draw()?;
    // Ours last, so that PyTorch's does not hide it.
    for (points, colour) in curves.iter().zip(COLOURS).rev() {
        for part in points.split(|(_, ulp)| !(0.0..=MOST).contains(ulp)).filter(|part| part.len() > 1) {
            chart.draw_series(LineSeries::new(part.iter().copied(), colour.stroke_width(1)))?;
        }
    }
    Ok(())
}

/// The largest error that there is.
fn largest(points: &[Point]) -> f64 {
    points.iter().map(|(_, ulp)| *ulp).filter(|ulp| !ulp.is_nan()).fold(0.0, f64::max)
}

/// True if the op of this name computes gradients.
fn is_gradient(name: &str) -> bool {
    op(name).is_some_and(|def| def.info.is_gradient())
}

fn is_same(a: &[Point], b: &[Point]) -> bool {
    a.iter().zip(b).all(|((_, a), (_, b))| a == b || (a.is_nan() && b.is_nan()))
}

/// With commas, and without digits that say nothing.
fn rounded(ulp: f64) -> String {
    if ulp < 1000.0 {
        return format!("{ulp:.1}");
    }
    let digits = format!("{ulp:.0}");
    let first = digits.len() % 3;
    let groups = digits.as_bytes()[first..].chunks(3).map(|group| String::from_utf8_lossy(group).into_owned());
    let groups = (first > 0).then(|| digits[..first].to_owned()).into_iter().chain(groups);
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use pointwise::DType;

    use super::*;

    const TEXT: &str = include_str!("../../docs/data/error-curves.csv");

    #[test]
    fn every_line_is_read() {
        let errors = Errors::read("# a GPU\nexp,f32,pointwise,0.5,,1\n").unwrap();
        assert_eq!(errors.machine, "a GPU");
        let points = &errors.curves[&("exp", "f32", "pointwise")];
        assert!(points[0].1 == 0.5 && points[1].0 == 0.0 && points[1].1.is_nan() && points[2].1 == 1.0);
        assert!(Errors::read("# a GPU\nexp,f32\n").is_err() && Errors::read("exp,f32,pointwise,1\n").is_err());
    }

    #[test]
    fn measured_errors_keep_the_bounds() {
        for ((name, dtype, library), points) in &Errors::read(TEXT).unwrap().curves {
            // The bound of a gradient is of its terms, not of what is left when they cancel.
            if is_gradient(name) {
                continue;
            }
            let bound = op(name).unwrap().info.accuracy.bound(if *dtype == "f32" { DType::F32 } else { DType::BF16 });
            assert!(*library != "pointwise" || largest(points) <= f64::from(bound), "{name} in {dtype}");
        }
    }

    #[test]
    fn large_numbers_have_commas() {
        assert_eq!(rounded(12.4), "12.4");
        assert_eq!(rounded(825_000.0), "825,000");
        assert_eq!(rounded(4_840_000.0), "4,840,000");
    }
}
