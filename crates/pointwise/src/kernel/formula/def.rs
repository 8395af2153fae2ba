//! The definition of an op.

use std::ops::Deref;

use pointwise_core::formula::{Formula, MAX_INPUTS, MAX_OUTPUTS, OpData, ParamWords};
use pointwise_core::row::{self, EntryClass, of_class};
use pointwise_core::{At, DType, DescribedOp, Element, GeneratorOp, OpInfo, Terms};

use super::call::Kernel;
use super::gated::GatedGradientsKernel;
use super::own::OwnKernels;
use super::rows::{RowClass, RowReferenceFn, TypedRows};
use crate::Number;
use crate::cpu::{FormulaFn, op};
use crate::embed::Kernels;
use crate::error::Result;
use crate::kernel::params::{self, Params};
use crate::kernel::rewrite::RewriteFn;
use crate::kernel::{
    BinaryKernel, Class, Entry, GatedKernel, GeneratorKernel, GeneratorOracle, GeneratorTyped, IndexOracle, Indices,
    KernelPlan, Lookup, SizesFn, Strategy, TernaryKernel, UnaryKernel, bits_of, check, lookup,
};

/// The formula at a compute type of references: operands (a bool as 0 or 1), parameters, the element's random word and indices.
pub type OracleFn = fn(&[f64; MAX_INPUTS], &ParamWords, At<'_>) -> [f64; MAX_OUTPUTS];

/// As [`OracleFn`], with what steps of f32 could lose.
pub type TermsFn = fn(&[f64; MAX_INPUTS], &ParamWords, At<'_>) -> [Terms; MAX_OUTPUTS];

/// An op in one element type: its loop and its kernels.
#[derive(Debug)]
pub struct Typed {
    dtype: DType,
    source: u64,
    row: u64,
    slots: u128,
    cpu: FormulaFn,
    entries: [Entry; Class::ALL.len()],
    table: Table,
    body: Option<Entry>,
}

/// The table of [`Strategy::Table`](crate::Strategy::Table).
#[derive(Debug)]
pub(in crate::kernel) enum Table {
    /// Nothing.
    None,
    /// A kernel whose blocks make the table of all codes of an operand.
    Codes(Entry),
    /// A table of all pairs of codes, and the kernels of all such ops.
    Pairs(&'static Lookup),
}

impl Typed {
    /// The op `O` on elements `E`. `symbols` name its kernels in `kernels`, in the order of [`Class::ALL`]; `source` is
    /// the hash of the text that they were compiled from.
    ///
    /// # Panics
    /// In a constant, so that it does not compile: the data of `O` contradict its types.
    #[must_use]
    #[track_caller]
    pub const fn new<E, O, const N: usize, const R: usize>(
        symbols: [&'static str; Class::ALL.len()],
        source: u64,
        kernels: &'static Kernels,
    ) -> Typed
    where
        E: Element,
        O: OpData + Formula<E::Compute, N, R>,
    {
        let (row, slots) = (row::of_formula::<E, O, N, R>(source), row::slots(&O::INFO));
        let [flat, rows, strided] = symbols;
        Typed {
            dtype: E::DTYPE,
            source,
            row,
            slots,
            cpu: op::<E, O, N, R>,
            table: Table::None,
            body: None,
            entries: [
                Entry::of(flat, of_class(row, EntryClass::Flat), slots, kernels),
                Entry::of(rows, of_class(row, EntryClass::Rows), slots, kernels),
                Entry::of(strided, of_class(row, EntryClass::Strided), slots, kernels),
            ],
        }
    }
}

impl Typed {
    /// With a place for the table of all pairs.
    ///
    /// # Panics
    /// In a constant: the op is not of two operands of one byte each.
    #[must_use]
    #[track_caller]
    pub const fn with_lookup(self, lookup: &'static Lookup) -> Typed {
        assert!(self.dtype.size() == 1, "a table of pairs is of elements of one byte");
        row::check_pairs(self.row);
        self.with(Table::Pairs(lookup))
    }

    /// With the kernel, named `symbol` in `kernels`, that makes a table of all codes.
    #[must_use]
    pub const fn with_codes(self, symbol: &'static str, kernels: &'static Kernels) -> Typed {
        let (word, slots) = (of_class(self.row, EntryClass::Table), self.slots);
        self.with(Table::Codes(Entry::of(symbol, word, slots, kernels)))
    }

    const fn with(self, table: Table) -> Typed {
        // Not `..self`, which would drop parts of it.
        let Typed { dtype, source, row, slots, cpu, entries, table: _, body } = self;
        Typed { dtype, source, row, slots, cpu, entries, table, body }
    }

    /// With the formula of one element, named `symbol` in `kernels`, for fusion at run time.
    #[must_use]
    pub const fn with_body(self, symbol: &'static str, kernels: &'static Kernels) -> Typed {
        let body = Some(Entry::of(symbol, of_class(self.row, EntryClass::Body), self.slots, kernels));
        let Typed { dtype, source, row, slots, cpu, entries, table, body: _ } = self;
        Typed { dtype, source, row, slots, cpu, entries, table, body }
    }
}

/// An op as the host knows it: what `#[op]` makes of a function.
///
/// Its parts are checked against one another when it is made, and cannot be replaced: [`Facts`] are read through it.
#[derive(Debug)]
pub struct OpDef {
    facts: Facts,
    paths: Paths,
    oracle: Option<OracleFn>,
    stepped: Option<OracleFn>,
    terms: Option<TermsFn>,
    rewrite: Option<RewriteFn>,
}

/// The loops and kernels of an op, by element type. The domain of the op decides which they are.
#[derive(Debug)]
enum Paths {
    Elements(&'static [Typed]),
    /// Also the op on a row in f64.
    Rows(&'static [TypedRows], RowReferenceFn),
    Indices(Indices),
    Own(&'static dyn OwnKernels),
}

/// The data of an op's definition.
#[derive(Debug)]
pub struct Facts {
    /// Name, operands, results, parameters, types, bounds.
    pub info: OpInfo,
    /// The op that gives its gradients, if it has any.
    pub backward: Option<&'static OpDef>,
}

impl Deref for OpDef {
    type Target = Facts;
    #[inline]
    fn deref(&self) -> &Facts {
        &self.facts
    }
}

impl OpDef {
    /// The op whose data are `info`. `oracle` is the formula in f64, `None` for an op that floats do not have; `stepped`
    /// rounds every step to f32, and `terms` says what such steps could lose; `None` where nobody asks for that.
    ///
    /// # Panics
    /// In a constant, so that it does not compile: `types` are not all of the op that `info` is the data of.
    #[must_use]
    #[track_caller]
    pub const fn new(
        info: OpInfo,
        types: &'static [Typed],
        oracle: Option<OracleFn>,
        stepped: Option<OracleFn>,
        terms: Option<TermsFn>,
        backward: Option<&'static OpDef>,
    ) -> OpDef {
        let mut k = 0;
        while k < types.len() {
            row::check_data(&info, types[k].source, types[k].row, types[k].slots);
            k += 1;
        }
        OpDef { facts: Facts { info, backward }, paths: Paths::Elements(types), oracle, stepped, terms, rewrite: None }
    }

    /// The op on rows whose data are `info`; `reference` is the op on a row in f64.
    ///
    /// # Panics
    /// In a constant, so that it does not compile: `types` are not all of the op that `info` is the data of.
    #[must_use]
    #[track_caller]
    pub const fn of_rows(
        info: OpInfo,
        types: &'static [TypedRows],
        reference: RowReferenceFn,
        backward: Option<&'static OpDef>,
    ) -> OpDef {
        let mut k = 0;
        while k < types.len() {
            row::check_data(&info, types[k].source, types[k].row, types[k].slots);
            assert!(types[k].sums.is_some() == (info.weight_results != 0), "gradients of weights are sums");
            k += 1;
        }
        OpDef::without_oracle(info, backward, Paths::Rows(types, reference))
    }

    /// The op without operands `O` in some element types. `oracle` is its formula in f64.
    ///
    /// # Panics
    /// In a constant, so that it does not compile: `types` are not all of `O`.
    #[must_use]
    #[track_caller]
    pub const fn of_indices<O: DescribedOp + GeneratorOp>(
        types: &'static [GeneratorTyped],
        oracle: Option<GeneratorOracle>,
    ) -> OpDef {
        OpDef::of_shapes::<O>(types, oracle, None)
    }

    /// [`OpDef::of_indices`] with a function that checks a shape, and makes the parameters of it. Launches trust its sizes, so that
    /// it is for the family alone.
    #[track_caller]
    pub(crate) const fn of_shapes<O: DescribedOp + GeneratorOp>(
        types: &'static [GeneratorTyped],
        oracle: Option<GeneratorOracle>,
        sizes: Option<SizesFn>,
    ) -> OpDef {
        OpDef::without_oracle(O::INFO, None, Paths::Indices(Indices::new::<O>(types, oracle, sizes)))
    }

    /// An op with loops and kernels of its own.
    pub(crate) const fn with_own_kernels(
        info: OpInfo,
        own: &'static dyn OwnKernels,
        backward: Option<&'static OpDef>,
    ) -> OpDef {
        OpDef::without_oracle(info, backward, Paths::Own(own))
    }

    const fn without_oracle(info: OpInfo, backward: Option<&'static OpDef>, paths: Paths) -> OpDef {
        let facts = Facts { info, backward };
        OpDef { facts, paths, oracle: None, stepped: None, terms: None, rewrite: None }
    }

    /// With a function that finds something simpler for some calls.
    #[must_use]
    pub const fn rewriting(mut self, rewrite: RewriteFn) -> OpDef {
        self.rewrite = Some(rewrite);
        self
    }

    /// The function that finds something simpler for some calls.
    #[inline]
    pub(in crate::kernel) fn rewrite(&self) -> Option<RewriteFn> {
        self.rewrite
    }

    /// The op with parameters, in the order of [`OpInfo::params`]; those that are left out have their defaults.
    pub fn kernel(&'static self, params: &[Number]) -> Kernel<'static> {
        Kernel::new(self, params)
    }

    /// The op of one operand with parameters. If the op has another number of operands, each call is an error.
    pub fn unary_with(&'static self, params: &[Number]) -> UnaryKernel {
        UnaryKernel(Kernel::new(self, params))
    }

    /// The op of two operands with parameters. If the op has another number of operands, each call is an error.
    pub fn binary_with(&'static self, params: &[Number]) -> BinaryKernel {
        BinaryKernel(Kernel::new(self, params))
    }

    /// The gated op with parameters.
    pub fn gated_with(&'static self, params: &[Number]) -> GatedKernel {
        GatedKernel(Kernel::new(self, params))
    }

    /// The op of three operands with parameters. If the op has another number of operands, each call is an error.
    pub fn ternary_with(&'static self, params: &[Number]) -> TernaryKernel {
        TernaryKernel(Kernel::new(self, params))
    }

    /// The op without operands with parameters. If the op has operands, each call is an error.
    pub fn generator_with(&'static self, params: &[Number]) -> GeneratorKernel {
        GeneratorKernel(Kernel::new(self, params))
    }

    /// The gradients of a gated op with parameters.
    pub fn gated_gradients(&'static self, params: &[Number]) -> GatedGradientsKernel {
        GatedGradientsKernel(Kernel::new(self, params))
    }

    /// The loop for elements of a type.
    pub(crate) fn cpu(&self, dtype: DType) -> Result<FormulaFn> {
        Ok(self.typed(dtype)?.cpu)
    }

    /// The kernel of a class for elements of a type.
    ///
    /// # Errors
    /// A type that the op does not take.
    pub fn entry(&self, dtype: DType, class: Class) -> Result<&Entry> {
        Ok(&self.typed(dtype)?.entries[class as usize])
    }

    /// The kernel of a plan for elements of a type. All ops share the one that looks pairs up.
    ///
    /// # Errors
    /// A type that the op does not take.
    pub fn kernel_for(&self, dtype: DType, plan: &KernelPlan) -> Result<&Entry> {
        if let Some(class) = plan.row {
            return self.typed_rows(dtype)?.entry(class).ok_or_else(|| check::wrong_dtype(&self.info, dtype));
        }
        if let Some(indices) = self.indices() {
            return indices.entry(&self.info, dtype, plan.lanes > 1);
        }
        if let Some(own) = self.own() {
            let entries = own.entries(dtype).ok_or_else(|| check::wrong_dtype(&self.info, dtype))?;
            return Ok(&entries[usize::from(plan.lanes > 1)]);
        }
        self.kernel_of(dtype, plan.class, plan.strategy == Strategy::Table)
    }

    /// The kernel of a class, by a table or by the formula.
    pub(in crate::kernel) fn kernel_of(&self, dtype: DType, class: Class, by_table: bool) -> Result<&Entry> {
        let table = match self.table(dtype) {
            Table::Codes(entry) => Some(entry),
            Table::Pairs(_) => lookup::entry(class),
            Table::None => None,
        };
        match table.filter(|_| by_table) {
            Some(entry) => Ok(entry),
            None => self.entry(dtype, class),
        }
    }

    /// True if a table of all results may serve calls on elements of a type.
    pub fn has_table(&self, dtype: DType) -> bool {
        !matches!(self.table(dtype), Table::None)
    }

    /// The table of an op in elements of a type.
    pub(in crate::kernel) fn table(&self, dtype: DType) -> &Table {
        self.typed(dtype).map_or(&Table::None, |typed| &typed.table)
    }

    /// The loop and the kernels of an op on rows, for elements of a type.
    pub(super) fn typed_rows(&self, dtype: DType) -> Result<&TypedRows> {
        let Paths::Rows(types, _) = self.paths else { return Err(check::wrong_dtype(&self.info, dtype)) };
        types.iter().find(|typed| typed.dtype == dtype).ok_or_else(|| check::wrong_dtype(&self.info, dtype))
    }

    /// The loops and the kernels of an op without operands.
    pub(in crate::kernel) fn indices(&self) -> Option<&Indices> {
        match &self.paths {
            Paths::Indices(indices) => Some(indices),
            Paths::Elements(_) | Paths::Rows(..) | Paths::Own(_) => None,
        }
    }

    /// The loops and kernels that are the op's own.
    pub(crate) fn own(&self) -> Option<&'static dyn OwnKernels> {
        match self.paths {
            Paths::Own(own) => Some(own),
            Paths::Elements(_) | Paths::Rows(..) | Paths::Indices(_) => None,
        }
    }

    /// The loops and kernels of an op on elements; none of another.
    fn types(&self) -> &'static [Typed] {
        match self.paths {
            Paths::Elements(types) => types,
            Paths::Rows(..) | Paths::Indices(_) | Paths::Own(_) => &[],
        }
    }

    /// The kernels for elements of a type, of all classes.
    ///
    /// # Errors
    /// A type that the op does not take.
    pub fn entries(&self, dtype: DType) -> Result<Vec<&Entry>> {
        match &self.paths {
            Paths::Elements(_) => Ok(self.typed(dtype)?.entries.iter().collect()),
            Paths::Rows(..) => {
                let typed = self.typed_rows(dtype)?;
                Ok(RowClass::ALL.iter().chain(&RowClass::SUMS).filter_map(|&class| typed.entry(class)).collect())
            }
            Paths::Indices(indices) => {
                [false, true].into_iter().map(|vectors| indices.entry(&self.info, dtype, vectors)).collect()
            }
            Paths::Own(own) => {
                let entries = own.entries(dtype);
                Ok(entries.ok_or_else(|| check::wrong_dtype(&self.info, dtype))?.iter().collect())
            }
        }
    }

    /// The op on rows in f64, for elements of type `dtype`; `None` for an op on elements.
    ///
    /// # Errors
    /// An element type or a parameter that the op does not take.
    pub fn row_oracle(&self, dtype: DType, params: &[Number]) -> Result<Option<RowOracle>> {
        check::dtype(&self.info, dtype)?;
        let words = params::oracle_words(&self.info, &Params::new(params), dtype)?;
        let Paths::Rows(_, reference) = self.paths else { return Ok(None) };
        Ok(Some(RowOracle { reference, words, dtype }))
    }

    /// The formula in f64 of an op without operands, for elements of type `dtype`: of plane, row and column. `None` for an op
    /// that has operands, and for a position encoding of the family.
    ///
    /// # Errors
    /// An element type or a parameter that the op does not take.
    pub fn index_oracle(&self, dtype: DType, params: &[Number]) -> Result<Option<IndexOracle>> {
        check::dtype(&self.info, dtype)?;
        let Some(formula) = self.indices().and_then(|indices| indices.oracle) else { return Ok(None) };
        let [a, b, c, d, ..] = params::oracle_words(&self.info, &Params::new(params), DType::F32)?;
        Ok(Some(IndexOracle { formula, words: [a, b, c, d] }))
    }

    fn typed(&self, dtype: DType) -> Result<&Typed> {
        // An op that only moves elements has loops and kernels for each width.
        let carrier = if self.info.properties.moves { bits_of(dtype) } else { dtype };
        let found = self.types().iter().find(|typed| typed.dtype == carrier);
        found.ok_or_else(|| check::wrong_dtype(&self.info, dtype))
    }

    /// The formula of one element on values of a type, for fusion: those of 8 and 16 bits are computed in f32.
    ///
    /// # Errors
    /// A type without a body: one that the op does not take.
    pub(crate) fn body(&self, dtype: DType) -> Result<&Entry> {
        let is_short = |dtype: DType| dtype.is_float() && dtype != DType::F32;
        // Values of up to 32 bits are in registers of 32.
        let carrier = match (self.info.properties.moves, dtype.size()) {
            (false, _) => dtype,
            (true, 8) => DType::I64,
            (true, _) => DType::I32,
        };
        let fits = |typed: &&Typed| typed.dtype == carrier || is_short(typed.dtype) && is_short(carrier);
        let found = self.types().iter().filter(fits).find_map(|typed| typed.body.as_ref());
        found.ok_or_else(|| check::wrong_dtype(&self.info, dtype))
    }

    /// True if a call gives the last two operands as the halves of one tensor's last dimension. It may also give two tensors.
    pub fn takes_halves(&self) -> bool {
        self.info.arguments().len() < self.info.operands.len()
    }

    /// True if floats have the op, so that there is a formula in f64.
    pub fn has_oracle(&self) -> bool {
        self.oracle.is_some()
    }

    /// The formula in f64 for elements of type `dtype`: of operands (a bool as 0 or 1) and the element's random word;
    /// `None` for an op that floats do not have.
    ///
    /// # Errors
    /// An element type or a parameter that the op does not take.
    pub fn oracle(&self, dtype: DType, params: &[Number]) -> Result<Option<Oracle>> {
        check::dtype(&self.info, dtype)?;
        let words = params::oracle_words(&self.info, &Params::new(params), dtype)?;
        let results = self.info.results.len();
        Ok(self.oracle.map(|formula| Oracle { formula, terms: self.terms, words, results }))
    }

    /// The formula in f64 with parameters as words of f64.
    pub(crate) fn oracle_of(&self, words: ParamWords) -> Option<Oracle> {
        let results = self.info.results.len();
        self.oracle.map(|formula| Oracle { formula, terms: self.terms, words, results })
    }

    /// As [`OpDef::oracle`], for elements that are f64 themselves: parameters are as they were given.
    ///
    /// # Errors
    /// A parameter that the op does not take.
    pub fn double(&self, params: &[Number]) -> Result<Option<Oracle>> {
        let words = params::exact_words(&self.info, &Params::new(params))?;
        let results = self.info.results.len();
        Ok(self.oracle.map(|formula| Oracle { formula, terms: self.terms, words, results }))
    }

    /// As [`OpDef::oracle`], with operands, parameters and every step rounded to f32 once: what the bound of a family's
    /// gradient is about. `None` for other ops.
    ///
    /// # Errors
    /// As [`OpDef::oracle`].
    pub fn stepped(&self, dtype: DType, params: &[Number]) -> Result<Option<Oracle>> {
        check::dtype(&self.info, dtype)?;
        let words = params::words(&self.info, &Params::new(params), dtype)?;
        let results = self.info.results.len();
        Ok(self.stepped.map(|formula| Oracle { formula, terms: None, words, results }))
    }
}

/// An op on rows in f64, with the parameters of a call.
#[derive(Clone, Copy, Debug)]
pub struct RowOracle {
    reference: RowReferenceFn,
    words: ParamWords,
    dtype: DType,
}

impl RowOracle {
    /// The results of a row of `len` elements, with what steps of f32 could lose. An operand has an element for each of the row,
    /// or one for all; a bool is 0 or 1. A result has one for each of the row, or one.
    #[must_use]
    pub fn at(&self, operands: &[&[f64]], len: usize) -> Vec<Vec<Terms>> {
        (self.reference)(operands, len, &self.words, self.dtype)
    }
}

/// The formula of an op at a compute type of references, with the parameters of a call.
#[derive(Clone, Copy, Debug)]
pub struct Oracle {
    formula: OracleFn,
    terms: Option<TermsFn>,
    words: ParamWords,
    results: usize,
}

impl Oracle {
    /// The results of operands (a bool as 0 or 1, one that is missing as 0), and of the element's random word or place.
    #[must_use]
    pub fn at(&self, operands: &[f64], at: impl Into<At<'static>>) -> Vec<f64> {
        (self.formula)(&padded(operands), &self.words, at.into())[..self.results].to_vec()
    }

    /// As [`Oracle::at`], with what steps of f32 could lose: of an op that `#[op]` made.
    #[must_use]
    pub fn terms(&self, operands: &[f64], at: impl Into<At<'static>>) -> Option<Vec<Terms>> {
        self.terms.map(|terms| terms(&padded(operands), &self.words, at.into())[..self.results].to_vec())
    }

    /// The first result, of an op without a random word.
    #[must_use]
    pub fn of(&self, operands: &[f64]) -> f64 {
        let [first, ..] = (self.formula)(&padded(operands), &self.words, 0.into());
        first
    }
}

/// The operands, and zeros.
fn padded(operands: &[f64]) -> [f64; MAX_INPUTS] {
    std::array::from_fn(|k| operands.get(k).copied().unwrap_or(0.0))
}
