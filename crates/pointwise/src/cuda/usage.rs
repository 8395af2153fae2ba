//! The streams that memory was used on, so that a reader waits for these and for nothing else.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::Context;
use super::event::RawEvent;
use super::graph::{GraphUse, Relaxed};
use super::memory::Block;
use super::stream::RawStream;
use crate::error::Result;

/// Where a block of memory was used, other than on its device's own stream outside of captures.
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

impl Usage {
    /// Whether the memory was used on the device's own stream alone.
    #[inline]
    pub(super) fn is_own(&self) -> bool {
        self.first.get().is_none()
    }

    /// Takes note of work on a block that is about to be queued on a stream that is not its device's own. The first
    /// time, the stream waits for the own one: the memory may still be in use there by what it was allocated from, or be
    /// about to be filled.
    ///
    /// # Errors
    /// The driver's, and those of earlier work.
    #[inline]
    pub(super) fn note(block: &Arc<Block>, stream: &Arc<RawStream>) -> Result<()> {
        match block.usage.first.get() {
            Some(Place::Stream(first)) if first.raw() == stream.raw() && !stream.is_captured_here() => Ok(()),
            _ => Usage::note_new(block, stream),
        }
    }

    #[cold]
    fn note_new(block: &Arc<Block>, stream: &Arc<RawStream>) -> Result<()> {
        let (usage, context) = (&block.usage, block.context());
        let capture = stream.lock().as_ref().map(|capture| Arc::clone(&capture.uses));
        let place = match &capture {
            Some(uses) => Place::Graph(Arc::clone(uses)),
            None => Place::Stream(Arc::clone(stream)),
        };
        if usage.knows(&place) {
            return Ok(());
        }
        let ready = context.own.mark(context)?;
        if stream.is_capturing(context)? {
            // A captured stream cannot wait for work outside of the capture: the host does.
            let _relaxed = Relaxed::new(context)?;
            ready.synchronize()?;
        } else {
            stream.wait_for(context, &ready)?;
        }
        if let Some(uses) = capture {
            uses.keep(block);
        }
        usage.add(place);
        Ok(())
    }

    /// Takes note of a capture of the device's own stream that is under way.
    #[cold]
    pub(super) fn note_captured_own(block: &Arc<Block>) {
        let uses = block.context().own.lock().as_ref().map(|capture| Arc::clone(&capture.uses));
        if let Some(uses) = uses
            && !block.usage.knows(&Place::Graph(Arc::clone(&uses)))
        {
            uses.keep(block);
            block.usage.add(Place::Graph(uses));
        }
    }

    fn knows(&self, place: &Place) -> bool {
        let more = self.more.lock().unwrap_or_else(PoisonError::into_inner);
        self.first.get().into_iter().chain(&*more).any(|known| known.is(place))
    }

    fn add(&self, place: Place) {
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
        more.push(place);
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
