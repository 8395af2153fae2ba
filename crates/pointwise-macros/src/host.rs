//! The parts of an op on the host: its definition, and functions.

mod generator;

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use crate::common::{Form, hidden};
use crate::device::{made, types};
use crate::pack::Pack;
use crate::signature::{Op, OpKind, ParamKind};

/// All of it, which does not exist on the device.
pub(crate) fn items(op: &Op, pack: Pack) -> TokenStream {
    let is_there = quote!(#[cfg(not(target_arch = "nvptx64"))]);
    let (form, gradient) = (Form::of(op), op.has_gradient().then(|| Form::gradient_of(op)));
    let (definition, functions) = match op.kind {
        OpKind::Elementwise | OpKind::Rows => {
            let mut functions = functions(op, &form, form.has_inplace());
            functions
                .extend(gradient.iter().flat_map(|gradient| self::functions(op, gradient, gradient.has_inplace())));
            functions.extend(lazy(op, &form));
            (definition(op, &pack.kernels), functions)
        }
        OpKind::Gated => {
            let mut functions = functions(op, &Form::of(op).named(format!("{}_pair", op.name)), true);
            functions.extend(lazy(op, &form));
            functions.extend(gated(op));
            if let Some(gradient) = gradient {
                functions.extend(gated_gradient(op, &gradient));
                functions.push(function(op, &gradient.named(format!("{}_pair_backward", op.name))));
            }
            (definition(op, &pack.kernels), functions)
        }
        OpKind::Generator => (generator::definition(op, &pack.kernels), generator::functions(op)),
    };
    let error = pack.error.map(|why| {
        let error = syn::Error::new(op.name.span(), why).into_compile_error();
        quote!(#is_there #error)
    });
    // A macro has no warnings of its own: that of a deprecated constant says it.
    let warning = pack.warning.map(|why| {
        let name = &op.name;
        quote! {
            #is_there
            const _: () = {
                #[allow(non_upper_case_globals)]
                #[deprecated(note = #why)]
                const #name: () = ();
                #name
            };
        }
    });
    quote! {
        #is_there
        #definition

        #(#is_there #functions)*

        #error
        #warning
    }
}

/// `NAME::def()` and `NAME { .. }.kernel()`, with the statics that they give out.
fn definition(op: &Op, kernels: &TokenStream) -> TokenStream {
    let vis = &op.vis;
    let forms = Form::all(op);
    let [def, backward] = ["OP", "BACKWARD"].map(hidden);
    let statics = [&def, &backward].into_iter().zip(&forms).map(|(name, form)| {
        let backward = (form.name == op.symbol() && op.has_gradient()).then_some(&backward);
        definition_of(op, form, name, backward)
    });
    let type_name = &op.type_name;
    let (own, params) = (forms[0].own(), numbers(op));
    let (kernel, with) = match op.kind {
        OpKind::Gated => (quote!(GatedKernel), quote!(gated_with)),
        _ => (quote!(Kernel<'static>), quote!(kernel)),
    };
    let gradient = forms.get(1).map(|form| {
        let own = form.own();
        quote! {
            #[allow(dead_code)]
            impl #own {
                /// The op as data.
                #vis fn def() -> &'static ::pointwise::kernel::OpDef {
                    &#backward
                }
            }
        }
    });
    // The kernels of the family are one pack.
    let kernels = (!op.is_of_family).then(|| kernel_set(kernels));
    let place = place();
    quote! {
        const _: () = {
            #kernels
            #(#statics)*

            ::pointwise::__private::inventory::submit! {
                ::pointwise::__private::Declared::new(&#def, #place)
            }

            #[allow(dead_code)]
            impl #own {
                /// The op as data.
                #vis fn def() -> &'static ::pointwise::kernel::OpDef {
                    &#def
                }

                /// The op with these parameters and launch settings.
                #vis fn kernel(self) -> ::pointwise::kernel::#kernel {
                    #type_name::def().#with(&[#(#params),*])
                }
            }

            #gradient
        };
    }
}

/// Returns the place of the op: its package, its module and its line.
fn place() -> TokenStream {
    quote! {
        ::pointwise::__private::Place {
            package: ::core::env!("CARGO_PKG_NAME"),
            module: ::core::module_path!(),
            line: ::core::line!(),
        }
    }
}

/// The static of the kernels.
///
/// This is the only `unsafe` of an op on the host. The names around it may be anybody's (`extern crate self as pointwise`),
/// so none of them has a say: nothing is called, and the constant is of literals. Whatever `Packed` is, it is an unsafe trait
/// with this constant, which code without `unsafe` cannot declare.
fn kernel_set(pack: &TokenStream) -> TokenStream {
    let kernel_set = hidden("KERNELS");
    quote! {
        static #kernel_set: ::pointwise::__private::Kernels = {
            struct Own;
            // SAFETY: the literals are what `pointwise-build` compiled of this package's ops.
            unsafe impl ::pointwise::__private::Packed for Own {
                const POINTWISE_PACK: ::pointwise::__private::Pack = #pack;
            }
            ::pointwise::__private::Kernels::of::<Own>()
        };
    }
}

/// The parameters in the struct as numbers.
fn numbers(op: &Op) -> impl Iterator<Item = TokenStream> {
    op.params().map(|param| {
        let name = &param.name;
        match param.kind {
            ParamKind::Open => quote!(::pointwise::Number::from(self.#name.map(::pointwise::Number::from))),
            _ => quote!(::pointwise::Number::from(self.#name)),
        }
    })
}

/// The static of a definition.
fn definition_of(op: &Op, form: &Form, name: &Ident, backward: Option<&Ident>) -> TokenStream {
    let made = made(op, form);
    let types = types(form);
    let kernels = hidden("KERNELS");
    let kernels = if op.is_of_family { quote!(*::pointwise::embed::embedded()) } else { quote!(#kernels) };
    let (count, typed, info) = (types.len(), made.types(&types, &kernels), made.info());
    let none = quote!(::core::option::Option::None);
    if op.kind == OpKind::Rows {
        let oracle = made.reference_of_rows();
        let list = hidden(&format!("TYPES_OF_{name}"));
        let backward = match backward {
            Some(backward) => quote!(::core::option::Option::Some(&#backward)),
            None => none,
        };
        return quote! {
            static #list: [::pointwise::__private::TypedRows; #count] = #typed;
            static #name: ::pointwise::kernel::OpDef =
                ::pointwise::kernel::OpDef::of_rows(#info, &#list, #oracle, #backward);
        };
    }
    let (oracle, terms) =
        if op.has_oracle { (made.reference(&quote!(f64)), made.terms()) } else { (none.clone(), none.clone()) };
    // Floats alone are rounded step by step.
    let is_stepped = op.is_of_family && (op.is_real() || form.name != op.symbol());
    let stepped =
        if is_stepped { made.reference(&quote!(::pointwise::__private::core::Stepped)) } else { none.clone() };
    let backward = match backward {
        Some(backward) => quote!(::core::option::Option::Some(&#backward)),
        None => none.clone(),
    };
    let list = hidden(&format!("TYPES_OF_{name}"));
    let rewrite = op.family.rewrite.as_ref().filter(|_| form.name == op.symbol());
    let rewriting = rewrite.map(|rewrite| quote!(.rewriting(::pointwise::__family::rewrites::#rewrite)));
    quote! {
        static #list: [::pointwise::__private::Typed; #count] = #typed;
        static #name: ::pointwise::kernel::OpDef =
            ::pointwise::kernel::OpDef::new(#info, &#list, #oracle, #stepped, #terms, #backward) #rewriting;
    }
}

/// Parameters of a function of the host, and what they become.
struct Call {
    operands: Vec<Ident>,
    params: Vec<Ident>,
    /// The place that a random op draws from.
    rng: Option<Ident>,
    type_name: Ident,
}

impl Call {
    fn of(op: &Op, form: &Form) -> Call {
        Call {
            operands: form.operands.iter().map(|operand| operand.name.clone()).collect(),
            params: form.params.iter().map(|param| param.name.clone()).collect(),
            rng: op.is_random().then(|| hidden("rng")),
            type_name: form.type_name.clone(),
        }
    }

    /// The declarations of operands.
    fn tensors(names: &[Ident]) -> TokenStream {
        quote!(#(#names: impl ::core::convert::Into<::pointwise::Operand<'a>>,)*)
    }

    /// The declarations of parameters, and of the place to draw from.
    fn numbers(&self) -> TokenStream {
        let (params, rng) = (&self.params, self.rng.as_ref());
        let rng = rng.map(|rng| quote!(#rng: impl ::core::convert::Into<::pointwise::kernel::Rng<'a>>,));
        quote!(#(#params: impl ::core::convert::Into<::pointwise::Number>,)* #rng)
    }

    /// The op with the parameters.
    fn kernel(&self) -> TokenStream {
        let Call { params, rng, type_name, .. } = self;
        let rng = rng.as_ref().map(|rng| quote!(.rng(#rng)));
        quote!(#type_name::def().kernel(&[#(::core::convert::Into::into(#params)),*]) #rng)
    }

    fn operands(names: &[Ident]) -> TokenStream {
        quote!(&[#(::core::convert::Into::into(#names)),*])
    }
}

/// The name of a function, where the op stands. `where` is a keyword.
fn function_name(name: &str, op: &Ident) -> Ident {
    match syn::parse_str::<Ident>(name) {
        Ok(_) => Ident::new(name, op.span()),
        Err(_) => Ident::new_raw(name, op.span()),
    }
}

/// The function that makes its results.
fn function(op: &Op, form: &Form) -> TokenStream {
    let call = Call::of(op, form);
    let (vis, name) = (&op.vis, function_name(&form.name, &op.name));
    let docs = docs(op, form);
    let (tensors, numbers, kernel) = (Call::tensors(&call.operands), call.numbers(), call.kernel());
    let operands = Call::operands(&call.operands);
    let results: Vec<Ident> = (0..form.results.len()).map(|k| hidden(&format!("result{k}"))).collect();
    let (output, body) = match &*results {
        [_] => (quote!(::pointwise::Tensor), quote!(::pointwise::__private::result(&#kernel, #operands))),
        several => {
            let (count, tensors) = (several.len(), several.iter().map(|_| quote!(::pointwise::Tensor)));
            let body = quote! {
                let [#(#several),*] = ::pointwise::__private::results::<#count>(&#kernel, #operands)?;
                ::core::result::Result::Ok((#(#several),*))
            };
            (quote!((#(#tensors),*)), body)
        }
    };
    quote! {
        #docs
        ///
        /// # Errors
        /// Operands that do not go together, an element type or a number that the op does not take, a missing kernel, out
        /// of memory.
        #[allow(dead_code, clippy::too_many_arguments)]
        #vis fn #name<'a>(#tensors #numbers) -> ::pointwise::Result<#output> {
            #body
        }
    }
}

/// The method of formulas that are fused when the program runs, of an op of the family.
fn lazy(op: &Op, form: &Form) -> Option<TokenStream> {
    let is = |word: &str| op.family.properties.iter().any(|it| it == word);
    let is_fused = op.is_of_family && matches!(op.kind, OpKind::Elementwise | OpKind::Gated) && !op.is_random();
    let [_, others @ ..] = &*form.operands else { return None };
    if !is_fused || is("beneath") {
        return None;
    }
    // The factor of `add` and `sub` is given by name alone.
    let params: Vec<&Ident> =
        if is("factor_alpha") { Vec::new() } else { form.params.iter().map(|param| &param.name).collect() };
    // `where` is a keyword: as in `ops`.
    let name = syn::parse_str::<Ident>(&form.name).unwrap_or_else(|_| format_ident!("{}_cond", form.name));
    let (docs, type_name) = (docs(op, form), &form.type_name);
    let others: Vec<&Ident> = others.iter().map(|operand| &operand.name).collect();
    Some(quote! {
        impl<'a> ::pointwise::fusion::Expr<'a> {
            #docs
            #[must_use]
            #[allow(clippy::should_implement_trait)]
            pub fn #name(
                &self,
                #(#others: impl ::core::convert::Into<::pointwise::fusion::Expr<'a>>,)*
                #(#params: impl ::core::convert::Into<::pointwise::Number>,)*
            ) -> ::pointwise::fusion::Expr<'a> {
                ::pointwise::fusion::Expr::apply(
                    #type_name::def(),
                    [::core::clone::Clone::clone(self), #(::core::convert::Into::into(#others)),*],
                    &[#(::core::convert::Into::into(#params)),*],
                )
            }
        }
    })
}

/// All functions of the op itself.
fn functions(op: &Op, form: &Form, has_inplace: bool) -> Vec<TokenStream> {
    let call = Call::of(op, form);
    let vis = &op.vis;
    let (numbers, kernel) = (call.numbers(), call.kernel());
    let (tensors, operands) = (Call::tensors(&call.operands), Call::operands(&call.operands));
    let is_operand = |name: &Ident| call.operands.contains(name);
    let target = |result: &Ident| if is_operand(result) { format!("{result}_out") } else { result.to_string() };
    let targets: Vec<Ident> = form.results.iter().map(|result| hidden(&target(&result.name))).collect();
    let name = Ident::new(&format!("{}_into", form.name), op.name.span());
    let doc = format!("[`{}()`], written to tensors that are there.", form.name);
    let mut functions = vec![
        function(op, form),
        quote! {
            #[doc = #doc]
            ///
            /// # Errors
            /// Those of the op; a result of another shape, element type or device, or that shares memory with another tensor
            /// of the call.
            #[allow(dead_code, clippy::too_many_arguments)]
            #vis fn #name<'a, 'b>(
                #tensors #(#targets: impl ::core::convert::Into<::pointwise::TensorViewMut<'b>>,)* #numbers
            ) -> ::pointwise::Result<()> {
                #kernel.run_into(#operands, &mut [#(::core::convert::Into::into(#targets)),*])
            }
        },
    ];
    if let (true, [first, others @ ..]) = (has_inplace, &*call.operands) {
        let name = Ident::new(&format!("{}_inplace", form.name), op.name.span());
        let doc = format!("[`{}()`], written back to its first operand.", form.name);
        let (tensors, operands) = (Call::tensors(others), Call::operands(others));
        let lifetime = (!others.is_empty() || op.is_random()).then(|| quote!('a));
        functions.push(quote! {
            #[doc = #doc]
            ///
            /// # Errors
            /// Those of the op; operands that do not broadcast to the first one's shape.
            #[allow(dead_code, clippy::too_many_arguments)]
            #vis fn #name<'b, #lifetime>(
                #first: impl ::core::convert::Into<::pointwise::TensorViewMut<'b>>, #tensors #numbers
            ) -> ::pointwise::Result<()> {
                #kernel.run_inplace(::core::convert::Into::into(#first), #operands)
            }
        });
    }
    functions
}

/// The functions of a gated op on the halves of one tensor.
fn gated(op: &Op) -> Vec<TokenStream> {
    let form = Form::of(op);
    let call = Call::of(op, &form);
    let (vis, name, type_name, params) = (&op.vis, &op.name, &op.type_name, &call.params);
    let into = format_ident!("{name}_into");
    let (docs, numbers) = (docs(op, &form), call.numbers());
    let kernel = quote!(#type_name::def().gated_with(&[#(::core::convert::Into::into(#params)),*]));
    let [gate, value] = [&call.operands[0], &call.operands[1]];
    let halves = format!(
        "`x` of shape `(.., 2N)` has `{gate}`, then `{value}` in its last dimension; the result has shape `(.., N)`. \
         [`{name}_pair()`] takes two tensors."
    );
    let doc_into = format!("[`{name}()`], written to a tensor that is there.");
    vec![
        quote! {
            #docs
            ///
            #[doc = #halves]
            ///
            /// # Errors
            /// A last dimension that is odd or missing, an element type or a number that the op does not take, a missing
            /// kernel, out of memory.
            #[allow(dead_code)]
            #vis fn #name<'a>(
                x: impl ::core::convert::Into<::pointwise::TensorView<'a>>, #numbers
            ) -> ::pointwise::Result<::pointwise::Tensor> {
                #kernel.run(x)
            }
        },
        quote! {
            #[doc = #doc_into]
            ///
            /// # Errors
            /// Those of the op; a result of another shape, element type or device, or that shares memory with `x`.
            #[allow(dead_code)]
            #vis fn #into<'a, 'b>(
                x: impl ::core::convert::Into<::pointwise::TensorView<'a>>,
                y: impl ::core::convert::Into<::pointwise::TensorViewMut<'b>>,
                #numbers
            ) -> ::pointwise::Result<()> {
                #kernel.run_into(x, y)
            }
        },
    ]
}

/// The functions of the gradient of a gated op, in the halves of one tensor.
fn gated_gradient(op: &Op, form: &Form) -> Vec<TokenStream> {
    let call = Call::of(op, form);
    let (vis, name, params) = (&op.vis, Ident::new(&form.name, op.name.span()), &call.params);
    let into = format_ident!("{name}_into");
    let (type_name, numbers) = (&form.type_name, call.numbers());
    let doc = format!("The gradient of [`{}()`]: of `grad` of shape `(.., N)`, in the shape of `x`.", op.name);
    let doc_into = format!("[`{name}()`], written to a tensor that is there.");
    let kernel = quote!(#type_name::def().gated_gradients(&[#(::core::convert::Into::into(#params)),*]));
    vec![
        quote! {
            #[doc = #doc]
            ///
            /// # Errors
            /// A last dimension that is odd or missing, a `grad` that does not broadcast to the op's result, an element
            /// type or a number that the op does not take, a missing kernel, out of memory.
            #[allow(dead_code)]
            #vis fn #name<'a>(
                grad: impl ::core::convert::Into<::pointwise::Operand<'a>>,
                x: impl ::core::convert::Into<::pointwise::TensorView<'a>>,
                #numbers
            ) -> ::pointwise::Result<::pointwise::Tensor> {
                #kernel.run(grad, x)
            }
        },
        quote! {
            #[doc = #doc_into]
            ///
            /// # Errors
            /// Those of the op; a result of another shape, element type or device, or that shares memory with an operand.
            #[allow(dead_code)]
            #vis fn #into<'a, 'b>(
                grad: impl ::core::convert::Into<::pointwise::Operand<'a>>,
                x: impl ::core::convert::Into<::pointwise::TensorView<'a>>,
                y: impl ::core::convert::Into<::pointwise::TensorViewMut<'b>>,
                #numbers
            ) -> ::pointwise::Result<()> {
                #kernel.run_into(grad, x, y)
            }
        },
    ]
}

/// The documentation of a function.
fn docs(op: &Op, form: &Form) -> TokenStream {
    let names = |values: &[crate::signature::Value]| {
        values.iter().map(|value| format!("`{}`", value.name)).collect::<Vec<_>>().join(", ")
    };
    let mut text = String::new();
    if form.results.len() > 1 {
        text += &format!("Returns {}.", names(&form.results));
    }
    for param in &form.params {
        let (name, default) = (&param.name, &param.default);
        let default = match param.kind {
            ParamKind::Open => "none".to_owned(),
            _ => quote!(#default).to_string(),
        };
        text += &format!(" `{name}` is {default} by default.");
    }
    if op.group != 0 {
        let group = op.group;
        text += &format!(
            " A row is a group of {group} neighbours along the last dimension, which is a multiple of {group}."
        );
    }
    let text = text.trim();
    let more = (!text.is_empty()).then(|| quote!(#[doc = ""] #[doc = #text]));
    if form.name == op.symbol() {
        let docs = &op.docs;
        return quote!(#(#docs)* #more);
    }
    if form.type_name == op.type_name {
        let doc = format!("[`{}()`] of two tensors, or of views, which are broadcast.", op.name);
        return quote!(#[doc = #doc] #more);
    }
    let (doc, several) = (&form.doc, form.results.len() > 1);
    let about = format!("The gradient of [`{}()`]: of the gradients of its results, and its operands.", op.symbol());
    let shape = several.then(|| {
        quote! {
            ///
            /// Every gradient has the shape that the operands broadcast to. Sum the gradient of a broadcast operand over
            /// the dimensions along which it was broadcast.
        }
    });
    quote!(#[doc = #doc] #[doc = ""] #[doc = #about] #shape #more)
}
