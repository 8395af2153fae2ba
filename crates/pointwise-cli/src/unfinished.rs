//! Names of files that are not complete: they are removed where the work fails, and where SIGHUP, SIGINT or SIGTERM ends it.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The files of this process. Whoever makes, moves or removes one holds the lock.
static NAMES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn names() -> MutexGuard<'static, Vec<PathBuf>> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file under a name of its own; removed when dropped.
pub(crate) struct Unfinished(PathBuf);

impl Unfinished {
    /// Makes a file in the folder of `place`, so that moving it there is one step of the file system.
    ///
    /// # Errors
    /// The errors of `make`. If a name is taken, `make` is called with another.
    pub(crate) fn beside<T>(place: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(Unfinished, T)> {
        watch();
        let mut names = names();
        for attempt in 0..u32::MAX {
            let path = folder(place).join(format!(".pointwise-{}-{attempt}.tmp", std::process::id()));
            match make(&path) {
                Ok(made) => {
                    names.push(path.clone());
                    return Ok((Unfinished(path), made));
                }
                // Left by a process of the same number that was killed.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Moves it to its place.
    ///
    /// # Errors
    /// Errors of the file system; then it is removed.
    pub(crate) fn move_to(self, place: &Path) -> io::Result<()> {
        let mut names = names();
        fs::rename(&self.0, place).inspect(|()| names.retain(|name| *name != self.0))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut names = names();
        let before = names.len();
        names.retain(|name| *name != self.0);
        // Once moved, the name may be another's.
        if names.len() < before {
            // Whatever went wrong before is what the user is told.
            let _ = fs::remove_file(&self.0);
        }
    }
}

/// The folder a file lies in.
pub(crate) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Has the signals that end a program remove its files first. Where they cannot be watched, the files stay.
#[cfg(unix)]
fn watch() {
    use std::sync::{Once, mpsc};
    use std::thread;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| {
        let (ready, is_ready) = mpsc::channel();
        let watch = move || {
            let watched = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|&signal| !is_ignored(signal));
            let Ok(mut signals) = Signals::new(watched) else { return };
            let _ = ready.send(());
            for signal in signals.forever() {
                let names = names();
                for name in names.iter() {
                    let _ = fs::remove_file(name);
                }
                // Ends the process, as the signal would have. The lock is held: no file is made or moved any more.
                let _ = emulate_default_handler(signal);
            }
        };
        if thread::Builder::new().name("signals".to_owned()).spawn(watch).is_ok() {
            let _ = is_ready.recv();
        }
    });
}

/// True if the program was started with a signal ignored, as `nohup` does it: then it goes on, and its files with it. False
/// if the system has no such list.
#[cfg(unix)]
pub(crate) fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(not(unix))]
fn watch() {}
