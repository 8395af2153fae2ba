//! Thread indices and barriers, under cuda_std's names, and notes to the compiler and the assembler.

use core::arch::nvptx::{
    _block_dim_x, _block_dim_y, _block_dim_z, _block_idx_x, _block_idx_y, _block_idx_z, _grid_dim_x, _thread_idx_x,
    _thread_idx_y, _thread_idx_z,
};

/// `threadIdx.x`.
#[inline(always)]
pub fn thread_idx_x() -> u32 {
    // SAFETY: reads a special register.
    unsafe { _thread_idx_x() as u32 }
}

/// `threadIdx.y`.
#[inline(always)]
pub fn thread_idx_y() -> u32 {
    // SAFETY: reads a special register.
    unsafe { _thread_idx_y() as u32 }
}

/// `threadIdx.z`.
#[inline(always)]
pub fn thread_idx_z() -> u32 {
    // SAFETY: reads a special register.
    unsafe { _thread_idx_z() as u32 }
}

/// `blockIdx.x`.
#[inline(always)]
pub fn block_idx_x() -> u32 {
    // SAFETY: reads a special register.
    unsafe { _block_idx_x() as u32 }
}

/// `blockIdx.y`.
#[inline(always)]
pub fn block_idx_y() -> u32 {
    // SAFETY: reads a special register.
    unsafe { _block_idx_y() as u32 }
}

/// `blockIdx.z`.
#[inline(always)]
pub fn block_idx_z() -> u32 {
    // SAFETY: reads a special register.
    unsafe { _block_idx_z() as u32 }
}

/// `blockDim.x`.
#[inline(always)]
pub fn block_dim_x() -> u32 {
    // SAFETY: reads a special register.
    unsafe { _block_dim_x() as u32 }
}

/// `blockDim.y`.
#[inline(always)]
pub fn block_dim_y() -> u32 {
    // SAFETY: reads a special register.
    unsafe { _block_dim_y() as u32 }
}

/// `blockDim.z`.
#[inline(always)]
pub fn block_dim_z() -> u32 {
    // SAFETY: reads a special register.
    unsafe { _block_dim_z() as u32 }
}

/// `gridDim.x`.
#[inline(always)]
pub fn grid_dim_x() -> u32 {
    // SAFETY: reads a special register.
    unsafe { _grid_dim_x() as u32 }
}

/// The thread's index in a one-dimensional grid. The host keeps grids that use it below 2^32 threads.
#[inline(always)]
pub fn index_1d() -> u32 {
    block_idx_x() * block_dim_x() + thread_idx_x()
}

/// The thread's index in a one-dimensional grid of any size.
#[inline(always)]
pub fn index_1d_wide() -> u64 {
    // Widened before multiplying: the product of two u32 would wrap.
    block_idx_x() as u64 * block_dim_x() as u64 + thread_idx_x() as u64
}

/// Waits for every thread of the block (`bar.sync 0`, cuda_std's `sync_threads`). Each thread of the block must reach
/// it.
#[inline(always)]
pub fn sync_threads() {
    // SAFETY: a barrier; without `nomem`, so that no memory access moves across it.
    unsafe { core::arch::asm!("bar.sync 0;", options(nostack)) }
}

/// Waits for the threads of the warp that have not ended (`bar.warp.sync`). It is no instruction if they are together,
/// but neither compiler nor assembler moves an access to memory across.
#[inline(always)]
pub fn sync_warp() {
    // SAFETY: a barrier that does not wait for threads that have ended; without `nomem`.
    unsafe { core::arch::asm!("bar.warp.sync 0xffffffff;", options(nostack)) }
}

/// Returns the value, but hides it from the compiler.
#[inline(always)]
pub fn opaque(value: u32) -> u32 {
    let out;
    // SAFETY: copies a register.
    unsafe {
        core::arch::asm!("mov.b32 {o}, {i};", o = out(reg32) out, i = in(reg32) value, options(pure, nomem, nostack))
    }
    out
}

/// [`opaque`], but what depends on the value is computed again wherever this is called, and takes no registers from one to the next.
#[inline(always)]
pub fn opaque_here(value: u32) -> u32 {
    let out;
    // SAFETY: copies a register.
    unsafe { core::arch::asm!("mov.b32 {o}, {i};", o = out(reg32) out, i = in(reg32) value, options(nomem, nostack)) }
    out
}

/// Returns the answer. The compiler computes it here, not where it is used.
#[inline(always)]
pub fn asked_here(answer: bool) -> bool {
    let out: u32;
    // SAFETY: copies a register.
    unsafe {
        core::arch::asm!("mov.b32 {o}, {i};", o = out(reg32) out, i = in(reg32) answer as u32, options(nomem, nostack))
    }
    out != 0
}

/// Returns the value. The compiler computes it here, not where it is used.
#[inline(always)]
pub fn worked_out_here(value: u64) -> u64 {
    let out;
    // SAFETY: copies a register.
    unsafe { core::arch::asm!("mov.b64 {o}, {i};", o = out(reg64) out, i = in(reg64) value, options(nomem, nostack)) }
    out
}

/// Makes the compiler compute the value here, not in a branch that uses it. What computes it again then finds it.
#[inline(always)]
pub fn computed_here(value: f32) {
    // SAFETY: no instruction.
    unsafe { core::arch::asm!("// {v}", v = in(reg32) value, options(nomem, nostack)) }
}

/// Returns a placeholder that is never read: the content of some register. Writing a number would take an instruction.
#[inline(always)]
pub fn anything() -> f32 {
    let any;
    // SAFETY: no instruction; the register is given out as it is.
    unsafe { core::arch::asm!("// {o}", o = out(reg32) any, options(pure, nomem, nostack)) }
    any
}

/// Makes the assembler take at most `N` registers for the kernel: the builder turns the comment into a directive.
#[inline(always)]
pub fn at_most_registers<const N: u32>() {
    // SAFETY: no instruction.
    unsafe { core::arch::asm!("// most registers: {n}", n = const N, options(nomem, nostack)) }
}

/// Makes the assembler write the body of this loop once.
#[inline(always)]
pub fn no_unrolling() {
    // SAFETY: no instruction, a note to the assembler.
    unsafe { core::arch::asm!(".pragma \"nounroll\";", options(nomem, nostack)) }
}
