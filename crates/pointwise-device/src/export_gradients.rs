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

#[doc(hidden)]
#[macro_export]
macro_rules! __export_gradients {
    ($first:ident $(
        $(#[doc = $doc:literal])*
        $name:ident: $op:ident $({ $($p:ident = $default:expr),* })? ($($x:ident),*: $bound:ident) -> ($($y:ident),*),
        [$($set:ident)*], $accuracy:expr => $formula:expr;
    )*) => { $(
        #[cfg(target_arch = "nvptx64")]
        const _: () = {
            $crate::__export_types! { [$($set)*] ($crate::__gradient_type) ($first $name $op [$($($p)*)?]) }
        };
    )* };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __gradient_type {
    ($type:ident, ($first:ident $name:ident $op:ident $params:tt)) => {
        const _: () = {
            type E = $crate::element::ty::$type;
            type C = <E as $crate::Element>::Compute;
            type F = $crate::__first_type!($first);
    type O = $crate::__op_type!($op $params);
            $crate::map_variants! { ($crate::__bind_gradient) ($first $name $type $op $params) }
            $crate::map_variants! { ($crate::__gradient_entry) ($name $type) }
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __bind_gradient {
    ($variant:ident, ($first:ident $name:ident $type:ident $op:ident $params:tt)) => {
        $crate::__bind! { gradients $name $type $variant {
            type E = $crate::element::ty::$type;
            type C = <E as $crate::Element>::Compute;
            type O = $crate::__op_type!($op $params);
            $crate::row::of_gradients::<$crate::__first_type!($first), E, O, O>()
        } }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __first_type {
    (same) => {
        E
    };
    (bool) => {
        $crate::element::ty::bool
    };
}

/// What distinguishes the entries of an op: the template with its size, and where the elements are.
#[doc(hidden)]
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(abi_gpu_kernel))]
macro_rules! __gradient_entry {
    (flat, $ids:tt) => {
        $crate::__gradient_function! { flat $ids (flat::<F, E, O, { 16 / size_of::<E>() }>)
        [n: u64, head: u32] [] [n, head] }
    };
    (rows, $ids:tt) => {
        $crate::__gradient_function! { rows $ids (tiled::<F, E, O, { 16 / size_of::<E>() }, { $crate::launch::ROW_SPLITS }>)
        [items: u32]
        [steps: $crate::launch::Steps<{ $crate::launch::GRADIENT_TENSORS }, { $crate::launch::ROW_SPLITS }>] [&steps, items] }
    };
    (strided, $ids:tt) => {
        $crate::__gradient_function! { strided $ids (tiled::<F, E, O, 1, { $crate::launch::SPLITS }>)
        [items: u32]
        [steps: $crate::launch::Steps<{ $crate::launch::GRADIENT_TENSORS }, { $crate::launch::SPLITS }>] [&steps, items] }
    };
}

/// The function of an entry: all of a template have one signature.
#[doc(hidden)]
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(abi_gpu_kernel))]
macro_rules! __gradient_function {
    ($variant:ident ($name:ident $type:ident) ($($template:tt)*) [$($place:ident: $Place:ty),*] [$($steps:ident: $Steps:ty)?]
        [$($passed:expr),*]) => {
        const _: () = {
            /// # Safety
            /// That of the template, in `pointwise_device::gradients`; the host checks it before the launch.
            // By value, and without a pointer in it: its fields are read where they lie, as those of scalars are.
            #[allow(improper_gpu_kernel_arg)]
            #[unsafe(export_name = $crate::symbol!(gradients, $name, $type, $variant))]
            unsafe extern "gpu-kernel" fn entry(
                y0: *mut E, y1: *mut E, y2: *mut E, a: *const F, b: *const E, c: *const E, d: *const E,
                $($place: $Place,)* mode: u32,
                wa: u64, wb: u64, wc: u64, wd: u64, p0: u64, p1: u64, p2: u64, p3: u64,
                $($steps: $Steps,)?
            ) {
                let (results, others, words) = ([y0, y1, y2], [b, c, d], [wa, wb, wc, wd]);
                let tensors = $crate::gradients::Tensors { results, first: a, others, words, mode };
                let op = <O as $crate::TableOp>::from_words([p0, p1, p2, p3]);
                // SAFETY: this entry's own contract.
                unsafe { $crate::gradients::$($template)*(&tensors, $($passed,)* op) }
            }
        };
    };
}
