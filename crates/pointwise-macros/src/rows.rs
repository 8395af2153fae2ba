//! Formulas that reduce over a row: what they ask, and how a round of theirs is evaluated.

mod gradient;

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Block, Error, Result};

use crate::common::{Form, arguments_of_gradient, core, hidden, pattern};
use crate::signature::Op;

pub(crate) use gradient::gradient;

/// The number in `pointwise_core::rows`.
const MAX_REDUCTIONS: usize = 3;

/// What the formula asks its row, in the order of evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    reduction: Reduction,
    /// True if `.detach()` stands behind it: no gradient goes through it.
    is_detached: bool,
    /// The round that answers it: reductions that do not need each other's answers share one.
    round: usize,
    /// The reductions before it that its argument may depend on, with a derivative.
    through: Answers,
}

/// A reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    Sum,
    Mean,
    Max,
    Min,
}

impl Reduction {
    /// Returns the reductions of a method of `Row`, in the order of evaluation.
    fn named(word: &Ident) -> &'static [Reduction] {
        match word.to_string().as_str() {
            "sum" => &[Reduction::Sum],
            "mean" => &[Reduction::Mean],
            "var_mean" => &[Reduction::Mean, Reduction::Mean],
            "max" => &[Reduction::Max],
            "min" => &[Reduction::Min],
            _ => &[],
        }
    }

    /// True if elements share the answer's derivative as far as they are equal to it.
    fn is_chosen(self) -> bool {
        matches!(self, Reduction::Max | Reduction::Min)
    }
}

impl ToTokens for Reduction {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let (core, name) = (core(), Ident::new(&format!("{self:?}"), Span::call_site()));
        tokens.extend(quote!(#core::rows::Reduction::#name));
    }
}

/// Finds the reductions of a formula that asks `row`. One that reads what each row has (`reads_rows`) may reduce nothing.
pub(crate) fn asks(body: &Block, row: &Ident, reads_rows: bool) -> Result<Vec<Ask>> {
    let mut found = Vec::new();
    visit(body.to_token_stream(), row, false, &mut found)?;
    if found.is_empty() && !reads_rows {
        let why = format!("the formula reduces nothing: write `{row}.sum(x)`, or remove the argument");
        return Err(Error::new(row.span(), why));
    }
    let mut needs = Needs { row, of: BTreeMap::new(), reductions: Vec::new() };
    needs.of_tokens(body.to_token_stream());
    let (mut round, mut first) = (0, 0);
    for (k, ask) in found.iter_mut().enumerate() {
        let Need { answers, through } = needs.reductions.get(k).copied().unwrap_or(Need { answers: !0, through: !0 });
        if answers >> first != 0 && k > 0 {
            (round, first) = (round + 1, k);
        }
        (ask.round, ask.through) = (round, through);
    }
    Ok(found)
}

/// The reductions whose answers a value may depend on: bit `k` for reduction `k`.
type Answers = u32;

/// The answers that a reduction's argument may depend on, and those through which it has a derivative.
#[derive(Clone, Copy)]
struct Need {
    answers: Answers,
    through: Answers,
}

/// Finds out which reductions need which answers, by the names that their arguments mention. Too many are harmless.
struct Needs<'a> {
    row: &'a Ident,
    /// Of each name.
    of: BTreeMap<String, Answers>,
    /// Of each reduction's argument.
    reductions: Vec<Need>,
}

impl Needs<'_> {
    /// Returns the answers that the value of some statements may depend on.
    fn of_tokens(&mut self, tokens: TokenStream) -> Answers {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let statements = tokens.split(|token| is_sign(Some(token), ';'));
        statements.map(|statement| self.of_statement(statement)).fold(0, |all, one| all | one)
    }

    fn of_statement(&mut self, tokens: &[TokenTree]) -> Answers {
        let (mut needed, mut k) = (0, 0);
        while k < tokens.len() {
            match &tokens[k..] {
                [TokenTree::Ident(row), _, TokenTree::Ident(word), TokenTree::Group(arguments), ..]
                    if row == self.row =>
                {
                    let given = self.of_tokens(arguments.stream());
                    needed |= given;
                    let mut answers = given;
                    for _ in Reduction::named(word) {
                        // The second reduction of `var_mean` needs the first, but has no derivative by it.
                        let own = 1 << self.reductions.len();
                        self.reductions.push(Need { answers, through: given });
                        (needed, answers) = (needed | own, answers | own);
                    }
                    k += 3;
                }
                [TokenTree::Group(group), ..] => needed |= self.of_tokens(group.stream()),
                [TokenTree::Ident(name), ..] => needed |= self.of.get(&name.to_string()).copied().unwrap_or(0),
                _ => {}
            }
            k += 1;
        }
        // A `let` binds the names before its `=`; any other statement may change every name in it.
        let is_let = matches!(tokens.first(), Some(TokenTree::Ident(word)) if word == "let");
        let bound = match tokens.iter().position(|token| is_sign(Some(token), '=')) {
            Some(at) if is_let => &tokens[..at],
            _ => tokens,
        };
        self.bind(bound.iter().cloned().collect(), needed);
        needed
    }

    /// Has every name among tokens depend on answers.
    fn bind(&mut self, tokens: TokenStream, needed: Answers) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.bind(group.stream(), needed),
                TokenTree::Ident(name) => *self.of.entry(name.to_string()).or_default() |= needed,
                _ => {}
            }
        }
    }
}

/// Visits tokens in the order of evaluation. `branch` is true where not every element comes along.
fn visit(tokens: TokenStream, row: &Ident, mut branch: bool, found: &mut Vec<Ask>) -> Result<()> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let (outer, mut is_ahead) = (branch, false);
    let mut k = 0;
    while k < tokens.len() {
        match &tokens[k] {
            TokenTree::Ident(word) if word == row => {
                k += ask(&tokens[k..], row, branch, found)?;
            }
            TokenTree::Ident(word) if word == "return" => {
                return Err(Error::new(word.span(), "all elements of a row ask it together: remove the `return`"));
            }
            // The next block is of some elements alone. A condition is of all.
            TokenTree::Ident(word) if ["if", "else", "match", "while", "for", "loop"].iter().any(|it| word == it) => {
                is_ahead = true;
            }
            TokenTree::Punct(sign) if sign.as_char() == '|' && is_closure(tokens.get(k.wrapping_sub(1))) => {
                branch = true
            }
            TokenTree::Punct(sign) if "&|".contains(sign.as_char()) && is_sign(tokens.get(k + 1), sign.as_char()) => {
                branch = true;
            }
            TokenTree::Punct(sign) if ";,".contains(sign.as_char()) => branch = outer,
            TokenTree::Group(group) => {
                let is_block = group.delimiter() == Delimiter::Brace;
                visit(group.stream(), row, branch || is_ahead && is_block, found)?;
                is_ahead &= !is_block;
            }
            _ => {}
        }
        k += 1;
    }
    Ok(())
}

/// Reads `row.sum(..)`, and returns how many tokens behind the first it has.
fn ask(tokens: &[TokenTree], row: &Ident, branch: bool, found: &mut Vec<Ask>) -> Result<usize> {
    let span = tokens[0].span();
    let [_, TokenTree::Punct(dot), TokenTree::Ident(word), TokenTree::Group(arguments), ..] = tokens else {
        let why = format!("a row is asked in the function itself, such as `{row}.sum(x)`");
        return Err(Error::new(span, why));
    };
    if dot.as_char() != '.' {
        return Err(Error::new(dot.span(), format!("a row is asked by methods, such as `{row}.sum(x)`")));
    }
    visit(arguments.stream(), row, branch, found)?;
    let reductions = Reduction::named(word);
    if branch && !reductions.is_empty() {
        let why = format!("all elements of a row reduce together: put `{row}.{word}(..)` before the branch");
        return Err(Error::new(word.span(), why));
    }
    if found.len() + reductions.len() > MAX_REDUCTIONS {
        let why = "a formula has at most 3 reductions, and `var_mean` is two: split the op in two";
        return Err(Error::new(word.span(), why));
    }
    let behind = &tokens[4..];
    let is_detached =
        is_sign(behind.first(), '.') && matches!(behind.get(1), Some(TokenTree::Ident(word)) if word == "detach");
    found.extend(reductions.iter().map(|&reduction| Ask { reduction, is_detached, round: 0, through: 0 }));
    Ok(3)
}

/// True behind a token that no value ends with: a `|` begins a closure there.
fn is_closure(before: Option<&TokenTree>) -> bool {
    match before {
        None => true,
        Some(TokenTree::Punct(sign)) => sign.as_char() != '|' && sign.as_char() != '&',
        Some(TokenTree::Ident(word)) => word == "move",
        _ => false,
    }
}

fn is_sign(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

/// `(y0, PerRow(y1))`.
fn results(op: &Op, names: &[Ident]) -> TokenStream {
    let core = core();
    let patterns: Vec<TokenStream> = op
        .results
        .iter()
        .zip(names)
        .map(|(result, name)| if result.is_row { quote!(#core::rows::PerRow(#name)) } else { quote!(#name) })
        .collect();
    match &*patterns {
        [single] => single.clone(),
        several => quote!((#(#several),*)),
    }
}

/// The impls of `RowData` and `RowOp` of an op, or of its gradients.
fn implementation(form: &Form, rounds: &TokenStream, bodies: [TokenStream; 3]) -> TokenStream {
    let core = core();
    let [given, solve, results] = bodies;
    let generic = &form.generic;
    let ident = &generic.ident;
    let this = form.at(&quote!(#ident));
    let generics = form.is_generic().then(|| quote!(<#ident: #core::Word>));
    let (n, r) = form.counts();
    let [values, truths, round, row, index] = ["values", "truths", "round", "row", "index"].map(hidden);
    quote! {
        impl #generics #core::rows::RowData for #this {
            const ROUNDS: &'static [&'static [#core::rows::Reduction]] = #rounds;
        }

        #[allow(unused_variables)]
        impl<#generic> #core::rows::RowOp<#ident, #n, #r> for #this {
            #[inline(always)]
            fn given(
                self,
                #round: usize,
                #values: [#ident; #n],
                #truths: [bool; #n],
                #row: &#core::rows::RowState<#ident>,
                #index: u32,
            ) -> [#ident; #core::rows::MAX_GIVEN] {
                #given
            }
            #[inline(always)]
            fn solve(self, #row: &mut #core::rows::RowState<#ident>) {
                #solve
            }
            #[inline(always)]
            fn results(
                self,
                #values: [#ident; #n],
                #truths: [bool; #n],
                #row: &#core::rows::RowState<#ident>,
                #index: u32,
            ) -> ([#ident; #r], [bool; #r]) {
                #results
            }
        }
    }
}

/// The reductions of each round, and the first of each.
fn rounds(op: &Op) -> (Vec<TokenStream>, Vec<usize>) {
    let last = op.asks.last().map_or(0, |ask| ask.round + 1);
    let of = |round: usize| op.asks.iter().filter(move |ask| ask.round == round).map(|ask| ask.reduction);
    let lists = (0..last).map(|round| {
        let reductions = of(round);
        quote!(&[#(#reductions),*])
    });
    (lists.collect(), (0..last).map(|round| op.asks.iter().take_while(|ask| ask.round < round).count()).collect())
}

/// The statements that evaluate the formula for a round, and return what it gives to the round's reductions.
fn given(op: &Op, arguments: &[TokenStream]) -> TokenStream {
    let [asked, round] = ["asked", "round"].map(hidden);
    let (type_name, ident) = (&op.type_name, &op.generic.ident);
    let (_, firsts) = rounds(op);
    let known = hidden("known");
    let in_round = plain(&quote!(#known));
    let rounds = 0..firsts.len();
    quote! {
        let #known = match #round { #(#rounds => #firsts,)* _ => 0 };
        #in_round
        _ = #type_name::formula::<#ident>(#(#arguments),*);
        #asked.from(#known)
    }
}

/// The statement that answers a row at the generic type, where `phase` reductions have answers.
fn plain(phase: &TokenStream) -> TokenStream {
    let (core, [asked, row, index]) = (core(), ["asked", "row", "index"].map(hidden));
    quote!(let #asked = #core::rows::Asked::new(#row, #phase, #index, |known, _| known, |plain| plain);)
}

/// The impls of an op.
pub(crate) fn formula(op: &Op, arguments: &[TokenStream]) -> TokenStream {
    let (core, form) = (core(), Form::of(op));
    let (type_name, ident) = (&op.type_name, &op.generic.ident);
    let names: Vec<Ident> = (0..op.results.len()).map(|k| hidden(&format!("y{k}"))).collect();
    let pattern = results(op, &names);
    let zero = quote!(<#ident as #core::Value>::ZERO);
    let of_type = op.results.iter().zip(&names).map(|(it, y)| if it.is_bool() { zero.clone() } else { quote!(#y) });
    let of_bool = op.results.iter().zip(&names).map(|(it, y)| if it.is_bool() { quote!(#y) } else { quote!(false) });
    let all = plain(&quote!(#core::rows::MAX_REDUCTIONS));
    let (lists, _) = rounds(op);
    implementation(
        &form,
        &quote!(&[#(#lists),*]),
        [
            given(op, arguments),
            quote!(),
            quote! {
                #all
                let #pattern = #type_name::formula::<#ident>(#(#arguments),*);
                ([#(#of_type),*], [#(#of_bool),*])
            },
        ],
    )
}

/// The gradients of an op by a function, which reduces nothing: it has the place of an element where the op has the row.
pub(crate) fn gradient_by(op: &Op, function: &syn::Path) -> TokenStream {
    let form = Form::gradient_of(op);
    let (all, arguments) = (plain(&quote!(0)), arguments_of_gradient(op));
    let names: Vec<Ident> = (0..form.results.len()).map(|k| hidden(&format!("y{k}"))).collect();
    let (pattern, falses) = (pattern(&names), names.iter().map(|_| quote!(false)));
    let (ident, core) = (&op.generic.ident, core());
    implementation(
        &form,
        &quote!(&[]),
        [
            quote!([<#ident as #core::Value>::ZERO; #core::rows::MAX_GIVEN]),
            quote!(),
            quote! {
                #all
                let #pattern = #function(#(#arguments),*);
                ([#(#names),*], [#(#falses),*])
            },
        ],
    )
}
