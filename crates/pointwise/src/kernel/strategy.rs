//! Strategies.

use pointwise_core::launch::GROUPED_TENSORS;
use pointwise_core::{DType, Kind, OpInfo};

use super::lookup;

/// How a kernel spreads its elements over threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Strategy {
    /// The one measured to be fastest for template, element type, size and alignment.
    #[default]
    Auto,
    /// A thread one element. Takes any strides and alignment.
    Direct,
    /// A thread four single elements along one dimension. Takes any strides and alignment. Ops of more than four tensors
    /// have one element a thread instead. Dropout: four neighbours. Rotary embeddings: accesses of 8 bytes.
    ExplicitParallel,
    /// A thread one 16-byte vector: loaded whole, computed in registers, stored whole.
    RegisterCopy,
    /// A table of all results in shared memory: 256 of unary ops from fp8 to the same type; 65,536 of ops without
    /// parameters of two tensors of fp8, i8 or u8. That of an op's pairs is made by the first call that takes it, on
    /// the CPU; where that cannot be, as a stream is captured, the call runs by the formula.
    Table,
}

impl Strategy {
    /// Every strategy but [`Strategy::Auto`].
    pub const ALL: [Strategy; 4] =
        [Strategy::Direct, Strategy::ExplicitParallel, Strategy::RegisterCopy, Strategy::Table];

    /// `auto`, `direct`, `explicit_parallel`, `register_copy` or `table`.
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::Auto => "auto",
            Strategy::Direct => "direct",
            Strategy::ExplicitParallel => "explicit_parallel",
            Strategy::RegisterCopy => "register_copy",
            Strategy::Table => "table",
        }
    }

    /// The inverse of [`Strategy::name`].
    pub fn from_name(name: &str) -> Option<Strategy> {
        [Strategy::Auto].into_iter().chain(Strategy::ALL).find(|strategy| strategy.name() == name)
    }

    /// True if an op has kernels of this strategy for tensors of type `dtype`.
    pub fn serves(self, info: &OpInfo, dtype: DType) -> bool {
        match self {
            // A row is read by vectors wherever it lies so: that is no choice.
            _ if info.is_of_rows() => matches!(self, Strategy::Auto | Strategy::RegisterCopy),
            _ if info.is_of_indices() => !matches!(self, Strategy::ExplicitParallel | Strategy::Table),
            _ if info.kind == Kind::Random => !matches!(self, Strategy::Direct | Strategy::Table),
            Strategy::Table => lookup::serves_codes(info, dtype) || lookup::serves(info, dtype),
            Strategy::ExplicitParallel => info.operands.len() + info.results.len() <= GROUPED_TENSORS,
            Strategy::Auto | Strategy::Direct | Strategy::RegisterCopy => true,
        }
    }
}

impl std::fmt::Display for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
