//! The figures: SVG drawn from a report alone, without a background, in colours that can be read on light and dark.

mod ratios;
mod sizes;
mod strips;

use std::path::{Path, PathBuf};

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::report::Report;
use pointwise_cli::draft;
use pointwise_cli::error::{Error, Result};

/// A colour for each type or peer, told apart by all kinds of eyes (Okabe and Ito 2008).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    GREY,
    RGBColor(160, 120, 30),
];
/// The colour of text and lines.
const GREY: RGBColor = RGBColor(128, 128, 128);
const FONT: &str = "sans-serif";
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// Makes an SVG of a report; `None` if the report has no rows for it.
type Figure = fn(&Report) -> Drawn<Option<String>>;
type Drawn<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const FIGURES: [(&str, Figure); 3] =
    [("share.svg", ratios::share), ("peers.svg", ratios::peers), ("sizes.svg", sizes::sizes)];

/// Draws what the report has rows for, and returns the files.
///
/// # Errors
/// The folder cannot be written; no row is fit for any figure.
pub(crate) fn draw(report: &Report, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for (name, figure) in FIGURES {
        let path = folder.join(name);
        let fault = |why: String| Error::Failed(format!("cannot write {}: {why}", path.display()));
        let Some(text) = figure(report).map_err(|error| fault(error.to_string()))? else { continue };
        draft::replace(&path, text).map_err(|error| fault(error.to_string()))?;
        files.push(path);
    }
    if files.is_empty() {
        return Err(Error::Failed(
            "no row is fit for a figure: measure the set large or sizes, or give --peers".into(),
        ));
    }
    Ok(files)
}

/// An SVG of this size.
fn svg(width: u32, height: u32, paint: impl FnOnce(&Area<'_>) -> Drawn<()>) -> Drawn<Option<String>> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (width, height)).into_drawing_area();
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
    colours.iter().find(|(known, _)| *known == name).map_or(GREY, |(_, colour)| *colour)
}

/// Names and their colours in a line.
fn legend(area: &Area<'_>, colours: &[(&str, RGBColor)], (mut x, y): (i32, i32)) -> Drawn<()> {
    for (name, colour) in colours {
        area.draw(&Circle::new((x, y), 4, colour.filled()))?;
        area.draw(&Text::new((*name).to_owned(), (x + 9, y - 7), (FONT, 14).into_font().color(&GREY)))?;
        x = x.saturating_add(30 + text_width(name, 14));
    }
    Ok(())
}

/// The most pixels that a text takes in a wide font: there is no font here to measure it with. A name in a file may
/// have any length, a figure may not.
fn text_width(text: &str, size: i32) -> i32 {
    const LONGEST: usize = 1000;
    text.chars().take(LONGEST).count() as i32 * size * 62 / 100
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn each_figure_has_its_marks() {
        let mut report = synthetic::report();
        synthetic::peers().join(&mut report);
        let large = report.rows.iter().filter(|row| row.set == "large").count();
        let text = ratios::share(&report).unwrap().unwrap();
        assert!(
            text.contains("Synthetic GPU") && text.contains("gelu_tanh_and_mul_backward") && text.contains("f8e5m2")
        );
        // The legend has five floats, i32, i64 and bool.
        assert_eq!(text.matches("<circle").count(), large + 8);
        let text = ratios::peers(&report).unwrap().unwrap();
        assert!(text.contains("triton") && text.contains("over the fastest peer") && !text.contains("published"));
        assert_eq!(text.matches("<circle").count(), 430 + 3);
        let text = sizes::sizes(&report).unwrap().unwrap();
        assert!(text.contains("GB/s") && text.contains("KiB") && text.contains("copy bf16"));
        assert_eq!(text.matches("<circle").count(), 96 + 8);
    }

    #[test]
    fn busy_times_have_panels() {
        let mut report = synthetic::report_with_busy();
        synthetic::peers().join(&mut report);
        let text = ratios::peers(&report).unwrap().unwrap();
        assert!(text.contains("busy time over the fastest peer") && text.contains("over the best published"));
        // By events, by busy time, over the published; of one row there are no times.
        assert_eq!(text.matches("<circle").count(), 3 * 430 + 3);
    }

    /// `bench --from docs/data/bench.json --figures docs/figures` draws them.
    #[test]
    fn the_figures_in_docs_are_those_of_the_data() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let report = Report::read(&docs.join("data/bench.json")).unwrap();
        for (name, figure) in FIGURES {
            let there = std::fs::read_to_string(docs.join("figures").join(name)).unwrap();
            assert!(figure(&report).unwrap().unwrap() == there, "docs/figures/{name} is of other data");
        }
    }

    /// No text begins left of the figure.
    #[test]
    fn labels_are_whole() {
        let mut report = synthetic::report_with_busy();
        synthetic::peers().join(&mut report);
        for text in [ratios::share(&report), ratios::peers(&report)].map(|text| text.unwrap().unwrap()) {
            let lines: Vec<&str> = text.lines().collect();
            let ends = lines.windows(2).filter(|pair| pair[0].contains("text-anchor=\"end\"")).map(|pair| {
                let x = pair[0].split_once(" x=\"").unwrap().1.split_once('"').unwrap().0;
                (x.parse::<i32>().unwrap(), pair[1])
            });
            let (mut count, size) = (0, 12);
            for (x, label) in ends {
                assert!(x >= text_width(label, size), "{label} ends at {x}");
                count += 1;
            }
            assert!(count > 60, "{count}");
        }
    }

    #[test]
    fn no_rows_no_figure() {
        let mut report = synthetic::report();
        report.rows.retain(|row| row.set == "reference");
        assert!(draw(&report, Path::new(".")).unwrap_err().to_string().contains("no row is fit"));
        assert_eq!([1024.0, 65536.0, 4294967296.0].map(sizes::bytes), ["1 KiB", "64 KiB", "4 GiB"]);
    }
}
