//! The loop over the instructions of a warp.
//!
//! Lanes that have gone different ways form groups, each with a program counter. The group with the lowest counter runs
//! until it reaches the next group, and joins it there.

use super::{
    ALL, Found, LANES, atomics,
    block::Block,
    compute::Compute,
    copies, global,
    lanes::lanes,
    shared, together,
    warp::{Parked, Stop, Waiting, Warp, found, undefined},
};
use crate::{
    fault::Problem,
    program::{Instruction, NOWHERE, Operation, Slot, Space, TRUE},
};

/// Runs a warp until it has ended or waits.
#[allow(unsafe_code, reason = "the call of a function that is compiled for more features")]
pub(super) fn run(warp: &mut Warp, block: &mut Block<'_>) -> Result<Stop, Box<Found>> {
    #[cfg(target_arch = "x86_64")]
    if block.setup.wide {
        // SAFETY: `wide` says that the CPU has the features that the function is compiled for.
        return unsafe { run_wide(warp, block) };
    }
    body(warp, block)
}

/// [`body`], compiled for CPUs with wide vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn run_wide(warp: &mut Warp, block: &mut Block<'_>) -> Result<Stop, Box<Found>> {
    body(warp, block)
}

/// True if the CPU has the features of [`run_wide`].
pub(super) fn has_wide_vectors() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("fma")
        && std::arch::is_x86_feature_detected!("f16c")
        && std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("bmi2")
        && std::arch::is_x86_feature_detected!("lzcnt")
        && std::arch::is_x86_feature_detected!("popcnt");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[inline(always)]
fn body(warp: &mut Warp, block: &mut Block<'_>) -> Result<Stop, Box<Found>> {
    loop {
        // The group with the lowest program counter.
        let (pc, active) = match warp.groups.pop() {
            Some(group) => group,
            None if !warp.parked.is_empty() => warp.unpark()?,
            None => return Ok(if warp.waiting.is_empty() { Stop::Done } else { Stop::Waiting }),
        };
        group(warp, block, pc, active)?;
    }
}

/// Lanes that execute the same instructions.
struct Group {
    pc: u32,
    active: u32,
    /// The lowest program counter of the other groups.
    next: u32,
}

/// The instruction that follows one.
enum Then {
    /// The one below it.
    Below,
    /// Another one, before the next group's.
    At(u32),
    /// Another group's.
    OfAnotherGroup,
}

/// Runs a group, and the groups that it joins, until it is another group's turn.
#[inline(always)]
fn group(warp: &mut Warp, block: &mut Block<'_>, pc: u32, active: u32) -> Result<(), Box<Found>> {
    let setup = block.setup;
    let mut group = Group { pc, active, next: warp.next_pc() };
    loop {
        // The next group is at this instruction, too.
        if group.pc == group.next {
            if let Some((_, mask)) = warp.groups.pop() {
                group.active |= mask;
            }
            group.next = warp.next_pc();
        }
        let instruction = &setup.program.code[group.pc as usize];
        warp.steps += 1;
        let (mask, known) = guarded(warp, instruction, &group, setup.checks)?;
        if mask != 0 {
            block.thread_instructions += u64::from(mask.count_ones());
            match step(warp, block, &instruction.operation, &mut group, mask, known)? {
                Then::Below => {}
                Then::At(pc) => {
                    group.pc = pc;
                    continue;
                }
                Then::OfAnotherGroup => return Ok(()),
            }
        }
        group.pc += 1;
    }
}

/// Returns the lanes that execute an instruction, and the lanes where its guard has a value.
#[inline(always)]
fn guarded(warp: &Warp, instruction: &Instruction, group: &Group, checks: bool) -> Result<(u32, u32), Box<Found>> {
    let active = group.active;
    if instruction.guard == TRUE {
        return Ok((active, ALL));
    }
    let (value, defined) = warp.registers.predicate(instruction.guard);
    let value = value ^ instruction.flip;
    if !instruction.acts {
        // In lanes where the guard has no value, the result has none.
        return Ok((active & (value | !defined), defined));
    }
    if checks && active & !defined != 0 {
        return Err(undefined(group.pc, active & !defined, "its predicate"));
    }
    Ok((active & value, ALL))
}

/// Executes one operation in the lanes of `mask`. Its results have values in the lanes of `known` at most.
#[inline(always)]
fn step(
    warp: &mut Warp,
    block: &mut Block<'_>,
    operation: &Operation,
    group: &mut Group,
    mask: u32,
    known: u32,
) -> Result<Then, Box<Found>> {
    let (setup, pc) = (block.setup, group.pc);
    let mut on = Compute { registers: &mut warp.registers, mask, known };
    match *operation {
        Operation::One { op, d, a } => on.one(op, d, a),
        Operation::Two { op, d, a, b } => on.two(op, d, [a, b]),
        Operation::Three { op, d, a, b, c } => on.three(op, d, [a, b, c]),
        Operation::Insert { d, a, b, c, e } => on.insert(d, [a, b, c, e]),
        Operation::Float { op, mode, d, a, b, c } => on.float(op, mode, d, [a, b, c]),
        Operation::Approx { function, flush, d, a, b } => on.approximate(function, flush, setup.approx, d, [a, b]),
        Operation::OneLong { op, d, a } => on.one_long(op, d, a),
        Operation::TwoLong { op, d, a, b } => on.two_long(op, d, [a, b]),
        Operation::ThreeLong { op, d, a, b, c } => on.three_long(op, d, [a, b, c]),
        Operation::ShiftLong { op, d, a, b, c } => on.shift_long(op, d, a, [b, c]),
        Operation::Widen { op, d, a, b } => on.widen(op, d, [a, b]),
        Operation::MadWide { signed, d, a, b, c } => on.mad_wide(signed, d, [a, b], c),
        Operation::Narrow { op, d, a } => on.narrow(op, d, a),
        Operation::Compare { of, relation, p, q, a, b, with } => on.compare(of, relation, [p, q], [a, b], with),
        Operation::SetHalves { bf16, relation, d, a, b } => on.compare_halves(bf16, relation, d, [a, b]),
        Operation::SetWord { d, p, yes } => on.word_of_predicate(d, p, yes),
        Operation::Select { d, a, b, p } => on.select(d, [a, b], p),
        Operation::SelectLong { d, a, b, p } => on.select_long(d, [a, b], p),
        Operation::PredicateTwo { op, p, a, b } => on.predicate_two(op, p, [a, b]),
        Operation::PredicateMove { p, a, negate } => on.predicate_move(p, a, negate),
        Operation::LoadParameter { ref access, at } => {
            global::load_parameter(&mut warp.registers, setup.arguments, access, at, known, mask);
        }
        Operation::Load(ref access) => match access.space {
            Space::Global => global::load(warp, block, access, pc, mask)?,
            Space::Shared => shared::load(warp, block, access, pc, mask)?,
            Space::Generic | Space::Parameter => shared::load_generic(warp, block, access, pc, mask)?,
        },
        Operation::Store(ref access) => match access.space {
            Space::Global => global::store(warp, block, access, pc, mask)?,
            Space::Shared => shared::store(warp, block, access, pc, mask)?,
            Space::Generic | Space::Parameter => shared::store_generic(warp, block, access, pc, mask)?,
        },
        Operation::Atomic { op, ref access, value, second } => {
            atomics::run(warp, block, atomics::Atomic { op, access, value, second }, pc, mask)?;
        }
        Operation::CopyAsync { ref access, from, from_offset, source } => {
            copies::start(warp, block, copies::Copy { access, from, from_offset, source }, pc, mask)?;
        }
        Operation::CopyCommit => warp.copies.commit(mask),
        Operation::CopyWait { groups } => copies::wait(warp, block, groups, mask),
        Operation::Branch { target } => return branch(warp, block, group, target, mask),
        Operation::BranchIndexed { table, a } => return branch_indexed(warp, block, group, (table, a), mask),
        Operation::Exit => {
            warp.live &= !mask;
            return Ok(group.leave(mask));
        }
        Operation::Barrier { a, threads, aligned } => {
            wait(warp, block, pc, (a, threads, aligned), mask)?;
            return Ok(group.leave(mask));
        }
        Operation::WarpBarrier { a } => {
            if !group.join(warp, a, mask, setup.checks)? {
                return Ok(Then::OfAnotherGroup);
            }
            warp.phase += 1;
        }
        Operation::Shuffle { op, d, p, a, b, c, members } => {
            if !group.join(warp, members, mask, setup.checks)? {
                return Ok(Then::OfAnotherGroup);
            }
            together::shuffle(&mut warp.registers, together::Shuffled { op, d, p, a, b, c }, group.active);
        }
        Operation::Vote { op, d, p, a, negate, members } => {
            if !group.join(warp, members, mask, setup.checks)? {
                return Ok(Then::OfAnotherGroup);
            }
            let missing = group.active & !warp.registers.predicate(a).1;
            if setup.checks && missing != 0 {
                return Err(undefined(pc, missing, "the predicate that it asks for"));
            }
            together::vote(&mut warp.registers, op, d, p, a, negate, group.active);
        }
        Operation::ActiveMask { d } => warp.registers.set_word(d, &[group.active; LANES], ALL, mask),
        Operation::WaitForEarlier => warp.waited |= mask,
        Operation::Nothing => {}
    }
    Ok(Then::Below)
}

/// Jumps to an instruction.
#[inline(always)]
fn branch(warp: &mut Warp, block: &Block<'_>, group: &Group, target: u32, mask: u32) -> Result<Then, Box<Found>> {
    check_steps(warp, block, group.pc, mask)?;
    if mask == group.active && target < group.next {
        return Ok(Then::At(target));
    }
    warp.insert(target, mask);
    warp.insert(group.pc + 1, group.active & !mask);
    Ok(Then::OfAnotherGroup)
}

/// Jumps to the instruction of a table that each lane's index names.
#[inline(always)]
fn branch_indexed(
    warp: &mut Warp,
    block: &Block<'_>,
    group: &Group,
    (table, index): (u32, Slot),
    mask: u32,
) -> Result<Then, Box<Found>> {
    let (setup, pc) = (block.setup, group.pc);
    check_steps(warp, block, pc, mask)?;
    let (index, defined) = warp.registers.word(index);
    let index = *index;
    if setup.checks && defined & mask != mask {
        return Err(undefined(pc, mask & !defined, "its index"));
    }
    let targets = &setup.program.tables[table as usize];
    for lane in lanes(mask) {
        let Some(&target) = targets.get(index[lane] as usize) else {
            let problem = Problem::Index { index: index[lane], length: targets.len() };
            return Err(found(pc, 1 << lane, problem));
        };
        warp.insert(target, 1 << lane);
    }
    warp.insert(pc + 1, group.active & !mask);
    Ok(Then::OfAnotherGroup)
}

/// Fails if a warp has executed as many instructions as it may.
#[inline(always)]
fn check_steps(warp: &Warp, block: &Block<'_>, pc: u32, mask: u32) -> Result<(), Box<Found>> {
    let limit = block.setup.limit;
    if warp.steps >= limit { Err(found(pc, mask, Problem::Limit(limit))) } else { Ok(()) }
}

/// Lets lanes wait at a barrier of the block.
#[inline(always)]
fn wait(
    warp: &mut Warp,
    block: &Block<'_>,
    pc: u32,
    (barrier, threads, aligned): (Slot, Slot, bool),
    mask: u32,
) -> Result<(), Box<Found>> {
    let first = mask.trailing_zeros() as usize & 31;
    let barrier = warp.registers.word(barrier).0[first];
    let threads = (threads != NOWHERE).then(|| warp.registers.word(threads).0[first]);
    if aligned && block.setup.checks && mask != warp.live {
        let missing = warp.thread_name(block, warp.live & !mask);
        let why = format!("{missing} of the same warp does not reach with it");
        return Err(found(pc, mask, Problem::Barrier(why)));
    }
    warp.waiting.push(Waiting { barrier, threads, pc, mask });
    Ok(())
}

impl Group {
    /// Takes lanes out of the group.
    #[inline(always)]
    fn leave(&mut self, mask: u32) -> Then {
        self.active &= !mask;
        if self.active == 0 { Then::OfAnotherGroup } else { Then::Below }
    }

    /// Brings the members of a warp together: the lanes of `mask` wait for the others, without the rest of the group.
    /// Returns true once all are here; the group is then all of them.
    #[inline(always)]
    fn join(&mut self, warp: &mut Warp, members: Slot, mask: u32, checks: bool) -> Result<bool, Box<Found>> {
        let (members, defined) = warp.registers.word(members);
        if checks && defined & mask != mask {
            return Err(undefined(self.pc, mask & !defined, "its mask of members"));
        }
        let members = members[mask.trailing_zeros() as usize & 31];
        if mask & !members != 0 {
            let why = "this thread itself is none".to_owned();
            return Err(found(self.pc, mask & !members, Problem::Members(why)));
        }
        warp.insert(self.pc + 1, self.active & !mask);
        let joined =
            if mask == members & warp.live { Some(mask) } else { warp.park(Parked { pc: self.pc, mask, members }) };
        let Some(joined) = joined else { return Ok(false) };
        (self.active, self.next) = (joined, warp.next_pc());
        Ok(true)
    }
}
