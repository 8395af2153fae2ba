//! The results for people: a line a row, at most 80 columns, and a summary.

use std::io::Write;

use crate::peers::Peers;
use crate::report::{Best, Clock, Measured, Report, geometric_mean};
use pointwise_cli::error::Result;
use pointwise_cli::output::{Paint, line};

/// The goal: this share of the copy's speed.
pub(crate) const GOAL: f64 = 0.97;
/// Ratios within this of 1 are ties.
pub(crate) const TIE: f64 = 0.02;
/// Calls that move more than this are held against the copy; of smaller ones the launch is the larger part.
const LARGE: u64 = 8 << 20;
/// Rows listed as the worst.
const WORST: usize = 10;

/// The lines of a table.
#[derive(Clone, Copy)]
pub(crate) struct Table {
    /// True if there is a column of peers.
    pub(crate) peers: bool,
    /// True if there are busy times.
    pub(crate) busy: bool,
    pub(crate) paint: Paint,
}

impl Table {
    /// The titles.
    pub(crate) fn head(self) -> String {
        self.paint.strong(&self.text(["op", "dtype"], |column| column.to_owned()))
    }

    /// A row: its times, or why it has none.
    pub(crate) fn row(self, row: &Measured) -> String {
        let label = if row.case.is_empty() { row.op.clone() } else { format!("{} {}", row.op, row.case) };
        let Some(timing) = row.timing() else {
            let why = row.skipped.as_deref().unwrap_or("not measured");
            let width = self.label();
            let begin = format!("{:width$} {:6}", cut(&label, width), row.dtype);
            return format!("{begin} {}", self.paint.bad(&format!("skipped: {why}")));
        };
        let best = row.best(Clock::Events);
        self.text([&label, &row.dtype], |column| match column {
            "us" => us(Some(timing.us)),
            "cold us" => us(row.spread(Clock::Events).map(|cold| cold.us)),
            "busy us" => us(row.spread(Clock::Busy).map(|busy| busy.us)),
            "warm us" => us(row.times.warm.as_ref().map(|warm| warm.us)),
            "GB/s" => format!("{:.0}", timing.gb_per_s),
            "share" => format!("{:.2}", timing.share),
            "peer" => best.map_or("-", |best| &best.peer).to_owned(),
            "its us" => us(best.map(|best| best.us)),
            "ratio" => over(best),
            "busy" => over(row.best(Clock::Busy)),
            _ => ratio(row.published_ratio(if self.busy { Clock::Busy } else { Clock::Events })),
        })
    }

    /// A line of 80 columns at most: what the op is, then each column's text.
    fn text(self, [op, dtype]: [&str; 2], of: impl Fn(&str) -> String) -> String {
        let columns: &[(&str, usize)] = match (self.peers, self.busy) {
            (true, true) => {
                &[("us", 8), ("share", 5), ("peer", 8), ("its us", 8), ("ratio", 5), ("busy", 5), ("publ.", 5)]
            }
            (true, false) => &[("us", 8), ("share", 5), ("peer", 10), ("its us", 8), ("ratio", 5), ("publ.", 5)],
            (false, true) => &[("cold us", 9), ("busy us", 9), ("warm us", 9), ("GB/s", 6), ("share", 5), ("publ.", 5)],
            (false, false) => &[("cold us", 9), ("warm us", 9), ("GB/s", 6), ("share", 5), ("publ.", 5)],
        };
        let width = self.label();
        let mut text = format!("{:width$} {dtype:6}", cut(op, width));
        for (column, width) in columns {
            let cell = cut(&of(column), *width);
            text += &if *column == "peer" { format!(" {cell:width$}") } else { format!(" {cell:>width$}") };
        }
        text
    }

    /// The width of what says which row it is.
    fn label(self) -> usize {
        match (self.peers, self.busy) {
            (true, true) => 22,
            (true, false) => 26,
            (false, true) => 24,
            (false, false) => 31,
        }
    }
}

fn us(us: Option<f64>) -> String {
    us.map_or("-".to_owned(), |us| if us < 1000.0 { format!("{us:.2}") } else { format!("{us:.0}") })
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"))
}

/// A ratio; with `=` it is a tie.
fn over(best: Option<&Best>) -> String {
    let tie = best.is_some_and(|best| best.tie);
    ratio(best.map(|best| best.ratio)) + if tie { "=" } else { "" }
}

/// The text, or its beginning.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['~']).collect()
}

/// Writes the summary of the rows.
///
/// # Errors
/// The errors of the standard output.
pub(crate) fn summary(out: &mut impl Write, report: &Report, peers: Option<&Peers>, table: Table) -> Result<()> {
    line(out, "")?;
    if let Some(floor) = &report.launch_floor {
        let cold = us(floor.cold.as_ref().map(|cold| cold.us));
        let warm = us(floor.warm.as_ref().map(|warm| warm.us));
        let (graph, host) = (us(floor.graph_us), us(floor.host_us));
        let busy = floor.busy.as_ref().map_or(String::new(), |busy| format!(", busy {:.2}", busy.spread.us));
        line(
            out,
            format!(
                "A call of one element: cold {cold}, warm {warm}{busy}, in a graph {graph}, on the host {host} us."
            ),
        )?;
    }
    let mut sets: Vec<&str> = report.rows.iter().map(|row| row.set.as_str()).collect();
    sets.dedup();
    for set in sets {
        let rows: Vec<&Measured> = report.rows.iter().filter(|row| row.set == set).collect();
        of_set(out, set, &rows, table)?;
    }
    let skipped: Vec<&Measured> = report.rows.iter().filter(|row| row.timing().is_none()).collect();
    if !skipped.is_empty() {
        line(out, "")?;
        line(out, table.paint.strong(&format!("{} rows were not measured:", skipped.len())))?;
        for row in skipped {
            line(out, table.row(row))?;
        }
    }
    match peers {
        Some(peers) => of_peers(out, report, peers, table),
        None => Ok(()),
    }
}

fn of_set<'a>(out: &mut impl Write, set: &str, rows: &[&'a Measured], table: Table) -> Result<()> {
    let measured: Vec<&'a Measured> = rows.iter().copied().filter(|row| row.timing().is_some()).collect();
    if measured.is_empty() {
        return Ok(());
    }
    let large: Vec<(&'a Measured, f64)> = measured
        .iter()
        .filter(|row| row.bytes > LARGE)
        .filter_map(|row| row.timing().map(|timing| (*row, timing.share)))
        .collect();
    line(out, "")?;
    line(out, table.paint.strong(&format!("{set}: {} of {} rows measured", measured.len(), rows.len())))?;
    if let Some(mean) = geometric_mean(large.iter().map(|(_, share)| *share)) {
        let below = large.iter().filter(|(_, share)| *share < GOAL).count();
        line(
            out,
            format!(
                "  above 8 MiB: {mean:.3} of the copy's speed (geometric mean), {below} of {} rows below {GOAL}",
                { large.len() }
            ),
        )?;
    }
    let fair = |row: &&&Measured| row.published.as_ref().is_some_and(|published| published.fair);
    let clock = if table.busy { Clock::Busy } else { Clock::Events };
    let published: Vec<f64> = measured.iter().filter(fair).filter_map(|row| row.published_ratio(clock)).collect();
    if let Some(text) = ratios(&published) {
        let by = if table.busy { "busy times" } else { "events over busy times" };
        line(out, format!("  over the best published time, fair rows, {by}: {text}"))?;
    }
    for clock in [Clock::Events, Clock::Busy, Clock::Warm, Clock::Graph, Clock::Host] {
        let best: Vec<&Best> = measured.iter().filter_map(|row| row.best(clock)).collect();
        let all: Vec<f64> = best.iter().map(|best| best.ratio).collect();
        if let Some(text) = ratios(&all) {
            let slower = best.iter().filter(|best| best.tie && best.ratio > 1.0 + TIE).count();
            let ties =
                if slower > 0 { format!(" (of the slower, {slower} inside both spreads)") } else { String::new() };
            let by = clock.name();
            let comma = if by.is_empty() { "" } else { ", " };
            line(out, format!("  over the best peer{comma}{by}: {text}{ties}"))?;
        }
    }
    let best: Vec<f64> = measured.iter().filter_map(|row| Some(row.best_peer.as_ref()?.ratio)).collect();
    // The time of a row over its ceiling's or its best peer's.
    let mut worst: Vec<(&'a Measured, f64)> = if best.is_empty() {
        large.iter().filter(|(_, share)| *share < GOAL).map(|(row, share)| (*row, 1.0 / share)).collect()
    } else {
        let ratio = |row: &'a Measured| Some((row, row.best_peer.as_ref()?.ratio));
        measured.iter().filter_map(|row| ratio(row)).filter(|(_, ratio)| *ratio > 1.0 + TIE).collect()
    };
    worst.sort_by(|a, b| b.1.total_cmp(&a.1));
    if !worst.is_empty() {
        line(out, format!("  the worst {}:", worst.len().min(WORST)))?;
        line(out, table.head())?;
    }
    for (row, ..) in worst.iter().take(WORST) {
        line(out, table.row(row))?;
    }
    Ok(())
}

/// `0.98 (geometric mean of 420), 12 slower, 60 faster, 348 within 2 %`.
fn ratios(ratios: &[f64]) -> Option<String> {
    let mean = geometric_mean(ratios.iter().copied())?;
    let slower = ratios.iter().filter(|ratio| **ratio > 1.0 + TIE).count();
    let faster = ratios.iter().filter(|ratio| **ratio < 1.0 - TIE).count();
    let ties = ratios.len() - slower - faster;
    Some(format!("{mean:.3} (geometric mean of {}), {slower} slower, {faster} faster, {ties} within 2 %", ratios.len()))
}

fn of_peers(out: &mut impl Write, report: &Report, peers: &Peers, table: Table) -> Result<()> {
    line(out, "")?;
    let meta = &peers.meta;
    let gpu = meta.gpu.as_deref().unwrap_or("an unnamed GPU");
    let torch = meta.torch.as_deref().map_or(String::new(), |torch| format!(", PyTorch {torch}"));
    let copy = meta.copy_gbps.map_or(String::new(), |copy| format!(", its copy {copy:.0} GB/s"));
    let empty = meta.empty_us.map_or(String::new(), |empty| format!(", a call of one element {empty:.2} us"));
    line(out, table.paint.strong(&format!("peers on {gpu}{torch}{copy}{empty}; ours over each:")))?;
    if let (Some(ours), Some(theirs)) = (&report.machine.gpu, &meta.gpu)
        && ours != theirs
    {
        line(out, table.paint.bad(&format!("  not the same GPU: ours ran on {ours}")))?;
    }
    for clock in [Clock::Events, Clock::Busy, Clock::Graph, Clock::Host] {
        for (peer, of_peer) in peers.ratios(report, clock) {
            if let Some(text) = ratios(&of_peer) {
                let by = clock.name();
                let semicolon = if by.is_empty() { "" } else { "; " };
                line(out, format!("  {peer:10} {text}{semicolon}{by}"))?;
            }
        }
    }
    for fault in peers.faults() {
        line(out, format!("  {}", pointwise_cli::error::one_line(&fault)))?;
    }
    for (peer, why) in peers.missing() {
        line(out, format!("  {peer:10} missing: {why}"))?;
    }
    let unmatched = peers.unmatched(report);
    if unmatched > 0 {
        line(out, format!("  {unmatched} rows of the peers are not in this report"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    fn text(report: &Report, peers: Option<&Peers>) -> String {
        let busy = report.published_clock() == Clock::Busy;
        let table = Table { peers: peers.is_some(), busy, paint: Paint::none() };
        let mut out = Vec::new();
        line(&mut out, table.head()).unwrap();
        for row in &report.rows {
            line(&mut out, table.row(row)).unwrap();
        }
        summary(&mut out, report, peers, table).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_fit_a_terminal() {
        let peers = synthetic::peers();
        for mut report in [synthetic::report(), synthetic::report_with_busy()] {
            for text in [text(&report, None), {
                peers.join(&mut report);
                text(&report, Some(&peers))
            }] {
                for line in text.lines().filter(|line| !line.contains("skipped")) {
                    assert!(line.chars().count() <= 80 || line.starts_with("  "), "{} {line}", line.len());
                }
            }
        }
    }

    #[test]
    fn what_rows_come_to() {
        let mut report = synthetic::report();
        let without = text(&report, None);
        assert!(without.contains("skipped: no room"), "{without}");
        assert!(without.contains("rows below 0.97") && without.contains("the worst"), "{without}");
        assert!(without.contains("fair rows, events over busy times"), "{without}");
        let peers = synthetic::peers();
        peers.join(&mut report);
        let with = text(&report, Some(&peers));
        assert!(with.contains("over the best peer") && with.contains("tileops    missing: no wheel"), "{with}");
        assert!(with.contains("not the same GPU") && !with.contains("over the best peer, busy times"), "{with}");
    }

    #[test]
    fn busy_times_have_their_columns() {
        let mut report = synthetic::report_with_busy();
        let peers = synthetic::peers();
        peers.join(&mut report);
        let row = &mut report.rows[0];
        let best = |peer: &str, ratio, tie| Some(Best { peer: peer.to_owned(), us: 10.0, ratio, tie });
        (row.best_peer, row.best_busy) = (best("torch", 1.031, true), best("triton", 0.9, false));
        let busy = row.times.busy.as_ref().unwrap().spread.us;
        let published = busy / row.published.as_ref().unwrap().best_us();
        let with = text(&report, Some(&peers));
        assert!(with.starts_with("op                     dtype        us share peer       its us ratio  busy publ.\n"));
        let line = with.lines().nth(1).unwrap();
        assert!(line.ends_with(&format!(" torch       10.00 1.03=  0.90 {published:>5.2}")), "{line}");
        assert!(with.contains("over the best peer, busy times: "), "{with}");
        assert!(with.contains("(of the slower, 1 inside both spreads)"), "{with}");
        assert!(with.contains("fair rows, busy times: "), "{with}");
        assert!(text(&report, None).contains("cold us   busy us   warm us"));
    }

    #[test]
    fn ratios_are_counted() {
        let text = ratios(&[1.0, 1.01, 1.1, 0.9]).unwrap();
        assert!(text.contains("1 slower, 1 faster, 2 within 2 %"), "{text}");
        assert!(ratios(&[]).is_none());
    }
}
