//! An op that is an impl of an op trait: as the function that it stands for.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::spanned::Spanned;
use syn::{
    Error, FnArg, GenericArgument, GenericParam, ImplItem, ImplItemFn, ItemFn, ItemImpl, Pat, PathArguments, Result,
    ReturnType, Type, TypeParam, parse_quote,
};

use crate::words::Words;

const TRAITS: [&str; 3] = ["UnaryOp", "BinaryOp", "TernaryOp"];
const WANTS_IMPL: &str = "an op by hand is `impl<T: Real> UnaryOp<T> for Name`, of BinaryOp or TernaryOp, too: or write a \
                          function";

/// A function that calls the impl's formula with the op made of its arguments, and the formula as it was written.
pub(crate) fn function(words: &Words, item: &ItemImpl) -> Result<(ItemFn, TokenStream)> {
    let (generic, trait_path) = (generic(item)?, trait_path(item)?);
    let ident = &generic.ident;
    let (this, ty) = this(item)?;
    let op = Ident::new(&snake(&this.to_string()), this.span());
    let apply = item.items.iter().find_map(|item| match item {
        ImplItem::Fn(function) if function.sig.ident == "apply" => Some(function),
        _ => None,
    });
    let apply = apply.ok_or_else(|| Error::new(item.span(), "the formula is the function `apply` of the impl"))?;
    let operands = operands(apply)?;
    let types = operands.iter().map(|(_, ty)| ty);
    let names: Vec<&Ident> = operands.iter().map(|(name, _)| name).collect();
    let output = output(item, apply)?;
    let (docs, none) = (item.attrs.iter().filter(|it| it.path().is_ident("doc")), Vec::new());
    let params = words.params.as_ref().map_or(&none, |(params, _)| params);
    let (fields, defaults): (Vec<_>, Vec<_>) = params.iter().map(|(name, default)| (name, default)).unzip();
    let is_generic = matches!(ty, Type::Path(path) if !path.path.segments[0].arguments.is_none());
    if is_generic && fields.is_empty() {
        let why =
            "the parameters are the fields of the struct: name them, with their defaults, as `params(slope = 0.01)`";
        return Err(Error::new(item.self_ty.span(), why));
    }
    if !is_generic && !fields.is_empty() {
        let why =
            format!("a parameter is a field of the generic type: write `struct {this}<T> {{ {}: T }}`", fields[0]);
        return Err(Error::new(item.self_ty.span(), why));
    }
    let value = if fields.is_empty() { quote!(#this) } else { quote!(#this { #(#fields),* }) };
    let statements = &apply.block.stmts;
    let function = parse_quote! {
        #(#docs)*
        pub fn #op<#generic>(
            #(#names: #types,)* #(#[param(default = #defaults)] #fields: #ident),*
        ) -> #output {
            <#ty as #trait_path>::apply(#value, #(#names),*)
        }
    };
    Ok((function, quote!(#(#statements)*)))
}

/// The generic type of the impl.
fn generic(item: &ItemImpl) -> Result<&TypeParam> {
    let mut params = item.generics.params.iter();
    match (params.next(), params.next(), &item.generics.where_clause) {
        (Some(GenericParam::Type(param)), None, None) => Ok(param),
        _ => Err(Error::new(item.impl_token.span(), WANTS_IMPL)),
    }
}

/// The trait, of the generic type alone.
fn trait_path(item: &ItemImpl) -> Result<&syn::Path> {
    let refuse = |span| Err(Error::new(span, WANTS_IMPL));
    let Some((path, _)) = &item.trait_ else { return refuse(item.impl_token.span()) };
    let Some(last) = path.segments.last() else { return refuse(path.span()) };
    if !TRAITS.iter().any(|name| last.ident == name) {
        return refuse(path.span());
    }
    match &last.arguments {
        PathArguments::AngleBracketed(arguments) if arguments.args.len() == 1 => Ok(path),
        _ => Err(Error::new(
            path.span(),
            "the operands of an op by hand are of one generic type, `UnaryOp<T>`: write a function for other operands",
        )),
    }
}

/// The struct's name, and its type.
fn this(item: &ItemImpl) -> Result<(&Ident, &Type)> {
    if let Type::Path(path) = &*item.self_ty
        && path.qself.is_none()
        && path.path.segments.len() == 1
    {
        let segment = &path.path.segments[0];
        let is_plain = match &segment.arguments {
            PathArguments::None => true,
            PathArguments::AngleBracketed(arguments) => {
                arguments.args.len() == 1 && matches!(arguments.args[0], GenericArgument::Type(_))
            }
            PathArguments::Parenthesized(_) => false,
        };
        if is_plain {
            return Ok((&segment.ident, &*item.self_ty));
        }
    }
    Err(Error::new(item.self_ty.span(), "an op by hand is a struct of the module, `Name` or `Name<T>`"))
}

/// The operands of the formula.
fn operands(apply: &ImplItemFn) -> Result<Vec<(Ident, Type)>> {
    let mut operands = Vec::new();
    for input in &apply.sig.inputs {
        let FnArg::Typed(argument) = input else { continue };
        let Pat::Ident(pattern) = &*argument.pat else {
            return Err(Error::new(argument.pat.span(), "an operand of an op has a name: write `x: T`"));
        };
        operands.push((pattern.ident.clone(), (*argument.ty).clone()));
    }
    Ok(operands)
}

/// The type of the result: where it is `Self::Output`, that which the impl says.
fn output(item: &ItemImpl, apply: &ImplItemFn) -> Result<Type> {
    let ReturnType::Type(_, output) = &apply.sig.output else {
        return Err(Error::new(apply.sig.span(), "an op returns its generic type or `bool`"));
    };
    let is_associated = matches!(&**output, Type::Path(path) if path.path.segments.len() == 2
        && path.path.segments[0].ident == "Self" && path.path.segments[1].ident == "Output");
    if !is_associated {
        return Ok((**output).clone());
    }
    let associated = item.items.iter().find_map(|item| match item {
        ImplItem::Type(item) if item.ident == "Output" => Some(item.ty.clone()),
        _ => None,
    });
    associated.ok_or_else(|| Error::new(item.span(), "say what the op gives: `type Output = T;`"))
}

/// `BiasGelu` as `bias_gelu`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (k, letter) in name.chars().enumerate() {
        if letter.is_ascii_uppercase() && k > 0 {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
