//! A figure with a strip for each name and a dot for each value: it shows at a glance which of many are beyond the
//! goal.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Area, Drawn, FONT, GREY, svg, text_width};

/// The height of a strip.
const STRIP: i32 = 17;
const TOP: i32 = 96;
const BOTTOM: i32 = 56;
/// A panel's width, and the room right of it for the worst value.
const PANEL: i32 = 560;
const NARROW: i32 = 330;
const REMARK: i32 = 118;
const SMALL: i32 = 12;
const BEYOND: RGBColor = RGBColor(214, 69, 65);

/// One value.
pub(super) struct Mark {
    /// The name of its strip.
    pub(super) strip: String,
    pub(super) value: f64,
    pub(super) colour: RGBColor,
    /// Drawn as a ring.
    pub(super) is_tie: bool,
    /// The label beside the value if it is its strip's worst.
    pub(super) what: String,
}

/// Values of one kind for all strips.
pub(super) struct Panel {
    pub(super) title: String,
    /// The range of the axis; values beyond it are drawn at its end.
    pub(super) range: (f64, f64),
    pub(super) step: f64,
    /// Values above it are bad, or below it.
    pub(super) goal: f64,
    pub(super) is_high_bad: bool,
    pub(super) marks: Vec<Mark>,
}

impl Panel {
    fn is_beyond(&self, value: f64) -> bool {
        if self.is_high_bad { value > self.goal } else { value < self.goal }
    }

    /// The badness of a value, to compare.
    fn badness(&self, value: f64) -> f64 {
        if self.is_high_bad { value } else { -value }
    }

    fn worst(&self, strip: &str) -> Option<&Mark> {
        let own = self.marks.iter().filter(|mark| mark.strip == strip);
        own.max_by(|a, b| self.badness(a.value).total_cmp(&self.badness(b.value)))
    }

    /// The pixel of a value; `left` is the pixel of the axis' begin.
    fn place(&self, value: f64, left: i32, width: i32) -> i32 {
        let (low, high) = self.range;
        left + ((value.clamp(low, high) - low) / (high - low) * f64::from(width)).round() as i32
    }
}

fn label<'a>(colour: RGBColor, size: i32, horizontal: HPos) -> TextStyle<'a> {
    (FONT, size).into_font().color(&colour).pos(Pos::new(horizontal, VPos::Center))
}

/// Draws panels side by side. They have the strips of the first panel, the worst first.
pub(super) fn draw(title: &str, colours: &[(&str, RGBColor)], panels: &[Panel]) -> Drawn<Option<String>> {
    let Some(first) = panels.first() else { return Ok(None) };
    let mut strips: Vec<(&str, f64)> = Vec::new();
    for mark in &first.marks {
        let badness = first.badness(mark.value);
        match strips.iter_mut().find(|(name, _)| *name == mark.strip) {
            Some((_, worst)) => *worst = worst.max(badness),
            None => strips.push((&mark.strip, badness)),
        }
    }
    strips.sort_by(|a, b| b.1.total_cmp(&a.1));
    let longest = strips.iter().map(|(name, _)| text_width(name, SMALL)).max().unwrap_or(0);
    let names = 16 + longest;
    let width = if panels.len() == 1 { PANEL } else { NARROW };
    let whole = names + panels.len() as i32 * (width + REMARK);
    let height = TOP + STRIP * strips.len() as i32 + BOTTOM;
    svg(whole as u32, height as u32, |area| {
        area.draw(&Text::new(title.to_owned(), (whole / 2, 20), label(GREY, 19, HPos::Center)))?;
        super::legend(area, colours, (names, 48))?;
        for (at, (name, _)) in strips.iter().enumerate() {
            let y = TOP + STRIP * at as i32 + STRIP / 2;
            area.draw(&Text::new((*name).to_owned(), (names - 8, y), label(GREY, SMALL, HPos::Right)))?;
        }
        let names_alone: Vec<&str> = strips.iter().map(|(name, _)| *name).collect();
        for (at, panel) in panels.iter().enumerate() {
            of_panel(area, panel, &names_alone, (names + at as i32 * (width + REMARK), width))?;
        }
        Ok(())
    })
}

fn of_panel(area: &Area<'_>, panel: &Panel, strips: &[&str], (left, width): (i32, i32)) -> Drawn<()> {
    let bottom = TOP + STRIP * strips.len() as i32;
    let place = |value: f64| panel.place(value, left, width);
    let (low, high) = panel.range;
    let bad = if panel.is_high_bad { (panel.goal, high) } else { (low, panel.goal) };
    area.draw(&Rectangle::new([(place(bad.0), TOP), (place(bad.1), bottom)], BEYOND.mix(0.1).filled()))?;
    area.draw(&Text::new(panel.title.clone(), (left + width / 2, TOP - 16), label(GREY, 14, HPos::Center)))?;
    let steps = ((high - low) / panel.step).round() as i32;
    for k in 0..=steps {
        let value = low + f64::from(k) * panel.step;
        let line = if (value - 1.0).abs() < 1e-9 { GREY.mix(0.9) } else { GREY.mix(0.25) };
        area.draw(&PathElement::new([(place(value), TOP), (place(value), bottom)], line))?;
        area.draw(&Text::new(format!("{value:.1}"), (place(value), bottom + 14), label(GREY, SMALL, HPos::Center)))?;
    }
    area.draw(&PathElement::new([(place(panel.goal), TOP), (place(panel.goal), bottom)], BEYOND.mix(0.6)))?;
    let goal = format!("goal {}", panel.goal);
    area.draw(&Text::new(goal, (place(panel.goal), bottom + 32), label(BEYOND, SMALL, HPos::Center)))?;
    for (at, strip) in strips.iter().enumerate() {
        let y = TOP + STRIP * at as i32 + STRIP / 2;
        area.draw(&PathElement::new([(left, y), (left + width, y)], GREY.mix(0.12)))?;
        for mark in panel.marks.iter().filter(|mark| mark.strip == *strip) {
            let style = if mark.is_tie { mark.colour.stroke_width(1) } else { mark.colour.mix(0.8).filled() };
            area.draw(&Circle::new((place(mark.value), y), 4, style))?;
        }
        if let Some(worst) = panel.worst(strip).filter(|worst| panel.is_beyond(worst.value)) {
            let text = format!("{:.2} {}", worst.value, worst.what);
            area.draw(&Text::new(text, (left + width + 8, y), label(BEYOND, SMALL, HPos::Left)))?;
        }
    }
    Ok(())
}
