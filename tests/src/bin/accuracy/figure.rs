//! The figure of docs/accuracy.md: the largest error of each op in f32, beside PyTorch's; without a background, in
//! colours that can be read on light and dark.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::record::{Record, Row};

const OURS: RGBColor = RGBColor(0x00, 0x72, 0xB2);
const THEIRS: RGBColor = RGBColor(0xE6, 0x9F, 0x00);
/// Of text and lines.
const GREY: RGBColor = RGBColor(0x80, 0x80, 0x80);

const WIDTH: i32 = 900;
/// Of an op, with both its bars.
const ROW: i32 = 24;
const LEFT: i32 = 150;
const RIGHT: i32 = 110;
const TOP: i32 = 76;
const BOTTOM: i32 = 44;

/// Decades of the axis, in ULP.
const LOW: f64 = 0.1;
const HIGH: f64 = 1e8;

/// Writes the SVG file.
pub(crate) fn write(path: &Path, ours: &Record, peers: Option<&Record>) -> Result<(), Box<dyn Error>> {
    // Ops that are exact on both sides have no bar; gradients have a table alone.
    let theirs = |row: &Row| peers.and_then(|peers| peers.row(&row.op, &row.dtype));
    let is_off = |row: &Row| row.not_rounded > 0;
    let has_bar = |row: &Row| !row.is_gradient() && (is_off(row) || theirs(row).is_some_and(is_off));
    let rows: Vec<&Row> = ours.rows.iter().filter(|row| row.dtype == "f32" && has_bar(row)).collect();
    let height = TOP + ROW * rows.len() as i32 + BOTTOM;
    let root = SVGBackend::new(path, (WIDTH as u32, height as u32)).into_drawing_area();
    let text = |size: i32, horizontal: HPos| {
        ("sans-serif", size).into_font().color(&GREY).pos(Pos::new(horizontal, VPos::Center))
    };
    let place = |ulp: f64| {
        let share = (ulp.clamp(LOW, HIGH) / LOW).log10() / (HIGH / LOW).log10();
        LEFT + (share * f64::from(WIDTH - LEFT - RIGHT)).round() as i32
    };
    root.draw(&Text::new("Largest error in f32, in ULP (log scale)", (LEFT, 22), text(17, HPos::Left)))?;
    for (k, (name, colour)) in [("pointwise", OURS), ("PyTorch", THEIRS)].into_iter().enumerate() {
        let x = LEFT + 110 * k as i32;
        root.draw(&Rectangle::new([(x, 40), (x + 12, 52)], colour.filled()))?;
        root.draw(&Text::new(name, (x + 18, 46), text(14, HPos::Left)))?;
    }
    let bottom = height - BOTTOM;
    for decade in -1..=8 {
        let x = place(10_f64.powi(decade));
        root.draw(&PathElement::new(vec![(x, TOP - 6), (x, bottom)], GREY.mix(0.25)))?;
        let label = match decade {
            -1 => "0.1".to_owned(),
            0..=3 => 10_i32.pow(decade as u32).to_string(),
            _ => format!("1e{decade}"),
        };
        root.draw(&Text::new(label, (x, bottom + 14), text(13, HPos::Center)))?;
    }
    for (i, row) in rows.iter().enumerate() {
        let y = TOP + ROW * i as i32;
        root.draw(&Text::new(row.op.clone(), (LEFT - 8, y + ROW / 2 - 2), text(14, HPos::Right)))?;
        for (k, (row, colour)) in [(Some(*row), OURS), (theirs(row), THEIRS)].into_iter().enumerate() {
            let Some(row) = row else { continue };
            let top = y + 9 * k as i32 + 1;
            let (end, label) = match row.max_ulp {
                _ if row.not_rounded == 0 => (place(0.5), "0.5".to_owned()),
                Some(max) if max < 1000.0 => (place(max), format!("{max:.2}")),
                Some(max) => (place(max), format!("{max:.1e}")),
                None => (place(HIGH), "other NaN".to_owned()),
            };
            root.draw(&Rectangle::new([(LEFT, top), (end, top + 8)], colour.filled()))?;
            root.draw(&Text::new(label, (end + 5, top + 4), text(11, HPos::Left)))?;
        }
    }
    root.present()?;
    Ok(())
}
