//! The loop over the instructions of a warp.
//!
//! Lanes that have gone different ways form groups, each with a program counter. The group with the lowest counter runs
//! until it reaches the next group, and joins it there.

use super::{
    ALL, Found, LANES, atomics,
    block::Block,
    copies, global,
    lanes::lanes,
    longs, mixed, shared, special, together,
    warp::{Parked, Stop, Waiting, Warp, found, undefined},
    words,
};
use crate::{
    fault::Problem,
    numerics::integer,
    program::{NOWHERE, Operation, Slot, Space, TRUE},
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

/// Runs a group, and the groups that it joins, until it is another group's turn.
#[inline(always)]
fn group(warp: &mut Warp, block: &mut Block<'_>, mut pc: u32, mut active: u32) -> Result<(), Box<Found>> {
    let setup = block.setup;
    let code = &setup.program.code[..];
    let checks = setup.checks;
    let mut next = warp.next_pc();

    loop {
        // The next group is at this instruction, too.
        if pc == next {
            if let Some((_, mask)) = warp.groups.pop() {
                active |= mask;
            }
            next = warp.next_pc();
        }
        let instruction = &code[pc as usize];
        warp.steps += 1;
        let mut mask = active;
        let mut known = ALL;
        if instruction.guard != TRUE {
            let (value, defined) = warp.registers.predicate(instruction.guard);
            let value = value ^ instruction.flip;
            if instruction.acts {
                if checks && active & !defined != 0 {
                    return Err(undefined(pc, active & !defined, "its predicate"));
                }
                mask = active & value;
            } else {
                // In lanes where the guard has no value, the result has none.
                mask = active & (value | !defined);
                known = defined;
            }
            if mask == 0 {
                pc += 1;
                continue;
            }
        }
        block.thread_instructions += u64::from(mask.count_ones());
        let registers = &mut warp.registers;
        match instruction.operation {
            Operation::One { op, d, a } => {
                let (a, defined) = registers.word(a);
                let value = words::one(op, a);
                registers.set_word(d, &value, defined & known, mask);
            }
            Operation::Two { op, d, a, b } => {
                let ((a, a_defined), (b, b_defined)) = (registers.word(a), registers.word(b));
                let value = words::two(op, a, b);
                registers.set_word(d, &value, a_defined & b_defined & known, mask);
            }
            Operation::Three { op, d, a, b, c } => {
                let ((a, a_defined), (b, b_defined), (c, c_defined)) =
                    (registers.word(a), registers.word(b), registers.word(c));
                let value = words::three(op, a, b, c);
                registers.set_word(d, &value, a_defined & b_defined & c_defined & known, mask);
            }
            Operation::Insert { d, a, b, c, e } => {
                let ((a, a_defined), (b, b_defined), (c, c_defined), (e, e_defined)) =
                    (registers.word(a), registers.word(b), registers.word(c), registers.word(e));
                let mut value = [0; LANES];
                for lane in 0..LANES {
                    value[lane] = integer::bfi(a[lane], b[lane], c[lane], e[lane]);
                }
                registers.set_word(d, &value, a_defined & b_defined & c_defined & e_defined & known, mask);
            }
            Operation::Float { op, mode, d, a, b, c } => {
                let ((a, a_defined), (b, b_defined), (c, c_defined)) =
                    (registers.word(a), registers.word(b), registers.word(c));
                let value = special::float(op, mode, a, b, c);
                registers.set_word(d, &value, a_defined & b_defined & c_defined & known, mask);
            }
            Operation::Approx { function, flush, d, a, b } => {
                let ((a, a_defined), (b, b_defined)) = (registers.word(a), registers.word(b));
                let value = special::approximate(function, flush, setup.approx, a, b, mask);
                registers.set_word(d, &value, a_defined & b_defined & known, mask);
            }
            Operation::OneLong { op, d, a } => {
                let (a, defined) = registers.long(a);
                let value = longs::one(op, a);
                registers.set_long(d, &value, defined & known, mask);
            }
            Operation::TwoLong { op, d, a, b } => {
                let ((a, a_defined), (b, b_defined)) = (registers.long(a), registers.long(b));
                let value = longs::two(op, a, b);
                registers.set_long(d, &value, a_defined & b_defined & known, mask);
            }
            Operation::ThreeLong { op, d, a, b, c } => {
                let ((a, a_defined), (b, b_defined), (c, c_defined)) =
                    (registers.long(a), registers.long(b), registers.long(c));
                let value = longs::three(op, a, b, c);
                registers.set_long(d, &value, a_defined & b_defined & c_defined & known, mask);
            }
            Operation::ShiftLong { op, d, a, b, c } => {
                let ((a, a_defined), (b, b_defined), (c, c_defined)) =
                    (registers.long(a), registers.word(b), registers.word(c));
                let value = longs::shift(op, a, b, c);
                registers.set_long(d, &value, a_defined & b_defined & c_defined & known, mask);
            }
            Operation::Widen { op, d, a, b } => {
                let ((a, a_defined), (b, b_defined)) = (registers.word(a), registers.word(b));
                let value = mixed::widen(op, a, b);
                registers.set_long(d, &value, a_defined & b_defined & known, mask);
            }
            Operation::MadWide { signed, d, a, b, c } => {
                let ((a, a_defined), (b, b_defined), (c, c_defined)) =
                    (registers.word(a), registers.word(b), registers.long(c));
                let value = mixed::mad_wide(signed, a, b, c);
                registers.set_long(d, &value, a_defined & b_defined & c_defined & known, mask);
            }
            Operation::Narrow { op, d, a } => {
                let (a, defined) = registers.long(a);
                let value = mixed::narrow(op, a);
                registers.set_word(d, &value, defined & known, mask);
            }
            Operation::Compare { of, relation, p, q, a, b, with } => {
                let (holds, mut defined) = if of.is_long() {
                    let ((a, a_defined), (b, b_defined)) = (registers.long(a), registers.long(b));
                    (mixed::compare_long(of, relation, a, b), a_defined & b_defined)
                } else {
                    let ((a, a_defined), (b, b_defined)) = (registers.word(a), registers.word(b));
                    (mixed::compare(of, relation, a, b), a_defined & b_defined)
                };
                let (mut yes, mut no) = (holds, !holds);
                if let Some((op, c, negate)) = with {
                    let (c, c_defined) = registers.predicate(c);
                    let c = if negate { !c } else { c };
                    (yes, no) = (mixed::logic(op, yes, c), mixed::logic(op, no, c));
                    defined &= c_defined;
                }
                registers.set_predicate(p, yes, defined & known, mask);
                if q != TRUE {
                    registers.set_predicate(q, no, defined & known, mask);
                }
            }
            Operation::SetHalves { bf16, relation, d, a, b } => {
                let ((a, a_defined), (b, b_defined)) = (registers.word(a), registers.word(b));
                let value = words::compare_halves(bf16, relation, a, b);
                registers.set_word(d, &value, a_defined & b_defined & known, mask);
            }
            Operation::SetWord { d, p, yes } => {
                let (choice, defined) = registers.predicate(p);
                let value = mixed::select(&[yes; LANES], &[0; LANES], choice);
                registers.set_word(d, &value, defined & known, mask);
            }
            Operation::Select { d, a, b, p } => {
                let ((a, a_defined), (b, b_defined)) = (registers.word(a), registers.word(b));
                let (choice, p_defined) = registers.predicate(p);
                let value = mixed::select(a, b, choice);
                let defined = (a_defined & choice | b_defined & !choice) & p_defined & known;
                registers.set_word(d, &value, defined, mask);
            }
            Operation::SelectLong { d, a, b, p } => {
                let ((a, a_defined), (b, b_defined)) = (registers.long(a), registers.long(b));
                let (choice, p_defined) = registers.predicate(p);
                let value = mixed::select(a, b, choice);
                let defined = (a_defined & choice | b_defined & !choice) & p_defined & known;
                registers.set_long(d, &value, defined, mask);
            }
            Operation::PredicateTwo { op, p, a, b } => {
                let ((a, a_defined), (b, b_defined)) = (registers.predicate(a), registers.predicate(b));
                registers.set_predicate(
                    p,
                    mixed::logic(op, a, b),
                    mixed::known(op, a, a_defined, b, b_defined) & known,
                    mask,
                );
            }
            Operation::PredicateMove { p, a, negate } => {
                let (a, defined) = registers.predicate(a);
                registers.set_predicate(p, if negate { !a } else { a }, defined & known, mask);
            }
            Operation::LoadParameter { ref access, at } => {
                global::load_parameter(registers, setup.arguments, access, at, known, mask);
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
            Operation::Branch { target } => {
                if warp.steps >= setup.limit {
                    return Err(found(pc, mask, Problem::Limit(setup.limit)));
                }
                if mask != active {
                    warp.insert(target, mask);
                    warp.insert(pc + 1, active & !mask);
                    return Ok(());
                }
                if target >= next {
                    warp.insert(target, mask);
                    return Ok(());
                }
                pc = target;
                continue;
            }
            Operation::BranchIndexed { table, a } => {
                if warp.steps >= setup.limit {
                    return Err(found(pc, mask, Problem::Limit(setup.limit)));
                }
                let (index, defined) = registers.word(a);
                let index = *index;
                if checks && defined & mask != mask {
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
                warp.insert(pc + 1, active & !mask);
                return Ok(());
            }
            Operation::Exit => {
                warp.live &= !mask;
                active &= !mask;
                if active == 0 {
                    return Ok(());
                }
            }
            Operation::Barrier { a, threads, aligned } => {
                let first = mask.trailing_zeros() as usize & 31;
                let barrier = registers.word(a).0[first];
                let threads = (threads != NOWHERE).then(|| registers.word(threads).0[first]);
                if aligned && checks && mask != warp.live {
                    let missing = warp.thread_name(block, warp.live & !mask);
                    let why = format!("{missing} of the same warp does not reach with it");
                    return Err(found(pc, mask, Problem::Barrier(why)));
                }
                warp.waiting.push(Waiting { barrier, threads, pc, mask });
                active &= !mask;
                if active == 0 {
                    return Ok(());
                }
            }
            Operation::WarpBarrier { a } => {
                let Some(joined) = join(warp, pc, active, mask, a, checks)? else { return Ok(()) };
                (active, next) = (joined, warp.next_pc());
                warp.phase += 1;
            }
            Operation::Shuffle { op, d, p, a, b, c, members } => {
                let Some(joined) = join(warp, pc, active, mask, members, checks)? else { return Ok(()) };
                (active, next) = (joined, warp.next_pc());
                together::shuffle(&mut warp.registers, together::Shuffled { op, d, p, a, b, c }, active);
            }
            Operation::Vote { op, d, p, a, negate, members } => {
                let Some(joined) = join(warp, pc, active, mask, members, checks)? else { return Ok(()) };
                (active, next) = (joined, warp.next_pc());
                let (_, defined) = warp.registers.predicate(a);
                if checks && defined & active != active {
                    return Err(undefined(pc, active & !defined, "the predicate that it asks for"));
                }
                together::vote(&mut warp.registers, op, d, p, a, negate, active);
            }
            Operation::ActiveMask { d } => registers.set_word(d, &[active; LANES], ALL, mask),
            Operation::WaitForEarlier => warp.waited |= mask,
            Operation::Nothing => {}
        }
        pc += 1;
    }
}

/// Brings the members of a warp together: the lanes `mask` of `active` wait for the others. Returns the lanes that go
/// on; `None` until all are here.
#[inline(always)]
fn join(
    warp: &mut Warp,
    pc: u32,
    active: u32,
    mask: u32,
    members: Slot,
    checks: bool,
) -> Result<Option<u32>, Box<Found>> {
    let (members, defined) = warp.registers.word(members);
    if checks && defined & mask != mask {
        return Err(undefined(pc, mask & !defined, "its mask of members"));
    }
    let members = members[mask.trailing_zeros() as usize & 31];
    if mask & !members != 0 {
        let why = "this thread itself is none".to_owned();
        return Err(found(pc, mask & !members, Problem::Members(why)));
    }
    warp.insert(pc + 1, active & !mask);
    if mask == members & warp.live {
        return Ok(Some(mask));
    }
    Ok(warp.park(Parked { pc, mask, members }))
}
