//! What is compiled and what must come out, for the build script and for `cargo xtask build-ptx`.

use std::path::PathBuf;

use pointwise_build::Kernels;
use pointwise_build::lint::{Lint, Vectors};
use pointwise_core::{ResultType, family::unary};

mod symbols {
    pointwise_core::unary_family!(pointwise_core::unary_symbols);
}

/// The family's kernels, of the kernel crate in `folder`.
pub(crate) fn kernels(folder: impl Into<PathBuf>) -> Kernels {
    Kernels::new(folder)
        .features(["unary"])
        .expect_entries(symbols::symbols())
        .lint(Lint { vectors, ..Lint::default() })
}

/// What a kernel's name promises. A predicate's results are narrower than its operands.
fn vectors(name: &str) -> Vectors {
    let is_predicate = unary::OPS
        .iter()
        .filter(|op| op.result == ResultType::Bool)
        .any(|op| name.strip_prefix("unary_").and_then(|rest| rest.strip_prefix(op.name)).is_some());
    Vectors { stores: Vectors::of_strategy(name).stores && !is_predicate, ..Vectors::of_strategy(name) }
}
