//! The autotuner: which strategy and how many threads are fastest on the user's device, measured once and kept.

mod cache;
mod calls;
mod measure;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pointwise_core::{DType, OpInfo};

pub use cache::CACHE_VARIABLE;

use crate::cuda::DeviceInfo;
use crate::error::{Result, line};
use crate::kernel::DEFAULT_THREADS;
use crate::{
    Device, Operand, Strategy, TensorView, TensorViewMut,
    kernel::{Class, UnaryKernel},
};

/// The fastest settings that a [`Tuner`] found for a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// The strategy: never [`Strategy::Auto`].
    pub strategy: Strategy,
    /// Threads of a block.
    pub threads: u32,
    /// Device time of a call, measured, of many in a row.
    pub microseconds: f64,
}

/// Launch settings, as far as a tuner chooses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) strategy: Strategy,
    pub(crate) threads: u32,
}

/// Measures which launch settings are fastest on a device, and keeps the results in a file.
///
/// A result is for calls like the one measured: of the same op, element type, size (within a power of two) and layout
/// (the [`Class`] of the call; of dropout whether 16-byte vectors fit all tensors) on the same device with the same driver,
/// by a build of the same version and compiler of this crate. Calls of another kind run with the defaults.
///
/// ```no_run
/// use pointwise::{Device, Tensor, kernels, tuner::Tuner};
///
/// let mut tuner = Tuner::load();
/// for warning in tuner.warnings() {
///     eprintln!("{warning}");
/// }
/// let x = Tensor::full(&Device::cuda(0)?, 1.0_f32, [1 << 20])?;
/// let mut y = Tensor::zeros(x.device(), x.dtype(), [1 << 20])?;
/// tuner.tune(&kernels::silu(), &x, &mut y)?;
/// kernels::silu().tuned(&tuner).run_into(&x, &mut y)?;
/// # Ok::<(), pointwise::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Tuner {
    file: Option<PathBuf>,
    choices: HashMap<Key, Choice>,
    warnings: Vec<String>,
}

/// The calls that a choice is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    /// Template and op, `unary silu`.
    op: String,
    place: Place,
}

/// The calls that a choice is for, without the op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    uuid: [u8; 16],
    driver: (u32, u32),
    dtype: DType,
    lies: Class,
    /// log2 of the number of elements of the result, rounded down.
    size: u32,
}

impl Place {
    fn new(info: &DeviceInfo, dtype: DType, lies: Class, n: u64) -> Place {
        Place { uuid: info.uuid, driver: info.driver, dtype, lies, size: n.checked_ilog2().unwrap_or(0) }
    }
}

/// A kernel's choices: what a launch looks up, without a lock, an allocation or a string.
#[derive(Clone, Debug)]
pub(crate) struct Choices(Arc<[(Place, Choice)]>);

impl Choices {
    /// Strategy and threads for a call, where there is a choice.
    pub(crate) fn find(&self, device: &Device, dtype: DType, lies: Class, n: u64) -> Option<(Strategy, u32)> {
        let place = Place::new(device.info()?, dtype, lies, n);
        let (_, choice) = self.0.iter().find(|(at, _)| *at == place)?;
        Some((choice.strategy, choice.threads))
    }
}

impl Tuner {
    /// The results in the user's cache folder: `tuner-3.json` in `$POINTWISE_CACHE`, `$XDG_CACHE_HOME/pointwise` or
    /// `~/.cache/pointwise`. Never fails: what cannot be used is told by [`Tuner::warnings`], and without a folder
    /// results are kept in memory alone.
    pub fn load() -> Tuner {
        match cache::default_file() {
            Some(file) => Tuner::load_from(file),
            None => Tuner {
                warnings: vec![format!(
                    "no cache folder: neither {CACHE_VARIABLE} nor XDG_CACHE_HOME nor HOME is set; results are not kept"
                )],
                ..Tuner::default()
            },
        }
    }

    /// The results in a file, which need not be there yet. A file that is damaged, is something else or has the format
    /// of another version is ignored, with a warning, and replaced by the next result; one that cannot be read is left
    /// as it is, and results are kept in memory alone.
    pub fn load_from(file: impl Into<PathBuf>) -> Tuner {
        let file = file.into();
        let (choices, warnings) = cache::read(&file);
        let warnings = warnings.iter().map(|warning| line(warning)).collect();
        Tuner { file: Some(file), choices, warnings }
    }

    /// A tuner that keeps its results in memory alone.
    pub fn in_memory() -> Tuner {
        Tuner::default()
    }

    /// The file that results are kept in.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Returns the problems with the cache file so far. A result that could not be written still counts.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Measures `kernel` on these tensors with every strategy that can serve them and several numbers of threads, keeps
    /// the fastest for calls like this one, and writes the file. Takes some tens of milliseconds, and writes the op's
    /// results to `y`.
    ///
    /// Other ops: [`Tuner::tune_binary`], [`Tuner::tune_gated`], [`Tuner::tune_ternary`],
    /// [`Tuner::tune_dropout`].
    ///
    /// # Errors
    /// The errors of [`UnaryKernel::run_into`]. Tensors on the CPU or without elements, and a stream that is being captured:
    /// there is nothing to measure.
    pub fn tune<'a, 'b>(
        &mut self,
        kernel: &UnaryKernel,
        x: impl Into<TensorView<'a>>,
        y: impl Into<TensorViewMut<'b>>,
    ) -> Result<Choice> {
        self.tune_kernel(&kernel.0, &[Operand::View(x.into())], &mut [y.into()])
    }

    /// Takes a result in, and writes it to the file.
    fn keep(
        &mut self,
        op: String,
        info: &DeviceInfo,
        (dtype, lies, n): (DType, Class, usize),
        choice: Choice,
    ) -> Choice {
        let key = Key { op, place: Place::new(info, dtype, lies, n as u64) };
        if let Some(file) = &self.file {
            self.warnings.extend(cache::write(file, &key, &choice, info).iter().map(|warning| line(warning)));
        }
        self.choices.insert(key, choice);
        choice
    }

    /// Returns the choice for calls like this one.
    ///
    /// # Errors
    /// Bad launch settings of the kernel; an element type that the op does not take.
    pub fn choice<'a>(
        &self,
        kernel: &UnaryKernel,
        x: impl Into<TensorView<'a>>,
        y: impl Into<TensorView<'a>>,
    ) -> Result<Option<Choice>> {
        let (x, y) = (x.into(), y.into());
        let Some(info) = x.device().info() else {
            return Ok(None);
        };
        let operands = [Operand::View(x)];
        let default = kernel.0.with(Settings { strategy: Strategy::Auto, threads: DEFAULT_THREADS });
        let lies = default.plan(&operands, &[y])?.class;
        let place = Place::new(info, default.dtype(&operands)?, lies, x.numel() as u64);
        Ok(self.choices.get(&Key { op: op_name(&kernel.def().info), place }).copied())
    }

    /// The choices for an op.
    pub(crate) fn choices(&self, info: &OpInfo) -> Choices {
        let op = op_name(info);
        Choices(self.choices.iter().filter(|(key, _)| key.op == op).map(|(key, &choice)| (key.place, choice)).collect())
    }
}

fn op_name(info: &OpInfo) -> String {
    format!("{} {}", info.kind.name(), info.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{Exp, Silu};

    fn device(driver: (u32, u32), uuid: u8) -> DeviceInfo {
        DeviceInfo {
            name: "A device".to_owned(),
            sm: 90,
            multiprocessors: 132,
            shared_bytes: 228 << 10,
            l2_bytes: 60 << 20,
            memory_bytes: 80 << 30,
            driver,
            dependent_launch: true,
            uuid: [uuid; 16],
        }
    }

    #[test]
    fn a_choice_is_for_calls_like_the_one_measured() {
        let [silu, exp] = [&Silu::def().info, &Exp::def().info];
        let (ours, aligned) = (device((13, 1), 1), Class::Flat);
        let mut tuner = Tuner::in_memory();
        let choice = Choice { strategy: Strategy::Direct, threads: 256, microseconds: 2.5 };
        tuner.keep(op_name(silu), &ours, (DType::BF16, aligned, 1000), choice);
        let finds = |op, device: &DeviceInfo, dtype, lies, n| {
            let place = Place::new(device, dtype, lies, n);
            tuner.choices(op).0.iter().any(|(at, found)| *at == place && *found == choice)
        };
        let sizes = [511, 512, 1023, 1024].map(|n| finds(silu, &ours, DType::BF16, aligned, n));
        assert_eq!(sizes, [false, true, true, false]);
        assert!(!finds(exp, &ours, DType::BF16, aligned, 1000));
        assert!(!finds(silu, &ours, DType::F16, aligned, 1000));
        assert!(!finds(silu, &ours, DType::BF16, Class::Strided, 1000));
        for other in [device((13, 0), 1), device((13, 1), 2)] {
            assert!(!finds(silu, &other, DType::BF16, aligned, 1000));
        }
    }
}
