//! Devices: the CPU, or a CUDA device by ordinal.

use std::fmt;

use crate::cuda::{self, Context, DeviceInfo};
use crate::error::{Error, ErrorKind, Result};
use crate::stream::Stream;
use crate::tensor::TensorView;

/// What [`Device::parse`] takes.
const NAMES: &str = if cfg!(feature = "emulator") {
    "auto, cpu, cuda, cuda:N, emulated or emulated:SM"
} else {
    "auto, cpu, cuda or cuda:N"
};

/// Where tensors lie and ops run: the CPU or a CUDA device. Cheap to copy.
#[derive(Clone, Copy)]
pub struct Device(Option<&'static Context>);

impl Device {
    /// The CPU.
    pub const fn cpu() -> Device {
        Device(None)
    }

    /// CUDA device `ordinal`, counted as the driver does (`CUDA_VISIBLE_DEVICES`). The first call for a device creates
    /// its context, which takes a good part of a second.
    ///
    /// # Errors
    /// No driver ([`ErrorKind::NoDriver`]) or one that cannot be used ([`ErrorKind::BrokenDriver`]), no such device, or
    /// one that cannot be initialised.
    pub fn cuda(ordinal: usize) -> Result<Device> {
        Ok(Device(Some(Context::get(ordinal)?)))
    }

    /// An emulated device of the newest architecture (sm_90): it runs the GPU's kernels, instruction by instruction, on
    /// the CPU, and checks every access to memory. For tests where there is no GPU, not for work: it is thousands of
    /// times slower.
    ///
    /// A fault is the error of the call that launched the kernel ([`ErrorKind::Emulator`]). `POINTWISE_EMULATOR_CHECKS`,
    /// `POINTWISE_EMULATOR_APPROX` and `POINTWISE_EMULATOR_LIMIT` set what is checked, how inexact the approximate
    /// instructions are, and how many instructions a warp may take: see crate `pointwise-emulator`.
    ///
    /// # Errors
    /// A bad value of one of these variables.
    #[cfg(feature = "emulator")]
    pub fn emulated() -> Result<Device> {
        Device::emulated_as(90)
    }

    /// [`Device::emulated`], of compute capability `sm`: 80 or 90.
    ///
    /// # Errors
    /// As there, and any other `sm`.
    #[cfg(feature = "emulator")]
    pub fn emulated_as(sm: u32) -> Result<Device> {
        Ok(Device(Some(Context::emulated(sm)?)))
    }

    /// `cuda:0` if there is a driver with a device, and this build has kernels for it (see [`embedded`]); else the CPU.
    ///
    /// # Errors
    /// A driver or a device that is there but cannot be initialised: it is not passed over in silence.
    ///
    /// [`embedded`]: crate::embedded
    pub fn best() -> Result<Device> {
        Device::best_for(crate::embedded())
    }

    /// As [`Device::best`], for ops of one's own, whose kernels are [`include_kernels!`](crate::include_kernels)'
    /// `KERNELS`.
    ///
    /// # Errors
    /// As there.
    pub fn best_for(kernels: &crate::embed::Kernels) -> Result<Device> {
        let Some(oldest) = kernels.oldest() else {
            return Ok(Device::cpu());
        };
        match Device::cuda(0) {
            Err(error) if error.is_no_device() => Ok(Device::cpu()),
            Ok(device) if device.info().is_some_and(|info| info.sm < oldest) => Ok(Device::cpu()),
            result => result,
        }
    }

    /// How many CUDA devices the driver sees; 0 without a driver that can be used.
    pub fn cuda_count() -> usize {
        cuda::device_count().unwrap_or(0)
    }

    /// The device of a name: `auto` ([`Device::best`]), `cpu`, `cuda` (the first), `cuda:N`, and with the feature
    /// `emulator` `emulated` or `emulated:SM`, such as `emulated:80`.
    ///
    /// # Errors
    /// Another word, or as [`Device::cuda`].
    pub fn parse(name: &str) -> Result<Device> {
        match name {
            "auto" => Device::best(),
            "cpu" => Ok(Device::cpu()),
            "cuda" => Device::cuda(0),
            #[cfg(feature = "emulator")]
            "emulated" => Device::emulated(),
            _ => {
                let number = |prefix: &str| -> Option<u32> {
                    let digits = name.strip_prefix(prefix)?;
                    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
                };
                #[cfg(feature = "emulator")]
                if let Some(sm) = number("emulated:") {
                    return Device::emulated_as(sm);
                }
                let ordinal = number("cuda:").ok_or_else(|| ErrorKind::Parameter {
                    name: "device",
                    value: format!("{name:?}"),
                    why: format!("must be {NAMES}"),
                })?;
                Device::cuda(ordinal as usize)
            }
        }
    }

    /// Whether this is the CPU.
    #[inline]
    pub fn is_cpu(&self) -> bool {
        self.0.is_none()
    }

    /// Whether this is a CUDA device, and not an emulated one.
    #[inline]
    pub fn is_cuda(&self) -> bool {
        self.0.is_some_and(|context| !context.is_emulated())
    }

    /// Whether this is an emulated device.
    #[inline]
    pub fn is_emulated(&self) -> bool {
        self.0.is_some_and(Context::is_emulated)
    }

    /// The CUDA device's number; none for other devices.
    #[inline]
    pub fn ordinal(&self) -> Option<usize> {
        self.0.filter(|context| !context.is_emulated()).map(|context| context.ordinal)
    }

    /// What the CUDA device is, or is emulated as; none for the CPU.
    pub fn info(&self) -> Option<&'static DeviceInfo> {
        self.0.map(|context| &context.info)
    }

    /// Bytes of the CUDA device's memory that are free, and all; none for the CPU.
    ///
    /// # Errors
    /// The driver's.
    pub fn memory(&self) -> Result<Option<(usize, usize)>> {
        self.0.map(Context::memory).transpose()
    }

    /// Waits for all work that was queued on the device's own stream and on those of [`Stream::new`]; streams of other
    /// code are theirs to wait for. Nothing to wait for on the CPU.
    ///
    /// # Errors
    /// Those of the work.
    pub fn synchronize(&self) -> Result<()> {
        self.0.map_or(Ok(()), Context::synchronize)
    }

    /// The device's own stream, on which calls run that name none.
    #[inline]
    pub fn stream(&self) -> Stream {
        Stream::own(*self)
    }

    /// Tells the emulator what this thread's next launches may write: the results of a call.
    #[inline]
    pub(crate) fn name_results<'a, 'v: 'a>(&self, results: impl IntoIterator<Item = &'a TensorView<'v>>) {
        #[cfg(feature = "emulator")]
        if self.is_emulated() {
            let range = |(start, end): (usize, usize)| start as u64..end as u64;
            cuda::name_results(results.into_iter().map(|view| range(view.span())).collect());
        }
        #[cfg(not(feature = "emulator"))]
        let _ = results;
    }

    #[inline]
    pub(crate) fn context(&self) -> Option<&'static Context> {
        self.0
    }

    /// The device's place among all; none for the CPU.
    #[inline]
    fn slot(&self) -> Option<usize> {
        self.0.map(|context| context.slot)
    }

    pub(crate) fn of(context: &'static Context) -> Device {
        Device(Some(context))
    }
}

impl PartialEq for Device {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.slot() == other.slot()
    }
}

impl Eq for Device {}

impl std::hash::Hash for Device {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.slot().hash(state);
    }
}

impl std::str::FromStr for Device {
    type Err = Error;

    fn from_str(name: &str) -> Result<Device> {
        Device::parse(name)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("cpu"),
            Some(context) if context.is_emulated() => write!(f, "emulated:{}", context.info.sm),
            Some(context) => write!(f, "cuda:{}", context.ordinal),
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
