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
            $crate::for_types! { [$($set)*] ($crate::__map_type) ($kind $name $op [$($($p)*)?]) }
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

/// One entry.
#[doc(hidden)]
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(abi_gpu_kernel))]
macro_rules! __map_entry {
    ($variant:ident, (binary $type:ident $name:ident $op:ident [$($p:ident)*])) => {
        const _: () = {
            type E = $crate::element::ty::$type;
            type C = <E as $crate::Element>::Compute;
            type M = $crate::map::Binary<E, $crate::__op_type!($op [$($p)*])>;
            $crate::__map_body! { $variant, (binary $name $type) [a: A, b: B] [wa wb] 3 }
        };
    };
    ($variant:ident, (unary $type:ident $name:ident $op:ident [$($p:ident)*])) => {
        const _: () = {
            type E = $crate::element::ty::$type;
            type C = <E as $crate::Element>::Compute;
            type M = $crate::map::Unary<E, $crate::__op_type!($op [$($p)*])>;
            $crate::__map_body! { $variant, (unary $name $type) [a: A] [wa] 2 }
        };
    };
    ($variant:ident, (ternary $type:ident $name:ident $op:ident [$($p:ident)*])) => {
        const _: () = {
            type E = $crate::element::ty::$type;
            type C = <E as $crate::Element>::Compute;
            type M = $crate::map::Ternary<E, $crate::__op_type!($op [$($p)*])>;
            $crate::__map_body! { $variant, (ternary $name $type) [a: A, b: B, c: C] [wa wb wc] 4 }
        };
    };
    ($variant:ident, (random $type:ident $name:ident $op:ident [$($p:ident)*])) => {
        const _: () = {
            type E = $crate::element::ty::$type;
            type C = <E as $crate::Element>::Compute;
            type M = $crate::map::Random<E, $crate::__op_type!($op [$($p)*])>;
            $crate::__random_body! { $variant $name $type }
        };
    };
    ($variant:ident, (select $type:ident $name:ident $op:ident [])) => {
        const _: () = {
            type E = $crate::element::ty::$type;
            type M = $crate::map::Select<E, $op>;
            $crate::__map_body! { $variant, (select $name $type) [a: A, b: B, c: C] [wa wb wc] 4 }
        };
    };
}

/// The entries of a random op: those of every number of operands have one signature, with three operands and, behind the
/// parameters, what is drawn.
#[doc(hidden)]
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(abi_gpu_kernel))]
macro_rules! __random_body {
    (flat $name:ident $type:ident) => {
        /// # Safety
        /// That of `pointwise_device::broadcast::flat`; the host checks it before the launch.
        // By value, and without a pointer in it: its fields are read where they lie, as those of scalars are.
        #[allow(improper_gpu_kernel_arg)]
        #[unsafe(export_name = $crate::symbol!(random, $name, $type, flat))]
        unsafe extern "gpu-kernel" fn entry(
            a: *const E,
            b: *const E,
            c: *const E,
            y: *mut E,
            n: u64,
            head: u32,
            mode: u32,
            wa: u64,
            wb: u64,
            wc: u64,
            p0: u64,
            p1: u64,
            p2: u64,
            p3: u64,
            draw: $crate::Draw,
        ) {
            let inputs = $crate::broadcast::Inputs::<M> { a, b, c, words: [wa, wb, wc], mode, draw };
            let map = <M as $crate::map::Map>::from_words([p0, p1, p2, p3]);
            // SAFETY: this entry's own contract.
            unsafe { $crate::broadcast::flat::<M, { $crate::vector_len!($type) }>(&inputs, y, n, head, map) }
        }
    };
    (rows $name:ident $type:ident) => {
        $crate::__random_body! { @ rows { $crate::vector_len!($type) } $name $type }
    };
    (strided $name:ident $type:ident) => {
        $crate::__random_body! { @ strided 1 $name $type }
    };
    (@ $variant:ident $len:tt $name:ident $type:ident) => {
        /// # Safety
        /// That of `pointwise_device::broadcast::tiled`; the host checks it before the launch.
        // By value, and without a pointer in it: its fields are read where they lie, as those of scalars are.
        #[allow(improper_gpu_kernel_arg)]
        #[unsafe(export_name = $crate::symbol!(random, $name, $type, $variant))]
        unsafe extern "gpu-kernel" fn entry(
            a: *const E,
            b: *const E,
            c: *const E,
            y: *mut E,
            steps: $crate::launch::Steps<4>,
            items: u32,
            mode: u32,
            wa: u64,
            wb: u64,
            wc: u64,
            p0: u64,
            p1: u64,
            p2: u64,
            p3: u64,
            draw: $crate::Draw,
        ) {
            let inputs = $crate::broadcast::Inputs::<M> { a, b, c, words: [wa, wb, wc], mode, draw };
            let map = <M as $crate::map::Map>::from_words([p0, p1, p2, p3]);
            // SAFETY: this entry's own contract.
            unsafe { $crate::broadcast::tiled::<M, $len, 4>(&inputs, y, &steps, items, map) }
        }
    };
}

/// The function of an entry: those of a template and number of operands have one signature.
#[doc(hidden)]
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(abi_gpu_kernel))]
macro_rules! __map_body {
    (flat, ($kind:ident $name:ident $type:ident) [$($x:ident: $X:ident),*] [$($word:ident)*] $n:literal) => {
        /// # Safety
        /// That of `pointwise_device::broadcast::flat`; the host checks it before the launch.
        #[unsafe(export_name = $crate::symbol!($kind, $name, $type, flat))]
        unsafe extern "gpu-kernel" fn entry(
            $($x: *const <M as $crate::map::Map>::$X,)* y: *mut <M as $crate::map::Map>::R,
            n: u64, head: u32, mode: u32, $($word: u64,)* p0: u64, p1: u64, p2: u64, p3: u64,
        ) {
            let inputs = $crate::__map_inputs!([$($x)*] [$($word)*] mode);
            let map = <M as $crate::map::Map>::from_words([p0, p1, p2, p3]);
            // SAFETY: this entry's own contract.
            unsafe { $crate::broadcast::flat::<M, { $crate::vector_len!($type) }>(&inputs, y, n, head, map) }
        }
    };
    (rows, $ids:tt $x:tt $words:tt $n:literal) => {
        $crate::__map_tiled! { rows { 16 / size_of::<E>() } $ids $x $words $n }
    };
    (direct_strided, $ids:tt $x:tt $words:tt $n:literal) => {
        $crate::__map_tiled! { direct_strided 1 $ids $x $words $n }
    };
    (strided, $ids:tt $x:tt $words:tt $n:literal) => {
        $crate::__map_tiled! { strided 1 $ids $x $words $n }
    };
}

#[doc(hidden)]
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(abi_gpu_kernel))]
macro_rules! __map_tiled {
    ($variant:ident $len:tt ($kind:ident $name:ident $type:ident) [$($x:ident: $X:ident),*] [$($word:ident)*]
        $n:literal) => {
        /// # Safety
        /// That of `pointwise_device::broadcast::tiled`; the host checks it before the launch.
        // By value, and without a pointer in it: its fields are read where they lie, as those of scalars are.
        #[allow(improper_gpu_kernel_arg)]
        #[unsafe(export_name = $crate::symbol!($kind, $name, $type, $variant))]
        unsafe extern "gpu-kernel" fn entry(
            $($x: *const <M as $crate::map::Map>::$X,)* y: *mut <M as $crate::map::Map>::R,
            steps: $crate::launch::Steps<$n>, items: u32, mode: u32, $($word: u64,)*
            p0: u64, p1: u64, p2: u64, p3: u64,
        ) {
            let inputs = $crate::__map_inputs!([$($x)*] [$($word)*] mode);
            let map = <M as $crate::map::Map>::from_words([p0, p1, p2, p3]);
            // SAFETY: this entry's own contract.
            unsafe { $crate::broadcast::tiled::<M, $len, $n>(&inputs, y, &steps, items, map) }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __map_inputs {
    ([$a:ident] [$wa:ident] $mode:ident) => {
        $crate::broadcast::Inputs::<M> {
            a: $a,
            b: core::ptr::null(),
            c: core::ptr::null(),
            words: [$wa, 0, 0],
            mode: $mode,
            draw: $crate::Draw::NONE,
        }
    };
    ([$a:ident $b:ident] [$wa:ident $wb:ident] $mode:ident) => {
        $crate::broadcast::Inputs::<M> {
            a: $a,
            b: $b,
            c: core::ptr::null(),
            words: [$wa, $wb, 0],
            mode: $mode,
            draw: $crate::Draw::NONE,
        }
    };
    ([$a:ident $b:ident $c:ident] [$wa:ident $wb:ident $wc:ident] $mode:ident) => {
        $crate::broadcast::Inputs::<M> {
            a: $a,
            b: $b,
            c: $c,
            words: [$wa, $wb, $wc],
            mode: $mode,
            draw: $crate::Draw::NONE,
        }
    };
}
