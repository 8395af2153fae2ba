//! Mistakes in a formula that the compiler would tell of in words about something else, found by their tokens.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Block, Error, Result};

use crate::signature::{Argument, ParamKind};

/// Macros that panic or print.
const MACROS: [&str; 13] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "panic",
    "todo",
    "unimplemented",
    "unreachable",
    "print",
    "println",
    "eprint",
    "eprintln",
    "dbg",
    "vec",
];

/// Finds what no kernel can do, and numbers of two types in one term.
pub(crate) fn check(body: &Block, generic: &Ident, arguments: &[Argument], is_real: bool) -> Result<()> {
    let mut names = Names { of_type: Vec::new(), whole: Vec::new(), generic, is_real };
    for argument in arguments {
        match argument {
            Argument::Operand(value) if !value.is_bool() && !value.is_row => names.of_type.push(&value.name),
            Argument::Param(param) => match param.kind {
                ParamKind::Whole => names.whole.push(&param.name),
                ParamKind::Number | ParamKind::Probability => names.of_type.push(&param.name),
                ParamKind::Flag | ParamKind::Open => {}
            },
            _ => {}
        }
    }
    let tokens = body.to_token_stream();
    // A name that is bound again may be of any type.
    let is_bound = |name: &&Ident| is_bound(tokens.clone(), name);
    names.of_type.retain(|name| !is_bound(name));
    names.whole.retain(|name| !is_bound(name));
    names.check(tokens)
}

/// The names of the arguments, by their types.
struct Names<'a> {
    of_type: Vec<&'a Ident>,
    whole: Vec<&'a Ident>,
    generic: &'a Ident,
    is_real: bool,
}

/// A part of a term.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    OfType,
    Whole,
    Literal,
}

impl Names<'_> {
    fn check(&self, tokens: TokenStream) -> Result<()> {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (k, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => self.check(group.stream())?,
                TokenTree::Ident(name)
                    if is_punct(tokens.get(k + 1), "!")
                        && !is_punct(tokens.get(k + 2), "=")
                        && MACROS.iter().any(|it| name == it) =>
                {
                    let why = format!(
                        "a kernel cannot panic, print or allocate, so that `{name}!` cannot be in a formula: return a \
                         value, such as `{}::constant(f64::NAN)`",
                        self.generic
                    );
                    return Err(Error::new(name.span(), why));
                }
                TokenTree::Punct(_) if is_punct(Some(token), "+-*/%") && k > 0 => self.term(&tokens, k)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks the operator at `k`, if names or numbers alone stand on its sides.
    fn term(&self, tokens: &[TokenTree], k: usize) -> Result<()> {
        // A field, and what a method, a cast, a path or an index makes another value of.
        let is_more = is_punct(tokens.get(k.wrapping_sub(2)), ".:")
            || is_punct(tokens.get(k + 2), ".:?")
            || matches!(tokens.get(k + 2), Some(TokenTree::Group(_)))
            || matches!(tokens.get(k + 2), Some(TokenTree::Ident(word)) if word == "as");
        let (Some(left), Some(right)) = (self.part(&tokens[k - 1]), tokens.get(k + 1).and_then(|it| self.part(it)))
        else {
            return Ok(());
        };
        let other = match (left, right) {
            _ if is_more => return Ok(()),
            (Part::OfType, Part::Whole | Part::Literal) => &tokens[k + 1],
            (Part::Whole | Part::Literal, Part::OfType) => &tokens[k - 1],
            _ => return Ok(()),
        };
        let generic = self.generic;
        let why = match other {
            TokenTree::Ident(name) if self.is_real => format!(
                "`{name}` is an `i64`, and the other side of type `{generic}`: write `{generic}::constant({name} as f64)`"
            ),
            TokenTree::Ident(name) => {
                format!(
                    "`{name}` is an `i64`, and the other side of type `{generic}`: declare it as `{name}: {generic}`"
                )
            }
            number if self.is_real => {
                let number = number.to_string();
                let dot = if number.contains(['.', 'e']) { "" } else { ".0" };
                format!("`{generic}` is another type for each element type: write `{generic}::constant({number}{dot})`")
            }
            number if number.to_string().contains(['.', 'e']) => return Ok(()),
            number => format!("`{generic}` is another type for each element type: write `{generic}::whole({number})`"),
        };
        Err(Error::new(other.span(), why))
    }

    fn part(&self, token: &TokenTree) -> Option<Part> {
        match token {
            TokenTree::Ident(name) if self.of_type.contains(&name) => Some(Part::OfType),
            TokenTree::Ident(name) if self.whole.contains(&name) => Some(Part::Whole),
            TokenTree::Literal(number) => {
                let text = number.to_string();
                let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'_'));
                is_plain.then_some(Part::Literal)
            }
            _ => None,
        }
    }
}

/// True if a token is one of these signs.
fn is_punct(token: Option<&TokenTree>, signs: &str) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if signs.contains(punct.as_char()))
}

/// True if a name is bound: after `let`, `mut`, `for` or `ref`, among a closure's arguments, or in a pattern in brackets.
fn is_bound(tokens: TokenStream, name: &Ident) -> bool {
    let mut before: Option<TokenTree> = None;
    for token in tokens {
        match &token {
            TokenTree::Ident(word) if word == name => {
                let binds = match &before {
                    Some(TokenTree::Ident(word)) => ["let", "mut", "for", "ref"].iter().any(|it| word == it),
                    Some(TokenTree::Punct(sign)) => sign.as_char() == '|',
                    _ => false,
                };
                if binds {
                    return true;
                }
            }
            TokenTree::Group(group) => {
                let is_pattern = matches!(&before, Some(TokenTree::Ident(word)) if word == "let")
                    || matches!(&before, Some(TokenTree::Punct(sign)) if sign.as_char() == '|');
                let has = |tokens: TokenStream| {
                    tokens.into_iter().any(|it| matches!(it, TokenTree::Ident(it) if it == *name))
                };
                if is_pattern && has(group.stream()) || is_bound(group.stream(), name) {
                    return true;
                }
            }
            _ => {}
        }
        before = Some(token);
    }
    false
}
