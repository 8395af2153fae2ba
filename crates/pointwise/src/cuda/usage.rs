//! The streams that memory was used on, so that a reader waits for these and for nothing else.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::Context;
use super::event::RawEvent;
use super::graph::{GraphUse, Relaxed};
use super::memory::Block;
use super::stream::{Held, RawStream};
use crate::error::Result;

/// The places where a block of memory was used, without its device's own stream outside of captures.
#[derive(Default)]
pub(crate) struct Usage {
    /// The first such place: all there is, of most tensors.
    first: OnceLock<Place>,
    more: Mutex<Vec<Place>>,
}

/// A place where memory is used.
enum Place {
    Stream(Arc<RawStream>),
    /// A capture, and so the streams that its graph is launched on.
    Graph(Arc<GraphUse>),
}

impl Place {
    /// The streams that work on the memory may be queued on.
    fn streams(&self) -> Vec<Arc<RawStream>> {
        match self {
            Place::Stream(stream) => vec![Arc::clone(stream)],
            Place::Graph(graph) => graph.streams(),
        }
    }

    fn is(&self, other: &Place) -> bool {
        match (self, other) {
            (Place::Stream(a), Place::Stream(b)) => a.raw() == b.raw(),
            (Place::Graph(a), Place::Graph(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// True if a list of so many streams should forget those whose work is done, before it gets one more. It does so each time
/// that it has doubled: a call then costs the same, however many streams there have been.
pub(super) fn is_time_to_forget(known: usize) -> bool {
    known >= 8 && known.is_power_of_two()
}

impl Usage {
    /// True if the memory was used on the device's own stream alone.
    #[inline]
    pub(super) fn is_own(&self) -> bool {
        self.first.get().is_none()
    }

    /// Takes note of work on a block that is about to be queued on a stream. The first time, a stream other than the
    /// device's own waits for that one: the memory may still be in use there by what it was allocated from, or be about to
    /// be filled. A capture keeps the block.
    ///
    /// # Errors
    /// Errors of the driver and of earlier work.
    #[inline]
    pub(crate) fn note(block: &Arc<Block>, held: &Held<'_>) -> Result<()> {
        let is_known = match held.shared {
            None => true,
            Some(shared) => {
                matches!(block.usage.first.get(), Some(Place::Stream(first)) if first.raw() == shared.raw())
            }
        };
        if is_known && held.capture().is_none() { Ok(()) } else { Usage::note_new(block, held) }
    }

    #[cold]
    fn note_new(block: &Arc<Block>, held: &Held<'_>) -> Result<()> {
        let (usage, context) = (&block.usage, block.context());
        let uses = held.capture().map(|capture| Arc::clone(&capture.uses));
        let place = match (&uses, held.shared) {
            (Some(uses), _) => Place::Graph(Arc::clone(uses)),
            (None, Some(stream)) => Place::Stream(Arc::clone(stream)),
            (None, None) => return Ok(()),
        };
        if usage.knows(&place) {
            return Ok(());
        }
        if held.shared.is_some() {
            let ready = context.own.mark(context)?;
            if held.stream.is_capturing(context)? {
                // A captured stream cannot wait for work outside of the capture: the host does.
                let _relaxed = Relaxed::new(context)?;
                ready.synchronize()?;
            } else {
                held.stream.wait_for(context, &ready)?;
            }
        }
        if let Some(uses) = uses {
            uses.keep(block);
        }
        usage.add(context, place);
        Ok(())
    }

    fn knows(&self, place: &Place) -> bool {
        let more = self.more.lock().unwrap_or_else(PoisonError::into_inner);
        self.first.get().into_iter().chain(&*more).any(|known| known.is(place))
    }

    fn add(&self, context: &'static Context, place: Place) {
        let Err(place) = self.first.set(place) else { return };
        let mut more = self.more.lock().unwrap_or_else(PoisonError::into_inner);
        // Graphs that are gone leave the streams they were launched on; a tensor may see many come and go.
        let gone: Vec<_> =
            more.extract_if(.., |known| matches!(known, Place::Graph(graph) if graph.is_gone())).collect();
        for stream in gone.iter().flat_map(Place::streams) {
            let stream = Place::Stream(stream);
            if !more.iter().any(|known| known.is(&stream)) {
                more.push(stream);
            }
        }
        if is_time_to_forget(more.len()) {
            more.retain(|known| !matches!(known, Place::Stream(stream) if stream.is_idle(context)));
        }
        more.push(place);
    }

    /// Returns the number of known places.
    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        usize::from(self.first.get().is_some()) + self.more.lock().unwrap().len()
    }

    /// Events behind all work on the memory that is queued on other streams than the device's own.
    ///
    /// # Errors
    /// The driver's; a stream that other code captures.
    pub(super) fn marks(&self, context: &'static Context) -> Result<Vec<Arc<RawEvent>>> {
        let Some(first) = self.first.get() else { return Ok(Vec::new()) };
        let mut streams = first.streams();
        for place in &*self.more.lock().unwrap_or_else(PoisonError::into_inner) {
            streams.extend(place.streams());
        }
        streams.sort_by_key(|stream| stream.raw().addr());
        streams.dedup_by_key(|stream| stream.raw().addr());
        streams.retain(|stream| stream.raw() != context.own.raw());
        streams.iter().map(|stream| stream.mark(context)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::stub;

    #[test]
    fn streams_whose_work_is_done_are_forgotten() {
        let context: &'static Context = Box::leak(Box::new(Context::create(stub::driver(""), 0).unwrap()));
        let block = Arc::new(Block::new(context, 4096).unwrap());
        let note = |stream: &Arc<RawStream>| Usage::note(&block, &context.hold(Some(stream)).unwrap()).unwrap();
        for _ in 0..100 {
            note(&context.new_stream().unwrap());
            assert!(block.usage.places() <= 9);
        }
        // A stream that still works is not forgotten.
        stub::fail("cuStreamQuery");
        let before = block.usage.places();
        let streams: Vec<_> = (0..100).map(|_| context.new_stream().unwrap()).collect();
        streams.iter().for_each(note);
        assert_eq!(block.usage.places(), before + streams.len());
        // A stream is not forgotten while a call is queued on it.
        stub::fail("");
        let held = context.hold(Some(&streams[0])).unwrap();
        let others: Vec<_> = (0..100).map(|_| context.new_stream().unwrap()).collect();
        others.iter().for_each(note);
        assert!(block.usage.places() < 100 && block.usage.knows(&Place::Stream(Arc::clone(&streams[0]))));
        drop(held);
    }
}
