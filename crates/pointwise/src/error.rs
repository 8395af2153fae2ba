//! The crate's one error type. Every message is one line that says what is wrong and what to do.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::{fmt, io};

use pointwise_core::{DType, NoDType};

use crate::{Device, Shape};

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a call failed. Small (one pointer), so that results stay cheap on the launch path.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

// A source is shown and never changed: a panic leaves nothing of it that this crate would see.
impl UnwindSafe for Error {}
impl RefUnwindSafe for Error {}

/// The answer of a driver: the source of errors that come from a driver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} ({code}): {text}")]
#[non_exhaustive]
pub struct DriverError {
    /// The result's number.
    pub code: i32,
    /// The result's name.
    pub name: String,
    /// The driver's words.
    pub text: String,
}

/// The answer of the system when a file was read.
#[derive(Debug, Clone)]
pub struct FileError(Arc<io::Error>);

impl FileError {
    /// The system's error.
    pub fn io(&self) -> &io::Error {
        &self.0
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        FileError(Arc::new(error))
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

impl PartialEq for FileError {
    fn eq(&self, other: &Self) -> bool {
        self.0.kind() == other.0.kind() && self.0.to_string() == other.0.to_string()
    }
}

impl Eq for FileError {}

/// The causes an [`Error`] can have.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Two shapes that must be equal are not.
    #[error("{what}: expected shape {expected}, got {got}")]
    ShapeMismatch {
        /// The operand and its call.
        what: String,
        /// The shape the call needs.
        expected: Shape,
        /// The shape it was given.
        got: Shape,
    },
    /// Two shapes cannot be broadcast together.
    #[error(
        "shapes {a} and {b} cannot be broadcast together: dimension {dim} of the result would be {} and {}; \
         sizes must be equal or 1, counted from the last dimension",
        broadcast_size(.a, .b, *.dim), broadcast_size(.b, .a, *.dim)
    )]
    Broadcast {
        /// The first shape.
        a: Shape,
        /// The second shape.
        b: Shape,
        /// The dimension of the result that does not fit.
        dim: usize,
    },
    /// The call does not take this element type.
    #[error("{op} does not take {got}: it takes {}; to_dtype converts", list(.allowed))]
    DType {
        /// The op or call.
        op: String,
        /// The given type.
        got: DType,
        /// The types that the call takes.
        allowed: Vec<DType>,
    },
    /// There is no type for operands of these two types to meet in.
    #[error(
        "{op} of {a} and {b}: fp8 types are not promoted, as in PyTorch; convert one of them with to_dtype() first"
    )]
    Promotion {
        /// The op.
        op: String,
        /// One type.
        a: DType,
        /// The other.
        b: DType,
    },
    /// A result cannot be written over the operand.
    #[error("{op} in place: result type {result} can't be cast to {got}; write it to another tensor")]
    Cast {
        /// The op.
        op: String,
        /// The type of the result.
        result: DType,
        /// The type of the tensor to be written.
        got: DType,
    },
    /// Tensors of one call lie on different devices.
    #[error("{what} is on {got}, but the call runs on {expected}: move it with to_device(&{})", device_call(.expected))]
    DeviceMismatch {
        /// The operand.
        what: String,
        /// The device the call runs on.
        expected: Device,
        /// The operand's device.
        got: Device,
    },
    /// A stream of another device than the call.
    #[error("the stream is of {got}, but the call runs on {expected}: make one with Stream::new(&{})", device_call(.expected))]
    StreamDevice {
        /// The device the call runs on.
        expected: Device,
        /// The stream's device.
        got: Device,
    },
    /// An output shares memory with an operand in a way that would change what is read.
    #[error(
        "{what}: an output must be the very tensor it replaces, of the same layout, or share no memory with it; copy one of them first"
    )]
    Overlap {
        /// The tensors.
        what: String,
    },
    /// Memory that several tensors share would be written.
    #[error(
        "the tensor shares its memory with a clone, which the call would change, too: write to a copy (`copy()`), or \
         drop the clones first"
    )]
    Shared,
    /// The call needs elements that lie one after another.
    #[error("{what} must be contiguous, but shape {shape} has strides {strides:?}: copy it with to_tensor() first")]
    NotContiguous {
        /// The call.
        what: &'static str,
        /// The view's shape.
        shape: Shape,
        /// The view's strides, in elements.
        strides: Vec<i64>,
    },
    /// A parameter has a value that the call does not take.
    #[error("{name} = {value}: {why}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
        /// The reason.
        why: String,
    },
    /// There is no NVIDIA driver here.
    #[error("no NVIDIA driver ({tried}): install the driver, or use the CPU (Device::cpu())")]
    NoDriver {
        /// The libraries that were tried, and the outcome.
        tried: String,
    },
    /// There is an NVIDIA driver, but it cannot be used as it is.
    #[error("the NVIDIA driver cannot be used ({why}): repair or update it, or use the CPU (Device::cpu())")]
    BrokenDriver {
        /// The driver's answer, or what it lacks.
        why: String,
    },
    /// There is a driver, but no such device.
    #[error("cuda:{ordinal} does not exist: the driver sees {}; CUDA_VISIBLE_DEVICES decides which", devices(*.count))]
    NoDevice {
        /// The device asked for.
        ordinal: usize,
        /// The number of devices.
        count: usize,
    },
    /// The CUDA driver refused a call.
    #[error("{call} failed: {name} ({code}): {message}")]
    Driver {
        /// The driver function.
        call: &'static str,
        /// Its result.
        code: i32,
        /// The result's name.
        name: String,
        /// The driver's words, and ours where there is more to say.
        message: String,
    },
    /// The emulator found a fault in a kernel that it ran, or cannot run at all.
    #[error("the emulator: {finding}")]
    Emulator {
        /// The fault, and its place.
        finding: String,
    },
    /// The driver could not load a kernel's module.
    #[error(
        "the driver (CUDA {}) could not load kernel {symbol} (PTX {} for sm_{sm}): {advice}{}",
        version(.driver), version(.ptx), log_note(.log)
    )]
    Load {
        /// The kernel.
        symbol: String,
        /// The compute capability the image was compiled for: 90 is 9.0.
        sm: u32,
        /// The CUDA version of the driver, major and minor.
        driver: (u32, u32),
        /// The version of the PTX language the image is in; (0, 0) for machine code.
        ptx: (u32, u32),
        /// The driver's code.
        code: i32,
        /// The driver's compiler's words.
        log: String,
        /// Advice.
        advice: String,
    },
    /// No embedded kernel does this.
    #[error("no kernel {symbol}: {why}")]
    NoKernel {
        /// The kernel.
        symbol: String,
        /// The reason why it is missing, and advice.
        why: String,
    },
    /// The device's memory is used up.
    #[error("{device} is out of memory: asked for {}{}; use smaller tensors or drop some", bytes(*.asked), free_note(*.free, *.total))]
    OutOfMemory {
        /// Bytes asked for.
        asked: usize,
        /// Bytes free on the device; 0 where it is not known.
        free: usize,
        /// The device's bytes; 0 where it is not known.
        total: usize,
        /// The device.
        device: Device,
    },
    /// More dimensions than a tensor can have.
    #[error("{rank} dimensions are too many: a tensor has at most {max}; merge some with reshape", max = pointwise_core::launch::MAX_DIMS)]
    RankTooHigh {
        /// Dimensions asked for.
        rank: usize,
    },
    /// The size of a tensor does not fit the machine's integers.
    #[error("a tensor of shape {dims:?} is too large to address")]
    SizeOverflow {
        /// The shape asked for.
        dims: Vec<usize>,
    },
    /// Data of another length than the shape needs.
    #[error("expected {expected} {unit}, got {got}: data and shape must agree")]
    DataLength {
        /// The length that the shape needs.
        expected: usize,
        /// The length of the data.
        got: usize,
        /// `elements` or `bytes`.
        unit: &'static str,
    },
    /// A byte that is neither 0 nor 1 where a bool was due.
    #[error("byte {value} at element {at} is not a bool: only 0 and 1 are")]
    BadBool {
        /// The element.
        at: usize,
        /// Its byte.
        value: u8,
    },
    /// A word is no element type's name.
    #[error("{}", NoDType)]
    NoDType,
    /// A RoPE configuration or call is wrong.
    #[cfg(feature = "family")]
    #[error("{0}")]
    Rope(#[source] crate::rope::RopeError),
    /// Another thread is capturing the stream.
    #[error(
        "another thread is capturing the stream of {device} that this call queues work on: call again after the capture, \
         or give each thread a stream of its own (Stream::new, and .on(&stream))"
    )]
    StreamCaptured {
        /// The stream's device.
        device: Device,
    },
    /// The call cannot be served here.
    #[error("{what}: {advice}")]
    Unsupported {
        /// The request.
        what: String,
        /// Advice.
        advice: String,
    },
}

impl Error {
    /// The error of a kind that another error has led to.
    #[cold]
    pub(crate) fn caused(kind: ErrorKind, source: Arc<dyn std::error::Error + Send + Sync>) -> Error {
        Error(Box::new(Inner { kind, source: Some(source) }))
    }

    /// The cause.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// True if shapes were at fault: unequal, not broadcastable, of too many dimensions, or of another size than the
    /// data.
    pub fn is_shape(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::ShapeMismatch { .. }
                | ErrorKind::Broadcast { .. }
                | ErrorKind::NotContiguous { .. }
                | ErrorKind::RankTooHigh { .. }
                | ErrorKind::SizeOverflow { .. }
                | ErrorKind::DataLength { .. }
        )
    }

    /// True if an element type was at fault.
    pub fn is_dtype(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::DType { .. } | ErrorKind::Promotion { .. } | ErrorKind::Cast { .. } | ErrorKind::NoDType
        )
    }

    /// True if there is no driver or no such device here, so that the CPU is the device to use.
    pub fn is_no_device(&self) -> bool {
        matches!(self.kind(), ErrorKind::NoDriver { .. } | ErrorKind::NoDevice { .. })
    }

    /// True if memory was used up.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self.kind(), ErrorKind::OutOfMemory { .. })
    }

    /// True if the kernel is missing or the driver could not load it.
    pub fn is_kernel(&self) -> bool {
        matches!(self.kind(), ErrorKind::NoKernel { .. } | ErrorKind::Load { .. })
    }

    /// True if a call of the CUDA driver failed.
    pub fn is_driver(&self) -> bool {
        matches!(self.kind(), ErrorKind::Driver { .. } | ErrorKind::Load { .. })
    }

    /// The driver's result code, if the driver was at fault.
    pub fn driver_code(&self) -> Option<i32> {
        match self.kind() {
            ErrorKind::Driver { code, .. } | ErrorKind::Load { code, .. } => Some(*code),
            _ => None,
        }
    }
}

impl From<ErrorKind> for Error {
    #[cold]
    fn from(kind: ErrorKind) -> Self {
        Error(Box::new(Inner { kind, source: None }))
    }
}

/// Turns the error of `"bf16".parse()` into this one, so that `?` takes both.
impl From<NoDType> for Error {
    #[cold]
    fn from(error: NoDType) -> Self {
        Error::caused(ErrorKind::NoDType, Arc::new(error))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind().fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}: {})", self.kind(), self.kind())
    }
}

/// Errors are equal if their kinds are.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        self.kind() == other.kind()
    }
}

/// The source is the answer of a driver ([`DriverError`]), the loader of the driver's library, the emulator or the
/// system ([`FileError`]). The message of the error says it, too.
impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.source {
            Some(source) => Some(&**source),
            None => self.kind().source(),
        }
    }
}

/// `a`'s size at dimension `dim` of the result of broadcasting `a` with `b`.
fn broadcast_size(a: &Shape, b: &Shape, dim: usize) -> usize {
    let missing = b.rank().saturating_sub(a.rank());
    dim.checked_sub(missing).and_then(|d| a.get(d)).copied().unwrap_or(1)
}

/// Escapes control characters in text from outside: a message is one line.
pub(crate) fn line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { line.extend(c.escape_debug()) } else { line.push(c) }
    }
    line
}

fn list(dtypes: &[DType]) -> String {
    let names: Vec<_> = dtypes.iter().map(|dtype| dtype.name()).collect();
    names.join(", ")
}

fn device_call(device: &Device) -> String {
    match device.ordinal() {
        Some(ordinal) => format!("Device::cuda({ordinal})?"),
        None if device.is_emulated() => "Device::emulated()?".to_owned(),
        None => "Device::cpu()".to_owned(),
    }
}

fn devices(count: usize) -> String {
    match count {
        0 => "no device".to_owned(),
        1 => "one device, cuda:0".to_owned(),
        _ => format!("{count} devices, cuda:0 to cuda:{}", count - 1),
    }
}

fn version((major, minor): &(u32, u32)) -> String {
    format!("{major}.{minor}")
}

/// The compiler's log as a tail of the one-line message.
fn log_note(log: &str) -> String {
    let words: Vec<_> = log.split_whitespace().collect();
    if words.is_empty() { String::new() } else { format!("; the driver's log: {}", words.join(" ")) }
}

/// The amount of memory, if it is known.
fn free_note(free: usize, total: usize) -> String {
    match total {
        0 => String::new(),
        _ => format!(", {} of {} are free", bytes(free), bytes(total)),
    }
}

/// A number of bytes in a form for people.
fn bytes(bytes: usize) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64 / 1024.0;
    if value < 1.0 {
        return format!("{bytes} bytes");
    }
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_small_and_crosses_threads() {
        fn check<T: Send + Sync + UnwindSafe + RefUnwindSafe + 'static + std::error::Error>() {}
        check::<Error>();
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }

    #[test]
    fn broadcast_names_the_sizes() {
        let a = Shape::new(&[2, 3, 4]).unwrap();
        let b = Shape::new(&[5, 4]).unwrap();
        let error = Error::from(ErrorKind::Broadcast { a, b, dim: 1 });
        assert_eq!(
            error.to_string(),
            "shapes [2, 3, 4] and [5, 4] cannot be broadcast together: dimension 1 of the result would be 3 and 5; \
             sizes must be equal or 1, counted from the last dimension"
        );
        assert!(error.is_shape());
    }

    #[test]
    fn load_keeps_one_line() {
        let error = Error::from(ErrorKind::Load {
            symbol: "silu_f32".into(),
            sm: 90,
            driver: (11, 4),
            ptx: (7, 8),
            code: 222,
            log: "line one\nline two\n".into(),
            advice: "update the driver".into(),
        });
        assert_eq!(
            error.to_string(),
            "the driver (CUDA 11.4) could not load kernel silu_f32 (PTX 7.8 for sm_90): update the driver; \
             the driver's log: line one line two"
        );
        assert_eq!(error.driver_code(), Some(222));
    }

    #[test]
    fn sizes_read_well() {
        assert_eq!(bytes(512), "512 bytes");
        assert_eq!(bytes(3 << 30), "3.0 GiB");
    }
}
