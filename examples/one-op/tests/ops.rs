//! The op against its own formula in f64, on the CPU and on a GPU or in the emulator.

use one_op as _;

#[test]
fn ops_keep_their_bounds() {
    check::check_all("one-op").unwrap();
}
