//! One primary context a device, retained when it is first asked for and kept until the process ends.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int};
use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};

#[cfg(feature = "emulator")]
use super::emulated;
use super::graph::Relaxed;
use super::loaded::LoadedKernels;
use super::memory::Dropped;
use super::reuse::Reuse;
use super::stream::RawStream;
use super::sys::{self, Api, Driver, Handle, attribute, call};
use crate::embed::WAITS_SINCE;
use crate::error::{ErrorKind, Result};

/// The most CUDA devices of one process.
const MAX_DEVICES: usize = 16;

#[cfg(feature = "emulator")]
const EMULATED: &[u32] = &emulated::ARCHITECTURES;
#[cfg(not(feature = "emulator"))]
const EMULATED: &[u32] = &[];

/// The size of the tables that cache kernels: one place for each device, the emulated ones last.
pub(crate) const SLOTS: usize = MAX_DEVICES + EMULATED.len();

/// The properties of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The marketing name.
    pub name: String,
    /// The compute capability: 90 is 9.0.
    pub sm: u32,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_bytes: usize,
    /// Bytes of level 2 cache.
    pub l2_bytes: usize,
    /// Bytes of memory.
    pub memory_bytes: usize,
    /// The newest CUDA version the driver serves, major and minor.
    pub driver: (u32, u32),
    /// True if a kernel may be launched while the one before it on a stream ends: see [`Stream`](crate::Stream).
    pub dependent_launch: bool,
    /// The device's identity, the same in every process.
    pub uuid: [u8; 16],
}

impl DeviceInfo {
    /// Returns the bytes of shared memory that a kernel may be launched with, which declares at most 1,024 itself. The driver takes
    /// 1,024 for each block.
    pub(crate) fn block_shared_bytes(&self) -> usize {
        self.shared_bytes.saturating_sub(2048)
    }
}

/// A device of this process: its primary context, its own stream, its memory pool.
pub(crate) struct Context {
    pub(super) api: &'static Api,
    pub(super) raw: Handle,
    /// The device's own stream: tensors are allocated, filled and freed on it.
    pub(super) own: RawStream,
    /// The stream of the host's copies: nobody captures it, so it can be waited for while others capture.
    pub(super) copies: RawStream,
    /// Streams that this crate has made.
    streams: Mutex<Vec<Weak<RawStream>>>,
    /// Streams of other code, by their handles, which the driver need not be asked about again.
    pub(super) foreign: RwLock<HashMap<usize, Arc<RawStream>>>,
    /// The pools of stream-ordered allocations; none if the device has no such pools.
    pub(super) pools: Option<Pools>,
    /// The driver's number.
    pub(crate) ordinal: usize,
    /// The device's place in tables of [`SLOTS`].
    pub(crate) slot: usize,
    pub(crate) info: DeviceInfo,
    /// The driver's function for kernels that may be launched before the one before them in the stream has ended;
    /// `None` where device or driver cannot.
    pub(super) launch_early: Option<sys::LaunchKernelEx>,
    /// Held while a kernel is loaded.
    pub(crate) loading: Mutex<()>,
    /// Memory that was dropped while a stream that used it was captured. It is freed after the capture.
    pub(super) dropped: Mutex<Vec<Dropped>>,
    /// Memory dropped otherwise, for the next tensors.
    pub(super) reuse: Reuse,
    /// Kernels whose texts are made at run time.
    pub(super) kernels: LoadedKernels,
}

// SAFETY: the driver's handles may be used from any thread; what changes after creation is atomic or behind a lock.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

static CONTEXTS: [OnceLock<Context>; SLOTS] = [const { OnceLock::new() }; SLOTS];

/// Returns the number of devices that the driver sees.
///
/// # Errors
/// [`ErrorKind::NoDriver`].
pub(crate) fn device_count() -> Result<usize> {
    Ok(Driver::get()?.devices)
}

impl Context {
    /// The context of device `ordinal`.
    ///
    /// # Errors
    /// No driver, no such device, or one that cannot be initialised.
    pub(crate) fn get(ordinal: usize) -> Result<&'static Context> {
        let driver = Driver::get()?;
        let no_device = || ErrorKind::NoDevice { ordinal, count: driver.devices };
        if ordinal >= driver.devices {
            return Err(no_device().into());
        }
        if ordinal >= MAX_DEVICES {
            return Err(ErrorKind::Unsupported {
                what: format!("cuda:{ordinal}"),
                advice: format!("one process can use {MAX_DEVICES} devices; choose others with CUDA_VISIBLE_DEVICES"),
            }
            .into());
        }
        Context::of_slot(driver, ordinal, ordinal)
    }

    /// The context of the emulated device of a compute capability.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if it is none that is emulated; a setting of the environment that is none.
    #[cfg(feature = "emulator")]
    pub(crate) fn emulated(sm: u32) -> Result<&'static Context> {
        let ordinal = EMULATED.iter().position(|&emulated| emulated == sm).ok_or_else(|| ErrorKind::Unsupported {
            what: format!("an emulated sm_{sm}"),
            advice: format!("those that are emulated are {EMULATED:?}"),
        })?;
        Context::of_slot(emulated::driver()?, ordinal, MAX_DEVICES + ordinal)
    }

    /// True if the device is emulated on the CPU.
    #[inline]
    pub(crate) fn is_emulated(&self) -> bool {
        self.slot >= MAX_DEVICES
    }

    fn of_slot(driver: &'static Driver, ordinal: usize, slot: usize) -> Result<&'static Context> {
        let place = &CONTEXTS[slot];
        if let Some(context) = place.get() {
            return Ok(context);
        }
        static CREATING: Mutex<()> = Mutex::new(());
        let _creating = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(context) = place.get() {
            return Ok(context);
        }
        let mut context = Context::create(driver, ordinal)?;
        context.slot = slot;
        if context.is_emulated() {
            // Freed memory is gone, so that the emulator sees who still uses it.
            context.reuse = Reuse::none();
        }
        Ok(place.get_or_init(|| context))
    }

    pub(super) fn create(driver: &'static Driver, ordinal: usize) -> Result<Context> {
        let api = &driver.api;
        let mut device = 0;
        // SAFETY: the pointer is to a live value; the ordinal is below the count.
        unsafe { call!(api, cuDeviceGet(&mut device, ordinal as c_int)) }?;
        let mut held = Held::retain(api, device)?;
        let info = device_info(driver, device)?;
        // SAFETY: the context is retained; the pointer is to a live handle.
        unsafe {
            call!(api, cuCtxSetCurrent(held.context))?;
            call!(api, cuStreamCreate(&mut held.streams[0], sys::STREAM_NON_BLOCKING))?;
            call!(api, cuStreamCreate(&mut held.streams[1], sys::STREAM_NON_BLOCKING))?;
        }
        let pools = Pools::new(api, device)?;
        let (raw, [stream, copies]) = held.keep();
        Ok(Context {
            api,
            raw,
            own: RawStream::of_process(api, stream),
            copies: RawStream::of_process(api, copies),
            streams: Mutex::default(),
            foreign: RwLock::default(),
            pools,
            ordinal,
            slot: ordinal,
            launch_early: driver.launch_early.filter(|_| info.dependent_launch),
            info,
            loading: Mutex::new(()),
            dropped: Mutex::new(Vec::new()),
            reuse: Reuse::default(),
            kernels: LoadedKernels::default(),
        })
    }

    /// Makes this the calling thread's context until the result is dropped.
    ///
    /// The driver is asked which one is: other libraries change it too, so a copy of ours could be stale. If it is this
    /// one already, that question is all there is.
    ///
    /// # Errors
    /// The driver's.
    #[inline]
    pub(crate) fn make_current(&self) -> Result<Current> {
        let mut before = null_mut();
        // SAFETY: the pointer is to a live handle.
        unsafe { call!(self.api, cuCtxGetCurrent(&mut before)) }?;
        if before == self.raw {
            return Ok(Current { api: self.api, before: null_mut() });
        }
        // SAFETY: the primary context is retained for as long as the process lives.
        unsafe { call!(self.api, cuCtxSetCurrent(self.raw)) }?;
        Ok(Current { api: self.api, before })
    }

    /// Waits for all work that this crate has queued on its own streams and on those it has made.
    ///
    /// Not for the whole context: the driver does not bear that beside a capture.
    ///
    /// # Errors
    /// Errors of the work.
    pub(crate) fn synchronize(&'static self) -> Result<()> {
        let made: Vec<_> = {
            let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
            streams.retain(|stream| stream.strong_count() > 0);
            streams.iter().filter_map(Weak::upgrade).collect()
        };
        let streams = [&self.own, &self.copies].into_iter().chain(made.iter().map(Arc::as_ref));
        let marks = streams.map(|stream| stream.mark(self)).collect::<Result<Vec<_>>>()?;
        let _relaxed = Relaxed::new(self)?;
        marks.iter().try_for_each(|mark| mark.synchronize())
    }

    /// A new stream, which [`Context::synchronize`] waits for.
    ///
    /// # Errors
    /// The driver's.
    pub(crate) fn new_stream(&self) -> Result<Arc<RawStream>> {
        let stream = Arc::new(RawStream::new(self)?);
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(&stream));
        Ok(stream)
    }

    /// The device's own stream.
    #[inline]
    pub(crate) fn own(&self) -> &RawStream {
        &self.own
    }

    /// The raw context, to compare with others'.
    #[cfg(feature = "cudarc")]
    pub(crate) fn raw(&self) -> Handle {
        self.raw
    }

    /// The result of a driver call that other code made.
    ///
    /// # Errors
    /// [`ErrorKind::Driver`] for anything but success.
    #[cfg(feature = "cudarc")]
    pub(crate) fn check(&self, call: &'static str, code: i32) -> Result<()> {
        sys::check(self.api, call, code)
    }

    /// Refuses memory of another context than this one.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`]; [`ErrorKind::Driver`] if the address is none that the driver knows.
    #[cfg(feature = "cust")]
    pub(crate) fn check_address(&self, address: sys::DevicePointer) -> Result<()> {
        let _current = self.make_current()?;
        let mut of: Handle = null_mut();
        let mut ordinal: c_int = -1;
        // SAFETY: the pointers are to live values, of the attributes' types; the driver takes any address.
        unsafe {
            call!(self.api, cuPointerGetAttribute((&raw mut ordinal).cast(), sys::POINTER_DEVICE_ORDINAL, address))?;
            call!(self.api, cuPointerGetAttribute((&raw mut of).cast(), sys::POINTER_CONTEXT, address))?;
        }
        // Memory of a pool is of a device but of no context.
        if usize::try_from(ordinal) == Ok(self.ordinal) && (of == self.raw || of.is_null()) {
            return Ok(());
        }
        Err(ErrorKind::Unsupported {
            what: format!("memory of cuda:{ordinal} that is not of the primary context of cuda:{}", self.ordinal),
            advice:
                "name the device the buffer is on, and make it in the device's primary context (cust's Context::new)"
                    .to_owned(),
        }
        .into())
    }

    /// Bytes of memory that are free, and all.
    ///
    /// # Errors
    /// The driver's.
    pub(crate) fn memory(&self) -> Result<(usize, usize)> {
        let _current = self.make_current()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the context is current, the pointers are to live integers.
        unsafe { call!(self.api, cuMemGetInfo_v2(&mut free, &mut total)) }?;
        Ok((free, total))
    }
}

/// A context that was made current: on drop the thread gets back the one it had before. A thread that had none keeps the
/// device's, as it would keep the one that CUDA's runtime makes current: such threads are most, and pay nothing.
#[must_use = "dropping it takes the context away again"]
pub(crate) struct Current {
    api: &'static Api,
    /// Null if there is nothing to put back.
    before: Handle,
}

impl Drop for Current {
    #[inline]
    fn drop(&mut self) {
        if !self.before.is_null() {
            // SAFETY: it was the thread's context. If its owner has destroyed it meanwhile, the driver refuses, and ours
            // stays.
            unsafe { (self.api.cuCtxSetCurrent)(self.before) };
        }
    }
}

/// The driver's objects while a [`Context`] is made. They are given back on drop, so that a program can try again after a
/// failure, without end.
struct Held {
    api: &'static Api,
    device: c_int,
    context: Handle,
    streams: [Handle; 2],
    /// The thread's context of before: a thread must not be left with one that is gone.
    before: Handle,
}

impl Held {
    fn retain(api: &'static Api, device: c_int) -> Result<Held> {
        let (mut before, mut context) = (null_mut(), null_mut());
        // SAFETY: the pointers are to live handles, the device is one of the driver's.
        unsafe {
            call!(api, cuCtxGetCurrent(&mut before))?;
            call!(api, cuDevicePrimaryCtxRetain(&mut context, device))?;
        }
        Ok(Held { api, device, context, streams: [null_mut(); 2], before })
    }

    /// Context and streams, for good. A context that the thread had before is its own again.
    fn keep(self) -> (Handle, [Handle; 2]) {
        let held = ManuallyDrop::new(self);
        drop(Current { api: held.api, before: held.before });
        (held.context, held.streams)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the streams, if there are any, were created here, the context retained here; all are given back once,
        // and nobody else has them. The results of these calls do not matter: the error tells of the failure before them.
        unsafe {
            for stream in self.streams.into_iter().filter(|stream| !stream.is_null()) {
                (self.api.cuStreamDestroy_v2)(stream);
            }
            (self.api.cuCtxSetCurrent)(self.before);
            (self.api.cuDevicePrimaryCtxRelease_v2)(self.device);
        }
    }
}

/// A device's pools of memory. Blocks that are kept for others have one of their own: between large ones they slow
/// the calls on these down (by 0.7 %, `docs/tuning.md`).
pub(super) struct Pools {
    /// The device's default pool, for blocks that are too large to be kept.
    pub(super) large: Handle,
    /// For the others.
    pub(super) small: Handle,
}

impl Pools {
    /// None where the device has none.
    fn new(api: &Api, device: c_int) -> Result<Option<Pools>> {
        if get_attribute(api, device, attribute::MEMORY_POOLS_SUPPORTED)? == 0 {
            return Ok(None);
        }
        let (mut large, mut small, mut keep) = (null_mut(), null_mut(), u64::MAX);
        let properties = sys::MemPoolProperties::of(device);
        // Without it a pool gives its memory back at every synchronisation, and the next allocation is slow.
        // SAFETY: each pool is one of the driver's, the pointer to a live value of the attribute's type.
        let mut hold = |pool| unsafe {
            call!(api, cuMemPoolSetAttribute(pool, sys::POOL_RELEASE_THRESHOLD, (&raw mut keep).cast()))
        };
        // SAFETY: the pointers are to live handles and properties.
        unsafe {
            call!(api, cuDeviceGetDefaultMemPool(&mut large, device))?;
            hold(large)?;
            call!(api, cuMemPoolCreate(&mut small, &properties))?;
        }
        if let Err(error) = hold(small) {
            // SAFETY: it was made here, and nothing is in it.
            unsafe { (api.cuMemPoolDestroy)(small) };
            return Err(error);
        }
        Ok(Some(Pools { large, small }))
    }
}

fn device_info(driver: &Driver, device: c_int) -> Result<DeviceInfo> {
    let api = &driver.api;
    let mut name = [0_u8; 256];
    let mut uuid = [0_u8; 16];
    let mut memory_bytes = 0;
    // SAFETY: the buffers are as long as said, the pointers are to live values.
    unsafe {
        // One byte less than there is, so that a NUL stays at the end.
        call!(api, cuDeviceGetName(name.as_mut_ptr().cast::<c_char>(), 255, device))?;
        call!(api, cuDeviceGetUuid_v2(&mut uuid, device))?;
        call!(api, cuDeviceTotalMem_v2(&mut memory_bytes, device))?;
    }
    let get = |attribute| get_attribute(api, device, attribute);
    let sm = get(attribute::CAPABILITY_MAJOR)? * 10 + get(attribute::CAPABILITY_MINOR)?;
    Ok(DeviceInfo {
        name: CStr::from_bytes_until_nul(&name)
            .map_or_else(|_| String::new(), |name| name.to_string_lossy().into_owned()),
        sm,
        multiprocessors: get(attribute::MULTIPROCESSOR_COUNT)?,
        shared_bytes: get(attribute::MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)? as usize,
        l2_bytes: get(attribute::L2_CACHE_SIZE)? as usize,
        memory_bytes,
        driver: driver.version,
        dependent_launch: driver.launch_early.is_some() && sm >= WAITS_SINCE,
        uuid,
    })
}

fn get_attribute(api: &Api, device: c_int, attribute: i32) -> Result<u32> {
    let mut value = 0;
    // SAFETY: the pointer is to a live integer.
    unsafe { call!(api, cuDeviceGetAttribute(&mut value, attribute, device)) }?;
    Ok(u32::try_from(value).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::{Block, Usage, begin_capture, end_capture, stub};

    #[test]
    fn what_fails_gives_everything_back() {
        for failing in [
            "cuDevicePrimaryCtxRetain",
            "cuDeviceGetName",
            "cuDeviceGetAttribute",
            "cuCtxSetCurrent",
            "cuStreamCreate",
            "cuDeviceGetDefaultMemPool",
            "cuMemPoolCreate",
            "cuMemPoolSetAttribute",
        ] {
            let driver = stub::driver(failing);
            let error = Context::create(driver, 0).err().unwrap().to_string();
            assert!(error.contains(failing), "{failing}: {error}");
            let calls = stub::calls();
            let count = |name: &str| calls.iter().filter(|call| **call == name).count();
            assert_eq!(
                count("cuDevicePrimaryCtxRetain"),
                count("cuDevicePrimaryCtxRelease_v2"),
                "{failing}: {calls:?}"
            );
            assert_eq!(count("cuStreamCreate"), count("cuStreamDestroy_v2"), "{failing}: {calls:?}");
            assert_eq!(stub::current(), stub::BEFORE, "{failing}: {calls:?}");
        }
        let context = Context::create(stub::driver(""), 0).unwrap();
        assert!(!context.own.raw().is_null() && stub::current() == context.raw, "the thread had none");
        let calls = stub::calls();
        assert!(calls.contains(&"cuMemPoolSetAttribute"), "{calls:?}");
        assert!(
            !calls.contains(&"cuDevicePrimaryCtxRelease_v2") && !calls.contains(&"cuStreamDestroy_v2"),
            "{calls:?}"
        );
    }

    #[test]
    fn a_threads_own_context_is_put_back() {
        let driver = stub::driver("");
        let theirs = std::ptr::without_provenance_mut(0x99);
        stub::set_current(theirs);
        let context: &'static Context = Box::leak(Box::new(Context::create(driver, 0).unwrap()));
        assert_eq!(stub::current(), theirs, "after the device was made");
        {
            let _current = context.make_current().unwrap();
            assert_eq!(stub::current(), context.raw);
            drop(context.make_current().unwrap());
            assert_eq!(stub::current(), context.raw, "it is the outer one's to put back");
        }
        assert_eq!(stub::current(), theirs);
        // Every kind of call, the block's drop behind another stream's work too.
        stub::fail("");
        let stream = context.new_stream().unwrap();
        let block = Arc::new(Block::new(context, 64).unwrap());
        Usage::note(&block, &context.hold(Some(&stream)).unwrap()).unwrap();
        drop(block);
        begin_capture(context, &stream).unwrap();
        drop(end_capture(context, &stream).unwrap());
        stream.synchronize(context).unwrap();
        context.memory().unwrap();
        context.synchronize().unwrap();
        let calls = stub::calls();
        for call in ["cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuStreamBeginCapture_v2", "cuGraphExecDestroy"] {
            assert!(calls.contains(&call), "{call}: {calls:?}");
        }
        for (call, current) in stub::calls_and_contexts() {
            let needs = ["cuMem", "cuStream", "cuEvent", "cuGraph"].iter().any(|group| call.starts_with(group));
            assert!(current == context.raw || !needs, "{call} ran in the context of others");
        }
        assert_eq!(stub::current(), theirs);
        // The same context costs one question.
        stub::set_current(context.raw);
        stub::fail("");
        drop(context.make_current().unwrap());
        assert_eq!(stub::calls(), ["cuCtxGetCurrent"]);
        stub::set_current(stub::BEFORE);
    }
}
