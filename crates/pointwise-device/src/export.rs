//! What a kernel crate's root needs, and what entries of all kinds are made of.

/// Declares what a kernel crate's root needs beside `#![no_std]`: no feature attributes, which the entry macros bring
/// along. Expands to nothing on the host.
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(asm_experimental_arch))]
macro_rules! kernel_crate {
    () => {
        // 256 bytes for a table of codes, and a table of pairs, whose size the launch gives; an entry that does not use
        // them is loaded without them.
        #[cfg(target_arch = "nvptx64")]
        core::arch::global_asm!(
            ".shared .align 16 .b8 pointwise_table[256];",
            ".extern .shared .align 16 .b8 pointwise_pairs[];"
        );
    };
}

/// Binds an entry to the word of its row by a comment in the module's assembly, which the builder reads. A comment in the
/// entry's own assembly might change its code.
///
/// The assembly of a module stands among items, hence the module `row`, which finds the op by its name in the module
/// around.
#[doc(hidden)]
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(asm_experimental_arch))]
macro_rules! __bind {
    ($kind:ident $name:ident $type:ident $variant:ident { $($word:tt)* }) => {
        const _: () = {
            #[allow(unused_imports)]
            mod row {
                use super::*;
                core::arch::global_asm!(
                    concat!("// row of ", $crate::symbol!($kind, $name, $type, $variant), ": {word}"),
                    word = const { $($word)* },
                );
            }
        };
    };
}

/// As `__bind`, for the entry of a name and the word of its row.
#[doc(hidden)]
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(asm_experimental_arch))]
macro_rules! __bind_symbol {
    ($symbol:literal, $word:expr) => {
        core::arch::global_asm!(concat!("// row of ", $symbol, ": {word}"), word = const { $word });
    };
}

/// Elements of a 16-byte vector.
#[doc(hidden)]
#[macro_export]
macro_rules! vector_len {
    ($type:ident) => {
        16 / size_of::<$crate::element::ty::$type>()
    };
}
