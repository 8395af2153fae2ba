//! The figures of ratios: to a copy, to the fastest peer, to the best published time.

use super::strips::{self, Mark, Panel};
use super::{Drawn, GREY, colour, colours, machine};
use crate::report::{Clock, Measured, Report};
use crate::table::{GOAL, TIE};

/// For each op of the set `large` a strip, for each type a dot: the share of the copy's speed.
pub(super) fn share(report: &Report) -> Drawn<Option<String>> {
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
    let mark = |(row, share): &(&Measured, f64)| Mark {
        strip: row.op.clone(),
        value: *share,
        colour: colour(&colours, &row.dtype),
        is_tie: false,
        what: row.dtype.clone(),
    };
    let panel = Panel {
        title: "speed over that of a copy of the same bytes".to_owned(),
        range: (0.3, 1.2),
        step: 0.1,
        goal: GOAL,
        is_high_bad: false,
        marks: rows.iter().map(mark).collect(),
    };
    strips::draw(&format!("2^28 elements, cold ({})", machine(report)), &colours, &[panel])
}

/// For each op of the set `reference` a strip, for each row a dot: our time over the fastest peer's, by events, by busy
/// time, and over the best published one.
pub(super) fn peers(report: &Report) -> Drawn<Option<String>> {
    let rows: Vec<&Measured> = report.rows.iter().filter(|row| row.set == "reference").collect();
    let best = rows.iter().flat_map(|row| [Clock::Events, Clock::Busy].map(|clock| row.best(clock)));
    let colours = colours(best.flatten().map(|best| best.peer.as_str()));
    if colours.is_empty() {
        return Ok(None);
    }
    let mut panels = Vec::new();
    for (clock, title) in
        [(Clock::Events, "time over the fastest peer's, by events"), (Clock::Busy, "busy time over the fastest peer's")]
    {
        let mark = |row: &&Measured| {
            row.best(clock).map(|best| Mark {
                strip: strip(row),
                value: best.ratio,
                colour: colour(&colours, &best.peer),
                is_tie: best.tie,
                what: best.peer.clone(),
            })
        };
        panels.push(panel(title, rows.iter().filter_map(mark).collect()));
    }
    if report.published_clock() == Clock::Busy {
        let mark = |row: &&Measured| {
            row.published_ratio(Clock::Busy).map(|value| Mark {
                strip: strip(row),
                value,
                colour: GREY,
                is_tie: false,
                what: row.dtype.clone(),
            })
        };
        panels.push(panel("busy time over the best published", rows.iter().filter_map(mark).collect()));
    }
    panels.retain(|panel| !panel.marks.is_empty());
    let title = format!("The {} rows of the public run ({}); rings: inside both spreads", rows.len(), machine(report));
    strips::draw(&title, &colours, &panels)
}

fn panel(title: &str, marks: Vec<Mark>) -> Panel {
    Panel { title: title.to_owned(), range: (0.4, 1.6), step: 0.2, goal: 1.0 + TIE, is_high_bad: true, marks }
}

/// Rows that ask for a strategy, be it the slow one, are apart.
fn strip(row: &Measured) -> String {
    let asks = row.params.contains("strategy=");
    format!("{}{}", row.op, if asks { ", strategy asked for" } else { "" })
}
