//! The expansion, as text without spaces. That it compiles and computes what the formula says, the examples test.

use proc_macro2::TokenStream;
use quote::quote;

use crate::pack::Pack;

/// Expands the attribute with these words.
fn expand(words: TokenStream, function: TokenStream, pack: impl FnOnce(&str) -> Pack) -> syn::Result<TokenStream> {
    crate::expand(syn::parse2(words)?, function, pack)
}

/// The expansion, without spaces.
fn expansion(words: TokenStream, function: TokenStream) -> String {
    let items = expand(words, function, |_| Pack::empty("no kernels")).unwrap();
    syn::parse2::<syn::File>(items.clone()).unwrap();
    plain(items)
}

fn plain(tokens: TokenStream) -> String {
    tokens.to_string().split_whitespace().collect()
}

#[track_caller]
fn assert_has(text: &str, tokens: TokenStream) {
    let part = plain(tokens);
    assert!(text.contains(&part), "not there: {part}");
}

fn snake() -> TokenStream {
    quote! {
        /// Snake.
        #[inline]
        pub fn snake<T: Real>(x: T, #[param(default = 1.0)] a: T) -> T { let s = (a * x).sin(); x + s * s / a }
    }
}

#[test]
fn a_gated_op_has_functions_of_halves_and_of_pairs() {
    let gate = quote!(
        pub fn gate<T: Real>(a: T, b: T) -> T {
            a * b
        }
    );
    let text = expansion(quote!(f32, exact, gated), gate);
    for name in
        ["gate", "gate_into", "gate_backward", "gate_pair", "gate_pair_into", "gate_pair_inplace", "gate_pair_backward"]
    {
        assert!(text.contains(&format!("fn{name}<")), "{name}");
    }
    assert!(!text.contains("fngate_inplace"));
    assert!(text.contains("Kind::Gated,") && text.contains("Kind::GatedGradients,"));
}

#[test]
fn an_op_of_indices_has_no_gradient_and_two_kernels() {
    let mask = quote!(
        pub fn mask<T: Real>(row: Index, column: Index) -> T {
            if column > row { T::ZERO } else { T::ONE }
        }
    );
    let text = expansion(quote!(f32, exact), mask);
    assert_has(&text, quote!(Mask::formula::<f32>(row, column)));
    assert!(text.contains("\"formula_mask_f32_direct\"") && text.contains("\"formula_mask_f32_vectors\""));
    assert!(!text.contains("mask_backward") && !text.contains("OpData"));
}

#[test]
fn an_impl_is_the_function_that_calls_it() {
    let own = quote!(
        /// Own.
        impl<T: Real> UnaryOp<T> for OwnOp<T> {
            type Output = T;
            fn apply(self, x: T) -> Self::Output {
                self.slope * x
            }
        }
    );
    let text = expansion(quote!(f32, exact, params(slope = 0.5)), own);
    assert!(text.contains("]impl<T:Real>UnaryOp<T>forOwnOp<T>{"), "{text}");
    assert_has(&text, quote!(<OwnOp<T> as UnaryOp<T>>::apply(OwnOp { slope }, x)));
    assert!(text.contains("fnown_op_inplace<") && text.contains("formula:\"self.slope*x\""), "{text}");
    assert!(!text.contains("structOwnOp<") && text.contains("structOwnOpBackward<"));
}

#[test]
fn the_formula_stays() {
    let text = expansion(quote!(f32, bf16, ulp = 8), snake());
    assert_has(
        &text,
        quote!(
            pub struct Snake<T = f64> {
                pub a: T,
            }
        ),
    );
    assert_has(
        &text,
        quote! {
            #[inline(always)]
            #[inline]
            pub fn formula<T: Real>(x: T, a: T) -> T { let s = (a * x).sin(); x + s * s / a }
        },
    );
    assert!(text.contains("Snake{a:(1.0)asf64,}"));
    assert_has(
        &text,
        quote! {
            let y0 = Snake::formula::<T>(values[0usize], self.a);
            ([y0], [false])
        },
    );
}

#[test]
fn formulas_call_the_function_alone() {
    let function = syn::parse_quote! {
        /// Kept.
        fn own<T: Real>(#[channel] x: T, #[param(default = 1.0)] a: T) -> T { x * a }
    };
    let expected = quote! {
        #[allow(clippy::too_many_arguments)]
        #[inline(always)]
        /// Kept.
        pub fn own<T: Real>(x: T, a: T) -> T { x * a }
    };
    assert_eq!(plain(crate::common::callable(function)), plain(expected));
}

#[test]
fn data_say_what_the_signature_says() {
    let text = expansion(
        quote!(f32, f16, exact, grad = none, results(y, kept)),
        quote! {
            /// Two lines
            /// of text.
            fn both<T: Real>(
                mask: bool, x: T, bits: RandomWord, #[param(default = 0.5, probability)] p: T, #[param(default = -3)] n: i64,
                #[param(default = true)] flag: bool, #[param] limit: Option<T>,
            ) -> (T, bool) { (x, mask) }
        },
    );
    assert_has(
        &text,
        quote! {
            name: "both",
            kind: ::pointwise::__private::core::Kind::Formula,
            gradient_of: ::core::option::Option::None,
            operands: &["mask", "x"],
            operand_types: &[
                ::core::option::Option::Some(::pointwise::__private::core::DType::Bool),
                ::core::option::Option::None
            ],
            result_types: &[
                ::core::option::Option::None,
                ::core::option::Option::Some(::pointwise::__private::core::DType::Bool)
            ],
            channel_operands: 0u16,
            random: &[::pointwise::__private::core::Each::Element],
            indices: 0u8,
            results: &["y", "kept"],
        },
    );
    for (kind, name, default) in
        [("Probability", "p", "(0.5)asf64"), ("Flag", "flag", "(true)asu8asf64"), ("Open", "limit", "0.0")]
    {
        let param = format!(
            "ParamInfo{{kind:::pointwise::__private::core::ParamKind::{kind},..::pointwise::__private::core::ParamInfo::number(\"{name}\",{default})}}"
        );
        assert!(text.contains(&param), "{param}");
    }
    assert!(text.contains("ParamInfo::whole(\"n\",-3)") && text.contains("n:-3,"), "{text}");
    assert!(text.contains("Accuracy::Exact") && text.contains("doc:\"Twolines\\noftext.\""));
    // The words of parameters, an open one last, in two.
    assert_has(&text, quote!(n: words[1usize] as i64));
    assert_has(&text, quote!(flag: words[2usize] != 0));
    assert!(text.contains("ifwords[3usize]!=0{") && text.contains("Word::from_word(words[4usize])"));
    assert_has(
        &text,
        quote!(Both::formula::<T>(truths[0usize], values[1usize], bits, self.p, self.n, self.flag, self.limit)),
    );
    assert_has(&text, quote!(([y0, <T as ::pointwise::__private::core::Value>::ZERO], [false, y1])));
}

#[test]
fn an_entry_for_each_type_and_class() {
    let text = expansion(quote!(f32, f8e4m3, ulp = 8), snake());
    for (op, types) in [("snake", &[("f32", "plain"), ("f8e4m3", "fp8")][..]), ("snake_backward", &[("f32", "plain")])]
    {
        for (element, inherits) in types {
            for class in ["flat", "rows", "strided"] {
                let symbol = format!("formula_{op}_{element}_{class}");
                assert_has(&text, quote!(#[cfg(target_arch = "nvptx64")] #[cfg(not(pointwise_inherits = #inherits))]));
                let facts = "row={word}op=snakeloads={loads}stores={stores}slots={slots}";
                assert!(text.contains(&format!("::pointwise::__asm!(\"//entry{symbol}:{facts}\",")), "{symbol}");
                assert_has(&text, quote!(#[unsafe(export_name = #symbol)]));
            }
        }
    }
    // One operand of fp8 has a table of all codes.
    assert!(text.contains("::pointwise::__asm!(\"//entryformula_snake_f8e4m3_table:row="));
    assert!(text.contains(".with_codes(\"formula_snake_f8e4m3_table\","));
    // A body for each compute type but that of fp8.
    for op in ["snake", "snake_backward"] {
        assert!(text.contains(&format!("::pointwise::__asm!(\"//entryformula_{op}_f32_body:row=")), "{op}");
        assert!(text.contains(&format!(".with_body(\"formula_{op}_f32_body\",")), "{op}");
    }
    assert_eq!(text.matches("extern\"gpu-kernel\"").count(), 12);
    let random = expansion(
        quote!(f32, exact),
        quote!(
            fn noise<T: Real>(x: T, mask: bool, bits: RandomWord) -> (T, bool) {
                (x, mask)
            }
        ),
    );
    // Results, operands, elements, mode, numbers, steps, what is drawn.
    let parameters = "fn__formula_noise_f32_rows(y0:*mut::pointwise::__private::core::element::ty::f32,\
         y1:*mut::pointwise::__private::core::element::ty::bool,x0:*const::pointwise::__private::core::element::ty::f32,\
         x1:*const::pointwise::__private::core::element::ty::bool,items:u32,mode:u32,w0:u64,w1:u64,\
         steps:::pointwise::__private::core::launch::Steps<4usize,{::pointwise::__private::core::launch::ROW_SPLITS}>,\
         draw:::pointwise::__private::core::Draw,)";
    assert!(random.contains(parameters), "{random}");
}

#[test]
fn the_gradient_is_derived_or_written_or_none() {
    let derived = expansion(quote!(f32, ulp = 8), snake());
    assert!(
        derived.contains("Accuracy::Cancels(16f32)") && derived.contains("operands:&[\"grad\",\"x\"]"),
        "{derived}"
    );
    assert!(derived.contains("results:&[\"grad_x\"]"));
    assert_has(
        &derived,
        quote! {
            let y0 = Snake::formula(
                ::pointwise::__private::core::dual::Dual::<T, 1usize>::variable(values[1usize], 0usize, values[0usize]),
                ::pointwise::__private::core::dual::Dual::<T, 1usize>::constant(self.a)
            );
            ([y0.gradient(0usize)], [false])
        },
    );
    assert!(derived.contains("pubfnsnake_backward<'a>(grad:"), "{derived}");

    // Of several results each has its derivatives, and a bool has none.
    let several = expansion(
        quote!(f32, exact, grad_ulp = 6),
        quote!(
            fn both<T: Real>(x: T, keep: bool, y: T) -> (T, bool, T) {
                (x, keep, y)
            }
        ),
    );
    assert!(
        several.contains("operands:&[\"grad_y0\",\"grad_y2\",\"x\",\"keep\",\"y\"],operand_types:&[::core::option::Option::None,::core::option::Option::None,::core::option::Option::None,::core::option::Option::Some("),
        "{several}"
    );
    assert!(several.contains("Accuracy::Cancels(6f32)"));
    let sum = |k: usize| quote!(values[0usize] * y0.gradient(#k) + values[1usize] * y2.gradient(#k));
    let (of_x, of_y) = (sum(0), sum(1));
    assert_has(&several, quote!(([#of_x, #of_y], [false, false])));

    let written = expansion(quote!(f32, exact, grad = self::slope), snake());
    assert_has(&written, quote!(let y0 = self::slope(values[0usize], values[1usize], self.a);));
    for words in [quote!(f32, exact, grad = none), quote!(f32, exact)] {
        let is_none = words.to_string().contains("none");
        let text = expansion(words, snake());
        assert_eq!(text.contains("SnakeBackward"), !is_none);
    }
    // Integers have none, nor has fp8, unless it is named.
    let twice = quote!(
        fn twice<T: Num>(x: T) -> T {
            x + x
        }
    );
    assert!(!expansion(quote!(i32, exact), twice.clone()).contains("Backward"));
    let of_floats = expansion(quote!(f32, f8e4m3, i32, exact), twice.clone());
    assert!(of_floats.contains("impl<T:::pointwise::__private::core::Real>"), "{of_floats}");
    let has = |text: &str, each: &str| text.contains(&format!("\"formula_twice_backward_{each}_flat\""));
    assert_eq!(["f32", "f8e4m3", "i32"].map(|each| has(&of_floats, each)), [true, false, false]);
    let named = expansion(quote!(f32, f8e4m3, i32, exact, grad_types(f8e4m3)), twice);
    assert_eq!(["f32", "f8e4m3", "i32"].map(|each| has(&named, each)), [false, true, false]);

    // Some arguments alone are read.
    let saved = expansion(
        quote!(f32, exact, saves(a, slope)),
        quote!(
            fn pair<T: Real>(
                a: T,
                keep: bool,
                b: T,
                #[param(default = 0.5)] slope: T,
                #[param(default = 2)] n: i64,
            ) -> T {
                a
            }
        ),
    );
    assert!(saved.contains("operands:&[\"grad\",\"a\"]"), "{saved}");
    assert_has(
        &saved,
        quote!(
            pub struct PairBackward<T = f64> {
                pub slope: T,
            }
        )
        .into_iter()
        .skip(1)
        .collect(),
    );
    let dual = quote!(::pointwise::__private::core::dual::Dual::<T, 2usize>);
    assert_has(
        &saved,
        quote! {
            Pair::formula(
                #dual::variable(values[1usize], 0usize, values[0usize]),
                false,
                #dual::variable(<T as ::pointwise::__private::core::Value>::ONE, 1usize, values[0usize]),
                #dual::constant(self.slope),
                2
            )
        },
    );
}

#[test]
fn functions_of_the_host() {
    let text = expansion(
        quote!(f32, exact),
        quote!(
            pub(crate) fn first<T: Real>(a: T, b: T) -> T {
                a
            }
        ),
    );
    for function in ["first<'a>(a:", "first_into<'a,'b>(a:", "first_inplace<'b,'a>(a:", "first_backward<'a>(grad:"] {
        assert!(text.contains(&format!("pub(crate)fn{function}")), "{function}: {text}");
    }
    // A comparison cannot be written to its operand, nor can the first of several results.
    let text = expansion(
        quote!(f32, exact),
        quote!(
            fn is_one<T: Real>(x: T) -> bool {
                x == T::ONE
            }
        ),
    );
    assert!(text.contains("fnis_one_into") && !text.contains("inplace") && !text.contains("backward"));
    let text = expansion(
        quote!(f32, exact),
        quote!(
            fn two<T: Real>(x: T) -> (T, T) {
                (x, x)
            }
        ),
    );
    assert!(!text.contains("fntwo_inplace") && text.contains("Result<(::pointwise::Tensor,::pointwise::Tensor)>"));
    // The gradient has one result, and can be written to that of the gradients of the results.
    assert!(text.contains("fntwo_backward_into<") && text.contains("fntwo_backward_inplace<"));
    // A number alone needs no gradient, and one operand no lifetime for others.
    assert!(
        expansion(
            quote!(f32, exact),
            quote!(
                fn one<T: Real>(x: T) -> T {
                    x
                }
            )
        )
        .contains("fnone_inplace<'b,>(x:")
    );
}

#[test]
fn integers_and_bits() {
    let text = expansion(
        quote!(ints, bool),
        quote!(
            fn flip<T: Bits>(x: T) -> T {
                !x
            }
        ),
    );
    assert!(text.contains("DType::I8") && text.contains("DType::Bool") && text.contains("Accuracy::Exact"));
    // f64 has no bits.
    assert!(!text.contains("oracle::<") && text.contains("Option::None"));
}

/// Names in the expansion may be anybody's, so `unsafe` on the host calls nothing: it is one impl with literals.
#[test]
fn the_host_s_unsafe_is_an_impl_of_literals() {
    let index = quote!(
        fn index<T: Real>(column: Index) -> T {
            T::ONE
        }
    );
    let gated = quote!(
        fn gate<T: Real>(a: T, b: T) -> T {
            a * b
        }
    );
    for (words, function) in
        [(quote!(floats, ulp = 8), snake()), (quote!(f32, exact), index), (quote!(f32, exact, gated), gated)]
    {
        let items = expand(words, function, |_| Pack::empty("none")).unwrap();
        let mut file = syn::parse2::<syn::File>(items).unwrap();
        let is_device = |attribute: &syn::Attribute| {
            attribute.path().is_ident("cfg")
                && attribute.meta.require_list().unwrap().tokens.to_string().starts_with("target_arch")
        };
        file.items.retain(|item| match item {
            syn::Item::Fn(function) => !function.attrs.iter().any(is_device),
            syn::Item::Macro(item) => !item.attrs.iter().any(is_device),
            _ => true,
        });
        let host = plain(quote!(#file));
        assert_eq!(host.matches("unsafe").count(), 1, "{host}");
        let own = quote! {
            unsafe impl ::pointwise::__private::Packed for Own {
                const POINTWISE_PACK: ::pointwise::__private::Pack = ("none", "", &[]);
            }
        };
        assert_has(&host, own);
    }
}

#[test]
fn what_the_device_compiler_says_is_an_error_at_the_op() {
    let pack = Pack { error: Some("not for the GPU".to_owned()), ..Pack::empty("none") };
    let no_op = || Pack { no_op: Some("a method".to_owned()), ..Pack::empty("none") };
    assert_eq!(expand(quote!(f32, exact), snake(), |_| no_op()).unwrap_err().to_string(), "a method");
    let warned = Pack { warning: Some("no kernels".to_owned()), ..Pack::empty("none") };
    let warned = plain(expand(quote!(f32, exact), snake(), |_| warned).unwrap());
    assert!(warned.contains("#[deprecated(note=\"nokernels\")]constsnake:()=();snake};"), "{warned}");
    let text = plain(expand(quote!(f32, exact), snake(), |name| (name == "snake").then_some(pack).unwrap()).unwrap());
    assert!(text.contains("#[cfg(not(target_arch=\"nvptx64\"))]::core::compile_error!{\"notfortheGPU\"}"), "{text}");
}

#[test]
fn a_row_has_a_round_for_each_reduction() {
    let text = expansion(
        quote!(f32, ulp = 8, results(y, scale: f32)),
        quote! {
            fn soft<T: Real>(x: T, row: Row<T>) -> (T, PerRow<T>) {
                let e = (x - row.max(x).detach()).exp();
                let sum = row.sum(e);
                (e / sum, PerRow(sum))
            }
        },
    );
    let [max, sum] = ["Max", "Sum"].map(reduction);
    assert_has(&text, quote!(= &[&[#max], &[#sum]];));
    // The gradient does not go through the largest: it has one sum, of the derivative by the other answer.
    assert_has(&text, quote!(= &[&[#max], &[#sum], &[#sum]];));
    assert_has(&text, quote!(row_operands: 0u16, row_results: 2u16,));
    assert_has(&text, quote!(operands: &["grad_y", "grad_scale", "x"],));
    assert!(text.contains("formula_soft_f32_held") && text.contains("formula_soft_f32_streamed"));
}

#[test]
fn an_element_of_another_type_has_its_own_slot() {
    let text = expansion(
        quote!(f32, f16, ulp = 1, results(y, state: f32)),
        quote! {
            fn mixed<T: Real>(x: T, #[stored(f32)] scale: T, #[stored(i64)] count: T) -> (T, T) {
                (x * scale, x + count)
            }
        },
    );
    let [none, f32s, i64s] = [
        quote!(::core::option::Option::None),
        quote!(::core::option::Option::Some(::pointwise::__private::core::DType::F32)),
        quote!(::core::option::Option::Some(::pointwise::__private::core::DType::I64)),
    ];
    assert_has(&text, quote!(operand_types: &[#none, #f32s, #i64s], result_types: &[#none, #f32s],));
    // The gradients: of both results, and of the operands that are floats.
    assert_has(&text, quote!(operand_types: &[#none, #f32s, #none, #f32s, #i64s], result_types: &[#none, #f32s],));
    assert_has(&text, quote!(results: &["grad_x", "grad_scale"]));
    assert!(!text.contains("formula_mixed_f32_body"), "no body");
}

#[test]
fn a_result_of_fewer_bits_has_no_gradient() {
    let text = expansion(
        quote!(f32, ulp = 1, results(q: i8)),
        quote!(
            fn cut<T: Real>(x: T) -> T {
                x
            }
        ),
    );
    assert!(!text.contains("cut_backward"));
}

/// Returns the path of a reduction.
fn reduction(name: &str) -> TokenStream {
    let name = quote::format_ident!("{name}");
    quote!(::pointwise::__private::core::rows::Reduction::#name)
}

#[test]
fn reductions_that_need_no_answer_share_a_round() {
    let text = expansion(
        quote!(f32, ulp = 4, grad = none),
        quote! {
            fn loss<T: Real>(x: T, #[stored(i64)] label: PerRow<T>, row: Row<T>) -> PerRow<T> {
                let largest = row.max(x);
                let own = row.sum(if row.index() == label.0 { x } else { T::ZERO });
                let e = (x - largest).exp();
                PerRow(row.sum(e).ln() + largest - own)
            }
        },
    );
    let [max, sum] = ["Max", "Sum"].map(reduction);
    assert_has(&text, quote!(= &[&[#max, #sum], &[#sum]];));
    assert_has(&text, quote!(row_operands: 2u16, row_results: 1u16,));
}

#[test]
fn a_variance_has_no_gradient_through_its_mean() {
    let text = expansion(
        quote!(f32, ulp = 4),
        quote! {
            fn normal<T: Real>(x: T, row: Row<T>) -> T {
                let (var, mean) = row.var_mean(x);
                (x - mean) * var.rsqrt()
            }
        },
    );
    let [mean, sum] = ["Mean", "Sum"].map(reduction);
    assert_has(&text, quote!(= &[&[#mean], &[#mean]];));
    // The sums of the derivatives by both answers, and none of the variance by the mean.
    assert_has(&text, quote!(= &[&[#mean], &[#mean], &[#sum, #sum]];));
}

#[test]
fn a_reduction_that_needs_an_answer_has_a_sum_through_it() {
    let text = expansion(
        quote!(f32, ulp = 4),
        quote! {
            fn both<T: Real>(x: T, row: Row<T>) -> T {
                let mean = row.mean(x);
                let (largest, other) = (row.max(x), row.sum(x * mean));
                x * other - largest
            }
        },
    );
    let [mean, sum, max] = ["Mean", "Sum", "Max"].map(reduction);
    assert_has(&text, quote!(= &[&[#mean, #max], &[#sum]];));
    // By three answers, of the sum by the mean, and of the elements that are the largest.
    assert_has(&text, quote!(= &[&[#mean, #max], &[#sum], &[#sum, #sum, #sum, #sum, #sum]];));
}

#[test]
fn a_result_that_the_gradient_reads_is_kept() {
    let text = expansion(
        quote!(f32, f16, ulp = 4, results(y, total: f32), saves(x, total), grad = shares),
        quote! {
            fn share<T: Real>(x: T, row: Row<T>) -> (T, PerRow<T>) {
                let total = row.sum(x);
                (x / total, PerRow(total))
            }
        },
    );
    assert_has(&text, quote!(kept_results: 2u16,));
    // The gradients: of the first result alone, without a round.
    assert_has(&text, quote!(operands: &["grad", "x", "total"],));
    assert_has(&text, quote!(row_operands: 4u16, row_results: 0u16,));
    assert_has(&text, quote!(= &[];));
    assert_has(&text, quote!(asked.place(), ::pointwise::__private::core::rows::PerRow(values[2usize])));
}

#[test]
fn a_gradient_reads_a_sum_in_the_place_of_its_terms() {
    let function = quote! {
        fn scaled<T: Real>(x: T, residual: T, scale: T, row: Row<T>) -> (T, T) {
            let sum = x + residual;
            (sum / row.sum(sum) * scale, sum)
        }
    };
    let text = expansion(quote!(f32, ulp = 4, results(y, sum), through(sum = x + residual)), function.clone());
    assert_has(&text, quote!(shared_gradients: 2u16,));
    assert_has(&text, quote!(operands: &["grad_y", "grad_sum", "scale", "sum"],));
    assert_has(&text, quote!(results: &["grad_x", "grad_scale"],));
    let fails = |attribute: TokenStream, why: &str| {
        let message = expand(attribute, function.clone(), |_| unreachable!()).unwrap_err().to_string();
        assert!(message.contains(why), "{message}");
    };
    fails(quote!(f32, ulp = 4, results(y, sum), through(total = x + residual)), "`total` is no result");
    fails(quote!(f32, ulp = 4, results(y, sum), through(sum = x + scale)), "one after the other");
    fails(quote!(f32, ulp = 4, results(y, sum), saves(x, scale), through(sum = x + residual)), "remove this name");
    fails(quote!(f32, ulp = 4, results(y, sum), through(sum = x + residual), grad = none), "derived gradient");
    fails(quote!(f32, ulp = 4, results(y, sum), through), "write the result and its terms");
}

#[test]
fn gradients_of_weights_are_summed() {
    let text = expansion(
        quote!(f32, ulp = 4),
        quote! {
            fn scaled<T: Real>(x: T, #[weight] weight: T, row: Row<T>) -> T {
                x / row.sum(x) * weight
            }
        },
    );
    assert_has(&text, quote!(weight_operands: 2u16, weight_results: 0u16,));
    // The gradients: of grad, x and weight.
    assert_has(&text, quote!(weight_operands: 4u16, weight_results: 2u16,));
    assert_has(&text, quote!(.with_sums::<));
    for class in ["held_sum", "streamed_sum", "fold"] {
        let symbol = format!("formula_scaled_backward_f32_{class}");
        assert_has(&text, quote!(#[unsafe(export_name = #symbol)]));
        let of_the_op = format!("formula_scaled_f32_{class}");
        assert!(!text.contains(&of_the_op));
    }
}

#[test]
fn a_row_may_be_a_group() {
    let text = expansion(
        quote!(f32, ulp = 4, row = 128, results(y, scale)),
        quote! {
            fn scaled<T: Real>(x: T, row: Row<T>) -> (T, PerRow<T>) {
                let scale = row.max(x);
                (x / scale, PerRow(scale))
            }
        },
    );
    // The op and its gradients.
    assert_eq!(text.matches("group:128u32,").count(), 2);
    assert!(text.contains("agroupof128neighbours"));
}
