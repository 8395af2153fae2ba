//! Timing of launch settings by events on the device.

use super::Choice;
use crate::cuda::{DeviceInfo, Event};
use crate::error::{ErrorKind, Result};
use crate::{Strategy, Stream, TensorView, TensorViewMut, UnaryKernel};

/// Threads of a block to try. Smaller blocks and larger ones than these have been no faster anywhere.
const THREADS: [u32; 4] = [128, 256, 512, 1024];
/// Times each candidate is measured, in turns, so that a change of the device's clock is no advantage.
const ROUNDS: usize = 7;
/// Device time of one measurement, in milliseconds: many steps of the events' clock.
const SPAN: f32 = 0.3;
/// The most calls of one measurement.
const MOST_CALLS: f32 = 200.0;
/// What a candidate must gain over those before it, of which the default settings are the first: less is noise.
const GAIN: f64 = 0.01;

/// The device of a call that can be measured.
pub(super) fn measurable(kernel: &UnaryKernel, x: &TensorView<'_>) -> Result<&'static DeviceInfo> {
    let unsupported = |what: &str, advice: &str| -> crate::Error {
        ErrorKind::Unsupported { what: what.to_owned(), advice: advice.to_owned() }.into()
    };
    let Some(info) = x.device().info() else {
        return Err(unsupported("tuning on the CPU", "there is nothing to tune; call the kernel as it is"));
    };
    x.layout().require_contiguous("tune")?;
    if x.numel() == 0 {
        return Err(unsupported("tuning on no elements", "give tensors of the size that is to be fast"));
    }
    if stream(kernel, x).is_capturing()? {
        return Err(unsupported("tuning on a stream that is being captured", "tune before the capture"));
    }
    Ok(info)
}

fn stream(kernel: &UnaryKernel, x: &TensorView<'_>) -> Stream {
    kernel.stream().cloned().unwrap_or_else(|| x.device().stream())
}

/// The fastest settings; the default ones where nothing is faster by more than noise.
pub(super) fn fastest(kernel: &UnaryKernel, x: &TensorView<'_>, y: &mut TensorViewMut<'_>) -> Result<Choice> {
    let stream = stream(kernel, x);
    let default = kernel.untuned();
    let plan = default.plan(*x, y.as_view())?;
    let mut candidates = vec![(plan.strategy, plan.threads)];
    for strategy in Strategy::ALL {
        for threads in THREADS {
            let plan = default.clone().strategy(strategy).threads(threads).plan(*x, y.as_view())?;
            // One that stands in for another, or has its own number of threads, is a candidate already.
            if plan.replaced.is_none() && !candidates.contains(&(plan.strategy, plan.threads)) {
                candidates.push((plan.strategy, plan.threads));
            }
        }
    }
    let mut timer = Timer { start: Event::new(x.device())?, end: Event::new(x.device())?, stream };
    let mut entries = Vec::with_capacity(candidates.len());
    for (strategy, threads) in candidates {
        let kernel = default.clone().strategy(strategy).threads(threads);
        // Loads the kernel, and fills the caches as the calls before the measured ones do.
        timer.milliseconds(&kernel, x, y, 3)?;
        let once = timer.milliseconds(&kernel, x, y, 1)?;
        let calls = (SPAN / once.max(1e-4)).clamp(1.0, MOST_CALLS) as u32;
        entries.push((kernel, calls, Vec::with_capacity(ROUNDS)));
    }
    for _ in 0..ROUNDS {
        for (kernel, calls, times) in &mut entries {
            let time = timer.milliseconds(kernel, x, y, *calls)?;
            times.push(f64::from(time) / f64::from(*calls));
        }
    }
    let mut best: Option<Choice> = None;
    for (kernel, _, times) in &mut entries {
        times.sort_by(f64::total_cmp);
        let plan = kernel.plan(*x, y.as_view())?;
        let choice =
            Choice { strategy: plan.strategy, threads: plan.threads, microseconds: times[ROUNDS / 2] * 1000.0 };
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
    fn milliseconds(
        &mut self,
        kernel: &UnaryKernel,
        x: &TensorView<'_>,
        y: &mut TensorViewMut<'_>,
        calls: u32,
    ) -> Result<f32> {
        self.start.record(&self.stream)?;
        for _ in 0..calls {
            kernel.run_into(*x, y.reborrow())?;
        }
        self.end.record(&self.stream)?;
        self.end.synchronize()?;
        self.end.milliseconds_since(&self.start)
    }
}
