//! The figure of the README: the times of calls beside other libraries, from `docs/performance.md`.

use anyhow::{Context as _, Result, ensure};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use crate::canvas::{Area, COLOURS, Drawn, GREY, picture, text};

/// The numbers of a panel, by library.
type Bars<'a> = Vec<(&'a str, f64)>;

/// The titles of the panels, in the file's order.
const TITLES: [&str; 3] = [
    "431 calls of models, or those that the library has: mean time over pointwise's",
    "short calls one after another in a CUDA graph: microseconds a call",
    "short calls one after another in a stream: microseconds a call",
];
const WIDTH: u32 = 720;
/// Pixels of a bar, of a panel's title, and beside the bars.
const ROW: i32 = 22;
const HEAD: i32 = 34;
const LEFT: i32 = 120;

/// The panels of the file's text.
fn panels(csv: &str) -> Result<Vec<Bars<'_>>> {
    let mut panels: Vec<Bars<'_>> = Vec::new();
    for line in csv.lines().filter(|line| !line.starts_with('#')) {
        let (library, number) = line.split_once(',').with_context(|| format!("no bar: {line}"))?;
        if library == "library" {
            panels.push(Vec::new());
            continue;
        }
        let number = number.parse().with_context(|| format!("no number: {line}"))?;
        panels.last_mut().context("no panel before the first bar")?.push((library, number));
    }
    ensure!(panels.len() == TITLES.len(), "{} panels for {} titles", panels.len(), TITLES.len());
    Ok(panels)
}

/// The picture of the file's panels.
///
/// # Errors
/// A line that is none of the file; the drawing library's.
pub(crate) fn draw(csv: &str) -> Result<String> {
    let mut panels = panels(csv)?;
    // The file has our time over theirs, as the page; a longer bar is a longer time.
    panels[0].iter_mut().for_each(|(_, ratio)| *ratio = 1.0 / *ratio);
    let height: i32 = panels.iter().map(|bars| HEAD + ROW * bars.len() as i32).sum();
    picture((WIDTH, height as u32 + 8), |area| {
        let mut top = 0;
        for (bars, title) in panels.iter().zip(TITLES) {
            text(area, title, (LEFT, top + 20), 15, HPos::Left)?;
            top += HEAD;
            panel(area, bars, top)?;
            top += ROW * bars.len() as i32;
        }
        Ok(())
    })
}

fn panel(area: &Area<'_>, bars: &Bars<'_>, top: i32) -> Drawn {
    let most = bars.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    for (k, (library, value)) in bars.iter().enumerate() {
        let y = top + ROW * k as i32;
        let end = LEFT + (f64::from(WIDTH as i32 - LEFT - 70) * value / most).round() as i32;
        let colour = if *library == "pointwise" { COLOURS[0] } else { GREY };
        area.draw(&Rectangle::new([(LEFT, y + 3), (end, y + ROW - 3)], colour.filled()))?;
        text(area, library, (LEFT - 8, y + ROW / 2), 14, HPos::Right)?;
        text(area, &format!("{value:.2}"), (end + 8, y + ROW / 2), 14, HPos::Left)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_page() {
        let page = include_str!("../../docs/performance.md").split_whitespace().collect::<Vec<_>>().join(" ");
        let panels = panels(include_str!("../../docs/data/speed.csv")).unwrap();
        for (library, ratio) in &panels[0][1..] {
            assert!(page.contains(&format!("{library} {ratio}")), "{library} {ratio}");
        }
        let [(_, ours), (_, compiled), (_, theirs)] = panels[1][..] else { panic!("{panels:?}") };
        let [(_, ours_in_stream), (_, theirs_in_stream)] = panels[2][..] else { panic!("{panels:?}") };
        let row = page.split("| 1,024 |").nth(1).unwrap();
        let cells: Vec<f64> = row.split('|').take(7).map_while(|cell| cell.trim().parse().ok()).collect();
        assert_eq!([cells[0], cells[1]], [ours_in_stream, ours]);
        assert_eq!([cells[4], cells[5]], [theirs_in_stream, theirs]);
        assert_eq!(cells.last(), Some(&compiled));
        assert!(super::panels("library,x\nPyTorch\n").is_err());
    }
}
