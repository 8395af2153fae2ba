//! The ops against their own formulas in f64, on the CPU and on a GPU or in the emulator.

use pointwise::Device;
use torch_op as _;

#[test]
fn ops_keep_their_bounds() {
    let devices = Device::for_tests(pointwise::embed::embedded()).unwrap();
    pointwise_testkit::check_all("torch-op", &devices).unwrap();
}
