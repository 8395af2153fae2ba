//! The kernels of rotary embedding: which there are.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};

use super::{Place, element, static_entry};
use crate::entry::Entry;
use crate::words::Type;

/// A template with its constants.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Template {
    /// Blocks share cosines and sines.
    PerBlock,
    /// Threads find their own.
    PerThread,
    /// Likewise, by tables of the tensors' type, for heads all of whose lanes rotate.
    FullHead,
    /// As `FullHead`, with positions.
    FullHeadIds,
    /// As `FullHead`, of pairs that are neighbours.
    FullHeadPairs,
}

use Template::{FullHead, FullHeadIds, FullHeadPairs, PerBlock, PerThread};

/// The sources of the cosines and sines: in symbols, and as the variant of `Source` on the host.
const SOURCES: [(&str, &str); 5] =
    [("hf", "Hf"), ("exact", "Exact"), ("angles", "Angles"), ("tables", "Tables"), ("own_tables", "OwnTables")];
const TABLES: (&str, &str) = SOURCES[3];
const OWN_TABLES: (&str, &str) = SOURCES[4];
const STRATEGIES: [Strategy; 3] = [
    Strategy { name: "direct", variant: "Direct", bytes: None },
    Strategy { name: "explicit_parallel", variant: "ExplicitParallel", bytes: Some(8) },
    Strategy { name: "register_copy", variant: "RegisterCopy", bytes: Some(16) },
];
const TYPES: [Type; 3] = [Type::F32, Type::F16, Type::BF16];

/// In symbols, as the variant of `Strategy` on the host, and the bytes of a vector; `None` for single elements.
#[derive(Clone, Copy)]
struct Strategy {
    name: &'static str,
    variant: &'static str,
    bytes: Option<usize>,
}

struct Kernel {
    template: Template,
    source: (&'static str, &'static str),
    each: Type,
    strategy: Strategy,
}

fn kernels() -> impl Iterator<Item = Kernel> {
    let templates = [PerBlock, PerThread, FullHead, FullHeadIds, FullHeadPairs].into_iter();
    let sourced = templates.flat_map(|template| SOURCES.map(|source| (template, source)));
    let typed = sourced.flat_map(|(template, source)| TYPES.map(|each| (template, source, each)));
    let all = typed
        .flat_map(|(template, source, each)| STRATEGIES.map(|strategy| Kernel { template, source, each, strategy }));
    all.filter(Kernel::is_there)
}

impl Kernel {
    fn is_there(&self) -> bool {
        // For tensors of f32, tables of the tensors' type are tables of f32.
        let own = if self.each == Type::F32 { TABLES } else { OWN_TABLES };
        if self.source == OWN_TABLES && own != OWN_TABLES {
            return false;
        }
        match self.template {
            PerBlock => true,
            PerThread => self.strategy.bytes.is_some(),
            FullHead | FullHeadIds | FullHeadPairs => self.source == own && self.strategy.bytes.is_some(),
        }
    }

    fn symbol(&self) -> String {
        let template = match self.template {
            PerBlock => "rope",
            PerThread => "rope_solo",
            FullHead => "rope_whole",
            FullHeadIds => "rope_whole_ids",
            FullHeadPairs => "rope_whole_pairs",
        };
        format!("{template}_{}_{}_{}", self.source.0, self.each.name(), self.strategy.name)
    }

    fn entry(&self, Place { root, given }: &Place) -> TokenStream {
        let core = quote!(#root::__private::core);
        let (symbol, element) = (self.symbol(), element(&core, self.each));
        let lanes = match self.strategy.bytes {
            None => quote!(1),
            Some(bytes) => quote!({ #bytes / ::core::mem::size_of::<#element>() }),
        };
        let source = match self.source {
            TABLES => quote!(#root::rope::Tables<f32>),
            OWN_TABLES => quote!(#root::rope::Tables<#element>),
            (_, name) => {
                let name = format_ident!("{name}");
                quote!(#root::rope::#name)
            }
        };
        let tensors = quote!(qx: *const #element, qy: *mut #element);
        let of_k = quote!(kx: *const #element, ky: *mut #element);
        let tables = quote!(first: *const u8, second: *const u8);
        let full_head = |pairs: bool, ids: bool| {
            (
                quote!(#tensors, #tables, walk: #root::rope::FullHead, ids: *const u8, #of_k),
                quote!(full_head::<#element, #lanes, #pairs, #ids>(qx, qy, first, second, &walk, ids, kx, ky)),
            )
        };
        let (parameters, call) = match self.template {
            PerBlock => (
                quote! {
                    #tensors, #of_k, ids: *const u8, starts: *const u8, #tables, walk: #root::rope::RopeWalk
                },
                quote!(rope::<#element, #source, #lanes>(qx, qy, kx, ky, ids, starts, first, second, &walk)),
            ),
            PerThread => (
                quote!(#tensors, #of_k, ids: *const u8, #tables, walk: #root::rope::PerThread),
                quote!(per_thread::<#element, #source, #lanes>(qx, qy, kx, ky, ids, first, second, &walk)),
            ),
            FullHead => full_head(false, false),
            FullHeadIds => full_head(false, true),
            FullHeadPairs => full_head(true, false),
        };
        Entry {
            root,
            abi: given,
            symbol: &symbol,
            op: "rope",
            vectors: if self.strategy.name == "register_copy" { quote!([true; 2]) } else { quote!([false; 2]) },
            barriers: None,
            is_fp8: false,
            word: quote!(#core::row::of_symbol(#symbol)),
            slots: None,
            parameters,
            prepare: quote!(),
            call: quote!(#root::rope::#call),
        }
        .into_token_stream()
    }

    /// The arm of the host's function that finds it.
    fn arm(&self, Place { root, given }: &Place) -> TokenStream {
        let core = quote!(#root::__private::core);
        let kind = |kind| quote!(Template::FullHead(FullHeadPlan { kind: FullHeadKind::#kind, .. }));
        let template = match self.template {
            PerBlock => quote!(Template::PerBlock),
            PerThread => quote!(Template::PerThread(_)),
            FullHead => kind(quote!(Plain)),
            FullHeadIds => kind(quote!(Ids)),
            FullHeadPairs => kind(quote!(Pairs)),
        };
        let (source, strategy) = (format_ident!("{}", self.source.1), format_ident!("{}", self.strategy.variant));
        let (symbol, dtype) = (self.symbol(), format_ident!("{}", self.each.dtype()));
        let entry = static_entry(root, given, &symbol, &quote!(#core::row::of_symbol(#symbol)));
        quote!((#template, Source::#source, #core::DType::#dtype, Strategy::#strategy) => #entry)
    }
}

/// The entries, and the cosines that a block shares, then as many sines.
pub(crate) fn entries(place: &Place) -> TokenStream {
    let (root, entries) = (&place.root, kernels().map(|kernel| kernel.entry(place)));
    quote! {
        #[cfg(target_arch = "nvptx64")]
        #[cfg(not(pointwise_inherits = "plain"))]
        #root::__asm!(".shared .align 16 .b8 pointwise_rope[8192];");
        #(#entries)*
    }
}

/// The function that finds the kernel of a template, a source, an element type and a strategy; for tests, the names of all
/// kernels.
pub(crate) fn function(place: &Place) -> TokenStream {
    let (root, arms) = (&place.root, kernels().map(|kernel| kernel.arm(place)));
    let symbols = kernels().map(|kernel| kernel.symbol());
    quote! {
        #[cfg(test)]
        const SYMBOLS: &[&str] = &[#(#symbols),*];

        fn find(
            template: &Template,
            source: Source,
            dtype: #root::DType,
            strategy: Strategy,
        ) -> ::core::option::Option<&'static #root::kernel::Entry> {
            match (template, source, dtype, strategy) {
                #(#arms,)*
                _ => ::core::option::Option::None,
            }
        }
    }
}
