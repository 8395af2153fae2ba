//! Timing of launch settings by events on the device.

use super::{Choice, Settings};
use crate::cuda::{DeviceInfo, Event};
use crate::error::{ErrorKind, Result};
use crate::{Device, Strategy, Stream, TensorView};

/// Threads of a block to try. Smaller blocks and larger ones than these have been no faster anywhere.
const THREADS: [u32; 4] = [128, 256, 512, 1024];
/// Times each candidate is measured, in turns, so that a change of the device's clock is no advantage.
const ROUNDS: usize = 7;
/// Device time of one measurement, in milliseconds: many steps of the events' clock.
const SPAN: f32 = 0.3;
/// The most calls of one measurement.
const MOST_CALLS: f32 = 200.0;
/// The gain that a candidate needs over those before it: less is noise. The default settings come first.
const GAIN: f64 = 0.01;

/// The device of a call with the result `y` that can be measured on a stream.
pub(super) fn measurable(y: &TensorView<'_>, stream: &Stream) -> Result<&'static DeviceInfo> {
    let unsupported = |what: &str, advice: &str| -> crate::Error {
        ErrorKind::Unsupported { what: what.to_owned(), advice: advice.to_owned() }.into()
    };
    let Some(info) = y.device().info() else {
        return Err(unsupported("tuning on the CPU", "there is nothing to tune; call the kernel as it is"));
    };
    if y.numel() == 0 {
        return Err(unsupported("tuning on no elements", "give tensors of the size that is to be fast"));
    }
    if stream.is_capturing()? {
        return Err(unsupported("tuning on a stream that is being captured", "tune before the capture"));
    }
    Ok(info)
}

/// The settings that can serve a call, the default ones, of so many threads, first. `plan` says which settings a wish
/// comes to, and whether the strategy stands in for the one asked for.
pub(super) fn candidates(default: u32, plan: impl Fn(Settings) -> Result<(Settings, bool)>) -> Result<Vec<Settings>> {
    let (settings, _) = plan(Settings { strategy: Strategy::Auto, threads: default })?;
    let mut candidates = vec![settings];
    for strategy in Strategy::ALL {
        for threads in THREADS {
            let (settings, replaced) = plan(Settings { strategy, threads })?;
            // Settings that stand in for others, or keep their own number of threads, are candidates already.
            if !replaced && !candidates.contains(&settings) {
                candidates.push(settings);
            }
        }
    }
    Ok(candidates)
}

/// The fastest of the candidates; the first where none is faster by more than noise. `run` queues a call on the stream.
pub(super) fn fastest(
    device: &Device,
    stream: Stream,
    candidates: &[Settings],
    run: &mut dyn FnMut(Settings) -> Result<()>,
) -> Result<Choice> {
    let mut timer = Timer { start: Event::new(device)?, end: Event::new(device)?, stream };
    let mut entries = Vec::with_capacity(candidates.len());
    for &settings in candidates {
        // Loads the kernel, and fills the caches as the calls before the measured ones do.
        timer.milliseconds(3, &mut || run(settings))?;
        let once = timer.milliseconds(1, &mut || run(settings))?;
        let calls = (SPAN / once.max(1e-4)).clamp(1.0, MOST_CALLS) as u32;
        entries.push((settings, calls, Vec::with_capacity(ROUNDS)));
    }
    for _ in 0..ROUNDS {
        for (settings, calls, times) in &mut entries {
            let time = timer.milliseconds(*calls, &mut || run(*settings))?;
            times.push(f64::from(time) / f64::from(*calls));
        }
    }
    let mut best: Option<Choice> = None;
    for (Settings { strategy, threads }, _, mut times) in entries {
        times.sort_by(f64::total_cmp);
        let microseconds = times[ROUNDS / 2] * 1000.0;
        let choice = Choice { strategy, threads, microseconds };
        if best.is_none_or(|best| choice.microseconds < best.microseconds * (1.0 - GAIN)) {
            best = Some(choice);
        }
    }
    best.ok_or_else(|| {
        ErrorKind::Unsupported { what: "tuning".to_owned(), advice: "no settings serve this call".to_owned() }.into()
    })
}

struct Timer {
    start: Event,
    end: Event,
    stream: Stream,
}

impl Timer {
    /// The device time of some calls in a row.
    fn milliseconds(&mut self, calls: u32, run: &mut dyn FnMut() -> Result<()>) -> Result<f32> {
        self.start.record(&self.stream)?;
        for _ in 0..calls {
            run()?;
        }
        self.end.record(&self.stream)?;
        self.end.synchronize()?;
        self.end.milliseconds_since(&self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wishes that come to the same settings are one candidate, and the default comes first.
    #[test]
    fn candidates_are_told_apart() {
        let found = candidates(256, |wish| {
            Ok(match wish.strategy {
                Strategy::Auto => (Settings { strategy: Strategy::RegisterCopy, ..wish }, false),
                Strategy::Table => (Settings { strategy: Strategy::Table, threads: 128 }, false),
                Strategy::ExplicitParallel => (Settings { strategy: Strategy::RegisterCopy, ..wish }, true),
                _ => (wish, false),
            })
        });
        let found = found.unwrap();
        assert_eq!(found[0], Settings { strategy: Strategy::RegisterCopy, threads: 256 });
        let count = |strategy| found.iter().filter(|it| it.strategy == strategy).count();
        assert_eq!(count(Strategy::RegisterCopy), THREADS.len(), "{found:?}");
        assert_eq!((count(Strategy::Direct), count(Strategy::Table)), (THREADS.len(), 1), "{found:?}");
        assert_eq!(found.len(), 2 * THREADS.len() + 1, "{found:?}");
    }

    /// A wrong call is an error before anything is measured.
    #[test]
    fn a_bad_call_is_no_candidate() {
        let error = candidates(256, |_| Err(ErrorKind::Overlap { what: "x".to_owned() }.into())).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Overlap { .. }));
    }
}
