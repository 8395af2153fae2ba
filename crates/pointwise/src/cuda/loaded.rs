//! Kernels whose texts are made at run time. So many stay loaded: the ones that were used longest ago make room.
//!
//! A kernel is unloaded only if its work is done. Streams of other code may be gone by then, so that they cannot be asked: an
//! event that is recorded when a kernel is loaded, on the stream of that call, says it of all that was launched there before.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::event::RawEvent;
use super::graph::Relaxed;
use super::module::{Function, Module};
use super::stream::{Held, RawStream};
use super::{Context, Image, load};
use crate::error::Result;

/// The most kernels that stay loaded on a device, besides those that cannot be unloaded.
const MOST: usize = 4096;

/// The kernels of a device.
pub(super) struct LoadedKernels {
    most: usize,
    /// Counts the loads: the time of launches and events.
    clock: AtomicU64,
    /// Held while the driver assembles: two threads that want one kernel assemble it once.
    all: Mutex<Kernels>,
}

impl Default for LoadedKernels {
    fn default() -> Self {
        LoadedKernels { most: MOST, clock: AtomicU64::new(0), all: Mutex::default() }
    }
}

#[derive(Default)]
struct Kernels {
    by_key: HashMap<String, Arc<LoadedKernel>>,
    /// For each stream an event, and the time just before it was recorded.
    marks: HashMap<usize, (u64, RawEvent)>,
}

/// A kernel that may be unloaded while nobody has it.
pub(crate) struct LoadedKernel {
    module: Module,
    loaded: u64,
    uses: Mutex<Uses>,
}

#[derive(Default)]
struct Uses {
    /// True if a capture has recorded it. The graph may be other code's, whose end nobody tells: the kernel stays.
    is_captured: bool,
    /// The streams of its launches by their handles, each with the time just after the last one.
    streams: HashMap<usize, u64>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LoadedKernel {
    /// Calls `run` with the kernel, to launch it on a stream.
    ///
    /// # Errors
    /// Those of `run`.
    pub(crate) fn launch(&self, held: &Held<'_>, run: impl FnOnce(Function) -> Result<()>) -> Result<()> {
        // Before the launch: a captured kernel stays even if the rest of the call fails.
        if held.stream.is_capturing(held.context).unwrap_or(true) {
            lock(&self.uses).is_captured = true;
        }
        let result = run(self.module.function());
        // Behind the launch: an event of a later time was recorded behind it.
        let now = held.context.kernels.clock.load(Ordering::SeqCst);
        lock(&self.uses).streams.insert(held.raw().addr(), now);
        result
    }

    fn last_used(&self) -> u64 {
        lock(&self.uses).streams.values().copied().fold(self.loaded, u64::max)
    }

    /// True if all launches came before the events that are done, by stream.
    fn is_done(&self, done: &HashMap<usize, u64>) -> bool {
        let uses = lock(&self.uses);
        let is_past = |(stream, used): (&usize, &u64)| done.get(stream).is_some_and(|done| done > used);
        !uses.is_captured && uses.streams.iter().all(is_past)
    }
}

impl Kernels {
    /// Unloads kernels until there is room for one more, the ones that were used longest ago first. Those that run or are captured
    /// stay, whatever their number.
    fn make_room(&mut self, most: usize) {
        if self.by_key.len() < most {
            return;
        }
        let done = self.marks.iter().filter(|(_, (_, event))| event.is_done() == Some(true));
        let done: HashMap<usize, u64> = done.map(|(stream, (time, _))| (*stream, *time)).collect();
        while self.by_key.len() >= most {
            let old = self.by_key.iter().filter(|(_, kernel)| Arc::strong_count(kernel) == 1 && kernel.is_done(&done));
            let Some(key) = old.min_by_key(|(_, kernel)| kernel.last_used()).map(|(key, _)| key.clone()) else {
                return;
            };
            let Some(kernel) = self.by_key.remove(&key) else { return };
            // A thread may have taken it meanwhile, and launched it.
            let used = match Arc::try_unwrap(kernel) {
                Ok(kernel) if kernel.is_done(&done) => continue,
                Ok(kernel) => Arc::new(kernel),
                Err(kernel) => kernel,
            };
            self.by_key.insert(key, used);
            return;
        }
    }

    /// Records an event on a stream, unless the one from before is still awaited.
    fn mark(&mut self, held: &Held<'_>, time: u64) -> Result<()> {
        let stream = held.raw();
        if self.marks.get(&stream.addr()).is_some_and(|(_, event)| event.is_done() == Some(false)) {
            return Ok(());
        }
        let event = RawEvent::new(held.context, RawEvent::NO_TIMING)?;
        // SAFETY: the stream is of the call under way, live and of the context.
        unsafe { event.record(stream) }?;
        self.marks.insert(stream.addr(), (time, event));
        Ok(())
    }
}

impl Context {
    /// Returns the kernel of a key, for a call on a stream: the device's own without one. If it is not loaded, `image` gives its PTX,
    /// with a NUL byte behind, compute capability and version. The stream is not captured then.
    ///
    /// # Errors
    /// Those of `image`; a stream that another thread captures; the driver's.
    pub(crate) fn kernel(
        &'static self,
        key: String,
        symbol: &str,
        stream: Option<&Arc<RawStream>>,
        image: impl FnOnce() -> Result<(String, u32, (u32, u32))>,
    ) -> Result<Arc<LoadedKernel>> {
        let kernels = &self.kernels;
        let mut all = lock(&kernels.all);
        if let Some(kernel) = all.by_key.get(&key) {
            return Ok(Arc::clone(kernel));
        }
        let (text, sm, ptx) = image()?;
        // Events may be made and asked beside captures.
        let _relaxed = Relaxed::new(self)?;
        all.make_room(kernels.most);
        let time = kernels.clock.fetch_add(1, Ordering::SeqCst) + 1;
        all.mark(&self.hold(stream)?, time)?;
        let module = load(self, symbol, &Image { bytes: text.as_bytes(), sm, ptx }, 0)?;
        let kernel = Arc::new(LoadedKernel { module, loaded: time, uses: Mutex::default() });
        all.by_key.insert(key, Arc::clone(&kernel));
        Ok(kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::stub;
    use crate::error::ErrorKind;

    const MOST: usize = 4;

    fn context() -> &'static Context {
        let mut context = Context::create(stub::driver(""), 0).unwrap();
        context.kernels.most = MOST;
        Box::leak(Box::new(context))
    }

    fn kernel(context: &'static Context, key: usize, stream: &Arc<RawStream>) -> Arc<LoadedKernel> {
        context.kernel(key.to_string(), "fused", Some(stream), || Ok(("\0".to_owned(), 80, (7, 0)))).unwrap()
    }

    fn launch(context: &'static Context, key: usize, stream: &Arc<RawStream>) {
        let kernel = kernel(context, key, stream);
        kernel.launch(&context.hold(Some(stream)).unwrap(), |_| Ok(())).unwrap();
    }

    fn is_loaded(context: &'static Context, key: usize) -> bool {
        lock(&context.kernels.all).by_key.contains_key(&key.to_string())
    }

    fn count(call: &str) -> usize {
        stub::calls().iter().filter(|it| **it == call).count()
    }

    #[test]
    fn the_kernel_used_longest_ago_makes_room_and_is_loaded_again() {
        let context = context();
        let stream = context.new_stream().unwrap();
        (0..MOST).for_each(|key| launch(context, key, &stream));
        launch(context, 0, &stream);
        assert_eq!((count("cuModuleLoadDataEx"), count("cuModuleUnload")), (MOST, 0));
        launch(context, MOST, &stream);
        assert_eq!(count("cuModuleUnload"), 1);
        assert!(is_loaded(context, 0) && !is_loaded(context, 1) && is_loaded(context, 2));
        launch(context, 1, &stream);
        assert_eq!((count("cuModuleLoadDataEx"), count("cuModuleUnload")), (MOST + 2, 2));
        for key in 0..100 * MOST {
            launch(context, key, &stream);
            assert!(lock(&context.kernels.all).by_key.len() <= MOST);
        }
    }

    #[test]
    fn what_runs_or_is_held_or_captured_stays() {
        let context = context();
        let [stream, other] = [(); 2].map(|()| context.new_stream().unwrap());
        // Held by a thread, and launched on a stream of which nothing is known.
        let held = kernel(context, 0, &stream);
        launch(context, 1, &other);
        // Captured.
        kernel(context, 2, &stream);
        stub::capture(true);
        launch(context, 2, &stream);
        stub::capture(false);
        // Running.
        stub::fail("cuEventQuery");
        (3..10).for_each(|key| launch(context, key, &stream));
        assert!((0..10).all(|key| is_loaded(context, key)));
        // Done, but for the last: its work is behind the event.
        stub::fail("");
        launch(context, 10, &stream);
        launch(context, 11, &stream);
        assert_eq!((0..12).filter(|key| is_loaded(context, *key)).collect::<Vec<_>>(), [0, 1, 2, 10, 11]);
        // Let go, and behind it an event of the other stream.
        drop(held);
        launch(context, 12, &other);
        launch(context, 13, &other);
        assert!(is_loaded(context, 2) && !is_loaded(context, 0) && !is_loaded(context, 1));
    }

    #[test]
    fn a_failure_leaves_the_kernels_in_order() {
        let context = context();
        let stream = context.new_stream().unwrap();
        for failing in ["cuModuleLoadDataEx", "cuEventCreate", "cuEventRecord"] {
            stub::fail(failing);
            let image = || Ok(("\0".to_owned(), 80, (7, 0)));
            assert!(context.kernel("0".to_owned(), "fused", Some(&stream), image).is_err(), "{failing}");
        }
        stub::fail("");
        let refused = || Err(ErrorKind::Unsupported { what: String::new(), advice: String::new() }.into());
        assert!(context.kernel("0".to_owned(), "fused", Some(&stream), refused).is_err());
        launch(context, 0, &stream);
        assert!(is_loaded(context, 0));
    }
}
