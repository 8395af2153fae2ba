//! The macro for a kernel crate's root, and the macro that makes the entries of templates that are not formulas'.

/// Declares the shared memory that a kernel crate's root needs beside `#![no_std]`. It needs no feature attributes: the
/// entry macros bring them along. Expands to nothing on the host.
#[macro_export]
macro_rules! kernel_crate {
    () => {
        // 256 bytes for a table of codes, and for rows a number for each answer and warp; a table of pairs, sums over rows, and rows
        // that are kept, whose sizes the launch gives. An entry that does not use them is loaded without them.
        #[cfg(target_arch = "nvptx64")]
        $crate::__asm!(
            ".shared .align 16 .b8 pointwise_table[256];",
            ".extern .shared .align 16 .b8 pointwise_pairs[];",
            ".shared .align 16 .b8 pointwise_rows[768];",
            ".extern .shared .align 16 .b8 pointwise_sums[];",
            ".extern .shared .align 16 .b8 pointwise_kept[];"
        );
    };
}

/// Assembly of the module. It is unstable on the device.
#[doc(hidden)]
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(asm_experimental_arch))]
macro_rules! __asm {
    ($($text:tt)*) => {
        ::core::arch::global_asm!($($text)*);
    };
}

/// Exports the entries of a kind of kernels: `Conversions;`, `Generators;`, `Lookup;`, `Random;` or `Rope;`. Expands to
/// nothing on the host.
///
/// `extern "gpu-kernel"` is passed on from here: tokens of a macro that may be unstable, may be unstable anywhere.
#[doc(hidden)]
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(abi_gpu_kernel))]
macro_rules! export {
    ($kind:ident;) => {
        $crate::__private::entries! { ($crate) (extern "gpu-kernel") $kind; }
    };
}
