//! The entries and the definition of an op.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};

use crate::common::hidden;
use crate::entry::{Class, Entry};
use crate::words::Type;

/// The classes, in the order of `Class::ALL` of the host.
const CLASSES: [Class; 3] = [Class::Flat, Class::Rows, Class::Strided];
/// The classes of ops on rows, in the order of `RowClass::ALL`.
const ROW_CLASSES: [Class; 3] = [Class::Held, Class::Streamed, Class::Staged];
/// The classes beside them, of gradients of weights: sums over rows, and the sum of these.
const SUM_CLASSES: [Class; 3] = [Class::HeldSum, Class::StreamedSum, Class::Fold];

/// As in `pointwise_core::launch`.
const GROUPED_TENSORS: usize = 4;

/// An op, as its kernels and its definition are made of it.
pub(crate) struct Entries {
    /// The crate in whose `__private` the expansion finds what it names.
    pub(crate) root: TokenStream,
    /// The op that its kernels belong to: of gradients, the op whose gradients they are.
    pub(crate) op: String,
    /// The beginning of its kernels' names.
    pub(crate) symbol: String,
    /// Its struct.
    pub(crate) type_name: Ident,
    /// True if the struct is generic over the compute type.
    pub(crate) is_generic: bool,
    /// The element types of operands that do not have the op's.
    pub(crate) operands: Vec<Option<Type>>,
    /// The element types of results that do not have the op's.
    pub(crate) results: Vec<Option<Type>>,
    /// Words of its parameters.
    pub(crate) words: usize,
    /// True if the formula draws a random word, or takes indices beside operands.
    pub(crate) has_place: bool,
    /// True if the formula reduces over rows.
    pub(crate) is_of_rows: bool,
    /// The results that are gradients of weights: none, or one entry for each.
    pub(crate) weights: Vec<bool>,
    /// The element types with bodies: one for each compute type.
    pub(crate) bodies: Vec<Type>,
    /// The hash of the sources.
    pub(crate) source: TokenStream,
}

/// The part of an entry that its template decides.
struct Template {
    /// The parameters that say which elements a launch has.
    places: TokenStream,
    /// The parameter that says how tensors lie in memory, behind all numbers.
    steps: TokenStream,
    /// The call, with the path from the root.
    call: TokenStream,
}

/// The names of an entry's parameters.
struct Names {
    /// The operands' addresses.
    x: Vec<Ident>,
    /// The results' addresses.
    y: Vec<Ident>,
    /// One word for each operand.
    given: Vec<Ident>,
    /// The words of the op's parameters.
    params: Vec<Ident>,
}

/// Returns `name0`, `name1` and so on.
fn numbered(name: &str, count: usize) -> Vec<Ident> {
    (0..count).map(|k| hidden(&format!("{name}{k}"))).collect()
}

impl Entries {
    fn core(&self) -> TokenStream {
        let root = &self.root;
        quote!(#root::__private::core)
    }

    /// The struct at a compute type.
    fn at(&self, ty: &TokenStream) -> TokenStream {
        let name = &self.type_name;
        if self.is_generic { quote!(#name<#ty>) } else { quote!(#name) }
    }

    fn symbol(&self, each: Type, class: Class) -> String {
        format!("{}_{}_{}", self.symbol, each.name(), class.name())
    }

    /// The word that binds an entry of a class to the op.
    fn word(&self, element: &TokenStream, this: &TokenStream, class: Class) -> TokenStream {
        let (core, source) = (self.core(), &self.source);
        let (operands, results) = (self.operands.len(), self.results.len());
        let of_op = Ident::new(if self.is_of_rows { "of_rows" } else { "of_formula" }, Span::call_site());
        class.word(&core, &quote!(#core::row::#of_op::<#element, #this, #operands, #results>(#source)))
    }

    /// The element type, and the struct at its compute type.
    fn typed(&self, each: Type) -> (TokenStream, TokenStream) {
        let core = self.core();
        let name = Ident::new(each.name(), Span::call_site());
        let element = quote!(#core::element::ty::#name);
        // Rows are computed in f32, whatever their elements are.
        let compute = if self.is_of_rows { quote!(f32) } else { quote!(<#element as #core::Element>::Compute) };
        let this = self.at(&compute);
        (element, this)
    }

    /// The bytes of the largest element, which decide how many a vector has.
    fn widest(&self, element: &TokenStream, this: &TokenStream) -> TokenStream {
        let core = self.core();
        let size = quote!(::core::mem::size_of::<#element>());
        let is_stored = |fixed: &Option<Type>| fixed.is_some_and(|each| each != Type::Bool);
        if self.operands.iter().chain(&self.results).any(is_stored) {
            quote!(<#this as #core::OpData>::INFO.widest(#size))
        } else {
            size
        }
    }

    /// The entries for elements of a type, which exist for the device alone. `abi` is `extern "gpu-kernel"`.
    pub(crate) fn entries(&self, each: Type, abi: &TokenStream) -> TokenStream {
        if self.is_of_rows {
            let sums = if self.has_weights() { &SUM_CLASSES[..] } else { &[] };
            return ROW_CLASSES.iter().chain(sums).map(|&class| self.entry(each, class, abi)).collect();
        }
        let table = self.has_codes(each).then_some(Class::Table);
        let body = self.has_body(each).then_some(Class::Body);
        CLASSES.into_iter().chain(table).chain(body).map(|class| self.entry(each, class, abi)).collect()
    }

    /// The entry of the formula of one element: operands and results are words.
    fn body(&self, each: Type, abi: &TokenStream) -> TokenStream {
        let (core, root) = (self.core(), &self.root);
        let (operands, results) = (self.operands.len(), self.results.len());
        let (element, this) = self.typed(each);
        let word = if each == Type::I64 { quote!(u64) } else { quote!(u32) };
        let word_of = |fixed: &Option<Type>| if fixed.is_some() { quote!(u32) } else { word.clone() };
        let (x, x_types) = (numbered("x", operands), self.operands.iter().map(word_of));
        let params = numbered("p", self.words);
        let zeros = (params.len()..8).map(|_| quote!(0));
        Entry {
            root,
            abi,
            symbol: &self.symbol(each, Class::Body),
            op: &self.op,
            vectors: quote!([false; 2]),
            barriers: None,
            is_fp8: false,
            word: self.word(&element, &this, Class::Body),
            slots: Some(quote!(#core::row::slots(&<#this as #core::OpData>::INFO))),
            parameters: quote!(y: *mut u64, #(#x: #x_types,)* #(#params: u64,)*),
            prepare: quote! {
                let op = <#this as #core::OpData>::from_words(&[
                    #(#root::__private::formula::loaded(#params),)* #(#zeros,)*
                ]);
            },
            call: quote! {
                #root::__private::formula::body::<#element, #this, #operands, #results>(y, [#(#x as u64),*], op)
            },
        }
        .into_token_stream()
    }

    /// True if results are gradients of weights.
    fn has_weights(&self) -> bool {
        self.weights.contains(&true)
    }

    /// The entry that adds the chunks of gradients of weights.
    fn fold(&self, each: Type, abi: &TokenStream) -> TokenStream {
        let (core, root, results) = (self.core(), &self.root, self.results.len());
        let (element, this) = self.typed(each);
        let y = numbered("y", results);
        let weights = self.weights.iter().filter(|&&is_weight| is_weight).count() as u32;
        Entry {
            root,
            abi,
            symbol: &self.symbol(each, Class::Fold),
            op: &self.op,
            vectors: quote!([false; 2]),
            barriers: Some(quote!(#core::rows::fold_barriers(#weights))),
            is_fp8: each.is_fp8(),
            word: self.word(&element, &this, Class::Fold),
            slots: Some(quote!(#core::row::slots(&<#this as #core::OpData>::INFO))),
            parameters: quote!(#(#y: *mut #element,)* sums: *const f32, chunks: u32, len: u32,),
            prepare: quote!(),
            call: quote! {
                #root::__private::rows::fold::<#element, #this, #results>(
                    [#(#y.cast()),*], sums.cast(), chunks, len,
                )
            },
        }
        .into_token_stream()
    }

    /// The entry of a class for elements of a type.
    fn entry(&self, each: Type, class: Class, abi: &TokenStream) -> TokenStream {
        match class {
            Class::Body => return self.body(each, abi),
            Class::Fold => return self.fold(each, abi),
            _ => {}
        }
        let (core, root) = (self.core(), &self.root);
        let (element, this) = self.typed(each);
        let sums = class.is_summed();
        let template = if self.is_of_rows {
            self.template_of_rows(class, &element, &this)
        } else {
            self.template(class, &element, &this)
        };
        let rounds = quote!(<#this as #core::rows::RowData>::ROUNDS.len());
        Entry {
            root,
            abi,
            symbol: &self.symbol(each, class),
            op: &self.op,
            vectors: self.vectors(class, &element, &this),
            barriers: self.is_of_rows.then(|| {
                let staging = (class == Class::Staged)
                    .then(|| quote!(+ #core::rows::staging_barriers(&<#this as #core::OpData>::INFO, #rounds)));
                quote!(#core::rows::barriers(#rounds, #sums) #staging)
            }),
            is_fp8: each.is_fp8(),
            word: self.word(&element, &this, class),
            slots: Some(quote!(#core::row::slots(&<#this as #core::OpData>::INFO))),
            parameters: self.parameters(sums, &element, &template),
            prepare: self.prepare(&this),
            call: template.call,
        }
        .into_token_stream()
    }

    /// The template of an elementwise class.
    fn template(&self, class: Class, element: &TokenStream, this: &TokenStream) -> Template {
        let (core, root, size) = (self.core(), &self.root, self.widest(element, this));
        let (operands, results) = (self.operands.len(), self.results.len());
        let tensors = operands + results;
        let lanes = quote!({ #core::formula::lanes(#size, #tensors) });
        let (launch, formula) = (quote!(#core::launch), quote!(#root::__private::formula));
        match class {
            Class::Flat => Template {
                places: quote!(n: u64, head: u32,),
                steps: quote!(),
                call: quote! {
                    #formula::flat::<#element, #element, #this, #operands, #results, #lanes>(&tensors, n, head, op)
                },
            },
            Class::Table => Template {
                places: quote!(n: u64, head: u32,),
                steps: quote!(),
                call: quote!(#formula::table::<#element, #this>(&tensors, n, head, op)),
            },
            Class::Strided if tensors <= GROUPED_TENSORS => Template {
                places: quote!(items: u32,),
                steps: quote!(groups: #launch::Groups<#tensors>,),
                call: quote! {
                    #formula::grouped::<#element, #element, #this, #operands, #results, #tensors, #lanes>(
                        &tensors, &groups, items, op,
                    )
                },
            },
            _ => {
                let (splits, lanes) =
                    if class == Class::Rows { (quote!(ROW_SPLITS), lanes) } else { (quote!(SPLITS), quote!(1)) };
                let splits = quote!({ #launch::#splits });
                Template {
                    places: quote!(items: u32,),
                    steps: quote!(steps: #launch::Steps<#tensors, #splits>,),
                    call: quote! {
                        #formula::tiled::<#element, #element, #this, #operands, #results, #tensors, #lanes, #splits>(
                            &tensors, &steps, items, op,
                        )
                    },
                }
            }
        }
    }

    /// The template of a class of ops on rows.
    fn template_of_rows(&self, class: Class, element: &TokenStream, this: &TokenStream) -> Template {
        let (core, root, size) = (self.core(), &self.root, self.widest(element, this));
        let (operands, results) = (self.operands.len(), self.results.len());
        let tensors = operands + results;
        let lanes = quote!({ #core::rows::lanes(#size) });
        let vectors = match class {
            Class::Held | Class::Staged | Class::HeldSum => quote!({
                #core::rows::vectors(#size, #core::rows::counted_tensors(&<#this as #core::OpData>::INFO))
            }),
            _ => quote!({ #core::rows::streamed_vectors::<#this>() }),
        };
        let (launch, rows) = (quote!(#core::launch), quote!(#root::__private::rows));
        let sums = class.is_summed();
        let more_places = sums.then(|| quote!(chunks: u32, first: u32, done: u32,));
        let chunks = sums.then(|| quote!(#rows::Chunks { count: chunks, first, done },));
        let template = Ident::new(class.name(), Span::call_site());
        Template {
            places: quote!(rows: u32, len: u32, threads: u32, #more_places),
            steps: quote!(steps: #launch::Steps<#tensors, { #launch::ROW_SPLITS }>,),
            call: quote! {
                #rows::#template::<#element, #this, #operands, #results, #tensors, #lanes, #vectors>(
                    &tensors, &steps, #rows::Shape { rows, len, threads }, #chunks op,
                )
            },
        }
    }

    /// The vector accesses that the template of a class promises: loads, stores.
    fn vectors(&self, class: Class, element: &TokenStream, this: &TokenStream) -> TokenStream {
        let core = self.core();
        let promised =
            |of: TokenStream| quote!(#core::#of(&<#this as #core::OpData>::INFO, ::core::mem::size_of::<#element>()));
        match class {
            Class::Strided => quote!([false; 2]),
            Class::Table => quote!([true; 2]),
            _ if self.is_of_rows => promised(quote!(rows::promises)),
            _ => promised(quote!(formula::vectors)),
        }
    }

    /// The parameters of an entry. The gradients of weights are f32 where it sums (`sums`).
    fn parameters(&self, sums: bool, element: &TokenStream, template: &Template) -> TokenStream {
        let core = self.core();
        let Names { x, y, given, params } = self.names();
        let element_of = |fixed: &Option<Type>| fixed.map_or_else(|| element.clone(), |each| self.typed(each).0);
        let x_types = self.operands.iter().map(element_of);
        let y_types = self.results.iter().enumerate().map(|(k, fixed)| match sums && self.weights[k] {
            true => quote!(f32),
            false => element_of(fixed),
        });
        let draw = self.has_place.then(|| quote!(draw: #core::Draw,));
        let Template { places, steps, .. } = template;
        quote! {
            #(#y: *mut #y_types,)* #(#x: *const #x_types,)* #places mode: u32, #(#given: u64,)* #(#params: u64,)*
            #steps #draw
        }
    }

    /// The op and its tensors, of an entry's parameters.
    fn prepare(&self, this: &TokenStream) -> TokenStream {
        let (core, root) = (self.core(), &self.root);
        let (operands, results) = (self.operands.len(), self.results.len());
        let Names { x, y, given, params } = self.names();
        let zeros = (params.len()..8).map(|_| quote!(0));
        let draw = if self.has_place { quote!(draw) } else { quote!(#core::Draw::NONE) };
        quote! {
            let op = <#this as #core::OpData>::from_words(&[#(#params,)* #(#zeros,)*]);
            let tensors = #root::__private::formula::Tensors::<#operands, #results> {
                results: [#(#y.cast()),*],
                operands: [#(#x.cast()),*],
                words: [#(#given),*],
                mode,
                draw: #draw,
            };
        }
    }

    fn names(&self) -> Names {
        let (operands, results) = (self.operands.len(), self.results.len());
        Names {
            x: numbered("x", operands),
            y: numbered("y", results),
            given: numbered("w", operands),
            params: numbered("p", self.words),
        }
    }

    /// The loops and kernels for elements of some types, as an array.
    pub(crate) fn types(&self, types: &[Type], kernels: &TokenStream) -> TokenStream {
        let (root, source) = (&self.root, &self.source);
        let (operands, results) = (self.operands.len(), self.results.len());
        let typed = types.iter().map(|&each| {
            let (element, this) = self.typed(each);
            if self.is_of_rows {
                let symbols = ROW_CLASSES.map(|class| self.symbol(each, class));
                let sums = self.has_weights().then(|| {
                    let symbols = SUM_CLASSES.map(|class| self.symbol(each, class));
                    quote!(.with_sums::<#element, #this, #operands, #results>([#(#symbols),*], &#kernels))
                });
                return quote! {
                    #root::__private::TypedRows::new::<#element, #this, #operands, #results>(
                        [#(#symbols),*], #source, &#kernels,
                    ) #sums
                };
            }
            let symbols = CLASSES.map(|class| self.symbol(each, class));
            let lookup = self.has_lookup(each).then(|| {
                quote! {
                    .with_lookup({
                        static LOOKUP: #root::__private::Lookup = #root::__private::Lookup::new();
                        &LOOKUP
                    })
                }
            });
            let table = self.has_codes(each).then(|| {
                let symbol = self.symbol(each, Class::Table);
                quote!(.with_codes(#symbol, &#kernels))
            });
            let body = self.has_body(each).then(|| {
                let symbol = self.symbol(each, Class::Body);
                quote!(.with_body(#symbol, &#kernels))
            });
            quote! {
                #root::__private::Typed::new::<#element, #this, #operands, #results>(
                    [#(#symbols),*], #source, &#kernels,
                ) #lookup #table #body
            }
        });
        quote!([#(#typed),*])
    }

    /// True if a table may have all results: the op has two operands of one byte each and no parameters.
    fn has_lookup(&self, each: Type) -> bool {
        let is_of_two = matches!((&*self.operands, &*self.results), ([None, None], [None | Some(Type::Bool)]));
        is_of_two && self.words == 0 && !self.has_place && each.is_byte()
    }

    /// True if a kernel makes a table of all results: the op has one operand and one result, of the same 8-bit floats. Their
    /// formulas take longer than a look-up.
    fn has_codes(&self, each: Type) -> bool {
        matches!((&*self.operands, &*self.results), ([None], [None])) && !self.has_place && each.is_fp8()
    }

    /// True if there is a body for elements of a type.
    fn has_body(&self, each: Type) -> bool {
        self.bodies.contains(&each)
    }

    /// An op on rows with the size of what steps of f32 could lose.
    pub(crate) fn reference_of_rows(&self) -> TokenStream {
        let (root, core) = (&self.root, self.core());
        let (operands, results) = (self.operands.len(), self.results.len());
        let ty = quote!(#core::Terms);
        let this = self.at(&ty);
        quote!(#root::__private::reference_of_rows::<#this, #operands, #results>)
    }

    /// The formula at a compute type of references.
    pub(crate) fn reference(&self, ty: &TokenStream) -> TokenStream {
        let (root, this) = (&self.root, self.at(ty));
        let (operands, results) = (self.operands.len(), self.results.len());
        quote!(::core::option::Option::Some(#root::__private::oracle::<#ty, #this, #operands, #results>))
    }

    /// The formula with what steps of f32 could lose.
    pub(crate) fn terms(&self) -> TokenStream {
        let (root, core) = (&self.root, self.core());
        let (operands, results) = (self.operands.len(), self.results.len());
        let ty = quote!(#core::Terms);
        let this = self.at(&ty);
        quote!(::core::option::Option::Some(#root::__private::reference::<#ty, #this, #operands, #results>))
    }

    /// The op's data, which are the same at every compute type.
    pub(crate) fn info(&self) -> TokenStream {
        let (core, this) = (self.core(), self.at(&quote!(f64)));
        quote!(<#this as #core::OpData>::INFO)
    }
}

#[cfg(test)]
mod tests {
    use super::GROUPED_TENSORS;

    #[test]
    fn the_number_of_grouped_tensors_is_that_of_launches() {
        assert_eq!(GROUPED_TENSORS, pointwise_core::launch::GROUPED_TENSORS);
    }
}
