//! The roofline: the bytes that kernels move a second, over the instructions that they execute a byte. The measurements
//! come from `benches/peers/roofline.py`.

use anyhow::{Context as _, Result};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::canvas::{Area, COLOURS, Drawn, GREY, picture};

/// An H100 (SXM) issues one instruction of 32 threads in each of 4 schedulers of 132 multiprocessors, 1.95 G times a second.
const INSTRUCTIONS: f64 = 132.0 * 4.0 * 32.0 * 1.95;
/// Its memory, by its data sheet, in GB/s.
const MEMORY: f64 = 3352.0;
const TYPES: [&str; 3] = ["f32", "bf16", "f8e4m3"];
/// The end of the first axis, instructions for each byte.
const TO: f64 = 16.0;
/// Points beyond this have their op's name, and those slower than [`SLOW`].
const MANY: f64 = 7.3;
const SLOW: f64 = 2900.0;

/// A launch.
struct Launch<'a> {
    op: &'a str,
    dtype: &'a str,
    /// Instructions for each byte.
    intensity: f64,
    /// GB/s.
    speed: f64,
}

/// The launches of the file's text.
fn launches(text: &str) -> Result<Vec<Launch<'_>>> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    let launch = |line| {
        let cells: Vec<&str> = str::split(line, ',').collect();
        let [op, dtype, bytes, instructions, ns, _] = cells[..] else { return None };
        let (bytes, instructions, ns): (f64, f64, f64) =
            (bytes.parse().ok()?, instructions.parse().ok()?, ns.parse().ok()?);
        Some(Launch { op, dtype, intensity: instructions / bytes, speed: bytes / ns })
    };
    lines.map(|line| launch(line).with_context(|| format!("no launch: {line}"))).collect()
}

/// The picture of the file's launches.
///
/// # Errors
/// A line that is none of the file; the drawing library's.
pub(crate) fn draw(text: &str) -> Result<String> {
    let mut launches = launches(text)?;
    launches.retain(|launch| launch.op != "copy");
    picture((760, 380), |area| chart(area, &launches))
}

fn chart(area: &Area<'_>, launches: &[Launch<'_>]) -> Drawn {
    let style = ("sans-serif", 14).into_font().color(&GREY);
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .margin_top(28)
        .margin_right(24)
        .x_label_area_size(40)
        .y_label_area_size(62)
        .build_cartesian_2d(0.0..TO, 0.0..3800.0)?;
    chart
        .configure_mesh()
        .axis_style(GREY)
        .bold_line_style(GREY.mix(0.25))
        .light_line_style(TRANSPARENT)
        .x_labels(8)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .label_style(style.clone())
        .x_desc("instructions of threads for each byte moved")
        .y_desc("GB/s")
        .draw()?;
    let roof = |x: f64| (x, MEMORY.min(INSTRUCTIONS / x));
    let points = (1..=160).map(|k| roof(TO * f64::from(k) / 160.0));
    chart.draw_series(LineSeries::new(points, GREY.stroke_width(2)))?;
    let left = Pos::new(HPos::Left, VPos::Bottom);
    let words = |words: &str, at: (f64, f64)| Text::new(words.to_owned(), at, style.clone().pos(left));
    chart.draw_series([
        words("memory's limit", (0.2, MEMORY + 60.0)),
        words("limit of issued instructions", (11.4, MEMORY - 330.0)),
    ])?;
    for (launch, colour) in launches.iter().filter_map(|launch| {
        let at = TYPES.iter().position(|dtype| *dtype == launch.dtype)?;
        Some((launch, COLOURS[at]))
    }) {
        let at = (launch.intensity, launch.speed);
        chart.draw_series([Circle::new(at, 4, colour.filled())])?;
        if launch.intensity > MANY || launch.speed < SLOW {
            let right = Pos::new(HPos::Right, VPos::Top);
            let name = format!("{} {}", launch.op, launch.dtype);
            chart.draw_series([Text::new(name, (at.0 - 0.12, at.1 - 40.0), style.clone().pos(right))])?;
        }
    }
    for (k, (name, colour)) in TYPES.iter().zip(COLOURS).enumerate() {
        let x = 74 + 90 * k as i32;
        area.draw(&Circle::new((x, 14), 4, colour.filled()))?;
        area.draw(&Text::new((*name).to_owned(), (x + 10, 14), style.clone().pos(Pos::new(HPos::Left, VPos::Center))))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_are_read() {
        let text = "# a GPU\nop,dtype,bytes,instructions,ns,mhz\nexp,f32,1000,4000,10,1950\n";
        let launches = launches(text).unwrap();
        assert!(launches[0].op == "exp" && launches[0].dtype == "f32");
        assert!(launches[0].intensity == 4.0 && launches[0].speed == 100.0);
        assert!(super::launches("op\nexp,f32,1\n").is_err());
    }

    #[test]
    fn no_launch_is_above_the_roof() {
        let launches = launches(include_str!("../../docs/data/roofline.csv")).unwrap();
        assert!(launches.len() > 80);
        for Launch { op, dtype, intensity, speed } in launches {
            assert!(speed < MEMORY && speed * intensity < INSTRUCTIONS, "{op} {dtype}");
        }
    }
}
