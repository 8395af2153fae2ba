//! `pointwise doctor`: says what works on this machine, and how to repair the rest.

use std::io::Write;

use pointwise::{Device, ErrorKind, Tensor, kernels};
use pointwise_build::doctor::{Report, report};
use pointwise_build::toolchain::{INSTALL, RUSTC_VARIABLE};

use crate::error::{Result, one_line};
use crate::output::{Paint, line, wrapped};

/// Width of the labels.
const LABEL: usize = 12;
/// Columns of a terminal.
const WIDTH: usize = 80;

/// Runs the command. A machine without a GPU is no fault.
///
/// # Errors
/// The CPU does not work; the standard output fails.
pub(crate) fn doctor(out: &mut impl Write) -> Result<()> {
    let mut works = Vec::new();
    let mut advice = Vec::new();
    say(out, "pointwise", &[env!("CARGO_PKG_VERSION").to_owned()])?;

    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut lines = vec![format!("{threads} threads, {}", cpu_features())];
    match std::env::var_os("POINTWISE_CPU") {
        Some(level) if level == "baseline" || level == "avx2" => {
            lines.push(format!("POINTWISE_CPU={}: ops use no newer instructions", level.display()));
        }
        Some(level) => {
            let level = one_line(&level.display().to_string());
            advice.push(format!("POINTWISE_CPU={level} is neither baseline nor avx2 and changes nothing."));
        }
        None => {}
    }
    say(out, "cpu", &lines)?;
    smoke(&Device::cpu())?;
    works.push("ops on the CPU".to_owned());

    let embedded = pointwise::embed::embedded();
    if embedded.is_empty() {
        let note = format!("for the CPU alone; none for GPUs: {}", embedded.note());
        say(out, "kernels", &paragraph(&note))?;
    } else {
        let count = embedded.entries().count();
        let sms = |list: Vec<u32>| list.iter().map(|sm| format!("sm_{sm}")).collect::<Vec<_>>().join(", ");
        let mut lines = vec![format!("{count} embedded, as PTX for {}", sms(embedded.targets()))];
        if !embedded.cubins().is_empty() {
            lines.push(format!("machine code for {}", sms(embedded.cubins())));
        }
        lines.extend(paragraph(embedded.note()));
        say(out, "kernels", &lines)?;
    }

    gpus(out, !embedded.is_empty(), &mut works, &mut advice)?;
    if !embedded.is_empty() {
        match emulator() {
            Ok(()) => {
                let about = "runs the kernels on the CPU and checks every access: --device emulated, or emulated:80";
                say(out, "emulator", &[about.to_owned()])?;
                works.push("ops in the emulator".to_owned());
            }
            Err(error) => {
                say(out, "emulator", &[one_line(&error.to_string())])?;
                advice.push(format!("An op failed in the emulator: {}", one_line(&error.to_string())));
            }
        }
    }
    let report = report();
    if embedded.is_empty() {
        advice.push(match &report.toolchain {
            Ok(_) => "This build has no GPU kernels, but there is a compiler for them: build it again.".to_owned(),
            Err(pointwise_build::Error::SwitchedOff) => {
                format!("This build has no GPU kernels: unset {RUSTC_VARIABLE} and build it again.")
            }
            Err(_) => format!("This build has no GPU kernels, and there is no compiler for them. {INSTALL}"),
        });
    }
    tools(out, &report, embedded.is_empty())?;

    let paint = Paint::for_stdout();
    line(out, "")?;
    line(out, paint.good(&format!("Works: {}.", works.join(", "))))?;
    for problem in advice {
        for (i, text) in wrapped(&problem, WIDTH - 7).iter().enumerate() {
            line(out, format!("{:<7}{text}", if i == 0 { "To do:" } else { "" }))?;
        }
    }
    Ok(())
}

/// The driver and its devices.
fn gpus(out: &mut impl Write, kernels: bool, works: &mut Vec<String>, advice: &mut Vec<String>) -> Result<()> {
    if let Some(version) = driver_version() {
        say(out, "driver", &[version])?;
    }
    let count = Device::cuda_count();
    if count == 0 {
        let install = "No GPU can be used. On a machine with one, install NVIDIA's driver; nothing else is needed.";
        let (why, to_do) = match Device::cuda(0) {
            Err(error) => match error.kind() {
                ErrorKind::NoDriver { tried } => (format!("no NVIDIA driver: {tried}"), install),
                ErrorKind::BrokenDriver { why } => (
                    format!("the NVIDIA driver cannot be used: {why}"),
                    "No GPU can be used. Repair or update the driver.",
                ),
                _ => (error.to_string(), install),
            },
            Ok(device) => (format!("{device} has appeared just now"), "Run this again."),
        };
        say(out, "cuda", &[one_line(&why)])?;
        advice.push(to_do.to_owned());
        return Ok(());
    }
    for ordinal in 0..count {
        let label = format!("cuda:{ordinal}");
        let device = match Device::cuda(ordinal) {
            Ok(device) => device,
            Err(error) => {
                say(out, &label, &[one_line(&error.to_string())])?;
                advice.push(format!("{label} cannot be used: {}", one_line(&error.to_string())));
                continue;
            }
        };
        let mut lines = Vec::new();
        if let Some(info) = device.info() {
            let ((major, minor), sm) = (info.driver, info.sm);
            lines.push(format!("{}, sm_{sm}, driver for CUDA {major}.{minor}", info.name));
            lines.push(if info.dependent_launch {
                "kernels are launched while those before them end".to_owned()
            } else {
                "kernels are launched when those before them have ended: earlier takes sm_90, a driver for CUDA 12.3 and no \
                 POINTWISE_DEPENDENT_LAUNCH=0"
                    .to_owned()
            });
        }
        if let Ok(Some((free, total))) = device.memory() {
            let gib = |bytes: usize| bytes as f64 / (1_u64 << 30) as f64;
            lines.push(format!("{:.1} of {:.1} GiB free", gib(free), gib(total)));
        }
        if kernels {
            match smoke(&device) {
                Ok(()) => works.push(format!("ops on {label}")),
                Err(error) => {
                    lines.push(one_line(&error.to_string()));
                    advice.push(format!("{label} is there, but an op failed: {}", one_line(&error.to_string())));
                }
            }
        }
        say(out, &label, &lines)?;
    }
    Ok(())
}

/// The compilers for device code, which only building needs.
fn tools(out: &mut impl Write, report: &Report, wanted: bool) -> Result<()> {
    let text = match &report.toolchain {
        Ok(toolchain) => toolchain.to_string(),
        Err(pointwise_build::Error::NoToolchain { .. }) if !wanted => {
            "not found (only building kernels needs one)".to_owned()
        }
        // The advice stands below.
        Err(error) if wanted => error.to_string().lines().next().unwrap_or_default().to_owned(),
        Err(error) => error.to_string(),
    };
    say(out, "compiler", &paragraph(&text))?;
    let text = match &report.ptxas {
        Ok(ptxas) => format!("{ptxas} (optional)"),
        Err(_) => "not found (optional: it checks kernels when they are built)".to_owned(),
    };
    say(out, "ptxas", &[one_line(&text)])
}

/// An op in the emulator.
fn emulator() -> Result<()> {
    smoke(&Device::emulated()?)
}

/// An op on a few elements, there and back.
fn smoke(device: &Device) -> Result<()> {
    let y = kernels::relu().run(&Tensor::from_slice(device, &[-1.0_f32, 0.5, 2.0], [3])?)?.to_vec::<f32>()?;
    if y == [0.0, 0.5, 2.0] {
        return Ok(());
    }
    Err(crate::error::Error::Failed(format!("relu of [-1, 0.5, 2] on {device} gave {y:?}; please report this")))
}

/// The version text of NVIDIA's kernel module, on Linux.
fn driver_version() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let words = text.lines().next()?.trim().strip_prefix("NVRM version:")?;
    Some(one_line(&words.split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// Vector extensions that the compiled loops may be chosen by.
fn cpu_features() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        let found = [
            ("avx2", is_x86_feature_detected!("avx2")),
            ("fma", is_x86_feature_detected!("fma")),
            ("f16c", is_x86_feature_detected!("f16c")),
            ("avx512f", is_x86_feature_detected!("avx512f")),
        ];
        let yes: Vec<_> = found.iter().filter(|(_, there)| *there).map(|(name, _)| *name).collect();
        if yes.is_empty() { "x86_64 without avx2".to_owned() } else { format!("x86_64 with {}", yes.join(", ")) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        std::env::consts::ARCH.to_owned()
    }
}

/// The lines of a text, each without control characters that would break it.
fn paragraph(text: &str) -> Vec<String> {
    text.lines().map(|text| one_line(text.trim())).collect()
}

fn say(out: &mut impl Write, label: &str, lines: &[String]) -> Result<()> {
    let lines = lines.iter().flat_map(|text| wrapped(text, WIDTH - LABEL));
    for (i, text) in lines.enumerate() {
        let label = if i == 0 { label } else { "" };
        line(out, format!("{label:<LABEL$}{text}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_of_several_lines_has_them() {
        let mut out = Vec::new();
        say(&mut out, "kernels", &paragraph("none: no compiler\n  install one\u{1b}[0m\n")).unwrap();
        let expected = "kernels     none: no compiler\n            install one\\u{1b}[0m\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
