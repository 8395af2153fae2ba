//! A block: its warps run one after another, each until it has ended or waits at a barrier.

use super::{
    Found, LANES, execute,
    lanes::Words,
    launch::Setup,
    shared::Shared,
    warp::{Stop, Warp, found},
};
use crate::{
    fault::Problem,
    program::{LaneRelation, Special},
};

/// The block that a host thread runs.
#[derive(Debug)]
pub(super) struct Block<'l> {
    pub(super) setup: &'l Setup<'l>,
    /// Its number in the grid, and its place there.
    pub(super) number: u64,
    pub(super) position: [u32; 3],
    /// Barriers that it has passed.
    pub(super) phase: u32,
    pub(super) shared: Shared,
    /// The region that each instruction reached last.
    pub(super) hints: Vec<u32>,
    pub(super) thread_instructions: u64,
}

/// The state of one host thread that runs blocks, one after another.
#[derive(Debug)]
pub(super) struct Worker<'l> {
    block: Block<'l>,
    /// One for each warp of a block, or one for all if no warp waits for another.
    warps: Vec<Warp>,
}

impl<'l> Worker<'l> {
    pub(super) fn new(setup: &'l Setup<'l>) -> Worker<'l> {
        let program = setup.program;
        let warps = if program.barriers { setup.warps } else { 1 };
        Worker {
            block: Block {
                setup,
                number: 0,
                position: [0; 3],
                phase: 0,
                shared: Shared::new(setup.shared, setup.checks),
                hints: vec![0; program.code.len()],
                thread_instructions: 0,
            },
            warps: (0..warps).map(|_| Warp::new(program)).collect(),
        }
    }

    pub(super) fn thread_instructions(&self) -> u64 {
        self.block.thread_instructions
    }

    /// Runs a block to its end. Returns a finding together with the number of its warp.
    pub(super) fn run(&mut self, number: u64) -> Result<(), (u32, Box<Found>)> {
        let Worker { block, warps } = self;
        block.number = number;
        block.position = block.setup.position(number);
        block.phase = 0;
        if let [warp] = &mut warps[..] {
            for index in 0..block.setup.warps {
                warp.start(block, index);
                // A barrier is there only if the block has one warp.
                while execute::run(warp, block).map_err(|found| (index, found))? == Stop::Waiting {
                    pass(block, std::slice::from_mut(warp))?;
                }
            }
            return Ok(());
        }
        for (warp, index) in warps.iter_mut().zip(0..) {
            warp.start(block, index);
        }
        loop {
            let mut waiting = false;
            for (warp, index) in warps.iter_mut().zip(0..) {
                waiting |= execute::run(warp, block).map_err(|found| (index, found))? == Stop::Waiting;
            }
            if !waiting {
                return Ok(());
            }
            pass(block, warps)?;
        }
    }
}

/// Lets threads pass a barrier that all of them have reached. Fails if there is none.
fn pass(block: &mut Block<'_>, warps: &mut [Warp]) -> Result<(), (u32, Box<Found>)> {
    let all = block.setup.threads;
    let mut barriers: Vec<u32> =
        warps.iter().flat_map(|warp| warp.waiting.iter().map(|waiting| waiting.barrier)).collect();
    barriers.sort_unstable();
    barriers.dedup();
    for barrier in barriers {
        let waiting = || warps.iter().flat_map(|warp| &warp.waiting).filter(|waiting| waiting.barrier == barrier);
        let reached: u32 = waiting().map(|waiting| waiting.mask.count_ones()).sum();
        let needed = waiting().find_map(|waiting| waiting.threads).unwrap_or(all);
        if reached >= needed || (!block.setup.checks && reached == live(warps)) {
            for warp in warps.iter_mut() {
                warp.release(barrier);
            }
            block.phase += 1;
            return Ok(());
        }
    }
    Err(never_reached(block, warps))
}

fn live(warps: &[Warp]) -> u32 {
    warps.iter().map(|warp| warp.live.count_ones()).sum()
}

/// Returns the finding that names a thread missing at a barrier.
#[cold]
fn never_reached(block: &Block<'_>, warps: &[Warp]) -> (u32, Box<Found>) {
    let first = warps.iter().find_map(|warp| warp.waiting.first().map(|waiting| (warp.index, *waiting)));
    let Some((index, waiting)) = first else {
        let why = "no thread reaches".to_owned();
        return (0, found(0, 1, Problem::Barrier(why)));
    };
    let setup = block.setup;
    let missing = (0..setup.threads).find_map(|thread| {
        let warp = warps.get(thread as usize / LANES)?;
        let lane = 1 << (thread % 32);
        let here = warp.waiting.iter().any(|other| other.barrier == waiting.barrier && other.mask & lane != 0);
        let what = if warp.live & lane == 0 { "has ended and" } else { "waits elsewhere and" };
        (!here).then_some((thread, what))
    });
    let why = match missing {
        Some((thread, what)) => {
            let [x, y, z] = setup.thread(thread);
            format!("thread ({x}, {y}, {z}) never reaches, which {}", what.trim_end_matches(" and"))
        }
        None => "asks for more threads than the block has".to_owned(),
    };
    (index, found(waiting.pc, waiting.mask, Problem::Barrier(why)))
}

impl Block<'_> {
    /// Describes an address of global memory.
    pub(super) fn place(&self, address: u64) -> String {
        self.setup.place(address)
    }

    /// Returns the values of a special register in the lanes of a warp.
    pub(super) fn special(&self, special: Special, warp: u32) -> Words {
        let setup = self.setup;
        let mut value = [0; LANES];
        for (to, lane) in value.iter_mut().zip(0_u32..) {
            let above = if lane == 31 { 0 } else { u32::MAX << (lane + 1) };
            *to = match special {
                Special::Thread(axis) => setup.thread(warp * 32 + lane)[usize::from(axis)],
                Special::Block(axis) => self.position[usize::from(axis)],
                Special::ThreadCount(axis) => setup.block[usize::from(axis)],
                Special::BlockCount(axis) => setup.grid[usize::from(axis)],
                Special::Lane => lane,
                Special::Warp => warp,
                Special::WarpCount => setup.warps,
                Special::LaneMask(LaneRelation::Eq) => 1 << lane,
                Special::LaneMask(LaneRelation::Lt) => (1 << lane) - 1,
                Special::LaneMask(LaneRelation::Le) => !above,
                Special::LaneMask(LaneRelation::Gt) => above,
                Special::LaneMask(LaneRelation::Ge) => above | 1 << lane,
                Special::DynamicShared => setup.dynamic,
            };
        }
        value
    }
}
