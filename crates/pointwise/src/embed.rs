//! Kernels embedded in the program, compressed in small groups: PTX, and machine code if the build asks for it.
//!
//! `pointwise-build` writes the expression of a [`Pack`], and the files that it includes; [`include_kernels!`] makes a
//! [`Kernels`] of it.
//!
//! [`include_kernels!`]: crate::include_kernels
//!
//! Each entry is loaded as a module of its own, so that the driver compiles only the kernels that a program uses. A
//! newer target embeds an entry only if it differs from the older target's. Every kernel waits for the kernels before
//! it in its stream, by an instruction of sm_90, so that it may be launched early there. In PTX for an older target the
//! instruction is a comment; a device that knows it gets it as an instruction.

use std::{io::Read, sync::OnceLock};

use ruzstd::decoding::StreamingDecoder;

use crate::error::{ErrorKind, Result};

/// The kernels of this package.
mod own {
    crate::include_kernels!();
}

/// The kernels embedded in this build.
pub const fn embedded() -> &'static Kernels {
    &own::KERNELS
}

/// Includes the kernels that the build script compiled, as a static `KERNELS`, for
/// [`Device::best_for`](crate::Device::best_for).
#[macro_export]
macro_rules! include_kernels {
    () => {
        /// The kernels embedded in this program: none where it was built without a compiler for GPU code.
        #[allow(unreachable_pub)]
        pub static KERNELS: $crate::embed::Kernels = {
            struct Own;
            // SAFETY: the files are those that `pointwise-build` wrote. Every name is this crate's, whatever names there are
            // where the macro is called.
            unsafe impl $crate::embed::Packed for Own {
                const POINTWISE_PACK: $crate::embed::Pack = {
                    use $crate::__private::files as pointwise_files;
                    pointwise_files::include!(pointwise_files::concat!(
                        pointwise_files::env!("OUT_DIR"),
                        "/pointwise_kernels.rs"
                    ))
                };
            }
            $crate::embed::Kernels::of::<Own>()
        };
    };
}

/// A table of kernels, for one or several compute capabilities.
#[derive(Debug)]
pub struct Kernels {
    pack: Pack,
    /// The lines of the names, taken apart on first use.
    symbols: OnceLock<Vec<Symbol>>,
}

/// Kernels as `pointwise-build` writes them, of literals alone: the compiler that built them, or why there are none; the
/// names of the entries, sorted, one a line, each with the word of its row in hexadecimal digits, and its slots if it has any; the
/// targets.
pub type Pack = (&'static str, &'static str, &'static [PackedTarget]);

/// The kernels for one compute capability (90 is 9.0): PTX of a version, or machine code where that is `(0, 0)`; the names
/// of its entries, sorted, one a line, or `*` where those are all there are; the compressed groups, one after another; what
/// is in each of them.
pub type PackedTarget = (u32, (u32, u32), &'static str, &'static [u8], &'static [Group]);

/// A compressed group, a zstd frame: the number of its entries, its bytes, and its bytes decompressed.
pub type Group = (usize, usize, usize);

/// Kernels that `pointwise-build` compiled. What is in the constant is written by no hand: [`include_kernels!`] includes it,
/// and `#[op]` has it as literals, which no other name can stand for.
///
/// # Safety
/// An entry with a word is what `pointwise-device` makes of a row, for an element type and a class, that
/// [`pointwise_core::row`] has the word for: kernel objects run the entry if their own word is this, on memory that they
/// have checked for the row.
///
/// [`include_kernels!`]: crate::include_kernels
pub unsafe trait Packed {
    /// The kernels.
    const POINTWISE_PACK: Pack;
}

/// An entry's name, and its word and the slots of the row that it was made of, if it was made of one.
type Symbol = (&'static str, Option<(u64, u128)>);

/// The kernels for one compute capability.
#[derive(Clone, Copy, Debug)]
struct Target {
    sm: u32,
    ptx: (u32, u32),
    /// The names of the entries, sorted, one a line; `None` if the target has all entries of the table.
    names: Option<&'static str>,
    /// The compressed groups, one after another.
    bytes: &'static [u8],
    groups: &'static [Group],
}

impl From<&PackedTarget> for Target {
    fn from(&(sm, ptx, names, bytes, groups): &PackedTarget) -> Target {
        Target { sm, ptx, names: Some(names).filter(|names| *names != "*"), bytes, groups }
    }
}

impl Target {
    /// Returns the place of an entry, `index` of all, among this target's.
    fn place(&self, symbol: &str, index: usize) -> Option<usize> {
        self.names.map_or(Some(index), |names| names.lines().position(|name| name == symbol))
    }

    fn is_machine_code(&self) -> bool {
        self.ptx == (0, 0)
    }

    /// True if a device runs it: machine code runs on devices of its major version, from its minor version on, and the
    /// driver compiles PTX for every newer device.
    fn serves(&self, device: u32) -> bool {
        self.sm <= device && (!self.is_machine_code() || self.sm / 10 == device / 10)
    }

    /// Returns the image of the entry at `index` of the target's own sorted list for a device of compute capability
    /// `device`. The error is a sentence.
    fn image(&self, index: usize, symbol: &str, device: u32) -> Result<OwnedImage, String> {
        OwnedImage { bytes: self.bytes(index, symbol)?, sm: self.sm, ptx: self.ptx }.on(device)
    }

    fn bytes(&self, index: usize, symbol: &str) -> Result<Vec<u8>, String> {
        let (mut first, mut at) = (0_usize, 0_usize);
        for &(entries, length, size) in self.groups {
            let end = at.saturating_add(length);
            if index < first.saturating_add(entries) {
                let frame = self.bytes.get(at..end).ok_or("its bytes are missing")?;
                let group = decompress(frame, size)?;
                if self.is_machine_code() {
                    return Ok(group);
                }
                let mut texts = group.split_inclusive(|&byte| byte == 0);
                let text = texts.nth(index - first).filter(|text| text.last() == Some(&0));
                return match text {
                    Some(text) if declares(text, symbol) => Ok(text.to_vec()),
                    _ => Err("what is stored in its place is not this kernel".to_owned()),
                };
            }
            (first, at) = (first + entries, end);
        }
        Err("it is in no group".to_owned())
    }
}

/// The newest of the targets that the device runs and that have the entry, which is at `index` of all, machine code
/// before PTX; and where the entry stands in it.
fn newest(targets: impl Iterator<Item = Target>, symbol: &str, index: usize, device: u32) -> Option<(Target, usize)> {
    targets
        .filter(|target| target.serves(device))
        .filter_map(|target| target.place(symbol, index).map(|place| (target, place)))
        .max_by_key(|(target, _)| (target.is_machine_code(), target.sm))
}

fn decompress(frame: &[u8], size: usize) -> Result<Vec<u8>, String> {
    let broken = |error: &dyn std::fmt::Display| format!("its bytes cannot be decompressed ({error})");
    let decoder = StreamingDecoder::new(frame).map_err(|error| broken(&error))?;
    let mut bytes = Vec::with_capacity(size);
    // One byte more than expected is enough to notice that there are too many.
    decoder.take(size as u64 + 1).read_to_end(&mut bytes).map_err(|error| broken(&error))?;
    if bytes.len() != size {
        return Err(format!("it has {} bytes instead of {size}", bytes.len()));
    }
    Ok(bytes)
}

/// True if a module's text has the entry `symbol`.
fn declares(text: &[u8], symbol: &str) -> bool {
    let entry = format!(".entry {symbol}(");
    text.windows(entry.len()).any(|window| window == entry.as_bytes())
}

/// An image for the driver to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnedImage {
    /// PTX that ends in a NUL byte, or a cubin.
    pub(crate) bytes: Vec<u8>,
    /// The compute capability it was compiled for: 90 is 9.0.
    pub(crate) sm: u32,
    /// The version of the PTX language; (0, 0) for a cubin.
    pub(crate) ptx: (u32, u32),
}

/// The oldest device that has the instruction `griddepcontrol.wait`.
pub(crate) const WAITS_SINCE: u32 = 90;
/// The oldest PTX version that has it.
const WAITS_SINCE_PTX: (u32, u32) = (7, 8);
/// The instruction as a comment, and as itself.
const WAITS: [&[u8]; 2] = [b"//griddepcontrol.wait;", b"  griddepcontrol.wait;"];

impl OwnedImage {
    /// Prepares the image for a device of compute capability `device`: if it knows the wait for earlier kernels, the
    /// comment becomes the instruction. The error is a sentence.
    fn on(mut self, device: u32) -> Result<OwnedImage, String> {
        if device < WAITS_SINCE || self.ptx == (0, 0) {
            return Ok(self);
        }
        let old = || "they do not wait for other kernels, as those of this version do".to_owned();
        let find = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).position(|window| window == part);
        if self.sm < WAITS_SINCE {
            let header = |sm: u32, (major, minor): (u32, u32)| format!(".version {major}.{minor}\n.target sm_{sm}\n");
            let before = header(self.sm, self.ptx);
            (self.sm, self.ptx) = (WAITS_SINCE, self.ptx.max(WAITS_SINCE_PTX));
            let after = header(self.sm, self.ptx);
            for (from, to) in [(before.as_bytes(), after.as_bytes()), (WAITS[0], WAITS[1])] {
                let at = find(&self.bytes, from).ok_or_else(old)?;
                self.bytes.splice(at..at + from.len(), to.iter().copied());
            }
        }
        let waits = find(&self.bytes, &WAITS[1][2..]).is_some() && find(&self.bytes, WAITS[0]).is_none();
        if waits { Ok(self) } else { Err(old()) }
    }
}

impl Kernels {
    /// The kernels of a pack.
    pub const fn of<P: Packed>() -> Kernels {
        Kernels { pack: P::POINTWISE_PACK, symbols: OnceLock::new() }
    }

    /// No kernels, because of `why`.
    pub const fn empty(why: &'static str) -> Kernels {
        Kernels { pack: (why, "", &[]), symbols: OnceLock::new() }
    }

    /// True if there are no kernels, because the program was built without a compiler for GPU code.
    pub fn is_empty(&self) -> bool {
        let (_, names, targets) = self.pack;
        targets.is_empty() || names.is_empty()
    }

    /// The oldest compute capability that has kernels; `None` if there are none.
    pub(crate) fn oldest(&self) -> Option<u32> {
        self.packed().map(|target| target.sm).min().filter(|_| !self.is_empty())
    }

    /// The compiler that built the kernels, or the reason why there are none.
    pub fn note(&self) -> &str {
        self.pack.0
    }

    fn packed(&self) -> impl Iterator<Item = Target> {
        self.pack.2.iter().map(Target::from)
    }

    /// The compute capabilities with PTX: 90 is 9.0.
    pub fn targets(&self) -> Vec<u32> {
        self.sms(false)
    }

    /// The compute capabilities with machine code.
    pub fn cubins(&self) -> Vec<u32> {
        self.sms(true)
    }

    fn sms(&self, machine_code: bool) -> Vec<u32> {
        self.packed().filter(|target| target.is_machine_code() == machine_code).map(|target| target.sm).collect()
    }

    /// The names of the entries, sorted.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.symbols().iter().map(|(name, _)| *name)
    }

    /// True if there is an entry of this name.
    pub fn contains(&self, symbol: &str) -> bool {
        self.index(symbol).is_some()
    }

    /// True if there is an entry of this name that was made of a row with this word and these slots.
    pub(crate) fn is_bound(&self, symbol: &str, row: (u64, u128)) -> bool {
        self.index(symbol).is_some_and(|index| self.symbols()[index].1 == Some(row))
    }

    /// The PTX of one entry for a device of this compute capability: the newest that the device runs.
    pub fn ptx(&self, symbol: &str, sm: u32) -> Option<String> {
        let texts = self.packed().filter(|target| !target.is_machine_code());
        let (target, place) = newest(texts, symbol, self.index(symbol)?, sm)?;
        let mut bytes = target.image(place, symbol, sm).ok()?.bytes;
        bytes.pop();
        String::from_utf8(bytes).ok()
    }

    /// Returns the image of an entry of a row for a device of compute capability `device`: machine code if there is
    /// some for it, else the newest PTX that it runs.
    ///
    /// # Errors
    /// [`ErrorKind::NoKernel`] if there is none, if it was made of another row, or if the program's data is damaged.
    pub(crate) fn image(&'static self, symbol: &str, row: (u64, u128), device: u32) -> Result<OwnedImage> {
        self.find(symbol, row, device).map_err(|why| ErrorKind::NoKernel { symbol: symbol.to_owned(), why }.into())
    }

    fn find(&self, symbol: &str, row: (u64, u128), device: u32) -> Result<OwnedImage, String> {
        if self.is_empty() {
            return Err(format!(
                "this program was built without GPU kernels ({}); install what is missing and build it again, or use \
                 the CPU (Device::cpu())",
                self.note().split_whitespace().collect::<Vec<_>>().join(" ")
            ));
        }
        let Some(index) = self.index(symbol) else {
            return Err(format!("none of the {} embedded kernels has this name", self.symbols().len()));
        };
        if !self.is_bound(symbol, row) {
            return Err(
                "the embedded kernel of this name is that of another row or class, or of another version of pointwise, \
                        and would take the op's memory for something else: give the op a name that no other op of \
                        these kernels has, or build them again from the kernel crate that this program is linked with"
                    .to_owned(),
            );
        }
        let Some((target, place)) = newest(self.packed(), symbol, index, device) else {
            let oldest = self.oldest().unwrap_or(0);
            return Err(format!(
                "the device is sm_{device}, and the oldest kernels are for sm_{oldest}: build them for it too, or \
                 use the CPU (Device::cpu())"
            ));
        };
        target.image(place, symbol, device).map_err(|why| {
            format!("the kernels embedded for sm_{} are damaged: {why}; build the program again", target.sm)
        })
    }

    fn symbols(&self) -> &[Symbol] {
        let symbol = |line: &'static str| {
            let mut words = line.split(' ');
            let name = words.next().unwrap_or(line);
            let row = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
            // Most rows have none.
            let slots = words.next().map_or(Some(0), |word| u128::from_str_radix(word, 16).ok());
            (name, row.zip(slots))
        };
        self.symbols.get_or_init(|| self.pack.1.lines().map(symbol).collect())
    }

    fn index(&self, symbol: &str) -> Option<usize> {
        self.symbols().binary_search_by_key(&symbol, |(name, _)| name).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes kernels that no test runs.
    const fn of(note: &'static str, names: &'static str, targets: &'static [PackedTarget]) -> Kernels {
        Kernels { pack: (note, names, targets), symbols: OnceLock::new() }
    }

    /// A zstd frame with one block of raw bytes.
    fn frame(content: &[u8]) -> Vec<u8> {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x60];
        // The field of two bytes for the content's size counts from 256.
        frame.extend_from_slice(&((content.len() - 256) as u16).to_le_bytes());
        frame.extend_from_slice(&((content.len() as u32) << 3 | 1).to_le_bytes()[..3]);
        frame.extend_from_slice(content);
        frame
    }

    fn text(symbol: &str, sm: u32) -> String {
        let (version, comment) = if sm < 90 { ("7.0", "//") } else { ("7.8", "") };
        format!(
            ".version {version}\n.target sm_{sm}\n{}\n.visible .entry {symbol}(\n)\n{{\n{comment}griddepcontrol.wait;\n\tret;\n}}\n\0",
            "// x".repeat(50)
        )
    }

    /// An entry without a word, as older versions wrote it, and an entry of another row are refused.
    #[test]
    fn a_kernel_of_another_row_is_refused() {
        static KERNELS: Kernels = of("rustc", "a 00000000000000ff\nb\nc g\nd 1 10", &[(80, (7, 0), "*", b"", &[])]);
        assert!(KERNELS.is_bound("a", (255, 0)) && KERNELS.contains("b") && KERNELS.is_bound("d", (1, 16)));
        assert_eq!(KERNELS.entries().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
        let others = [("a", (254, 0)), ("a", (255, 1)), ("b", (0, 0)), ("b", (255, 0)), ("c", (0, 0)), ("d", (1, 0))];
        for (symbol, row) in others {
            assert!(!KERNELS.is_bound(symbol, row), "{symbol}");
            let error = KERNELS.image(symbol, row, 90).unwrap_err();
            let text = error.to_string();
            assert!(error.is_kernel() && text.contains("is that of another row") && text.contains("name"), "{text}");
        }
        let damaged = KERNELS.image("a", (255, 0), 90).unwrap_err().to_string();
        assert!(damaged.contains("damaged"), "{damaged}");
    }

    /// Entries a, b in one group and c in another for sm_80; a and c for sm_90; and machine code of all for sm_100.
    fn leak(damage: impl Fn(&mut Vec<u8>)) -> &'static Kernels {
        let target = |sm: u32, ptx, names, groups: &[&[&str]]| -> PackedTarget {
            let (mut bytes, mut list) = (Vec::new(), Vec::new());
            for group in groups {
                let content: String = group.iter().map(|name| text(name, sm)).collect();
                let frame = frame(content.as_bytes());
                list.push((group.len(), frame.len(), content.len()));
                bytes.extend(frame);
            }
            damage(&mut bytes);
            (sm, ptx, names, bytes.leak(), list.leak())
        };
        let targets = vec![
            target(80, (7, 0), "*", &[&["a", "b"], &["c"]]),
            target(90, (7, 8), "a\nc", &[&["a"], &["c"]]),
            target(100, (0, 0), "*", &[&["a", "b", "c"]]),
        ];
        Box::leak(Box::new(of("rustc 1.96.0", "a 1\nb 1\nc 1", targets.leak())))
    }

    #[test]
    fn finds_each_entry_for_each_device() {
        let kernels = leak(|_| {});
        assert!(!kernels.is_empty());
        assert_eq!((kernels.note(), kernels.targets(), kernels.cubins()), ("rustc 1.96.0", vec![80, 90], vec![100]));
        assert_eq!(kernels.entries().collect::<Vec<_>>(), ["a", "b", "c"]);
        for symbol in ["a", "b", "c"] {
            for (device, newest) in [(80, 80), (89, 80), (90, 90), (120, 90)] {
                let image = kernels.image(symbol, (1, 0), device).unwrap();
                let ptx = if newest == 90 { (7, 8) } else { (7, 0) };
                assert_eq!((image.sm, image.ptx), (newest, ptx), "{symbol} {device}");
                let mut expected = text(symbol, newest);
                // An entry that sm_90 lacks comes from sm_80, where the instruction is a comment.
                if (newest, symbol) == (90, "b") {
                    expected = expected.replace("griddep", "  griddep");
                }
                assert_eq!(image.bytes, expected.as_bytes());
                assert_eq!(kernels.ptx(symbol, device).unwrap(), expected.trim_end_matches('\0'));
            }
            let machine_code = kernels.image(symbol, (1, 0), 103).unwrap();
            assert_eq!((machine_code.sm, machine_code.ptx), (100, (0, 0)));
        }
        assert_eq!((kernels.ptx("b", 75), kernels.ptx("d", 90)), (None, None));
        assert!(kernels.contains("c") && !kernels.contains("d") && !kernels.contains(""));
    }

    /// Machine code runs on devices of its major version that are no older, PTX on all that are no older.
    #[test]
    fn a_device_runs_what_is_old_enough() {
        let serves =
            |sm, ptx| [80, 86, 89, 90].map(|device| Target::from(&(sm, ptx, "*", &b""[..], &[][..])).serves(device));
        assert_eq!(serves(86, (0, 0)), [false, true, true, false]);
        assert_eq!(serves(86, (7, 1)), [false, true, true, true]);
    }

    #[test]
    fn kernels_that_do_not_wait_are_refused() {
        let why = |sm, text: &str| {
            let image = OwnedImage { bytes: text.as_bytes().to_vec(), sm, ptx: (7, 0) };
            assert_eq!(image.clone().on(89), Ok(image.clone()));
            image.on(90).unwrap_err()
        };
        for (sm, text) in [
            (80, ".version 7.0\n.target sm_80\n{\nret;\n}\n\0"),
            (80, ".version 7.1\n.target sm_80\n{\n//griddepcontrol.wait;\n}\n\0"),
            (90, ".version 7.8\n.target sm_90\n{\nret;\n}\n\0"),
            (90, ".version 7.8\n.target sm_90\n{\n//griddepcontrol.wait;\nret;\n}\n\0"),
            (80, ".version 7.0\n.target sm_80\n{\n//griddepcontrol.wait;\n//griddepcontrol.wait;\n}\n\0"),
            (80, ""),
        ] {
            assert_eq!(why(sm, text), "they do not wait for other kernels, as those of this version do");
        }
        let cubin = OwnedImage { bytes: vec![1], sm: 90, ptx: (0, 0) };
        assert_eq!(cubin.clone().on(90), Ok(cubin));
    }

    #[test]
    fn every_absence_says_why() {
        let why =
            |kernels: &'static Kernels, symbol, device| kernels.image(symbol, (1, 0), device).unwrap_err().to_string();
        let kernels = leak(|_| {});
        assert_eq!(why(kernels, "d", 90), "no kernel d: none of the 3 embedded kernels has this name");
        assert!(why(kernels, "a", 75).contains("the device is sm_75, and the oldest kernels are for sm_80:"));
        static EMPTY: Kernels = Kernels::empty("no toolchain for GPU code.\n  run `rustup component add rust-src`");
        assert!(EMPTY.is_empty() && EMPTY.entries().next().is_none() && EMPTY.targets().is_empty());
        let text = why(&EMPTY, "a", 90);
        assert!(text.contains("rustup component add rust-src") && !text.contains('\n'), "{text}");
        assert!(EMPTY.image("a", (1, 0), 90).unwrap_err().is_kernel());
    }

    #[test]
    fn damaged_bytes_are_an_error() {
        let whole = leak(|_| {}).pack.2[0].3.len();
        for at in 0..whole {
            let kernels = leak(|bytes| {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 0x55;
                }
            });
            for symbol in ["a", "c"] {
                // A byte within the text is not noticed; anything else is an error, not a panic.
                if let Err(error) = kernels.image(symbol, (1, 0), 80) {
                    assert!(error.to_string().contains("damaged"), "{error}");
                }
            }
        }
        for keep in 0..whole {
            assert!(leak(|bytes| bytes.truncate(keep)).image("c", (1, 0), 80).is_err(), "{keep}");
        }
    }
}
