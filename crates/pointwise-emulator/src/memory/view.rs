//! The device's memory as one launch sees it.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use super::{Gpu, allocation::Allocation};
use crate::check::shadow::Shadow;

/// An allocation, and the rights of a launch in it.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) allocation: Arc<Allocation>,
    /// The parts that may be written, in order, with the stamps of their bytes. Memory that is only read has no stamps.
    pub(crate) writable: Vec<Shadow>,
    ranges: Vec<Range<u64>>,
    /// True once this launch has read it; `written`: once it has written it.
    read: AtomicBool,
    written: AtomicBool,
}

impl Region {
    /// True if all of a range may be written.
    #[inline(always)]
    pub(crate) fn may_write(&self, from: u64, to: u64) -> bool {
        self.ranges.iter().any(|range| range.start <= from && to <= range.end)
    }

    /// Notes that the launch reads it.
    #[inline(always)]
    pub(crate) fn note_read(&self) {
        if !self.read.load(Relaxed) {
            self.read.store(true, Relaxed);
        }
    }

    /// Notes that the launch writes it.
    #[inline(always)]
    pub(crate) fn note_write(&self) {
        if !self.written.load(Relaxed) {
            self.written.store(true, Relaxed);
        }
    }

    /// Returns the stamps of an address, if it may be written.
    #[inline(always)]
    pub(crate) fn shadow(&self, address: u64) -> Option<&Shadow> {
        self.writable.iter().find(|shadow| shadow.contains(address))
    }
}

/// All allocations, by address.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) regions: Vec<Region>,
    /// True if the launch did not name its results.
    all: bool,
}

impl View {
    /// Takes the allocations as they are now. `results` are the ranges that may be written; without them, everything
    /// may be.
    pub(crate) fn new(gpu: &Gpu, results: Option<&[Range<u64>]>, checks: bool) -> View {
        let regions = gpu
            .live()
            .into_iter()
            .map(|allocation| {
                let whole = allocation.start..allocation.end();
                let ranges = match results {
                    Some(results) => merged(results, &whole),
                    None if whole.is_empty() => Vec::new(),
                    None => vec![whole.clone()],
                };
                let writable = if checks {
                    ranges.iter().map(|range| Shadow::new(range.start, range.end)).collect()
                } else {
                    Vec::new()
                };
                let [read, written] = [(); 2].map(|()| AtomicBool::new(false));
                Region { start: whole.start, end: whole.end, allocation, writable, ranges, read, written }
            })
            .collect();
        View { regions, all: results.is_none() }
    }

    /// Returns the region that holds all of a range. `hint` is the index of the region that was found last.
    #[inline(always)]
    pub(crate) fn find(&self, from: u64, to: u64, hint: &mut u32) -> Option<&Region> {
        if let Some(region) = self.regions.get(*hint as usize)
            && region.start <= from
            && to <= region.end
        {
            return Some(region);
        }
        let at = self.regions.partition_point(|region| region.start <= from).checked_sub(1)?;
        let region = &self.regions[at];
        if to > region.end {
            return None;
        }
        *hint = u32::try_from(at).unwrap_or(0);
        Some(region)
    }

    /// Returns the ranges of each allocation that may be written.
    pub(crate) fn results(&self) -> impl Iterator<Item = (&Allocation, Range<usize>)> {
        self.regions.iter().flat_map(|region| {
            region.ranges.iter().map(|range| {
                let place = |address: u64| usize::try_from(address - region.start).unwrap_or(usize::MAX);
                (&*region.allocation, place(range.start)..place(range.end))
            })
        })
    }

    /// Notes what the launch read and may have written, for the launches after it.
    pub(crate) fn end(&self) {
        for region in &self.regions {
            let allocation = &region.allocation;
            if region.read.load(Relaxed) {
                allocation.read_by_launch.store(true, Relaxed);
            }
            if self.all && region.written.load(Relaxed) {
                allocation.mark_launched(0, allocation.bytes);
            }
        }
        if !self.all {
            for (allocation, range) in self.results() {
                allocation.mark_launched(range.start, range.end);
            }
        }
    }
}

/// Returns the parts of `ranges` inside of `whole`, in order and joined.
fn merged(ranges: &[Range<u64>], whole: &Range<u64>) -> Vec<Range<u64>> {
    let mut inside: Vec<_> = ranges
        .iter()
        .map(|range| range.start.max(whole.start)..range.end.min(whole.end))
        .filter(|range| !range.is_empty())
        .collect();
    inside.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in inside {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::single_range_in_vec_init)]
    fn ranges_are_cut_and_joined() {
        let ranges = [50..60, 0..12, 90..300, 55..70, 70..71];
        assert_eq!(merged(&ranges, &(10..100)), [10..12, 50..71, 90..100]);
        assert!(merged(&ranges, &(12..50)).is_empty());
        assert_eq!(merged(&[0..5], &(0..5)), [0..5]);
    }
}
