//! Expressions on the command line, such as `residual + gelu(x + b) * gate`: Rust's syntax, pointwise's ops. A name is a tensor.

use std::io::Write;

use pointwise::fusion::{Expr, Lazy};
use pointwise::{DType, Device, Number, Tensor, info};
use syn::{BinOp, Lit, UnOp};

use crate::args::{Explain, Run};
use crate::device::device;
use crate::error::{Error, Result};
use crate::file::{Source, Target};
use crate::output::line;

/// The target whose PTX is printed: the newest that the project embeds for all kernels.
const SM: u32 = 90;

/// An expression, parsed.
struct Parsed {
    text: String,
    tree: syn::Expr,
    /// The names of its tensors, in the order of the text.
    names: Vec<String>,
}

impl Parsed {
    fn new(text: &str) -> Result<Parsed> {
        let tree: syn::Expr = syn::parse_str(text).map_err(|error| wrong(text, &error.to_string()))?;
        let mut parsed = Parsed { text: text.to_owned(), tree, names: Vec::new() };
        let tree = parsed.tree.clone();
        parsed.find(&tree)?;
        Ok(parsed)
    }

    /// Finds the names of tensors.
    fn find(&mut self, tree: &syn::Expr) -> Result<()> {
        match tree {
            syn::Expr::Paren(inner) => self.find(&inner.expr),
            syn::Expr::Unary(unary) => self.find(&unary.expr),
            syn::Expr::Binary(binary) => {
                self.find(&binary.left)?;
                self.find(&binary.right)
            }
            syn::Expr::Call(call) => call.args.iter().try_for_each(|arg| self.find(arg)),
            syn::Expr::Lit(_) => Ok(()),
            _ => {
                let name = self.name(tree)?;
                if !matches!(name.as_str(), "inf" | "nan") && !self.names.contains(&name) {
                    self.names.push(name);
                }
                Ok(())
            }
        }
    }

    /// A plain name.
    fn name(&self, tree: &syn::Expr) -> Result<String> {
        match tree {
            syn::Expr::Path(path) if let Some(name) = path.path.get_ident() => Ok(name.to_string()),
            _ => {
                Err(wrong(&self.text, "it has names, numbers, + - * /, comparisons, and calls of ops, such as gelu(x)"))
            }
        }
    }

    /// The formula, of tensors in the order of the names.
    fn formula<'a>(&self, tree: &syn::Expr, tensors: &'a [Tensor]) -> Result<Expr<'a>> {
        match tree {
            syn::Expr::Paren(inner) => self.formula(&inner.expr, tensors),
            syn::Expr::Lit(_) => Ok(Expr::from(self.number(tree)?)),
            syn::Expr::Unary(unary) => match unary.op {
                UnOp::Neg(_) if self.number(tree).is_ok() => Ok(Expr::from(self.number(tree)?)),
                UnOp::Neg(_) => self.op("neg", [self.formula(&unary.expr, tensors)?], &[]),
                UnOp::Not(_) => self.op("logical_not", [self.formula(&unary.expr, tensors)?], &[]),
                _ => Err(wrong(&self.text, "the only operators before a value are - and !")),
            },
            syn::Expr::Binary(binary) => {
                let name = match binary.op {
                    BinOp::Add(_) => "add",
                    BinOp::Sub(_) => "sub",
                    BinOp::Mul(_) => "mul",
                    BinOp::Div(_) => "div",
                    BinOp::Rem(_) => "remainder",
                    BinOp::Lt(_) => "lt",
                    BinOp::Le(_) => "le",
                    BinOp::Gt(_) => "gt",
                    BinOp::Ge(_) => "ge",
                    BinOp::Eq(_) => "eq",
                    BinOp::Ne(_) => "ne",
                    BinOp::BitAnd(_) => "bitwise_and",
                    BinOp::BitOr(_) => "bitwise_or",
                    BinOp::BitXor(_) => "bitwise_xor",
                    _ => return Err(wrong(&self.text, "the operators are + - * / %, & | ^, and comparisons")),
                };
                self.op(name, [self.formula(&binary.left, tensors)?, self.formula(&binary.right, tensors)?], &[])
            }
            syn::Expr::Call(call) => self.call(call, tensors),
            _ => {
                let name = self.name(tree)?;
                match self.names.iter().position(|own| *own == name) {
                    Some(at) => Ok(tensors[at].lazy()),
                    None => Ok(Expr::from(if name == "inf" { f64::INFINITY } else { f64::NAN })),
                }
            }
        }
    }

    /// A call of an op: its operands, then its parameters as numbers; or of what goes over a row.
    fn call<'a>(&self, call: &syn::ExprCall, tensors: &'a [Tensor]) -> Result<Expr<'a>> {
        let name = self.name(&call.func)?;
        let args = || call.args.iter().map(|arg| self.formula(arg, tensors));
        let of_one: Option<fn(&Expr<'a>) -> Expr<'a>> = match name.as_str() {
            "softmax" => Some(|x| x.softmax()),
            "log_softmax" => Some(|x| x.log_softmax()),
            "logsumexp" => Some(|x| x.logsumexp()),
            "row_sum" => Some(|x| x.row_sum()),
            "row_mean" => Some(|x| x.row_mean()),
            "row_max" => Some(|x| x.row_max()),
            "row_min" => Some(|x| x.row_min()),
            "stored" => Some(|x| x.stored()),
            _ => None,
        };
        if let Some(of_one) = of_one {
            let [x] = &args().collect::<Result<Vec<_>>>()?[..] else {
                return Err(wrong(&self.text, &format!("{name} takes one value")));
            };
            return Ok(of_one(x));
        }
        if let "rms_norm" | "layer_norm" | "l2_normalize" = name.as_str() {
            return self.norm(&name, call, tensors);
        }
        let count = info::op(&name).map_or(call.args.len(), |def| def.info.operands.len());
        let operands = args().take(count).collect::<Result<Vec<_>>>()?;
        let params = call.args.iter().skip(count).map(|arg| self.number(arg)).collect::<Result<Vec<_>>>()?;
        self.op(&name, operands, &params)
    }

    /// A norm: its operands, then `eps` as a number, by default that of the op.
    fn norm<'a>(&self, name: &str, call: &syn::ExprCall, tensors: &'a [Tensor]) -> Result<Expr<'a>> {
        let info = info::op(name).map(|def| &def.info);
        let count = info.map_or(1, |info| info.operands.len());
        let default = info.and_then(|info| info.params.first()).map_or(0.0, |eps| eps.default);
        let operands =
            call.args.iter().take(count).map(|arg| self.formula(arg, tensors)).collect::<Result<Vec<_>>>()?;
        let params = call.args.iter().skip(count).map(|arg| self.number(arg)).collect::<Result<Vec<_>>>()?;
        let eps = match params[..] {
            [] => default,
            [Number::Float(eps)] => eps,
            [Number::Int(eps)] => eps as f64,
            _ => return Err(wrong(&self.text, &format!("{name} takes its operands, then eps"))),
        };
        match &operands[..] {
            [x] if name == "l2_normalize" => Ok(x.l2_normalize(eps)),
            [x, weight] if name == "rms_norm" => Ok(x.rms_norm(weight, eps)),
            [x, weight, bias] => Ok(x.layer_norm(weight, bias, eps)),
            _ => Err(wrong(&self.text, &format!("{name} takes {count} operand(s), then eps"))),
        }
    }

    fn op<'a>(&self, name: &str, operands: impl IntoIterator<Item = Expr<'a>>, params: &[Number]) -> Result<Expr<'a>> {
        let def = info::op(name)
            .ok_or_else(|| wrong(&self.text, &format!("there is no op {name}; `pointwise list` has them all")))?;
        Ok(Expr::apply(def, operands, params))
    }

    fn number(&self, tree: &syn::Expr) -> Result<Number> {
        let what = || wrong(&self.text, "a parameter is a number, true or false");
        match tree {
            syn::Expr::Lit(literal) => match &literal.lit {
                Lit::Int(value) => value.base10_parse::<i64>().map(Number::Int).map_err(|_| what()),
                Lit::Float(value) => value.base10_parse::<f64>().map(Number::Float).map_err(|_| what()),
                Lit::Bool(value) => Ok(Number::Bool(value.value)),
                _ => Err(what()),
            },
            syn::Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => match self.number(&unary.expr)? {
                Number::Int(value) => Ok(Number::Int(-value)),
                Number::Float(value) => Ok(Number::Float(-value)),
                _ => Err(what()),
            },
            _ => Err(what()),
        }
    }
}

/// Runs `explain --expr`: the plan of the kernel and its PTX.
///
/// # Errors
/// Fails for a text that is no expression, for what a fused kernel has not, and if the standard output cannot be written.
pub(crate) fn explain(out: &mut impl Write, text: &str, args: &Explain) -> Result<()> {
    let parsed = Parsed::new(text)?;
    let dtype = args.dtype.unwrap_or(DType::F32);
    let tensor = |_| Tensor::empty(&Device::cpu(), dtype, &*args.shape).map_err(Error::from);
    let tensors = parsed.names.iter().map(tensor).collect::<Result<Vec<_>>>()?;
    let formula = parsed.formula(&parsed.tree, &tensors)?;
    let shape = args.shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ");
    line(out, format!("{text}\n  {} of {shape}, {dtype}: {}", parsed.names.join(", "), formula.plan()?))?;
    line(out, formula.ptx(SM)?)
}

/// Runs `run --expr`: tensors by their names from a file, the result `y` to a file.
///
/// # Errors
/// Fails for a text that is no expression, for files, for what a fused kernel has not, and for the device's errors.
pub(crate) fn run(text: &str, args: &Run) -> Result<()> {
    let parsed = Parsed::new(text)?;
    if args.input.is_some() {
        return Err(Error::Usage("an expression takes the place of the op: run --expr EXPR IN -o OUT".to_owned()));
    }
    let target = Target::new(&args.output)?;
    let device = device(&args.device)?;
    let mut file = Source::open(args.op().as_ref())?;
    let names: Vec<&str> = parsed.names.iter().map(String::as_str).collect();
    let tensors = file.read(&names, &device)?;
    let y = parsed.formula(&parsed.tree, &tensors)?.eval()?;
    drop(tensors);
    target.write(&[("y", y)])
}

fn wrong(text: &str, why: &str) -> Error {
    Error::Usage(format!("the expression `{text}`: {why}"))
}
