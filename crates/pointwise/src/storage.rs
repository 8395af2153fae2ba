//! The memory of a tensor: a host allocation or a block of a device's memory.

use std::alloc::{Layout as HostLayout, alloc, alloc_zeroed, dealloc};
use std::num::NonZero;
use std::ptr::{NonNull, without_provenance_mut};
use std::sync::Arc;

use crate::Device;
use crate::cuda::{self, Block};
use crate::error::{ErrorKind, Result};

/// The alignment of host memory: a cache line, and the widest vector there is.
const HOST_ALIGN: NonZero<usize> = NonZero::new(64).unwrap();

/// Memory that a tensor and its clones own.
pub(crate) enum Storage {
    Host(HostBlock),
    /// Graphs keep the block, too. They reach it only in the order of streams.
    Cuda(Arc<Block>),
}

/// The contents of new memory.
#[derive(Clone, Copy)]
enum Fill {
    Zeros,
    /// Anything; the maker writes every byte before anyone reads one.
    Nothing,
}

impl Storage {
    /// `bytes` zero bytes.
    ///
    /// # Errors
    /// Out of memory, or errors of the driver.
    pub(crate) fn zeros(device: &Device, bytes: usize) -> Result<Storage> {
        let Some(context) = device.context() else {
            return Ok(Storage::Host(HostBlock::new(bytes, Fill::Zeros)?));
        };
        let block = Block::new(context, bytes)?;
        // SAFETY: the block is that long, and new.
        unsafe { cuda::fill(&context.hold(None)?, block.address(), 0, bytes) }?;
        Ok(Storage::Cuda(Arc::new(block)))
    }

    /// `bytes` bytes: anything on a GPU, zero on the CPU, where reading uninitialised memory is undefined behaviour.
    ///
    /// # Errors
    /// Out of memory, or errors of the driver.
    pub(crate) fn empty(device: &Device, bytes: usize) -> Result<Storage> {
        match device.context() {
            None => Storage::zeros(device, bytes),
            Some(context) => Ok(Storage::Cuda(Arc::new(Block::new(context, bytes)?))),
        }
    }

    /// A copy of `bytes`.
    ///
    /// # Errors
    /// Out of memory, or errors of the driver.
    pub(crate) fn from_bytes(device: &Device, bytes: &[u8]) -> Result<Storage> {
        let mut storage = match device.context() {
            None => Storage::Host(HostBlock::new(bytes.len(), Fill::Nothing)?),
            Some(context) => Storage::Cuda(Arc::new(Block::new(context, bytes.len())?)),
        };
        // SAFETY: the storage is as long as `bytes`.
        unsafe { storage.write(bytes) }?;
        Ok(storage)
    }

    /// The first byte: a pointer on the CPU, an address on a GPU.
    #[inline]
    pub(crate) fn pointer(&self) -> *mut u8 {
        match self {
            Storage::Host(block) => block.pointer.as_ptr(),
            Storage::Cuda(block) => without_provenance_mut(block.address() as usize),
        }
    }

    /// A device's memory, with the record of the streams that use it.
    #[inline]
    pub(crate) fn block(&self) -> Option<&Arc<Block>> {
        match self {
            Storage::Host(_) => None,
            Storage::Cuda(block) => Some(block),
        }
    }

    /// Overwrites the first bytes with `bytes`.
    ///
    /// # Errors
    /// Errors of the driver.
    ///
    /// # Safety
    /// The storage has at least that many bytes.
    pub(crate) unsafe fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Storage::Host(block) => {
                // SAFETY: the caller's promise; `&mut self` rules out that they overlap.
                unsafe {
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), block.pointer.as_ptr(), bytes.len());
                }
                Ok(())
            }
            Storage::Cuda(block) => {
                // SAFETY: the caller's promise; the copy waits for the block's users.
                unsafe { cuda::copy_in(block.context(), block.address(), bytes, Some(&block.usage)) }
            }
        }
    }

    /// Sets the first `bytes` bytes to zero.
    ///
    /// # Errors
    /// Errors of the driver.
    ///
    /// # Safety
    /// The storage has at least that many bytes.
    pub(crate) unsafe fn set_zero(&mut self, bytes: usize) -> Result<()> {
        match self {
            Storage::Host(block) => {
                // SAFETY: the caller's promise.
                unsafe { block.pointer.as_ptr().write_bytes(0, bytes) };
                Ok(())
            }
            Storage::Cuda(block) => {
                let held = Block::hold_own(block.context(), [&*block])?;
                // SAFETY: the caller's promise; the own stream waits for the block's users.
                unsafe { cuda::fill(&held, block.address(), 0, bytes) }
            }
        }
    }

    /// Copies the first `bytes` bytes of `from` over its own.
    ///
    /// # Errors
    /// Errors of the driver.
    ///
    /// # Safety
    /// Both storages have at least that many bytes, and they are not the same one.
    pub(crate) unsafe fn copy_from(&mut self, from: &Storage, bytes: usize) -> Result<()> {
        match (&mut *self, from) {
            (_, Storage::Host(source)) => {
                // SAFETY: the caller's promise: the source has that many bytes, all initialised.
                let source = unsafe { std::slice::from_raw_parts(source.pointer.as_ptr(), bytes) };
                // SAFETY: the caller's promise.
                unsafe { self.write(source) }
            }
            (Storage::Host(target), Storage::Cuda(source)) => {
                // SAFETY: the caller's promise; the copy waits for the block's users.
                unsafe {
                    let usage = Some(&source.usage);
                    cuda::copy_out(source.context(), target.pointer.as_ptr(), source.address(), bytes, usage)
                }
            }
            (Storage::Cuda(target), Storage::Cuda(source)) => {
                let context = target.context();
                if !std::ptr::eq(context, source.context()) {
                    // SAFETY: the caller's promise; the copy waits for the blocks' users.
                    return unsafe { cuda::copy_across(target, source, bytes) };
                }
                let held = Block::hold_own(context, [source, &*target])?;
                // SAFETY: the caller's promise; the own stream waits for the blocks' users.
                unsafe { cuda::copy_within(&held, target.address(), source.address(), bytes) }
            }
        }
    }
}

/// Host memory, aligned to a cache line.
pub(crate) struct HostBlock {
    pointer: NonNull<u8>,
    layout: HostLayout,
}

// SAFETY: plain memory with one owner.
unsafe impl Send for HostBlock {}
// SAFETY: as above; writes need the only reference.
unsafe impl Sync for HostBlock {}

impl HostBlock {
    fn new(bytes: usize, fill: Fill) -> Result<HostBlock> {
        let out_of_memory = || ErrorKind::OutOfMemory { asked: bytes, free: 0, total: 0, device: Device::cpu() };
        let layout = HostLayout::from_size_align(bytes, HOST_ALIGN.get()).map_err(|_| out_of_memory())?;
        if bytes == 0 {
            // Aligned, and never read through or freed.
            return Ok(HostBlock { pointer: NonNull::without_provenance(HOST_ALIGN), layout });
        }
        // SAFETY: the layout is not empty.
        let pointer = unsafe {
            match fill {
                Fill::Zeros => alloc_zeroed(layout),
                Fill::Nothing => alloc(layout),
            }
        };
        let pointer = NonNull::new(pointer).ok_or_else(out_of_memory)?;
        Ok(HostBlock { pointer, layout })
    }
}

impl Drop for HostBlock {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            // SAFETY: allocated with this layout, freed once.
            unsafe { dealloc(self.pointer.as_ptr(), self.layout) };
        }
    }
}
