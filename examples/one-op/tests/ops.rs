//! The op against its own formula in f64, on the CPU and on a GPU or in the emulator.

use one_op as _;
use pointwise::Device;

#[test]
fn ops_keep_their_bounds() {
    let devices = Device::for_tests(pointwise::embed::embedded()).unwrap();
    pointwise_testkit::check_all("one-op", &devices).unwrap();
}
