//! Compiles the family's kernels and embeds them, where a compiler for device code is found.

use pointwise_build::{
    Kernels,
    lint::{Lint, Vectors},
};
use pointwise_core::{ResultType, family::unary};

mod symbols {
    pointwise_core::unary_family!(pointwise_core::unary_symbols);
}

fn main() {
    Kernels::new("../../gpu-kernels")
        .features(["unary"])
        .expect_entries(symbols::symbols())
        .lint(Lint { vectors, ..Lint::default() })
        .build();
}

/// What a kernel's name promises. A predicate's results are narrower than its operands.
fn vectors(name: &str) -> Vectors {
    let is_predicate = unary::OPS
        .iter()
        .filter(|op| op.result == ResultType::Bool)
        .any(|op| name.strip_prefix("unary_").and_then(|rest| rest.strip_prefix(op.name)).is_some());
    Vectors { stores: Vectors::of_strategy(name).stores && !is_predicate, ..Vectors::of_strategy(name) }
}
