//! The arguments of a boxed kernel, as they lie on torch's stack.

use crate::abi::{Api, Handle, Word};
use crate::tensor::Tensor;

/// The arguments of a boxed kernel, one after another. A kernel takes all of them: tensors are its own.
pub(crate) struct Arguments<'a> {
    /// torch.
    pub(crate) api: &'a Api,
    /// The words that are left.
    pub(crate) words: std::slice::Iter<'a, Word>,
}

impl Arguments<'_> {
    /// The next word; 0 behind the last, which no schema leads to.
    pub(crate) fn next(&mut self) -> Word {
        self.words.next().copied().unwrap_or(0)
    }

    /// A `Tensor`.
    pub(crate) fn tensor(&mut self) -> Tensor {
        // SAFETY: the schema has a tensor here, whose handle is the kernel's.
        unsafe { Tensor::from_handle(self.next() as Handle) }
    }

    /// A `float`.
    pub(crate) fn float(&mut self) -> f64 {
        f64::from_bits(self.next())
    }

    /// An optional: a word of its own, made with `new`, or null.
    pub(crate) fn optional_word(&mut self) -> Option<Word> {
        let pointer = self.next() as *mut Word;
        if pointer.is_null() {
            return None;
        }
        // SAFETY: the schema has an optional here, whose word is the kernel's.
        unsafe {
            let word = *pointer;
            (self.api.cxx.delete)(pointer.cast());
            Some(word)
        }
    }

    /// A `float?`.
    pub(crate) fn optional(&mut self) -> Option<f64> {
        self.optional_word().map(f64::from_bits)
    }

    /// A `Tensor?`.
    pub(crate) fn optional_tensor(&mut self) -> Option<Tensor> {
        // SAFETY: the schema has an optional tensor here, whose handle is the kernel's.
        self.optional_word().map(|word| unsafe { Tensor::from_handle(word as Handle) })
    }

    /// A `str`.
    pub(crate) fn string(&mut self) -> String {
        let handle = self.next() as Handle;
        let text = self.api.text(handle).to_owned();
        self.api.drop_text(handle);
        text
    }
}
