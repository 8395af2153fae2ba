//! The tuner's file: JSON, shared by processes.
//!
//! ```json
//! {"format": "pointwise tuner 3", "builds": {"0.1.0, rustc 1.96.0": {"DEVICE UUID, DRIVER, NAME": {
//!     "unary silu bf16 flat 2^24": {"strategy": "register_copy", "threads": 256, "microseconds": 17.2}}}}}
//! ```
//!
//! Format 1 was `pointwise tuner`; format 2 had vectors per thread.
//!
//! A result is written by reading the file again, adding the one entry and putting a new file in the old one's place by
//! renaming it: a reader sees the one or the other, whole. A lock beside the file keeps writers one after another. A file
//! that is there and cannot be read is left alone, since what it has would be lost.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use pointwise_core::DType;
use serde_json::{Map, Value, json};
use tempfile::NamedTempFile;

use super::{Choice, Key, Place};
use crate::Strategy;
use crate::cuda::DeviceInfo;
use crate::files::{check_regular, read_small};
use crate::kernel::Class;

/// The environment variable with the folder of the cache.
pub const CACHE_VARIABLE: &str = "POINTWISE_CACHE";

/// The file's name. It has the number of the format.
const FILE: &str = "tuner-3.json";
const FORMAT: &str = "pointwise tuner 3";
/// The time that a writer waits for the others. Each needs some milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);
/// The start of every format's name.
const ANY_FORMAT: &str = "pointwise tuner";

/// The user's file; `None` where the environment names no folder.
pub(super) fn default_file() -> Option<PathBuf> {
    file_of(&|name| env::var_os(name).filter(|value| !value.is_empty()))
}

fn file_of(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if let Some(folder) = variable(CACHE_VARIABLE) {
        return Some(PathBuf::from(folder).join(FILE));
    }
    // A relative path is to be ignored, says the XDG Base Directory Specification.
    let xdg = variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = xdg.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")))?;
    Some(cache.join("pointwise").join(FILE))
}

/// This build: results of others are kept in the file, but not used.
fn build() -> String {
    format!("{}, {}", env!("CARGO_PKG_VERSION"), crate::embed::embedded().note())
}

/// The choices of this build in a file, and what is wrong with it.
pub(super) fn read(file: &Path) -> (HashMap<Key, Choice>, Vec<String>) {
    let mut choices = HashMap::new();
    let (content, mut warnings) = match contents(file) {
        Ok(contents) => contents,
        Err(error) => return (choices, vec![format!("cannot read {}: {error}", file.display())]),
    };
    let empty = Map::new();
    let devices = content.get("builds").and_then(|builds| builds.get(build())).and_then(Value::as_object);
    for (device, entries) in devices.unwrap_or(&empty) {
        for (name, entry) in entries.as_object().unwrap_or(&empty) {
            match parse(device, name, entry) {
                Some((key, choice)) => {
                    choices.insert(key, choice);
                }
                None => warnings.push(format!("{}: ignoring the entry {name:?}, which makes no sense", file.display())),
            }
        }
    }
    (choices, warnings)
}

/// The file's object, an empty one if there is none or it is not ours; and what is wrong with it.
///
/// # Errors
/// It is there, but cannot be read.
fn contents(file: &Path) -> io::Result<(Value, Vec<String>)> {
    let nothing = || json!({});
    let text = match read_small(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok((nothing(), Vec::new())),
        Err(error) => return Err(error),
    };
    let ignored = |why: &str| (nothing(), vec![format!("ignoring {}: {why}", file.display())]);
    Ok(match serde_json::from_slice::<Value>(&text) {
        Err(error) => ignored(&format!("it is damaged ({error})")),
        Ok(content) => match content.get("format").and_then(Value::as_str) {
            Some(FORMAT) => (content, Vec::new()),
            Some(other) if other.starts_with(ANY_FORMAT) => {
                ignored(&format!("its format is {other:?}, that of another version, not {FORMAT:?}"))
            }
            _ => ignored("it is not a file of this tuner"),
        },
    })
}

/// Adds an entry to a file. Returns what went wrong.
pub(super) fn write(file: &Path, key: &Key, choice: &Choice, info: &DeviceInfo) -> Vec<String> {
    let device = device_name(&key.place, &info.name);
    match try_write(file, &device, &entry_name(key), choice) {
        Ok(warnings) => warnings,
        Err(error) => vec![format!("cannot write {}: {error}", file.display())],
    }
}

fn try_write(file: &Path, device: &str, entry: &str, choice: &Choice) -> io::Result<Vec<String>> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let _lock = lock(&beside(file, "lock"))?;
    let (mut content, warnings) = contents(file).map_err(|error| {
        io::Error::new(error.kind(), format!("what it has cannot be read, and would be lost ({error})"))
    })?;
    content["format"] = json!(FORMAT);
    let mut object = &mut content;
    for name in ["builds", &build(), device] {
        // Whatever stands there instead of an object is not ours.
        if !object[name].is_object() {
            object[name] = json!({});
        }
        object = &mut object[name];
    }
    object[entry] = json!({
        "strategy": choice.strategy.name(),
        "threads": choice.threads,
        "microseconds": choice.microseconds,
    });
    // A link to a file stays one.
    let place = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mut draft = NamedTempFile::new_in(place.parent().unwrap_or(folder))?;
    if let Ok(old) = fs::metadata(&place) {
        draft.as_file().set_permissions(old.permissions())?;
    }
    draft.write_all(serde_json::to_string_pretty(&content)?.as_bytes())?;
    draft.as_file().sync_all()?;
    draft.persist(&place)?;
    Ok(warnings)
}

/// The lock of this path, until it is dropped.
///
/// # Errors
/// Others hold it for longer than any writer needs; there is something else than a file; errors of the file system.
fn lock(path: &Path) -> io::Result<File> {
    // A new one is no link's target.
    let made = match File::options().append(true).create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            check_regular(path).and_then(|()| File::options().append(true).open(path))
        }
        made => made,
    };
    let file = made.map_err(|error| io::Error::new(error.kind(), format!("its lock, {}: {error}", path.display())))?;
    let end = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            // A file system without locks: at worst another process's entry of the same moment is lost, and measured
            // again.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(Duration::from_millis(5)),
            Err(TryLockError::WouldBlock) => {
                let words = format!("another process holds {}: end it, or remove that file", path.display());
                return Err(io::Error::new(ErrorKind::TimedOut, words));
            }
        }
    }
}

/// A file's path with another ending behind its name.
fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

fn device_name(place: &Place, name: &str) -> String {
    let uuid: String = place.uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{uuid}, driver {}.{}, {name}", place.driver.0, place.driver.1)
}

fn entry_name(key: &Key) -> String {
    let Place { dtype, lies, size, .. } = key.place;
    format!("{} {dtype} {} 2^{size}", key.op, lies.name())
}

/// The inverse of [`device_name`], [`entry_name`] and of an entry's text.
fn parse(device: &str, name: &str, entry: &Value) -> Option<(Key, Choice)> {
    let (uuid, rest) = device.split_once(", driver ")?;
    let (major, minor) = rest.split_once(',')?.0.split_once('.')?;
    let words: Vec<&str> = name.split(' ').collect();
    let &[kind, op, dtype, lies, size] = &words[..] else {
        return None;
    };
    let place = Place {
        uuid: uuid_of(uuid)?,
        driver: (major.parse().ok()?, minor.parse().ok()?),
        dtype: DType::from_name(dtype)?,
        lies: Class::ALL.into_iter().find(|class| class.name() == lies)?,
        size: size.strip_prefix("2^")?.parse().ok()?,
    };
    let strategy = Strategy::from_name(entry.get("strategy")?.as_str()?).filter(|it| *it != Strategy::Auto)?;
    let threads = entry.get("threads")?.as_u64().and_then(|threads| u32::try_from(threads).ok())?;
    let usable = (32..=1024).contains(&threads) && threads.is_multiple_of(32);
    let microseconds = entry.get("microseconds")?.as_f64().filter(|time| time.is_finite() && *time >= 0.0)?;
    usable.then(|| (Key { op: format!("{kind} {op}"), place }, Choice { strategy, threads, microseconds }))
}

fn uuid_of(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    let mut uuid = [0; 16];
    for (i, byte) in uuid.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(uuid)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of this test's own, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let folder = env::temp_dir().join(format!("pointwise-tuner-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            Folder(folder)
        }

        fn file(&self) -> PathBuf {
            self.0.join("deep").join(FILE)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn key(op: &str, size: u32) -> Key {
        let lies = if size == 7 { Class::Strided } else { Class::Flat };
        let place = Place { uuid: [0xAB; 16], driver: (13, 1), dtype: DType::BF16, lies, size };
        Key { op: format!("unary {op}"), place }
    }

    fn choice(threads: u32) -> Choice {
        Choice { strategy: Strategy::RegisterCopy, threads, microseconds: 2.5 }
    }

    fn put(file: &Path, key: &Key, choice: &Choice) -> Vec<String> {
        let device = device_name(&key.place, "A device, with a comma");
        try_write(file, &device, &entry_name(key), choice).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = Folder::new("round-trip");
        let file = folder.file();
        assert_eq!(read(&file), (HashMap::new(), vec![]));
        for (op, size, threads) in [("silu", 24, 256), ("silu", 7, 128), ("exp", 24, 1024), ("silu", 24, 512)] {
            assert_eq!(put(&file, &key(op, size), &choice(threads)), Vec::<String>::new());
        }
        let (choices, warnings) = read(&file);
        assert_eq!((choices.len(), warnings.len()), (3, 0));
        assert_eq!(choices[&key("silu", 24)], choice(512), "the later one holds");
        assert_eq!(choices[&key("silu", 7)], choice(128));
        // Nothing is left beside the file but the lock.
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 2);
    }

    /// Ops have an entry for each class of kernel; names of ops hold no spaces, so that an
    /// entry's words are told apart.
    #[test]
    fn every_kind_of_call_has_its_own_entry() {
        let folder = Folder::new("kinds");
        let file = folder.file();
        let mut expected = HashMap::new();
        let all: Vec<_> = crate::info::every().map(|def| &def.info).collect();
        for (i, info) in all.iter().enumerate().step_by(3) {
            for (k, lies) in Class::ALL.into_iter().enumerate() {
                let place = Place { lies, ..key("", 5).place };
                let key = Key { op: super::super::op_name(info), place };
                let choice = choice(32 * (1 + (i + k) as u32 % 32));
                assert_eq!(put(&file, &key, &choice), Vec::<String>::new());
                expected.insert(key, choice);
            }
        }
        assert_eq!(read(&file), (expected, vec![]));
    }

    #[test]
    fn results_of_another_build_stay_and_are_not_used() {
        let folder = Folder::new("builds");
        let file = folder.file();
        put(&file, &key("silu", 24), &choice(256));
        let text = fs::read_to_string(&file).unwrap();
        let mut content: Value = serde_json::from_str(&text).unwrap();
        let ours = content["builds"][build()].take();
        content["builds"] = json!({"0.0.9, rustc 1.0.0": ours});
        fs::write(&file, content.to_string()).unwrap();
        assert_eq!(read(&file), (HashMap::new(), vec![]));
        put(&file, &key("exp", 24), &choice(256));
        let content: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(content["builds"].as_object().unwrap().len(), 2);
        assert_eq!(read(&file).0.len(), 1);
    }

    #[test]
    fn damaged_and_foreign_files_are_ignored_and_replaced() {
        let folder = Folder::new("damage");
        let file = folder.file();
        put(&file, &key("silu", 24), &choice(256));
        let whole = fs::read(&file).unwrap();
        let foreign: [&[u8]; 6] =
            [b"", b"\xff\xfe", b"[1, 2]", b"{}", b"{\"format\": \"other\"}", &whole[..whole.len() / 2]];
        for bytes in foreign {
            fs::write(&file, bytes).unwrap();
            let (choices, warnings) = read(&file);
            assert!(choices.is_empty());
            assert!(warnings[0].starts_with("ignoring ") && warnings.len() == 1, "{warnings:?}");
            assert_eq!(put(&file, &key("exp", 3), &choice(64)).len(), 1);
            assert_eq!(read(&file), (HashMap::from([(key("exp", 3), choice(64))]), vec![]));
        }
        // A file as the version before wrote it.
        let old = String::from_utf8(whole).unwrap().replace(FORMAT, "pointwise tuner");
        fs::write(&file, old).unwrap();
        let warning = r#"its format is "pointwise tuner", that of another version, not "pointwise tuner 3""#;
        assert_eq!(read(&file), (HashMap::new(), vec![format!("ignoring {}: {warning}", file.display())]));
        assert_eq!(put(&file, &key("exp", 3), &choice(64)).len(), 1);
        assert_eq!(read(&file).0.len(), 1);
        // The right format with nonsense inside: everything else is used.
        let (device, build) = (device_name(&key("exp", 3).place, "GPU"), build());
        for nonsense in [
            json!({"format": FORMAT, "builds": 3}),
            json!({"format": FORMAT, "builds": {&build: [1]}}),
            json!({"format": FORMAT, "builds": {&build: {&device: "x"}}}),
        ] {
            fs::write(&file, nonsense.to_string()).unwrap();
            assert_eq!(read(&file).0, HashMap::new());
            put(&file, &key("exp", 3), &choice(64));
            assert_eq!(read(&file).0.len(), 1);
        }
        let good = json!({"strategy": "direct", "threads": 64, "microseconds": 1.0});
        let bad = |name: &str, value: Value| {
            let mut entry = good.clone();
            entry[name] = value;
            json!({"format": FORMAT, "builds": {&build: {&device: {
                "unary exp f32 flat 2^3": entry, "unary exp f16 flat 2^3": good}}}})
        };
        for (name, value) in [
            ("strategy", json!("auto")),
            ("strategy", json!("fast")),
            ("strategy", json!(1)),
            ("threads", json!(33)),
            ("threads", json!(2048)),
            ("threads", json!(-32)),
            ("threads", json!(1_u64 << 33 | 64)),
            ("microseconds", json!(-1.0)),
            ("microseconds", json!("quick")),
        ] {
            fs::write(&file, bad(name, value.clone()).to_string()).unwrap();
            let (choices, warnings) = read(&file);
            assert_eq!((choices.len(), warnings.len()), (1, 1), "{name}: {value}");
        }
        // As many bytes as a UUID has, which are no digits.
        let foreign = device.replacen(&"ab".repeat(16), &format!("a{}b", "é".repeat(15)), 1);
        fs::write(&file, bad("threads", json!(64)).to_string().replace(&device, &foreign)).unwrap();
        assert_eq!(read(&file).1.len(), 2);
    }

    /// Writers at once lose nothing, and a reader never sees half a file.
    #[test]
    fn writers_at_once() {
        let folder = Folder::new("writers");
        let file = folder.file();
        put(&file, &key("silu", 0), &choice(32));
        std::thread::scope(|scope| {
            for writer in 1..=4 {
                let file = &file;
                scope.spawn(move || {
                    for size in 0..10 {
                        let mut key = key("exp", size);
                        key.place.uuid = [writer; 16];
                        put(file, &key, &choice(32 * u32::from(writer)));
                    }
                });
            }
            for _ in 0..100 {
                assert_eq!(read(&file).1, Vec::<String>::new());
            }
        });
        assert_eq!(read(&file).0.len(), 41);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_a_warning() {
        let folder = Folder::new("blocked");
        fs::create_dir_all(&folder.0).unwrap();
        fs::write(folder.0.join("deep"), "a file, not a folder").unwrap();
        let device = device_name(&key("exp", 3).place, "GPU");
        assert!(try_write(&folder.file(), &device, "unary exp f32 flat 2^3", &choice(64)).is_err());
        let (choices, warnings) = read(&folder.file());
        assert!(choices.is_empty() && warnings[0].starts_with("cannot read "), "{warnings:?}");
    }

    /// A file that cannot be read is not replaced by one of a single entry. A link to a folder stands for such a file here:
    /// reading it fails for every user, and a rename would replace it.
    #[cfg(unix)]
    #[test]
    fn a_file_that_cannot_be_read_is_left_alone() {
        let folder = Folder::new("unreadable");
        let file = folder.file();
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(env::temp_dir(), &file).unwrap();
        let device = device_name(&key("exp", 3).place, "GPU");
        let error = try_write(&file, &device, "unary exp f32 flat 2^3", &choice(64)).unwrap_err().to_string();
        assert!(error.starts_with("what it has cannot be read, and would be lost ("), "{error}");
        assert!(fs::symlink_metadata(&file).unwrap().is_symlink(), "it was replaced");
        let (choices, warnings) = read(&file);
        assert!(choices.is_empty() && warnings[0].starts_with("cannot read "), "{warnings:?}");
        // Nothing is left beside it but the lock.
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 2);
    }

    /// Nobody can foretell the draft's name. A link in the place of the file or of the lock leads nowhere.
    #[cfg(unix)]
    #[test]
    fn no_link_leads_to_another_file() {
        use std::os::unix::fs::symlink;
        let folder = Folder::new("links");
        let (file, victim) = (folder.file(), folder.0.join("victim"));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, beside(&file, &format!("{}.new", std::process::id()))).unwrap();
        put(&file, &key("exp", 3), &choice(64));
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert!(!fs::symlink_metadata(&file).unwrap().is_symlink() && read(&file).0.len() == 1);
        let made = folder.0.join("made");
        fs::remove_file(beside(&file, "lock")).unwrap();
        symlink(&made, beside(&file, "lock")).unwrap();
        let error = try_write(&file, "a device", "an entry", &choice(64)).unwrap_err().to_string();
        assert!(error.starts_with("its lock, ") && !made.exists(), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn mode_and_link_of_a_file_stay() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
        let folder = Folder::new("modes");
        let (file, real) = (folder.file(), folder.0.join("real.json"));
        put(&file, &key("exp", 3), &choice(64));
        let mode = |file: &Path| fs::metadata(file).unwrap().mode() & 0o777;
        assert_eq!(mode(&file), 0o600, "a new one");
        for (size, wanted) in [(4, 0o600), (5, 0o640)] {
            fs::set_permissions(&file, fs::Permissions::from_mode(wanted)).unwrap();
            put(&file, &key("exp", size), &choice(64));
            assert_eq!(mode(&file), wanted);
        }
        fs::rename(&file, &real).unwrap();
        symlink(&real, &file).unwrap();
        put(&file, &key("exp", 6), &choice(64));
        assert!(fs::symlink_metadata(&file).unwrap().is_symlink());
        assert_eq!((read(&real).0.len(), mode(&real)), (4, 0o640));
    }

    #[test]
    fn a_lock_that_another_holds_is_a_warning() {
        let folder = Folder::new("held");
        let file = folder.file();
        put(&file, &key("exp", 3), &choice(64));
        let held = lock(&beside(&file, "lock")).unwrap();
        let error = try_write(&file, "a device", "an entry", &choice(64)).unwrap_err();
        assert!(error.kind() == ErrorKind::TimedOut && error.to_string().contains("another process holds"), "{error}");
        drop(held);
        put(&file, &key("exp", 4), &choice(64));
        assert_eq!(read(&file).0.len(), 2);
    }

    #[test]
    fn the_folder_by_the_environment() {
        let of = |list: &[(&str, &str)]| {
            let list: HashMap<String, OsString> =
                list.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect();
            file_of(&|name| list.get(name).cloned())
        };
        let all = [(CACHE_VARIABLE, "/a"), ("XDG_CACHE_HOME", "/b"), ("HOME", "/c")];
        assert_eq!(of(&all).unwrap(), Path::new("/a/tuner-3.json"));
        assert_eq!(of(&all[1..]).unwrap(), Path::new("/b/pointwise/tuner-3.json"));
        assert_eq!(of(&all[2..]).unwrap(), Path::new("/c/.cache/pointwise/tuner-3.json"));
        assert_eq!(of(&[("XDG_CACHE_HOME", "relative"), all[2]]).unwrap(), of(&all[2..]).unwrap());
        assert_eq!(of(&[]), None);
    }
}
