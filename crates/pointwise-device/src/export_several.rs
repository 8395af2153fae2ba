//! The visitors that make kernel entries of tables of ops.

/// The visitor that exports the entries of a table of unary ops: every op in every one of its element types by every
/// class of kernel. Expands to nothing on the host.
#[macro_export]
macro_rules! export_unary {
    ($($rows:tt)*) => {
        $crate::__export_several! { unary same Unary $($rows)* }
    };
}

/// The visitor that exports the entries of a table of binary, channel, gated or backward ops. Expands to nothing on the
/// host.
#[macro_export]
macro_rules! export_binary {
    ($($rows:tt)*) => {
        $crate::__export_several! { binary same Binary $($rows)* }
    };
}

/// The visitor that exports the entries of a table of ternary ops. Expands to nothing on the host.
#[macro_export]
macro_rules! export_ternary {
    ($($rows:tt)*) => {
        $crate::__export_several! { ternary same Ternary $($rows)* }
    };
}

/// The visitor that exports the entries of a table of select ops, one for each element width. Expands to nothing on the
/// host.
#[macro_export]
macro_rules! export_select {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $op:ident ($($x:ident),*: $bound:ident) -> $out:ident,
        [$($set:ident)*], $accuracy:expr => $formula:expr;
    )*) => {
        $crate::__export_several! { select bool Select $(
            $name: $op ($($x),*: $bound) -> $out, [i8 i16 i32 i64], $accuracy => $formula;
        )* }
    };
}

/// The visitor that exports the entries of a table of gradients. Expands to nothing on the host.
#[macro_export]
macro_rules! export_gradients {
    ($($rows:tt)*) => {
        $crate::__export_several! { gradients same plain $($rows)* }
    };
}

/// As [`export_gradients`](crate::export_gradients), of ops whose first operand is a condition.
#[macro_export]
macro_rules! export_select_gradients {
    ($($rows:tt)*) => {
        $crate::__export_several! { gradients bool plain $($rows)* }
    };
}

/// `extern "gpu-kernel"` is passed on from here: the tokens of a macro that may be unstable, may be so anywhere.
#[doc(hidden)]
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(abi_gpu_kernel))]
macro_rules! __export_several {
    ($kind:ident $first:ident $adapter:ident $(
        $(#[doc = $doc:literal])*
        $name:ident: $op:ident $({ $($p:ident = $default:expr),* })? ($($x:ident),*: $bound:ident) -> $out:tt,
        [$($set:ident)*], $accuracy:expr => $formula:expr;
    )*) => { $(
        $crate::__private::entries! {
            ($crate) (extern "gpu-kernel") [] $kind $name $name $op $bound $first $adapter [$($set)*] [$($x)*] [$out] [$($($p)*)?]
        }
    )* };
}
