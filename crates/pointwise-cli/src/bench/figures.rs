//! The figures: SVG drawn from a report alone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plotters::coord::Shift;
use plotters::prelude::*;

use super::report::{Measured, Report};
use super::table::GOAL;
use crate::error::{Error, Result};

/// A colour for each type or peer, told apart by all kinds of eyes (Okabe and Ito 2008).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
    RGBColor(160, 120, 30),
];
const FONT: &str = "sans-serif";
/// Width of all figures, and the height of those without a line an op.
const WIDTH: u32 = 1000;
const HEIGHT: u32 = 560;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// Makes an SVG of a report; none where the report has no rows for it.
type Figure = fn(&Report) -> Drawn<Option<String>>;
type Drawn<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Draws what the report has rows for, and returns the files.
///
/// # Errors
/// The folder cannot be written; no row is fit for any figure.
pub(crate) fn draw(report: &Report, folder: &Path) -> Result<Vec<PathBuf>> {
    let figures: [(&str, Figure); 3] = [("share.svg", share), ("peers.svg", peers), ("sizes.svg", sizes)];
    let mut files = Vec::new();
    for (name, figure) in figures {
        let path = folder.join(name);
        let fault = |why: String| Error::Failed(format!("cannot write {}: {why}", path.display()));
        let Some(text) = figure(report).map_err(|error| fault(error.to_string()))? else { continue };
        std::fs::write(&path, text).map_err(|error| fault(error.to_string()))?;
        files.push(path);
    }
    if files.is_empty() {
        return Err(Error::Failed(
            "no row is fit for a figure: measure the set large or sizes, or give --peers".into(),
        ));
    }
    Ok(files)
}

/// An SVG of this height.
fn svg(height: u32, paint: impl FnOnce(&Area<'_>) -> Drawn<()>) -> Drawn<Option<String>> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        area.fill(&WHITE)?;
        paint(&area)?;
        area.present()?;
    }
    Ok(Some(text))
}

fn machine(report: &Report) -> &str {
    report.machine.gpu.as_deref().unwrap_or("CPU")
}

/// The names in order of their first row, each with its colour.
fn colours<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(&'a str, RGBColor)> {
    let mut known: Vec<&str> = Vec::new();
    for name in names {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known.into_iter().zip(COLOURS.into_iter().cycle()).collect()
}

fn colour(colours: &[(&str, RGBColor)], name: &str) -> RGBColor {
    colours.iter().find(|(known, _)| *known == name).map_or(BLACK, |(_, colour)| *colour)
}

/// Names and their colours in a line at the top.
fn legend(area: &Area<'_>, colours: &[(&str, RGBColor)], y: i32) -> Drawn<()> {
    let mut x = 190;
    for (name, colour) in colours {
        area.draw(&Circle::new((x, y), 4, colour.filled()))?;
        area.draw(&Text::new((*name).to_owned(), (x + 9, y - 7), (FONT, 14)))?;
        x += 26 + 9 * name.len() as i32;
    }
    Ok(())
}

/// For each op of the set `large` a line, for each type a dot: the share of the copy's speed.
fn share(report: &Report) -> Drawn<Option<String>> {
    let rows: Vec<(&Measured, f64)> = report
        .rows
        .iter()
        .filter(|row| row.set == "large")
        .filter_map(|row| row.timing().map(|timing| (row, timing.share)))
        .collect();
    if rows.is_empty() {
        return Ok(None);
    }
    let colours = colours(rows.iter().map(|(row, _)| row.dtype.as_str()));
    let mut ops: Vec<&str> = rows.iter().map(|(row, _)| row.op.as_str()).collect();
    ops.dedup();
    let count = ops.len() as i32;
    let low = rows.iter().map(|(_, share)| *share).fold(0.9, f64::min);
    let high = rows.iter().map(|(_, share)| *share).fold(1.05, f64::max);
    let (low, high) = (((low - 0.01) * 20.0).floor() / 20.0, (high * 20.0).ceil() / 20.0);
    svg(110 + 16 * ops.len() as u32, |area| {
        let title = format!("Share of a copy's speed, 2^28 elements, cold ({})", machine(report));
        let area = area.titled(&title, (FONT, 20))?;
        legend(&area, &colours, 12)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .margin_top(26)
            .margin_right(30)
            .x_label_area_size(42)
            .y_label_area_size(150)
            .build_cartesian_2d(low..high, count..-1)?;
        let name = |at: &i32| usize::try_from(*at).ok().and_then(|at| ops.get(at)).map_or("", |op| op).to_owned();
        chart
            .configure_mesh()
            .disable_y_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.12))
            .x_labels(12)
            .y_labels(ops.len() + 2)
            .y_label_formatter(&name)
            .x_label_formatter(&|share| format!("{share:.2}"))
            .x_desc(format!("speed over the copy's (the line: {GOAL})"))
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 15))
            .draw()?;
        let goal = [(GOAL, -1), (GOAL, count)];
        chart.draw_series([PathElement::new(goal, BLACK.mix(0.7).stroke_width(1))])?;
        for (at, op) in ops.iter().enumerate() {
            let of_op = rows.iter().filter(|(row, _)| row.op == *op);
            let thread = [(low, at as i32), (high, at as i32)];
            chart.draw_series([PathElement::new(thread, BLACK.mix(0.06))])?;
            chart.draw_series(of_op.map(|(row, share)| {
                Circle::new((*share, at as i32), 4, colour(&colours, &row.dtype).mix(0.85).filled())
            }))?;
        }
        Ok(())
    })
}

/// Our time over the best peer's, the rows sorted by it.
fn peers(report: &Report) -> Drawn<Option<String>> {
    let mut rows: Vec<(&str, f64)> = report
        .rows
        .iter()
        .filter(|row| row.set == "reference")
        .filter_map(|row| row.best_peer.as_ref().map(|best| (best.peer.as_str(), best.ratio)))
        .collect();
    if rows.is_empty() {
        return Ok(None);
    }
    rows.sort_by(|a, b| a.1.total_cmp(&b.1));
    let colours = colours(rows.iter().map(|(peer, _)| *peer));
    let high = (rows[rows.len() - 1].1 * 1.05).max(1.5);
    let last = rows.len() as i32;
    svg(HEIGHT, |area| {
        let title = format!("Time over that of the fastest peer, {last} rows of the public run ({})", machine(report));
        let area = area.titled(&title, (FONT, 20))?;
        legend(&area, &colours, 12)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .margin_top(26)
            .margin_right(30)
            .x_label_area_size(42)
            .y_label_area_size(62)
            .build_cartesian_2d(0..last, 0.0..high)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.12))
            .y_labels(16)
            .x_desc("rows, sorted; the colour is the fastest peer's")
            .y_desc("our time / the peer's (below 1: ours is faster)")
            .y_label_formatter(&|ratio| format!("{ratio:.2}"))
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 15))
            .draw()?;
        for level in [1.0, 1.02] {
            let style = if level == 1.0 { BLACK.mix(0.9) } else { BLACK.mix(0.35) };
            chart.draw_series([PathElement::new([(0, level), (last, level)], style)])?;
        }
        chart.draw_series(rows.iter().enumerate().map(|(at, (peer, ratio))| {
            Circle::new((at as i32, *ratio), 3, colour(&colours, peer).mix(0.8).filled())
        }))?;
        Ok(())
    })
}

/// Bytes a second over the size of a tensor.
fn sizes(report: &Report) -> Drawn<Option<String>> {
    let rows: Vec<(String, f64, f64)> = report
        .rows
        .iter()
        .filter(|row| row.set == "sizes")
        .filter_map(|row| {
            let timing = row.timing()?;
            Some((format!("{} {}", row.op, row.dtype), row.case.parse::<f64>().ok()?, timing.gb_per_s))
        })
        .collect();
    let all: BTreeSet<u64> = rows.iter().map(|(_, size, _)| *size as u64).collect();
    let (Some(&least), Some(&most)) = (all.first(), all.last()) else { return Ok(None) };
    let (least, most) = (least as f64, (most as f64).max(least as f64 * 2.0));
    let colours = colours(rows.iter().map(|(name, ..)| name.as_str()));
    let high = rows.iter().map(|(.., rate)| *rate).fold(1.0, f64::max) * 1.05;
    svg(HEIGHT, |area| {
        let title = format!("Bytes moved a second by the size of a tensor, cold ({})", machine(report));
        let area = area.titled(&title, (FONT, 20))?;
        legend(&area, &colours, 12)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .margin_top(26)
            .margin_right(30)
            .x_label_area_size(42)
            .y_label_area_size(72)
            .build_cartesian_2d((least..most).log_scale().base(4.0), 0.0..high)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.12))
            .x_labels(12)
            .x_label_formatter(&|size| bytes(*size))
            .y_label_formatter(&|rate| format!("{rate:.0}"))
            .x_desc("bytes of one tensor")
            .y_desc("GB/s, read and written")
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 15))
            .draw()?;
        for (name, colour) in &colours {
            let points: Vec<(f64, f64)> =
                rows.iter().filter(|(row, ..)| row == name).map(|(_, size, rate)| (*size, *rate)).collect();
            chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?;
            chart.draw_series(points.into_iter().map(|point| Circle::new(point, 3, colour.filled())))?;
        }
        Ok(())
    })
}

/// `64 KiB`.
fn bytes(size: f64) -> String {
    let mut size = size;
    for unit in ["B", "KiB", "MiB"] {
        if size < 1023.5 {
            return format!("{size:.0} {unit}");
        }
        size /= 1024.0;
    }
    format!("{size:.0} GiB")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::synthetic;

    #[test]
    fn each_figure_has_its_marks() {
        let mut report = synthetic::report();
        synthetic::peers().join(&mut report);
        let large = report.rows.iter().filter(|row| row.set == "large").count();
        let text = share(&report).unwrap().unwrap();
        assert!(text.contains("Synthetic GPU") && text.contains("gelu_tanh") && text.contains("f8e5m2"));
        // The legend has five floats, i32, i64 and bool.
        assert_eq!(text.matches("<circle").count(), large + 8);
        let text = peers(&report).unwrap().unwrap();
        assert!(text.contains("triton") && text.contains("below 1: ours is faster"));
        assert_eq!(text.matches("<circle").count(), 430 + 3);
        let text = sizes(&report).unwrap().unwrap();
        assert!(text.contains("GB/s") && text.contains("KiB") && text.contains("copy bf16"));
        assert_eq!(text.matches("<circle").count(), 96 + 8);
    }

    #[test]
    fn no_rows_no_figure() {
        let mut report = synthetic::report();
        report.rows.retain(|row| row.set == "reference");
        assert!(draw(&report, Path::new(".")).unwrap_err().to_string().contains("no row is fit"));
        assert_eq!([1024.0, 65536.0, 4294967296.0].map(bytes), ["1 KiB", "64 KiB", "4 GiB"]);
    }
}
