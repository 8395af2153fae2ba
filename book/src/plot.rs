//! The figures, as SVG without a background, in colours that can be read on light and dark.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::canvas::{COLOURS, GREY};
use crate::curves::{FROM, Point, TO};

/// In units of [`UNIT`].
const SIZE: (u32, u32) = (600, 290);
/// plotters rounds to whole numbers: with finer ones than pixels, lines are smooth.
const UNIT: u32 = 8;

/// A curve with its name.
pub(crate) struct Curve<'a> {
    pub(crate) name: &'a str,
    pub(crate) points: &'a [Point],
}

/// The names of the axes, and the part of the first axis that is drawn.
#[derive(Clone, Copy)]
pub(crate) struct Axes<'a> {
    pub(crate) x: &'a str,
    pub(crate) y: &'a str,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

/// [`draw_over`] x.
pub(crate) fn draw(path: &Path, curves: &[Curve<'_>], label: &str, most: Option<f64>) -> Result<()> {
    draw_over(path, curves, &Axes { x: "x", y: label, from: FROM, to: TO }, most)
}

/// Draws up to three curves in a file; the axis of values spans what they take, cut at `most` if it is given.
pub(crate) fn draw_over(path: &Path, curves: &[Curve<'_>], axes: &Axes<'_>, most: Option<f64>) -> Result<()> {
    let mut svg = String::new();
    let (width, height) = SIZE;
    let size = (width * UNIT, height * UNIT);
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        chart(&root, curves, axes, most).map_err(|error| anyhow!("{}: {error}", path.display()))?;
        root.present()?;
    }
    let shown = |(width, height): (u32, u32)| format!("<svg width=\"{width}\" height=\"{height}\"");
    let svg = svg.replacen(&shown(size), &shown(SIZE), 1);
    fs::write(path, svg).with_context(|| format!("writing {}", path.display()))
}

fn chart(
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    curves: &[Curve<'_>],
    axes: &Axes<'_>,
    most: Option<f64>,
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    const LEGEND: u32 = 26;
    let values = curves.iter().flat_map(|curve| curve.points).map(|(_, y)| *y).filter(|y| y.is_finite());
    let limit = most.unwrap_or(f64::INFINITY);
    let (low, high) = values.fold((0.0_f64, 0.0_f64), |(low, high), y| (low.min(y), high.max(y)));
    let (low, high) = (low.max(-limit), high.min(limit).max(low + 1e-3));
    let margin = 0.06 * (high - low);
    let text = ("sans-serif", 15 * UNIT).into_font().color(&GREY);
    let mut chart = ChartBuilder::on(root)
        .margin(8 * UNIT)
        .margin_right(28 * UNIT)
        .margin_top(LEGEND * UNIT)
        .x_label_area_size(38 * UNIT)
        .y_label_area_size(54 * UNIT)
        .build_cartesian_2d(axes.from..axes.to, low - margin..high + margin)?;
    chart
        .configure_mesh()
        .axis_style(GREY.stroke_width(UNIT))
        .bold_line_style(GREY.mix(0.25).stroke_width(UNIT))
        .light_line_style(TRANSPARENT)
        .set_all_tick_mark_size(4 * UNIT)
        .label_style(text.clone())
        .x_desc(axes.x)
        .y_desc(axes.y)
        .draw()?;
    // Above the chart, where no curve runs through it.
    let (mut x, y) = (62 * UNIT as i32, (LEGEND / 2 * UNIT) as i32);
    for (Curve { name, .. }, colour) in curves.iter().zip(COLOURS) {
        let line = colour.stroke_width(2 * UNIT);
        root.draw(&PathElement::new([(x, y), (x + 18 * UNIT as i32, y)], line))?;
        let label = text.clone().pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new(*name, (x + 24 * UNIT as i32, y), label))?;
        x += (50 + 8 * name.chars().count() as i32) * UNIT as i32;
    }
    // The first one last: where curves are the same, it is seen.
    for (Curve { points, .. }, colour) in curves.iter().zip(COLOURS).rev() {
        // A curve has a gap where its value is none, or is not drawn.
        let is_drawn = |(_, y): &Point| (low - margin..=high + margin).contains(y);
        for part in points.split(|point| !is_drawn(point)).filter(|part| part.len() > 1) {
            chart.draw_series(LineSeries::new(part.iter().copied(), colour.stroke_width(2 * UNIT)))?;
        }
    }
    Ok(())
}
