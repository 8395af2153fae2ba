//! Divergence, barriers, shuffles, votes and atomic operations.

mod common;

use common::{Run, load};
use pointwise_emulator::Settings;

/// Runs a body with one block of `block` threads. Each thread has a word as its result.
fn run(block: u32, x: &[u32], body: &str) -> Vec<u32> {
    let mut run = Run::new(x, block as usize * 4);
    run.block = block;
    run.shared = 4096;
    run.launch(&load(body).unwrap_or_else(|error| panic!("{error}"))).unwrap_or_else(|fault| panic!("{fault}"));
    run.y()
}

#[test]
fn branches_part_and_join() {
    let body = "	and.b32 %r6, %r2, 1; setp.eq.u32 %p1, %r6, 1; @%p1 bra $odd;
	mul.lo.s32 %r7, %r2, 10; bra $join;
$odd:
	setp.gt.u32 %p2, %r2, 16; @!%p2 bra $low;
	mov.u32 %r7, 7; bra $join;
$low:
	mov.u32 %r7, 8;
$join:
	activemask.b32 %r8; popc.b32 %r8, %r8; mad.lo.s32 %r7, %r8, 1000, %r7; st.global.u32 [%rd5], %r7;";
    let want: Vec<u32> = (0..50)
        .map(|i| (if i < 32 { 32 } else { 18 }) * 1000 + [i * 10, if i > 16 { 7 } else { 8 }][i as usize % 2])
        .collect();
    assert_eq!(run(50, &[0], body), want);
}

#[test]
fn loops_of_different_lengths() {
    let body = "	mov.u32 %r6, 0; mov.u32 %r7, 0;
$again:
	setp.ge.u32 %p1, %r6, %r2; @%p1 bra $done;
	add.s32 %r7, %r7, %r6; add.s32 %r6, %r6, 1; bra.uni $again;
$done:
	st.global.u32 [%rd5], %r7;";
    assert_eq!(run(70, &[0], body), (0..70).map(|i: u32| i * i.saturating_sub(1) / 2).collect::<Vec<_>>());
}

#[test]
fn branches_by_index_and_blocks_behind_their_use() {
    let body = "	and.b32 %r6, %r2, 3; bra.uni $later;
$a:
	mov.u32 %r7, 10; bra.uni $end;
$b:
	mov.u32 %r7, 20; bra.uni $end;
$later:
$table: .branchtargets
	$a,
	$b,
	$end,
	$a;
	mov.u32 %r7, 30;
	brx.idx %r6, $table;
$end:
	st.global.u32 [%rd5], %r7;";
    assert_eq!(run(8, &[0], body), [10, 20, 30, 10, 10, 20, 30, 10]);
}

#[test]
fn scopes_and_early_returns() {
    let body =
        "	setp.gt.u32 %p1, %r2, 5; { .reg .b32 t; .reg .pred %p1; setp.eq.u32 %p1, %r2, 2; selp.b32 t, 100, 0, %p1;
@%p1 add.s32 t, t, 1; st.global.u32 [%rd5], t; }
	@%p1 exit; add.s32 %r6, %r2, 50; st.global.u32 [%rd5], %r6;";
    assert_eq!(run(8, &[0], body), [50, 51, 52, 53, 54, 55, 0, 0]);
}

#[test]
fn a_reduction_over_a_block() {
    let body = "	mov.u32 %r6, open; shl.b32 %r7, %r5, 2; add.s32 %r8, %r6, %r7;
	ld.global.u32 %r9, [%rd4]; st.shared.u32 [%r8], %r9; mov.u32 %r10, 128;
$again:
	bar.sync 0; setp.ge.u32 %p1, %r5, %r10; @%p1 bra $over;
	shl.b32 %r11, %r10, 2; add.s32 %r11, %r8, %r11; ld.shared.u32 %r12, [%r11]; ld.shared.u32 %r13, [%r8];
	add.s32 %r13, %r12, %r13; st.shared.u32 [%r8], %r13;
$over:
	shr.u32 %r10, %r10, 1; setp.ne.u32 %p2, %r10, 0; @%p2 bra $again;
	bar.sync 0; ld.shared.u32 %r14, [open]; st.global.u32 [%rd5], %r14;";
    let x: Vec<u32> = (0..256).map(|i| i * i).collect();
    assert_eq!(run(256, &x, body), vec![x.iter().sum::<u32>(); 256]);
}

#[test]
fn shuffles() {
    let shuffle = |operation: &str| {
        run(
            32,
            &[0],
            &format!(
                "	shfl.sync.{operation}, 0xffffffff; selp.b32 %r7, 1000, 0, %p1; add.s32 %r6, %r6, %r7; st.global.u32 [%rd5], %r6;"
            ),
        )
    };
    let want = |from: &dyn Fn(u32) -> Option<u32>| -> Vec<u32> {
        (0..32).map(|i| from(i).map_or(i, |from| from + 1000)).collect()
    };
    assert_eq!(shuffle("down.b32 %r6|%p1, %r2, 4, 31"), want(&|i| (i + 4 < 32).then_some(i + 4)));
    assert_eq!(shuffle("up.b32 %r6|%p1, %r2, 3, 0"), want(&|i| i.checked_sub(3)));
    assert_eq!(shuffle("bfly.b32 %r6|%p1, %r2, 16, 31"), want(&|i| Some(i ^ 16)));
    assert_eq!(shuffle("idx.b32 %r6|%p1, %r2, 5, 31"), want(&|_| Some(5)));
    // Segments of 8 lanes: the mask of the segment is 24, the last lane of each 7.
    assert_eq!(shuffle("idx.b32 %r6|%p1, %r2, 5, 0x1807"), want(&|i| Some(i / 8 * 8 + 5)));
    assert_eq!(shuffle("down.b32 %r6|%p1, %r2, 2, 0x1807"), want(&|i| (i % 8 < 6).then_some(i + 2)));
    assert_eq!(shuffle("up.b32 %r6|%p1, %r2, 2, 0x1800"), want(&|i| (i % 8 > 1).then(|| i - 2)));
}

#[test]
fn lanes_come_together_for_a_shuffle() {
    // Both branches lead to the same instruction, at different times.
    let body = "	and.b32 %r6, %r2, 1; setp.eq.u32 %p1, %r6, 1; @%p1 bra $odd;
	mov.u32 %r7, 1; bra.uni $meet;
$odd:
	mov.u32 %r7, 2; add.s32 %r7, %r7, 1;
$meet:
	shfl.sync.bfly.b32 %r8, %r7, 1, 31, 0xffffffff; st.global.u32 [%rd5], %r8;";
    assert_eq!(run(32, &[0], body)[..4], [3, 1, 3, 1]);
    // Lanes that have ended are not waited for.
    let body = "	st.global.u32 [%rd5], %r2; setp.gt.u32 %p1, %r2, 9; @%p1 exit; bar.warp.sync 0xffffffff; add.s32 %r6, %r2, 1; st.global.u32 [%rd5], %r6;";
    assert_eq!(run(12, &[0], body), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 11]);
}

#[test]
fn votes() {
    let body =
        "	setp.lt.u32 %p1, %r2, 5; vote.sync.ballot.b32 %r6, %p1, 0xffffffff; vote.sync.any.pred %p2, %p1, 0xffffffff;
	vote.sync.all.pred %p3, !%p1, 0xffffffff; vote.sync.uni.pred %p4, %p1, 0xffffffff;
	selp.b32 %r7, 256, 0, %p2; selp.b32 %r8, 512, 0, %p3; selp.b32 %r9, 1024, 0, %p4;
	add.s32 %r6, %r6, %r7; add.s32 %r6, %r6, %r8; add.s32 %r6, %r6, %r9; st.global.u32 [%rd5], %r6;";
    let y = run(64, &[0], body);
    assert_eq!([y[0], y[31], y[32], y[63]], [31 + 256, 31 + 256, 512 + 1024, 512 + 1024]);
}

#[test]
fn atomic_operations() {
    let atomics = |body: &str, start: &[u32]| {
        let mut run = Run::new(&[0], start.len() * 4);
        run.gpu.write(run.y, &common::bytes(start)).unwrap();
        (run.block, run.grid) = (64, 50);
        run.launch(&load(body).unwrap()).unwrap_or_else(|fault| panic!("{fault}"));
        run.y()
    };
    assert_eq!(atomics("	atom.global.add.u32 %r6, [%rd2], 2;", &[5]), [5 + 6400]);
    assert_eq!(
        atomics("	red.global.max.s32 [%rd2], %r2; red.global.min.s32 [%rd2+4], -7;", &[0x8000_0000, 3]),
        [3199, u32::MAX - 6]
    );
    assert_eq!(atomics("	red.global.add.f32 [%rd2], 0f3F800000;", &[0]), [3200.0_f32.to_bits()]);
    assert_eq!(atomics("	mov.b64 %rd6, 0x100000001; atom.global.add.u64 %rd7, [%rd2], %rd6;", &[0, 0]), [3200, 3200]);
    assert_eq!(
        atomics(
            "	red.global.or.b32 [%rd2], %r2; red.global.and.b32 [%rd2+4], 0xf0; red.global.xor.b32 [%rd2+8], 1;",
            &[0, 0xff, 9]
        ),
        [4095, 0xf0, 9]
    );
    assert_eq!(
        atomics(
            "	red.global.max.u32 [%rd2], %r2; red.global.min.u32 [%rd2+4], %r2; atom.global.cas.b32 %r6, [%rd2+8], 4, 6; atom.global.exch.b32 %r7, [%rd2+12], 1;",
            &[0, 9, 4, 0]
        ),
        [3199, 0, 6, 1]
    );
    // In shared memory, by its own and by its generic address.
    let body = "	mov.u32 %r6, small; setp.eq.u32 %p1, %r5, 0; @%p1 st.shared.u32 [%r6], 3; bar.sync 0;
	atom.shared.add.u32 %r7, [%r6], 1; mov.u64 %rd6, small; cvta.shared.u64 %rd6, %rd6; atom.add.u32 %r7, [%rd6], 1;
	bar.sync 0; ld.shared.u32 %r8, [%r6]; st.global.u32 [%rd5], %r8;";
    assert_eq!(run(64, &[0], body), [131; 64]);
    // An atomic operation and a store race.
    let mut run = Run::new(&[0], 4);
    run.gpu.write(run.y, &[0; 4]).unwrap();
    let message =
        run.message("	atom.global.add.u32 %r6, [%rd2], 2; setp.eq.u32 %p1, %r2, 0; @%p1 st.global.u32 [%rd2], %r2;");
    assert!(message.contains("it writes"), "{message}");
    run.results = false;
    run.gpu.write(run.y, &[0; 4]).unwrap();
    run.launch(&load("	red.add.u32 [%rd2], 1;").unwrap()).unwrap();
    assert_eq!(run.y(), [32]);
}

#[test]
fn generic_addresses_and_every_width() {
    let body = "	mov.u64 %rd6, open; cvta.shared.u64 %rd6, %rd6; mul.wide.u32 %rd7, %r5, 16; add.s64 %rd6, %rd6, %rd7;
	ld.global.u32 %r6, [%rd4]; st.u32 [%rd6], %r6; ld.s8 %r7, [%rd6]; ld.u16 %rs1, [%rd6+2]; cvt.u32.u16 %r8, %rs1;
	ld.global.s16 %rd8, [%rd4]; cvt.u32.u64 %r9, %rd8; st.v2.u32 [%rd6+8], {%r7, %r8}; cvta.to.shared.u64 %rd9, %rd6;
	ld.shared.u64 %rd10, [%rd9+8]; mov.b64 {%r10, %r11}, %rd10; add.s32 %r12, %r10, %r11; add.s32 %r12, %r12, %r9;
	st.global.u8 [%rd5], %r12; shr.u32 %r12, %r12, 8; cvt.u16.u32 %rs2, %r12; st.global.u8 [%rd5+1], %rs2; st.global.u16 [%rd5+2], 0x1234;";
    let x = [0x0001_80ff, 0xffff_7f7f, 0x1234_5678];
    let want = x.map(|x: u32| {
        let sum = (i32::from(x as u8 as i8) + i32::from((x >> 16) as u16) + i32::from(x as u16 as i16)).cast_unsigned();
        sum & 0xffff | 0x1234_0000
    });
    assert_eq!(run(3, &x, body), want);
}

#[test]
fn special_registers() {
    let body = "	mov.u32 %r6, %laneid; mov.u32 %r7, %warpid; mov.u32 %r8, %lanemask_lt; popc.b32 %r8, %r8; mov.u32 %r9, %nctaid.x;
	mad.lo.s32 %r6, %r7, 100, %r6; mad.lo.s32 %r6, %r8, 1000, %r6; mad.lo.s32 %r6, %r9, 100000, %r6; st.global.u32 [%rd5], %r6;";
    let y = run(40, &[0], body);
    assert_eq!([y[0], y[31], y[39]], [100_000, 131_031, 107_107]);
}

#[test]
fn addresses_in_several_allocations() {
    let run = Run::new(&[5; 32], 128);
    run.gpu.write(run.y, &common::bytes(&[6; 32])).unwrap();
    let body = "	and.b32 %r6, %r2, 1; setp.eq.u32 %p1, %r6, 0; selp.b64 %rd6, %rd4, %rd5, %p1; ld.global.u32 %r7, [%rd6]; st.global.u32 [%rd5], %r7;";
    run.launch(&load(body).unwrap()).unwrap();
    assert_eq!(run.y()[..4], [5, 6, 5, 6]);
}

#[test]
fn instructions_are_counted_for_each_thread() {
    let mut run = Run::new(&[5; 32], 128);
    run.block = 16;
    // Ten instructions before the body (with two that pack nothing), one after it.
    let empty = run.launch(&load("").unwrap()).unwrap().thread_instructions;
    let one = run.launch(&load("	add.s32 %r6, %r2, 1;").unwrap()).unwrap().thread_instructions;
    let some =
        run.launch(&load("	setp.lt.u32 %p1, %r2, 3; @%p1 add.s32 %r6, %r2, 1;").unwrap()).unwrap().thread_instructions;
    assert_eq!([one - empty, some - empty], [16, 19]);
}

#[test]
fn results_do_not_depend_on_checks() {
    let body = "	ld.global.u32 %r6, [%rd4]; cvt.rn.f32.u32 %r6, %r6; ex2.approx.f32 %r6, %r6; lg2.approx.f32 %r7, %r6; fma.rn.f32 %r6, %r6, %r7, %r6; st.global.u32 [%rd5], %r6;";
    let kernel = load(body).unwrap();
    let x: Vec<u32> = (0..32).collect();
    let results = [true, false].map(|checks| {
        let run = Run::with(Settings { checks, ..Settings::default() }, &x, 128);
        run.launch(&kernel).unwrap();
        run.y()
    });
    assert_eq!(results[0], results[1]);
}
