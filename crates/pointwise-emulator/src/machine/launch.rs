//! A launch: checks its arguments and shape, runs its blocks on rayon's threads, and reports the first finding.

use std::{
    ops::Range,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};

use super::{Found, block::Worker, execute::has_wide_vectors};
use crate::{
    check::stamp::Stamp,
    decode::Kernel,
    fault::{Fault, Finding},
    memory::{Gpu, view::View},
    program::Program,
    settings::Approx,
};

/// The largest grid in each direction; the largest block is next.
const MOST_BLOCKS: [u32; 3] = [0x7fff_ffff, 0xffff, 0xffff];
const MOST_THREADS: [u32; 3] = [1024, 1024, 64];

/// The most shared memory of a block, in bytes, as on an H100.
const MOST_SHARED: u32 = 227 << 10;

/// The most bytes that a launch copies so that it can run again: see [`Gpu::launch`].
const MOST_SAVED: usize = 1 << 30;

/// One launch of a kernel.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// Blocks in each direction.
    pub grid: [u32; 3],
    /// Threads of a block in each direction.
    pub block: [u32; 3],
    /// Bytes of shared memory beside those that the kernel declares.
    pub shared: u32,
    /// The arguments' bytes, as the parameters' offsets say.
    pub arguments: &'a [u8],
    /// True if it may start while earlier launches still run. It waits for them at `griddepcontrol.wait`.
    pub early: bool,
    /// The address ranges that it may write; `None` allows all memory.
    pub results: Option<&'a [Range<u64>]>,
}

impl<'a> Launch<'a> {
    /// Returns a launch without shared memory that starts after all earlier launches and may write anywhere.
    #[must_use]
    pub fn new(grid: [u32; 3], block: [u32; 3], arguments: &'a [u8]) -> Launch<'a> {
        Launch { grid, block, shared: 0, arguments, early: false, results: None }
    }
}

/// The counts of a finished launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions, counted once for each thread that executes them.
    pub thread_instructions: u64,
}

/// The state that all blocks of a launch share.
#[derive(Debug)]
pub(super) struct Setup<'l> {
    pub(super) program: &'l Program,
    pub(super) arguments: &'l [u8],
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    /// Threads and warps of a block.
    pub(super) threads: u32,
    pub(super) warps: u32,
    /// The bytes of shared memory; `dynamic`: the part that the launch adds.
    pub(super) shared: u32,
    pub(super) dynamic: u32,
    pub(super) view: View,
    pub(super) checks: bool,
    pub(super) approx: Approx,
    pub(super) limit: u64,
    pub(super) early: bool,
    /// True if the CPU has wide vectors.
    pub(super) wide: bool,
    /// Held by atomic operations of 64 bits.
    pub(super) atomics: Mutex<()>,
    gpu: &'l Gpu,
}

impl Setup<'_> {
    /// Returns the place of a block in the grid.
    pub(super) fn position(&self, number: u64) -> [u32; 3] {
        place(number, self.grid)
    }

    /// Returns the place of a thread in its block.
    pub(super) fn thread(&self, number: u32) -> [u32; 3] {
        place(u64::from(number), self.block)
    }

    /// Describes an address, and names the parameter that points there.
    pub(super) fn place(&self, address: u64) -> String {
        let place = self.gpu.place(address);
        match self.parameter(address) {
            Some(name) => format!("{place} (parameter `{name}`)"),
            None => place,
        }
    }

    /// Returns the parameter that points into the allocation nearest to an address, at most 4096 bytes away.
    fn parameter(&self, address: u64) -> Option<String> {
        let near = |region: &&crate::memory::view::Region| {
            address.saturating_add(4096) >= region.start && address < region.end.saturating_add(4096)
        };
        let distance = |region: &&crate::memory::view::Region| {
            if address < region.start { region.start - address } else { (address + 1).saturating_sub(region.end) }
        };
        let region = self.view.regions.iter().filter(near).min_by_key(distance)?;
        let mut best: Option<(u64, String)> = None;
        for parameter in &self.program.parameters {
            for at in (0..parameter.bytes).step_by(8) {
                let from = parameter.offset + at;
                let Some(bytes) = self.arguments.get(from..from + 8).filter(|_| at + 8 <= parameter.bytes) else {
                    continue;
                };
                let value = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
                if value < region.start || value >= region.end.max(region.start + 1) {
                    continue;
                }
                let name = if at == 0 { parameter.name.clone() } else { format!("{}+{at}", parameter.name) };
                let away = address.abs_diff(value);
                if best.as_ref().is_none_or(|(other, _)| away < *other) {
                    best = Some((away, name));
                }
            }
        }
        best.map(|(_, name)| name)
    }

    /// Names the thread of a stamp, as a thread of block `number` sees it.
    pub(super) fn who(&self, stamp: Stamp, number: u64) -> String {
        let [x, y, z] = self.thread(stamp.thread());
        let thread = format!("thread ({x}, {y}, {z})");
        if stamp.block() == number {
            return format!("{thread} of the same block");
        }
        let [x, y, z] = self.position(stamp.block());
        format!("{thread} of block ({x}, {y}, {z})")
    }
}

fn place(number: u64, size: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = size.map(u64::from);
    [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
}

/// A finding and its place.
struct Located {
    block: u64,
    warp: u32,
    found: Box<Found>,
}

impl Gpu {
    /// Runs a kernel to its end.
    ///
    /// Blocks run on the threads of the current rayon pool. If there are several findings, the first block's is
    /// returned, as if blocks ran one after another: after a finding, a checked launch puts the results back and runs
    /// once more on one thread. Bytes that the launch has written by then stay in memory. A checked launch that does
    /// not name its results runs on one thread from the start.
    ///
    /// # Errors
    /// Fails if the arguments or the shape do not fit the kernel, or an instruction does something wrong.
    pub fn launch(&self, kernel: &Kernel, launch: &Launch<'_>) -> Result<Counts, Fault> {
        self.launch_on(kernel, launch, has_wide_vectors())
    }

    /// [`Gpu::launch`]; `wide` is true if the CPU has wide vectors.
    fn launch_on(&self, kernel: &Kernel, launch: &Launch<'_>, wide: bool) -> Result<Counts, Fault> {
        let program = &*kernel.program;
        check(program, launch)?;
        let settings = self.settings();
        let threads = launch.block.iter().product();
        let setup = || Setup {
            program,
            arguments: launch.arguments,
            grid: launch.grid,
            block: launch.block,
            threads,
            warps: threads.div_ceil(32),
            shared: program.shared + launch.shared,
            dynamic: launch.shared,
            view: View::new(self, launch.results, settings.checks),
            checks: settings.checks,
            approx: settings.approx,
            limit: settings.limit,
            early: launch.early && settings.checks,
            wide,
            atomics: Mutex::new(()),
            gpu: self,
        };
        let first = setup();
        let blocks = launch.grid.iter().map(|&blocks| u64::from(blocks)).product();
        // Waking other threads costs more than a few blocks.
        let alone = blocks < 4 || rayon::current_num_threads() == 1 || (settings.checks && launch.results.is_none());
        let result = if alone {
            in_order(&first, blocks)
        } else if settings.checks {
            let bytes: usize = first.view.results().map(|(_, range)| range.len()).sum();
            let saved: Option<Vec<_>> = (bytes <= MOST_SAVED).then(|| {
                first.view.results().map(|(allocation, range)| allocation.save(range.start, range.end)).collect()
            });
            match (in_parallel(&first, blocks), saved) {
                (Err(found), Some(saved)) => {
                    for ((allocation, range), saved) in first.view.results().zip(&saved) {
                        allocation.restore(range.start, saved);
                    }
                    // A race may not show again: then the first finding counts.
                    in_order(&setup(), blocks).and(Err(found))
                }
                (result, _) => result,
            }
        } else {
            in_parallel(&first, blocks)
        };
        first.view.end();
        let thread_instructions = result.map_err(|located| Fault::Found(Box::new(describe(&first, located))))?;
        Ok(Counts { thread_instructions })
    }
}

/// Checks the arguments and the shape of a launch.
fn check(program: &Program, launch: &Launch<'_>) -> Result<(), Fault> {
    let kernel = || program.name.clone();
    let (needed, given) = (program.parameter_bytes, launch.arguments.len());
    if needed != given {
        return Err(Fault::Arguments { kernel: kernel(), needed, given });
    }
    let wrong = |why: String| Err(Fault::Shape { kernel: kernel(), why });
    let fits = |size: [u32; 3], most: [u32; 3]| size.iter().zip(most).all(|(&size, most)| (1..=most).contains(&size));
    if !fits(launch.grid, MOST_BLOCKS) {
        return wrong(format!("its grid is {:?}, and must be from [1, 1, 1] to {MOST_BLOCKS:?}", launch.grid));
    }
    let threads: u64 = launch.block.iter().map(|&threads| u64::from(threads)).product();
    if !fits(launch.block, MOST_THREADS) || threads > 1024 {
        return wrong(format!("its block is {:?}: 1 to 1024 threads, at most {MOST_THREADS:?}", launch.block));
    }
    if let Some(most) = program.most_threads.filter(|&most| threads > u64::from(most)) {
        return wrong(format!("its block has {threads} threads, and the kernel allows {most}"));
    }
    if launch.shared > MOST_SHARED || program.shared + launch.shared > MOST_SHARED {
        let (own, given) = (program.shared, launch.shared);
        return wrong(format!("it has {own} bytes of shared memory and is given {given} more: at most {MOST_SHARED}"));
    }
    Ok(())
}

/// Runs all blocks on this thread. Returns the number of instructions that their threads executed.
fn in_order(setup: &Setup<'_>, blocks: u64) -> Result<u64, Located> {
    let mut worker = Worker::new(setup);
    for block in 0..blocks {
        worker.run(block).map_err(|(warp, found)| Located { block, warp, found })?;
    }
    Ok(worker.thread_instructions())
}

/// Runs blocks on rayon's threads. After a finding, only earlier blocks still run.
fn in_parallel(setup: &Setup<'_>, blocks: u64) -> Result<u64, Located> {
    let first = AtomicU64::new(u64::MAX);
    let best: Mutex<Option<Located>> = Mutex::new(None);
    let count = AtomicU64::new(0);
    // Each part has several blocks, so that few workers are made.
    let each = blocks.div_ceil(4 * rayon::current_num_threads() as u64);
    let parts = blocks.div_ceil(each);
    (0..parts).into_par_iter().for_each(|part| {
        let mut worker = Worker::new(setup);
        for block in part * each..((part + 1) * each).min(blocks) {
            if block > first.load(Relaxed) {
                break;
            }
            if let Err((warp, found)) = worker.run(block) {
                first.fetch_min(block, Relaxed);
                let mut best = best.lock().unwrap_or_else(PoisonError::into_inner);
                if best.as_ref().is_none_or(|other| block < other.block) {
                    *best = Some(Located { block, warp, found });
                }
                break;
            }
        }
        count.fetch_add(worker.thread_instructions(), Relaxed);
    });
    match best.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(located) => Err(located),
        None => Ok(count.into_inner()),
    }
}

/// Returns a finding with its place and instruction.
fn describe(setup: &Setup<'_>, located: Located) -> Finding {
    let Located { block, warp, found } = located;
    let program = setup.program;
    let place = &program.places[found.pc as usize];
    let text = program.text.get(place.text.start as usize..place.text.end as usize).unwrap_or("");
    let instruction = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Finding {
        kernel: program.name.clone(),
        instruction: if instruction.is_empty() { "the end".to_owned() } else { instruction },
        line: place.line,
        block: setup.position(block),
        thread: setup.thread(warp * 32 + found.lane),
        problem: found.problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode::Module, settings::Settings};

    #[test]
    fn wide_vectors_change_no_bit() {
        let text = include_str!("../../data/silu.ptx");
        let kernel = Module::parse(text).unwrap().kernel("unary_silu_f32_register_copy").unwrap();
        let length = 1_u64 << 16;
        let results = [false, has_wide_vectors()].map(|wide| {
            let gpu = Gpu::new(Settings::default());
            let [from, to] = [0; 2].map(|_| gpu.allocate(length as usize * 4).unwrap());
            // All kinds of numbers: infinities and NaN, too.
            let x: Vec<u8> = (0..length as u32).flat_map(|i| ((i << 16) | ((i * 7) & 0xffff)).to_le_bytes()).collect();
            gpu.write(from, &x).unwrap();
            let mut arguments: Vec<u8> = [from, to, length].iter().flat_map(|value| value.to_le_bytes()).collect();
            arguments.extend([0, 0, 0, 0, 1, 0, 0, 0]);
            arguments.extend([0; 32]);
            let launch = Launch::new([(length / 512) as u32, 1, 1], [128, 1, 1], &arguments);
            gpu.launch_on(&kernel, &launch, wide).unwrap();
            let mut y = vec![0; length as usize * 4];
            gpu.read(to, &mut y).unwrap();
            y
        });
        assert!(results[0] == results[1]);
    }
}
