//! Files that are whole or not there: each is written without a name, or beside its place, and put there when it is
//! complete, so that nobody ever sees half of one, and what was there before stays until then.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf, is_separator};

use crate::unfinished::Unfinished;
pub(crate) use crate::unfinished::folder;

/// Writes a file of these bytes, in place of what is there. A program that writes its results last loses the earlier
/// ones to no full disk.
///
/// # Errors
/// Errors of the file system; then there is no file, or the old one.
pub fn replace(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let mut draft = Draft::new(path)?;
    draft.file.write_all(bytes.as_ref())?;
    draft.keep()
}

/// Finds out, before the work is done, whether [`replace`] may succeed. It leaves what is there as it is.
///
/// # Errors
/// The errors of [`replace`] that are known beforehand.
pub fn check(path: &Path) -> io::Result<()> {
    // Opening a pipe and closing it again would tell its reader that this was all.
    let is_stream = fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir());
    if is_stream { Ok(()) } else { Draft::new(path).map(drop) }
}

/// A file on its way; gone unless it is kept.
pub(crate) struct Draft {
    pub(crate) file: File,
    /// The place that it goes to. A link is followed, so that it stays one.
    place: PathBuf,
    /// The file that is replaced.
    old: Option<Metadata>,
    site: Site,
}

/// The place of a draft.
enum Site {
    /// Nowhere: it has no name, and goes away with the process, however that ends.
    #[cfg(target_os = "linux")]
    Unnamed,
    /// Beside its place.
    Beside(Unfinished),
    /// At its place: what cannot be replaced, a device or a pipe, is written at once.
    There,
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
            Err(error) if error.kind() == ErrorKind::NotFound && names_a_folder(path) => {
                return Err(io::Error::new(ErrorKind::IsADirectory, "it names a folder, not a file"));
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
                return Ok(Draft { file, place: path.to_owned(), old: None, site: Site::There });
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
        // The old file may be secret: nobody else reads the draft before it has the same mode.
        let mode = if old.is_some() { 0o600 } else { 0o666 };
        #[cfg(target_os = "linux")]
        if let Some(file) = unnamed(folder(&place), mode) {
            return Ok(Draft { file, place, old, site: Site::Unnamed });
        }
        let (beside, file) = Unfinished::beside(&place, |path| create(path, mode))?;
        Ok(Draft { file, place, old, site: Site::Beside(beside) })
    }

    /// Puts it in its place. The bytes are on the disk before the name is.
    ///
    /// # Errors
    /// Errors of the file system; then there is no file, or the old one.
    pub(crate) fn keep(self) -> io::Result<()> {
        let Draft { file, place, old, site } = self;
        if matches!(site, Site::There) {
            return Ok(());
        }
        if let Some(old) = &old {
            file.set_permissions(old.permissions())?;
        }
        file.sync_all()?;
        match site {
            #[cfg(target_os = "linux")]
            Site::Unnamed => name(&file, &place)?,
            Site::Beside(beside) => beside.move_to(&place)?,
            Site::There => {}
        }
        // The name itself, where folders can be synchronised: not every system can, and the file is complete anyhow.
        if let Ok(folder) = File::open(folder(&place)) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

/// True if a path can only be a folder's: it ends in `/` or `/.`, which its parts do not tell.
fn names_a_folder(path: &Path) -> bool {
    let text = path.to_string_lossy();
    text.strip_suffix('.').unwrap_or(&text).ends_with(is_separator)
}

/// A new file of a name.
fn create(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path)
}

/// Makes a file without a name in a folder. Returns none where the file system has no such files, or cannot name them
/// later. If the folder itself is the problem, the next attempt tells.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path, mode: u32) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};

    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = File::from(open(folder, flags, Mode::from_raw_mode(mode)).ok()?);
    fs::symlink_metadata(opened(&file)).is_ok().then_some(file)
}

/// The path that gives an open file a name.
#[cfg(target_os = "linux")]
fn opened(file: &File) -> String {
    use std::os::fd::AsRawFd as _;
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Names a file that has no name. Where the name is taken, it takes another one first, for only renaming replaces.
#[cfg(target_os = "linux")]
fn name(file: &File, place: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};

    let link = |path: &Path| linkat(CWD, opened(file), CWD, path, AtFlags::SYMLINK_FOLLOW).map_err(io::Error::from);
    match link(place) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Unfinished::beside(place, link)?.0.move_to(place),
        done => done,
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::unfinished::is_ignored;

    /// A folder that goes away with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Folder {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("pointwise-draft-{}-{number}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        fn names(&self) -> Vec<String> {
            let names = fs::read_dir(&self.0).unwrap();
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// A draft under a name, as where the file system has no others.
    fn named(place: &Path, mode: u32) -> Draft {
        let (beside, file) = Unfinished::beside(place, |path| create(path, mode)).unwrap();
        Draft { file, place: place.to_owned(), old: fs::metadata(place).ok(), site: Site::Beside(beside) }
    }

    #[test]
    fn a_draft_takes_the_place_when_it_is_kept() {
        let folder = Folder::new();
        let place = folder.0.join("file");
        for round in 0..4 {
            let make = || if round % 2 == 0 { Draft::new(&place).unwrap() } else { named(&place, 0o600) };
            let before = fs::read(&place).ok();
            drop(make());
            let mut draft = make();
            draft.file.write_all(&[round]).unwrap();
            assert_eq!(fs::read(&place).ok(), before);
            draft.keep().unwrap();
            assert_eq!((fs::read(&place).unwrap(), folder.names()), (vec![round], vec!["file".to_owned()]));
        }
    }

    #[test]
    fn a_secret_stays_one() {
        let folder = Folder::new();
        let place = folder.0.join("secret");
        fs::write(&place, "old").unwrap();
        for mode in [0o600, 0o640, 0o604] {
            fs::set_permissions(&place, fs::Permissions::from_mode(mode)).unwrap();
            let draft = Draft::new(&place).unwrap();
            assert_eq!(draft.file.metadata().unwrap().mode() & 0o177, 0, "while it is written");
            draft.keep().unwrap();
            assert_eq!(fs::metadata(&place).unwrap().mode() & 0o777, mode);
        }
        let open = create(&folder.0.join("other"), 0o600).unwrap();
        assert_eq!(open.metadata().unwrap().mode() & 0o177, 0);
    }

    #[test]
    fn a_folder_is_no_file() {
        let folder = Folder::new();
        for name in ["new/", "new//", "new/."] {
            let error = Draft::new(&folder.0.join(name)).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::IsADirectory, "{name}");
        }
        assert!(Draft::new(&folder.0.join("new.")).is_ok());
        assert!(folder.names().is_empty());
    }

    /// Runs itself as a program that has drafts and waits, and ends that. If SIGHUP is ignored, as under
    /// `nohup`, the program goes on.
    #[test]
    fn a_signal_leaves_nothing_behind() {
        const CHILD: &str = "POINTWISE_TEST_DRAFTS";
        if let Some(folder) = std::env::var_os(CHILD).map(PathBuf::from) {
            let mut drafts = [Draft::new(&folder.join("a")).unwrap(), named(&folder.join("b"), 0o600)];
            drafts.iter_mut().for_each(|draft| draft.file.write_all(b"half").unwrap());
            eprintln!("ready");
            // Ends when the test does, if nothing else ends it.
            let _ = io::stdin().read(&mut [0]);
            return;
        }
        let signals = [("", "HUP", 1), ("", "INT", 2), ("", "TERM", 15), ("trap '' HUP; ", "HUP", 15)];
        // The child ignores the signals that this process ignores.
        for (before, name, number) in signals.into_iter().filter(|(.., number)| !is_ignored(*number)) {
            let folder = Folder::new();
            let mut child = Command::new("sh")
                .args(["-c", &format!("{before}exec \"$0\" \"$@\"")])
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", "draft::tests::a_signal_leaves_nothing_behind", "--nocapture"])
                .env(CHILD, &folder.0)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            // Waiting would close it, and end the child by that.
            let stdin = child.stdin.take();
            let lines = BufReader::new(child.stderr.take().unwrap()).lines();
            assert!(lines.map_while(Result::ok).any(|line| line == "ready"));
            assert!(!folder.names().is_empty(), "the draft with a name");
            let kill = |name: &str| {
                let kill = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status().unwrap();
                assert!(kill.success());
            };
            kill(name);
            if !before.is_empty() {
                assert!(!folder.names().is_empty(), "it goes on");
                kill("TERM");
            }
            assert_eq!(child.wait().unwrap().signal(), Some(number));
            drop(stdin);
            assert_eq!(folder.names(), [""; 0]);
        }
    }
}
