//! A warp: its registers, and its groups of lanes that have gone different ways.

use super::{ALL, Found, block::Block, copies::Copies, registers::Registers};
use crate::{fault::Problem, program::Program};

/// Lanes that wait at a barrier of the block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// The number of the barrier.
    pub(super) barrier: u32,
    /// The number of threads that it waits for; `None`: all of the block.
    pub(super) threads: Option<u32>,
    /// The barrier's instruction.
    pub(super) pc: u32,
    pub(super) mask: u32,
}

/// Lanes that wait for others of their warp.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parked {
    pub(super) pc: u32,
    pub(super) mask: u32,
    /// All lanes that must come.
    pub(super) members: u32,
}

/// The reason why a warp stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// All its threads have ended.
    Done,
    /// Its threads wait at a barrier of the block, or have ended.
    Waiting,
}

/// One warp.
#[derive(Debug)]
pub(super) struct Warp {
    pub(super) registers: Registers,
    /// Program counter and lanes of each group, the lowest program counter last.
    pub(super) groups: Vec<(u32, u32)>,
    /// Groups that wait for other lanes of the warp, at the instruction that they execute together.
    pub(super) parked: Vec<Parked>,
    pub(super) waiting: Vec<Waiting>,
    /// Its number in the block.
    pub(super) index: u32,
    /// Lanes that have not ended.
    pub(super) live: u32,
    /// Barriers of the warp since the last one of the block.
    pub(super) phase: u32,
    /// Lanes that have waited for earlier launches.
    pub(super) waited: u32,
    pub(super) copies: Copies,
    /// Instructions that it has executed.
    pub(super) steps: u64,
}

impl Warp {
    pub(super) fn new(program: &Program) -> Warp {
        Warp {
            registers: Registers::new(program),
            groups: Vec::new(),
            parked: Vec::new(),
            waiting: Vec::new(),
            index: 0,
            live: 0,
            phase: 0,
            waited: 0,
            copies: Copies::default(),
            steps: 0,
        }
    }

    /// Puts the warp at the start of the program.
    pub(super) fn start(&mut self, block: &Block<'_>, index: u32) {
        let setup = block.setup;
        self.registers.reset(setup.program);
        let threads = setup.threads - index * 32;
        self.live = if threads >= 32 { ALL } else { (1 << threads) - 1 };
        self.index = index;
        self.groups.clear();
        self.groups.push((0, self.live));
        self.parked.clear();
        self.waiting.clear();
        self.phase = 0;
        self.waited = if setup.early { 0 } else { ALL };
        self.copies.clear();
        self.steps = 0;
        for &(slot, special) in &setup.program.specials {
            let value = block.special(special, index);
            self.registers.set_word(slot, &value, ALL, ALL);
        }
    }

    /// Lets the lanes that wait at a barrier go on.
    pub(super) fn release(&mut self, barrier: u32) {
        let mut at = 0;
        while at < self.waiting.len() {
            if self.waiting[at].barrier == barrier {
                let waiting = self.waiting.swap_remove(at);
                self.insert(waiting.pc + 1, waiting.mask);
            } else {
                at += 1;
            }
        }
        self.phase = 0;
    }

    /// Returns the lowest program counter of the groups that wait for their turn.
    #[inline(always)]
    pub(super) fn next_pc(&self) -> u32 {
        self.groups.last().map_or(u32::MAX, |&(pc, _)| pc)
    }

    pub(super) fn insert(&mut self, pc: u32, mask: u32) {
        if mask == 0 {
            return;
        }
        let at = self.groups.partition_point(|&(other, _)| other > pc);
        match self.groups.get_mut(at) {
            Some((other, lanes)) if *other == pc => *lanes |= mask,
            _ => self.groups.insert(at, (pc, mask)),
        }
    }
}

pub(super) fn found(pc: u32, mask: u32, problem: Problem) -> Box<Found> {
    Box::new(Found { pc, lane: mask.trailing_zeros() & 31, problem })
}

/// Returns the finding for an operand that must have a value and has none in some lanes.
#[cold]
pub(super) fn undefined(pc: u32, mask: u32, what: &'static str) -> Box<Found> {
    let why = "it comes from a register that no instruction has set in this thread";
    found(pc, mask, Problem::Undefined { what, why })
}

impl Warp {
    /// Lets lanes wait for others. Returns them all once they are here.
    pub(super) fn park(&mut self, new: Parked) -> Option<u32> {
        let at = match self.parked.iter().position(|parked| parked.pc == new.pc) {
            Some(at) => {
                self.parked[at].mask |= new.mask;
                at
            }
            None => {
                self.parked.push(new);
                self.parked.len() - 1
            }
        };
        let joined = self.parked[at].mask;
        (joined == new.members & self.live).then(|| {
            self.parked.swap_remove(at);
            joined
        })
    }

    /// Returns a waiting group whose missing members have all ended. Fails if there is none.
    pub(super) fn unpark(&mut self) -> Result<(u32, u32), Box<Found>> {
        if let Some(at) = self.parked.iter().position(|parked| parked.mask == parked.members & self.live) {
            let parked = self.parked.swap_remove(at);
            return Ok((parked.pc, parked.mask));
        }
        let (pc, mask, members) =
            self.parked.first().map_or((0, 1, 1), |parked| (parked.pc, parked.mask, parked.members));
        let missing = (members & self.live & !mask).trailing_zeros();
        Err(found(pc, mask, Problem::Members(format!("lane {missing} never comes to this instruction"))))
    }

    /// Names the thread of the first of some lanes.
    pub(super) fn thread_name(&self, block: &Block<'_>, lanes: u32) -> String {
        let [x, y, z] = block.setup.thread(self.index * 32 + (lanes.trailing_zeros() & 31));
        format!("thread ({x}, {y}, {z})")
    }
}
