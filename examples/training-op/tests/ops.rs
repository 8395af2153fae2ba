//! The ops against their own formulas in f64, on the CPU and on a GPU or in the emulator.

use training_op as _;

#[test]
fn ops_keep_their_bounds() {
    check::check_all("training-op").unwrap();
}
