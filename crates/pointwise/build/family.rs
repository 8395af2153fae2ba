//! The kernels of this crate, for the build script and for `cargo xtask build-ptx`: which modules of the kernel crate are
//! compiled together.

use std::path::PathBuf;

use pointwise_build::Kernels;

/// Returns the builder of all kernels, of the kernel crate in `folder`. The longest runs come first.
pub(crate) fn kernels(folder: impl Into<PathBuf>) -> Kernels {
    Kernels::new(folder)
        .features(["unary", "powers"])
        .features(["binary"])
        .features(["comparison", "bitwise", "channel", "gated", "ternary", "select"])
        .features(["norms", "softmax", "reductions"])
        .features(["rope"])
        .features(["conversions"])
        .features(["random", "generators", "lookup"])
}

/// Returns the builder of the kernels that are there without the family.
#[allow(dead_code)] // `cargo xtask` builds all
pub(crate) fn without_family(folder: impl Into<PathBuf>) -> Kernels {
    Kernels::new(folder).features(["conversions"]).features(["lookup"])
}
