//! Device memory: allocation in stream order, copies, fills.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::{Arc, PoisonError};

use super::Context;
use super::graph::{Capture, Relaxed, this_thread_captures};
use super::reuse::is_kept;
use super::stream::{Held, RawStream, captured_by_another_thread};
use super::sys::{self, DevicePointer, Handle, call, code};
use super::usage::Usage;
use crate::Device;
use crate::error::{Error, ErrorKind, Result};

/// Memory that is to be freed once the streams it was used on are not captured any more.
pub(super) struct Dropped {
    address: DevicePointer,
    usage: Usage,
}

impl Context {
    /// True if the device's own stream is being captured, by this crate or by others.
    ///
    /// # Errors
    /// The driver's.
    fn own_is_captured(&self) -> Result<bool> {
        self.own.is_capturing(self)
    }

    /// Frees what was dropped during captures, as far as these have ended.
    fn free_dropped(&'static self) {
        let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        if dropped.is_empty() {
            return;
        }
        dropped.retain(|block| !self.release(block.address, &block.usage));
    }

    /// Frees a block in the order of the own stream, behind all work that uses it. `false`, and it is not freed, while
    /// a stream is captured that this concerns; or if the driver fails: memory that other streams may still use is
    /// rather lost than freed under them.
    fn release(&'static self, address: DevicePointer, usage: &Usage) -> bool {
        let (Ok(marks), Ok(_current)) = (usage.marks(self), self.make_current()) else { return false };
        // While it is held no capture of the own stream begins.
        let captured = self.own.read();
        if captured.is_some() || self.own_is_captured().unwrap_or(true) {
            return false;
        }
        if !marks.iter().all(|mark| self.own.wait_for(self, mark).is_ok()) {
            return false;
        }
        // SAFETY: the block was allocated here, and its owner frees it once; all work that uses it is queued on the own
        // stream or waited for there. The context is current.
        unsafe { self.free(address) };
        true
    }

    /// Frees the blocks that are kept for others.
    fn free_kept(&self) {
        for address in self.reuse.empty() {
            // SAFETY: each was allocated by the matching function and is freed once; work that uses it is queued on the
            // own stream or done. The caller made the context current.
            unsafe { self.free(address) };
        }
    }

    /// # Safety
    /// `address` was allocated by [`Block::try_allocate`] of this context and is not used any more, but for work queued
    /// on the own stream; the context is current.
    unsafe fn free(&self, address: DevicePointer) {
        // SAFETY: the caller's promise. Of an error there is nobody to tell: it is one of earlier work, or the process
        // is ending and the driver gone.
        unsafe {
            if self.pools.is_none() {
                // Waits for the device by itself.
                (self.api.cuMemFree_v2)(address);
            } else {
                (self.api.cuMemFreeAsync)(address, self.own.raw());
            }
        }
    }

    /// The stream of the host's copies, behind the own stream's work and all that `usage` tells.
    ///
    /// # Errors
    /// The driver's; a stream that other code captures.
    fn copies_behind(&'static self, usage: Option<&Usage>) -> Result<&'static RawStream> {
        self.copies.wait_for(self, &*self.own.mark(self)?)?;
        for mark in usage.map_or(Ok(Vec::new()), |usage| usage.marks(self))? {
            self.copies.wait_for(self, &mark)?;
        }
        Ok(&self.copies)
    }
}

/// A piece of a device's memory, freed on drop, or kept for another, in the order of the device's own stream.
pub(crate) struct Block {
    context: &'static Context,
    address: DevicePointer,
    bytes: usize,
    pub(crate) usage: Usage,
}

/// Refuses an allocation, during a capture of the own stream or of the calling thread. `own` is the former, as it was found: it
/// may have ended since.
#[cold]
fn captured(context: &'static Context, own: Option<&Capture>) -> Error {
    let is_of_another = own.is_some_and(|capture| !capture.is_of_this_thread());
    if is_of_another && !this_thread_captures() {
        return captured_by_another_thread(context);
    }
    ErrorKind::Unsupported {
        what: format!("allocating on {} during a capture", Device::of(context)),
        advice: "make every tensor before the capture, and call the `_into` functions during it".to_owned(),
    }
    .into()
}

impl Block {
    /// `bytes` bytes, not initialised, aligned to 256. No driver call for none.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`]; a capture of the own stream or of this thread; the driver's.
    pub(crate) fn new(context: &'static Context, bytes: usize) -> Result<Block> {
        let mut block = Block { context, address: 0, bytes, usage: Usage::default() };
        if bytes == 0 {
            return Ok(block);
        }
        // On the own stream the allocation would become part of the graph, and the memory be there only while the graph
        // runs. On a thread that captures another stream the driver may spoil the capture.
        {
            let own = context.own.read();
            let capture = own.get();
            if this_thread_captures() || capture.is_some() {
                return Err(captured(context, capture));
            }
        }
        context.free_dropped();
        if let Some(address) = context.reuse.take(bytes) {
            block.address = address;
            return Ok(block);
        }
        let _current = context.make_current()?;
        // While it is held no capture of the own stream begins.
        let mut held = context.own.read();
        let capture = held.get();
        if capture.is_some() || context.own_is_captured()? {
            return Err(captured(context, capture));
        }
        let (mut call, mut result) = block.try_allocate(bytes);
        if result == code::OUT_OF_MEMORY {
            // Frees the memory that is kept, waits for memory that was dropped but not yet freed in stream order, and empties the
            // pools, whose pieces are too small.
            context.free_kept();
            drop(held);
            context.own.synchronize(context)?;
            held = context.own.read();
            if let Some(capture) = held.get() {
                return Err(captured(context, Some(capture)));
            }
            for pool in context.pools.iter().flat_map(|pools| [pools.large, pools.small]) {
                // SAFETY: the pool is the device's.
                unsafe { call!(context.api, cuMemPoolTrimTo(pool, 0)) }?;
            }
            (call, result) = block.try_allocate(bytes);
        }
        if result == code::OUT_OF_MEMORY {
            let (free, total) = context.memory().unwrap_or((0, 0));
            let kind = ErrorKind::OutOfMemory { asked: bytes, free, total, device: Device::of(context) };
            return Err(Error::caused(kind, Arc::new(sys::answer(context.api, result))));
        }
        sys::check(context.api, call, result)?;
        Ok(block)
    }

    /// The driver's function that was called, and what it returned.
    fn try_allocate(&mut self, bytes: usize) -> (&'static str, i32) {
        let Context { api, pools, own, .. } = self.context;
        // SAFETY: the context is current, the pointer is to a live address, the stream is the context's.
        unsafe {
            match pools {
                None => ("cuMemAlloc", (api.cuMemAlloc_v2)(&mut self.address, bytes)),
                Some(pools) if is_kept(bytes) => (
                    "cuMemAllocFromPoolAsync",
                    (api.cuMemAllocFromPoolAsync)(&mut self.address, bytes, pools.small, own.raw()),
                ),
                Some(_) => ("cuMemAllocAsync", (api.cuMemAllocAsync)(&mut self.address, bytes, own.raw())),
            }
        }
    }

    /// The first byte's address; 0 for a block of no bytes.
    #[inline]
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn context(&self) -> &'static Context {
        self.context
    }

    /// Takes the device's own stream to queue work on blocks, behind all other work on them.
    ///
    /// # Errors
    /// A stream that other code captures, or another thread; the driver's.
    pub(crate) fn hold_own<'a>(
        context: &'static Context,
        blocks: impl IntoIterator<Item = &'a Arc<Block>> + Clone,
    ) -> Result<Held<'static>> {
        let marks = blocks.clone().into_iter().map(|block| block.usage.marks(context)).collect::<Result<Vec<_>>>()?;
        let held = context.hold(None)?;
        marks.iter().flatten().try_for_each(|mark| context.own.wait_for(context, mark))?;
        blocks.into_iter().try_for_each(|block| Usage::note(block, &held))?;
        Ok(held)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.address == 0 {
            return;
        }
        let mut address = self.address;
        if self.usage.is_own() && !self.context.own.is_captured_here() {
            match self.context.reuse.keep(self.bytes, address) {
                None => return,
                Some(unkept) => address = unkept,
            }
        }
        if !self.context.release(address, &self.usage) {
            let mut dropped = self.context.dropped.lock().unwrap_or_else(PoisonError::into_inner);
            dropped.push(Dropped { address, usage: std::mem::take(&mut self.usage) });
        }
    }
}

/// Copies `bytes` to memory of the device that stays until the process ends, and gives its address; `None` while the
/// device's own stream is captured, or this thread captures another.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`], or the driver's.
pub(crate) fn keep(context: &'static Context, bytes: &[u8]) -> Result<Option<DevicePointer>> {
    if this_thread_captures() || context.own.is_captured_here() || context.own_is_captured()? {
        return Ok(None);
    }
    // Another stream may be under capture on this thread.
    let _relaxed = Relaxed::new(context)?;
    let block = Block::new(context, bytes.len())?;
    // SAFETY: the block has room for the bytes, and nothing else knows it.
    unsafe { copy_in(context, block.address, bytes, None) }?;
    Ok(Some(ManuallyDrop::new(block).address))
}

/// Copies `from` to the device, behind the own stream's work and all that `usage` tells; done when this returns.
///
/// # Errors
/// Errors of the driver and of earlier work.
///
/// # Safety
/// `to` has room for `from`, and nothing else uses it but that work.
pub(crate) unsafe fn copy_in(
    context: &'static Context,
    to: DevicePointer,
    from: &[u8],
    usage: Option<&Usage>,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        copy_on_host(context, usage, from.len(), |stream| {
            call!(context.api, cuMemcpyHtoDAsync_v2(to, from.as_ptr().cast::<c_void>(), from.len(), stream))
        })
    }
}

/// Copies `bytes` bytes from the device to `to`, behind the own stream's work and all that `usage` tells; done when this
/// returns.
///
/// # Errors
/// Errors of the driver and of earlier work.
///
/// # Safety
/// `from` has and `to` takes `bytes` bytes, and nothing else writes `from` but that work.
pub(crate) unsafe fn copy_out(
    context: &'static Context,
    to: *mut u8,
    from: DevicePointer,
    bytes: usize,
    usage: Option<&Usage>,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        copy_on_host(context, usage, bytes, |stream| {
            call!(context.api, cuMemcpyDtoHAsync_v2(to.cast::<c_void>(), from, bytes, stream))
        })
    }
}

/// Queues a copy from or to the host and waits for it, whether or not it could be queued: the host's memory is borrowed
/// until then, and may be pinned, whose copies are asynchronous.
///
/// # Safety
/// `queue` queues a copy on the stream that it is given, between memory that it may use behind the own stream's work and
/// all that `usage` tells.
unsafe fn copy_on_host(
    context: &'static Context,
    usage: Option<&Usage>,
    bytes: usize,
    queue: impl FnOnce(Handle) -> Result<()>,
) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    // A stream may be under capture on this thread.
    let _relaxed = Relaxed::new(context)?;
    let stream = context.copies_behind(usage)?;
    let _current = context.make_current()?;
    let queued = queue(stream.raw());
    // SAFETY: the stream lives as long as the process.
    let done = unsafe { call!(context.api, cuStreamSynchronize(stream.raw())) };
    queued.and(done)
}

/// Queues a copy within the device.
///
/// # Errors
/// The driver's.
///
/// # Safety
/// Both have `bytes` bytes that do not overlap, and which only work in order with the stream uses.
pub(crate) unsafe fn copy_within(held: &Held<'_>, to: DevicePointer, from: DevicePointer, bytes: usize) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let _current = held.context.make_current()?;
    // SAFETY: the caller's promise.
    unsafe { call!(held.context.api, cuMemcpyDtoDAsync_v2(to, from, bytes, held.raw())) }
}

/// Copies from one device to another, behind the work on both own streams and all that the usages tell; done when this
/// returns.
///
/// # Errors
/// Errors of the driver and of earlier work.
///
/// # Safety
/// Both have `bytes` bytes, and nothing else uses the target or writes the source but that work.
pub(crate) unsafe fn copy_across(to: &Block, from: &Block, bytes: usize) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let _relaxed = Relaxed::new(to.context)?;
    let stream = to.context.copies_behind(Some(&to.usage))?;
    // The copy is queued on the target's device, the work before it partly on the source's.
    let mut marks = from.usage.marks(from.context)?;
    marks.push(from.context.own.mark(from.context)?);
    for mark in marks {
        stream.wait_for(to.context, &mark)?;
    }
    let _current = to.context.make_current()?;
    // SAFETY: the caller's promise.
    unsafe {
        call!(
            to.context.api,
            cuMemcpyPeerAsync(to.address, to.context.raw, from.address, from.context.raw, bytes, stream.raw())
        )?;
        call!(to.context.api, cuStreamSynchronize(stream.raw()))
    }
}

/// Queues setting every byte to `value`.
///
/// # Errors
/// The driver's.
///
/// # Safety
/// `to` has `bytes` bytes, which only work in order with the stream uses.
pub(crate) unsafe fn fill(held: &Held<'_>, to: DevicePointer, value: u8, bytes: usize) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let _current = held.context.make_current()?;
    // SAFETY: the caller's promise.
    unsafe { call!(held.context.api, cuMemsetD8Async(to, value, bytes, held.raw())) }
}

/// Fills `bytes` bytes with repeats of `element`: the first come from the host, and are copied behind themselves until
/// all are there. Queued on the device's own stream.
///
/// # Errors
/// Errors of the driver and of earlier work.
///
/// # Safety
/// `to` has `bytes` bytes, a multiple of `element`'s, which nothing uses but work on the own stream.
pub(crate) unsafe fn repeat(context: &'static Context, to: DevicePointer, element: &[u8], bytes: usize) -> Result<()> {
    const FROM_HOST: usize = 1 << 16;
    let first = element.repeat(FROM_HOST.min(bytes) / element.len());
    // SAFETY: the caller's promise.
    unsafe { copy_in(context, to, &first, None) }?;
    let held = context.hold(None)?;
    let mut filled = first.len();
    while filled < bytes {
        let more = filled.min(bytes - filled);
        // SAFETY: what is filled lies before `to + filled`, what follows has `more` bytes.
        unsafe { copy_within(&held, to + filled as u64, to, more) }?;
        filled += more;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::{begin_capture, end_capture, stub};
    use crate::error::DriverError;

    fn context() -> &'static Context {
        Box::leak(Box::new(Context::create(stub::driver(""), 0).unwrap()))
    }

    /// Returns the numbers of allocations and frees that the driver was asked for since the last time.
    fn asked() -> [usize; 2] {
        let calls = stub::calls();
        stub::fail("");
        let count = |names: &[&str]| calls.iter().filter(|call| names.contains(call)).count();
        [count(&["cuMemAllocAsync", "cuMemAllocFromPoolAsync"]), count(&["cuMemFreeAsync"])]
    }

    #[test]
    fn a_small_block_is_the_next_one_of_its_size() {
        let context = context();
        let first = Block::new(context, 4096).unwrap();
        let address = first.address();
        drop(first);
        assert_eq!(asked(), [1, 0]);
        let [other, same] = [4095, 4096].map(|bytes| Block::new(context, bytes).unwrap());
        assert!(same.address() == address && other.address() != address);
        assert_eq!(asked(), [1, 0]);
        drop((other, same));
        let large = Block::new(context, 1 << 30).unwrap();
        assert!(stub::calls().contains(&"cuMemAllocAsync"), "the default pool");
        drop(large);
        assert_eq!(asked(), [1, 1]);
    }

    #[test]
    fn what_other_streams_use_is_freed_behind_them() {
        let context = context();
        let block = Arc::new(Block::new(context, 4096).unwrap());
        Usage::note(&block, &context.hold(Some(&context.new_stream().unwrap())).unwrap()).unwrap();
        asked();
        drop(block);
        let calls = stub::calls();
        let at = |name: &str| calls.iter().position(|call| *call == name);
        let order = [at("cuEventRecord"), at("cuStreamWaitEvent"), at("cuMemFreeAsync")];
        assert!(order.is_sorted() && order[0].is_some() && !calls.contains(&"cuEventSynchronize"), "{calls:?}");
    }

    #[test]
    fn what_a_captured_stream_uses_is_freed_after_the_capture() {
        let context = context();
        let block = Arc::new(Block::new(context, 4096).unwrap());
        let stream = context.new_stream().unwrap();
        begin_capture(context, &stream).unwrap();
        // Before the capture, the stream's work is behind an event of before.
        Usage::note(&block, &context.hold(Some(&stream)).unwrap()).unwrap();
        asked();
        drop(block);
        assert_eq!(asked(), [0, 0], "the graph keeps it");
        let graph = end_capture(context, &stream).unwrap();
        asked();
        drop(graph);
        assert_eq!(asked(), [0, 1]);
        // The own stream's capture forbids it.
        let block = Block::new(context, 4096).unwrap();
        begin_capture(context, &context.own).unwrap();
        asked();
        drop(block);
        assert_eq!((asked(), context.dropped.lock().unwrap().len()), ([0, 0], 1));
        let error = Block::new(context, 4096).map(drop).unwrap_err().to_string();
        assert!(error.contains("during a capture"), "{error}");
        drop(end_capture(context, &context.own).unwrap());
        asked();
        drop(Block::new(context, 1 << 30).unwrap());
        assert_eq!((asked(), context.dropped.lock().unwrap().len()), ([1, 2], 0));
    }

    #[test]
    fn the_longest_kept_block_is_freed_for_the_newest() {
        let context = context();
        let blocks: Vec<Block> = (1..=40).map(|bytes| Block::new(context, bytes).unwrap()).collect();
        let first = blocks[0].address();
        drop(blocks);
        assert_eq!(asked(), [40, 8]);
        assert_ne!(Block::new(context, 1).unwrap().address(), first);
    }

    #[test]
    fn what_is_kept_is_freed_before_memory_is_out() {
        let context = context();
        drop([Block::new(context, 8).unwrap(), Block::new(context, 16).unwrap()]);
        stub::fail("cuMemAllocFromPoolAsync");
        let error = Block::new(context, 24).map(drop).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::OutOfMemory { asked: 24, .. }), "{error}");
        let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<DriverError>());
        assert_eq!(source.map(|source| source.code), Some(code::OUT_OF_MEMORY));
        let calls = stub::calls();
        assert_eq!(calls.iter().filter(|call| **call == "cuMemFreeAsync").count(), 2, "{calls:?}");
        assert_eq!(calls.iter().filter(|call| **call == "cuMemPoolTrimTo").count(), 2, "{calls:?}");
    }
}
