//! The named cases of a test program, on each of its devices.

use libtest_mimic::{Failed, Trial};
use pointwise::{DType, Device};

/// A device that a test program's cases run on, and the cases.
pub struct Cases {
    /// The device.
    pub device: Device,
    /// Whether only cases of fp8 are run there: of the other types the device has another's kernels.
    fp8_alone: bool,
    trials: Vec<Trial>,
}

impl Cases {
    /// Of each device that the program is to run on: that of `POINTWISE_DEVICE` (`auto`, `cpu`, `cuda`, `cuda:N`,
    /// `emulated`, `emulated:SM`). Without it the first GPU; where there is none, the CPU and, if kernels are embedded,
    /// the emulator. The program ends where there is no such device.
    #[must_use]
    pub fn of_devices() -> Vec<Cases> {
        let or_exit = |device: pointwise::Result<Device>| {
            device.unwrap_or_else(|error| {
                eprintln!("error: {error}");
                std::process::exit(2);
            })
        };
        let whole = |device| Cases { device, fp8_alone: false, trials: Vec::new() };
        if let Ok(name) = std::env::var("POINTWISE_DEVICE") {
            return vec![whole(or_exit(Device::parse(&name)))];
        }
        let best = or_exit(Device::best());
        if best.is_cuda() || pointwise::embedded().is_empty() {
            return vec![whole(best)];
        }
        let [newest, oldest] = [90, 80].map(|sm| or_exit(Device::emulated_as(sm)));
        vec![whole(best), whole(newest), Cases { fp8_alone: true, ..whole(oldest) }]
    }

    /// Adds a case of elements of these types, unless they are not run on the device.
    pub fn add<E: Into<Failed>>(
        &mut self,
        dtypes: &[DType],
        name: impl std::fmt::Display,
        case: impl FnOnce() -> Result<(), E> + Send + 'static,
    ) {
        if self.takes(dtypes) {
            self.trials.push(Trial::test(self.name(name), || case().map_err(Into::into)));
        }
    }

    /// Adds a case that is run when it is asked for alone, on a GPU: it needs its memory or its time.
    pub fn add_large<E: Into<Failed>>(
        &mut self,
        name: impl std::fmt::Display,
        case: impl FnOnce() -> Result<(), E> + Send + 'static,
    ) {
        if self.device.is_cuda() {
            let trial = Trial::test(self.name(name), || case().map_err(Into::into));
            self.trials.push(trial.with_ignored_flag(true));
        }
    }

    /// Whether cases of elements of these types are run there.
    #[must_use]
    pub fn takes(&self, dtypes: &[DType]) -> bool {
        !self.fp8_alone || dtypes.iter().any(|dtype| matches!(dtype, DType::F8E4M3 | DType::F8E5M2))
    }

    /// A case's name on the device.
    fn name(&self, case: impl std::fmt::Display) -> String {
        format!("{}::{case}", self.device.to_string().replace(':', "_"))
    }

    /// The cases, for the program to run.
    #[must_use]
    pub fn into_trials(self) -> Vec<Trial> {
        self.trials
    }
}
