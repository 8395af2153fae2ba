//! The figure of sizes.

use std::collections::BTreeSet;

use plotters::prelude::*;

use super::{Drawn, FONT, GREY, colours, legend, machine, svg};
use crate::report::{Measured, Report};

/// Bytes a second over the size of a tensor.
pub(super) fn sizes(report: &Report) -> Drawn<Option<String>> {
    // A size of 0 has no place on an axis of logarithms.
    let size = |row: &Measured| row.case.parse::<u64>().ok().filter(|&size| size > 0);
    let rows: Vec<(String, u64, f64)> = report
        .rows
        .iter()
        .filter(|row| row.set == "sizes")
        .filter_map(|row| {
            let timing = row.timing()?;
            Some((format!("{} {}", row.op, row.dtype), size(row)?, timing.gb_per_s))
        })
        .collect();
    let all: BTreeSet<u64> = rows.iter().map(|(_, size, _)| *size).collect();
    let (Some(&least), Some(&most)) = (all.first(), all.last()) else { return Ok(None) };
    let (least, most) = (least as f64, (most as f64).max(least as f64 * 2.0));
    let colours = colours(rows.iter().map(|(name, ..)| name.as_str()));
    let high = rows.iter().map(|(.., rate)| *rate).fold(1.0, f64::max) * 1.05;
    svg(1000, 560, |area| {
        let title = format!("Bytes moved a second by the size of a tensor, cold ({})", machine(report));
        let area = area.titled(&title, (FONT, 20).into_font().color(&GREY))?;
        legend(&area, &colours, (90, 12))?;
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
            .bold_line_style(GREY.mix(0.25))
            .axis_style(GREY)
            .x_labels(12)
            .x_label_formatter(&|size| bytes(*size))
            .y_label_formatter(&|rate| format!("{rate:.0}"))
            .x_desc("bytes of one tensor")
            .y_desc("GB/s, read and written")
            .label_style((FONT, 13).into_font().color(&GREY))
            .axis_desc_style((FONT, 15).into_font().color(&GREY))
            .draw()?;
        for (name, colour) in &colours {
            let points: Vec<(f64, f64)> =
                rows.iter().filter(|(row, ..)| row == name).map(|(_, size, rate)| (*size as f64, *rate)).collect();
            chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?;
            chart.draw_series(points.into_iter().map(|point| Circle::new(point, 3, colour.filled())))?;
        }
        Ok(())
    })
}

/// `64 KiB`.
pub(super) fn bytes(size: f64) -> String {
    let mut size = size;
    for unit in ["B", "KiB", "MiB"] {
        if size < 1023.5 {
            return format!("{size:.0} {unit}");
        }
        size /= 1024.0;
    }
    format!("{size:.0} GiB")
}
