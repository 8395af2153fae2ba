//! Kernels under torch's own ops: `aten::silu` and others run pointwise's, with no change in a model.
//!
//! They are registered for the dispatch key BackendSelect, which a call passes last before the kernels of its device. So
//! autograd, autocast, vmap, subclasses and functionalisation stay torch's. A call that pointwise does not serve (float64,
//! complex, meta tensors, operands of several types) goes on to torch's kernel, by the C++ function of the op that takes the
//! keys to go on with, `at::_ops::NAME::redispatch`. torch's errors pass through as its own.

use std::mem::ManuallyDrop;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pointwise::{DType, Number};

use crate::abi::{Api, Element, Handle, Word};
use crate::call;
use crate::layout;
use crate::operand::{Known, scalar};
use crate::registry::{OpSpec, OperandSpec};
use crate::tensor::{Place, Raw, Tensor, shares};

/// The place of an op's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    New,
    Out,
    InPlace,
}

/// A kernel under an op of aten.
#[derive(Debug)]
pub(crate) struct Override {
    /// aten's name of the op, with its overload.
    pub(crate) aten: String,
    /// Ours, by the value of `approximate` if it has that.
    ops: Vec<(&'static str, usize)>,
    tensors: usize,
    has_text: bool,
    target: Target,
    /// `at::_ops::NAME::redispatch`; 0 until it is found.
    next: AtomicUsize,
    /// True if calls run pointwise's kernels.
    is_chosen: AtomicBool,
}

/// The number of calls that ran pointwise's kernels.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Returns the number of calls that have run pointwise's kernels.
pub(crate) fn calls() -> usize {
    CALLS.load(Ordering::Relaxed)
}
/// torch's dispatch keys of tensors.
static KEYS: OnceLock<Keys> = OnceLock::new();

/// The bits of a `DispatchKeySet` that choose a kernel below BackendSelect.
pub(crate) struct Keys {
    /// The keys of a dense tensor on the CPU.
    pub(crate) cpu: u64,
    /// The keys of a dense tensor on CUDA.
    pub(crate) cuda: u64,
    /// Asks torch for the keys of any tensor: sparse, quantised, nested, complex, or on another device.
    pub(crate) ask: Box<dyn Fn(Tensor) -> Result<u64, String> + Send + Sync>,
}

impl Keys {
    /// Returns the keys of a tensor.
    ///
    /// # Errors
    /// Errors of torch.
    fn of(&self, api: &Api, tensor: &Tensor) -> Result<u64, String> {
        match served(api, tensor).map(|raw| raw.place) {
            Some(Place::Cpu) => Ok(self.cpu),
            Some(Place::Cuda(_)) => Ok(self.cuda),
            None => (self.ask)(tensor.again(api)?),
        }
    }
}

/// Ops of one tensor with the same name here and there, and forms `NAME`, `NAME_`, `NAME.out`.
const ONE: &[&str] = &[
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "abs",
    "neg",
    "reciprocal",
    "sign",
    "sin",
    "cos",
    "floor",
    "ceil",
    "round",
    "trunc",
    "erf",
    "log1p",
    "expm1",
    "relu",
    "silu",
    "sigmoid",
    "tanh",
    "hardswish",
    "hardsigmoid",
    "mish",
    "logical_not",
    "bitwise_not",
    "isnan",
];
/// Ops of two tensors: the overload of the form that makes its result and of `out`.
const TWO: &[(&str, &str, &str)] = &[
    ("mul", "Tensor", "out"),
    ("div", "Tensor", "out"),
    ("remainder", "Tensor", "Tensor_out"),
    ("pow", "Tensor_Tensor", "Tensor_Tensor_out"),
    ("maximum", "", "out"),
    ("minimum", "", "out"),
    ("eq", "Tensor", "Tensor_out"),
    ("ne", "Tensor", "Tensor_out"),
    ("gt", "Tensor", "Tensor_out"),
    ("lt", "Tensor", "Tensor_out"),
    ("ge", "Tensor", "Tensor_out"),
    ("le", "Tensor", "Tensor_out"),
    ("logical_and", "", "out"),
    ("logical_or", "", "out"),
    ("bitwise_and", "Tensor", "Tensor_out"),
    ("bitwise_or", "Tensor", "Tensor_out"),
    ("bitwise_xor", "Tensor", "Tensor_out"),
    ("silu_backward", "", "grad_input"),
    ("hardswish_backward", "", "out"),
    ("hardsigmoid_backward", "", "grad_input"),
    ("mish_backward", "", "out"),
];
/// Ops of three tensors.
const THREE: &[(&str, &str, &str)] = &[("where", "self", "self_out"), ("lerp", "Tensor", "Tensor_out")];

impl Override {
    /// Returns all overrides for the ops of a list.
    pub(crate) fn all(ops: &[OpSpec]) -> Vec<Override> {
        let mut all = Vec::new();
        let find = |name: &str| ops.iter().position(|op| op.name == name);
        let mut add = |name: &str, plain: &str, out: &str, tensors: usize, ours: &[(&'static str, &str)]| {
            let found: Vec<(&'static str, usize)> =
                ours.iter().filter_map(|(text, ours)| Some((*text, find(ours)?))).collect();
            if found.len() != ours.len() {
                return;
            }
            let has_text = !ours[0].0.is_empty();
            for (target, suffix, overload) in
                [(Target::New, "", plain), (Target::InPlace, "_", plain), (Target::Out, "", out)]
            {
                let dot = if overload.is_empty() { "" } else { "." };
                let aten = format!("{name}{suffix}{dot}{overload}");
                let next = AtomicUsize::new(0);
                let is_chosen = AtomicBool::new(false);
                all.push(Override { aten, ops: found.clone(), tensors, has_text, target, next, is_chosen });
            }
        };
        for name in ONE {
            add(name, "", "out", 1, &[("", *name)]);
        }
        for (name, plain, out) in TWO {
            add(name, plain, out, 2, &[("", *name)]);
        }
        for (name, plain, out) in THREE {
            add(name, plain, out, 3, &[("", *name)]);
        }
        add("gelu", "", "out", 1, &[("none", "gelu"), ("tanh", "gelu_tanh")]);
        let backwards = [("none", "gelu_backward"), ("tanh", "gelu_tanh_backward")];
        add("gelu_backward", "", "grad_input", 2, &backwards);
        all
    }

    /// The symbol of the C++ function.
    fn symbol(&self) -> String {
        let class = self.aten.replace('.', "_");
        let text = if self.has_text { "St17basic_string_viewIcSt11char_traitsIcEE" } else { "" };
        let mut arguments = match self.target {
            Target::InPlace => "RNS_6TensorE".to_owned(),
            _ => "RKNS_6TensorE".to_owned(),
        };
        for k in 1..self.tensors {
            // The mangling's names of what stood before: a `Tensor`, and a reference to a constant one.
            arguments += match (self.target, k) {
                (Target::InPlace, 1) => "RKS4_",
                (Target::InPlace, _) => "S7_",
                _ => "S6_",
            };
        }
        arguments += text;
        if self.target == Target::Out {
            arguments += "RS4_";
        }
        format!("_ZN2at4_ops{}{class}10redispatchEN3c1014DispatchKeySetE{arguments}", class.len())
    }

    /// Finds the C++ function. Says whether it is there.
    pub(crate) fn find(&self, api: &Api) -> bool {
        let address = api.address(&self.symbol());
        self.next.store(address.unwrap_or(0), Ordering::Relaxed);
        address.is_some()
    }

    /// Runs pointwise's kernel, if it serves the call: the arguments are then taken and the result is in their place.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub(crate) fn run(&self, api: &Api, ops: &[OpSpec], words: &mut [Word], count: usize) -> Result<bool, String> {
        if !self.is_chosen.load(Ordering::Relaxed) {
            return Ok(false);
        }
        // Nothing is taken before it is known that the call is served.
        let borrowed = |word: Word| {
            // SAFETY: the schema has a tensor here; the handle is given back, as it is not dropped.
            ManuallyDrop::new(unsafe { Tensor::from_handle(word as Handle) })
        };
        // No list on the heap: an op has three tensors at most.
        let handles: [Option<ManuallyDrop<Tensor>>; 3] =
            std::array::from_fn(|k| (k < self.tensors).then(|| borrowed(words[k])));
        let found = if self.has_text {
            let text = api.text(words[self.tensors] as Handle);
            self.ops.iter().find(|(known, _)| *known == text)
        } else {
            // Comparing texts of no length takes 50 ns.
            self.ops.first()
        };
        let Some((_, op)) = found else { return Ok(false) };
        let op = &ops[*op];
        let mut raws = Vec::with_capacity(self.tensors);
        for handle in handles.iter().flatten() {
            let Some(raw) = served(api, handle) else { return Ok(false) };
            raws.push(raw);
        }
        let Some((element, place)) = common(op, &raws) else { return Ok(false) };
        let mut known = Vec::with_capacity(self.tensors);
        for (raw, operand) in raws.iter().zip(&op.operands) {
            known.push(if is_tensor(raw, operand, element, place) {
                Known::Tensor(*raw)
            } else {
                let number = scalar(raw);
                if !is_exact(number, element) {
                    return Ok(false);
                }
                Known::Number(number)
            });
        }
        // For a zero among integer divisors torch raises an error, and pointwise gives 0.
        if place == Place::Cpu && category(element) == 1 && op.name == "remainder" {
            return Ok(false);
        }
        let target = match self.target {
            Target::New => None,
            Target::InPlace => Some(0),
            Target::Out => Some(count - 1),
        };
        if let Some(at) = target {
            let handle = borrowed(words[at]);
            let Some(out) = served(api, &handle) else { return Ok(false) };
            let made = op.results[0].element(element);
            let sizes = layout::broadcast(raws.iter().map(|raw| raw.sizes));
            if out.element != made || out.place != place || sizes.as_deref() != Ok(out.sizes) || shares(&out, &raws) {
                return Ok(false);
            }
        }
        // It is served: from here on the arguments are the kernel's, and dropped with it.
        CALLS.fetch_add(1, Ordering::Relaxed);
        if self.has_text {
            api.drop_text(words[self.tensors] as Handle);
        }
        // SAFETY: the schema has a tensor here; each handle is taken once.
        let own = |word: Word| unsafe { Tensor::from_handle(word as Handle) };
        let _taken: [Option<Tensor>; 3] = std::array::from_fn(|k| (k < self.tensors).then(|| own(words[k])));
        let mut outs = Vec::new();
        match self.target {
            Target::New => {}
            Target::InPlace => outs.push(borrowed(words[0]).again(api)?),
            Target::Out => outs.push(own(words[count - 1])),
        }
        let mut results = call::run_known(api, op, known, (element, place), &op.defaults(), Default::default(), outs)?;
        if let (Some(result), Some(word)) = (results.pop(), words.first_mut()) {
            *word = result.into_handle() as Word;
        }
        Ok(true)
    }

    /// Drops the arguments.
    ///
    /// # Safety
    /// They are on the stack, and nobody's else.
    unsafe fn take(&self, api: &Api, words: &[Word], count: usize) {
        for (k, word) in words[..count].iter().enumerate() {
            if self.has_text && k == self.tensors {
                api.drop_text(*word as Handle);
            } else {
                // SAFETY: the schema has a tensor here.
                drop(unsafe { Tensor::from_handle(*word as Handle) });
            }
        }
    }

    /// The keys that torch's kernel is chosen by.
    ///
    /// # Errors
    /// A tensor that is not known.
    pub(crate) fn keys(&self, api: &Api, words: &[Word], count: usize) -> Result<u64, String> {
        let keys = KEYS.get().ok_or("override() was not called")?;
        let mut all = 0;
        for (k, word) in words[..count].iter().enumerate() {
            if !self.has_text || k != self.tensors {
                // SAFETY: the schema has a tensor here; the handle is given back, as it is not dropped.
                all |= keys.of(api, &ManuallyDrop::new(unsafe { Tensor::from_handle(*word as Handle) }))?;
            }
        }
        Ok(all)
    }

    /// Runs torch's kernel. C++ exceptions pass through.
    ///
    /// # Safety
    /// The arguments are on the stack as torch gives them to a boxed kernel, and `keys` are their dispatch keys.
    pub(crate) unsafe fn fall_back(&self, api: &'static Api, keys: u64, words: &mut [Word], count: usize) {
        let next = self.next.load(Ordering::Relaxed);
        let held = Held { over: self, api, words: words[..count].to_vec() };
        let (tensor, text) = (|k: usize| held.words[k] as Handle, held.text());
        // SAFETY: `next` is the C++ function of this op, found by its mangled name, which says the types. A reference to
        // a tensor is a pointer to one, which a handle is; a set of keys is one word. A new tensor is constructed where
        // the first argument points.
        let result = unsafe {
            if self.target == Target::New {
                let slot = Slot::new(api);
                let to = slot.0;
                match (self.tensors, self.has_text) {
                    (1, false) => function::<New1>(next)(to, keys, tensor(0)),
                    (2, false) => function::<New2>(next)(to, keys, tensor(0), tensor(1)),
                    (1, true) => function::<New1Text>(next)(to, keys, tensor(0), text),
                    (2, true) => function::<New2Text>(next)(to, keys, tensor(0), tensor(1), text),
                    _ => function::<New3>(next)(to, keys, tensor(0), tensor(1), tensor(2)),
                };
                slot.full()
            } else {
                let tensors = count - usize::from(self.has_text);
                let last = tensor(count - 1);
                let given = match (tensors, self.has_text) {
                    (1, false) => function::<Given1>(next)(keys, tensor(0)),
                    (2, false) => function::<Given2>(next)(keys, tensor(0), tensor(1)),
                    (3, false) => function::<Given3>(next)(keys, tensor(0), tensor(1), tensor(2)),
                    (1, true) => function::<Given1Text>(next)(keys, tensor(0), text),
                    (2, true) => function::<Given2Text>(next)(keys, tensor(0), text, last),
                    (3, true) => function::<Given3Text>(next)(keys, tensor(0), tensor(1), text, last),
                    _ => function::<Given4>(next)(keys, tensor(0), tensor(1), tensor(2), last),
                };
                // A reference to the first argument or the last.
                let given = ManuallyDrop::new(Tensor::from_handle(given));
                given.again(api).map_or(std::ptr::null_mut(), Tensor::into_handle)
            }
        };
        if let Some(word) = words.first_mut() {
            *word = result as Word;
        }
    }
}

/// `std::string_view` of libstdc++.
#[derive(Clone, Copy)]
#[repr(C)]
struct Text {
    length: usize,
    chars: *const u8,
}

type New1 = unsafe extern "C-unwind" fn(Handle, u64, Handle) -> Handle;
type New1Text = unsafe extern "C-unwind" fn(Handle, u64, Handle, Text) -> Handle;
type New2 = unsafe extern "C-unwind" fn(Handle, u64, Handle, Handle) -> Handle;
type New2Text = unsafe extern "C-unwind" fn(Handle, u64, Handle, Handle, Text) -> Handle;
type New3 = unsafe extern "C-unwind" fn(Handle, u64, Handle, Handle, Handle) -> Handle;
type Given1 = unsafe extern "C-unwind" fn(u64, Handle) -> Handle;
type Given1Text = unsafe extern "C-unwind" fn(u64, Handle, Text) -> Handle;
type Given2 = unsafe extern "C-unwind" fn(u64, Handle, Handle) -> Handle;
type Given2Text = unsafe extern "C-unwind" fn(u64, Handle, Text, Handle) -> Handle;
type Given3 = unsafe extern "C-unwind" fn(u64, Handle, Handle, Handle) -> Handle;
type Given3Text = unsafe extern "C-unwind" fn(u64, Handle, Handle, Text, Handle) -> Handle;
type Given4 = unsafe extern "C-unwind" fn(u64, Handle, Handle, Handle, Handle) -> Handle;

/// A function at an address.
///
/// # Safety
/// It is one of type `F`.
unsafe fn function<F: Copy>(address: usize) -> F {
    debug_assert_eq!(size_of::<F>(), size_of::<usize>());
    // SAFETY: the caller's promise; a function pointer is an address.
    unsafe { std::mem::transmute_copy(&address) }
}

/// The arguments of a call, dropped when it ends, by an exception too.
struct Held<'a> {
    over: &'a Override,
    api: &'a Api,
    words: Vec<Word>,
}

impl Held<'_> {
    fn text(&self) -> Text {
        let text = if self.over.has_text { self.api.text(self.words[self.over.tensors] as Handle) } else { "" };
        Text { length: text.len(), chars: text.as_ptr() }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SAFETY: the arguments are the kernel's, and dropped here alone.
        unsafe { self.over.take(self.api, &self.words, self.words.len()) };
    }
}

/// Room for a tensor, as `new` makes it: freed if none is put there.
struct Slot(Handle, &'static Api);

impl Slot {
    fn new(api: &'static Api) -> Slot {
        // SAFETY: a tensor of C++ is one pointer.
        Slot(unsafe { (api.cxx.new)(size_of::<usize>()) }, api)
    }

    /// The handle of the tensor that is there now.
    fn full(self) -> Handle {
        ManuallyDrop::new(self).0
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and no tensor is there.
        unsafe { (self.1.cxx.delete)(self.0) };
    }
}

/// The memory of a tensor of a type and a device that pointwise has.
fn served<'a>(api: &Api, tensor: &'a Tensor) -> Option<Raw<'a>> {
    // Sizes of a meta tensor may be symbolic: they are not asked for.
    let kind = tensor.device_type(api);
    if kind != api.cpu && kind != api.cuda_type {
        return None;
    }
    let codes = tensor.codes(api);
    if api.element(codes.0).is_some() && codes.1 == api.strided { tensor.raw_of(api, kind, codes).ok() } else { None }
}

/// bool, integers, floats: what promotion goes by first.
fn category(element: Element) -> u8 {
    match element {
        Element::Of(DType::Bool) => 0,
        Element::Of(dtype) if !dtype.is_float() => 1,
        _ => 2,
    }
}

/// True if an operand is a tensor of the call's type, and no number.
fn is_tensor(raw: &Raw<'_>, operand: &OperandSpec, element: Element, place: Place) -> bool {
    raw.element == operand.element(element) && raw.place == place
}

/// True if a type has exactly this whole number. torch wraps a number beyond an integer type, and rounds in its own way.
fn is_exact(number: Number, element: Element) -> bool {
    let Number::Int(value) = number else { return true };
    match element {
        Element::Of(DType::I8) => i8::try_from(value).is_ok(),
        Element::Of(DType::I16) => i16::try_from(value).is_ok(),
        Element::Of(DType::I32) => i32::try_from(value).is_ok(),
        Element::Of(DType::U8) => u8::try_from(value).is_ok(),
        Element::Of(dtype) if dtype.is_float() => value as f32 as i128 == i128::from(value),
        _ => true,
    }
}

/// Element type and device of a call, if its result is of the type of all its tensors with dimensions.
fn common(op: &OpSpec, raws: &[Raw<'_>]) -> Option<(Element, Place)> {
    let values = || raws.iter().zip(&op.operands).filter(|(_, operand)| operand.dtype.is_none()).map(|(raw, _)| raw);
    let first = values().find(|raw| !raw.sizes.is_empty()).or_else(|| values().next())?;
    let (element, place) = (first.element, first.place);
    let Element::Of(dtype) = element else { return None };
    if !op.dtypes.contains(&dtype) {
        return None;
    }
    for (raw, operand) in raws.iter().zip(&op.operands) {
        if is_tensor(raw, operand, element, place) {
            continue;
        }
        // A number of torch's is a tensor of the CPU without dimensions.
        let is_number = raw.sizes.is_empty() && raw.place == Place::Cpu && !first.sizes.is_empty();
        if !is_number || !operand.takes_number || category(raw.element) > category(element) {
            return None;
        }
    }
    Some((element, place))
}

/// Finds torch's functions. Returns aten's names of those that are there, with the numbers of the kernels.
///
/// # Errors
/// Another processor than x86-64, whose calling convention this file has.
pub(crate) fn find<'a>(
    api: &Api,
    keys: Keys,
    all: impl Iterator<Item = (usize, &'a Override)>,
) -> Result<Vec<(&'a str, usize)>, String> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err("override() is for x86-64: elsewhere call pointwise's functions".to_owned());
    }
    KEYS.get_or_init(|| keys);
    Ok(all.filter(|(_, over)| over.find(api)).map(|(number, over)| (over.aten.as_str(), number)).collect())
}

/// Lets calls of some ops run pointwise's kernels, and calls of all others torch's. `names` are aten's with overloads.
pub(crate) fn choose<'a>(names: &[String], all: impl Iterator<Item = (usize, &'a Override)>) {
    for (_, over) in all {
        over.is_chosen.store(names.contains(&over.aten), Ordering::Relaxed);
    }
}
