//! A few kernels for the tests of pointwise-build.
#![no_std]
#![feature(abi_gpu_kernel, asm_experimental_arch, stdarch_nvptx)]

#[cfg(any(feature = "more", feature = "broken"))]
use core::arch::nvptx::{_block_dim_x, _block_idx_x, _thread_idx_x};

/// Returns the index of the thread in the grid.
#[cfg(any(feature = "more", feature = "broken"))]
fn index() -> usize {
    // SAFETY: these read registers.
    unsafe { _block_idx_x() as usize * _block_dim_x() as usize + _thread_idx_x() as usize }
}

#[cfg(not(any(feature = "more", feature = "broken", feature = "none")))]
mod base {
    /// `to[0] = from[0] + 1`.
    ///
    /// # Safety
    /// Both point to a number in global memory.
    #[unsafe(no_mangle)]
    pub unsafe extern "gpu-kernel" fn increment(from: *const f32, to: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe { *to = *from + 1.0 }
    }

    core::arch::global_asm!(".shared .align 16 .b8 fixture_table[256];");

    /// Waits once, with a table in shared memory.
    #[unsafe(no_mangle)]
    pub extern "gpu-kernel" fn wait() {
        // SAFETY: writes a byte of the table, which no other thread writes as something else.
        unsafe {
            core::arch::asm!(
                "{{ .reg .b32 t; .reg .b32 z; mov.u32 t, fixture_table; mov.u32 z, 0; st.shared.b8 [t], z; bar.sync 0; }}"
            )
        }
    }
}

#[cfg(feature = "more")]
mod more {
    core::arch::global_asm!("// entry double: row={row} op=double loads=0 stores=0", row = const 255);

    /// Doubles each of `count` numbers, for every target the same.
    ///
    /// # Safety
    /// `data` points to `count` numbers in global memory.
    #[cfg(not(pointwise_inherits = "plain"))]
    #[unsafe(no_mangle)]
    pub unsafe extern "gpu-kernel" fn double(data: *mut f32, count: usize) {
        let at = super::index();
        if at < count {
            // SAFETY: `at` is within the data, and no other thread's.
            unsafe { *data.add(at) *= 2.0 }
        }
    }
}

#[cfg(feature = "broken")]
mod broken {
    /// Panics if `at` is out of bounds, which calls a function and carries a message along.
    ///
    /// # Safety
    /// `from` points to eight numbers and `to` to one.
    #[unsafe(no_mangle)]
    pub unsafe extern "gpu-kernel" fn bounds(from: *const [f32; 8], to: *mut f32, at: usize) {
        // SAFETY: the caller's promise.
        unsafe { *to = (&*from)[at] }
    }

    /// Keeps an array in local memory, as registers have no addresses.
    ///
    /// # Safety
    /// `from` points to eight numbers and `to` to one.
    #[unsafe(no_mangle)]
    pub unsafe extern "gpu-kernel" fn spread(from: *const f32, to: *mut f32) {
        let mut numbers = [0.0_f32; 8];
        for (i, number) in numbers.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            *number = unsafe { from.add(i).read_volatile() };
        }
        // SAFETY: the caller's promise.
        unsafe { *to = numbers[super::index() & 7] }
    }
}
