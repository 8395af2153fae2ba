//! The visitors that make kernel entries of tables of gradients.

/// The visitor that exports the entries of a table of gradients. Expands to nothing on the host.
#[macro_export]
macro_rules! export_gradients {
    ($($rows:tt)*) => {
        $crate::__export_gradients! { same $($rows)* }
    };
}

/// As [`export_gradients`](crate::export_gradients), of ops whose first operand is a condition.
#[macro_export]
macro_rules! export_select_gradients {
    ($($rows:tt)*) => {
        $crate::__export_gradients! { bool $($rows)* }
    };
}

/// `extern "gpu-kernel"` is passed on from here: the tokens of a macro that may be unstable, may be so anywhere.
#[doc(hidden)]
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(abi_gpu_kernel))]
macro_rules! __export_gradients {
    ($first:ident $(
        $(#[doc = $doc:literal])*
        $name:ident: $op:ident $({ $($p:ident = $default:expr),* })? ($($x:ident),*: $bound:ident) -> ($($y:ident),*),
        [$($set:ident)*], $accuracy:expr => $formula:expr;
    )*) => { $(
        $crate::__private::entries! {
            ($crate) (extern "gpu-kernel") [] gradients $name $op $first [$($set)*] [$($x)*] [$($y)*] [$($($p)*)?]
        }
    )* };
}
