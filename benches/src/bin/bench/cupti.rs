//! The device's work as CUPTI records it: the time inside each kernel and copy, without launches and gaps. Events
//! around a call have some 3 us more.
//!
//! `libcupti` is loaded only on request: it comes with the CUDA toolkit and with PyTorch's wheels, not with the driver.
//! Three fields of its records are read, which lie at the same place in every version since CUDA 9.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libloading::Library;

use crate::report::{Busy, Spread};
use benches::quantile;
use pointwise_cli::error::{Error, Result};

/// Names and paths to try.
const NAMES: [&str; 5] = [
    "libcupti.so",
    "libcupti.so.13",
    "libcupti.so.12",
    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
    "/usr/local/cuda/lib64/libcupti.so",
];

/// `CUpti_ActivityKind`: copies; kernels that CUPTI runs one at a time, and those that it leaves as they are.
const MEMCPY: c_int = 1;
const KERNEL: c_int = 3;
const CONCURRENT_KERNEL: c_int = 10;
/// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`.
const FORCED: u32 = 1;
/// Bytes of a buffer for records, each of 100 to 300.
const BUFFER: usize = 1 << 20;

/// `cuptiActivityGetNextRecord`.
type NextRecord = unsafe extern "C" fn(*mut u8, usize, *mut *mut Record) -> c_int;
type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

/// The beginning of every record of a kernel or a copy.
#[repr(C)]
struct Record {
    kind: c_int,
    /// A kernel's caches and registers, or a copy's kind and bytes.
    other: [u32; 3],
    /// In nanoseconds; 0 where there is none.
    start: u64,
    end: u64,
}

/// The functions in use.
struct Api {
    register: unsafe extern "C" fn(Request, Complete) -> c_int,
    enable: unsafe extern "C" fn(c_int) -> c_int,
    disable: unsafe extern "C" fn(c_int) -> c_int,
    flush: unsafe extern "C" fn(u32) -> c_int,
    version: unsafe extern "C" fn(*mut u32) -> c_int,
}

/// From the start of a kernel or a copy to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    start: u64,
    end: u64,
}

// CUPTI's callbacks have no argument of the caller's: what they need lies here.
static NEXT: OnceLock<NextRecord> = OnceLock::new();
static SPANS: Mutex<Vec<Span>> = Mutex::new(Vec::new());

fn spans() -> MutexGuard<'static, Vec<Span>> {
    // A list of numbers is whole whatever happened to its last user.
    SPANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// CUPTI's activity records of this process.
pub(crate) struct Cupti {
    api: Api,
    /// 130001 for 13.0.1.
    pub(crate) version: u32,
}

impl Cupti {
    /// Loads the library: the one named, or the first that the system finds. Nothing is recorded yet.
    ///
    /// # Errors
    /// No library, or one without these functions.
    pub(crate) fn load(named: Option<&Path>) -> Result<Cupti> {
        let names: Vec<PathBuf> =
            named.map_or_else(|| NAMES.iter().map(PathBuf::from).collect(), |path| vec![path.into()]);
        let mut faults = Vec::new();
        for name in names {
            // SAFETY: CUPTI's library may be loaded at any time; its initialisers do nothing but its own.
            match unsafe { Library::new(&name) } {
                // It stays loaded: its threads may run to the end of the process.
                Ok(library) => return Cupti::of(Box::leak(Box::new(library))).map_err(|why| without(&why)),
                Err(error) => faults.push(format!("{}: {}", name.display(), reason(&error))),
            }
        }
        Err(without(&faults.join("; ")))
    }

    fn of(library: &'static Library) -> std::result::Result<Cupti, String> {
        // SAFETY: the types are those of cupti_activity.h and cupti_version.h.
        let api = unsafe {
            let next = function(library, "cuptiActivityGetNextRecord")?;
            NEXT.get_or_init(|| next);
            Api {
                register: function(library, "cuptiActivityRegisterCallbacks")?,
                enable: function(library, "cuptiActivityEnable")?,
                disable: function(library, "cuptiActivityDisable")?,
                flush: function(library, "cuptiActivityFlushAll")?,
                version: function(library, "cuptiGetVersion")?,
            }
        };
        let mut version = 0;
        // SAFETY: the pointer is to a live integer.
        checked("cuptiGetVersion", unsafe { (api.version)(&raw mut version) }).map_err(|error| error.to_string())?;
        Ok(Cupti { api, version })
    }

    /// The busy time of each of `count` calls, which `work` queues and waits for. Memsets are not recorded.
    ///
    /// # Errors
    /// The errors of the work and of CUPTI; records that do not fit so many calls.
    pub(crate) fn busy(&self, count: usize, work: impl FnOnce() -> Result<()>) -> Result<Busy> {
        // SAFETY: the callbacks are as CUPTI wants them, and stay.
        checked("cuptiActivityRegisterCallbacks", unsafe { (self.api.register)(request, complete) })?;
        spans().clear();
        let kinds = [CONCURRENT_KERNEL, MEMCPY];
        for kind in kinds {
            // SAFETY: a kind that every version knows.
            checked("cuptiActivityEnable", unsafe { (self.api.enable)(kind) })?;
        }
        let done = work();
        let flushed = self.flush();
        for kind in kinds {
            // SAFETY: as above.
            checked("cuptiActivityDisable", unsafe { (self.api.disable)(kind) })?;
        }
        done.and(flushed)?;
        of_calls(std::mem::take(&mut spans()), count)
    }

    fn flush(&self) -> Result<()> {
        // SAFETY: callbacks are registered.
        checked("cuptiActivityFlushAll", unsafe { (self.api.flush)(FORCED) })
    }
}

/// A function of the library.
///
/// # Safety
/// Its type is `F`.
unsafe fn function<F: Copy>(library: &Library, name: &str) -> std::result::Result<F, String> {
    // SAFETY: the caller's promise.
    unsafe { library.get(name) }.map(|function| *function).map_err(|error| reason(&error))
}

/// The system's message, which `libloading` keeps as a source.
fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

fn without(why: &str) -> Error {
    Error::Failed(format!(
        "no CUPTI ({why}); it comes with the CUDA toolkit and with PyTorch (`pip install nvidia-cuda-cupti`): name the \
         file with --libcupti"
    ))
}

fn checked(what: &str, code: c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(Error::Failed(format!("{what} failed with CUptiResult {code}"))) }
}

/// The busy time of calls that ran one after another, each of as many kernels.
fn of_calls(mut spans: Vec<Span>, count: usize) -> Result<Busy> {
    spans.sort_unstable();
    let kernels = spans.len() / count.max(1);
    if kernels == 0 || spans.len() != kernels * count {
        return Err(Error::Failed(format!("CUPTI saw {} kernels and copies in {count} calls", spans.len())));
    }
    let each = |call: &[Span]| call.iter().map(|span| (span.end - span.start) as f64 / 1e3).sum();
    let times: Vec<f64> = spans.chunks_exact(kernels).map(each).collect();
    let at = |share| quantile(&times, share);
    Ok(Busy { spread: Spread { us: at(0.5), p10_us: at(0.1), p90_us: at(0.9) }, runs: count, kernels })
}

fn layout() -> Layout {
    // 8 is CUPTI's alignment. The size is neither 0 nor near the end of the address space.
    Layout::new::<[u64; BUFFER / 8]>()
}

/// Gives CUPTI a buffer; where there is no memory none, and records are dropped.
unsafe extern "C" fn request(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
    // SAFETY: the layout has a size; CUPTI's pointers are to live variables of its own.
    unsafe {
        let memory = alloc(layout());
        *buffer = memory;
        *size = if memory.is_null() { 0 } else { BUFFER };
        // As many records as there is room for.
        *most = 0;
    }
}

/// Takes a buffer back, and what it holds.
unsafe extern "C" fn complete(_context: *mut c_void, _stream: u32, buffer: *mut u8, _size: usize, valid: usize) {
    if buffer.is_null() {
        return;
    }
    if let Some(next) = NEXT.get() {
        let mut spans = spans();
        let mut record: *mut Record = null_mut();
        // SAFETY: CUPTI filled `valid` bytes of the buffer. It moves `record` from one to the next, and returns another
        // code than 0 after the last. Records are at least as long as what is read of them, and aligned to 8 bytes.
        unsafe {
            while next(buffer, valid, &raw mut record) == 0 && !record.is_null() {
                let Record { kind, start, end, .. } = *record;
                if matches!(kind, MEMCPY | KERNEL | CONCURRENT_KERNEL) && start > 0 && end >= start {
                    spans.push(Span { start, end });
                }
            }
        }
    }
    // SAFETY: `request` made it, with this layout.
    unsafe { dealloc(buffer, layout()) };
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A CUPTI whose device runs, in each call, a kernel of 2 us and after a gap one of 1 us; now and then it reports a
    /// memset, and a kernel without times.
    static CALLS: AtomicU64 = AtomicU64::new(0);

    unsafe extern "C" fn register(_: Request, _: Complete) -> c_int {
        0
    }
    unsafe extern "C" fn switch(kind: c_int) -> c_int {
        if [MEMCPY, CONCURRENT_KERNEL].contains(&kind) { 0 } else { 1 }
    }
    unsafe extern "C" fn version(version: *mut u32) -> c_int {
        // SAFETY: the caller's variable.
        unsafe { *version = 1 };
        0
    }
    unsafe extern "C" fn next_record(buffer: *mut u8, valid: usize, record: *mut *mut Record) -> c_int {
        // SAFETY: the buffer of `flush` below holds `valid` bytes of records.
        unsafe {
            let next = if (*record).is_null() { buffer.cast::<Record>() } else { (*record).add(1) };
            if next.cast::<u8>() >= buffer.add(valid) {
                return 12;
            }
            *record = next;
        }
        0
    }
    unsafe extern "C" fn flush(_: u32) -> c_int {
        let (mut buffer, mut size, mut most) = (null_mut(), 0, 1);
        // SAFETY: live variables; the records fit the buffer.
        unsafe {
            request(&raw mut buffer, &raw mut size, &raw mut most);
            let (mut records, mut at) = (buffer.cast::<Record>(), 0);
            let mut put = |kind, start, end| {
                records.write(Record { kind, other: [0; 3], start, end });
                records = records.add(1);
                at += size_of::<Record>();
            };
            // Out of order, as the streams of a device may be.
            for call in (1..=CALLS.swap(0, Ordering::Relaxed)).rev() {
                put(2, call * 100_000, call * 100_000 + 50_000);
                put(KERNEL, call * 100_000 + 63_000, call * 100_000 + 64_000 + call);
                put(CONCURRENT_KERNEL, call * 100_000 + 60_000, call * 100_000 + 62_000);
                put(CONCURRENT_KERNEL, 0, 0);
            }
            complete(null_mut(), 0, buffer, size, at);
        }
        0
    }

    #[test]
    fn records_become_times() {
        NEXT.get_or_init(|| next_record);
        let cupti = Cupti { api: Api { register, enable: switch, disable: switch, flush, version }, version: 1 };
        let queue = |calls: u64| {
            move || {
                CALLS.store(calls, Ordering::Relaxed);
                Ok(())
            }
        };
        let busy = cupti.busy(11, queue(11)).unwrap();
        assert_eq!((busy.runs, busy.kernels), (11, 2));
        assert!((busy.spread.us - 3.006).abs() < 1e-9 && (busy.spread.p10_us - 3.002).abs() < 1e-9, "{busy:?}");
        assert!((busy.spread.p90_us - 3.010).abs() < 1e-9, "{busy:?}");
        let fault = cupti.busy(10, queue(11)).unwrap_err().to_string();
        assert!(fault.contains("22 kernels and copies in 10 calls"), "{fault}");
        assert!(cupti.busy(1, || Ok(())).unwrap_err().to_string().contains("saw 0"));
        let fault = cupti.busy(1, || Err(Error::Failed("out of memory".into()))).unwrap_err().to_string();
        assert_eq!(fault, "out of memory");
    }

    #[test]
    fn no_library() {
        let fault = Cupti::load(Some(Path::new("/nowhere/libcupti.so"))).err().unwrap().to_string();
        assert!(fault.contains("/nowhere/libcupti.so") && fault.contains("pip install nvidia-cuda-cupti"), "{fault}");
    }
}
