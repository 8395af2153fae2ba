//! Kernels whose templates are not formulas': dropout, position encodings, conversions, rotary embedding, look-ups. Each
//! file lists its kernels, and makes the entries on the device and what finds them on the host.

mod conversions;
mod generators;
mod lookup;
mod random;
mod rope;

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Result, Token, parenthesized};

use crate::words::Type;

/// `(root) (given) Kind;`.
pub(crate) struct Visited {
    place: Place,
    kind: Kind,
}

/// The place of the expansion.
pub(crate) struct Place {
    /// The crate in whose `__private` the expansion finds what it names.
    pub(crate) root: TokenStream,
    /// The entries' `extern "gpu-kernel"`, or the static of the kernels.
    pub(crate) given: TokenStream,
}

enum Kind {
    Generators,
    Random,
    Conversions,
    Rope,
    Lookup,
}

impl Parse for Visited {
    fn parse(input: ParseStream<'_>) -> Result<Visited> {
        let (root, given);
        parenthesized!(root in input);
        parenthesized!(given in input);
        let place = Place { root: root.parse()?, given: given.parse()? };
        let name: Ident = input.parse()?;
        input.parse::<Token![;]>()?;
        let kind = match name.to_string().as_str() {
            "Generators" => Kind::Generators,
            "Random" => Kind::Random,
            "Conversions" => Kind::Conversions,
            "Rope" => Kind::Rope,
            "Lookup" => Kind::Lookup,
            _ => return Err(Error::new(name.span(), "no kind of kernels")),
        };
        Ok(Visited { place, kind })
    }
}

impl Visited {
    /// On the device: the entries.
    pub(crate) fn entries(&self) -> TokenStream {
        let Visited { place, kind } = self;
        match kind {
            Kind::Generators => generators::entries(place),
            Kind::Random => random::entries(place),
            Kind::Conversions => conversions::entries(place),
            Kind::Rope => rope::entries(place),
            Kind::Lookup => lookup::entries(place),
        }
    }

    /// On the host: the definitions of generators; functions that find loops and kernels of the others.
    pub(crate) fn host(&self) -> TokenStream {
        let Visited { place, kind } = self;
        match kind {
            Kind::Generators => generators::definitions(place),
            Kind::Random => random::functions(place),
            Kind::Conversions => conversions::functions(place),
            Kind::Rope => rope::function(place),
            Kind::Lookup => quote!(::core::compile_error! { "the host finds look-ups in kernel/lookup.rs" }),
        }
    }
}

/// The type of elements in the core crate.
pub(crate) fn element(core: &TokenStream, each: Type) -> TokenStream {
    let name = Ident::new(each.name(), Span::call_site());
    quote!(#core::element::ty::#name)
}

/// A kernel on the host, as `Some` of a reference to a static.
pub(crate) fn static_entry(root: &TokenStream, kernels: &TokenStream, symbol: &str, word: &TokenStream) -> TokenStream {
    quote! {{
        static ENTRY: #root::kernel::Entry = #root::kernel::Entry::new(#symbol, #word, &#kernels);
        ::core::option::Option::Some(&ENTRY)
    }}
}
