//! Compute capabilities.

use std::fmt;

/// A compute capability, written as NVIDIA's tools do: `Sm(90)` is 9.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sm(pub u32);

impl Sm {
    /// The highest PTX ISA version that the compiler may ask of a driver for this target, `None` where this crate has
    /// no record of it.
    ///
    /// The compiler writes the oldest version that knows the target (rustc from 1.97 on at least 7.0), and the version
    /// decides which drivers accept the text, so a higher one is a mistake somewhere. Source: the PTX ISA's table of
    /// target and version, with 8.1 for sm_89, whose fp8 conversions came later than the target itself.
    pub(crate) fn newest_ptx(self) -> Option<(u32, u32)> {
        Some(match self.0 {
            0..=80 => (7, 0),
            86 => (7, 1),
            87 => (7, 4),
            89 => (8, 1),
            90 => (7, 8),
            100 | 101 => (8, 6),
            103 | 121 => (8, 8),
            120 => (8, 7),
            _ => return None,
        })
    }

    /// The flags for the compiler: the target, and the cfg by which kernel crates know that the fp8 conversion
    /// instructions exist.
    pub(crate) fn rustflags(self) -> Vec<String> {
        let mut flags = vec![
            format!("-Ctarget-cpu={self}"),
            "--check-cfg=cfg(pointwise_fp8_cvt)".to_owned(),
            // It copies what stands behind a join, a whole formula, into each way that leads there.
            "-Zmir-enable-passes=-JumpThreading".to_owned(),
        ];
        if self.0 >= 89 {
            flags.push("--cfg=pointwise_fp8_cvt".to_owned());
        }
        if self.0 == 89 {
            flags.push("-Ctarget-feature=+ptx81".to_owned());
        }
        flags
    }

    /// The compute capabilities in a list such as `80,90` or `sm_80 sm_90`.
    pub(crate) fn parse_list(text: &str) -> Result<Vec<Sm>, String> {
        text.split([',', ' ', ';'])
            .filter(|word| !word.is_empty())
            .map(|word| match word.strip_prefix("sm_").unwrap_or(word).parse() {
                Ok(sm) => Ok(Sm(sm)),
                Err(_) => Err(format!("`{word}` is not a compute capability such as 90 or sm_90")),
            })
            .collect()
    }
}

impl fmt::Display for Sm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Sm;

    #[test]
    fn lists() {
        assert_eq!(Sm::parse_list("80, sm_90"), Ok(vec![Sm(80), Sm(90)]));
        assert_eq!(Sm::parse_list(""), Ok(vec![]));
        assert!(Sm::parse_list("hopper").is_err());
    }

    #[test]
    fn fp8_conversions_from_sm_89_on() {
        let has = |sm: u32| Sm(sm).rustflags().iter().any(|flag| flag == "--cfg=pointwise_fp8_cvt");
        assert!(!has(80) && !has(86) && has(89) && has(90) && has(100));
    }
}
