//! The times of other libraries, as `benches/peers/peers.py` writes them: JSON lines, `{"meta": {..}}` first, then one
//! line a row and peer with its times or an error, at the end `{"end": {..}}` with what was not reached.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::report::{Best, Clock, Measured, Report, Spread, read};
use crate::workload::RowId;
use pointwise_cli::error::{Error, Result};

/// The peers that the script times.
pub(crate) const PEERS: [&str; 6] = ["torch", "inductor", "triton", "cupy", "liger", "flashinfer"];

/// A file of peers' times.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    pub(crate) meta: Meta,
    times: HashMap<RowId, Vec<Line>>,
    /// Peer and error of each row where one failed.
    failed: Vec<(String, String)>,
    /// Rows that the run did not come to.
    unreached: usize,
}

/// The machine of the peers' run.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Meta {
    #[serde(default)]
    pub(crate) gpu: Option<String>,
    #[serde(default)]
    pub(crate) torch: Option<String>,
    /// Peers that could not run, and why.
    #[serde(default)]
    pub(crate) missing: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) copy_gbps: Option<f64>,
    /// The time of a call that does next to nothing.
    #[serde(default)]
    pub(crate) empty_us: Option<f64>,
}

/// A peer's times of a row.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) peer: String,
    events: Spread,
    busy: Option<Spread>,
    warm: Option<Spread>,
    graph: Option<Spread>,
    host: Option<Spread>,
}

impl Line {
    fn spread(&self, clock: Clock) -> Option<&Spread> {
        match clock {
            Clock::Events => Some(&self.events),
            Clock::Busy => self.busy.as_ref(),
            Clock::Warm => self.warm.as_ref(),
            Clock::Graph => self.graph.as_ref(),
            Clock::Host => self.host.as_ref(),
        }
    }
}

/// A line of the file after the first.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Entry {
    End {
        end: End,
    },
    Time {
        row: RowId,
        peer: String,
        cold_us: f64,
        p10_us: Option<f64>,
        p90_us: Option<f64>,
        warm_us: Option<f64>,
        graph_us: Option<f64>,
        host_us: Option<f64>,
    },
    Busy {
        row: RowId,
        peer: String,
        busy_us: f64,
        busy_p10_us: Option<f64>,
        busy_p90_us: Option<f64>,
    },
    Failed {
        peer: String,
        error: String,
    },
}

#[derive(Debug, Deserialize)]
struct End {
    #[serde(default)]
    unreached: Vec<Value>,
}

impl Peers {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or a line is not as described.
    pub(crate) fn read(path: &Path) -> Result<Peers> {
        Peers::parse(&read(path)?).map_err(|why| Error::Failed(format!("{}: {why}", path.display())))
    }

    pub(super) fn parse(text: &str) -> std::result::Result<Peers, String> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let meta = lines.next().and_then(|(_, line)| {
            let mut value: Value = serde_json::from_str(line).ok()?;
            serde_json::from_value(value.get_mut("meta")?.take()).ok()
        });
        let meta = meta.ok_or("the first line is no {\"meta\": {..}}")?;
        let mut peers = Peers { meta, ..Peers::default() };
        for (number, line) in lines {
            let at = number + 1;
            let expected = |error| {
                format!("line {at} is neither row, peer and cold_us, nor peer and error, nor the end ({error})")
            };
            match serde_json::from_str(line).map_err(expected)? {
                Entry::End { end } => peers.unreached += end.unreached.len(),
                Entry::Failed { peer, error } => peers.failed.push((peer, error)),
                Entry::Time { row, peer, cold_us, p10_us, p90_us, warm_us, graph_us, host_us } => {
                    let events =
                        spread(cold_us, p10_us, p90_us).ok_or(format!("line {at}: cold_us must be above 0"))?;
                    let of_row = peers.times.entry(row.clone()).or_default();
                    if of_row.iter().any(|other| other.peer == peer) {
                        return Err(format!("line {at}: {peer} again for row {row:?}"));
                    }
                    let [warm, graph, host] =
                        [warm_us, graph_us, host_us].map(|us| us.and_then(|us| spread(us, None, None)));
                    of_row.push(Line { peer, events, busy: None, warm, graph, host });
                }
                Entry::Busy { row, peer, busy_us, busy_p10_us, busy_p90_us } => {
                    let busy = spread(busy_us, busy_p10_us, busy_p90_us);
                    let busy = busy.ok_or(format!("line {at}: busy_us must be above 0"))?;
                    let of_row = peers.times.get_mut(&row);
                    let line = of_row.and_then(|lines| lines.iter_mut().find(|line| line.peer == peer));
                    let line = line.ok_or(format!("line {at}: busy_us of {peer} without its cold_us before it"))?;
                    line.busy = Some(busy);
                }
            }
        }
        Ok(peers)
    }

    /// The times of a row.
    pub(crate) fn of(&self, row: &RowId) -> &[Line] {
        self.times.get(row).map_or(&[], Vec::as_slice)
    }

    /// The fastest peer of a row by a clock, beside our time.
    fn best(&self, row: &Measured, clock: Clock) -> Option<Best> {
        let ours = row.spread(clock)?;
        let theirs = self.of(&row.row).iter().filter_map(|line| Some((line.peer.as_str(), line.spread(clock)?)));
        let (peer, theirs) = theirs.min_by(|a, b| a.1.us.total_cmp(&b.1.us))?;
        Some(Best::of(peer, &ours, theirs))
    }

    /// Puts the best peer into a row that was timed cold: peers run on GPUs.
    pub(crate) fn join_row(&self, row: &mut Measured) {
        row.best_peer = self.best(row, Clock::Events);
        row.best_busy = self.best(row, Clock::Busy);
        row.best_warm = self.best(row, Clock::Warm);
        row.best_graph = self.best(row, Clock::Graph);
        row.best_host = self.best(row, Clock::Host);
    }

    /// Puts the best peer into each row.
    pub(crate) fn join(&self, report: &mut Report) {
        report.rows.iter_mut().for_each(|row| self.join_row(row));
    }

    /// Rows that the file has and the report has not.
    pub(crate) fn unmatched(&self, report: &Report) -> usize {
        self.times.keys().filter(|id| !report.rows.iter().any(|row| row.row == **id)).count()
    }

    /// The gaps of the peers' run: rows where a peer failed, and rows not reached.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (peer, errors) in self.errors() {
            faults.push(format!("{} calls of {peer} failed, the first: {}", errors.len(), errors[0]));
        }
        if self.unreached > 0 {
            faults.push(format!("{} rows were not reached in time", self.unreached));
        }
        faults
    }

    /// The errors of each peer that has any.
    fn errors(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut errors: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (peer, error) in &self.failed {
            errors.entry(peer).or_default().push(error);
        }
        errors
    }

    /// Each peer with a time for some row, and ours over its for each.
    pub(crate) fn ratios(&self, report: &Report, clock: Clock) -> BTreeMap<String, Vec<f64>> {
        let mut ratios: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for row in &report.rows {
            let Some(ours) = row.spread(clock) else { continue };
            for line in self.of(&row.row) {
                if let Some(theirs) = line.spread(clock) {
                    ratios.entry(line.peer.clone()).or_default().push(ours.us / theirs.us);
                }
            }
        }
        ratios
    }

    /// Peers without a time, and why.
    pub(crate) fn missing(&self) -> Vec<(String, String)> {
        let there = |name: &str| self.times.values().flatten().any(|line| line.peer == name);
        let mut missing: Vec<_> = self.meta.missing.iter().map(|(name, why)| (name.clone(), why.clone())).collect();
        let errors = self.errors();
        let unsaid = PEERS.iter().filter(|name| !there(name) && !self.meta.missing.contains_key(**name));
        missing.extend(unsaid.map(|name| {
            let why = match errors.get(name) {
                Some(errors) => format!("all its calls failed, the first: {}", errors[0]),
                None => "no row of it in the file".to_owned(),
            };
            ((*name).to_owned(), why)
        }));
        missing
    }
}

/// A median with its percentiles, or without.
fn spread(us: f64, p10_us: Option<f64>, p90_us: Option<f64>) -> Option<Spread> {
    let is_time = us.is_finite() && us > 0.0;
    is_time.then(|| Spread { p10_us: p10_us.unwrap_or(us), p90_us: p90_us.unwrap_or(us), ..Spread::single(us) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Busy;
    use crate::synthetic;

    const META: &str =
        r#"{"meta": {"gpu": "G", "torch": "2.11", "missing": {"tileops": "no wheel"}, "copy_gbps": 4200.0}}"#;

    fn peers(lines: &[&str]) -> std::result::Result<Peers, String> {
        Peers::parse(&[&[META], lines].concat().join("\n"))
    }

    #[test]
    fn the_best_peer_is_joined() {
        let lines = [
            r#"{"row": 0, "peer": "torch", "cold_us": 12.0, "p10_us": 11.0, "p90_us": 13.0, "warm_us": null}"#,
            r#"{"row": 0, "peer": "triton", "cold_us": 8.0, "p10_us": 7.0, "warm_us": 6.5, "note": "n"}"#,
            r#"{"row": "large/silu/bf16", "peer": "torch", "cold_us": 100.0, "p10_us": 1.0, "warm_us": 1.0}"#,
            r#"{"row": 431, "peer": "torch", "cold_us": 1.0, "p10_us": 1.0, "p90_us": 1.0, "warm_us": 1.0}"#,
        ];
        let more =
            [r#"{"row": 2, "peer": "cupy", "error": "no nvcc"}"#, r#"{"end": {"seconds": 1, "unreached": [7]}}"#];
        let peers = peers(&[&lines[..], &more].concat()).unwrap();
        let faults = peers.faults();
        assert!(faults[0].contains("1 calls of cupy failed, the first: no nvcc"), "{faults:?}");
        assert!(faults[1].contains("1 rows were not reached"), "{faults:?}");
        let mut report = synthetic::report();
        report.rows[0].times.cold.as_mut().unwrap().us = 10.0;
        peers.join(&mut report);
        let best = Best { peer: "triton".to_owned(), us: 8.0, ratio: 1.25, tie: false };
        assert_eq!(report.rows[0].best_peer, Some(best));
        let warm = report.rows[0].times.warm.as_ref().unwrap().us;
        let best = report.rows[0].best(Clock::Warm).unwrap();
        assert_eq!((best.peer.as_str(), best.ratio), ("triton", warm / 6.5));
        assert_eq!(report.rows[1].best_peer, None);
        assert_eq!(peers.unmatched(&report), 1);
        let ratios = peers.ratios(&report, Clock::Events);
        assert_eq!(ratios["triton"], [1.25]);
        assert_eq!(ratios["torch"].len(), 2);
        let missing = peers.missing();
        assert_eq!(missing[0], ("tileops".to_owned(), "no wheel".to_owned()));
        let why = |peer: &str| missing.iter().find(|(name, _)| name == peer).map(|(_, why)| why.as_str());
        assert_eq!([why("liger"), why("torch")], [Some("no row of it in the file"), None]);
        assert_eq!(why("cupy"), Some("all its calls failed, the first: no nvcc"));
    }

    #[test]
    fn busy_times_have_a_best_peer_of_their_own() {
        let lines = [
            r#"{"row": 0, "peer": "torch", "cold_us": 12.0, "p10_us": 11.0, "p90_us": 13.0}"#,
            r#"{"row": 0, "peer": "triton", "cold_us": 11.0, "p10_us": 10.0, "p90_us": 12.0}"#,
            r#"{"row": 0, "peer": "torch", "busy_us": 8.0, "busy_p10_us": 7.9, "busy_p90_us": 8.3, "kernels": 1}"#,
            r#"{"row": 0, "peer": "triton", "busy_us": 9.0}"#,
        ];
        let peers = peers(&lines).unwrap();
        let mut report = synthetic::report();
        let row = &mut report.rows[0];
        let cold = row.times.cold.as_mut().unwrap();
        (cold.us, cold.p10_us, cold.p90_us) = (11.8, 10.9, 12.5);
        let spread = Spread { us: 8.2, p10_us: 7.9, p90_us: 8.4 };
        row.times.busy = Some(Busy { spread, runs: 50, kernels: 1 });
        peers.join(&mut report);
        let (events, busy) = (report.rows[0].best(Clock::Events), report.rows[0].best(Clock::Busy));
        // Ours lies within the peer's spread and the peer's within ours.
        assert_eq!(events.map(|best| (best.peer.as_str(), best.tie)), Some(("triton", true)));
        assert_eq!(busy.map(|best| (best.peer.as_str(), best.tie)), Some(("torch", true)));
        assert_eq!(peers.ratios(&report, Clock::Busy)["triton"], [8.2 / 9.0]);
        report.rows[0].times.busy.as_mut().unwrap().spread.p10_us = 8.1;
        peers.join(&mut report);
        assert!(!report.rows[0].best(Clock::Busy).unwrap().tie, "the peer's median lies below our 10th percentile");
        report.rows[0].times.busy.as_mut().unwrap().spread = Spread { us: 8.4, p10_us: 7.9, p90_us: 8.5 };
        peers.join(&mut report);
        assert!(!report.rows[0].best(Clock::Busy).unwrap().tie, "our median lies above the peer's 90th percentile");
        // Peers run on GPUs: the clock's times on the CPU are beside none.
        report.rows[0].times.cold = None;
        assert!(report.rows[0].times.warm.is_some() && report.rows[0].spread(Clock::Warm).is_none());
    }

    #[test]
    fn short_calls_have_best_peers_of_their_own() {
        let lines = [
            r#"{"row": 2, "peer": "torch", "cold_us": 4.0, "graph_us": 1.0, "host_us": 6.0}"#,
            r#"{"row": 2, "peer": "triton", "cold_us": 4.0, "graph_us": 0.9, "host_us": 40.0, "no_graph": null}"#,
            r#"{"row": 2, "peer": "cupy", "cold_us": 4.0, "host_us": 5.0}"#,
        ];
        let peers = peers(&lines).unwrap();
        let mut report = synthetic::report();
        (report.rows[2].times.graph_us, report.rows[2].times.host_us) = (Some(0.45), Some(2.5));
        peers.join(&mut report);
        let best = |clock| report.rows[2].best(clock).map(|best| (best.peer.as_str(), best.ratio));
        assert_eq!([Clock::Graph, Clock::Host].map(best), [Some(("triton", 0.5)), Some(("cupy", 0.5))]);
        assert_eq!(peers.ratios(&report, Clock::Host)["torch"], [2.5 / 6.0]);
        assert!(!peers.ratios(&report, Clock::Graph).contains_key("cupy"));
    }

    #[test]
    fn lines_that_are_none() {
        assert!(Peers::parse("").unwrap_err().contains("meta"));
        assert!(Peers::parse("{}").unwrap_err().contains("meta"));
        for (line, word) in [
            ("{", "line 2"),
            (r#"{"row": 0, "peer": "torch"}"#, "cold_us"),
            (r#"{"row": 0, "peer": "torch", "cold_us": 0.0}"#, "above 0"),
            (r#"{"row": 0, "peer": "torch", "busy_us": 1.0}"#, "without its cold_us"),
            (r#"{"row": -1, "peer": "torch", "cold_us": 1.0}"#, "line 2"),
        ] {
            assert!(peers(&[line]).unwrap_err().contains(word), "{line}");
        }
        let line = r#"{"row": 0, "peer": "torch", "cold_us": 1.0}"#;
        assert!(peers(&[line, line]).unwrap_err().contains("again"));
    }
}
