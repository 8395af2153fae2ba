//! What is compiled and what must come out, for the build script and for `cargo xtask build-ptx`.

use std::path::PathBuf;

use pointwise_build::Kernels;
use pointwise_build::lint::{Lint, Vectors};
use pointwise_core::{DType, Kind, OpInfo, ResultType, family, formula::lanes, launch, rope};

/// The tables whose ops are formulas.
const TABLES: [&[OpInfo]; 14] = [
    family::unary::OPS,
    family::powers::OPS,
    family::binary::OPS,
    family::comparison::OPS,
    family::bitwise::OPS,
    family::channel::OPS,
    family::gated::OPS,
    family::ternary::OPS,
    family::select::OPS,
    family::backward::OPS,
    family::gradients::OPS,
    family::select_gradients::OPS,
    family::channel_gradients::OPS,
    family::gated_gradients::OPS,
];

/// The ops of these tables.
fn ops() -> impl Iterator<Item = &'static OpInfo> {
    TABLES.into_iter().flatten()
}

/// What the names of an op's kernels begin with.
fn kind(info: &OpInfo) -> &'static str {
    match info.kind {
        Kind::Unary => "unary",
        Kind::Ternary => "ternary",
        Kind::Select => "select",
        Kind::Gradients | Kind::SelectGradients | Kind::ChannelGradients | Kind::GatedGradients => "gradients",
        _ => "binary",
    }
}

/// The kernels of an op: in each element type one of each class, and for fp8 a table. Of an op that moves elements they
/// are for each width.
fn symbols(info: &'static OpInfo) -> impl Iterator<Item = String> {
    let widths = &[DType::I8, DType::I16, DType::I32, DType::I64];
    let types = if info.kind == Kind::Select { widths } else { info.types };
    types.iter().flat_map(move |dtype| {
        let is_fp8 = matches!(dtype, DType::F8E4M3 | DType::F8E5M2);
        let has_table = is_fp8 && info.operands.len() == 1 && info.bool_results == 0;
        let classes = ["flat", "rows", "strided"].into_iter().chain(has_table.then_some("table"));
        classes.map(move |class| format!("{}_{}_{dtype}_{class}", kind(info), info.name))
    })
}

/// The kernels of dropout and of the generators.
fn special_symbols() -> impl Iterator<Item = String> {
    const KERNELS: [(&str, &str); 12] = [
        ("random_dropout", "explicit_parallel"),
        ("random_dropout", "register_copy"),
        ("random_mask_dropout", "explicit_parallel"),
        ("random_mask_dropout", "register_copy"),
        ("generator_alibi", "direct"),
        ("generator_alibi", "vectors"),
        ("generator_alibi_causal", "direct"),
        ("generator_alibi_causal", "vectors"),
        ("generator_sinusoidal", "direct"),
        ("generator_sinusoidal", "vectors"),
        ("generator_sinusoidal_halves", "direct"),
        ("generator_sinusoidal_halves", "vectors"),
    ];
    DType::FLOATS.into_iter().flat_map(|dtype| KERNELS.map(|(op, strategy)| format!("{op}_{dtype}_{strategy}")))
}

/// The kernels of the conversions: of all pairs of different types, and of an integer of each width to itself, which copy.
fn convert_symbols() -> impl Iterator<Item = String> {
    let is_width = |dtype| matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    let pairs = DType::ALL.into_iter().flat_map(|from| DType::ALL.map(|to| (from, to)));
    let pairs = pairs.filter(move |&(from, to)| from != to || is_width(from));
    pairs.flat_map(|(from, to)| ["flat", "strided"].map(|class| format!("convert_{from}_{to}_{class}")))
}

/// The family's kernels, of the kernel crate in `folder`.
pub(crate) fn kernels(folder: impl Into<PathBuf>) -> Kernels {
    Kernels::new(folder)
        .features(["unary", "powers"])
        .features(["comparison", "bitwise", "channel", "gated", "ternary", "select"])
        .features(["binary"])
        .features(["backward"])
        .features(["rope"])
        .features(["convert"])
        .features(["gradients", "select_gradients", "channel_gradients", "gated_gradients"])
        .features(["random", "generator", "lookup"])
        .expect_entries(
            [rope::SYMBOLS, &launch::LOOKUPS]
                .concat()
                .into_iter()
                .map(str::to_owned)
                .chain(ops().flat_map(symbols))
                .chain(special_symbols())
                .chain(convert_symbols()),
        )
        .lint(Lint { vectors, ..Lint::default() })
}

/// What a kernel's name promises. Results that are bool are narrower than operands; gradients that are zero read
/// nothing.
fn vectors(name: &str) -> Vectors {
    if let Some(pair) = name.strip_prefix("convert_").and_then(|rest| rest.strip_suffix("_flat")) {
        // The wider type has vectors of 16 bytes, the other as many elements.
        let size = |name: &str| DType::from_name(name).map_or(0, DType::size);
        let (from, to) = pair.split_once('_').map_or((0, 0), |(from, to)| (size(from), size(to)));
        return Vectors { loads: from >= to, stores: to >= from };
    }
    let of = |op: &OpInfo| {
        let rest = name.strip_prefix(kind(op)).and_then(|rest| rest.strip_prefix('_'));
        rest.and_then(|rest| rest.strip_prefix(op.name)).is_some_and(|rest| rest.starts_with('_'))
    };
    // Vectors of many tensors are shorter.
    let dtype = name.rsplit('_').nth(1).and_then(DType::from_name);
    let is_short = |op: &OpInfo, size: usize| lanes(size, op.operands.len() + op.results.len()) * size < 16;
    if ops().any(|op| of(op) && dtype.is_some_and(|dtype| is_short(op, dtype.size()))) {
        return Vectors::NONE;
    }
    let is_predicate = ops().any(|op| op.result == ResultType::Bool && of(op));
    let reads_nothing = ops().any(|op| op.properties.constant && of(op));
    if name.starts_with("generator_") {
        return Vectors { loads: false, stores: name.ends_with("_vectors") };
    }
    let strategy = Vectors::of_strategy(name);
    let vectors = name.ends_with("_flat") || name.ends_with("_rows");
    Vectors { loads: strategy.loads || vectors && !reads_nothing, stores: strategy.stores || vectors && !is_predicate }
}
