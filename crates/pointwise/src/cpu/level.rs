//! Loops that are compiled for each level of instructions, and which of the versions runs.

#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicU8, Ordering};

/// The instructions that every processor of the target has.
pub(crate) const BASELINE: u8 = 1;
/// AVX2, FMA and F16C: every x86-64 processor since 2015 or so.
#[cfg(target_arch = "x86_64")]
pub(crate) const AVX2: u8 = 2;
/// AVX-512 F, BW, DQ and VL beside them.
#[cfg(target_arch = "x86_64")]
pub(crate) const AVX512: u8 = 3;

/// A loop that is compiled for each level.
pub(crate) trait Loop {
    /// Runs it: inlined into a function that has the level's instructions.
    ///
    /// # Safety
    /// The loop's own contract; the processor has `LEVEL`.
    unsafe fn run<const LEVEL: u8>(self);
}

/// Runs a loop at the best level.
///
/// # Safety
/// The loop's contract.
#[inline(always)]
pub(crate) unsafe fn at_best<L: Loop>(of: L) {
    // SAFETY: the processor has the level; the caller's contract.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        match level() {
            AVX512 => return at::<AVX512, L>(of),
            AVX2 => return at::<AVX2, L>(of),
            _ => {}
        }
        at::<BASELINE, L>(of);
    }
}

/// Runs a loop at the best level but AVX-512: a loop whose third version would not earn its size.
///
/// # Safety
/// The loop's contract.
#[inline(always)]
pub(crate) unsafe fn at_better<L: Loop>(of: L) {
    // SAFETY: the processor has the level; the caller's contract.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if level() >= AVX2 {
            return at::<AVX2, L>(of);
        }
        at::<BASELINE, L>(of);
    }
}

/// Calls a loop that is compiled for a level, as a function of its own: what many loops call is compiled once.
///
/// # Safety
/// The contract of [`Loop::run`] holds.
#[inline(always)]
pub(crate) unsafe fn at<const LEVEL: u8, L: Loop>(of: L) {
    // SAFETY: the caller's contract.
    unsafe {
        match LEVEL {
            #[cfg(target_arch = "x86_64")]
            AVX512 => avx512(of),
            #[cfg(target_arch = "x86_64")]
            AVX2 => avx2(of),
            _ => baseline(of),
        }
    }
}

/// # Safety
/// The contract of [`Loop::run`] holds.
#[inline(never)]
unsafe fn baseline<L: Loop>(of: L) {
    // SAFETY: the caller's contract.
    unsafe { of.run::<BASELINE>() }
}

/// # Safety
/// The contract of [`Loop::run`] holds.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn avx2<L: Loop>(of: L) {
    // SAFETY: the caller's contract.
    unsafe { of.run::<AVX2>() }
}

/// # Safety
/// The contract of [`Loop::run`] holds.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn avx512<L: Loop>(of: L) {
    // SAFETY: the caller's contract.
    unsafe { of.run::<AVX512>() }
}

/// The best level of this processor, 0 before the first call asks.
#[cfg(target_arch = "x86_64")]
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// Returns the level of loops: the processor's best, or the level that `POINTWISE_CPU` names (`baseline`, `avx2`) if that
/// is lower.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn level() -> u8 {
    // Nothing else is published with it, and all threads find the same.
    match LEVEL.load(Ordering::Relaxed) {
        0 => {
            let level = find().min(allowed());
            LEVEL.store(level, Ordering::Relaxed);
            level
        }
        level => level,
    }
}

#[cfg(target_arch = "x86_64")]
#[cold]
fn find() -> u8 {
    use std::arch::is_x86_feature_detected as has;
    if !(has!("avx2") && has!("fma") && has!("f16c")) {
        BASELINE
    } else if has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") {
        AVX512
    } else {
        AVX2
    }
}

#[cfg(target_arch = "x86_64")]
fn allowed() -> u8 {
    match std::env::var("POINTWISE_CPU").as_deref() {
        Ok("baseline") => BASELINE,
        Ok("avx2") => AVX2,
        _ => AVX512,
    }
}

/// Runs `work` at each level that the processor has. Tests that run beside it may run at any of them meanwhile, which
/// changes no result.
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) fn at_each(mut work: impl FnMut(u8)) {
    let best = find();
    for level in BASELINE..=best {
        LEVEL.store(level, Ordering::Relaxed);
        work(level);
    }
    LEVEL.store(best.min(allowed()), Ordering::Relaxed);
}
