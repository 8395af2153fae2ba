//! The results in the form of the JSON file.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::workload::{Published, RowId};
use pointwise_cli::draft;
use pointwise_cli::error::{Error, Result};

/// The report that `--json` writes and `--from` reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The version of pointwise.
    pub(crate) pointwise: String,
    pub(crate) machine: Machine,
    /// The version of the CUPTI that busy times are of, such as `130001`; none where there are no busy times.
    #[serde(default)]
    pub(crate) cupti: Option<u32>,
    /// The least time of a call: `silu` of one f32.
    pub(crate) launch_floor: Option<Times>,
    pub(crate) rows: Vec<Measured>,
}

/// The machine of the measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) device: String,
    /// The GPU's name; none on the CPU.
    pub(crate) gpu: Option<String>,
    /// The newest CUDA version that the driver serves.
    pub(crate) cuda: Option<String>,
    pub(crate) l2_bytes: Option<u64>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) row: RowId,
    pub(crate) set: String,
    pub(crate) op: String,
    pub(crate) case: String,
    pub(crate) dtype: String,
    pub(crate) shapes: String,
    pub(crate) params: String,
    /// The bytes that a perfect kernel moves.
    pub(crate) bytes: u64,
    /// The strategy that ran, if it is known.
    pub(crate) strategy: Option<String>,
    pub(crate) note: Option<String>,
    /// The reason why there are no times.
    pub(crate) skipped: Option<String>,
    #[serde(flatten)]
    pub(crate) times: Times,
    pub(crate) published: Option<Published>,
    /// The fastest peer by events, and our time over its.
    #[serde(default)]
    pub(crate) best_peer: Option<Best>,
    /// The fastest peer by busy time, likewise.
    #[serde(default)]
    pub(crate) best_busy: Option<Best>,
    /// The fastest peer warm, by events.
    #[serde(default)]
    pub(crate) best_warm: Option<Best>,
    /// The fastest peer in a CUDA graph.
    #[serde(default)]
    pub(crate) best_graph: Option<Best>,
    /// The peer whose call takes the host the least.
    #[serde(default)]
    pub(crate) best_host: Option<Best>,
}

/// The times of a call, in microseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Times {
    /// On the device, nothing in the level-2 cache; none on the CPU.
    pub(crate) cold: Option<Timing>,
    /// The call repeated on the same tensors. On the CPU by the clock.
    pub(crate) warm: Option<Timing>,
    /// From launch to launch inside of a CUDA graph; of small calls.
    pub(crate) graph_us: Option<f64>,
    /// The time of the call on the host.
    pub(crate) host_us: Option<f64>,
    /// The time that the device is busy with a call, with an empty level-2 cache.
    #[serde(default)]
    pub(crate) busy: Option<Busy>,
}

impl Times {
    /// True if they may have been measured: logarithms and axes are made of them.
    fn are_possible(&self) -> bool {
        let is_time = |us: f64| us.is_finite() && us > 0.0;
        // A million times as fast as any memory.
        let is_speed = |speed: f64| (0.0..1e12).contains(&speed);
        let is_good = |timing: &Timing| is_time(timing.us) && is_speed(timing.share) && is_speed(timing.gb_per_s);
        [&self.cold, &self.warm].into_iter().flatten().all(is_good)
            && self.busy.as_ref().is_none_or(|busy| is_time(busy.spread.us))
            && [self.graph_us, self.host_us].into_iter().flatten().all(is_time)
    }
}

/// Times of single calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Timing {
    /// The median.
    pub(crate) us: f64,
    pub(crate) p10_us: f64,
    pub(crate) p90_us: f64,
    pub(crate) runs: usize,
    pub(crate) gb_per_s: f64,
    /// The median of a copy of half the bytes (or a memset of all of them), timed in turns with the op.
    pub(crate) ceiling_us: f64,
    /// The share of the ceiling's speed: `ceiling_us / us`.
    pub(crate) share: f64,
}

/// The time inside of a call's kernels and copies, by CUPTI: no launch, no gap between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Busy {
    #[serde(flatten)]
    pub(crate) spread: Spread,
    pub(crate) runs: usize,
    /// Kernels and copies of a call.
    pub(crate) kernels: usize,
}

/// A median and where the middle four fifths lie, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) us: f64,
    pub(crate) p10_us: f64,
    pub(crate) p90_us: f64,
}

impl Spread {
    /// The spread of a lone median: it ties only with an equal time.
    pub(crate) fn single(us: f64) -> Spread {
        Spread { us, p10_us: us, p90_us: us }
    }

    /// True if each median lies within the other's spread: another run may reverse the difference.
    fn ties(&self, other: &Spread) -> bool {
        let has = |of: &Spread, us: f64| (of.p10_us..=of.p90_us).contains(&us);
        has(self, other.us) && has(other, self.us)
    }
}

/// A kind of time of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    /// Cold, by events: a call with its launch.
    Events,
    /// Cold, by CUPTI: the call's kernels.
    Busy,
    /// Warm, by events.
    Warm,
    /// From one call to the next in a CUDA graph; of short calls.
    Graph,
    /// The call on the host.
    Host,
}

impl Clock {
    /// The name of its times in a summary; empty for the default.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Clock::Events => "",
            Clock::Busy => "busy times",
            Clock::Warm => "warm",
            Clock::Graph => "in a graph",
            Clock::Host => "on the host",
        }
    }
}

/// A peer's time beside ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Best {
    pub(crate) peer: String,
    pub(crate) us: f64,
    /// Ours over the peer's: above 1 ours is slower.
    pub(crate) ratio: f64,
    /// True if each median lies within the other's 10th and 90th percentile.
    #[serde(default)]
    pub(crate) tie: bool,
}

impl Best {
    /// Our time over a peer's.
    pub(crate) fn of(peer: &str, ours: &Spread, theirs: &Spread) -> Best {
        Best { peer: peer.to_owned(), us: theirs.us, ratio: ours.us / theirs.us, tie: ours.ties(theirs) }
    }
}

impl Measured {
    /// The times that count: cold on a GPU, the clock's on the CPU.
    pub(crate) fn timing(&self) -> Option<&Timing> {
        self.times.cold.as_ref().or(self.times.warm.as_ref())
    }

    /// The times of a clock; none on the CPU.
    pub(crate) fn spread(&self, clock: Clock) -> Option<Spread> {
        let Times { cold, warm, graph_us, host_us, busy } = &self.times;
        let spread = |of: &Timing| Spread { us: of.us, p10_us: of.p10_us, p90_us: of.p90_us };
        let single = |us: &Option<f64>| cold.as_ref().and(us.map(Spread::single));
        match clock {
            Clock::Events => cold.as_ref().map(spread),
            Clock::Busy => busy.as_ref().map(|busy| busy.spread),
            Clock::Warm => cold.as_ref().and(warm.as_ref()).map(spread),
            Clock::Graph => single(graph_us),
            Clock::Host => single(host_us),
        }
    }

    /// The fastest peer by a clock.
    pub(crate) fn best(&self, clock: Clock) -> Option<&Best> {
        match clock {
            Clock::Events => self.best_peer.as_ref(),
            Clock::Busy => self.best_busy.as_ref(),
            Clock::Warm => self.best_warm.as_ref(),
            Clock::Graph => self.best_graph.as_ref(),
            Clock::Host => self.best_host.as_ref(),
        }
    }

    /// Our time over the best published one. The published times are busy times of a GPU: our time by events has more
    /// in it than the kernel.
    pub(crate) fn published_ratio(&self, clock: Clock) -> Option<f64> {
        let (ours, published) = (self.spread(clock)?, self.published.as_ref()?);
        Some(ours.us / published.best_us())
    }
}

impl Report {
    /// The clock that the published times are held against: theirs, if there are such times.
    pub(crate) fn published_clock(&self) -> Clock {
        if self.rows.iter().any(|row| row.times.busy.is_some()) { Clock::Busy } else { Clock::Events }
    }

    /// Reads a report.
    ///
    /// # Errors
    /// No such file, or not a report.
    pub(crate) fn read(path: &Path) -> Result<Report> {
        let text = read(path)?;
        let report: Report = serde_json::from_str(&text)
            .map_err(|error| Error::Failed(format!("{} is no report of `bench --json`: {error}", path.display())))?;
        match report.rows.iter().find(|row| !row.times.are_possible()) {
            Some(row) => Err(Error::Failed(format!(
                "{}: row {:?} has a time of 0 or less, or a speed that nothing has",
                path.display(),
                row.row
            ))),
            None => Ok(report),
        }
    }

    /// Writes it.
    ///
    /// # Errors
    /// The path cannot be written; then an earlier report there is as it was.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(|error| Error::Failed(error.to_string()))?;
        draft::replace(path, text + "\n")
            .map_err(|error| Error::Failed(format!("cannot write {}: {error}", path.display())))
    }
}

/// A file's text.
///
/// # Errors
/// It cannot be read.
pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| Error::Failed(format!("cannot read {}: {error}", path.display())))
}

/// The geometric mean of positive numbers; none of none.
pub(crate) fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for value in values {
        sum += value.ln();
        count += 1;
    }
    (count > 0).then(|| (sum / f64::from(count)).exp())
}
