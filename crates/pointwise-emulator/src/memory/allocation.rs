//! One allocation: its bytes, and who has written and read them.
//!
//! Bytes are kept as atomic words, read and written in relaxed order. So a kernel whose threads race causes no
//! undefined behaviour in the emulator. A part of a word is changed by exchanging the word.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
};

use super::bits::Bits;

/// Memory between two addresses.
#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) start: u64,
    pub(crate) bytes: usize,
    pub(crate) words: Box<[AtomicU32]>,
    /// The bytes that have been written.
    written: Bits,
    /// True if all bytes have been written: then nobody looks at the bits.
    all_written: AtomicBool,
    /// The bytes that a launch has written since the host did.
    launched: OnceLock<Bits>,
    /// True if a launch has read a byte since the host wrote.
    pub(crate) read_by_launch: AtomicBool,
}

impl Allocation {
    pub(crate) fn new(start: u64, bytes: usize) -> Allocation {
        Allocation {
            start,
            bytes,
            words: bytemuck::zeroed_slice_box(bytes.div_ceil(4)),
            written: Bits::new(bytes),
            all_written: AtomicBool::new(false),
            launched: OnceLock::new(),
            read_by_launch: AtomicBool::new(false),
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.start + self.bytes as u64
    }

    /// Changes the bits of `mask` in a word.
    #[inline(always)]
    pub(crate) fn merge(&self, word: usize, mask: u32, value: u32) {
        if mask == u32::MAX {
            self.words[word].store(value, Relaxed);
            return;
        }
        let mut now = self.words[word].load(Relaxed);
        while let Err(other) =
            self.words[word].compare_exchange_weak(now, (now & !mask) | (value & mask), Relaxed, Relaxed)
        {
            now = other;
        }
    }

    /// True if all bytes of a range have been written.
    #[inline(always)]
    pub(crate) fn is_written(&self, from: usize, to: usize) -> bool {
        self.all_written.load(Relaxed) || self.written.all(from, to)
    }

    #[inline(always)]
    pub(crate) fn mark_written(&self, from: usize, to: usize) {
        if !self.all_written.load(Relaxed) {
            self.written.set(from, to);
        }
    }

    /// True if an earlier launch wrote a byte of a range.
    pub(crate) fn is_launched(&self, from: usize, to: usize) -> bool {
        self.launched.get().is_some_and(|bits| bits.any(from, to))
    }

    /// Notes that a launch may have written a range.
    pub(crate) fn mark_launched(&self, from: usize, to: usize) {
        self.launched.get_or_init(|| Bits::new(self.bytes)).set(from, to);
    }

    /// Notes that the host has written a range.
    fn mark_host(&self, from: usize, to: usize) {
        if let Some(bits) = self.launched.get() {
            bits.clear(from, to);
        }
        self.read_by_launch.store(false, Relaxed);
    }

    /// Returns the words of a range of bytes: index, mask of the bytes in the range, and distance from `from` to the
    /// word's first byte.
    fn parts(from: usize, to: usize) -> impl Iterator<Item = (usize, u32, isize)> {
        (from / 4..to.div_ceil(4)).map(move |word| {
            let first = word * 4;
            let low = if first < from { u32::MAX << (8 * (from - first)) } else { u32::MAX };
            let high = if first + 4 > to { u32::MAX >> (8 * (first + 4 - to)) } else { u32::MAX };
            (word, low & high, first.cast_signed() - from.cast_signed())
        })
    }

    pub(crate) fn read(&self, from: usize, bytes: &mut [u8]) {
        for (word, mask, place) in Allocation::parts(from, from + bytes.len()) {
            let value = self.words[word].load(Relaxed).to_le_bytes();
            if mask == u32::MAX {
                let place = place.cast_unsigned();
                bytes[place..place + 4].copy_from_slice(&value);
                continue;
            }
            for (at, byte) in (place..).zip(value) {
                if let Some(to) = usize::try_from(at).ok().and_then(|at| bytes.get_mut(at)) {
                    *to = byte;
                }
            }
        }
    }

    fn put(&self, from: usize, length: usize, byte: impl Fn(usize) -> u8) {
        for (word, mask, place) in Allocation::parts(from, from + length) {
            if mask == u32::MAX {
                let place = place.cast_unsigned();
                let value = [byte(place), byte(place + 1), byte(place + 2), byte(place + 3)];
                self.words[word].store(u32::from_le_bytes(value), Relaxed);
                continue;
            }
            let mut value = [0; 4];
            for (at, to) in (place..).zip(&mut value) {
                if let Some(at) = usize::try_from(at).ok().filter(|&at| at < length) {
                    *to = byte(at);
                }
            }
            self.merge(word, mask, u32::from_le_bytes(value));
        }
    }

    pub(crate) fn write(&self, from: usize, bytes: &[u8]) {
        self.put(from, bytes.len(), |at| bytes[at]);
        self.host_wrote(from, from + bytes.len());
    }

    pub(crate) fn fill(&self, from: usize, length: usize, value: u8) {
        self.put(from, length, |_| value);
        self.host_wrote(from, from + length);
    }

    fn host_wrote(&self, from: usize, to: usize) {
        self.mark_written(from, to);
        if from == 0 && to == self.bytes {
            self.all_written.store(true, Relaxed);
        }
        self.mark_host(from, to);
    }

    /// Copies from this or another allocation. A byte that is unwritten there becomes unwritten here.
    pub(crate) fn copy(&self, to: usize, source: &Allocation, from: usize, length: usize) {
        let mut bytes = vec![0; length];
        source.read(from, &mut bytes);
        self.put(to, length, |at| bytes[at]);
        if source.is_written(from, from + length) {
            self.host_wrote(to, to + length);
            return;
        }
        if self.all_written.swap(false, Relaxed) {
            self.written.set(0, self.bytes);
        }
        self.written.copy(to, &source.written, from, length);
        self.mark_host(to, to + length);
    }

    /// Returns the state of a range. [`Allocation::restore`] undoes a launch with it.
    pub(crate) fn save(&self, from: usize, to: usize) -> (Vec<u8>, Vec<u64>) {
        let mut bytes = vec![0; to - from];
        self.read(from, &mut bytes);
        (bytes, self.written.save(from, to))
    }

    pub(crate) fn restore(&self, from: usize, (bytes, written): &(Vec<u8>, Vec<u64>)) {
        self.put(from, bytes.len(), |at| bytes[at]);
        self.written.restore(from, from + bytes.len(), written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_words() {
        let memory = Allocation::new(256, 11);
        memory.write(3, &[1, 2, 3, 4, 5, 6]);
        let mut bytes = [9; 8];
        memory.read(2, &mut bytes);
        assert_eq!(bytes, [0, 1, 2, 3, 4, 5, 6, 0]);
        assert!(memory.is_written(3, 9) && !memory.is_written(2, 9) && !memory.is_written(3, 10));
        memory.fill(0, 11, 7);
        assert!(memory.is_written(0, 11));
        let other = Allocation::new(512, 16);
        other.fill(4, 2, 8);
        memory.copy(5, &other, 3, 4);
        let mut bytes = [0; 11];
        memory.read(0, &mut bytes);
        assert_eq!(bytes, [7, 7, 7, 7, 7, 0, 8, 8, 0, 7, 7]);
        assert!(
            memory.is_written(0, 5) && !memory.is_written(5, 6) && memory.is_written(6, 8) && !memory.is_written(8, 9)
        );
        assert!(memory.is_written(9, 11));
    }

    #[test]
    fn launches_and_the_host() {
        let memory = Allocation::new(256, 100);
        assert!(!memory.is_launched(0, 100));
        memory.mark_launched(10, 20);
        assert!(memory.is_launched(0, 100) && !memory.is_launched(20, 100));
        memory.write(10, &[0; 10]);
        assert!(!memory.is_launched(0, 100));
    }
}
