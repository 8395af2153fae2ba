//! The settings of a device: checks, approximate results and limits, and the environment variables that set them.

use std::env;

/// The results of the approximate instructions (`ex2.approx`, `rcp.approx` and so on).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approx {
    /// The exact result, rounded once.
    #[default]
    Exact,
    /// The exact result, moved by a pseudo-random amount of at most the error that the PTX ISA allows.
    Worst,
}

/// The settings of a [`Gpu`](crate::Gpu).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// True if every access is fully checked. Bounds and alignment are always checked.
    pub checks: bool,
    /// The results of the approximate instructions.
    pub approx: Approx,
    /// The most instructions that one warp executes, so that a kernel that never ends is an error.
    pub limit: u64,
    /// The bytes of memory that the device has.
    pub memory_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { checks: true, approx: Approx::Exact, limit: 1 << 28, memory_bytes: 16 << 30 }
    }
}

/// An environment variable of the emulator has a value that it does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} is `{value}`: set it to {expected}, or unset it")]
pub struct SettingsError {
    /// The variable.
    pub variable: &'static str,
    /// Its value.
    pub value: String,
    /// The values that it may have.
    pub expected: &'static str,
}

impl Settings {
    /// Returns the default settings, changed as the environment says: `POINTWISE_EMULATOR_CHECKS` (`on`, `off`),
    /// `POINTWISE_EMULATOR_APPROX` (`exact`, `worst`) and `POINTWISE_EMULATOR_LIMIT` (instructions a warp).
    ///
    /// # Errors
    /// Fails if a variable has another value.
    pub fn from_env() -> Result<Settings, SettingsError> {
        Settings::from_variables(|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    fn from_variables(read: impl Fn(&str) -> Option<String>) -> Result<Settings, SettingsError> {
        let mut settings = Settings::default();
        if let Some((variable, value)) = given(&read, "POINTWISE_EMULATOR_CHECKS") {
            settings.checks = match value.as_str() {
                "on" => true,
                "off" => false,
                _ => return Err(SettingsError { variable, value, expected: "`on` or `off`" }),
            };
        }
        if let Some((variable, value)) = given(&read, "POINTWISE_EMULATOR_APPROX") {
            settings.approx = match value.as_str() {
                "exact" => Approx::Exact,
                "worst" => Approx::Worst,
                _ => return Err(SettingsError { variable, value, expected: "`exact` or `worst`" }),
            };
        }
        if let Some((variable, value)) = given(&read, "POINTWISE_EMULATOR_LIMIT") {
            settings.limit = match value.parse() {
                Ok(limit) if limit > 0 => limit,
                _ => return Err(SettingsError { variable, value, expected: "a number of instructions, at least 1" }),
            };
        }
        Ok(settings)
    }
}

/// Returns a variable and its value, unless it is unset or empty.
fn given(read: &impl Fn(&str) -> Option<String>, variable: &'static str) -> Option<(&'static str, String)> {
    read(variable).filter(|value| !value.is_empty()).map(|value| (variable, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &'static str) -> Result<Settings, SettingsError> {
        Settings::from_variables(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn variables_change_settings() {
        assert_eq!(Settings::from_variables(|_| None), Ok(Settings::default()));
        assert!(!with("POINTWISE_EMULATOR_CHECKS", "off").unwrap().checks);
        assert_eq!(with("POINTWISE_EMULATOR_APPROX", "worst").unwrap().approx, Approx::Worst);
        assert_eq!(with("POINTWISE_EMULATOR_LIMIT", "77").unwrap().limit, 77);
    }

    #[test]
    fn other_values_are_refused() {
        let message = |name, value| with(name, value).unwrap_err().to_string();
        assert_eq!(
            message("POINTWISE_EMULATOR_CHECKS", "yes"),
            "POINTWISE_EMULATOR_CHECKS is `yes`: set it to `on` or `off`, or unset it"
        );
        assert!(message("POINTWISE_EMULATOR_APPROX", "best").contains("`exact` or `worst`"));
        assert!(message("POINTWISE_EMULATOR_LIMIT", "0").contains("at least 1"));
    }
}
