//! The emulator's errors for wrong kernels and wrong settings, from the calls that meet them.

use libtest_mimic::{Arguments, Failed, Trial};
use pointwise::{Device, ErrorKind, Strategy, Tensor, kernels};

/// The kernel that is changed.
const SYMBOL: &str = "formula_relu_f32_strided";
/// Set for the process that makes a device and says what came of it.
const MAKES_A_DEVICE: &str = "POINTWISE_EMULATOR_TEST";

fn main() {
    if std::env::var_os(MAKES_A_DEVICE).is_some() {
        println!("{}", Device::emulated().map_or_else(|error| error.to_string(), |device| device.to_string()));
        return;
    }
    // SAFETY: no other thread runs yet.
    unsafe { std::env::set_var("POINTWISE_EMULATOR_LIMIT", "100000") };
    let arguments = Arguments::from_args();
    let mut trials = vec![Trial::test("bad_settings_are_errors", bad_settings_are_errors)];
    if pointwise::embed::embedded().is_empty() {
        eprintln!("NOT TESTED: no kernels are embedded to change: {}", pointwise::embed::embedded().note());
    } else {
        trials.extend([
            Trial::test("a_right_kernel_runs", || relu(&kernel()?)?.map_err(Failed::from)),
            Trial::test("an_unknown_instruction_is_named", an_unknown_instruction_is_named),
            Trial::test("text_that_is_no_ptx_is_refused", text_that_is_no_ptx_is_refused),
            Trial::test("other_parameters_are_refused", other_parameters_are_refused),
            Trial::test("a_kernel_that_never_ends_is_stopped", a_kernel_that_never_ends_is_stopped),
            Trial::test("threads_past_the_end_are_found", threads_past_the_end_are_found),
            Trial::test("the_device_can_be_used_after_a_finding", the_device_can_be_used_after_a_finding),
        ]);
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn kernel() -> Result<String, Failed> {
    Ok(pointwise::embed::embedded().ptx(SYMBOL, 90).ok_or("no such kernel")?)
}

/// The kernel with one piece of its text replaced, which must be there.
fn changed(from: &str, to: &str) -> Result<String, Failed> {
    let ptx = kernel()?;
    if ptx.contains(from) { Ok(ptx.replacen(from, to, 1)) } else { Err(format!("`{from}` is not in\n{ptx}").into()) }
}

/// Calls relu on 1,000 elements with this kernel; the finding, if there is one.
fn relu(ptx: &str) -> Result<Result<(), String>, Failed> {
    let x = Tensor::from_slice(&Device::emulated()?, &[-1.0_f32; 1000], [1000])?;
    let outcome = pointwise::__private::with_kernel(ptx, SYMBOL, || kernels::relu().strategy(Strategy::Direct).run(&x));
    match outcome.and_then(|result| result) {
        Ok(y) if y.to_vec::<f32>()? == [0.0; 1000] => Ok(Ok(())),
        Ok(_) => Err("the result is wrong".into()),
        Err(error) => match error.kind() {
            ErrorKind::Emulator { finding } => Ok(Err(finding.clone())),
            _ => Err(format!("another error: {error}").into()),
        },
    }
}

/// The call with the kernel ends in a finding that has all of these parts.
fn finds(ptx: &str, parts: &[&str]) -> Result<(), Failed> {
    let finding = relu(ptx)?.err().ok_or("nothing is found")?;
    match parts.iter().find(|part| !finding.contains(**part)) {
        None => Ok(()),
        Some(part) => Err(format!("`{part}` is missing in: {finding}").into()),
    }
}

fn an_unknown_instruction_is_named() -> Result<(), Failed> {
    let ptx = changed("griddepcontrol.wait;", "griddepcontrol.wait;\n	tanh.approx.bf16 %rs1, %rs1;")?;
    finds(&ptx, &["kernel `formula_relu_f32_strided`, line ", "`tanh.approx.bf16 %rs1, %rs1`"])
}

fn text_that_is_no_ptx_is_refused() -> Result<(), Failed> {
    finds("this is no PTX", &["line 1"])?;
    finds(&kernel()?.replace(SYMBOL, "another"), &["the PTX has no kernel formula_relu_f32_strided"])
}

fn other_parameters_are_refused() -> Result<(), Failed> {
    let ptx = changed(&format!("{SYMBOL}(\n"), &format!("{SYMBOL}(\n	.param .u64 more,\n"))?;
    finds(
        &ptx,
        &["kernel `formula_relu_f32_strided` has other parameters than the one it replaces: 7 of ", "not 6 of "],
    )
}

fn a_kernel_that_never_ends_is_stopped() -> Result<(), Failed> {
    let ptx = changed("griddepcontrol.wait;", "griddepcontrol.wait;\n$again:\n	bra.uni 	$again;")?;
    let parts =
        ["PTX line ", "`bra.uni $again`, block (0, 0, 0), thread (0, 0, 0)", "has executed 100000 instructions"];
    finds(&ptx, &parts)
}

/// The finding that docs/emulator.md explains.
fn threads_past_the_end_are_found() -> Result<(), Failed> {
    let ptx = changed("setp.ge.u32", "setp.gt.u32")?;
    let finding = relu(&ptx)?.err().ok_or("nothing is found")?;
    let page = include_str!("../../docs/emulator.md").replace('\n', " ");
    if page.contains(&without_addresses(&finding)) {
        return Ok(());
    }
    Err(format!("docs/emulator.md has another finding than\n{}", without_addresses(&finding)).into())
}

/// Addresses depend on what was allocated before.
fn without_addresses(finding: &str) -> String {
    let words: Vec<&str> =
        finding.split(' ').map(|word| if word.starts_with("0x") { "0x7f.." } else { word }).collect();
    words.join(" ")
}

fn the_device_can_be_used_after_a_finding() -> Result<(), Failed> {
    finds(&changed("setp.ge.u32", "setp.gt.u32")?, &["thread"])?;
    relu(&kernel()?)?.map_err(Failed::from)
}

fn bad_settings_are_errors() -> Result<(), Failed> {
    for (variable, value, expected) in [
        ("POINTWISE_EMULATOR_CHECKS", "yes", "set it to `on` or `off`, or unset it"),
        ("POINTWISE_EMULATOR_APPROX", "best", "set it to `exact` or `worst`, or unset it"),
        ("POINTWISE_EMULATOR_LIMIT", "0", "set it to a number of instructions, at least 1, or unset it"),
    ] {
        let this = std::env::current_exe()?;
        let output = std::process::Command::new(this).env(MAKES_A_DEVICE, "1").env(variable, value).output()?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if said != format!("the emulator: {variable} is `{value}`: {expected}") {
            return Err(format!("{variable}={value}: {said}").into());
        }
    }
    Ok(())
}
