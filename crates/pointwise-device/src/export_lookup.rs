//! The macro that makes the kernel entries of tables of pairs.

/// Exports the entries that look results up, which serve every op of two operands of one byte. Expands to nothing on
/// the host.
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(abi_gpu_kernel))]
macro_rules! export_lookup {
    () => {
        #[cfg(all(target_arch = "nvptx64", not(pointwise_inherits = "plain")))]
        const _: () = {
            $crate::__bind! { binary lookup pairs flat { $crate::row::of_symbol($crate::launch::LOOKUPS[0]) } }
            $crate::__bind! { binary lookup pairs rows { $crate::row::of_symbol($crate::launch::LOOKUPS[1]) } }

            /// # Safety
            /// That of `pointwise_device::lookup::flat`; the host checks it before the launch.
            #[unsafe(export_name = $crate::symbol!(binary, lookup, pairs, flat))]
            unsafe extern "gpu-kernel" fn flat(
                y: *mut u8,
                a: *const u8,
                b: *const u8,
                n: u64,
                head: u32,
                mode: u32,
                table: *const u8,
            ) {
                let tensors = $crate::lookup::Tensors { operands: [a, b], result: y, mode, table };
                // SAFETY: this entry's own contract.
                unsafe { $crate::lookup::flat(&tensors, n, head) }
            }

            /// # Safety
            /// That of `pointwise_device::lookup::rows`; the host checks it before the launch.
            // By value, and without a pointer in it: its fields are read where they lie, as those of scalars are.
            #[allow(improper_gpu_kernel_arg)]
            #[unsafe(export_name = $crate::symbol!(binary, lookup, pairs, rows))]
            unsafe extern "gpu-kernel" fn rows(
                y: *mut u8,
                a: *const u8,
                b: *const u8,
                items: u32,
                mode: u32,
                table: *const u8,
                steps: $crate::launch::Steps<3, { $crate::launch::ROW_SPLITS }>,
            ) {
                let tensors = $crate::lookup::Tensors { operands: [a, b], result: y, mode, table };
                // SAFETY: this entry's own contract.
                unsafe { $crate::lookup::rows(&tensors, &steps, items) }
            }
        };
    };
}
