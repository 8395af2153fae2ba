//! The visitors that make kernel entries of an op table.

/// Declares what a kernel crate's root needs beside `#![no_std]`: no feature attributes, which the entry macros bring
/// along. Expands to nothing on the host.
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(asm_experimental_arch))]
macro_rules! kernel_crate {
    () => {
        // 256 bytes for the `table` strategy of unary ops, and a table of pairs, whose size the launch gives; an entry
        // that does not use them is loaded without them.
        #[cfg(target_arch = "nvptx64")]
        core::arch::global_asm!(
            ".shared .align 16 .b8 pointwise_table[256];",
            ".extern .shared .align 16 .b8 pointwise_pairs[];"
        );
    };
}

/// The visitor that exports the entries of a table of unary ops: every op in every one of its element types by every
/// strategy. Expands to nothing on the host.
#[macro_export]
macro_rules! export_unary {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $op:ident $({ $($p:ident = $default:expr),* })? ($x:ident: $bound:ident) -> $out:ident,
        [$($set:ident)*], $accuracy:expr => $formula:expr;
    )*) => { $(
        #[cfg(target_arch = "nvptx64")]
        const _: () = {
            $crate::__export_types! { [$($set)*] ($crate::__unary_type) (($name $op $out) [$($($p)*)?]) }
        };
    )* };
}

/// The entries of one op in one element type.
#[doc(hidden)]
#[macro_export]
macro_rules! __unary_type {
    ($type:ident, (($name:ident $op:ident $out:ident) $params:tt)) => {
        $crate::unary_strategies! { $type $out ($crate::__unary_strategy) ($type $name $op $params) }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __unary_strategy {
    (register_copy, ($type:ident $name:ident $op:ident $params:tt)) => {
        $crate::__unary_entry! { $type $name $op $params register_copy (, { $crate::vector_len!($type) }) }
    };
    (strided, ($type:ident $name:ident $op:ident $params:tt)) => {
        $crate::__unary_strided! { $type $name $op $params }
    };
    ($strategy:ident, ($type:ident $name:ident $op:ident $params:tt)) => {
        $crate::__unary_entry! { $type $name $op $params $strategy () }
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

/// One entry. All have one signature, so that the host launches them all in one way.
#[doc(hidden)]
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(abi_gpu_kernel))]
macro_rules! __unary_entry {
    ($type:ident $name:ident $op:ident [$($p:ident)*] $strategy:ident ($($len:tt)*)) => {
        const _: () = {
            $crate::__bind! { unary $name $type $strategy {
                type E = $crate::element::ty::$type;
                type C = <E as $crate::Element>::Compute;
                type O = $crate::__op_type!($op [$($p)*]);
                $crate::row::of_formula::<E, $crate::arity::Unary<O>, 1, 1>(0)
            } }
            type E = $crate::element::ty::$type;
            type C = <E as $crate::Element>::Compute;
            type O = $crate::__op_type!($op [$($p)*]);
            type R = <<O as $crate::UnaryOp<C>>::Output as $crate::Store<E>>::Storage;

            /// # Safety
            /// The strategy's, in `pointwise_device::unary`; the host checks it before the launch.
            #[unsafe(export_name = $crate::symbol!(unary, $name, $type, $strategy))]
            unsafe extern "gpu-kernel" fn entry(
                x: *const E, y: *mut R, n: u64, head: u32, per_thread: u32, p0: u64, p1: u64, p2: u64, p3: u64,
            ) {
                let op = <O as $crate::TableOp>::from_words([p0, p1, p2, p3]);
                // SAFETY: this entry's own contract.
                unsafe { $crate::unary::$strategy::<E, O $($len)*>(x, y, n, head, per_thread, op) }
            }
        };
    };
}

/// The entry of single elements of any strides.
#[doc(hidden)]
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(abi_gpu_kernel))]
macro_rules! __unary_strided {
    ($type:ident $name:ident $op:ident [$($p:ident)*]) => {
        const _: () = {
            $crate::__bind! { unary $name $type strided {
                type E = $crate::element::ty::$type;
                type C = <E as $crate::Element>::Compute;
                type O = $crate::__op_type!($op [$($p)*]);
                $crate::row::of_formula::<E, $crate::arity::Unary<O>, 1, 1>(0)
            } }
            type E = $crate::element::ty::$type;
            type C = <E as $crate::Element>::Compute;
            type O = $crate::arity::Unary<$crate::__op_type!($op [$($p)*])>;

            /// # Safety
            /// That of `pointwise_device::formula::grouped`; the host checks it before the launch.
            #[allow(improper_gpu_kernel_arg)] // by value, and without a pointer in it
            #[unsafe(export_name = $crate::symbol!(unary, $name, $type, strided))]
            unsafe extern "gpu-kernel" fn entry(
                y: *mut u8, x: *const u8, items: u32, mode: u32, p0: u64, p1: u64, p2: u64, p3: u64,
                groups: $crate::launch::Groups<2>,
            ) {
                let op = <O as $crate::OpData>::from_words(&[p0, p1, p2, p3, 0, 0, 0, 0]);
                let tensors = $crate::formula::Tensors::of_one(x, y, mode);
                // SAFETY: this entry's own contract.
                unsafe { $crate::formula::grouped::<E, E, O, 1, 1, 2>(&tensors, &groups, items, op) }
            }
        };
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

/// An op's type at the compute type `C` of the entry.
#[doc(hidden)]
#[macro_export]
macro_rules! __op_type {
    ($op:ident []) => {
        $op
    };
    ($op:ident [$($p:ident)+]) => {
        $op<C>
    };
}
