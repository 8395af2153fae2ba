//! Times on a device.

use pointwise::{Device, cuda::Event};

/// The value at a share (0 to 1) of a sorted copy of a list; 0 of none.
#[must_use]
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(0.0)
}

/// The median of a list; 0 of none.
#[must_use]
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Up to so many events, less one, are recorded ahead of a timed run. Where its commands lie in the device's queue
/// changes the time between two events by 0.6 us (H200), for all runs of a list alike; so the runs of a list take
/// turns.
const PLACES: usize = 8;

/// Milliseconds of each of `repeats` runs of `work` on the device's own stream, by events around each. The work that
/// `before` queues ahead of each is not timed.
///
/// # Errors
/// The errors of the work and of the driver.
pub fn times_after(
    device: &Device,
    repeats: usize,
    mut before: impl FnMut() -> pointwise::Result<()>,
    mut work: impl FnMut() -> pointwise::Result<()>,
) -> pointwise::Result<Vec<f64>> {
    let stream = device.stream();
    let events =
        (0..repeats).map(|_| Ok((Event::new(device)?, Event::new(device)?))).collect::<pointwise::Result<Vec<_>>>()?;
    let filler = Event::new(device)?;
    for (i, (start, end)) in events.iter().enumerate() {
        before()?;
        for _ in 0..3 * i % PLACES {
            filler.record(&stream)?;
        }
        start.record(&stream)?;
        work()?;
        end.record(&stream)?;
    }
    device.synchronize()?;
    events.iter().map(|(start, end)| Ok(f64::from(end.milliseconds_since(start)?))).collect()
}

/// Like [`times_after`], but after `warm_up` more runs and with nothing between the runs.
///
/// # Errors
/// The errors of [`times_after`].
pub fn times(
    device: &Device,
    warm_up: usize,
    repeats: usize,
    mut work: impl FnMut() -> pointwise::Result<()>,
) -> pointwise::Result<Vec<f64>> {
    for _ in 0..warm_up {
        work()?;
    }
    times_after(device, repeats, || Ok(()), work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        let values: Vec<f64> = (0..=10).rev().map(f64::from).collect();
        assert_eq!([0.1, 0.5, 0.9].map(|share| quantile(&values, share)), [1.0, 5.0, 9.0]);
        assert_eq!(quantile(&[], 0.5), 0.0);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
    }
}
