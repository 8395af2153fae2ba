//! A kernel entry, loaded the first time a device asks for it.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::cuda::{self, Context, Function, Image, SLOTS};
use crate::embed::Kernels;
use crate::error::{ErrorKind, Result};

/// One kernel of an embedded set, by symbol, with what is loaded of it on each device.
pub struct Entry {
    symbol: &'static str,
    /// Word and slots of the row whose calls it serves.
    row: (u64, u128),
    kernels: &'static Kernels,
    /// Bytes of shared memory that a launch gives each block.
    shared: usize,
    loaded: [AtomicPtr<c_void>; SLOTS],
}

impl Entry {
    /// The kernel `symbol` of `kernels`, made of the row that `pointwise_core::row` has the word `row` for. Whether
    /// it is there is known when it is first used.
    pub const fn new(symbol: &'static str, row: u64, kernels: &'static Kernels) -> Entry {
        Entry::with_shared(symbol, row, kernels, 0)
    }

    /// [`Entry::new`] of a row with these slots.
    pub(crate) const fn of(symbol: &'static str, row: u64, slots: u128, kernels: &'static Kernels) -> Entry {
        Entry { symbol, row: (row, slots), kernels, shared: 0, loaded: [const { AtomicPtr::new(null_mut()) }; SLOTS] }
    }

    /// [`Entry::new`] of a kernel that is launched with so many bytes of shared memory.
    pub(crate) const fn with_shared(symbol: &'static str, row: u64, kernels: &'static Kernels, shared: usize) -> Entry {
        Entry { symbol, row: (row, 0), kernels, shared, loaded: [const { AtomicPtr::new(null_mut()) }; SLOTS] }
    }

    /// The kernel, launched with up to so many bytes of shared memory.
    pub(crate) const fn launched_with(mut self, shared: usize) -> Entry {
        self.shared = shared;
        self
    }

    /// The kernel's name.
    pub fn symbol(&self) -> &'static str {
        self.symbol
    }

    /// True if a kernel of this name was embedded, and was made of the row that the host has.
    pub fn is_embedded(&self) -> bool {
        self.kernels.is_bound(self.symbol, self.row)
    }

    /// The compiler that built the kernels beside it, or why there are none.
    pub fn note(&self) -> &str {
        self.kernels.note()
    }

    /// The kernel's text for a device of compute capability `sm`.
    ///
    /// # Errors
    /// No such kernel, or machine code alone.
    pub(crate) fn ptx(&self, sm: u32) -> Result<String> {
        self.kernels.image(self.symbol, self.row, sm)?;
        self.kernels.ptx(self.symbol, sm).ok_or_else(|| {
            let why = "there is no PTX of it: fusion at run time needs it, beside machine code".to_owned();
            ErrorKind::NoKernel { symbol: self.symbol.to_owned(), why }.into()
        })
    }

    /// The loaded kernel. The first call on a device decompresses and loads it, later ones read one pointer.
    ///
    /// # Errors
    /// No such kernel, or the driver refuses it.
    #[inline]
    pub(crate) fn function(&self, context: &'static Context) -> Result<Function> {
        let raw = self.loaded[context.slot].load(Ordering::Acquire);
        if raw.is_null() {
            return self.load(context);
        }
        // SAFETY: only `load` writes the slot, with a function of this device.
        Ok(unsafe { Function::from_raw(raw) })
    }

    #[cold]
    fn load(&self, context: &'static Context) -> Result<Function> {
        let _loading = context.loading.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = &self.loaded[context.slot];
        let raw = slot.load(Ordering::Acquire);
        if !raw.is_null() {
            // SAFETY: as in `function`.
            return Ok(unsafe { Function::from_raw(raw) });
        }
        let image = self.kernels.image(self.symbol, self.row, context.info.sm)?;
        let image = Image { bytes: &image.bytes, sm: image.sm, ptx: image.ptx };
        let function = cuda::load(context, self.symbol, &image, self.shared)?.keep();
        slot.store(function.into_raw(), Ordering::Release);
        Ok(function)
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Entry").field(&self.symbol).finish()
    }
}
