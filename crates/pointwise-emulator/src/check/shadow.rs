//! Records who wrote and who read each byte of a range of global memory, during one launch.
//!
//! Most accesses are of whole words, so stamps are kept for words. Pages where parts of words are touched have stamps
//! for bytes, too. An access puts its stamp on its own level and looks at both levels. If two accesses race on
//! different host threads, the later one finds the earlier one.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering::SeqCst},
};

use super::stamp::Stamp;
use crate::fault::Touch;

/// The bytes that one page of stamps covers.
const PAGE: usize = 4096;

/// The stamps of writers and readers.
#[derive(Debug)]
struct Level {
    writers: Box<[AtomicU64]>,
    readers: OnceLock<Box<[AtomicU64]>>,
}

impl Level {
    fn new(count: usize) -> Level {
        Level { writers: bytemuck::zeroed_slice_box(count), readers: OnceLock::new() }
    }

    fn readers(&self) -> &[AtomicU64] {
        self.readers.get_or_init(|| bytemuck::zeroed_slice_box(self.writers.len()))
    }

    /// Puts a writer's stamp, and returns an access that races with it.
    #[inline(always)]
    fn write(&self, at: usize, me: Stamp) -> Option<Other> {
        let before = Stamp(self.writers[at].swap(me.0, SeqCst));
        if me.races_with_writer(before) {
            return Some(Other { stamp: before, touch: Touch::Write });
        }
        self.look_at_readers(at, me)
    }

    #[inline(always)]
    fn look_at_readers(&self, at: usize, me: Stamp) -> Option<Other> {
        let readers = Stamp(self.readers.get()?[at].load(SeqCst));
        me.races_with_readers(readers).then_some(Other { stamp: readers, touch: Touch::Read })
    }

    fn look_at_writer(&self, at: usize, me: Stamp) -> Option<Other> {
        let writer = Stamp(self.writers[at].load(SeqCst));
        me.races_with_writer(writer).then_some(Other { stamp: writer, touch: Touch::Write })
    }

    /// Puts a reader's stamp, and returns an access that races with it.
    #[inline(always)]
    fn read(&self, at: usize, me: Stamp) -> Option<Other> {
        let readers = &self.readers()[at];
        let mut now = readers.load(SeqCst);
        loop {
            let joined = me.joins(Stamp(now)).0;
            if joined == now {
                break;
            }
            match readers.compare_exchange_weak(now, joined, SeqCst, SeqCst) {
                Ok(_) => break,
                Err(other) => now = other,
            }
        }
        self.look_at_writer(at, me)
    }
}

/// The access of another thread, which races with this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Other {
    pub(crate) stamp: Stamp,
    pub(crate) touch: Touch,
}

#[derive(Debug)]
struct Page {
    words: Level,
    bytes: OnceLock<Level>,
}

/// The stamps of a range.
#[derive(Debug)]
pub(crate) struct Shadow {
    /// The first address, a multiple of a word.
    start: u64,
    pub(crate) end: u64,
    pages: Box<[OnceLock<Box<Page>>]>,
}

impl Shadow {
    pub(crate) fn new(start: u64, end: u64) -> Shadow {
        let start = start & !3;
        let bytes = usize::try_from(end - start).unwrap_or(usize::MAX);
        Shadow { start, end, pages: (0..bytes.div_ceil(PAGE)).map(|_| OnceLock::new()).collect() }
    }

    pub(crate) fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    fn page(&self, address: u64) -> (&Page, usize) {
        let at = (address - self.start) as usize;
        let page = self.pages[at / PAGE]
            .get_or_init(|| Box::new(Page { words: Level::new(PAGE / 4), bytes: OnceLock::new() }));
        (page, at % PAGE)
    }

    /// Notes a write of a whole word.
    #[inline(always)]
    pub(crate) fn write_word(&self, address: u64, me: Stamp) -> Option<Other> {
        let (page, at) = self.page(address);
        let found = page.words.write(at / 4, me);
        if found.is_none()
            && let Some(bytes) = page.bytes.get()
        {
            return (at..at + 4).find_map(|at| bytes.look_at_writer(at, me).or_else(|| bytes.look_at_readers(at, me)));
        }
        found
    }

    /// Notes a read of a whole word.
    #[inline(always)]
    pub(crate) fn read_word(&self, address: u64, me: Stamp) -> Option<Other> {
        let (page, at) = self.page(address);
        let found = page.words.read(at / 4, me);
        if found.is_none()
            && let Some(bytes) = page.bytes.get()
        {
            return (at..at + 4).find_map(|at| bytes.look_at_writer(at, me));
        }
        found
    }

    pub(crate) fn write_byte(&self, address: u64, me: Stamp) -> Option<Other> {
        let (page, at) = self.page(address);
        let bytes = page.bytes.get_or_init(|| Level::new(PAGE));
        let words = &page.words;
        bytes.write(at, me).or_else(|| words.look_at_writer(at / 4, me)).or_else(|| words.look_at_readers(at / 4, me))
    }

    pub(crate) fn read_byte(&self, address: u64, me: Stamp) -> Option<Other> {
        let (page, at) = self.page(address);
        let bytes = page.bytes.get_or_init(|| Level::new(PAGE));
        bytes.read(at, me).or_else(|| page.words.look_at_writer(at / 4, me))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_bytes_see_each_other() {
        let (a, b) = (Stamp::new(0, 0, 0, 0), Stamp::new(0, 0, 0, 1));
        let fresh = || Shadow::new(4099, 20_000);
        let wrote = |stamp| Some(Other { stamp, touch: Touch::Write });
        let read = |stamp| Some(Other { stamp, touch: Touch::Read });
        let shadow = fresh();
        assert_eq!([shadow.write_word(4096, a), shadow.write_word(4100, b), shadow.read_word(4096, a)], [None; 3]);
        assert_eq!(shadow.write_byte(4099, b), wrote(a));
        let shadow = fresh();
        assert_eq!([shadow.write_byte(9001, a), shadow.write_byte(9000, b), shadow.write_byte(9001, a)], [None; 3]);
        assert_eq!(shadow.write_word(9000, a), wrote(b));
        let shadow = fresh();
        assert_eq!([shadow.read_byte(9001, a), shadow.read_byte(9001, b)], [None; 2]);
        assert!(shadow.write_word(9000, a).is_some_and(|other| other.touch == Touch::Read));
        let shadow = fresh();
        assert_eq!(shadow.read_word(19_996, a), None);
        assert_eq!(shadow.write_word(19_996, a), None);
        assert_eq!(shadow.read_word(19_996, b), wrote(a));
        let shadow = fresh();
        assert_eq!(shadow.read_word(8192, a), None);
        assert_eq!(shadow.write_byte(8193, b), read(a));
        assert!(shadow.contains(4099) && !shadow.contains(20_000));
    }
}
