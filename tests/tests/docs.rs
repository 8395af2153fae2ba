//! `docs/ops.md` and the functions of kernel objects are generated from the ops: these tests fail if a file is not current,
//! and write it with `POINTWISE_BLESS=1`. Another test checks that the package in the README and in `docs/your-own-op.md` is
//! that of the example.

use std::fmt::Write as _;
use std::path::Path;

use pointwise::{
    DType,
    info::{Accuracy, MASKED_FILL, OpInfo},
    kernel::OpDef,
};

const HEAD: &str = "\
# The ops

Every op is a function in Rust (`ops::silu`), in Python (`pointwise.silu`) and of the command (`pointwise run silu`).
Behind the tables: [types and numbers](#types-and-numbers), and [notes](#outside-the-tables).

*Bound* is the largest error of an f32 result in ULP; `exact` results are correctly rounded in f32, and in 16 and 8 bits
are that result rounded once more, as PyTorch's are, with the same bits on every device. Other results in 16 bits are
within 1 ULP, and correctly rounded for at least 99.5 % of all inputs; results in 8 bits are always correctly rounded.
`floats` are f32, f16, bf16, f8e4m3, f8e5m2; `ints` are i8, i16, i32, i64, u8. A `*`
means that integers and bool are converted to f32 first. A result is of the operands' type (`same`) or bool.
";

const TAIL: &str = "
## Types and numbers

Operands of different types are converted to the type that `torch.result_type` gives, except in `prelu`, `lerp` and
gated ops, which require one type. Numbers take the type of the tensors unless they are of a higher category (bool,
integer, float). fp8 types cannot be combined with another type. The result of an op in place is converted to the type
of its tensor if `torch.can_cast` allows it.

A number as an operand is an f32, as in PyTorch's CUDA kernels. It is rounded to the tensors' type first in `remainder`,
`pow`, comparisons and logical ops, and as the dividend of `div`, `div_trunc` and `floor_divide`. Where PyTorch divides
by a number by multiplying with its reciprocal, this is a true division. `alpha` of `add` and `sub` must fit the result:
a float only for float results, a bool only for bool results.

An integer type refuses numbers that it cannot hold, which PyTorch wraps or cuts, with three exceptions: bounds of
`clamp` that lie beyond the type on the side they leave open, parameters of ops that leave integers unchanged
(`nan_to_num`, `round_decimals`), and defaults, for which the nearest number of the type stands in (`hardtanh` of u8: 0
to 1).

## Outside the tables

`to_dtype` converts elements of any type to any other.
`ops::clamp` takes tensors, numbers and `None` as bounds, and runs `clamp`, `clamp_tensor`, `maximum` or `minimum`;
`ops::clamp_backward` likewise. `pow` with the number 1, 2, 0.5, -0.5 or
-1 as its exponent is a copy, `mul`, `sqrt`, `rsqrt` or `reciprocal`, with the special values of that op, as in PyTorch.
Of a float tensor with 3 it is a product that is rounded once: in f32 correctly above `2^-101`, and below within 1 ULP.

`div_trunc` and `floor_divide` of f16 and bf16 differ from PyTorch: here the exact quotient is cut, and that is rounded.
PyTorch rounds the quotient to 16 bits before it cuts it, so that a quotient just below a whole number can become that
number. `masked_fill` refuses a number that PyTorch refuses: an integer type takes a float in its range, which is then
cut, so that u8 does not take -0.5.

In `floor_divide` of an fp8 tensor by a number that fp8 cannot represent, a quotient less than `2^-17` (relative) below
a whole number counts as that whole number. The rotary embedding has [a page of its own](rope.md).

`dropout` takes a place in a random sequence, `Philox { seed, offset }`, instead of a generator with a state. The
element with the row-major index `i` has a random word of 32 bits, and is kept if `word / 2^32 < 1 - p`, of `p` as f32. The word is
made of two Philox4x32-10 blocks, whose counters are a 64-bit offset, then 0, then 0 or 1. The 128 bits of a block are
eight halves of 16 bits, the lowest first. The word is half `i % 8` of block `(offset + i / 8, 0)` above the same half
of block `(offset + i / 8, 1)`, rotated left by one bit. A kernel makes the second block only where the 15 bits known
from the first equal those of the threshold. A call on `n` elements uses `ceil(n / 8)` offsets; `place.after(n)` is at
the first one after them. A tensor of two i64, seed and offset, on the call's device serves as the place, too: kernels
read it when they run, so that a graph draws anew at each launch if the tensor is written in between. `p` counts in
training; `kernels::dropout(p).training(false)` is the identity, as PyTorch's `training=False`.

`dropout_with_mask` is in Rust alone. `sinusoidal_halves` is `ops::sinusoidal` with `SinusoidalLayout::Halves`. In Python and for the
command, `alibi_causal` is `alibi` with `causal`, and `sinusoidal_halves` is `sinusoidal` with `halves`. These take a shape. `alibi` is
rounded once; for 8 bits, from an f32. The angles of `sinusoidal` are
exact at every position to a relative `2^-46`. Apart from that, f32 results are within 3 ULP; results of 16 bits are
rounded from a number within `2^-22`, those of 8 bits from one within `2^-18`.

Generated from the ops by `POINTWISE_BLESS=1 cargo test -p tests --test docs`.
";

const ROWS_HEAD: &str = "
They reduce over the last dimension: [rows](rows.md). `each row` is a result of the others' shape without that dimension.
Statistics and functions are in f32 for all element types. A bound holds where no terms cancel; where they do, it counts from
the size of the terms.

";

const GRADIENTS_HEAD: &str = "
## Gradients

`NAME_backward` takes `grad`, the gradient of the op's result, and those of the op's operands that the formula needs;
for each there is also `NAME_backward_into`. Element types are f32, f16 and bf16: an fp8 tensor can hold gradients only
together with a scale, which an elementwise op cannot compute. Results at kinks, at boundaries and for NaN are those of
PyTorch's autograd.

The gradients of an op of several operands are computed in one pass. **Operands are broadcast together, and every
gradient has the shape of the op's result. You must sum the gradient of an operand that was broadcast over the
dimensions along which it was.** The gradient of a gated op has the shape of its `x`, `(.., 2N)`.

The bound is on the error against the formula with every step rounded to f32. Where it says `cancels`, two terms cancel
near a zero of the derivative, and 2^-22 (in 16 bits 2^-18) of what the derivative is multiplied with is added to the
bound. `dropout_backward` computes the mask again.

";

const GRADIENT_COLUMNS: &str = "| op | operands | parameters | results | bound | |\n|---|---|---|---|---|---|\n";

const COLUMNS: &str =
    "| op | operands | parameters | element types | result | bound | |\n|---|---|---|---|---|---|---|\n";

fn page() -> String {
    let mut page = HEAD.to_owned();
    let of = |count: usize, gated: bool| {
        let forward = pointwise::info::all().filter(move |def| !def.info.is_gradient() && def.takes_halves() == gated);
        forward.map(|def| &def.info).filter(move |info| info.operands.len() == count)
    };
    let infos = || pointwise::info::every().map(|def| &def.info);
    let tables: [(&str, Vec<&OpInfo>); 4] = [
        ("One operand", of(1, false).collect()),
        ("Two operands, broadcast", of(2, false).collect()),
        ("Gated: an activation of the first half times the second", of(2, true).collect()),
        ("Three operands, broadcast", of(3, false).chain([&MASKED_FILL]).collect()),
    ];
    for (title, infos) in tables {
        page += &format!("\n## {title}\n\n{COLUMNS}");
        page.extend(infos.into_iter().map(row));
    }
    page += &format!("\n## Rows\n{ROWS_HEAD}{COLUMNS}");
    let rows = || infos().filter(|info| info.is_of_rows());
    page.extend(rows().filter(|info| !info.is_gradient()).map(row));
    let beside = infos().filter(|info| info.is_random() || info.is_of_indices());
    page += &format!("\n## Random, and position encodings\n\n{COLUMNS}");
    page.extend(beside.filter(|info| !info.is_gradient()).map(row));
    page += GRADIENTS_HEAD;
    page += GRADIENT_COLUMNS;
    page.extend(tests::backward().chain(tests::gradients()).map(|def| gradient_row(&def.info)));
    page.extend(rows().filter(|info| info.is_gradient()).map(gradient_row));
    page + TAIL
}

fn gradient_row(info: &OpInfo) -> String {
    let bound = match info.accuracy {
        Accuracy::Exact => "exact".to_owned(),
        Accuracy::Ulp(ulp) => ulp.to_string(),
        Accuracy::Cancels(ulp) => format!("{ulp}, cancels"),
    };
    let (name, arguments, outputs) = (info.name, info.arguments().join(", "), info.outputs().join(", "));
    format!("| `{name}` | {arguments} | {} | {outputs} | {bound} | {} |\n", params(info), doc(info))
}

fn params(info: &OpInfo) -> String {
    // The dimensions of an op without operands come as its shape.
    if let [first, .., last] = info.shape {
        return format!("{first}, {last}");
    }
    let params: Vec<_> = info.params.iter().map(|param| format!("{} = {}", param.name, value(param.default))).collect();
    params.join(", ")
}

fn doc(info: &OpInfo) -> String {
    info.doc.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn row(info: &OpInfo) -> String {
    let bound = match info.accuracy {
        Accuracy::Exact => "exact".to_owned(),
        accuracy => accuracy.bound(DType::F32).to_string(),
    };
    let result = info.result_type(0, DType::F32);
    let result = match result {
        DType::Bool => "bool",
        _ if info.is_row_result(0) => "each row",
        _ => "same",
    };
    let mut row = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        row,
        "| `{}` | {} | {} | {} | {result} | {bound} | {} |",
        info.name,
        info.arguments().join(", "),
        params(info),
        types(info.types) + if info.properties.int_to_float { " \\*" } else { "" },
        doc(info)
    );
    row
}

fn value(default: f64) -> String {
    match default {
        f64::MAX => "largest finite".to_owned(),
        f64::MIN => "lowest finite".to_owned(),
        _ => default.to_string(),
    }
}

fn types(types: &[DType]) -> String {
    let all = |class: fn(DType) -> bool| DType::ALL.into_iter().filter(|t| class(*t)).all(|t| types.contains(&t));
    let mut words = Vec::new();
    for (name, class) in [("floats", DType::is_float as fn(DType) -> bool), ("ints", DType::is_int)] {
        match all(class) {
            true => words.push(name),
            false => words.extend(types.iter().filter(|t| class(**t)).map(|t| t.name())),
        }
    }
    words.extend(types.contains(&DType::Bool).then_some("bool"));
    words.join(" ")
}

/// Compares a file of the repository with its text, or writes it.
fn check(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    if std::env::var_os("POINTWISE_BLESS").is_some() {
        std::fs::write(&file, text).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == text, "{name} is not current: run POINTWISE_BLESS=1 cargo test -p tests --test docs");
}

#[test]
fn ops_md_is_current() {
    check("docs/ops.md", &page());
}

const KERNELS: &str = "\
//! The ops as kernel objects, whose strategy, threads and stream can be set.
//!
//! Written from the ops' data by `POINTWISE_BLESS=1 cargo test -p tests --test docs`.

use super::formulas;
use crate::Number;
use crate::kernel::{BinaryKernel, GatedGradientsKernel, GatedKernel, GradientsKernel, TernaryKernel, UnaryKernel};
";

/// Returns the function that makes an op's kernel object.
fn kernel(def: &OpDef) -> String {
    let info = &def.info;
    let (object, with) = match (info.results.len(), info.operands.len()) {
        _ if def.takes_halves() && info.is_gradient() => ("GatedGradientsKernel", "gated_gradients"),
        _ if def.takes_halves() => ("GatedKernel", "gated_with"),
        (1, 1) => ("UnaryKernel", "unary_with"),
        (1, 2) => ("BinaryKernel", "binary_with"),
        (1, 3) => ("TernaryKernel", "ternary_with"),
        _ => ("GradientsKernel", "kernel"),
    };
    let name = if info.name == "where" { "where_cond" } else { info.name };
    let camel = |word: &str| word[..1].to_uppercase() + &word[1..];
    let struct_name: String = info.name.split('_').map(camel).collect();
    let docs: String = info.doc.lines().map(|line| format!("/// {line}\n")).collect();
    let each = |part: fn(&str) -> String| info.params.iter().map(|p| part(p.name)).collect::<Vec<_>>().join(", ");
    let (takes, passes) = (each(|name| format!("{name}: impl Into<Number>")), each(|name| format!("{name}.into()")));
    format!(
        "\n{docs}#[must_use]\npub fn {name}({takes}) -> {object} {{\n    formulas::{struct_name}::def().{with}(&[{passes}])\n}}\n"
    )
}

#[test]
fn every_op_has_a_function_of_its_kernel_object() {
    let functions: String = pointwise::info::all().map(kernel).collect();
    check("crates/pointwise/src/family/objects.rs", &format!("{KERNELS}{functions}"));
}

/// The files of `examples/one-op` that a page shows are all that its package needs, and as they are there.
#[test]
fn a_package_of_a_page_is_that_of_the_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
    // Without what a reader can leave out.
    let plain = |file: &str| {
        let text = read(&format!("examples/one-op/{file}")).replace("../../crates", "pointwise/crates");
        let is_extra = |line: &&str| {
            let starts = ["//!", "# ", "#![", "description", "license", "publish"];
            !starts.iter().any(|start| line.starts_with(start))
        };
        text.lines().filter(is_extra).collect::<Vec<_>>().join("\n").trim().to_owned()
    };
    let package = ["Cargo.toml", "build.rs", "src/lib.rs", "src/ops.rs"];
    let whole = [&package[..], &["src/main.rs", "tests/ops.rs"]].concat();
    for (page, files) in [("README.md", &package[..]), ("docs/your-own-op.md", &whole)] {
        let text = read(page);
        for file in files {
            let named = text.find(&format!("`{file}`")).unwrap_or_else(|| panic!("{page} does not name {file}"));
            let block = format!("\n{}\n```\n", plain(file));
            assert!(text[named..].contains(&block), "{page} has another {file} than examples/one-op:{block}");
        }
    }
}
