//! The ops of the family as the command knows them: by their data, so that a new op needs no change here.

use pointwise::{
    DType, Number, Strategy,
    info::{self, OpInfo},
    kernel::OpDef,
};
use pointwise_core::op::MAX_PARAMS;

use crate::error::{Error, Result, did_you_mean, nearest};

/// An op's scalar parameters, in the order of [`OpInfo::params`].
pub(crate) type Params = [Number; MAX_PARAMS];

/// An op.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    info: &'static OpInfo,
    /// None for `masked_fill`, which runs `where`.
    def: Option<&'static OpDef>,
}

impl PartialEq for Op {
    fn eq(&self, other: &Op) -> bool {
        self.info.name == other.info.name
    }
}

impl Op {
    /// Returns every op that listings show.
    pub(crate) fn all() -> impl Iterator<Item = Op> {
        info::listed().map(|info| Op { info, def: info::op(info.name) })
    }

    /// Finds an op by its name.
    ///
    /// # Errors
    /// An unknown name; the error has names that are near.
    pub(crate) fn find(name: &str) -> Result<Op> {
        Op::all().find(|op| op.info.name == name).ok_or_else(|| {
            let near = did_you_mean(&nearest(name, Op::all().map(|op| op.info.name).chain(crate::rope::names())));
            Error::Usage(format!("no op {name:?}{near} (`pointwise list` has them all)"))
        })
    }

    /// Finds the op that a setting chooses: also one that listings do not show.
    ///
    /// # Errors
    /// An unknown name.
    pub(crate) fn chosen(name: &'static str) -> Result<Op> {
        let def = info::op(name).ok_or_else(|| Error::Failed(format!("there is no op {name}")))?;
        Ok(Op { info: &def.info, def: Some(def) })
    }

    /// Its data.
    pub(crate) fn info(self) -> &'static OpInfo {
        self.info
    }

    /// Its definition; `masked_fill` has none.
    pub(crate) fn def(self) -> Option<&'static OpDef> {
        self.def
    }

    /// True for `masked_fill`.
    pub(crate) fn is_masked_fill(self) -> bool {
        self.def.is_none()
    }

    /// True if its last argument holds its last two operands.
    pub(crate) fn takes_halves(self) -> bool {
        self.def.is_some_and(OpDef::takes_halves)
    }

    /// True if its results are judged by the oracle of its definition, in the tour.
    pub(crate) fn has_oracle(self) -> bool {
        self.def.is_some() && !self.info.is_random() && !self.info.is_of_indices()
    }

    /// The names of its tensors in files and settings.
    pub(crate) fn arguments(self) -> &'static [&'static str] {
        match self.info.arguments() {
            // The value is a setting.
            [tensors @ .., _] if self.is_masked_fill() => tensors,
            arguments => arguments,
        }
    }

    /// The operands that may be numbers.
    pub(crate) fn scalars(self) -> &'static [&'static str] {
        match self.arguments() {
            _ if self.is_masked_fill() => &[],
            [_] => &[],
            [others @ .., _] if self.takes_halves() => others,
            arguments => arguments,
        }
    }

    /// The element types of argument `k`.
    pub(crate) fn types(self, k: usize) -> &'static [DType] {
        match self.info().operand_types.get(k) {
            Some(Some(fixed)) => std::slice::from_ref(fixed),
            _ => self.info().types,
        }
    }

    /// True if it has a kernel of a strategy for operands of a type.
    pub(crate) fn serves(self, strategy: Strategy, dtype: DType) -> bool {
        !self.is_masked_fill() && strategy.serves(self.info(), dtype)
    }
}
