//! The entries and the definition of a generator, of an attribute's and of a position encoding.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};

use crate::common::hidden;
use crate::entry::{Class, Entry};
use crate::words::Type;

/// As in `pointwise_core::op`.
const MAX_WORDS: usize = 4;

/// The classes: by single elements, by vectors.
const CLASSES: [Class; 2] = [Class::Direct, Class::Vectors];

/// A generator, as its kernels and its definition are made of it.
pub(crate) struct Generated {
    /// The crate in whose `__private` the expansion finds what it names.
    pub(crate) root: TokenStream,
    /// The op.
    pub(crate) op: String,
    /// The beginning of its kernels' names.
    pub(crate) symbol: String,
    /// Its struct, with parameters of f32.
    pub(crate) this: TokenStream,
    /// Words of its parameters.
    pub(crate) words: usize,
    /// The hash of the sources.
    pub(crate) source: TokenStream,
}

impl Generated {
    fn symbol(&self, each: Type, class: Class) -> String {
        format!("{}_{}_{}", self.symbol, each.name(), class.name())
    }

    fn element(&self, each: Type) -> TokenStream {
        let (root, name) = (&self.root, Ident::new(each.name(), Span::call_site()));
        quote!(#root::__private::core::element::ty::#name)
    }

    /// The entries for elements of a type, which exist for the device alone. `abi` is `extern "gpu-kernel"`.
    pub(crate) fn entries(&self, each: Type, abi: &TokenStream) -> TokenStream {
        CLASSES.into_iter().map(|class| self.entry(each, class, abi)).collect()
    }

    fn entry(&self, each: Type, class: Class, abi: &TokenStream) -> TokenStream {
        let Generated { root, this, source, .. } = self;
        let (core, element) = (quote!(#root::__private::core), self.element(each));
        let lanes =
            if class == Class::Vectors { quote!({ 16 / ::core::mem::size_of::<#element>() }) } else { quote!(1) };
        let params: Vec<Ident> = (0..self.words).map(|k| hidden(&format!("p{k}"))).collect();
        let zeros = (params.len()..MAX_WORDS).map(|_| quote!(0));
        Entry {
            root,
            abi,
            symbol: &self.symbol(each, class),
            op: &self.op,
            vectors: quote!([false, #lanes > 1]),
            barriers: None,
            is_fp8: each.is_fp8(),
            word: class.word(&core, &quote!(#core::row::of_generator::<#element, #this>(#source))),
            slots: None,
            parameters: quote! {
                y: *mut #element,
                rows: u32,
                columns: u32,
                across: u32,
                down: u32,
                shift: u32,
                each: u32,
                #(#params: u64,)*
            },
            prepare: quote! {
                let op = <#this as #core::DescribedOp>::from_words([#(#params,)* #(#zeros,)*]);
                let grid = #root::__private::generator::Grid { rows, columns, across, down, shift, each };
            },
            call: quote!(#root::__private::generator::fill::<#element, #this, #lanes>(y, grid, op)),
        }
        .into_token_stream()
    }

    /// The loops and kernels for elements of some types, as an array.
    pub(crate) fn types(&self, types: &[Type], kernels: &TokenStream) -> TokenStream {
        let Generated { root, this, source, .. } = self;
        let typed = types.iter().map(|&each| {
            let (element, symbols) = (self.element(each), CLASSES.map(|class| self.symbol(each, class)));
            quote!(#root::__private::GeneratorTyped::new::<#element, #this>([#(#symbols),*], #source, &#kernels))
        });
        quote!([#(#typed),*])
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_number_of_words_is_that_of_the_core() {
        assert_eq!(super::MAX_WORDS, pointwise_core::op::MAX_PARAMS);
    }
}
