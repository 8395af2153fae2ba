//! Small kernels for tests: a body between lines that load its operands and store its results.
#![allow(dead_code, reason = "no test uses all of it")]

use pointwise_emulator::{Counts, Fault, Gpu, Kernel, Launch, LoadError, Module, Settings};

/// A kernel `k(x, y, n)`.
///
/// Before the body: `%rd1` = x, `%rd2` = y, `%r1` = n, `%r2` = the thread's number in the grid, `%rd4` and `%rd5` = the
/// thread's word of x and of y. The first line of the body is line 23.
pub(crate) fn text(body: &str) -> String {
    format!(
        ".version 7.8
.target sm_90
.address_size 64
.shared .align 16 .b8 small[64];
.extern .shared .align 16 .b8 open[];
.visible .entry k(
	.param .u64 .ptr .align 1 k_x,
	.param .u64 .ptr .align 1 k_y,
	.param .u32 k_n
)
{{
	.reg .pred %p<10>; .reg .b16 %rs<30>; .reg .b32 %r<60>; .reg .b64 %rd<60>; .reg .f32 %f<10>;
	ld.param.u64 %rd1, [k_x];
	ld.param.u64 %rd2, [k_y];
	ld.param.u32 %r1, [k_n];
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %ntid.x;
	mov.u32 %r5, %tid.x;
	mad.lo.s32 %r2, %r3, %r4, %r5;
	mul.wide.u32 %rd3, %r2, 4;
	add.s64 %rd4, %rd1, %rd3;
	add.s64 %rd5, %rd2, %rd3;
{body}
	ret;
}}
"
    )
}

pub(crate) const FIRST_LINE: u32 = 23;

pub(crate) fn load(body: &str) -> Result<Kernel, LoadError> {
    Ok(Module::parse(&text(body))?.kernel("k").expect("it is there"))
}

/// A launch of a small kernel.
pub(crate) struct Run {
    pub(crate) gpu: Gpu,
    pub(crate) x: u64,
    pub(crate) y: u64,
    pub(crate) grid: u32,
    pub(crate) block: u32,
    pub(crate) shared: u32,
    pub(crate) early: bool,
    /// True if y is named as the only result.
    pub(crate) results: bool,
    /// Bytes of y.
    pub(crate) bytes: usize,
}

impl Run {
    /// Returns a run with this x, and a y of `y_bytes` bytes that nobody wrote.
    pub(crate) fn new(x: &[u32], y_bytes: usize) -> Run {
        Run::with(Settings::default(), x, y_bytes)
    }

    pub(crate) fn with(settings: Settings, x: &[u32], y_bytes: usize) -> Run {
        let gpu = Gpu::new(settings);
        let from = gpu.allocate(x.len() * 4).expect("memory");
        gpu.write(from, &bytes(x)).expect("it is allocated");
        let to = gpu.allocate(y_bytes).expect("memory");
        Run { gpu, x: from, y: to, grid: 1, block: 32, shared: 0, early: false, results: true, bytes: y_bytes }
    }

    pub(crate) fn launch(&self, kernel: &Kernel) -> Result<Counts, Fault> {
        let mut arguments = Vec::new();
        arguments.extend(self.x.to_le_bytes());
        arguments.extend(self.y.to_le_bytes());
        arguments.extend((self.grid * self.block).to_le_bytes());
        let results = self.y..self.y + self.bytes as u64;
        let mut launch = Launch::new([self.grid, 1, 1], [self.block, 1, 1], &arguments);
        launch.shared = self.shared;
        launch.early = self.early;
        launch.results = self.results.then_some(std::slice::from_ref(&results));
        self.gpu.launch(kernel, &launch)
    }

    pub(crate) fn y(&self) -> Vec<u32> {
        let mut bytes = vec![0; self.bytes];
        self.gpu.read(self.y, &mut bytes).expect("it is allocated");
        bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().expect("4 bytes"))).collect()
    }

    /// The message of the launch's fault.
    pub(crate) fn message(&self, body: &str) -> String {
        let kernel = load(body).expect("it is PTX");
        self.launch(&kernel).expect_err("a fault").to_string()
    }
}

pub(crate) fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Operands that are interesting to integers and floating point numbers.
pub(crate) fn operands() -> Vec<[u32; 3]> {
    let special = [
        0,
        1,
        2,
        5,
        31,
        32,
        33,
        0x7f,
        0x80,
        0xff,
        0x7fff,
        0x8000,
        0xffff,
        0x1234_5678,
        0x7fff_ffff,
        0x8000_0000,
        0x8000_0001,
        0xffff_ffff,
        0xffff_fffb,
        0x3f80_0000,
        0xbf80_0000,
        0x4049_0fdb,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x0080_0000,
        0x0000_ffff,
        0x7f7f_ffff,
        0x3c00_bc00,
        0x7e00_3555,
    ];
    let mut operands = Vec::new();
    let mut state = 12345_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state ^ state >> 13
    };
    for a in special {
        for b in special {
            operands.push([a, b, special[next() as usize % special.len()]]);
        }
    }
    for _ in 0..124 {
        operands.push([next(), next(), next()]);
    }
    operands
}

/// Runs a body once for each of [`operands`]: `%r10`, `%r11`, `%r12` are the operands, `%rd10` the first and second one
/// as a long, `%rd11` the third and first; `%rs10` to `%rs12` are the low halves. Results are in `%r20` and `%rd20`.
pub(crate) fn results(body: &str) -> Vec<(u32, u64)> {
    let operands = operands();
    let whole = format!(
        "	mul.wide.u32 %rd6, %r2, 12; add.s64 %rd6, %rd1, %rd6;
	ld.global.u32 %r10, [%rd6]; ld.global.u32 %r11, [%rd6+4]; ld.global.u32 %r12, [%rd6+8];
	mov.b64 %rd10, {{%r10, %r11}}; mov.b64 %rd11, {{%r12, %r10}};
	cvt.u16.u32 %rs10, %r10; cvt.u16.u32 %rs11, %r11; cvt.u16.u32 %rs12, %r12;
	mov.b32 %r20, 0; mov.b64 %rd20, 0;
{body}
	mul.wide.u32 %rd7, %r2, 16; add.s64 %rd7, %rd2, %rd7;
	st.global.u32 [%rd7], %r20; st.global.u64 [%rd7+8], %rd20;"
    );
    let kernel = load(&whole).unwrap_or_else(|error| panic!("{error}"));
    let mut run = Run::new(&operands.concat(), operands.len() * 16);
    run.block = 128;
    assert_eq!(operands.len() % 128, 0, "the operands fill blocks");
    run.grid = u32::try_from(operands.len() / 128).expect("few");
    run.launch(&kernel).unwrap_or_else(|fault| panic!("{body}: {fault}"));
    run.y().chunks(4).map(|words| (words[0], u64::from(words[2]) | u64::from(words[3]) << 32)).collect()
}

/// Compares the word that a body gives with a reference.
pub(crate) fn word(body: &str, reference: impl Fn(u32, u32, u32) -> u32) {
    for ([a, b, c], (got, _)) in operands().into_iter().zip(results(body)) {
        let want = reference(a, b, c);
        assert_eq!(got, want, "{body} of {a:#x}, {b:#x}, {c:#x}: {got:#x}, not {want:#x}");
    }
}

/// Compares the f32 that a body gives with a reference: NaN is the hardware's.
pub(crate) fn single(body: &str, reference: impl Fn(f32, f32, f32) -> f32) {
    word(body, |a, b, c| {
        let want = reference(f32::from_bits(a), f32::from_bits(b), f32::from_bits(c));
        if want.is_nan() { 0x7fff_ffff } else { want.to_bits() }
    });
}

/// Compares the long that a body gives with a reference of `%rd10`, `%rd11` and `%r12`.
pub(crate) fn long(body: &str, reference: impl Fn(u64, u64, u32) -> u64) {
    for ([a, b, c], (_, got)) in operands().into_iter().zip(results(body)) {
        let (x, y) = (u64::from(a) | u64::from(b) << 32, u64::from(c) | u64::from(a) << 32);
        let want = reference(x, y, c);
        assert_eq!(got, want, "{body} of {x:#x}, {y:#x}, {c:#x}: {got:#x}, not {want:#x}");
    }
}
