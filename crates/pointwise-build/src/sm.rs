//! Compute capabilities.

use std::fmt;

/// A compute capability, as NVIDIA's tools write it: `Sm(90)` is 9.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sm(pub u32);

impl Sm {
    /// Returns the highest PTX ISA version that the compiler may ask of a driver for this target; `None` if this crate
    /// has no record of it.
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

    /// True if the target has fp8 conversion instructions.
    fn has_fp8(self) -> bool {
        self.0 >= 89
    }

    /// Returns the kinds of entries that the compiler makes the same for this target as for an `older` one, as values
    /// of the cfg `pointwise_inherits`. The macros that export entries do not make these again.
    ///
    /// For targets from sm_100 on the compiler has instructions of its own for pairs of f32: these targets have all
    /// entries.
    fn inherits(self, older: &[Sm]) -> Vec<&'static str> {
        let mut values = Vec::new();
        if self.0 < 100 && !older.is_empty() {
            values.push("plain");
            if older.iter().any(|sm| sm.has_fp8() == self.has_fp8()) {
                values.push("fp8");
            }
        }
        values
    }

    /// True if most entries are the same as an `older` target's.
    pub(crate) fn is_light(self, older: &[Sm]) -> bool {
        !self.inherits(older).is_empty()
    }

    /// Returns the flags for the compiler: the target, the cfg for the fp8 conversion instructions, and the cfgs for
    /// entries that are the same as an `older` target's.
    pub(crate) fn rustflags(self, older: &[Sm]) -> Vec<String> {
        let mut flags = vec![
            format!("-Ctarget-cpu={self}"),
            "--check-cfg=cfg(pointwise_fp8_cvt)".to_owned(),
            "--check-cfg=cfg(pointwise_inherits, values(\"plain\", \"fp8\"))".to_owned(),
        ];
        if self.has_fp8() {
            flags.push("--cfg=pointwise_fp8_cvt".to_owned());
        }
        for value in self.inherits(older) {
            flags.push(format!("--cfg=pointwise_inherits=\"{value}\""));
        }
        if self.is_light(older) {
            // Some imports and functions serve only entries of the older target.
            flags.push("-Aunused".to_owned());
        }
        if self.0 == 89 {
            flags.push("-Ctarget-feature=+ptx81".to_owned());
        }
        flags
    }

    /// Reads the compute capabilities in a list such as `80,90` or `sm_80 sm_90`.
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
        let has = |sm: u32| Sm(sm).rustflags(&[]).iter().any(|flag| flag == "--cfg=pointwise_fp8_cvt");
        assert!(!has(80) && !has(86) && has(89) && has(90) && has(100));
    }

    #[test]
    fn what_is_the_same_for_an_older_target() {
        let inherits = |sm: u32, older: &[u32]| Sm(sm).inherits(&older.iter().map(|&sm| Sm(sm)).collect::<Vec<_>>());
        assert!(inherits(80, &[]).is_empty() && inherits(90, &[]).is_empty());
        assert_eq!(inherits(86, &[80]), ["plain", "fp8"]);
        assert_eq!(inherits(90, &[80]), ["plain"]);
        assert_eq!(inherits(90, &[80, 89]), ["plain", "fp8"]);
        assert!(inherits(100, &[80, 90]).is_empty());
    }
}
