//! The launch settings that kernel objects have.

use duplicate::duplicate_item;

use super::{
    BinaryKernel, ConvertKernel, GatedGradientsKernel, GatedKernel, GeneratorKernel, Kernel, OpDef, Strategy,
    TernaryKernel, UnaryKernel, check,
};
use crate::cuda::{Context, Held};
use crate::error::Result;
use crate::tensor::TensorView;
use crate::tuner::Tuner;
use crate::{Device, Stream};

/// Threads of a block where nothing else is asked for.
pub(crate) const DEFAULT_THREADS: u32 = 128;

/// How a kernel object launches on CUDA devices.
#[derive(Clone, Debug)]
pub(crate) struct LaunchSettings {
    pub(crate) strategy: Strategy,
    pub(crate) threads: u32,
    /// `None` for the device's own.
    pub(crate) stream: Option<Stream>,
}

impl LaunchSettings {
    /// Returns the default settings.
    pub(crate) const fn new() -> Self {
        LaunchSettings { strategy: Strategy::Auto, threads: DEFAULT_THREADS, stream: None }
    }

    /// The same stream with another strategy and number of threads.
    pub(crate) fn with(&self, strategy: Strategy, threads: u32) -> Self {
        LaunchSettings { strategy, threads, stream: self.stream.clone() }
    }

    /// Checks what a call on `device` has in common with every other, on the CPU, too.
    ///
    /// # Errors
    /// A stream of another device, a number of threads that no block has.
    #[inline]
    pub(crate) fn check(&self, device: &Device) -> Result<()> {
        check::threads(self.threads)?;
        self.stream.as_ref().map_or(Ok(()), |stream| stream.check_device(device))
    }

    /// Takes the stream of a checked call that reads `operands` and writes `results` to queue its work on: the one that
    /// was set, which is to wait for what else uses the views' memory, or the device's own. Load kernels before: a capture
    /// that another thread begins there waits.
    ///
    /// # Errors
    /// A stream that another thread captures; the driver's.
    #[inline]
    pub(crate) fn hold<'a, 'v: 'a>(
        &self,
        context: &'static Context,
        operands: impl IntoIterator<Item = &'a TensorView<'v>>,
        results: impl IntoIterator<Item = &'a TensorView<'v>> + Clone,
    ) -> Result<Held<'_>> {
        let held = context.hold(self.stream.as_ref().and_then(Stream::shared))?;
        for view in operands.into_iter().chain(results.clone()) {
            view.use_on(&held)?;
        }
        Device::of(context).name_results(results);
        Ok(held)
    }
}

#[duplicate_item(
    Object at about;
    [Kernel<'_>] [settings] [
        "The strategy on CUDA devices: one element a thread ([`Strategy::Direct`]), four single ones \
         ([`Strategy::ExplicitParallel`]), vectors ([`Strategy::RegisterCopy`]) or, of some ops, a table \
         ([`Strategy::Table`]). If it cannot serve a call, one that can takes its place; the plan says so."
    ];
    [UnaryKernel] [0.settings] ["As [`Kernel::strategy`]."];
    [BinaryKernel] [0.settings] ["As [`Kernel::strategy`]."];
    [GatedKernel] [0.settings] ["As [`Kernel::strategy`]."];
    [TernaryKernel] [0.settings] ["As [`Kernel::strategy`]."];
    [GatedGradientsKernel] [0.settings] ["As [`Kernel::strategy`]."];
    [GeneratorKernel] [0.settings] [
        "The strategy on CUDA devices: `direct` or `register_copy`, which takes rows that are whole vectors."
    ];
    [ConvertKernel] [settings] [
        "The strategy on CUDA devices: one element a thread ([`Strategy::Direct`]), four single ones \
         ([`Strategy::ExplicitParallel`]) or vectors ([`Strategy::RegisterCopy`]), where they fit; another is taken as \
         [`Strategy::Auto`]."
    ];
)]
impl Object {
    #[doc = about]
    #[must_use]
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.at.strategy = strategy;
        self
    }

    /// Threads of a block on CUDA devices: a multiple of 32 from 32 to 1,024.
    #[must_use]
    pub fn threads(mut self, threads: u32) -> Self {
        self.at.threads = threads;
        self
    }

    /// The stream to launch on; without one it is the device's own.
    #[must_use]
    pub fn on(mut self, stream: &Stream) -> Self {
        self.at.stream = Some(stream.clone());
        self
    }
}

// Objects that are a `Kernel` of a number of operands.
#[duplicate_item(Object; [UnaryKernel]; [BinaryKernel]; [GatedKernel]; [TernaryKernel]; [GatedGradientsKernel]; [GeneratorKernel])]
impl Object {
    /// The op.
    pub fn def(&self) -> &'static OpDef {
        self.0.def()
    }

    /// As [`Kernel::tuned`].
    #[must_use]
    pub fn tuned(self, tuner: &Tuner) -> Self {
        Self(self.0.tuned(tuner))
    }
}
