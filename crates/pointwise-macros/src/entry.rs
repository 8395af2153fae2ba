//! A kernel's entry, whatever template it calls.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};

/// The class of an entry, as in `pointwise_core::row`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Flat,
    Rows,
    Strided,
    /// The kernel of ops that have a table.
    Table,
    /// The formula of one element over registers, which fusion at run time puts into its kernels.
    Body,
    Held,
    Streamed,
    Staged,
    HeldSum,
    StreamedSum,
    Fold,
    Direct,
    Vectors,
}

impl Class {
    /// The last part of a kernel's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Class::Flat => "flat",
            Class::Rows => "rows",
            Class::Strided => "strided",
            Class::Table => "table",
            Class::Body => "body",
            Class::Held => "held",
            Class::Streamed => "streamed",
            Class::Staged => "staged",
            Class::HeldSum => "held_sum",
            Class::StreamedSum => "streamed_sum",
            Class::Fold => "fold",
            Class::Direct => "direct",
            Class::Vectors => "vectors",
        }
    }

    /// True if the rows of a chunk are summed.
    pub(crate) fn is_summed(self) -> bool {
        matches!(self, Class::HeldSum | Class::StreamedSum)
    }
    /// The word of an entry of the class, of an op that has the word `row`.
    pub(crate) fn word(self, core: &TokenStream, row: &TokenStream) -> TokenStream {
        let class = format_ident!("{self:?}");
        quote!(#core::row::of_class(#row, #core::row::EntryClass::#class))
    }
}

/// An entry, and the comment in the module that says which op it belongs to and binds it to its row. It exists for the device alone, unless an
/// older target has it the same.
pub(crate) struct Entry<'a> {
    /// The crate in whose `__private` the expansion finds what it names.
    pub(crate) root: &'a TokenStream,
    /// `extern "gpu-kernel"`.
    pub(crate) abi: &'a TokenStream,
    pub(crate) symbol: &'a str,
    /// The op that it belongs to: of a gradient, the op whose gradient it is.
    pub(crate) op: &'a str,
    /// The vector accesses that its template promises, a `[bool; 2]`: loads, stores.
    pub(crate) vectors: TokenStream,
    /// The barriers of an op on rows: one for each round.
    pub(crate) barriers: Option<TokenStream>,
    /// True if any of its elements are fp8, which newer targets convert by instructions.
    pub(crate) is_fp8: bool,
    /// The word of its row and class.
    pub(crate) word: TokenStream,
    /// The types of its operands and results, of a formula.
    pub(crate) slots: Option<TokenStream>,
    pub(crate) parameters: TokenStream,
    /// The code before the call.
    pub(crate) prepare: TokenStream,
    /// The call of a template.
    pub(crate) call: TokenStream,
}

impl ToTokens for Entry<'_> {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Entry { root, abi, symbol, op, vectors, barriers, word, slots, parameters, prepare, call, .. } = self;
        let inherits = if self.is_fp8 { "fp8" } else { "plain" };
        // Two attributes: the host's compiler would warn of the cfg that it does not know.
        let is_there = quote!(#[cfg(target_arch = "nvptx64")] #[cfg(not(pointwise_inherits = #inherits))]);
        let function = format_ident!("__{symbol}");
        let more = if barriers.is_some() { " barriers={barriers}" } else { "" };
        let of_slots = if slots.is_some() { " slots={slots}" } else { "" };
        let comment =
            format!("// entry {symbol}: row={{word}} op={op} loads={{loads}} stores={{stores}}{of_slots}{more}");
        let slots = slots.as_ref().map(|slots| quote!(slots = const { #slots },));
        let barriers = barriers.as_ref().map(|count| quote!(barriers = const { #count },));
        tokens.extend(quote! {
            #is_there
            // In the entry's own assembly, a comment might change its code.
            #root::__asm!(
                #comment,
                word = const { #word },
                loads = const { #vectors[0] as u8 },
                stores = const { #vectors[1] as u8 },
                #slots
                #barriers
            );

            #is_there
            #[doc(hidden)]
            // By value, and without a pointer in it: its fields are read where they lie, as those of scalars are.
            #[allow(improper_gpu_kernel_arg, clippy::too_many_arguments)]
            #[unsafe(export_name = #symbol)]
            unsafe #abi fn #function(#parameters) {
                #prepare
                // SAFETY: the template's contract is this entry's own; the host checks it before the launch.
                unsafe { #call }
            }
        });
    }
}
