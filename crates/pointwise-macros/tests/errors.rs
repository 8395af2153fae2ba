//! The programs in `ui/`, which the attribute refuses, with the messages beside them. The toolchain of `rust-toolchain.toml`
//! gives these; `TRYBUILD=overwrite` writes them anew.

#[test]
fn mistakes_are_shown_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
