//! The kernels that the package's build script compiled.

use std::path::PathBuf;
use std::{env, fs};

use proc_macro2::TokenStream;
use quote::quote;

/// The kernels of an op.
pub(crate) struct Pack {
    /// An expression of type `pointwise::embed::Pack`, of literals alone.
    pub(crate) kernels: TokenStream,
    /// The device compiler's errors in the op.
    pub(crate) error: Option<String>,
    /// Why the item cannot be an op at all.
    pub(crate) no_op: Option<String>,
    /// A warning to the user, though the op is fine on the CPU.
    pub(crate) warning: Option<String>,
}

impl Pack {
    /// No kernels, because of `why`.
    pub(crate) fn empty(why: &str) -> Pack {
        Pack { kernels: quote!((#why, "", &[])), error: None, no_op: None, warning: None }
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
    let all = PathBuf::from(out_dir).join("pointwise_ops");
    let read = |file: &str| fs::read_to_string(all.join(name).join(file)).ok();
    let pack = match (read("pointwise_kernels.rs"), fs::read_to_string(all.join("none.txt"))) {
        (Some(text), _) => match text.parse() {
            Ok(kernels) => Pack { kernels, ..Pack::empty("") },
            Err(_) => Pack::empty("what the build script wrote cannot be read: build the package again"),
        },
        (None, Ok(why)) => Pack::empty(&why),
        (None, Err(_)) => {
            let why = format!(
                "the build script compiled no op {name}: call `pointwise_build::ops` in the package's build.rs with the \
                 file that the op stands in"
            );
            // If other ops of the package have kernels, this one should have them, too.
            let warning = all.join("stamp.txt").is_file().then(|| format!("{name} has no kernels: {why}"));
            Pack { warning, ..Pack::empty(&why) }
        }
    };
    Pack { error: read("error.txt"), no_op: read("no_op.txt"), ..pack }
}
