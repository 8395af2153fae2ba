//! The cfgs of the package, which its kernels are compiled with, too.

use std::env;

/// Those of features, of `RUSTFLAGS` and of the build script, as the compiler takes them.
pub(crate) fn of_the_package(own: &[String]) -> Vec<String> {
    let features = env::var("CARGO_CFG_FEATURE").unwrap_or_default();
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    all(&features, &flags, own)
}

fn all(features: &str, flags: &str, own: &[String]) -> Vec<String> {
    let mut cfgs: Vec<String> =
        features.split(',').filter(|name| !name.is_empty()).map(|name| format!("feature={name:?}")).collect();
    let mut flags = flags.split('\x1f');
    while let Some(flag) = flags.next() {
        let cfg = if flag == "--cfg" { flags.next() } else { flag.strip_prefix("--cfg=") };
        cfgs.extend(cfg.map(str::to_owned));
    }
    cfgs.extend(own.iter().cloned());
    cfgs
}

/// The name of `name` or `name="value"`.
fn name(cfg: &str) -> &str {
    cfg.split('=').next().unwrap_or(cfg).trim()
}

/// Returns the argument of `cargo::rustc-check-cfg` for a cfg.
pub(crate) fn check(cfg: &str) -> String {
    match cfg.split_once('=') {
        Some((name, value)) => format!("cfg({}, values({}))", name.trim(), value.trim()),
        None => format!("cfg({cfg})"),
    }
}

/// True if a cfg of this name may hold on one side and not on the other. The file tells the sides apart by `target_arch`, and
/// tests are of the package alone.
pub(crate) fn may_differ(asked: &str, cfgs: &[String]) -> bool {
    !matches!(asked, "feature" | "target_arch" | "test" | "doc" | "doctest" | "clippy" | "miri")
        && !cfgs.iter().any(|cfg| name(cfg) == asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_flags_and_own() {
        let found = all("extra,half-way", "-Copt-level=3\x1f--cfg\x1ffast\x1f--cfg=mode=\"two\"", &["own".to_owned()]);
        assert_eq!(found, ["feature=\"extra\"", "feature=\"half-way\"", "fast", "mode=\"two\"", "own"]);
        assert!(all("", "", &[]).is_empty());
        for (asked, differs) in [("feature", false), ("mode", false), ("fast", false), ("unix", true), ("other", true)]
        {
            assert_eq!(may_differ(asked, &found), differs, "{asked}");
        }
        assert_eq!([check("a"), check("b = \"c\"")], ["cfg(a)", "cfg(b, values(\"c\"))"]);
    }
}
