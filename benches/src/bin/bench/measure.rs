//! Times a call beside a copy of the same bytes.
//!
//! On a GPU: events around each single launch, cold and warm. *Cold*: before each launch a memset writes twice the
//! level-2 cache. It also keeps the device busy until the host is ahead, so that no wait for a launch is timed. *Warm*:
//! calls follow one another, behind enough such memsets that all are queued before the first begins. The copy is timed
//! in turns with the op (op, copy, copy, op). Even around a kernel that does nothing, events are apart: see the launch
//! floor of a report. CUPTI's busy times ([`Gauge::busy`]) leave that out; the published times are busy times.

use std::time::Instant;

use pointwise::cuda::Event;
use pointwise::{DType, Device, Stream, Tensor};
use rayon::prelude::*;

use crate::call::Call;
use crate::cupti::Cupti;
use crate::report::{Busy, Times, Timing};
use benches::{median, quantile, times_after};
use pointwise_cli::error::Result;

/// Device microseconds for the cold launches of an op, for the warm ones, and each again for the copy.
const COLD_BUDGET: f64 = 20_000.0;
const WARM_BUDGET: f64 = 8_000.0;
/// The fewest and the most launches of one kind.
const FEWEST: usize = 10;
const MOST: usize = 100;
/// The most microseconds that the host takes to queue a launch and its events, and the device to clear the cache.
const HOST: f64 = 15.0;
const CLEARING: f64 = 25.0;
/// The least number of bytes to clear, also if the cache is small: the host needs the time.
const LEAST_FLUSH: usize = 64 << 20;
/// Launches in a graph, and calls of fewer bytes than this get one.
const GRAPH_LAUNCHES: usize = 100;
const GRAPH_BYTES: u64 = 4 << 20;
/// Launches for a busy time.
const BUSY_LAUNCHES: usize = 50;
/// On the CPU.
const CPU_BUDGET: f64 = 60_000.0;
/// Bytes of a task of the copy there, as many as a task of the ops on f32 has.
const CPU_TASK: usize = 1 << 17;

/// Times calls on a device.
pub(crate) struct Gauge {
    device: Device,
    /// At least twice the level-2 cache; none on the CPU.
    flush: Option<Tensor>,
}

/// The ceiling of an op. On the CPU it uses as many threads as the ops.
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
enum Ceiling {
    Copy(Tensor, Tensor),
    Fill(Tensor),
}

impl Ceiling {
    fn new(device: &Device, bytes: u64, writes_only: bool) -> Result<Ceiling> {
        let empty = |bytes: u64| Tensor::empty(device, DType::U8, [(bytes as usize).max(1)]);
        if writes_only {
            return Ok(Ceiling::Fill(empty(bytes)?));
        }
        let (mut from, to) = (empty(bytes / 2)?, empty(bytes / 2)?);
        if device.is_cpu() {
            // Until they are written, pages may all be the same one.
            from.as_mut_slice::<u8>()?.fill(1);
        }
        Ok(Ceiling::Copy(from, to))
    }

    fn run(&mut self) -> pointwise::Result<()> {
        match self {
            Ceiling::Copy(from, to) if to.device().is_cpu() => {
                let from = from.as_slice::<u8>()?;
                in_tasks(to, |at, part| part.copy_from_slice(&from[at..at + part.len()]))
            }
            Ceiling::Fill(to) if to.device().is_cpu() => in_tasks(to, |_, part| part.fill(0)),
            Ceiling::Copy(from, to) => to.copy_from(from),
            Ceiling::Fill(to) => to.set_zero(),
        }
    }
}

/// Hands the bytes of a tensor of the CPU to `work`, in parts with the place of each, in parallel where there are
/// several.
fn in_tasks(to: &mut Tensor, work: impl Fn(usize, &mut [u8]) + Sync) -> pointwise::Result<()> {
    let to = to.as_mut_slice::<u8>()?;
    if to.len() <= CPU_TASK {
        work(0, to);
    } else {
        to.par_chunks_mut(CPU_TASK).enumerate().for_each(|(task, part)| work(task * CPU_TASK, part));
    }
    Ok(())
}

impl Gauge {
    /// For a device.
    ///
    /// # Errors
    /// Out of memory.
    pub(crate) fn new(device: &Device) -> Result<Gauge> {
        let flush = match device.info() {
            Some(info) => Some(Tensor::zeros(device, DType::U8, [(2 * info.l2_bytes).max(LEAST_FLUSH)])?),
            None => None,
        };
        Ok(Gauge { device: *device, flush })
    }

    /// The times of a call that moves `bytes`.
    ///
    /// # Errors
    /// The errors of the call; out of memory; errors of the driver.
    pub(crate) fn measure(&mut self, call: &mut Call<'_>, bytes: u64, writes_only: bool) -> Result<Times> {
        // Loads the kernel.
        call()?;
        self.device.synchronize()?;
        let mut ceiling = Ceiling::new(&self.device, bytes, writes_only)?;
        let Some(mut flush) = self.flush.take() else {
            let warm = on_the_cpu(call, &mut || ceiling.run(), bytes)?;
            return Ok(Times { warm: Some(warm), ..Times::default() });
        };
        let times = on_a_gpu(&self.device, &mut flush, call, &mut || ceiling.run(), bytes);
        self.flush = Some(flush);
        times
    }
}

impl Gauge {
    /// The busy time of a call that takes `us` microseconds cold. `None` on the CPU.
    ///
    /// # Errors
    /// The errors of the call and of CUPTI.
    pub(crate) fn busy(&mut self, cupti: &Cupti, call: &mut Call<'_>, us: f64) -> Result<Option<Busy>> {
        let Some(flush) = &mut self.flush else { return Ok(None) };
        // The tensors are new: pages and kernel are seen once before.
        call()?;
        self.device.synchronize()?;
        let count = ((COLD_BUDGET / (us + CLEARING)) as usize).clamp(FEWEST, BUSY_LAUNCHES);
        let (mark, stream) = (Event::new(&self.device)?, self.device.stream());
        let work = || {
            for _ in 0..count {
                // As the peers' script waits before each call: one after another, long kernels take so much power that
                // the device slows down.
                self.device.synchronize()?;
                flush.set_zero()?;
                // A kernel that follows a fill, which is one, too, would start while that ends, and its time begin.
                mark.record(&stream)?;
                call()?;
            }
            Ok(self.device.synchronize()?)
        };
        cupti.busy(count, work).map(Some)
    }
}

fn on_a_gpu(
    device: &Device,
    flush: &mut Tensor,
    call: &mut Call<'_>,
    ceiling: &mut Call<'_>,
    bytes: u64,
) -> Result<Times> {
    let once = median(launches(device, flush, call, 3, true)?);
    let count = |budget: f64, each: f64| ((budget / each) as usize).clamp(FEWEST, MOST);
    let cold = alternate(device, flush, call, ceiling, count(COLD_BUDGET, once + CLEARING), true)?;
    let warm = alternate(device, flush, call, ceiling, count(WARM_BUDGET, once), false)?;
    let graph_us = if bytes < GRAPH_BYTES { Some(in_a_graph(device, call)?) } else { None };
    let host_us = on_the_host(device, call, once)?;
    Ok(Times {
        cold: Some(timing(&cold.0, &cold.1, bytes)),
        warm: Some(timing(&warm.0, &warm.1, bytes)),
        graph_us,
        host_us: Some(host_us),
        busy: None,
    })
}

/// Microseconds of op and ceiling, in turns.
fn alternate(
    device: &Device,
    flush: &mut Tensor,
    call: &mut Call<'_>,
    ceiling: &mut Call<'_>,
    count: usize,
    cold: bool,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let half = count.div_ceil(2);
    let mut ours = launches(device, flush, call, half, cold)?;
    let mut theirs = launches(device, flush, ceiling, half, cold)?;
    theirs.extend(launches(device, flush, ceiling, half, cold)?);
    ours.extend(launches(device, flush, call, half, cold)?);
    Ok((ours, theirs))
}

/// Microseconds of single launches.
fn launches(device: &Device, flush: &mut Tensor, call: &mut Call<'_>, count: usize, cold: bool) -> Result<Vec<f64>> {
    // A start for the host: of a few launches where each waits for its own memset, else of all.
    let start = if cold { 4 } else { (count as f64 * HOST / CLEARING) as usize + 4 };
    for _ in 0..start {
        flush.set_zero()?;
    }
    for _ in 0..2 {
        call()?;
    }
    let before = || if cold { flush.set_zero() } else { Ok(()) };
    let milliseconds = times_after(device, count, before, call)?;
    Ok(milliseconds.into_iter().map(|ms| ms * 1e3).collect())
}

/// Microseconds from launch to launch inside of a graph.
fn in_a_graph(device: &Device, call: &mut Call<'_>) -> Result<f64> {
    let stream: Stream = device.stream();
    let mut graph = stream.capture(|_| (0..GRAPH_LAUNCHES).try_for_each(|_| call()))?;
    let mut launch = || graph.launch(&stream);
    launch()?;
    let milliseconds = times_after(device, FEWEST, || Ok(()), launch)?;
    Ok(median(milliseconds) * 1e3 / GRAPH_LAUNCHES as f64)
}

/// Microseconds of the host a call, the device idle before each round and its queue never full.
fn on_the_host(device: &Device, call: &mut Call<'_>, once: f64) -> Result<f64> {
    const ROUNDS: usize = 5;
    let calls = ((4_000.0 / once.max(1.0)) as usize).clamp(4, 100);
    let mut rounds = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        device.synchronize()?;
        let start = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        rounds.push(start.elapsed().as_secs_f64() * 1e6 / calls as f64);
    }
    device.synchronize()?;
    Ok(median(rounds))
}

/// Times by the clock, in turns.
fn on_the_cpu(call: &mut Call<'_>, ceiling: &mut Call<'_>, bytes: u64) -> Result<Timing> {
    let clock = |work: &mut Call<'_>| -> Result<f64> {
        let start = Instant::now();
        work()?;
        Ok((start.elapsed().as_secs_f64() * 1e6).max(1e-3))
    };
    let once = clock(call)?;
    let count = ((CPU_BUDGET / once) as usize).clamp(3, 30);
    let (mut ours, mut theirs) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for _ in 0..count {
        ours.push(clock(call)?);
        theirs.push(clock(ceiling)?);
    }
    Ok(timing(&ours, &theirs, bytes))
}

fn timing(ours: &[f64], ceiling: &[f64], bytes: u64) -> Timing {
    let us = quantile(ours, 0.5);
    let ceiling_us = quantile(ceiling, 0.5);
    Timing {
        us,
        p10_us: quantile(ours, 0.1),
        p90_us: quantile(ours, 0.9),
        runs: ours.len(),
        gb_per_s: bytes as f64 / us / 1e3,
        ceiling_us,
        share: ceiling_us / us,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ceiling_of_the_cpu_is_of_every_byte() {
        for len in [1, CPU_TASK, 2 * CPU_TASK + 5] {
            let mut ceiling = Ceiling::new(&Device::cpu(), 2 * len as u64, false).unwrap();
            let Ceiling::Copy(from, _) = &mut ceiling else { panic!("a copy was asked for") };
            let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            from.copy_from_bytes(&bytes).unwrap();
            ceiling.run().unwrap();
            let Ceiling::Copy(_, to) = ceiling else { panic!("a copy was asked for") };
            assert!(to.to_bytes().unwrap() == bytes, "{len} bytes");
            let mut fill = Ceiling::Fill(to);
            fill.run().unwrap();
            let Ceiling::Fill(to) = fill else { panic!("a fill was asked for") };
            assert!(to.to_bytes().unwrap().iter().all(|byte| *byte == 0), "{len} bytes");
        }
    }

    #[test]
    fn a_call_on_the_cpu() {
        let device = Device::cpu();
        let mut calls = 0;
        let mut call = || {
            calls += 1;
            std::thread::sleep(std::time::Duration::from_micros(300));
            Ok(())
        };
        let times = Gauge::new(&device).unwrap().measure(&mut call, 8 << 20, false).unwrap();
        let warm = times.warm.unwrap();
        assert!(calls >= 5 && warm.runs + 2 == calls, "{calls}");
        assert!(warm.us >= 300.0 && warm.p10_us <= warm.us && warm.us <= warm.p90_us, "{warm:?}");
        assert!(warm.ceiling_us > 1.0 && (warm.share - warm.ceiling_us / warm.us).abs() < 1e-12, "{warm:?}");
        assert!(times.cold.is_none() && times.graph_us.is_none());
    }
}
