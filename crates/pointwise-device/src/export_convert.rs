//! The macro that makes the kernel entries of the conversions between element types.

/// Exports the entries of all conversions: by vectors, and by single elements of any strides. Expands to nothing on the
/// host.
#[macro_export]
macro_rules! export_convert {
    () => {
        #[cfg(target_arch = "nvptx64")]
        const _: () = {
            $crate::convert_pairs! { ($crate::__convert_entries) () }
        };
    };
}

#[doc(hidden)]
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(abi_gpu_kernel))]
macro_rules! __convert_entries {
    // Conversions of fp8 to fp8 and to anything else, then those of anything else.
    (f8e4m3, $to:ident, ()) => {
        $crate::__unless_inherited! { f8e4m3 { $crate::__convert_entries! { @ f8e4m3 $to } } }
    };
    (f8e5m2, $to:ident, ()) => {
        $crate::__unless_inherited! { f8e5m2 { $crate::__convert_entries! { @ f8e5m2 $to } } }
    };
    ($from:ident, $to:ident, ()) => {
        $crate::__unless_inherited! { $to { $crate::__convert_entries! { @ $from $to } } }
    };
    (@ $from:ident $to:ident) => {
        const _: () = {
            type A = $crate::element::ty::$from;
            type B = $crate::element::ty::$to;
            type O = $crate::cast::Convert<A, B>;
            $crate::__bind! { convert $from $to flat {
                $crate::row::of_symbol($crate::symbol!(convert, $from, $to, flat))
            } }
            $crate::__bind! { convert $from $to strided {
                $crate::row::of_symbol($crate::symbol!(convert, $from, $to, strided))
            } }
            // The wider of the two has vectors of 16 bytes: neighbouring threads then make neighbouring accesses on
            // both sides.
            const LANES: usize = 16 / if size_of::<A>() > size_of::<B>() { size_of::<A>() } else { size_of::<B>() };

            /// # Safety
            /// That of `pointwise_device::formula::flat`; the host checks it before the launch.
            #[unsafe(export_name = $crate::symbol!(convert, $from, $to, flat))]
            unsafe extern "gpu-kernel" fn flat(y: *mut B, x: *const A, n: u64, head: u32, mode: u32) {
                let tensors = $crate::formula::Tensors::of_one(x.cast(), y.cast(), mode);
                let op = <O as $crate::OpData>::from_words(&[0; 8]);
                // SAFETY: this entry's own contract.
                unsafe { $crate::formula::flat::<A, B, O, 1, 1, LANES>(&tensors, n, head, op) }
            }

            /// # Safety
            /// That of `pointwise_device::formula::grouped`; the host checks it before the launch.
            #[allow(improper_gpu_kernel_arg)] // by value, and without a pointer in it
            #[unsafe(export_name = $crate::symbol!(convert, $from, $to, strided))]
            unsafe extern "gpu-kernel" fn strided(
                y: *mut B,
                x: *const A,
                items: u32,
                mode: u32,
                groups: $crate::launch::Groups<2>,
            ) {
                let tensors = $crate::formula::Tensors::of_one(x.cast(), y.cast(), mode);
                let op = <O as $crate::OpData>::from_words(&[0; 8]);
                // SAFETY: this entry's own contract.
                unsafe { $crate::formula::grouped::<A, B, O, 1, 1, 2, 1>(&tensors, &groups, items, op) }
            }
        };
    };
}
