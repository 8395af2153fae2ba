//! Devices: the CPU, or a CUDA device by ordinal.

use std::fmt;

use crate::cuda::{self, Context, DeviceInfo};
use crate::error::{Error, ErrorKind, Result};
use crate::stream::Stream;

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

    /// The device of a name: `auto` ([`Device::best`]), `cpu`, `cuda` (the first) or `cuda:N`.
    ///
    /// # Errors
    /// Another word, or as [`Device::cuda`].
    pub fn parse(name: &str) -> Result<Device> {
        match name {
            "auto" => Device::best(),
            "cpu" => Ok(Device::cpu()),
            "cuda" => Device::cuda(0),
            _ => {
                let ordinal = name
                    .strip_prefix("cuda:")
                    .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
                    .and_then(|digits| digits.parse().ok())
                    .ok_or_else(|| ErrorKind::Parameter {
                        name: "device",
                        value: format!("{name:?}"),
                        why: "must be auto, cpu, cuda or cuda:N".to_owned(),
                    })?;
                Device::cuda(ordinal)
            }
        }
    }

    /// Whether this is the CPU.
    #[inline]
    pub fn is_cpu(&self) -> bool {
        self.0.is_none()
    }

    /// Whether this is a CUDA device.
    #[inline]
    pub fn is_cuda(&self) -> bool {
        self.0.is_some()
    }

    /// The CUDA device's number; none for the CPU.
    #[inline]
    pub fn ordinal(&self) -> Option<usize> {
        self.0.map(|context| context.ordinal)
    }

    /// What the CUDA device is; none for the CPU.
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

    #[inline]
    pub(crate) fn context(&self) -> Option<&'static Context> {
        self.0
    }

    pub(crate) fn of(context: &'static Context) -> Device {
        Device(Some(context))
    }
}

impl PartialEq for Device {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.ordinal() == other.ordinal()
    }
}

impl Eq for Device {}

impl std::hash::Hash for Device {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.ordinal().hash(state);
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
        match self.ordinal() {
            None => f.write_str("cpu"),
            Some(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
