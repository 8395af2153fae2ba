//! What is compiled and what must come out, for the build script and for `cargo xtask build-ptx`.

use std::path::PathBuf;

use pointwise_build::Kernels;
use pointwise_build::lint::{Lint, Vectors};
use pointwise_core::{DType, OpInfo, ResultType, family::unary, formula::lanes, launch, rope};

mod symbols {
    pointwise_core::unary_family!(pointwise_core::unary_symbols);
}

mod powers {
    pointwise_core::powers_family!(pointwise_core::unary_symbols);
}

mod random {
    pointwise_core::random_family!(pointwise_core::random_symbols);
}

mod generator {
    pointwise_core::generator_family!(pointwise_core::generator_symbols);
}

mod convert {
    pointwise_core::convert_symbols!();
}

macro_rules! tables {
    ($($module:ident $table:ident $symbols:ident;)*) => {
        $(
            mod $module {
                pointwise_core::$table!(pointwise_core::$symbols);
            }
        )*

        /// The kernels of ops of several operands.
        fn map_symbols() -> Vec<&'static str> {
            [$($module::symbols()),*].concat()
        }

        /// The ops of several operands.
        const MAP_OPS: &[&[OpInfo]] = &[$(pointwise_core::family::$module::OPS),*];
    };
}

tables! {
    binary binary_family binary_symbols;
    comparison comparison_family binary_symbols;
    bitwise bitwise_family binary_symbols;
    channel channel_family binary_symbols;
    gated gated_family binary_symbols;
    ternary ternary_family ternary_symbols;
    select select_family select_symbols;
    backward backward_family binary_symbols;
    gradients gradients_family gradient_symbols;
    select_gradients select_gradients_family gradient_symbols;
    channel_gradients channel_gradients_family gradient_symbols;
    gated_gradients gated_gradients_family gradient_symbols;
}

/// The family's kernels, of the kernel crate in `folder`.
pub(crate) fn kernels(folder: impl Into<PathBuf>) -> Kernels {
    Kernels::new(folder)
        .features(["unary", "powers"])
        .features(["random", "generator", "lookup"])
        .features(["rope"])
        .features(["convert"])
        .features(["binary"])
        .features(["comparison", "bitwise", "channel", "gated", "ternary", "select"])
        .features(["backward"])
        .features(["gradients", "select_gradients", "channel_gradients", "gated_gradients"])
        .expect_entries(
            [
                symbols::symbols(),
                powers::symbols(),
                map_symbols(),
                random::symbols(),
                generator::symbols(),
                rope::symbols(),
                convert::symbols(),
                launch::LOOKUPS.to_vec(),
            ]
            .concat(),
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
    let of = |kind: &str, op: &OpInfo| {
        let rest = name.strip_prefix(kind).and_then(|rest| rest.strip_prefix(op.name));
        rest.is_some_and(|rest| rest.starts_with('_'))
    };
    let is_bool = |op: &&OpInfo| op.result == ResultType::Bool;
    let is_predicate = unary::OPS.iter().filter(is_bool).any(|op| of("unary_", op));
    let is_comparison = MAP_OPS.iter().copied().flatten().filter(is_bool).any(|op| of("binary_", op));
    let is_constant = |op: &&OpInfo| op.properties.constant;
    let ops = || MAP_OPS.iter().copied().flatten();
    let reads_nothing = ops().filter(is_constant).any(|op| of("binary_", op) || of("gradients_", op));
    // Vectors of many tensors are shorter.
    let dtype = name.rsplit('_').nth(1).and_then(DType::from_name);
    let is_short = |op: &OpInfo, size: usize| lanes(size, op.operands.len() + op.results.len()) * size < 16;
    if ops().any(|op| of("gradients_", op) && dtype.is_some_and(|dtype| is_short(op, dtype.size()))) {
        return Vectors::NONE;
    }
    let strategy = Vectors::of_strategy(name);
    let vectors = name.ends_with("_flat") || name.ends_with("_rows");
    Vectors {
        loads: strategy.loads || vectors && !reads_nothing,
        stores: strategy.stores && !is_predicate || vectors && !is_comparison,
    }
}
