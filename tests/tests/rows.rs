//! Ops on rows: every op of the family against its formula in f64, on the CPU and a GPU or the emulator; the same bits on both.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use pointwise::kernel::OpDef;
use pointwise::{Device, info};
use pointwise_testkit::check_op;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let devices: &'static [Device] = match Device::for_tests(pointwise::embed::embedded()) {
        Ok(devices) => devices.leak(),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let forward = info::rows().filter(|def| !def.info.is_gradient());
    let trials = forward.map(|def: &'static OpDef| {
        Trial::test(format!("{}::formula", def.info.name), move || check_op(def, devices).map_err(Into::into))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
