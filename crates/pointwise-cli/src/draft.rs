//! Files that are whole or not there: each is written beside its place and moved there when it is complete, so that
//! nobody ever sees half of one, and what was there before stays until then.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// Writes a file of these bytes, in place of what is there. A program that writes its results last loses the earlier
/// ones to no full disk.
///
/// # Errors
/// Those of the file system; then there is no file, or the old one.
pub fn replace(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let mut draft = Draft::new(path)?;
    draft.file.write_all(bytes.as_ref())?;
    draft.keep()
}

/// That [`replace`] may well succeed, found before the work is done. It leaves what is there as it is.
///
/// # Errors
/// As there.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    // Opening a pipe and closing it again would tell its reader that this was all.
    let is_stream = fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir());
    if is_stream { Ok(()) } else { Draft::new(path).map(drop) }
}

/// A file on its way; removed unless it is kept.
pub(crate) struct Draft {
    pub(crate) file: File,
    /// Where it goes: a link is followed, so that it stays one.
    place: PathBuf,
    /// The file that is replaced.
    old: Option<Metadata>,
    /// Where it lies until then; none of what cannot be replaced, a device or a pipe, which is written at once.
    beside: Option<PathBuf>,
}

impl Draft {
    /// A draft of the file at `path`.
    ///
    /// # Errors
    /// A directory, a file that may not be written, a folder that is not there, a link to nothing.
    pub(crate) fn new(path: &Path) -> io::Result<Draft> {
        let old = match fs::metadata(path) {
            Ok(old) => Some(old),
            Err(error) if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(path).is_ok() => {
                return Err(io::Error::new(ErrorKind::NotFound, "it is a link to a file that is not there"));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        match &old {
            Some(old) if old.permissions().readonly() => {
                return Err(io::Error::new(ErrorKind::PermissionDenied, "it is read-only"));
            }
            // A directory refuses by itself.
            Some(there) if !there.is_file() => {
                let file = OpenOptions::new().write(true).open(path)?;
                return Ok(Draft { file, place: path.to_owned(), old: None, beside: None });
            }
            _ => {}
        }
        let place = match fs::canonicalize(path) {
            Ok(place) => place,
            Err(_) => {
                let name =
                    path.file_name().ok_or_else(|| io::Error::new(ErrorKind::IsADirectory, "it names no file"))?;
                folder(path).join(name)
            }
        };
        let (beside, file) = create_beside(&place)?;
        Ok(Draft { file, place, old, beside: Some(beside) })
    }

    /// Moves it to its place. The bytes are on the disk before the name is.
    ///
    /// # Errors
    /// Those of the file system; then there is no file, or the old one.
    pub(crate) fn keep(mut self) -> io::Result<()> {
        let Some(beside) = &self.beside else { return Ok(()) };
        if let Some(old) = &self.old {
            self.file.set_permissions(old.permissions())?;
        }
        self.file.sync_all()?;
        fs::rename(beside, &self.place)?;
        self.beside = None;
        // The move itself, where folders can be synchronised: not every system can, and the file is complete anyhow.
        if let Ok(folder) = File::open(folder(&self.place)) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            // Whatever went wrong before is what the user is told.
            let _ = fs::remove_file(beside);
        }
    }
}

/// A new file in the same folder, so that moving it is one step of the file system.
fn create_beside(place: &Path) -> io::Result<(PathBuf, File)> {
    let folder = folder(place);
    for attempt in 0..u32::MAX {
        let path = folder.join(format!(".pointwise-{}-{attempt}.tmp", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            // Left by a process of the same number that was killed.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// The folder a file lies in.
pub(crate) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
