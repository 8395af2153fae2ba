//! The visitor that makes kernel entries of the table of random ops.

/// The visitor that exports the entries of a table of [`RandomOp`](crate::RandomOp)s (`name: Type [element types];`):
/// every op in every type by every strategy, without and with a mask. Expands to nothing on the host.
#[macro_export]
macro_rules! export_random {
    ($($name:ident: $op:ident [$($set:ident)*];)*) => { $(
        #[cfg(target_arch = "nvptx64")]
        const _: () = {
            $crate::__export_types! { [$($set)*] ($crate::__random_type) ($name $op) }
        };
    )* };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __random_type {
    ($type:ident, $row:tt) => {
        $crate::random_strategies! { ($crate::__random_strategy) ($type $row) }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __random_strategy {
    ($kind:ident $mask:literal register_copy, ($type:ident ($name:ident $op:ident))) => {
        $crate::__random_entry! { $kind $type $name $op register_copy ($mask, {
            $crate::random::elements($crate::vector_len!($type))
        }, { $crate::vector_len!($type) }) }
    };
    ($kind:ident $mask:literal $strategy:ident, ($type:ident ($name:ident $op:ident))) => {
        $crate::__random_entry! { $kind $type $name $op $strategy ($mask) }
    };
}

/// One entry. All have one signature, the mask's pointer included.
#[doc(hidden)]
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(abi_gpu_kernel))]
macro_rules! __random_entry {
    ($kind:ident $type:ident $name:ident $op:ident $strategy:ident ($($with:tt)*)) => {
        const _: () = {
            type E = $crate::element::ty::$type;
            type O = $op<<E as $crate::Element>::Compute>;
            $crate::__bind! { $kind $name $type $strategy {
                type E = $crate::element::ty::$type;
                $crate::row::of_random::<E, $op<<E as $crate::Element>::Compute>>()
            } }

            /// # Safety
            /// The strategy's, in `pointwise_device::random`; the host checks it before the launch.
            // By value, and without a pointer in it: its fields are read where they lie, as those of scalars are.
            #[allow(improper_gpu_kernel_arg)]
            #[unsafe(export_name = $crate::symbol!($kind, $name, $type, $strategy))]
            unsafe extern "gpu-kernel" fn entry(
                x: *const E, y: *mut E, mask: *mut $crate::element::Bool, n: u64, head: u32, blocks: $crate::Blocks,
                p0: u64, p1: u64,
            ) {
                let op = <O as $crate::TableOp>::from_words([p0, p1, 0, 0]);
                // SAFETY: this entry's own contract.
                unsafe { $crate::random::$strategy::<E, O, $($with)*>(x, y, mask, n, head, &blocks, op) }
            }
        };
    };
}
