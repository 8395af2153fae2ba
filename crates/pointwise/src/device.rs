//! Devices: the CPU, or a CUDA device by ordinal.

use std::fmt;

use crate::cuda::{self, Context, DeviceInfo};
use crate::error::{Error, ErrorKind, Result};
use crate::stream::Stream;
use crate::tensor::TensorView;

/// The names that [`Device::parse`] takes.
const NAMES: &str = if cfg!(feature = "emulator") {
    "auto, cpu, cuda, cuda:N, emulated or emulated:SM"
} else {
    "auto, cpu, cuda or cuda:N"
};

/// The CPU or a CUDA device: there tensors lie and ops run. Cheap to copy.
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
    /// No driver ([`ErrorKind::NoDriver`]) or an unusable one ([`ErrorKind::BrokenDriver`]); no such device, or a
    /// device that cannot be initialised.
    pub fn cuda(ordinal: usize) -> Result<Device> {
        Ok(Device(Some(Context::get(ordinal)?)))
    }

    /// An emulated device of the newest architecture (sm_90): it runs the GPU's kernels, instruction by instruction, on
    /// the CPU, and checks every access to memory. It is for tests without a GPU, not for work: it is thousands of
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

    /// [`Device::emulated`] with compute capability `sm`: 80 or 90.
    ///
    /// # Errors
    /// The errors of [`Device::emulated`], and any other `sm`.
    #[cfg(feature = "emulator")]
    pub fn emulated_as(sm: u32) -> Result<Device> {
        Ok(Device(Some(Context::emulated(sm)?)))
    }

    /// `cuda:0` if there is a driver with a device, and this build has kernels for it (see [`embedded`]); else the CPU.
    ///
    /// # Errors
    /// A driver or a device that exists but cannot be initialised: it is not passed over in silence.
    ///
    /// [`embedded`]: crate::embed::embedded
    pub fn best() -> Result<Device> {
        Device::best_for(crate::embed::embedded())
    }

    /// [`Device::best`] for a program's own ops, with the kernels of [`include_kernels!`](crate::include_kernels)
    /// (`KERNELS`).
    ///
    /// # Errors
    /// The errors of [`Device::best`].
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

    /// The devices for tests of ops with `kernels`: [`embedded`], or `KERNELS` of
    /// [`include_kernels!`](crate::include_kernels). These are the CPU and the first GPU, as [`Device::best_for`] finds
    /// it; without a GPU, the CPU and an emulated device. So a test runs the GPU's kernels on every machine.
    ///
    /// `POINTWISE_DEVICE` names another choice: one device, as for [`Device::parse`], or `auto` for the above.
    ///
    /// Without kernels for these devices it is the CPU alone. A line on standard error says so, in `cargo test`, too.
    ///
    /// # Errors
    /// Fails if `POINTWISE_DEVICE` names no device ([`ErrorKind::Parameter`]) or one that is not there, if a GPU that is
    /// there cannot be initialised, or if a variable of the emulator has a bad value.
    ///
    /// ```
    /// # use pointwise::{Device, Tensor, ops};
    /// for device in Device::for_tests(pointwise::embed::embedded())? {
    ///     let x = Tensor::from_slice(&device, &[-1.0_f32, 2.0], [2])?;
    ///     assert_eq!(ops::relu(&x)?.to_vec::<f32>()?, [0.0, 2.0], "{device}");
    /// }
    /// # Ok::<(), pointwise::Error>(())
    /// ```
    ///
    /// [`embedded`]: crate::embed::embedded
    #[cfg(feature = "emulator")]
    pub fn for_tests(kernels: &crate::embed::Kernels) -> Result<Vec<Device>> {
        Device::for_tests_as(kernels, std::env::var_os("POINTWISE_DEVICE").as_deref())
    }

    /// [`Device::for_tests`] with the value of `POINTWISE_DEVICE`.
    #[cfg(feature = "emulator")]
    fn for_tests_as(kernels: &crate::embed::Kernels, named: Option<&std::ffi::OsStr>) -> Result<Vec<Device>> {
        /// The newest compute capability that is emulated.
        const EMULATED: u32 = 90;
        if let Some(named) = named.filter(|name| !name.is_empty() && *name != "auto") {
            let device = Device::parse(&named.to_string_lossy()).map_err(|error| match error.kind() {
                ErrorKind::Parameter { value, why, .. } => {
                    let (value, why) = (value.clone(), format!("{why}; or unset it"));
                    ErrorKind::Parameter { name: "POINTWISE_DEVICE", value, why }.into()
                }
                _ => error,
            })?;
            return Ok(vec![device]);
        }
        let best = Device::best_for(kernels)?;
        if best.is_cuda() {
            return Ok(vec![Device::cpu(), best]);
        }
        let why = match kernels.oldest() {
            Some(..=EMULATED) => return Ok(vec![Device::cpu(), Device::emulated_as(EMULATED)?]),
            Some(oldest) => format!("the oldest kernels are for sm_{oldest}, and the emulator is sm_{EMULATED}"),
            None => format!("no kernels are embedded: {}", kernels.note()),
        };
        static TELL: std::sync::Once = std::sync::Once::new();
        TELL.call_once(|| {
            use std::io::Write as _;
            // Not `eprintln!`, whose lines `cargo test` does not show. A failure to write is ignored.
            let _ = writeln!(std::io::stderr(), "pointwise: NOT TESTED: the GPU's kernels. Only the CPU is: {why}");
        });
        Ok(vec![Device::cpu()])
    }

    /// The number of CUDA devices that the driver sees; 0 without a usable driver.
    pub fn cuda_count() -> usize {
        cuda::device_count().unwrap_or(0)
    }

    /// Finds a device by its name: `auto` ([`Device::best`]), `cpu`, `cuda` (the first), `cuda:N`, and with the feature
    /// `emulator` `emulated` or `emulated:SM`, such as `emulated:80`.
    ///
    /// # Errors
    /// Another word; the errors of [`Device::cuda`].
    pub fn parse(name: &str) -> Result<Device> {
        match name {
            "auto" => Device::best(),
            "cpu" => Ok(Device::cpu()),
            "cuda" => Device::cuda(0),
            #[cfg(feature = "emulator")]
            "emulated" => Device::emulated(),
            _ if cfg!(not(feature = "emulator")) && name.split(':').next() == Some("emulated") => {
                let (value, why) = (format!("{name:?}"), "needs the cargo feature `emulator`".to_owned());
                Err(ErrorKind::Parameter { name: "device", value, why }.into())
            }
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

    /// True if this is the CPU.
    #[inline]
    pub fn is_cpu(&self) -> bool {
        self.0.is_none()
    }

    /// True if this is a CUDA device, but not an emulated one.
    #[inline]
    pub fn is_cuda(&self) -> bool {
        self.0.is_some_and(|context| !context.is_emulated())
    }

    /// True if this is an emulated device.
    #[inline]
    pub fn is_emulated(&self) -> bool {
        self.0.is_some_and(Context::is_emulated)
    }

    /// The CUDA device's number; none for other devices.
    #[inline]
    pub fn ordinal(&self) -> Option<usize> {
        self.0.filter(|context| !context.is_emulated()).map(|context| context.ordinal)
    }

    /// The properties of the CUDA device, real or emulated; none for the CPU.
    pub fn info(&self) -> Option<&'static DeviceInfo> {
        self.0.map(|context| &context.info)
    }

    /// The free bytes and all bytes of the CUDA device's memory; none for the CPU.
    ///
    /// # Errors
    /// Errors of the driver.
    pub fn memory(&self) -> Result<Option<(usize, usize)>> {
        self.0.map(Context::memory).transpose()
    }

    /// Waits for all work that was queued on the device's own stream and on streams of [`Stream::new`], but not on
    /// streams of other code. Returns at once on the CPU.
    ///
    /// # Errors
    /// The errors of the work.
    pub fn synchronize(&self) -> Result<()> {
        self.0.map_or(Ok(()), Context::synchronize)
    }

    /// The device's own stream: calls run on it unless they name another.
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

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;
    use crate::embed::Kernels;

    /// If a thread panics and the panic is caught, the other threads keep their tensors.
    #[test]
    fn values_cross_threads_and_panics() {
        fn crosses<T: Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
        crosses::<Device>();
        crosses::<crate::Tensor>();
        crosses::<crate::TensorView<'_>>();
        crosses::<crate::Stream>();
        crosses::<crate::kernel::UnaryKernel>();
    }

    fn named(kernels: &Kernels, name: &str) -> Result<Vec<Device>> {
        Device::for_tests_as(kernels, Some(name.as_ref()))
    }

    #[test]
    fn a_named_device_is_the_only_one() {
        let none = Kernels::empty("none");
        assert_eq!(named(&none, "cpu").unwrap(), [Device::cpu()]);
        assert_eq!(named(&none, "emulated").unwrap(), [Device::emulated().unwrap()]);
        assert_eq!(named(&none, "emulated:80").unwrap(), [Device::emulated_as(80).unwrap()]);
    }

    #[test]
    fn a_bad_name_is_an_error_of_the_variable() {
        for bad in ["gpu", "emulated:", "cuda:-1"] {
            let error = named(crate::embed::embedded(), bad).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "POINTWISE_DEVICE = {bad:?}: must be auto, cpu, cuda, cuda:N, emulated or emulated:SM; or unset it"
                )
            );
        }
        assert!(named(crate::embed::embedded(), "emulated:70").unwrap_err().to_string().contains("[90, 80]"));
    }

    #[test]
    fn the_emulator_is_where_no_gpu_is() {
        for devices in [named(crate::embed::embedded(), "auto"), named(crate::embed::embedded(), ""), {
            Device::for_tests_as(crate::embed::embedded(), None)
        }] {
            let devices = devices.unwrap();
            assert!(devices[0].is_cpu());
            assert_eq!(devices.len(), if crate::embed::embedded().is_empty() { 1 } else { 2 });
            assert_eq!(devices[1..].iter().any(Device::is_cuda), Device::best().unwrap().is_cuda());
        }
        // Without kernels it is the CPU alone, and a line says so.
        assert_eq!(Device::for_tests_as(&Kernels::empty("for a test"), None).unwrap(), [Device::cpu()]);
    }
}
