//! The common parts of all pictures. They have no background, and colours that can be read on light and dark.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The colour of words and axes.
pub(crate) const GREY: RGBColor = RGBColor(0x80, 0x80, 0x80);
/// The colours of curves, types and threads, in turn.
pub(crate) const COLOURS: [RGBColor; 4] =
    [RGBColor(0x1f, 0x86, 0xd0), RGBColor(0xd9, 0x7a, 0x1a), RGBColor(0x3f, 0x9e, 0x58), RGBColor(0xb0, 0x5c, 0xc4)];
/// Pixels of an element.
pub(crate) const CELL: i32 = 26;
/// Pixels beside the first element.
pub(crate) const LEFT: i32 = 12;

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(crate) type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

/// An SVG of a size.
///
/// # Errors
/// The drawing library's.
pub(crate) fn picture(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawn) -> Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        draw(&area).map_err(|error| anyhow!("{error}"))?;
        area.present()?;
    }
    Ok(svg)
}

/// Words in grey.
pub(crate) fn text(area: &Area<'_>, words: &str, at: (i32, i32), size: i32, horizontal: HPos) -> Drawn {
    let style = ("sans-serif", size).into_font().color(&GREY).pos(Pos::new(horizontal, VPos::Center));
    area.draw(&Text::new(words.to_owned(), at, style))?;
    Ok(())
}
