//! Memory and clocks: times on the device alone, with a level-2 cache that is cold or warm.

use std::ffi::c_void;
use std::ptr::null_mut;

use benches::{median, random};
use cudarc::driver::sys;
use pointwise::cuda::Event;
use pointwise::{DType, Device, Stream, Tensor};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// An empty kernel: what any launch costs.
const EMPTY: &std::ffi::CStr = c".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry empty() { ret; }\n";
/// Memory that is written before each cold run: twice the largest level-2 cache (B200: 126 MB).
const FLUSH: usize = 256 << 20;
/// Timed runs.
const REPEATS: usize = 9;

/// Buffers that all cases share, and the means to time work on them.
pub(crate) struct Bench {
    pub(crate) device: Device,
    /// Values between -8 and 8 as bf16; as f16 and f32 they are finite numbers too.
    pub(crate) input: Tensor,
    pub(crate) output: Tensor,
    /// Tables: f32 between -8 and 8.
    pub(crate) tables: [Tensor; 2],
    flush: Tensor,
    stream: Stream,
    empty: sys::CUfunction,
    events: Vec<(Event, Event)>,
}

/// Microseconds with a cold and with a warm level-2 cache.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    pub(crate) cold: f64,
    pub(crate) warm: f64,
}

impl Bench {
    /// With room for tensors of `bytes` in all, and tables of `entries`.
    pub(crate) fn new(bytes: usize, entries: usize) -> Outcome<Bench> {
        let device = Device::cuda(0)?;
        let stream = device.stream();
        let words = bytes.div_ceil(4).max(1 << 20);
        let input = Tensor::empty(&device, DType::F32, [words])?;
        let pattern = random(&device, DType::BF16, 1 << 21)?;
        for at in (0..4 * words).step_by(pattern.byte_len()) {
            let len = pattern.byte_len().min(4 * words - at);
            // SAFETY: the pattern has `len` bytes, the input has them from `at` on.
            unsafe {
                sys::cuMemcpyDtoD_v2(input.device_ptr() + at as u64, pattern.device_ptr(), len).result()?;
            }
        }
        let (mut module, mut empty) = (null_mut(), null_mut());
        // SAFETY: the context is current (a tensor was just made), the texts end in a NUL, the handles are live.
        unsafe {
            sys::cuModuleLoadData(&mut module, EMPTY.as_ptr().cast()).result()?;
            sys::cuModuleGetFunction(&mut empty, module, c"empty".as_ptr()).result()?;
        }
        let event = || Ok((Event::new(&device)?, Event::new(&device)?));
        let events = (0..REPEATS).map(|_| event()).collect::<pointwise::Result<Vec<_>>>()?;
        Ok(Bench {
            output: Tensor::empty(&device, DType::F32, [words])?,
            tables: [random(&device, DType::F32, entries)?, random(&device, DType::F32, entries)?],
            flush: Tensor::empty(&device, DType::F32, [FLUSH / 4])?,
            device,
            input,
            stream,
            empty,
            events,
        })
    }

    /// Medians of the times of single runs, the host ahead of the device.
    pub(crate) fn times(&self, mut work: impl FnMut() -> pointwise::Result<()>) -> Outcome<Times> {
        Ok(Times { cold: self.median(true, &mut work)?, warm: self.median(false, &mut work)? })
    }

    /// A copy of `bytes` from input to output.
    pub(crate) fn copy(&self, bytes: usize) -> Outcome<Times> {
        self.times(|| {
            // SAFETY: both buffers have the bytes.
            let code = unsafe {
                let (from, to) = (self.input.device_ptr(), self.output.device_ptr());
                sys::cuMemcpyDtoDAsync_v2(to, from, bytes, self.stream.raw().cast())
            };
            assert_eq!(code, sys::CUresult::CUDA_SUCCESS, "the copy failed");
            Ok(())
        })
    }

    /// An empty kernel.
    pub(crate) fn launch(&self) -> Outcome<Times> {
        self.times(|| {
            let parameters: *mut *mut c_void = null_mut();
            // SAFETY: the kernel has no parameters.
            let code = unsafe {
                let stream = self.stream.raw().cast();
                sys::cuLaunchKernel(self.empty, 1, 1, 1, 128, 1, 1, 0, stream, parameters, null_mut())
            };
            assert_eq!(code, sys::CUresult::CUDA_SUCCESS, "the empty launch failed");
            Ok(())
        })
    }

    fn median(&self, cold: bool, work: &mut impl FnMut() -> pointwise::Result<()>) -> Outcome<f64> {
        // The device is busy while the host queues what is timed, so that no host time is in it.
        for _ in 0..if cold { 1 } else { 3 } {
            self.write()?;
        }
        work()?;
        for (start, end) in &self.events {
            if cold {
                self.write()?;
            }
            start.record(&self.stream)?;
            work()?;
            end.record(&self.stream)?;
        }
        self.device.synchronize()?;
        let times = self.events.iter().map(|(start, end)| Ok(f64::from(end.milliseconds_since(start)?) * 1e3));
        Ok(median(times.collect::<pointwise::Result<_>>()?))
    }

    /// Overwrites the level-2 cache.
    fn write(&self) -> Outcome<()> {
        // SAFETY: the buffer has the bytes.
        unsafe { sys::cuMemsetD8Async(self.flush.device_ptr(), 0, FLUSH, self.stream.raw().cast()).result()? };
        Ok(())
    }
}
