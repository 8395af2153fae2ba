//! Each kind of fault, with its message.

mod common;

use common::{FIRST_LINE, Run, bytes, load};
use pointwise_emulator::{Fault, Launch, LoadError, Module, Settings};

const STORE: &str = "	st.global.u32 [%rd5], %r2;";

fn has(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{part}` is missing in: {message}");
    }
}

#[test]
fn a_right_kernel_has_none() {
    let run = Run::new(&[1; 32], 128);
    run.launch(&load("	ld.global.u32 %r6, [%rd4]; add.s32 %r6, %r6, %r2; st.global.u32 [%rd5], %r6;").unwrap())
        .unwrap();
    assert_eq!(run.y(), (1..33).collect::<Vec<_>>());
}

#[test]
fn out_of_bounds() {
    let run = Run::new(&[1; 31], 128);
    let message = run.message("	ld.global.u32 %r6, [%rd4];\n	st.global.u32 [%rd5], %r6;");
    let address = format!("{:#x}", run.x + 124);
    has(
        &message,
        &[
            "kernel `k`",
            &format!("PTX line {FIRST_LINE}"),
            "`ld.global.u32 %r6, [%rd4]`",
            "block (0, 0, 0), thread (31, 0, 0)",
            &format!("it reads 4 bytes at {address}, which is right after the end of the allocation of 124 bytes"),
            "(parameter `k_x`)",
        ],
    );
    let run = Run::new(&[1; 32], 128);
    let message = run.message("	ld.global.u32 %r6, [%rd4+-8];");
    has(&message, &["thread (0, 0, 0)", "8 bytes before the start of the allocation of 128 bytes", "`k_x`"]);
    let mut run = Run::new(&[1; 32], 124);
    run.grid = 3;
    has(
        &run.message(STORE),
        &["thread (31, 0, 0): it writes 4 bytes", "right after the end", "`k_y`", "block (0, 0, 0)"],
    );
    has(&run.message("	ld.global.u32 %r6, [16];"), &["no address of this device's memory"]);
}

#[test]
fn out_of_bounds_without_checks() {
    let run = Run::with(Settings { checks: false, ..Settings::default() }, &[1; 32], 64);
    has(&run.message(STORE), &["thread (16, 0, 0): it writes 4 bytes"]);
    let mut run = Run::with(Settings { checks: false, ..Settings::default() }, &[1; 32], 64 * 32);
    run.grid = 20;
    has(&run.message(STORE), &["block (16, 0, 0), thread (0, 0, 0): it writes 4 bytes"]);
}

#[test]
fn freed() {
    let run = Run::new(&[1; 32], 128);
    run.gpu.free(run.x).unwrap();
    let message = run.message("	ld.global.u32 %r6, [%rd4];");
    has(&message, &["at the start in an allocation of 128 bytes", "that was freed"]);
}

#[test]
fn misaligned() {
    let run = Run::new(&[1; 64], 128);
    let message = run.message("	ld.global.v2.u32 {%r6, %r7}, [%rd4];");
    has(&message, &["thread (1, 0, 0): it reads 8 bytes", "which is no multiple of 8: 4 bytes in the allocation"]);
    has(&run.message("	st.global.u16 [%rd5+1], %rs1;"), &["thread (0, 0, 0): it writes 2 bytes", "no multiple of 2"]);
}

#[test]
fn unwritten() {
    let run = Run::new(&[1; 32], 128);
    let message = run.message("	ld.global.u32 %r6, [%rd5];");
    has(&message, &["thread (0, 0, 0): it reads 4 bytes", "which nobody has written", "`k_y`"]);
    run.gpu.write(run.y, &[0; 75]).unwrap();
    has(&run.message("	ld.global.u32 %r6, [%rd5];"), &["thread (18, 0, 0)"]);
    // A copy of unwritten bytes is unwritten, too. The host reads it as it is.
    run.gpu.copy(run.x, run.y, 128).unwrap();
    has(&run.message("	ld.global.u32 %r6, [%rd4];"), &["thread (18, 0, 0)", "`k_x`"]);
    let mut all = [0; 128];
    run.gpu.read(run.x, &mut all).unwrap();
}

#[test]
fn not_a_result() {
    let run = Run::new(&[1; 32], 128);
    let message = run.message("	st.global.u32 [%rd4], %r2;");
    has(&message, &["it writes 4 bytes", "which is no result of this call: at the start in the allocation", "`k_x`"]);
    let mut run = Run::new(&[1; 32], 128);
    run.bytes = 66;
    has(&run.message(STORE), &["thread (16, 0, 0)", "no result"]);
}

#[test]
fn races_in_global_memory() {
    let run = Run::new(&[1; 32], 128);
    let message = run.message("	st.global.u32 [%rd2+4], %r2;");
    has(
        &message,
        &[
            "thread (1, 0, 0): it writes",
            "which thread (0, 0, 0) of the same block writes without a barrier between: 4 bytes in the allocation",
            "`k_y`",
        ],
    );
    // Bytes of one word by different threads are no race, but a byte and its word are one.
    let body = "	and.b32 %r6, %r2, 31; cvt.u64.u32 %rd6, %r6; add.s64 %rd6, %rd2, %rd6; st.global.u8 [%rd6], %r2;";
    Run::new(&[1; 32], 128).launch(&load(body).unwrap()).unwrap();
    let body = format!("{body} @%p1 st.global.u32 [%rd2], %r2;").replace("and.b32", "setp.eq.u32 %p1, %r2, 9; and.b32");
    has(&run.message(&body), &["thread (9, 0, 0): it writes", "thread (0, 0, 0) of the same block writes"]);
    // Another thread's element, read and then written.
    let run = Run::new(&[1; 32], 128);
    run.gpu.write(run.y, &[0; 128]).unwrap();
    let body = "	xor.b32 %r6, %r2, 1; mul.wide.u32 %rd6, %r6, 4; add.s64 %rd6, %rd2, %rd6;
	ld.global.u32 %r7, [%rd6];
	st.global.u32 [%rd5], %r7;";
    has(&run.message(body), &["PTX line 25", "it writes", "thread (1, 0, 0) of the same block reads without"]);
    // With a barrier it is no race.
    let barrier = body.replace("	st.", "	bar.sync 0; st.");
    run.launch(&load(&barrier).unwrap()).unwrap();
    // A thread's own element is no race.
    run.launch(&load("	ld.global.u32 %r7, [%rd5]; st.global.u32 [%rd5], %r7;").unwrap()).unwrap();
}

#[test]
fn races_between_blocks() {
    let mut run = Run::new(&[1; 32], 4096);
    run.grid = 40;
    let body = "	setp.gt.u32 %p1, %r3, 17; setp.eq.u32 %p2, %r5, 0; and.pred %p1, %p1, %p2;
	@%p1 st.global.u32 [%rd2+4], %r2;";
    for _ in 0..20 {
        has(
            &run.message(body),
            &["block (19, 0, 0), thread (0, 0, 0): it writes", "thread (0, 0, 0) of block (18, 0, 0) writes"],
        );
    }
    run.results = false;
    has(&run.message(body), &["block (19, 0, 0)"]);
    // A barrier orders no other block's threads.
    let run = Run { grid: 2, ..Run::new(&[1; 32], 4096) };
    run.gpu.write(run.y, &[0; 4096]).unwrap();
    let body = "	ld.global.u32 %r6, [%rd2]; bar.sync 0; setp.eq.u32 %p1, %r2, 32; @%p1 st.global.u32 [%rd2], %r2;";
    has(&run.message(body), &["block (1, 0, 0)", "reads without a barrier"]);
}

#[test]
fn races_in_shared_memory() {
    let mut run = Run::new(&[1; 64], 256);
    run.shared = 256;
    let start =
        "	mov.u32 %r6, open; shl.b32 %r7, %r5, 2; add.s32 %r8, %r6, %r7; xor.b32 %r9, %r7, 4; add.s32 %r9, %r6, %r9;
	st.shared.u32 [%r8], %r2;
";
    let end = "	ld.shared.u32 %r10, [%r9];\n	st.global.u32 [%rd5], %r10;";
    let message = run.message(&format!("{start}{end}"));
    has(
        &message,
        &[
            "`ld.shared.u32 %r10, [%r9]`",
            "thread (0, 0, 0): it reads",
            "thread (1, 0, 0) of the same block writes without a barrier between: 4 bytes in shared memory",
        ],
    );
    let run_right = |middle: &str| {
        run.launch(&load(&format!("{start}{middle}{end}")).unwrap()).unwrap();
        assert_eq!(run.y()[..4], [1, 0, 3, 2]);
    };
    run_right("	bar.sync 0;\n");
    run_right("	bar.warp.sync 0xffffffff;\n");
    has(
        &run.message("	mov.u32 %r6, small; st.shared.u32 [%r6], %r2;"),
        &["thread (1, 0, 0): it writes", "thread (0, 0, 0)"],
    );
    has(
        &run.message(&format!("{start}	bar.sync 0; ld.shared.u32 %r10, [%r9]; st.shared.u32 [%r8], %r2;")),
        &["it writes", "reads without"],
    );
    let two =
        "	mov.u32 %r6, small; and.b32 %r7, %r5, 31; shl.b32 %r7, %r7, 1; add.s32 %r6, %r6, %r7; cvt.u16.u32 %rs1, %r5;
	st.shared.u16 [%r6], %rs1;";
    run.launch(&load(two).unwrap()).unwrap();
    run.block = 64;
    has(&run.message(two), &["thread (32, 0, 0): it writes", "thread (0, 0, 0) of the same block"]);
}

#[test]
fn shared_memory_that_is_not_there() {
    let mut run = Run::new(&[1; 32], 128);
    run.shared = 64;
    let reads =
        |offset: u32| format!("	ld.shared.u32 %r6, [small+{offset}]; mov.u32 %r7, open; st.global.u32 [%rd5], %r6;");
    has(&run.message(&reads(128)), &["it reads 4 bytes", "beyond the 128 bytes of shared memory"]);
    has(
        &run.message("	mov.u32 %r6, small; mov.u32 %r7, 8; ld.shared.u32 %r6, [%r7];"),
        &["before the 64 bytes of shared memory".replace("64", "128").as_str()],
    );
    // Unwritten bytes are read as an undefined value: threads past the last element may read it, and throw it away.
    has(&run.message(&reads(0)), &["what it stores has no value"]);
    let kernel = load("	ld.shared.u32 %r6, [small]; st.global.u32 [%rd5], %r2;").unwrap();
    run.block = 1;
    run.launch(&kernel).unwrap();
    has(&run.message(&reads(2)), &["no multiple of 4"]);
}

#[test]
fn undefined_registers() {
    let run = Run::new(&[1; 32], 128);
    has(&run.message("	st.global.u32 [%rd5], %r50;"), &["what it stores has no value"]);
    has(&run.message("	ld.global.u32 %r6, [%rd50];"), &["its address has no value"]);
    has(&run.message("	@%p1 ret;"), &["`@%p1 ret`", "its predicate has no value"]);
    has(&run.message("	@%p1 st.global.u32 [%rd5], %r2;"), &["its predicate has no value"]);
    // After a load that is off in some lanes.
    let body = "	setp.lt.u32 %p1, %r2, 20; @%p1 ld.global.u32 %r6, [%rd4]; add.s32 %r7, %r6, 1;\n";
    has(
        &run.message(&format!("{body}	st.global.u32 [%rd5], %r7;")),
        &["thread (20, 0, 0): what it stores has no value"],
    );
    run.launch(&load(&format!("{body}	selp.b32 %r7, %r7, 9, %p1; st.global.u32 [%rd5], %r7;")).unwrap()).unwrap();
    assert_eq!(run.y()[18..22], [2, 2, 9, 9]);
    // A shuffle from a lane that takes no part has no value.
    let body =
        "	setp.lt.u32 %p1, %r2, 20; @%p1 shfl.sync.down.b32 %r6, %r2, 1, 31, 0xfffff; @%p1 st.global.u32 [%rd5], %r6;";
    has(&run.message(body), &["thread (19, 0, 0)", "no value"]);
    // Without checks nothing is found.
    let run = Run::with(Settings { checks: false, ..Settings::default() }, &[1; 32], 128);
    run.launch(&load("	st.global.u32 [%rd5], %r50;").unwrap()).unwrap();
}

#[test]
fn barriers_that_not_all_reach() {
    let mut run = Run::new(&[1; 128], 512);
    run.block = 128;
    let ends = |limit: u32| format!("	setp.gt.u32 %p1, %r5, {limit}; @%p1 ret;\n	bar.sync 0;\n{STORE}");
    has(
        &run.message(&ends(63)),
        &["`bar.sync 0`", "waits at a barrier that thread (64, 0, 0) never reaches, which has ended"],
    );
    has(&run.message(&ends(64)), &["thread (65, 0, 0) never reaches"]);
    let inside = "	setp.gt.u32 %p1, %r5, 40; @%p1 bra $over;\n	bar.sync 0;\n$over:\n	add.s32 %r6, %r2, 1; bar.sync 1;";
    has(&run.message(inside), &["PTX line 24", "thread (41, 0, 0) of the same warp does not reach with it"]);
    let other = "	setp.gt.u32 %p1, %r5, 63; @%p1 bra $over;\n	bar.sync 0;\n$over:\n	bar.sync 1;";
    has(&run.message(other), &["never reaches, which waits elsewhere"]);
    run.launch(
        &load(&format!("	setp.gt.u32 %p1, %r5, 63; @%p1 bra $over;\n	bar.sync 1, 64;\n$over:\n	bar.sync 0;\n{STORE}"))
            .unwrap(),
    )
    .unwrap();
}

#[test]
fn lanes_that_do_not_come() {
    let run = Run::new(&[1; 32], 128);
    let body = "	setp.eq.u32 %p1, %r5, 3; @%p1 bra $other;\n	bar.warp.sync 0xffffffff;\n	bra $over;\n$other:\n	bar.warp.sync 0xf;\n$over:";
    has(&run.message(body), &["lane 3 never comes to this instruction"]);
    has(&run.message("	bar.warp.sync 1;"), &["thread (1, 0, 0)", "this thread itself is none"]);
}

#[test]
fn before_earlier_launches_are_done() {
    let mut run = Run::new(&[1; 32], 128);
    let copy = load("	griddepcontrol.wait; ld.global.u32 %r6, [%rd4]; st.global.u32 [%rd5], %r6;").unwrap();
    run.launch(&copy).unwrap();
    run.early = true;
    run.launch(&copy).unwrap();
    let reads = "	ld.global.u32 %r6, [%rd5]; griddepcontrol.wait;";
    has(&run.message(reads), &["before `griddepcontrol.wait`, which an earlier launch may still write"]);
    has(&run.message(STORE), &["it writes", "an earlier launch may still write"]);
    // Bytes that the host has written since count as touched by no launch.
    run.gpu.fill(run.y, 0, 128).unwrap();
    run.launch(&load(reads).unwrap()).unwrap();
    run.results = false;
    has(&run.message("	st.global.u32 [%rd4], %r2;"), &["it writes", "an earlier launch may still read", "`k_x`"]);
}

#[test]
fn copies_that_are_not_waited_for() {
    let mut run = Run::new(&[7; 128], 128);
    run.shared = 512;
    let copy = "	mov.u32 %r6, open; shl.b32 %r7, %r5, 4; add.s32 %r6, %r6, %r7; mul.wide.u32 %rd6, %r5, 16; add.s64 %rd6, %rd1, %rd6;
	cp.async.cg.shared.global [%r6], [%rd6], 16;
";
    let read = "	ld.shared.u32 %r8, [%r6]; st.global.u32 [%rd5], %r8;";
    has(
        &run.message(&format!("{copy}{read}")),
        &[
            "it reads 4 bytes at shared address",
            "thread (0, 0, 0) of the same block copies to by `cp.async` and has not waited",
        ],
    );
    run.launch(&load(&format!("{copy}	cp.async.wait_all;\n{read}")).unwrap()).unwrap();
    assert_eq!(run.y(), [7; 32]);
    run.launch(&load(&format!("{copy}	cp.async.commit_group; cp.async.wait_group 0;\n{read}")).unwrap()).unwrap();
    has(&run.message(&format!("{copy}	cp.async.commit_group; cp.async.wait_group 1;\n{read}")), &["has not waited"]);
    has(&run.message(&format!("{copy}	cp.async.wait_group 0;\n{read}")), &["has not waited"]);
    // Only 4 of 16 bytes are read, the others are zero.
    let short = copy.replace("], 16;", "], 16, 4;");
    run.launch(&load(&format!("{short}	cp.async.wait_all;\n	ld.shared.v2.u32 {{%r8, %r9}}, [%r6]; add.s32 %r8, %r8, %r9; st.global.u32 [%rd5], %r8;")).unwrap()).unwrap();
    assert_eq!(run.y(), [7; 32]);
}

#[test]
fn a_kernel_that_never_ends() {
    let run = Run::with(Settings { limit: 10_000, ..Settings::default() }, &[1; 32], 128);
    let message = run.message("$again:\n	add.s32 %r2, %r2, 1;\n	bra.uni $again;");
    has(&message, &["PTX line 25", "`bra.uni $again`", "10000 instructions", "POINTWISE_EMULATOR_LIMIT"]);
}

#[test]
fn indices_outside_of_their_table() {
    let run = Run::new(&[1; 32], 128);
    let body = "$table: .branchtargets\n	$a,\n	$b;\n	brx.idx %r5, $table;\n$a:\n$b:";
    has(&run.message(body), &["thread (2, 0, 0): its index 2 is outside of the 2 targets"]);
}

#[test]
fn arguments_and_shapes() {
    let run = Run::new(&[1; 32], 128);
    let kernel = load(STORE).unwrap();
    assert_eq!(kernel.parameters()[2].name, "k_n");
    assert_eq!((kernel.parameters()[2].offset, kernel.parameter_bytes()), (16, 20));
    let fault = run.gpu.launch(&kernel, &Launch::new([1; 3], [32, 1, 1], &[0; 19])).unwrap_err();
    assert_eq!(fault.to_string(), "kernel `k` takes 20 bytes of arguments, and was given 19");
    let arguments = bytes(&[0; 5]);
    let shape = |grid, block, shared| {
        let launch = Launch { shared, ..Launch::new(grid, block, &arguments) };
        match run.gpu.launch(&kernel, &launch) {
            Err(Fault::Shape { why, .. }) => why,
            other => panic!("{other:?}"),
        }
    };
    has(&shape([0, 1, 1], [32, 1, 1], 0), &["its grid is [0, 1, 1]"]);
    has(&shape([1; 3], [1025, 1, 1], 0), &["1 to 1024 threads"]);
    has(&shape([1; 3], [64, 64, 1], 0), &["1 to 1024 threads"]);
    has(&shape([1; 3], [32, 1, 1], 1 << 20), &["is given 1048576 more"]);
}

#[test]
fn devices_and_kernels_are_shared_by_threads() {
    fn shared<T: Send + Sync + 'static>(_: &T) {}
    let run = Run::new(&[1; 32], 128);
    shared(&run.gpu);
    shared(&load(STORE).unwrap());
}

#[test]
fn memory_of_the_host() {
    let run = Run::new(&[1; 32], 128);
    let message = run.gpu.write(run.y + 120, &[0; 9]).unwrap_err().to_string();
    has(&message, &["9 bytes at", "are not in one allocation; the first is 120 bytes in the allocation of 128 bytes"]);
    let small = Run::with(Settings { memory_bytes: 1000, ..Settings::default() }, &[0; 32], 128);
    has(
        &small.gpu.allocate(745).unwrap_err().to_string(),
        &["745 bytes were asked for, 256 of the device's 1000 are in use"],
    );
    let address = small.gpu.allocate(744).unwrap();
    assert_eq!((small.gpu.used(), address % 256), (1000, 0));
    small.gpu.free(address).unwrap();
    assert_eq!(small.gpu.used(), 256);
    has(&small.gpu.free(address).unwrap_err().to_string(), &["no allocation begins at", "that was freed"]);
    has(&small.gpu.free(small.x + 4).unwrap_err().to_string(), &["4 bytes in the allocation"]);
    assert_ne!(small.gpu.allocate(744).unwrap(), address);
}

#[test]
fn unknown_instructions() {
    let message = |body: &str| load(body).unwrap_err().to_string();
    assert_eq!(
        message("	add.s32 %r6, %r2, 1;\n	wmma.load.a %r6, [%rd1];"),
        "kernel `k`, line 24 of the PTX: `wmma.load.a %r6, [%rd1]`: the emulator does not know this instruction"
    );
    has(&message("	add.rn.sat.s32 %r6, %r2, 1;"), &["does not know `.rn`"]);
    has(&message("	ex2.approx.f16 %rs1, %rs2;"), &["`ex2.approx.f16 %rs1, %rs2`"]);
    has(&message("	add.s32 %r6, %r2;"), &["3 operands are expected, not 2"]);
    has(&message("	add.s32 %r6, %rd2, %x;"), &["`%x` is no register or number"]);
    has(&message("	add.s64 %rd6, %r2, 1;"), &["register `%r2` has another size"]);
    has(&message("	bra $nowhere;"), &["there is no label `$nowhere`"]);
    has(&message("	ld.local.u32 %r6, [%rd1];"), &["no local or constant memory"]);
    has(&message("	mov.u64 %rd6, %clock64;"), &["`%clock64` is no register"]);
    has(&message("	ld.param.u32 %r6, [k_n+4];"), &["outside of the parameters"]);
    let module =
        |text: &str| Module::parse(&format!(".version 7.8\n.target sm_90\n.address_size 64\n{text}")).unwrap_err();
    has(
        &module(".global .b8 data[3] = {1, 2, 3};").to_string(),
        &["line 4", "no variables in global or constant memory"],
    );
    has(&module(".extern .func f;").to_string(), &["calls no functions"]);
    assert!(matches!(module("}"), LoadError::Text { line: 4, .. }));
    assert!(Module::parse("").is_err());
}
