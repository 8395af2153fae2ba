//! Tensors from safetensors files and to them.
//!
//! Only the header and the tensors asked for are read, wherever in the file they lie.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use pointwise::interop::safetensors::{dtype, to_file};
use pointwise::{Device, Tensor};
use safetensors::tensor::{Metadata, TensorInfo};

use crate::draft::{self, Draft};
use crate::error::{Error, Result, did_you_mean, nearest};
use crate::progress;

/// A result with its name in a file.
pub(crate) type Named = (&'static str, Tensor);

/// Bytes of the header's length.
const LENGTH: u64 = 8;

/// The format's limit for a header.
const MAX_HEADER: u64 = 100_000_000;

/// Bytes moved between two updates of the progress bar.
const CHUNK: usize = 8 << 20;

/// A safetensors file whose header is read.
pub(crate) struct Source<'a> {
    path: &'a Path,
    file: File,
    /// The offset of its data.
    start: u64,
    header: Metadata,
}

impl<'a> Source<'a> {
    /// The file at `path`.
    ///
    /// # Errors
    /// A file that cannot be read or is not a whole safetensors file.
    pub(crate) fn open(path: &'a Path) -> Result<Self> {
        let (file, start, header) = open(path)?;
        Ok(Source { path, file, start, header })
    }

    /// True if it has a tensor `name`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.header.info(name).is_some()
    }

    /// The tensors `names`, on `device`.
    ///
    /// # Errors
    /// A tensor that is not there or is of a type that ops do not take; out of memory.
    pub(crate) fn read(&mut self, names: &[&str], device: &Device) -> Result<Vec<Tensor>> {
        names.iter().map(|name| self.read_tensor(name, device)).collect()
    }

    /// Like [`Source::read`], for operands that may be left out: reads the `names` that the file has.
    ///
    /// # Errors
    /// A tensor of a type that ops do not take; out of memory.
    pub(crate) fn read_present(&mut self, names: &[&str], device: &Device) -> Result<Vec<Option<Tensor>>> {
        names.iter().map(|name| self.has(name).then(|| self.read_tensor(name, device)).transpose()).collect()
    }

    /// Refuses a tensor that the call would ignore although it has the name of something that the op takes.
    pub(crate) fn refuse(&self, name: &str, why: &str) -> Error {
        Error::Failed(format!("{} has a tensor {name}, but {why}", self.path.display()))
    }

    fn read_tensor(&mut self, name: &str, device: &Device) -> Result<Tensor> {
        let path = self.path;
        let info = self.header.info(name).ok_or_else(|| missing(path, &self.header, name))?;
        let dtype = dtype(info.dtype).map_err(Error::of(format!("tensor {name} of {}", path.display())))?;
        let failed = |error: io::Error| Error::Failed(format!("cannot read {}: {error}", path.display()));
        let (from, to) = info.data_offsets;
        let bytes = (to - from) as u64;
        self.file.seek(SeekFrom::Start(self.start + from as u64)).map_err(failed)?;
        let bar = progress::of_bytes("reading", bytes);
        let mut data = buffer(bytes)?;
        bar.wrap_read(&self.file).take(bytes).read_to_end(&mut data).map_err(failed)?;
        bar.finish_and_clear();
        let tensor = Tensor::from_bytes(device, dtype, &data, info.shape.as_slice());
        tensor.map_err(Error::of(format!("tensor {name} of {}", path.display())))
    }
}

/// The file, where its data begins, and its header.
fn open(path: &Path) -> Result<(File, u64, Metadata)> {
    let failed = |error: io::Error| Error::Failed(format!("cannot read {}: {error}", path.display()));
    let broken = |why: String| Error::Failed(format!("{} is not a safetensors file: {why}", path.display()));
    // Before it is opened: opening a pipe waits for somebody to write to it.
    let metadata = fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        let what = if metadata.is_dir() { "a directory" } else { "not a regular file" };
        return Err(Error::Failed(format!("cannot read {}: it is {what}", path.display())));
    }
    let mut file = File::open(path).map_err(failed)?;
    let size = metadata.len();
    if size < LENGTH {
        return Err(broken(format!("it has {size} bytes, and the length of its header alone takes {LENGTH}")));
    }
    let mut length = [0; LENGTH as usize];
    file.read_exact(&mut length).map_err(failed)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER {
        return Err(broken(format!("its header would have {length} bytes; at most {MAX_HEADER} are allowed")));
    }
    if length > size - LENGTH {
        return Err(broken(format!("its header would have {length} bytes, but it has only {size}; is it cut off?")));
    }
    let mut header = buffer(length)?;
    (&mut file).take(length).read_to_end(&mut header).map_err(failed)?;
    let header: Metadata = serde_json::from_slice(&header).map_err(|error| broken(format!("header: {error}")))?;

    let start = LENGTH + length;
    let expected = start.checked_add(header.data_len() as u64);
    if expected != Some(size) {
        let guess = if expected.is_some_and(|bytes| bytes < size) { "is something behind it" } else { "is it cut off" };
        let expected = expected.map_or("more than any file".to_owned(), |bytes| format!("{bytes} bytes"));
        return Err(broken(format!("its header describes {expected}, but it has {size}; {guess}?")));
    }
    Ok((file, start, header))
}

/// An empty buffer with room for `bytes`: running out of memory is an error, not the end of the program.
fn buffer(bytes: u64) -> Result<Vec<u8>> {
    let mut buffer = Vec::new();
    let reserved = usize::try_from(bytes).ok().and_then(|bytes| buffer.try_reserve_exact(bytes).ok());
    reserved.ok_or_else(|| Error::Failed(format!("out of memory: {bytes} bytes are needed to read the file")))?;
    Ok(buffer)
}

fn missing(path: &Path, header: &Metadata, name: &str) -> Error {
    const SHOWN: usize = 8;
    let mut names = header.offset_keys();
    names.sort_unstable();
    let near = did_you_mean(&nearest(name, names.iter().map(String::as_str)));
    let has = match names.len() {
        0 => "it has none".to_owned(),
        many if many > SHOWN => format!("it has {} and {} more", names[..SHOWN].join(", "), many - SHOWN),
        _ => format!("it has {}", names.join(", ")),
    };
    Error::Failed(format!("{} has no tensor {name}{near} ({has})", path.display()))
}

/// A place to write to, looked at before the work is done.
pub(crate) struct Target(PathBuf);

impl Target {
    /// # Errors
    /// A directory, a file or folder that may not be written, a folder that is not there, a link to nothing.
    pub(crate) fn new(given: &Path) -> Result<Target> {
        let target = Target(given.to_owned());
        let refuse = |why: &str| Err(target.failed(io::Error::other(why)));
        let old = fs::metadata(given).ok();
        if given.file_name().is_none() || old.as_ref().is_some_and(fs::Metadata::is_dir) {
            return refuse("it is a directory");
        }
        if old.is_none() && !draft::folder(given).is_dir() {
            return refuse("there is no such folder");
        }
        draft::check(given).map_err(|error| target.failed(error))?;
        Ok(target)
    }

    /// Writes a file of these tensors.
    ///
    /// # Errors
    /// The errors of the device and of the file system. If it fails, there is no file, or the old one.
    pub(crate) fn write(&self, tensors: &[Named]) -> Result<()> {
        let (header, order) = header(tensors)?;
        let mut draft = Draft::new(&self.0).map_err(|error| self.failed(error))?;
        self.write_to(&mut draft.file, &header, &order)?;
        draft.keep().map_err(|error| self.failed(error))
    }

    fn write_to(&self, file: &mut File, header: &[u8], tensors: &[&Tensor]) -> Result<()> {
        file.write_all(header).map_err(|error| self.failed(error))?;
        let bar = progress::of_bytes("writing", tensors.iter().map(|tensor| tensor.byte_len() as u64).sum());
        for tensor in tensors {
            let bytes = tensor.to_bytes()?;
            for chunk in bytes.chunks(CHUNK) {
                file.write_all(chunk).map_err(|error| self.failed(error))?;
                bar.inc(chunk.len() as u64);
            }
        }
        bar.finish_and_clear();
        Ok(())
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::Failed(format!("cannot write {}: {error}", self.0.display()))
    }
}

/// The header with its length, and the tensors in the order of their bytes.
fn header(tensors: &[Named]) -> Result<(Vec<u8>, Vec<&Tensor>)> {
    let mut sorted: Vec<_> = tensors.iter().collect();
    // The widest elements first, as the format's own writer does: then all of them are aligned.
    sorted.sort_by_key(|(name, tensor)| (std::cmp::Reverse(tensor.dtype().size()), *name));
    let mut at = 0;
    let infos = sorted.iter().map(|(name, tensor)| {
        let from = at;
        at += tensor.byte_len();
        let shape = tensor.shape().to_vec();
        let dtype = to_file(tensor.dtype()).map_err(Error::of(format!("tensor {name}")))?;
        Ok(((*name).to_owned(), TensorInfo { dtype, shape, data_offsets: (from, at) }))
    });
    let metadata = Metadata::new(None, infos.collect::<Result<_>>()?);
    let json = metadata.map_err(|error| error.to_string()).and_then(|metadata| {
        let json = serde_json::to_vec(&metadata).map_err(|error| error.to_string())?;
        Ok(json)
    });
    let mut json = json.map_err(|why| Error::Failed(format!("the result cannot be described in a file: {why}")))?;
    json.resize(json.len().next_multiple_of(LENGTH as usize), b' ');
    let mut header = (json.len() as u64).to_le_bytes().to_vec();
    header.append(&mut json);
    Ok((header, sorted.iter().map(|(_, tensor)| tensor).collect()))
}
