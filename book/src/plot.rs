//! The figures, as SVG without a background, in colours that can be read on light and dark.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::curves::{FROM, Point, TO};

const SIZE: (u32, u32) = (680, 300);
const GREY: RGBColor = RGBColor(0x80, 0x80, 0x80);
const BLUE: RGBColor = RGBColor(0x1f, 0x86, 0xd0);
const ORANGE: RGBColor = RGBColor(0xd9, 0x7a, 0x1a);
const GREEN: RGBColor = RGBColor(0x3f, 0x9e, 0x58);

/// A curve with its name.
pub(crate) struct Curve<'a> {
    pub(crate) name: &'a str,
    pub(crate) points: &'a [Point],
}

/// What the axes are called, and the part of the first that is drawn.
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
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    chart(&root, curves, axes, most).map_err(|error| anyhow!("{}: {error}", path.display()))?;
    root.present()?;
    Ok(())
}

fn chart(
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    curves: &[Curve<'_>],
    axes: &Axes<'_>,
    most: Option<f64>,
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let values = curves.iter().flat_map(|curve| curve.points).map(|(_, y)| *y).filter(|y| y.is_finite());
    let limit = most.unwrap_or(f64::INFINITY);
    let (low, high) = values.fold((0.0_f64, 0.0_f64), |(low, high), y| (low.min(y), high.max(y)));
    let (low, high) = (low.max(-limit), high.min(limit).max(low + 1e-3));
    let margin = 0.06 * (high - low);
    let mut chart = ChartBuilder::on(root)
        .margin(8)
        .x_label_area_size(34)
        .y_label_area_size(54)
        .build_cartesian_2d(axes.from..axes.to, low - margin..high + margin)?;
    let text = ("sans-serif", 14).into_font().color(&GREY);
    chart
        .configure_mesh()
        .axis_style(GREY)
        .bold_line_style(GREY.mix(0.25))
        .light_line_style(TRANSPARENT)
        .label_style(text.clone())
        .x_desc(axes.x)
        .y_desc(axes.y)
        .draw()?;
    for (Curve { name, points }, colour) in curves.iter().zip([BLUE, ORANGE, GREEN]) {
        // A curve has a gap where its value is none, or is not drawn.
        let is_drawn = |(_, y): &Point| (low - margin..=high + margin).contains(y);
        let mut is_first = true;
        for part in points.split(|point| !is_drawn(point)).filter(|part| part.len() > 1) {
            let drawn = chart.draw_series(LineSeries::new(part.iter().copied(), colour.stroke_width(2)))?;
            if std::mem::take(&mut is_first) {
                drawn
                    .label(*name)
                    .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
            }
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .label_font(text)
        .border_style(TRANSPARENT)
        .draw()?;
    Ok(())
}
