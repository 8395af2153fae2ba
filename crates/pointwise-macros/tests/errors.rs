//! What the attribute refuses: each program in `ui/`, with the messages beside it. They are those of the toolchain in
//! `rust-toolchain.toml`; `TRYBUILD=overwrite` writes them anew.

#[test]
fn mistakes_are_shown_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
