//! The kernels that the package's build script compiled.

use std::path::PathBuf;
use std::{env, fs};

use proc_macro2::TokenStream;
use quote::quote;

/// The kernels of an op.
pub(crate) struct Pack {
    /// An expression of type `Kernels`, in whose scope `Kernels` and `Target` are.
    pub(crate) kernels: TokenStream,
    /// What the device compiler said against the op.
    pub(crate) error: Option<String>,
}

impl Pack {
    /// No kernels, because of `why`.
    pub(crate) fn empty(why: &str) -> Pack {
        Pack { kernels: quote!(Kernels::empty(#why)), error: None }
    }
}

/// The kernels of the op `name` in what `pointwise_build::ops` left for this package.
pub(crate) fn find(name: &str) -> Pack {
    let Some(out_dir) = env::var_os("OUT_DIR") else {
        return Pack::empty(
            "the package has no build script: write `fn main() { pointwise_build::ops(\"src/ops.rs\").build(); }` in its \
             build.rs, with the file that the op stands in",
        );
    };
    let folder = PathBuf::from(out_dir).join("pointwise_ops").join(name);
    let error = fs::read_to_string(folder.join("error.txt")).ok();
    let Ok(text) = fs::read_to_string(folder.join("pointwise_kernels.rs")) else {
        let why = format!(
            "the build script compiled no op {name}: call `pointwise_build::ops` in the package's build.rs with the file \
             that the op stands in"
        );
        return Pack { error, ..Pack::empty(&why) };
    };
    match text.parse() {
        Ok(kernels) => Pack { kernels, error },
        Err(_) => Pack { error, ..Pack::empty("what the build script wrote cannot be read: build the package again") },
    }
}
