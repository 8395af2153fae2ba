//! The gradients of an op on rows, by dual numbers.
//!
//! The kernel reduces as the op does, then sums the derivatives by its answers, all in one round. With answers `r_k` to
//! the given values `g_k`, and the gradient `grad` of the result `f`: `total_k = sum(grad df/dr_k) + sum_l rho_l sum(dg_l/dr_k)`
//! over the `l > k` that depend on it, where `rho_k` is `total_k` as a derivative by a given value. The gradient of `x` is
//! `grad df/dx + sum_k rho_k dg_k/dx`.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::{Reduction, given, implementation, results, rounds};
use crate::common::{Form, core, hidden};
use crate::signature::{Argument, Op, Param, ParamKind, Value};

/// Returns the impls of the gradients of an op.
pub(crate) fn gradient(op: &Op) -> TokenStream {
    let core = core();
    let form = Form::gradient_of(op);
    let (forward, sums) = (rounds(op).0, Sums::of(op));
    let reductions = (0..sums.count()).map(|_| quote!(#core::rows::Reduction::Sum));
    let rounds = match sums.count() {
        0 => quote!(&[#(#forward),*]),
        _ => quote!(&[#(#forward,)* &[#(#reductions),*]]),
    };
    let derivatives = Derivatives { op, operands: form.results.len(), sums };
    implementation(&form, &rounds, [derivatives.given(forward.len()), derivatives.solve(), derivatives.results()])
}

/// The sums over a row of derivatives by its answers. Each has a place among what an element gives to the last round; the row's
/// answers have them in this order behind those of the op's own reductions.
struct Sums {
    /// The answers that gradients go through: first are the derivatives of the results by each.
    active: Vec<usize>,
    /// Each answer with a later reduction whose given value depends on it: then, the derivatives of these values.
    pairs: Vec<(usize, usize)>,
    /// The answers that are elements: at the end, how many elements share each.
    chosen: Vec<usize>,
}

impl Sums {
    fn of(op: &Op) -> Sums {
        let active: Vec<usize> = (0..op.asks.len()).filter(|&k| !op.asks[k].is_detached).collect();
        let pairs = active
            .iter()
            .flat_map(|&k| active.iter().map(move |&later| (k, later)))
            .filter(|&(k, later)| later > k && op.asks[later].through >> k & 1 == 1)
            .collect();
        let chosen = active.iter().copied().filter(|&k| op.asks[k].reduction.is_chosen()).collect();
        Sums { active, pairs, chosen }
    }

    fn count(&self) -> usize {
        self.active.len() + self.pairs.len() + self.chosen.len()
    }

    /// Returns the place of the results' derivative by an answer, which is also the number of its tangent.
    fn total(&self, answer: usize) -> usize {
        self.active.iter().position(|&it| it == answer).unwrap_or(0)
    }

    /// Returns the place of the derivative of a later given value by an answer.
    fn pair(&self, answer: usize, later: usize) -> usize {
        self.active.len() + self.pairs.iter().position(|it| *it == (answer, later)).unwrap_or(0)
    }

    /// Returns the place of the number of elements that share an answer.
    fn share(&self, answer: usize) -> usize {
        let before = self.active.len() + self.pairs.len();
        before + self.chosen.iter().position(|&it| it == answer).unwrap_or(0)
    }
}

/// The code that computes the derivatives of an op.
struct Derivatives<'a> {
    op: &'a Op,
    /// The number of operands with a gradient.
    operands: usize,
    sums: Sums,
}

impl Derivatives<'_> {
    /// Returns what an element gives to a round: as in the op before round `forward`, then to the sums.
    fn given(&self, forward: usize) -> TokenStream {
        let round = hidden("round");
        let again = given(self.op, &arguments(self.op, &|value, _| value, &|plain| plain));
        let to_sums = self.given_to_sums();
        quote! {
            if #round < #forward {
                #again
            } else {
                #to_sums
            }
        }
    }

    /// Returns what an element gives to the sums: the answers are the variables, and operands are constants.
    fn given_to_sums(&self) -> TokenStream {
        let (core, sums) = (core(), hidden("sums"));
        let ident = &self.op.generic.ident;
        let dual = self.dual(self.sums.active.len());
        let constant = |value: TokenStream| quote!(#dual::constant(#value));
        let variables = self.sums.active.iter().enumerate().map(|(tangent, k)| {
            let one = self.one();
            quote!(#k => #dual::variable(known, #tangent, #one),)
        });
        let answer = quote! {
            |known, k| match k {
                #(#variables)*
                _ => #dual::constant(known),
            }
        };
        let formula = self.formula(&dual, &answer, &arguments(self.op, &|value, _| constant(value), &constant));
        let (of_answers, of_pairs, of_shares) = (self.of_answers(), self.of_pairs(), self.of_shares());
        quote! {
            #formula
            let mut #sums = [<#ident as #core::Value>::ZERO; #core::rows::MAX_GIVEN];
            #(#of_answers)*
            #(#of_pairs)*
            #(#of_shares)*
            #sums
        }
    }

    /// Returns the statements that set the derivatives of the results by each answer.
    fn of_answers(&self) -> Vec<TokenStream> {
        let (core, [values, index, sums]) = (core(), ["values", "index", "sums"].map(hidden));
        let differentiable = self.differentiable();
        let sum = |k: usize| {
            let terms = differentiable.iter().map(|(at, y, is_row)| {
                let term = quote!(#core::rows::term(#values[#at], #y, #k));
                if *is_row { quote!(#core::rows::once(#term, #index)) } else { term }
            });
            let all = together(terms);
            quote!(#sums[#k] = #all;)
        };
        (0..self.sums.active.len()).map(sum).collect()
    }

    /// Returns the statements that set the derivatives of later given values by answers.
    fn of_pairs(&self) -> Vec<TokenStream> {
        let (core, [asked, row, sums]) = (core(), ["asked", "row", "sums"].map(hidden));
        let sum = |&(k, later): &(usize, usize)| {
            let (at, reduction, k) = (self.sums.pair(k, later), self.reduction(later), self.sums.total(k));
            quote! {
                #sums[#at] = #core::rows::chosen(
                    #reduction,
                    #asked.given(#later).value(),
                    #row.answers[#later],
                    #asked.given(#later).gradient(#k),
                );
            }
        };
        self.sums.pairs.iter().map(sum).collect()
    }

    /// Returns the statements that count the elements that share an answer.
    fn of_shares(&self) -> Vec<TokenStream> {
        let (core, one, [asked, row, sums]) = (core(), self.one(), ["asked", "row", "sums"].map(hidden));
        let sum = |&k: &usize| {
            let (at, reduction) = (self.sums.share(k), self.reduction(k));
            quote! {
                #sums[#at] = #core::rows::chosen(#reduction, #asked.given(#k).value(), #row.answers[#k], #one);
            }
        };
        self.sums.chosen.iter().map(sum).collect()
    }

    /// Returns the statements that make each total the derivative by a given value: from the last answer to the first.
    fn solve(&self) -> TokenStream {
        let (core, row, count) = (core(), hidden("row"), self.op.asks.len());
        let statements = self.sums.active.iter().rev().map(|&k| {
            let later = self.sums.pairs.iter().filter(|pair| pair.0 == k).map(|&(_, later)| {
                let (at, rho) = (count + self.sums.pair(k, later), count + self.sums.total(later));
                quote!(+ #row.answers[#rho] * #row.answers[#at])
            });
            let (at, reduction) = (count + self.sums.total(k), self.reduction(k));
            let shares = if reduction.is_chosen() {
                let at = count + self.sums.share(k);
                quote!(#row.answers[#at])
            } else {
                self.one()
            };
            quote! {
                #row.answers[#at] =
                    #core::rows::shared(#reduction, #row.answers[#at] #(#later)*, #row.len, #shares);
            }
        });
        quote!(#(#statements)*)
    }

    /// Returns the gradients of an element: the operands are the variables, and answers are constants.
    fn results(&self) -> TokenStream {
        let dual = self.dual(self.operands);
        let one = self.one();
        let constant = |value: TokenStream| quote!(#dual::constant(#value));
        let variable = |value: TokenStream, number: usize| quote!(#dual::variable(#value, #number, #one));
        let answer = quote!(|known, _| #dual::constant(known));
        let formula = self.formula(&dual, &answer, &arguments(self.op, &variable, &constant));
        let gradients = (0..self.operands).map(|k| self.gradient_of(k));
        let falses = (0..self.operands).map(|_| quote!(false));
        quote! {
            #formula
            ([#(#gradients),*], [#(#falses),*])
        }
    }

    /// Returns the gradient of operand `k`: by the results directly, then through each answer.
    fn gradient_of(&self, k: usize) -> TokenStream {
        let (core, [values, asked, row]) = (core(), ["values", "asked", "row"].map(hidden));
        let differentiable = self.differentiable();
        let direct = differentiable.iter().filter(|(.., is_row)| !is_row);
        let direct = direct.map(|(at, y, _)| quote!(#core::rows::term(#values[#at], #y, #k)));
        let through = self.sums.active.iter().map(|&answer| {
            let (rho, reduction) = (self.op.asks.len() + self.sums.total(answer), self.reduction(answer));
            quote! {
                #core::rows::chosen_part(
                    #reduction,
                    #asked.given(#answer).value(),
                    #row.answers[#answer],
                    #core::rows::term(#row.answers[#rho], #asked.given(#answer), #k),
                )
            }
        });
        let all = together(direct.chain(through));
        // The kernel of `masked_softmax` spills registers without the zero.
        let ident = &self.op.generic.ident;
        let has_weights = self.op.operands().any(|operand| operand.is_weight);
        if has_weights { all } else { quote!(<#ident as #core::Value>::ZERO + #all) }
    }

    /// Returns the statements that evaluate the formula at dual numbers, where `answer` makes them of answers.
    fn formula(&self, dual: &TokenStream, answer: &TokenStream, arguments: &[TokenStream]) -> TokenStream {
        let (core, [asked, row, index]) = (core(), ["asked", "row", "index"].map(hidden));
        let (type_name, pattern) = (&self.op.type_name, results(self.op, &self.names()));
        quote! {
            let #asked = #core::rows::Asked::new(
                #row,
                #core::rows::MAX_REDUCTIONS,
                #index,
                #answer,
                #dual::constant,
            );
            let #pattern = #type_name::formula::<#dual>(#(#arguments),*);
        }
    }

    /// Returns the type of dual numbers with so many tangents.
    fn dual(&self, tangents: usize) -> TokenStream {
        let (core, ident) = (core(), &self.op.generic.ident);
        quote!(#core::dual::Dual::<#ident, #tangents>)
    }

    fn one(&self) -> TokenStream {
        let (core, ident) = (core(), &self.op.generic.ident);
        quote!(<#ident as #core::Value>::ONE)
    }

    fn reduction(&self, answer: usize) -> Reduction {
        self.op.asks[answer].reduction
    }

    /// Returns the names of the results.
    fn names(&self) -> Vec<Ident> {
        (0..self.op.results.len()).map(|k| hidden(&format!("y{k}"))).collect()
    }

    /// Returns the results with a gradient: the place of that among the values, the name, and true if each row has one.
    fn differentiable(&self) -> Vec<(usize, Ident, bool)> {
        let results = self.op.results.iter().zip(self.names());
        let with_gradient = results.filter(|(result, _)| result.has_gradient()).enumerate();
        with_gradient.map(|(k, (result, y))| (k, y, result.is_row)).collect()
    }
}

/// The sum of the parts of a gradient.
fn together(parts: impl Iterator<Item = TokenStream>) -> TokenStream {
    let core = core();
    let all = parts.reduce(|all, part| quote!(#core::rows::both(#all, #part)));
    let all = all.unwrap_or_else(|| quote!(::core::option::Option::None));
    quote!(#core::rows::or_zero(#all))
}

/// Makes an argument of the formula of a value and the operand's number among those with a gradient.
type Variable<'a> = &'a dyn Fn(TokenStream, usize) -> TokenStream;

/// Makes an argument of the formula of a value that has no derivative.
type Constant<'a> = &'a dyn Fn(TokenStream) -> TokenStream;

/// Returns the arguments of the formula in its gradients: operands by `variable`, parameters by `constant`.
fn arguments(op: &Op, variable: Variable<'_>, constant: Constant<'_>) -> Vec<TokenStream> {
    let asked = hidden("asked");
    let mut operands = Operands::of(op, variable, constant);
    let argument = |argument: &Argument| match argument {
        Argument::Operand(value) => operands.next(value),
        Argument::Row(_) => quote!(#asked.row()),
        Argument::Param(param) => of_param(op, param, constant),
        Argument::Bits(_) | Argument::Index => unreachable!("rows have neither"),
    };
    op.arguments.iter().map(argument).collect()
}

/// Makes the operands of the formula, one after the other.
struct Operands<'a> {
    op: &'a Op,
    variable: Variable<'a>,
    constant: Constant<'a>,
    /// The place of the next one that the gradients read.
    at: usize,
    /// The number of those with a gradient before it.
    number: usize,
    /// The place of the sum that is read in the place of two terms.
    sum: usize,
}

impl Operands<'_> {
    fn of<'a>(op: &'a Op, variable: Variable<'a>, constant: Constant<'a>) -> Operands<'a> {
        let at = op.results.iter().filter(|result| result.has_gradient()).count();
        // The results that the gradients read stand behind the operands.
        let operands = op.operands().filter(|operand| op.is_saved(&operand.name)).count();
        let sum = op.through.as_ref().map_or(0, |through| {
            let place = op.saved_results().position(|result| result.name == through.sum);
            at + operands + place.unwrap_or(0)
        });
        Operands { op, variable, constant, at, number: 0, sum }
    }

    fn next(&mut self, operand: &Value) -> TokenStream {
        let (core, ident, values) = (core(), &self.op.generic.ident, hidden("values"));
        if self.op.shares_gradient(&operand.name) {
            // The sum has both terms, so that nothing is left for the second.
            return (self.constant)(quote!(<#ident as #core::Real>::constant(-0.0)));
        }
        if self.op.is_term(&operand.name) {
            let sum = self.sum;
            return self.variable(quote!(#values[#sum]));
        }
        let (k, is_saved) = (self.at, self.op.is_saved(&operand.name));
        self.at += usize::from(is_saved);
        if operand.is_bool() {
            let truths = hidden("truths");
            return if is_saved { quote!(#truths[#k]) } else { quote!(false) };
        }
        // The gradient does not depend on an operand that it does not read.
        let saved = if is_saved { quote!(#values[#k]) } else { quote!(<#ident as #core::Value>::ONE) };
        let it = if operand.has_gradient() { self.variable(saved) } else { (self.constant)(saved) };
        if operand.is_row { quote!(#core::rows::PerRow(#it)) } else { it }
    }

    /// Makes the next variable.
    fn variable(&mut self, value: TokenStream) -> TokenStream {
        self.number += 1;
        (self.variable)(value, self.number - 1)
    }
}

/// Returns a parameter as the formula takes it, and its default if the gradients do not read it.
fn of_param(op: &Op, param: &Param, constant: Constant<'_>) -> TokenStream {
    let (core, ident) = (core(), &op.generic.ident);
    let (name, default, is_saved) = (&param.name, &param.default, op.is_saved(&param.name));
    match param.kind {
        ParamKind::Number | ParamKind::Probability if is_saved => constant(quote!(self.#name)),
        ParamKind::Number | ParamKind::Probability => {
            constant(quote!(<#ident as #core::Real>::constant((#default) as f64)))
        }
        ParamKind::Open if is_saved => {
            let it = hidden("it");
            let value = constant(quote!(#it));
            quote!(self.#name.map(|#it| #value))
        }
        ParamKind::Open => quote!(::core::option::Option::None),
        ParamKind::Whole | ParamKind::Flag if is_saved => quote!(self.#name),
        ParamKind::Whole | ParamKind::Flag => quote!(#default),
    }
}
