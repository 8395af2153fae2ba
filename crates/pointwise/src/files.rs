//! Reads small files that a user names, but no pipe that waits for a writer and no endless device.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

/// Bytes of the largest file that is read: configurations and measurements have far fewer.
const MOST: u64 = 16 << 20;

/// Reads the bytes of a regular file.
///
/// # Errors
/// Anything but a regular file; a file of more than 16 MiB; errors of the file system.
pub(crate) fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    check_regular(path)?;
    let mut bytes = Vec::new();
    // The length that the system gives is not enough: a file may grow, and files of /proc have length 0.
    File::open(path)?.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("it has more than {} MiB", MOST >> 20)));
    }
    Ok(bytes)
}

/// Refuses anything but a regular file: to open a pipe waits for its other end.
///
/// # Errors
/// A directory, a pipe or a device; nothing there.
pub(crate) fn check_regular(path: &Path) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    match metadata.is_file() {
        true => Ok(()),
        false if metadata.is_dir() => Err(io::Error::new(ErrorKind::IsADirectory, "it is a directory")),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_too_large_is_refused() {
        let path = std::env::temp_dir().join(format!("pointwise-large-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        // A hole: it takes no room.
        let outcomes = [MOST, MOST + 1].map(|size| {
            file.set_len(size).unwrap();
            read_small(&path).map(|bytes| bytes.len() as u64).map_err(|error| error.kind())
        });
        fs::remove_file(&path).unwrap();
        assert_eq!(outcomes, [Ok(MOST), Err(ErrorKind::FileTooLarge)]);
    }

    #[test]
    fn only_files_are_read() {
        assert_eq!(read_small(&std::env::temp_dir()).unwrap_err().kind(), ErrorKind::IsADirectory);
        if cfg!(unix) {
            assert_eq!(read_small(Path::new("/dev/zero")).unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    }
}
