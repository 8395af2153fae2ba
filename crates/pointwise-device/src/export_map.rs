//! The visitors that make kernel entries of tables of ops of several operands.

/// The visitor that exports the entries of a table of binary, channel or gated ops. Expands to nothing on the host.
#[macro_export]
macro_rules! export_binary {
    ($($rows:tt)*) => {
        $crate::__export_map! { binary $($rows)* }
    };
}

/// The visitor that exports the entries of a table of ternary ops. Expands to nothing on the host.
#[macro_export]
macro_rules! export_ternary {
    ($($rows:tt)*) => {
        $crate::__export_map! { ternary $($rows)* }
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
        $crate::__export_map! { select $(
            $name: $op ($($x),*: $bound) -> $out, [i8 i16 i32 i64], $accuracy => $formula;
        )* }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_map {
    ($kind:ident $(
        $(#[doc = $doc:literal])*
        $name:ident: $op:ident $({ $($p:ident = $default:expr),* })? ($($x:ident),*: $bound:ident) -> $out:ident,
        [$($set:ident)*], $accuracy:expr => $formula:expr;
    )*) => { $(
        #[cfg(target_arch = "nvptx64")]
        const _: () = {
            $crate::__export_types! { [$($set)*] ($crate::__map_type) ($kind $name $op [$($($p)*)?]) }
        };
    )* };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __map_type {
    ($type:ident, ($kind:ident $name:ident $op:ident $params:tt)) => {
        $crate::map_variants! { ($crate::__map_entry) ($kind $type $name $op $params) }
    };
}

/// One entry: its kind says how many operands it has.
#[doc(hidden)]
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(abi_gpu_kernel))]
macro_rules! __map_entry {
    ($variant:ident, (unary $($row:tt)*)) => {
        $crate::__map_entry! { @ $variant Unary unary ($($row)*) [a: A] [wa] 2 }
    };
    ($variant:ident, (binary $($row:tt)*)) => {
        $crate::__map_entry! { @ $variant Binary binary ($($row)*) [a: A, b: B] [wa wb] 3 }
    };
    ($variant:ident, (ternary $($row:tt)*)) => {
        $crate::__map_entry! { @ $variant Ternary ternary ($($row)*) [a: A, b: B, c: C] [wa wb wc] 4 }
    };
    ($variant:ident, (select $($row:tt)*)) => {
        $crate::__map_entry! { @ $variant Select select ($($row)*) [a: A, b: B, c: C] [wa wb wc] 4 }
    };
    (@ $variant:ident $Map:ident $kind:ident ($type:ident $name:ident $op:ident [$($p:ident)*]) $($operands:tt)*) => {
        const _: () = {
            type E = $crate::element::ty::$type;
            type C = <E as $crate::Element>::Compute;
            type M = $crate::map::$Map<E, $crate::__op_type!($op [$($p)*])>;
            $crate::__bind! { $kind $name $type $variant {
                type E = $crate::element::ty::$type;
                type C = <E as $crate::Element>::Compute;
                type O = $crate::__op_type!($op [$($p)*]);
                $crate::row::of_map::<$crate::map::$Map<E, O>, O, O>()
            } }
            $crate::__map_body! { $variant ($kind $name $type) $($operands)* }
        };
    };
}

/// What distinguishes the entries of an op: the template with its sizes, and where the elements are.
#[doc(hidden)]
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(abi_gpu_kernel))]
macro_rules! __map_body {
    (flat $ids:tt $x:tt $words:tt $n:literal) => {
        $crate::__map_function! { flat $ids $x $words (flat::<M, { 16 / size_of::<E>() }>)
        [n: u64, head: u32] [] [n, head] }
    };
    (rows $ids:tt $x:tt $words:tt $n:literal) => {
        $crate::__map_function! { rows $ids $x $words (tiled::<M, { 16 / size_of::<E>() }, $n>)
        [items: u32] [steps: $crate::launch::Steps<$n, { $crate::launch::ROW_SPLITS }>] [&steps, items] }
    };
    ($strided:ident $ids:tt $x:tt $words:tt $n:literal) => {
        $crate::__map_function! { $strided $ids $x $words (grouped::<M, $n>)
        [items: u32] [groups: $crate::launch::Groups<$n>] [&groups, items] }
    };
}

/// The function of an entry: those of a template and number of operands have one signature.
#[doc(hidden)]
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(abi_gpu_kernel))]
macro_rules! __map_function {
    ($variant:ident ($kind:ident $name:ident $type:ident) [$($x:ident: $X:ident),*] [$($word:ident)*]
        ($($template:tt)*) [$($place:ident: $Place:ty),*] [$($steps:ident: $Steps:ty)?] [$($passed:expr),*]) => {
        /// # Safety
        /// That of the template, in `pointwise_device::broadcast`; the host checks it before the launch.
        // By value, and without a pointer in it: its fields are read where they lie, as those of scalars are.
        #[allow(improper_gpu_kernel_arg)]
        #[unsafe(export_name = $crate::symbol!($kind, $name, $type, $variant))]
        unsafe extern "gpu-kernel" fn entry(
            $($x: *const <M as $crate::map::Map>::$X,)* y: *mut <M as $crate::map::Map>::R,
            $($place: $Place,)* mode: u32, $($word: u64,)* p0: u64, p1: u64, p2: u64, p3: u64,
            $($steps: $Steps,)?
        ) {
            let words = $crate::__three!($($word)*);
            let none = $crate::broadcast::Inputs::<M>::one(core::ptr::null());
            let inputs = $crate::broadcast::Inputs::<M> { $($x,)* words, mode, ..none };
            let map = <M as $crate::map::Map>::from_words([p0, p1, p2, p3]);
            // SAFETY: this entry's own contract.
            unsafe { $crate::broadcast::$($template)*(&inputs, y, $($passed,)* map) }
        }
    };
}

/// Three words, of which some are given.
#[doc(hidden)]
#[macro_export]
macro_rules! __three {
    ($a:ident) => {
        [$a, 0, 0]
    };
    ($a:ident $b:ident) => {
        [$a, $b, 0]
    };
    ($a:ident $b:ident $c:ident) => {
        [$a, $b, $c]
    };
}
