//! Device memory: allocation in stream order, copies, fills.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Context;
use super::graph::Relaxed;
use super::reuse::is_kept;
use super::sys::{self, DevicePointer, call, code};
use crate::error::{ErrorKind, Result};
use crate::{Device, Stream};

/// Whether memory was used on a stream other than its device's own, so that the own stream's order is not enough.
#[derive(Debug, Default)]
pub(crate) struct Usage(AtomicBool);

impl Usage {
    /// Takes note of work that is about to be queued on a foreign stream. The first time, waits for the device's own
    /// stream: the memory may still be in use there by what it was allocated from, or be about to be filled.
    ///
    /// # Errors
    /// Those of earlier work.
    #[inline]
    pub(crate) fn elsewhere(&self, device: &Device) -> Result<()> {
        if self.is_elsewhere() {
            return Ok(());
        }
        self.first_elsewhere(device)
    }

    #[cold]
    fn first_elsewhere(&self, device: &Device) -> Result<()> {
        if let Some(context) = device.context() {
            context.make_current()?;
            // The foreign stream may be under capture on this thread.
            let _relaxed = Relaxed::new(context)?;
            // SAFETY: the own stream lives as long as the process.
            unsafe { call!(context.api, cuStreamSynchronize(context.stream)) }?;
        }
        // After the wait: another thread that sees the flag need not wait.
        self.0.store(true, Ordering::Release);
        Ok(())
    }

    #[inline]
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Context {
    /// Whether the device's own stream is being captured, by this crate or by others.
    ///
    /// # Errors
    /// The driver's.
    fn own_is_captured(&self) -> Result<bool> {
        self.make_current()?;
        let mut status = 0;
        // SAFETY: the own stream lives as long as the process, the pointer is to a live integer.
        unsafe { call!(self.api, cuStreamIsCapturing(self.stream, &mut status)) }?;
        Ok(status != 0)
    }

    /// Frees what was dropped during captures, if none is under way.
    pub(super) fn free_dropped(&self) {
        let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        if dropped.is_empty()
            || self.captures.load(Ordering::Acquire) > 0
            || self.own_is_captured().unwrap_or(true)
            // It may have been used on any stream.
            || self.synchronize().is_err()
        {
            return;
        }
        for address in dropped.drain(..) {
            // SAFETY: each was allocated by the matching function and is freed once; no work uses it any more.
            unsafe { self.free(address) };
        }
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
                (self.api.cuMemFreeAsync)(address, self.stream);
            }
        }
    }
}

/// A piece of a device's memory, freed on drop, or kept for another, in the order of the device's own stream.
pub(crate) struct Block {
    context: &'static Context,
    address: DevicePointer,
    bytes: usize,
    pub(crate) usage: Usage,
}

impl Block {
    /// `bytes` bytes, not initialised, aligned to 256. No driver call for none.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`], or the driver's.
    pub(crate) fn new(context: &'static Context, bytes: usize) -> Result<Block> {
        let mut block = Block { context, address: 0, bytes, usage: Usage::default() };
        if bytes == 0 {
            return Ok(block);
        }
        if context.own_is_captured()? {
            // The allocation would become part of the graph, and the memory be there only while the graph runs.
            return Err(ErrorKind::Unsupported {
                what: format!("allocating on {} while its own stream is captured", Device::of(context)),
                advice: "make every tensor before the capture, and call the `_into` functions during it".to_owned(),
            }
            .into());
        }
        context.free_dropped();
        if let Some(address) = context.reuse.take(bytes) {
            block.address = address;
            return Ok(block);
        }
        let (mut call, mut result) = block.try_allocate(bytes);
        if result == code::OUT_OF_MEMORY {
            // What is kept, what was dropped but not yet freed in stream order, and what the pool keeps in pieces too
            // small.
            context.free_kept();
            context.synchronize()?;
            for pool in context.pools.iter().flat_map(|pools| [pools.large, pools.small]) {
                // SAFETY: the pool is the device's.
                unsafe { call!(context.api, cuMemPoolTrimTo(pool, 0)) }?;
            }
            (call, result) = block.try_allocate(bytes);
        }
        if result == code::OUT_OF_MEMORY {
            let (free, total) = context.memory().unwrap_or((0, 0));
            return Err(ErrorKind::OutOfMemory { asked: bytes, free, total, device: Device::of(context) }.into());
        }
        sys::check(context.api, call, result)?;
        Ok(block)
    }

    /// The driver's function that was called, and what it returned.
    fn try_allocate(&mut self, bytes: usize) -> (&'static str, i32) {
        let Context { api, pools, stream, .. } = self.context;
        // SAFETY: the context is current, the pointer is to a live address, the stream is the context's.
        unsafe {
            match pools {
                None => ("cuMemAlloc", (api.cuMemAlloc_v2)(&mut self.address, bytes)),
                Some(pools) if is_kept(bytes) => (
                    "cuMemAllocFromPoolAsync",
                    (api.cuMemAllocFromPoolAsync)(&mut self.address, bytes, pools.small, *stream),
                ),
                Some(_) => ("cuMemAllocAsync", (api.cuMemAllocAsync)(&mut self.address, bytes, *stream)),
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

    /// Waits until work on other streams no longer uses the block; work on the own stream is ordered anyway.
    ///
    /// # Errors
    /// Those of the work.
    pub(crate) fn wait_for_users(&self) -> Result<()> {
        if self.usage.is_elsewhere() { self.context.synchronize() } else { Ok(()) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.address == 0 {
            return;
        }
        let mut address = self.address;
        // Of a captured stream's memory the next owner cannot come before the capture is over: see `Block::new`.
        if !self.usage.is_elsewhere() && self.context.captures.load(Ordering::Acquire) == 0 {
            match self.context.reuse.keep(self.bytes, address) {
                None => return,
                Some(unkept) => address = unkept,
            }
        }
        let Ok(own_is_captured) = self.context.own_is_captured() else {
            return;
        };
        // A capture would be spoiled by waiting for the device, and by freeing on a captured stream.
        let may_spoil = || own_is_captured || self.context.captures.load(Ordering::Acquire) > 0;
        if self.usage.is_elsewhere() || may_spoil() {
            // While it is held no capture begins.
            let mut dropped = self.context.dropped.lock().unwrap_or_else(PoisonError::into_inner);
            if may_spoil() {
                dropped.push(address);
                return;
            }
            // Memory that other streams may still use is rather lost than freed under them.
            if self.wait_for_users().is_err() {
                return;
            }
        }
        // SAFETY: the block, or the one that was kept before it, was allocated here and is freed once; work that uses it
        // is queued on the own stream or done.
        unsafe { self.context.free(address) };
    }
}

/// Copies `bytes` to memory of the device that stays until the process ends, and gives its address; `None` while the
/// device's own stream is captured.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`], or the driver's.
pub(crate) fn keep(context: &'static Context, bytes: &[u8]) -> Result<Option<DevicePointer>> {
    if context.own_is_captured()? {
        return Ok(None);
    }
    // Another stream may be under capture on this thread.
    let _relaxed = Relaxed::new(context)?;
    let block = Block::new(context, bytes.len())?;
    // SAFETY: the block has room for the bytes, and nothing else knows it.
    unsafe { copy_in(context, block.address, bytes) }?;
    Ok(Some(ManuallyDrop::new(block).address))
}

/// Copies `from` to the device; done when this returns.
///
/// # Errors
/// The driver's.
///
/// # Safety
/// `to` has room for `from`, and nothing else uses it but work on the device's own stream.
pub(crate) unsafe fn copy_in(context: &Context, to: DevicePointer, from: &[u8]) -> Result<()> {
    if from.is_empty() {
        return Ok(());
    }
    context.make_current()?;
    // SAFETY: the caller's promise; the wait keeps `from` borrowed until it was read (it may be pinned memory, whose
    // copies are asynchronous).
    unsafe {
        call!(context.api, cuMemcpyHtoDAsync_v2(to, from.as_ptr().cast::<c_void>(), from.len(), context.stream))?;
        call!(context.api, cuStreamSynchronize(context.stream))
    }
}

/// Copies `bytes` bytes from the device to `to`; done when this returns.
///
/// # Errors
/// The driver's, and those of work queued earlier.
///
/// # Safety
/// `from` has and `to` takes `bytes` bytes, and work that writes `from` was queued on the device's own stream or is
/// done.
pub(crate) unsafe fn copy_out(context: &Context, to: *mut u8, from: DevicePointer, bytes: usize) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    context.make_current()?;
    // SAFETY: the caller's promise; the wait keeps `to` borrowed until it was written.
    unsafe {
        let queued = call!(context.api, cuMemcpyDtoHAsync_v2(to.cast::<c_void>(), from, bytes, context.stream));
        queued.and(call!(context.api, cuStreamSynchronize(context.stream)))
    }
}

/// Queues a copy within the device, on its own stream.
///
/// # Errors
/// The driver's.
///
/// # Safety
/// Both have `bytes` bytes that do not overlap, and are used by work on the own stream only.
pub(crate) unsafe fn copy_within(
    context: &Context,
    to: DevicePointer,
    from: DevicePointer,
    bytes: usize,
) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    context.make_current()?;
    // SAFETY: the caller's promise.
    unsafe { call!(context.api, cuMemcpyDtoDAsync_v2(to, from, bytes, context.stream)) }
}

/// Copies from one device to another; done when this returns.
///
/// # Errors
/// The driver's.
///
/// # Safety
/// Both have `bytes` bytes.
pub(crate) unsafe fn copy_across(
    to_context: &Context,
    to: DevicePointer,
    from_context: &Context,
    from: DevicePointer,
    bytes: usize,
) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    // What fills the source is queued there, not on the target's stream.
    from_context.synchronize()?;
    to_context.make_current()?;
    // SAFETY: the caller's promise.
    unsafe {
        call!(to_context.api, cuMemcpyPeerAsync(to, to_context.raw, from, from_context.raw, bytes, to_context.stream))?;
        call!(to_context.api, cuStreamSynchronize(to_context.stream))
    }
}

/// Queues setting every byte to `value`, on the device's own stream.
///
/// # Errors
/// The driver's.
///
/// # Safety
/// `to` has `bytes` bytes that only work on the own stream uses.
pub(crate) unsafe fn fill(context: &Context, to: DevicePointer, value: u8, bytes: usize) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    context.make_current()?;
    // SAFETY: the caller's promise.
    unsafe { call!(context.api, cuMemsetD8Async(to, value, bytes, context.stream)) }
}

/// Fills `bytes` bytes with repeats of `element`: the first come from the host, and are copied behind themselves until
/// all are there. Queued on the device's own stream.
///
/// # Errors
/// The driver's, and those of work queued earlier.
///
/// # Safety
/// `to` has `bytes` bytes, a multiple of `element`'s, which nothing uses but work on the own stream.
pub(crate) unsafe fn repeat(context: &Context, to: DevicePointer, element: &[u8], bytes: usize) -> Result<()> {
    const FROM_HOST: usize = 1 << 16;
    let first = element.repeat(FROM_HOST.min(bytes) / element.len());
    // SAFETY: the caller's promise.
    unsafe { copy_in(context, to, &first) }?;
    let mut filled = first.len();
    while filled < bytes {
        let more = filled.min(bytes - filled);
        // SAFETY: what is filled lies before `to + filled`, what follows has `more` bytes.
        unsafe { copy_within(context, to + filled as u64, to, more) }?;
        filled += more;
    }
    Ok(())
}

/// Queues a copy within the device on a stream.
///
/// # Errors
/// The driver's.
///
/// # Safety
/// `stream` is of the context; both addresses have `bytes` bytes, which do not overlap and which only work in order
/// with the stream uses.
pub(crate) unsafe fn copy_on(
    context: &Context,
    stream: &Stream,
    to: DevicePointer,
    from: DevicePointer,
    bytes: usize,
) -> Result<()> {
    context.make_current()?;
    // SAFETY: the caller's promise.
    unsafe { call!(context.api, cuMemcpyDtoDAsync_v2(to, from, bytes, stream.raw())) }
}

/// Queues setting every byte to `value` on a stream.
///
/// # Errors
/// The driver's.
///
/// # Safety
/// `stream` is of the context; `to` has `bytes` bytes, which only work in order with the stream uses.
pub(crate) unsafe fn fill_on(
    context: &Context,
    stream: &Stream,
    to: DevicePointer,
    value: u8,
    bytes: usize,
) -> Result<()> {
    context.make_current()?;
    // SAFETY: the caller's promise.
    unsafe { call!(context.api, cuMemsetD8Async(to, value, bytes, stream.raw())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::stub;

    fn context() -> &'static Context {
        Box::leak(Box::new(Context::create(stub::driver(""), 0).unwrap()))
    }

    /// How often the driver was asked to allocate and to free since the last time.
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
    fn what_other_streams_or_captures_use_is_not_kept() {
        let context = context();
        let block = Block::new(context, 4096).unwrap();
        block.usage.0.store(true, Ordering::Release);
        drop(block);
        assert!(stub::calls().contains(&"cuCtxSynchronize"));
        assert_eq!(asked(), [1, 1]);
        let block = Block::new(context, 4096).unwrap();
        context.captures.store(1, Ordering::Release);
        drop(block);
        assert_eq!((asked(), context.dropped.lock().unwrap().len()), ([1, 0], 1));
        context.captures.store(0, Ordering::Release);
        let next = Block::new(context, 4096).unwrap();
        assert_eq!(asked(), [1, 1]);
        drop(next);
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
        let calls = stub::calls();
        assert_eq!(calls.iter().filter(|call| **call == "cuMemFreeAsync").count(), 2, "{calls:?}");
        assert_eq!(calls.iter().filter(|call| **call == "cuMemPoolTrimTo").count(), 2, "{calls:?}");
    }
}
