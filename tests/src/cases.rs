//! The named cases of a test program, on each of its devices.

use libtest_mimic::{Failed, Trial};
use pointwise::{DType, Device};

/// A device that a test program's cases run on, and the cases.
pub struct Cases {
    /// The device.
    pub device: Device,
    /// True if only cases of fp8 run there: for the other types the device has another device's kernels.
    fp8_alone: bool,
    trials: Vec<Trial>,
}

impl Cases {
    /// Returns the cases of each device that the program runs on: the devices of [`Device::for_tests`], but on a
    /// machine with a GPU only the GPU. Beside the newest emulated device the oldest runs the cases of fp8. The program
    /// ends if there is no such device.
    #[must_use]
    pub fn of_devices() -> Vec<Cases> {
        fn or_exit<T>(result: pointwise::Result<T>) -> T {
            result.unwrap_or_else(|error| {
                eprintln!("error: {error}");
                std::process::exit(2);
            })
        }
        let whole = |device| Cases { device, fp8_alone: false, trials: Vec::new() };
        let devices = or_exit(Device::for_tests(pointwise::embed::embedded()));
        let has_gpu = devices.iter().any(Device::is_cuda);
        let mut cases: Vec<Cases> =
            devices.iter().filter(|device| device.is_cuda() || !has_gpu).map(|&device| whole(device)).collect();
        if devices.len() > 1 && !has_gpu {
            cases.push(Cases { fp8_alone: true, ..whole(or_exit(Device::emulated_as(80))) });
        }
        cases
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

    /// True if cases with elements of these types run there.
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
