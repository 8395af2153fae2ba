//! The types forbid errors: each program in `ui/` is refused, with the message beside it. The messages come from the
//! toolchain in `rust-toolchain.toml`; `TRYBUILD=overwrite` writes them anew.

#[test]
fn the_types_forbid() {
    // The programs are checked, never run: kernels for them would be compiled for nothing.
    // SAFETY: this is the only test of its program; its harness's thread waits, and reads no variables meanwhile.
    unsafe { std::env::set_var("POINTWISE_DEVICE_RUSTC", "none") };
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
