//! Boxed kernels: one for each op and each way to give its operands, made from the registry.
//!
//! A boxed kernel carries no data of its own. So there are as many functions as there may be kernels, each with a number in
//! its type, and the list that says which op a number is.

use std::ffi::{CStr, CString};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use pointwise::Number;
use pointwise::kernel::Rng;

use crate::abi::{Api, Kernel, VERSION, Word};
use crate::arguments::Arguments;
use crate::call;
use crate::fusion;
use crate::operand::Argument;
use crate::overriding::Override;
use crate::registry::{self, NumberKind, OpSpec};
use crate::rope::Rope;
use crate::tensor::Tensor;

/// A kernel: an op, and how its operands and results come.
#[derive(Debug)]
pub(crate) struct Slot {
    /// Its op, in the list of all.
    pub(crate) op: usize,
    /// Bit `k`: operand `k` is a number.
    pub(crate) numbers: u32,
    /// True if it writes to given tensors; otherwise it returns new ones.
    pub(crate) out: bool,
}

/// The role of a number.
#[derive(Debug)]
pub(crate) enum Role {
    /// An op's kernel.
    Op(Slot),
    /// A rotary embedding.
    Rope(Rope),
    /// A kernel under an op of aten.
    Override(Override),
    /// The kernels of programs.
    Fused,
}

/// The ops of this library, and their kernels.
#[derive(Debug)]
pub(crate) struct Library {
    /// The ops.
    pub(crate) ops: Vec<OpSpec>,
    /// The role of each number.
    pub(crate) roles: Vec<Role>,
}

static LIBRARY: OnceLock<Library> = OnceLock::new();

/// The most kernels of a library.
const MOST: usize = 1024;

impl Library {
    /// The library of pointwise's own ops.
    pub(crate) fn family() -> &'static Library {
        LIBRARY.get_or_init(|| {
            let mut library = Library::new(registry::family());
            library.roles.extend(Rope::ALL.map(Role::Rope));
            library.roles.extend(Override::all(&library.ops).into_iter().map(Role::Override));
            library.roles.push(Role::Fused);
            library
        })
    }

    /// The kernels under aten's ops, with their numbers.
    pub(crate) fn overrides(&self) -> impl Iterator<Item = (usize, &Override)> {
        self.roles.iter().enumerate().filter_map(|(number, role)| match role {
            Role::Override(over) => Some((number, over)),
            _ => None,
        })
    }

    /// The number of the kernel that runs programs.
    pub(crate) fn fused(&self) -> Option<usize> {
        self.roles.iter().position(|role| matches!(role, Role::Fused))
    }

    /// The library of a package's ops.
    pub(crate) fn of_package(package: &str) -> &'static Library {
        LIBRARY.get_or_init(|| Library::new(registry::of_package(package)))
    }

    fn new(ops: Vec<OpSpec>) -> Library {
        let mut roles = Vec::new();
        for (op, spec) in ops.iter().enumerate() {
            let one = (0..spec.operands.len()).filter(|k| spec.operands[*k].takes_number).map(|k| 1 << k);
            for numbers in std::iter::once(0).chain(one) {
                // An op without operands writes to a tensor that is given: nothing else says what it makes.
                for out in [false, true].into_iter().filter(|out| *out || !spec.operands.is_empty()) {
                    roles.push(Role::Op(Slot { op, numbers, out }));
                }
            }
        }
        Library { ops, roles }
    }

    /// The schema of a kernel, with its name, in torch's words.
    pub(crate) fn schema(&self, slot: &Slot) -> String {
        let op = &self.ops[slot.op];
        let mut overload: Vec<&str> = Vec::new();
        let mut arguments = Vec::new();
        for (k, operand) in op.operands.iter().enumerate() {
            let number = slot.numbers >> k & 1 == 1;
            if number {
                overload.push("number");
                overload.push(operand.name);
            }
            arguments.push(format!("{} {}", if number { "float" } else { "Tensor" }, operand.name));
        }
        for param in &op.params {
            let kind = match param.kind {
                NumberKind::Float => "float",
                NumberKind::OptionalFloat => "float?",
                NumberKind::Int => "int",
                NumberKind::Bool => "bool",
            };
            arguments.push(format!("{kind} {}", param.name));
        }
        if op.is_random() {
            arguments.push("Tensor seed".to_owned());
        }
        let results = if slot.out {
            overload.push("out");
            // No `*` before them: torch takes arguments by name slowly.
            for (k, result) in op.results.iter().enumerate() {
                let letter = (b'a' + k as u8) as char;
                arguments.push(format!("Tensor({letter}!) {}", out_name(op, result.name)));
            }
            "()".to_owned()
        } else {
            match op.results.len() {
                1 => "Tensor".to_owned(),
                n => format!("({})", vec!["Tensor"; n].join(", ")),
            }
        };
        let dot = if overload.is_empty() { "" } else { "." };
        format!("{}{dot}{}({}) -> {results}", op.name, overload.join("_"), arguments.join(", "))
    }
}

/// The name of the argument for a result.
fn out_name(op: &OpSpec, result: &str) -> String {
    if op.results.len() == 1 { "out".to_owned() } else { format!("out_{result}") }
}

/// Implements kernels with the numbers `which` for one dispatch key.
///
/// # Errors
/// Those of torch: an op that is not defined, one that has such a kernel already.
pub(crate) fn implement(api: &Api, namespace: &CStr, key: &CStr, which: &[(CString, usize)]) -> Result<(), String> {
    let mut library = std::ptr::null_mut();
    // SAFETY: the strings end with a null; the handle is ours. It is never dropped, as that would take the kernels away.
    let code = unsafe {
        (api.torch.library_init_impl)(namespace.as_ptr(), key.as_ptr(), c"pointwise".as_ptr(), 0, &mut library)
    };
    if code != 0 {
        return Err(format!("torch could not open the library {namespace:?} for {key:?}"));
    }
    for (name, number) in which {
        let kernel = *KERNELS.as_flattened().get(*number).ok_or_else(|| format!("there is no kernel {number}"))?;
        // SAFETY: a kernel of the ABI's type, in its version.
        if unsafe { (api.torch.library_impl)(library, name.as_ptr(), kernel, VERSION) } != 0 {
            return Err(format!("torch took no kernel for {name:?} of {namespace:?}"));
        }
    }
    Ok(())
}

/// The kernel of number `32 A + B`.
unsafe extern "C-unwind" fn kernel<const A: usize, const B: usize>(stack: *mut Word, arguments: u64, results: u64) {
    // SAFETY: torch calls a boxed kernel with its stack.
    unsafe { enter(32 * A + B, stack, arguments as usize, results as usize) }
}

macro_rules! kernels {
    ($($b:literal)*) => { kernels! { @ [$($b)*] $($b)* } };
    (@ $b:tt $($a:literal)*) => { [$(kernels! { @@ $a $b }),*] };
    (@@ $a:literal [$($b:literal)*]) => { [$(kernel::<$a, $b> as Kernel),*] };
}

static KERNELS: [[Kernel; 32]; MOST / 32] =
    kernels![0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31];

/// The outcome of a call.
enum Outcome {
    /// The results are on the stack.
    Done,
    /// torch's kernel is to run, by these dispatch keys.
    FallBack(&'static Api, &'static Override, u64),
}

/// Runs the kernel of a number; throws what goes wrong.
///
/// # Safety
/// `stack` is torch's: it has `arguments` words by the schema of the kernel with this number, and room for `results` words. It is this
/// call's alone.
unsafe fn enter(number: usize, stack: *mut Word, arguments: usize, results: usize) {
    // SAFETY: torch's stack has room for arguments and results alike.
    let words = unsafe { std::slice::from_raw_parts_mut(stack, arguments.max(results)) };
    let outcome = catch_unwind(AssertUnwindSafe(|| run(number, words, arguments)));
    let failed = |_| Err("pointwise failed in a way that it should not: please report this".to_owned());
    let message = match outcome.unwrap_or_else(failed) {
        Ok(Outcome::Done) => return,
        // SAFETY: as the caller promises. Its exceptions pass through here, where nothing is left to drop.
        Ok(Outcome::FallBack(api, over, keys)) => return unsafe { over.fall_back(api, keys, words, arguments) },
        Err(message) => CString::new(message.replace('\0', " ")).unwrap_or_default(),
    };
    if let Ok(api) = Api::get() {
        // SAFETY: torch calls kernels through `extern "C-unwind"`; nothing is left to drop here.
        unsafe { api.throw(message) }
    }
}

fn run(number: usize, words: &mut [Word], count: usize) -> Result<Outcome, String> {
    let api = Api::get()?;
    let library = LIBRARY.get().ok_or("the ops of this library were not registered")?;
    match library.roles.get(number) {
        Some(Role::Op(slot)) => run_op(api, &library.ops[slot.op], slot, words, count)?,
        Some(Role::Rope(rope)) => rope.run(api, words, count)?,
        Some(Role::Fused) => fusion::run(api, words, count)?,
        Some(Role::Override(over)) => {
            if !over.run(api, &library.ops, words, count)? {
                return Ok(Outcome::FallBack(api, over, over.keys(api, words, count)?));
            }
        }
        None => return Err(format!("there is no kernel {number}")),
    }
    Ok(Outcome::Done)
}

/// Takes the arguments off the stack, runs the op, and puts the results there.
fn run_op(api: &Api, op: &OpSpec, slot: &Slot, words: &mut [Word], count: usize) -> Result<(), String> {
    let mut stack = Arguments { api, words: words[..count].iter() };
    let is_number = |k: usize| slot.numbers >> k & 1 == 1;
    let operands: Vec<Argument> = (0..op.operands.len())
        .map(|k| {
            if is_number(k) { Argument::Number(Number::Float(stack.float())) } else { Argument::Tensor(stack.tensor()) }
        })
        .collect();
    let params: Vec<Number> = (op.params.iter())
        .map(|param| match param.kind {
            NumberKind::Float => Number::Float(stack.float()),
            NumberKind::OptionalFloat => stack.optional().map_or(Number::Default, Number::Float),
            NumberKind::Int => Number::Int(stack.next() as i64),
            NumberKind::Bool => Number::Bool(stack.next() as u8 != 0),
        })
        .collect();
    let seed = op.is_random().then(|| stack.tensor());
    let outs: Vec<Tensor> = if slot.out { op.results.iter().map(|_| stack.tensor()).collect() } else { Vec::new() };
    let rng = match &seed {
        // SAFETY: the tensor is held until the launch; torch keeps its memory in the order of the stream.
        Some(seed) => unsafe { call::draws(api, seed) }?,
        None => Rng::default(),
    };
    let results = call::run(api, op, &operands, &params, rng, outs)?;
    if !slot.out {
        for (word, result) in words.iter_mut().zip(results) {
            *word = result.into_handle() as Word;
        }
    }
    Ok(())
}
