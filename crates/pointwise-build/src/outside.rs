//! Runs programs outside of the current folder, which may be anybody's.

use std::{
    path::{self, Path, PathBuf},
    process::Command,
};

/// Returns a command that runs from `/`: no file of the current folder chooses a toolchain or is imported. A path that
/// is relative to the current folder stays so; a bare name is looked for on the `PATH`.
pub(crate) fn command(program: &Path) -> Command {
    let is_bare = program.parent().is_some_and(|parent| parent.as_os_str().is_empty());
    let named = path::absolute(program).ok().filter(|_| !is_bare);
    let mut command = Command::new(named.unwrap_or_else(|| PathBuf::from(program)));
    command.current_dir("/");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_and_names_are_looked_for() {
        let program = |name: &str| PathBuf::from(command(Path::new(name)).get_program());
        assert_eq!(program("python3"), Path::new("python3"));
        assert_eq!(program("./tools/ptxas"), std::env::current_dir().unwrap().join("tools/ptxas"));
        assert_eq!(program("/usr/bin/rustc"), Path::new("/usr/bin/rustc"));
    }
}
