//! Numbers that kernels and host must agree on.

/// Elements of a thread of `explicit_parallel`.
pub const NEIGHBOURS: usize = 4;
/// Entries of the `table` strategy: all codes of an 8-bit type.
pub const TABLE_LEN: usize = 256;
/// Threads of a block of the `table` strategy.
pub const TABLE_THREADS: u32 = 128;
/// 16-byte vectors of a thread of the `table` strategy.
pub const TABLE_VECTORS: usize = 4;
