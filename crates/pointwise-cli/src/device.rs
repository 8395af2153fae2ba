//! The device that a command line names.

use pointwise::{Device, ErrorKind};

use crate::error::{Error, Result};

/// Checks a device's name. A later step checks if the device is there.
///
/// # Errors
/// Another name, in words for clap.
pub fn device_name(name: &str) -> Result<String, String> {
    let ordinal = name.strip_prefix("cuda:");
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u32>().is_ok();
    let is_emulated = matches!(name, "emulated" | "emulated:80" | "emulated:90");
    if matches!(name, "auto" | "cpu" | "cuda") || is_emulated || ordinal.is_some_and(is_number) {
        return Ok(name.to_owned());
    }
    Err("a device is auto, cpu, cuda, cuda:N, emulated, emulated:80 or emulated:90".to_owned())
}

/// The device of a name. In a build without kernels, a GPU or the emulator is an error: no op could run there.
///
/// # Errors
/// No driver or no such device.
pub fn device(name: &str) -> Result<Device> {
    let device = Device::parse(name).map_err(|error| match error.kind() {
        ErrorKind::NoDriver { tried } => {
            Error::Failed(format!("no NVIDIA driver ({tried}): install the driver, or use --device cpu"))
        }
        ErrorKind::BrokenDriver { why } => {
            Error::Failed(format!("the NVIDIA driver cannot be used ({why}): repair or update it, or use --device cpu"))
        }
        _ => error.into(),
    })?;
    let embedded = pointwise::embed::embedded();
    if !device.is_cpu() && embedded.is_empty() {
        let note = embedded.note();
        return Err(Error::Failed(format!("this build has no kernels for {device} ({note}): use --device cpu")));
    }
    Ok(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices() {
        for good in ["auto", "cpu", "cuda", "cuda:0", "cuda:12", "emulated", "emulated:80"] {
            assert!(device_name(good).is_ok(), "{good}");
        }
        for bad in
            ["", "gpu", "CPU", "cuda:", "cuda:-1", "cuda:+1", "cuda:1x", "emulated:70", "cuda:99999999999999999999999"]
        {
            assert!(device_name(bad).is_err(), "{bad}");
        }
    }
}
