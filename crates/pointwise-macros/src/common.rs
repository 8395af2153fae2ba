//! The parts of an op on both sides: its struct, its data, its formula.

mod data;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{Attribute, Expr, FnArg, ItemFn, Lit, Meta, TypeParam, parse_quote};

use crate::rows;
use crate::signature::{Argument, Op, OpKind, Param, ParamKind, Value};
use crate::words::{Accuracy, Type};

/// An op, or its gradients, which are an op, too.
pub(crate) struct Form {
    pub(crate) name: String,
    pub(crate) type_name: Ident,
    pub(crate) operands: Vec<Value>,
    pub(crate) results: Vec<Value>,
    pub(crate) params: Vec<Param>,
    pub(crate) types: Vec<Type>,
    pub(crate) doc: String,
    /// The generic type, with its bounds.
    pub(crate) generic: TypeParam,
    /// The op whose gradients these are.
    gradient_of: Option<String>,
    /// The variant of `Kind`.
    kind: &'static str,
    accuracy: TokenStream,
    /// The words of `Properties`.
    properties: Vec<Ident>,
}

impl Form {
    /// The op itself.
    pub(crate) fn of(op: &Op) -> Form {
        Form {
            name: op.symbol(),
            type_name: op.type_name.clone(),
            operands: op.operands().cloned().collect(),
            results: op.results.clone(),
            params: op.params().cloned().collect(),
            types: op.types.clone(),
            doc: doc(&op.docs),
            generic: op.generic.clone(),
            gradient_of: None,
            kind: match op.kind {
                OpKind::Elementwise => "Formula",
                OpKind::Gated => "Gated",
                OpKind::Generator => "Generator",
                OpKind::Rows => "Rows",
            },
            accuracy: accuracy(op.accuracy),
            properties: op.family.properties.clone(),
        }
    }

    /// Its gradients.
    pub(crate) fn gradient_of(op: &Op) -> Form {
        let of_type =
            |values: &[Value]| values.iter().filter(|value| value.has_gradient()).cloned().collect::<Vec<_>>();
        let (results, ulp, name) = (of_type(&op.results), op.grad_accuracy, op.symbol());
        let grads: Vec<Value> = match &*results {
            [result] => vec![Value { is_row: result.is_row, fixed: result.fixed, ..of_type_named("grad") }],
            several => several.iter().map(gradient).collect(),
        };
        let operands: Vec<Value> = op.operands().cloned().collect();
        let mut generic = op.generic.clone();
        if !op.is_real() {
            let core = core();
            generic.bounds = parse_quote!(#core::Real);
        }
        Form {
            type_name: format_ident!("{}Backward", op.type_name),
            results: of_type(&operands)
                .iter()
                .filter(|operand| !op.shares_gradient(&operand.name))
                .map(gradient)
                .collect(),
            operands: grads
                .into_iter()
                .chain(operands.into_iter().filter(|it| op.is_saved(&it.name)))
                .chain(op.saved_results().cloned())
                .collect(),
            params: op.params().filter(|param| op.is_saved(&param.name)).cloned().collect(),
            types: op.grad_types.clone(),
            doc: op.grad_doc.clone().unwrap_or_else(|| format!("The gradients of `{name}`.")),
            generic,
            kind: match op.kind {
                OpKind::Gated => "GatedGradients",
                OpKind::Rows => "Rows",
                _ => "Formula",
            },
            accuracy: op.family.grad_accuracy.map_or_else(|| quote!(Cancels(#ulp)), accuracy),
            properties: op.family.grad_properties.clone(),
            name: format!("{name}_backward"),
            gradient_of: Some(name),
        }
    }

    /// The op, and its gradients if it has any.
    pub(crate) fn all(op: &Op) -> Vec<Form> {
        let gradient = op.has_gradient().then(|| Form::gradient_of(op));
        std::iter::once(Form::of(op)).chain(gradient).collect()
    }

    /// The same by another name.
    pub(crate) fn named(self, name: String) -> Form {
        Form { name, ..self }
    }

    /// True if the struct has a parameter of the generic type.
    pub(crate) fn is_generic(&self) -> bool {
        self.params.iter().any(|param| param.kind.is_generic())
    }

    /// The struct at a compute type.
    pub(crate) fn at(&self, ty: &TokenStream) -> TokenStream {
        let name = &self.type_name;
        if self.is_generic() { quote!(#name<#ty>) } else { quote!(#name) }
    }

    /// The struct on the host, whose parameters are f64. One by hand may have no default for its type.
    pub(crate) fn own(&self) -> TokenStream {
        self.at(&quote!(f64))
    }

    /// The words of its parameters.
    pub(crate) fn words(&self) -> usize {
        self.params.iter().map(|param| param.kind.words()).sum()
    }

    /// True if it can be written to its first operand.
    pub(crate) fn has_inplace(&self) -> bool {
        let is_gated = !matches!(self.kind, "Formula" | "Rows");
        let (first, first_result) = (self.operands.first(), self.results.first());
        !is_gated
            && self.results.len() == 1
            && first.is_some_and(|operand| operand.fixed.is_none())
            && first_result.is_some_and(|result| result.fixed.is_none() && !result.is_row)
    }

    /// True if the op moves elements, so that it has kernels for each width.
    pub(crate) fn moves(&self) -> bool {
        self.properties.iter().any(|word| word == "moves")
    }

    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.operands.len(), self.results.len())
    }
}

/// The variant of `pointwise_core::Accuracy`.
fn accuracy(accuracy: Accuracy) -> TokenStream {
    match accuracy {
        Accuracy::Exact => quote!(Exact),
        Accuracy::Ulp(ulp) => quote!(Ulp(#ulp)),
    }
}

/// The gradient of a tensor.
fn gradient(value: &Value) -> Value {
    Value {
        is_row: value.is_row,
        is_weight: value.is_weight,
        fixed: value.fixed,
        ..of_type_named(&format!("grad_{}", value.name))
    }
}

fn of_type_named(name: &str) -> Value {
    Value { name: hidden(name), is_channel: false, is_row: false, is_weight: false, fixed: None, is_kept: false }
}

/// A name that no name of the user's is taken for.
pub(crate) fn hidden(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// `pointwise_core`.
pub(crate) fn core() -> TokenStream {
    quote!(::pointwise::__private::core)
}

/// Structs, defaults, data; the formula of the op itself. Of an op by hand the struct is there, and the impl stays.
pub(crate) fn items(op: &Op) -> TokenStream {
    let mut items = op.by_hand.as_ref().map_or_else(TokenStream::new, ToTokens::to_token_stream);
    for form in &Form::all(op) {
        let is_there = op.by_hand.is_some() && form.name == op.symbol();
        items.extend((!is_there).then(|| declaration(op, form)));
        items.extend(data::implementation(op, form));
    }
    items.extend(formula(op));
    items
}

/// The text of documentation attributes.
fn doc(docs: &[Attribute]) -> String {
    let lines = docs.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(meta) => match &meta.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    lines.map(|line| line.strip_prefix(' ').unwrap_or(&line).to_owned()).collect::<Vec<_>>().join("\n")
}

/// The type of a parameter's field, of `ty` where it is generic.
fn field(param: &Param, ty: &TokenStream) -> TokenStream {
    match param.kind {
        ParamKind::Number | ParamKind::Probability => ty.clone(),
        ParamKind::Whole => quote!(i64),
        ParamKind::Flag => quote!(bool),
        ParamKind::Open => quote!(::core::option::Option<#ty>),
    }
}

/// The struct of an op, with its parameters, and their defaults.
fn declaration(op: &Op, form: &Form) -> TokenStream {
    let (vis, name) = (&op.vis, &form.type_name);
    let docs = if form.name == op.symbol() {
        let docs = &op.docs;
        quote!(#(#docs)*)
    } else {
        let doc = &form.doc;
        quote!(#[doc = #doc])
    };
    let derive = quote! {
        #docs
        #[allow(dead_code, missing_docs)]
        #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
    };
    let names: Vec<_> = form.params.iter().map(|param| &param.name).collect();
    if names.is_empty() {
        return quote!(#derive #[derive(::core::default::Default)] #vis struct #name;);
    }
    let generic = hidden("T");
    let fields = form.params.iter().map(|param| field(param, &quote!(#generic)));
    let generics = form.is_generic().then(|| quote!(<#generic = f64>));
    let defaults = form.params.iter().map(|param| {
        let default = &param.default;
        match param.kind {
            ParamKind::Open => quote!(::core::option::Option::None),
            ParamKind::Flag => quote!(#default),
            ParamKind::Whole => quote!(#default),
            ParamKind::Number | ParamKind::Probability => quote!((#default) as f64),
        }
    });
    quote! {
        #derive
        #vis struct #name #generics { #(pub #names: #fields,)* }

        #[allow(unused_parens, clippy::unnecessary_cast)]
        impl ::core::default::Default for #name {
            fn default() -> Self {
                #name { #(#names: #defaults,)* }
            }
        }
    }
}

/// The random words of an element.
pub(crate) const RANDOM_WORDS: [&str; 2] = ["bits", "more_bits"];

/// The indices of an element. A formula that takes fewer has the last of them.
pub(crate) const INDICES: [&str; 3] = ["plane", "row", "column"];

/// The indices that the formula takes.
pub(crate) fn dimensions(op: &Op) -> &'static [&'static str] {
    &INDICES[INDICES.len() - op.indices()..]
}

/// The arguments of the formula: operands, parameters, the random word, indices, the row.
pub(crate) fn arguments(op: &Op) -> Vec<TokenStream> {
    arguments_behind(op, 0, &quote!(row), |_| true)
}

/// The arguments of a function that is a gradient: the gradients of the results, then what it reads of the op's arguments,
/// then of its results.
pub(crate) fn arguments_of_gradient(op: &Op) -> Vec<TokenStream> {
    let grads: Vec<&Value> = op.results.iter().filter(|result| result.has_gradient()).collect();
    let saved = op.operands().filter(|operand| op.is_saved(&operand.name)).count();
    let arguments = arguments_behind(op, grads.len(), &quote!(place), |name| op.is_saved(name));
    let results = op.saved_results().enumerate().map(|(k, result)| operand(result, grads.len() + saved + k));
    let grads = grads.iter().enumerate().map(|(k, grad)| operand(grad, k));
    grads.chain(arguments).chain(results).collect()
}

/// Operand `k` of a formula.
fn operand(value: &Value, k: usize) -> TokenStream {
    let (core, values, truths) = (core(), hidden("values"), hidden("truths"));
    let value_of = if value.is_bool() { quote!(#truths[#k]) } else { quote!(#values[#k]) };
    if value.is_row { quote!(#core::rows::PerRow(#value_of)) } else { value_of }
}

/// The arguments, those that are there, with operands from number `before` on, and the row by a method of `Asked`.
fn arguments_behind(op: &Op, before: usize, row: &TokenStream, is_there: impl Fn(&Ident) -> bool) -> Vec<TokenStream> {
    let mut words = RANDOM_WORDS.iter().map(|name| hidden(name));
    let mut operands = before..;
    let mut indices = dimensions(op).iter();
    let mut argument = |argument: &Argument| match argument {
        Argument::Operand(value) if is_there(&value.name) => operands.next().map(|k| operand(value, k)),
        Argument::Param(param) if is_there(&param.name) => {
            let name = &param.name;
            Some(quote!(self.#name))
        }
        Argument::Operand(_) | Argument::Param(_) => None,
        Argument::Bits(_) => {
            let word = words.next();
            Some(quote!(#word))
        }
        Argument::Row(_) => {
            let asked = hidden("asked");
            Some(quote!(#asked.#row()))
        }
        Argument::Index => {
            let index = indices.next().map(|name| hidden(name));
            Some(quote!(#index))
        }
    };
    op.arguments.iter().filter_map(&mut argument).collect()
}

/// The function as `NAME::formula`, and the trait by which templates and loops call it.
fn formula(op: &Op) -> TokenStream {
    let core = core();
    let form = Form::of(op);
    let mut function = op.function.clone();
    function.sig.ident = Ident::new("formula", op.name.span());
    let function = callable(function);
    let (docs, type_name, ident) = (&op.docs, &op.type_name, &op.generic.ident);
    let arguments = arguments(op);
    let results: Vec<Ident> = (0..op.results.len()).map(|k| hidden(&format!("y{k}"))).collect();
    let pattern = pattern(&results);
    let zero = quote!(<#ident as #core::Value>::ZERO);
    let of_type =
        op.results.iter().zip(&results).map(|(value, y)| if value.is_bool() { zero.clone() } else { quote!(#y) });
    let of_bool =
        op.results.iter().zip(&results).map(|(value, y)| if value.is_bool() { quote!(#y) } else { quote!(false) });
    let implementation = match op.kind {
        OpKind::Generator => generator(op, &arguments),
        OpKind::Rows => rows::formula(op, &arguments),
        _ => implementation(
            &form,
            quote! {
                let #pattern = #type_name::formula::<#ident>(#(#arguments),*);
                ([#(#of_type),*], [#(#of_bool),*])
            },
        ),
    };
    let own = form.own();
    quote! {
        impl #own {
            #(#docs)*
            #function
        }

        #implementation
    }
}

/// The function of an op as formulas call it: public, a part of its caller, without the attributes of arguments.
pub(crate) fn callable(mut function: ItemFn) -> TokenStream {
    function.vis = parse_quote!(pub);
    for input in &mut function.sig.inputs {
        if let FnArg::Typed(argument) = input {
            argument.attrs.clear();
        }
    }
    quote! {
        #[allow(clippy::too_many_arguments)]
        #[inline(always)]
        #function
    }
}

/// The impl of `GeneratorOp`, in f32.
fn generator(op: &Op, arguments: &[TokenStream]) -> TokenStream {
    let (core, type_name) = (core(), &op.type_name);
    let this = Form::of(op).at(&quote!(f32));
    let [plane, row, column] = INDICES.map(hidden);
    quote! {
        #[allow(unused_variables)]
        impl #core::GeneratorOp for #this {
            type Column = [u32; 2];
            #[inline(always)]
            fn column(self, #plane: u32, #column: u32) -> [u32; 2] {
                [#plane, #column]
            }
            #[inline(always)]
            fn element(self, [#plane, #column]: [u32; 2], #row: u32) -> f32 {
                #type_name::formula::<f32>(#(#arguments),*)
            }
        }
    }
}

/// `y0`, or `(y0, y1)`.
pub(crate) fn pattern(names: &[Ident]) -> TokenStream {
    match names {
        [single] => quote!(#single),
        several => quote!((#(#several),*)),
    }
}

/// The impl of `Formula`, of operands in `values` and `truths`, the random words in `bits` and `more_bits`, and the indices.
pub(crate) fn implementation(form: &Form, body: TokenStream) -> TokenStream {
    let core = core();
    let generic = &form.generic;
    let ident = &generic.ident;
    let this = form.at(&quote!(#ident));
    let (operands, results) = form.counts();
    let (values, truths, at) = (hidden("values"), hidden("truths"), hidden("at"));
    let [bits, more_bits] = RANDOM_WORDS.map(hidden);
    let [plane, row, column] = INDICES.map(hidden);
    quote! {
        #[allow(unused_variables)]
        impl<#generic> #core::Formula<#ident, #operands, #results> for #this {
            #[inline(always)]
            fn apply(
                self,
                #values: [#ident; #operands],
                #truths: [bool; #operands],
                #at: #core::At<'_>,
            ) -> ([#ident; #results], [bool; #results]) {
                let #core::At { words: [#bits, #more_bits], index: [#plane, #row, #column] } = #at;
                #body
            }
        }
    }
}
