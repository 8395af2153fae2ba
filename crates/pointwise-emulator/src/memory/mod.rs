//! The memory of one device: allocations at addresses that are never used again.

pub(crate) mod allocation;
mod bits;
pub(crate) mod view;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use allocation::Allocation;

use crate::settings::Settings;

/// Every allocation begins at a multiple of this.
const ALIGNMENT: u64 = 256;

/// Addresses between allocations that belong to none.
const GAP: u64 = 4096;

/// The first address. It does not fit into 32 bits.
const FIRST: u64 = 0x7_0000_0000;

/// The number of freed allocations that are remembered.
const REMEMBERED: usize = 4096;

/// The reason why the host cannot allocate, free, read or write memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The device does not have so much memory left.
    #[error("{asked} bytes were asked for, {used} of the device's {total} are in use")]
    OutOfMemory {
        /// Bytes asked for.
        asked: usize,
        /// Bytes in use.
        used: usize,
        /// Bytes of the device.
        total: usize,
    },
    /// The address to free is not the start of an allocation.
    #[error("no allocation begins at {address:#x}: it is {place}")]
    NoAllocation {
        /// The address to free.
        address: u64,
        /// The memory there, in words.
        place: String,
    },
    /// The address is in no allocation, or the bytes go beyond its end.
    #[error("{bytes} bytes at {address:#x} are not in one allocation; the first is {place}")]
    Outside {
        /// The address.
        address: u64,
        /// The number of bytes.
        bytes: usize,
        /// The memory there, in words.
        place: String,
    },
}

#[derive(Debug)]
struct State {
    live: BTreeMap<u64, Arc<Allocation>>,
    /// Start and size of allocations that were freed, oldest first.
    freed: VecDeque<(u64, usize)>,
    next: u64,
    used: usize,
}

/// One device: its memory and its settings.
#[derive(Debug)]
pub struct Gpu {
    settings: Settings,
    state: RwLock<State>,
}

impl Gpu {
    /// Returns a device with nothing in its memory.
    #[must_use]
    pub fn new(settings: Settings) -> Gpu {
        let state = State { live: BTreeMap::new(), freed: VecDeque::new(), next: FIRST, used: 0 };
        Gpu { settings, state: RwLock::new(state) }
    }

    /// Returns its settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates memory that nobody has written, and returns its address: a multiple of 256, never 0, and never one
    /// that was used before.
    ///
    /// # Errors
    /// Fails if the device does not have so much memory left.
    pub fn allocate(&self, bytes: usize) -> Result<u64, MemoryError> {
        let mut state = self.state_mut();
        let total = self.settings.memory_bytes;
        let out = MemoryError::OutOfMemory { asked: bytes, used: state.used, total };
        let used = state.used.checked_add(bytes).filter(|&used| used <= total).ok_or_else(|| out.clone())?;
        let start = state.next;
        let next = start.checked_add(bytes as u64 + GAP).map(|end| end.next_multiple_of(ALIGNMENT)).ok_or(out)?;
        state.live.insert(start, Arc::new(Allocation::new(start, bytes)));
        state.next = next;
        state.used = used;
        Ok(start)
    }

    /// Frees an allocation. A launch that touches it later gets a fault that says so.
    ///
    /// # Errors
    /// Fails if no allocation begins there.
    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        let mut state = self.state_mut();
        let Some(allocation) = state.live.remove(&address) else {
            let place = state.place(address);
            return Err(MemoryError::NoAllocation { address, place });
        };
        state.used -= allocation.bytes;
        if state.freed.len() == REMEMBERED {
            state.freed.pop_front();
        }
        state.freed.push_back((address, allocation.bytes));
        Ok(())
    }

    /// Returns the number of allocated bytes.
    #[must_use]
    pub fn used(&self) -> usize {
        self.state().used
    }

    /// Returns the allocation that holds some bytes, and the offset of the first one.
    fn find(&self, address: u64, bytes: usize) -> Result<(Arc<Allocation>, usize), MemoryError> {
        let state = self.state();
        let found = state.live.range(..=address).next_back().and_then(|(start, allocation)| {
            let from = usize::try_from(address - start).ok()?;
            let inside = from.checked_add(bytes).is_some_and(|to| to <= allocation.bytes);
            inside.then(|| (allocation.clone(), from))
        });
        found.ok_or_else(|| MemoryError::Outside { address, bytes, place: state.place(address) })
    }

    /// Writes from the host.
    ///
    /// # Errors
    /// Fails if the bytes are not all in one allocation.
    pub fn write(&self, to: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        let (allocation, from) = self.find(to, bytes.len())?;
        allocation.write(from, bytes);
        Ok(())
    }

    /// Reads to the host. Bytes that nobody wrote are read as they are.
    ///
    /// # Errors
    /// Fails if the bytes are not all in one allocation.
    pub fn read(&self, from: u64, bytes: &mut [u8]) -> Result<(), MemoryError> {
        let (allocation, from) = self.find(from, bytes.len())?;
        allocation.read(from, bytes);
        Ok(())
    }

    /// Copies. Bytes that nobody wrote are unwritten in the copy, too.
    ///
    /// # Errors
    /// Fails if the bytes are not all in one allocation on either side.
    pub fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), MemoryError> {
        let (source, from) = self.find(from, bytes)?;
        let (allocation, to) = self.find(to, bytes)?;
        allocation.copy(to, &source, from, bytes);
        Ok(())
    }

    /// Fills memory with a byte.
    ///
    /// # Errors
    /// Fails if the bytes are not all in one allocation.
    pub fn fill(&self, to: u64, value: u8, bytes: usize) -> Result<(), MemoryError> {
        let (allocation, from) = self.find(to, bytes)?;
        allocation.fill(from, bytes, value);
        Ok(())
    }

    /// Returns all allocations, by address.
    pub(crate) fn live(&self) -> Vec<Arc<Allocation>> {
        self.state().live.values().cloned().collect()
    }

    /// Describes the memory at an address.
    pub(crate) fn place(&self, address: u64) -> String {
        self.state().place(address)
    }
}

impl State {
    fn place(&self, address: u64) -> String {
        if address < FIRST - GAP {
            return "no address of this device's memory".to_owned();
        }
        if let Some((start, bytes)) =
            self.freed.iter().find(|(start, bytes)| (*start..*start + *bytes as u64).contains(&address))
        {
            return format!(
                "{} in an allocation of {bytes} bytes at {start:#x} that was freed",
                offset(address - start)
            );
        }
        let below = self.live.range(..=address).next_back().map(|(_, allocation)| allocation);
        let above = self.live.range(address..).next().map(|(_, allocation)| allocation);
        if let Some(allocation) = below.filter(|allocation| address < allocation.end()) {
            let (bytes, start) = (allocation.bytes, allocation.start);
            return format!("{} in the allocation of {bytes} bytes at {start:#x}", offset(address - start));
        }
        let after = below.map(|allocation| (address - allocation.end(), allocation, "after the end"));
        let before = above.map(|allocation| (allocation.start - address, allocation, "before the start"));
        match [after, before].into_iter().flatten().min_by_key(|(distance, ..)| *distance) {
            Some((distance, allocation, side)) => format!(
                "{} {side} of the allocation of {} bytes at {:#x}",
                if distance == 0 { "right".to_owned() } else { format!("{distance} bytes") },
                allocation.bytes,
                allocation.start
            ),
            None => "in no allocation, because there is none".to_owned(),
        }
    }
}

fn offset(bytes: u64) -> String {
    if bytes == 0 { "at the start".to_owned() } else { format!("{bytes} bytes") }
}
