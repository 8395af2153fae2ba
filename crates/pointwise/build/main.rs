//! Compiles the kernels of this crate and embeds them, where a compiler for device code is found.

mod family;

fn main() {
    let folder = "../../gpu-kernels";
    let kernels = if cfg!(feature = "family") { family::kernels(folder) } else { family::without_family(folder) };
    // TARGET/PROFILE/build/PACKAGE/out: one folder for all profiles, and for `cargo xtask build-ptx`.
    let out_dir = std::env::var_os("OUT_DIR").map(std::path::PathBuf::from).unwrap_or_default();
    match out_dir.ancestors().nth(4) {
        Some(target) => kernels.target_dir(target.join("ptx")).build(),
        None => kernels.build(),
    }
}
