//! The results for people: a line a row, 80 columns at most, and what they come to.

use std::io::Write;

use super::peers::Peers;
use super::report::{Measured, Report, geometric_mean};
use crate::error::Result;
use crate::output::{Paint, line};

/// The goal: this share of the copy's speed.
pub(crate) const GOAL: f64 = 0.97;
/// Ratios within this of 1 are ties.
const TIE: f64 = 0.02;
/// Calls that move more than this are held against the copy; of smaller ones the launch is the larger part.
const LARGE: u64 = 8 << 20;
/// Rows listed as the worst.
const WORST: usize = 10;

/// The lines of a table.
#[derive(Clone, Copy)]
pub(crate) struct Table {
    /// Whether there is a column of peers.
    pub(crate) peers: bool,
    pub(crate) paint: Paint,
}

impl Table {
    /// The titles.
    pub(crate) fn head(self) -> String {
        let text = if self.peers {
            let (a, b, c, d, e, f) = ("dtype", "us", "share", "peer", "its us", "ratio");
            format!("{:26} {a:6} {b:>8} {c:>5} {d:10} {e:>8} {f:>5} {:>5}", "op", "publ.")
        } else {
            let (a, b, c, d, e) = ("dtype", "cold us", "warm us", "GB/s", "share");
            format!("{:31} {a:6} {b:>9} {c:>9} {d:>6} {e:>5} {:>5}", "op", "publ.")
        };
        self.paint.strong(&text)
    }

    /// A row: its times, or why it has none.
    pub(crate) fn row(self, row: &Measured) -> String {
        let label = if row.case.is_empty() { row.op.clone() } else { format!("{} {}", row.op, row.case) };
        let width = if self.peers { 26 } else { 31 };
        let begin = format!("{:width$} {:6}", cut(&label, width), row.dtype);
        let Some(timing) = row.timing() else {
            let why = row.skipped.as_deref().unwrap_or("not measured");
            return format!("{begin} {}", self.paint.bad(&format!("skipped: {why}")));
        };
        let publ = ratio(row.published_ratio());
        if self.peers {
            let (peer, us, by) = match &row.best_peer {
                Some(best) => (best.peer.as_str(), us(Some(best.us)), ratio(Some(best.ratio))),
                None => ("-", us(None), ratio(None)),
            };
            let (own, share) = (self::us(Some(timing.us)), timing.share);
            return format!("{begin} {own:>8} {share:>5.2} {:10} {us:>8} {by:>5} {publ:>5}", cut(peer, 10));
        }
        let cold = us(row.times.cold.as_ref().map(|cold| cold.us));
        let warm = us(row.times.warm.as_ref().map(|warm| warm.us));
        format!("{begin} {cold:>9} {warm:>9} {:>6.0} {:>5.2} {publ:>5}", timing.gb_per_s, timing.share)
    }
}

fn us(us: Option<f64>) -> String {
    us.map_or("-".to_owned(), |us| if us < 1000.0 { format!("{us:.2}") } else { format!("{us:.0}") })
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"))
}

/// The text, or its beginning.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['~']).collect()
}

/// What the rows come to.
///
/// # Errors
/// Those of the standard output.
pub(crate) fn summary(out: &mut impl Write, report: &Report, peers: Option<&Peers>, table: Table) -> Result<()> {
    line(out, "")?;
    if let Some(floor) = &report.launch_floor {
        let cold = us(floor.cold.as_ref().map(|cold| cold.us));
        let warm = us(floor.warm.as_ref().map(|warm| warm.us));
        let (graph, host) = (us(floor.graph_us), us(floor.host_us));
        line(
            out,
            format!("A call of one element: cold {cold}, warm {warm}, in a graph {graph}, on the host {host} us."),
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
    let published: Vec<f64> = measured.iter().filter(fair).filter_map(|row| row.published_ratio()).collect();
    if let Some(text) = ratios(&published) {
        line(out, format!("  over the best published time, fair rows: {text}"))?;
    }
    let best: Vec<f64> = measured.iter().filter_map(|row| Some(row.best_peer.as_ref()?.ratio)).collect();
    if let Some(text) = ratios(&best) {
        line(out, format!("  over the best peer: {text}"))?;
    }
    // How much slower than what a row is held against.
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
    for (peer, of_peer) in peers.ratios(report) {
        if let Some(text) = ratios(&of_peer) {
            line(out, format!("  {peer:10} {text}"))?;
        }
    }
    for fault in peers.faults() {
        line(out, format!("  {}", crate::error::one_line(&fault)))?;
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
    use crate::bench::synthetic;

    fn text(report: &Report, peers: Option<&Peers>) -> String {
        let table = Table { peers: peers.is_some(), paint: Paint::none() };
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
        let mut report = synthetic::report();
        let peers = synthetic::peers();
        for text in [text(&report, None), {
            peers.join(&mut report);
            text(&report, Some(&peers))
        }] {
            for line in text.lines().filter(|line| !line.contains("skipped")) {
                assert!(line.chars().count() <= 80 || line.starts_with("  "), "{} {line}", line.len());
            }
        }
    }

    #[test]
    fn what_rows_come_to() {
        let mut report = synthetic::report();
        let without = text(&report, None);
        assert!(without.contains("skipped: no room"), "{without}");
        assert!(without.contains("rows below 0.97") && without.contains("the worst"), "{without}");
        let peers = synthetic::peers();
        peers.join(&mut report);
        let with = text(&report, Some(&peers));
        assert!(with.contains("over the best peer") && with.contains("tileops    missing: no wheel"), "{with}");
        assert!(with.contains("not the same GPU"), "{with}");
    }

    #[test]
    fn ratios_are_counted() {
        let text = ratios(&[1.0, 1.01, 1.1, 0.9]).unwrap();
        assert!(text.contains("1 slower, 1 faster, 2 within 2 %"), "{text}");
        assert!(ratios(&[]).is_none());
    }
}
