//! Faults that are planted in kernels, one named case each: the emulator finds each, or the result is another. What is
//! not found is no fault, and stands with its reason in `EQUIVALENT`.
//!
//! Each kernel is called in many ways (`tests::planted::runs`), first as it is: what a call leaves in memory is what it
//! must leave.

use std::sync::OnceLock;

use libtest_mimic::{Arguments, Failed, Trial};
use pointwise::{DType, Device, Strategy, info, kernel::OpDef};
use tests::planted::runs::RowsLie;
use tests::planted::{self, Planted, runs};

/// A kernel, and the calls that it is tested with.
struct Kernel {
    /// The name of its cases.
    name: &'static str,
    symbol: &'static str,
    ptx: String,
    runs: Vec<runs::Run>,
    /// The memory after the calls without a fault.
    right: OnceLock<Vec<Vec<u8>>>,
}

/// A fault that changes nothing.
struct Equivalent {
    name: &'static str,
    /// The line, as [`Planted::before`] has it: if it is another, the reason has to be found anew.
    line: &'static str,
    reason: &'static str,
}

const fn equivalent(name: &'static str, line: &'static str, reason: &'static str) -> Equivalent {
    Equivalent { name, line, reason }
}

/// Faults that change nothing, with the reason, read from the PTX.
const EQUIVALENT: &[Equivalent] = &[
    equivalent(
        "formula_exp_f8e4m3_table::unchecked_first",
        "@%p bra $L__BB;",
        "without the branch to four vectors at once, the loop behind it does the same vectors one by one",
    ),
    equivalent(
        "formula_sub_i32_strided::unchecked_first",
        "@%p bra $L__BB;",
        "what goes to the way of a column beside what passes through the cache, as tensors as small as these never do",
    ),
    equivalent(
        "formula_sub_i32_strided::bound_last",
        "setp.lt.u32 %p, %r, 2;",
        "the other side selects 0, which is what a shift by 64 bits leaves of the lanes from the second on",
    ),
    equivalent(
        "formula_sub_i32_strided::load_width_last",
        "@p ld.global.cs.v4.u32 {%r, %r, %r, %r}, [%rd]; }",
        "tensors as small as these never pass through the cache: `p` is off",
    ),
    equivalent(
        "formula_relu_f16_strided::unchecked_last",
        "@%p bra $L__BB;",
        "leads back to a fifth element, which no group has: the compiler cannot know that there are four",
    ),
    equivalent(
        "formula_relu_f16_strided::unguarded_first",
        "@p ld.global.u16 %rs, [%rd]; }",
        "`p` is off for an operand that is a number, which that of a unary op never is",
    ),
    equivalent(
        "formula_relu_f16_strided::unguarded_last",
        "@p ld.global.u16 %rs, [%rd]; }",
        "`p` is off for the fourth element where threads have one, whose place is that of the first: it is loaded twice",
    ),
    equivalent(
        "binary_lookup_pairs_flat::unguarded_last",
        "@p ld.global.u8 %r, [%rd]; }",
        "`p` is off for an operand that is a number, and calls with a number take no table",
    ),
    equivalent(
        "formula_silu_f32_flat::load_width_last",
        "@p ld.global.v4.u32 {%r, %r, %r, %r}, [%rd]; }",
        "a thread of so few vectors has no second one",
    ),
    equivalent(
        "convert_f32_f16_flat::load_width_last",
        "@p ld.global.cs.v4.u32 {%r, %r, %r, %r}, [%rd]; }",
        "conversions never load in passing: `p` is whether 0 is not 0",
    ),
    equivalent(
        "random_dropout_f32_register_copy::unchecked_last",
        "@%p bra $L__BB;",
        "skips the choice of a half where the index is a multiple of 4, for which it shifts by 0 and chooses the same",
    ),
    equivalent(
        "formula_softmax_f32_held::constant_first",
        "mov.b32 %r, 0fFF800000;",
        "the largest of a thread without a vector, which no row has",
    ),
    equivalent(
        "formula_layer_norm_bf16_streamed::constant_first",
        "mov.b32 %r, 0f00000000;",
        "instead of 0 a subnormal number, which is lost in the sum",
    ),
    equivalent(
        "formula_softmax_bf16_streamed::constant_first",
        "mov.b32 %r, 0fFF800000;",
        "the largest of a thread without a vector, which no row has",
    ),
    equivalent(
        "formula_softmax_f32_held::constant_last",
        "add.rn.f32 %r, %r, 0f00000000;",
        "instead of 0 a subnormal number, which is lost in the sum",
    ),
    equivalent(
        "formula_softmax_bf16_streamed::load_width_first",
        "@p ld.global.v4.u32 {%r, %r, %r, %r}, [%rd]; }",
        "zeros in the place of half the elements: e^x counts from another number then, and in 16 bits the shares are the same",
    ),
    equivalent(
        "formula_softmax_bf16_streamed::bound_first",
        "setp.gt.u32 %p, %r, 32;",
        "a streamed row has one thread, or is long and has 512: none has 32",
    ),
    equivalent(
        "formula_softmax_bf16_streamed::unchecked_first",
        "@%p bra $L__BB;",
        "a row of 512 threads is a block: the way of shorter rows finds row 0 of the block and the same thread",
    ),
    equivalent(
        "formula_layer_norm_bf16_streamed::bound_first",
        "setp.gt.u32 %p, %r, 32;",
        "a streamed row has one thread, or is long and has 512: none has 32",
    ),
    equivalent(
        "formula_layer_norm_bf16_streamed::unchecked_first",
        "@%p bra $L__BB;",
        "a row of 512 threads is a block: the way of shorter rows finds row 0 of the block and the same thread",
    ),
    equivalent(
        "formula_softmax_bf16_staged::constant_first",
        "selp.f32 %r, %r, 0fFF800000, %p;",
        "the largest of a thread whose first vector is not whole, which none of these rows has",
    ),
    equivalent(
        "formula_softmax_bf16_staged::constant_last",
        "add.rn.f32 %r, %r, 0f00000000;",
        "instead of 0 a subnormal number, which is lost in the sum",
    ),
    equivalent(
        "formula_layer_norm_bf16_staged::constant_first",
        "add.rn.f32 %r, %r, 0f00000000;",
        "instead of 0 a subnormal number, which is lost in the sum",
    ),
    equivalent(
        "formula_rms_norm_backward_f32_held_sum::unchecked_first",
        "@%p bra $L__BB;",
        "a row of several warps is a block: the way of shorter rows finds row 0 of the block and the same thread",
    ),
    equivalent(
        "formula_rms_norm_backward_f32_held_sum::element_size_first",
        "mul.wide.s32 %rd, %r, 4;",
        "the place of the row of a weight, which is the same row for all",
    ),
    equivalent(
        "formula_rms_norm_backward_f32_held_sum::element_size_last",
        "mul.wide.s32 %rd, %r, 4;",
        "the place of the row of a weight, which is the same row for all",
    ),
    equivalent(
        "formula_rms_norm_backward_f32_held_sum::constant_first",
        "mov.b32 %r, 0f00000000;",
        "the sum of a thread without a vector, which none of these rows has",
    ),
    equivalent(
        "formula_rms_norm_backward_f32_held_sum::constant_last",
        "add.rn.f32 %r, %r, 0f00000000;",
        "instead of 0 a subnormal number, which is lost in the sum",
    ),
    equivalent(
        "formula_layer_norm_backward_bf16_held_sum::unchecked_first",
        "@%p bra $L__BB;",
        "a row of several warps is a block: the way of shorter rows finds row 0 of the block and the same thread",
    ),
    equivalent(
        "formula_layer_norm_backward_bf16_held_sum::constant_first",
        "mov.b32 %r, 0f00000000;",
        "the sum of a thread without a vector, which none of these rows has",
    ),
    equivalent(
        "formula_layer_norm_backward_bf16_held_sum::shift_first",
        "shl.b32 %r, %r, 3;",
        "the first vector of a thread, which all of these rows have",
    ),
    equivalent(
        "formula_layer_norm_backward_bf16_held_sum::element_size_first",
        "mul.wide.s32 %rd, %r, 2;",
        "the place of the row of a weight, which is the same row for all",
    ),
    equivalent(
        "formula_layer_norm_backward_bf16_held_sum::unguarded_first",
        "@p ld.global.v4.u32 {%r, %r, %r, %r}, [%rd]; }",
        "`p` is off for a row that is not there alone: the last row is read in its place, for nothing",
    ),
    equivalent(
        "formula_layer_norm_backward_bf16_held_sum::constant_last",
        "add.rn.f32 %r, %r, 0f00000000;",
        "instead of 0 a subnormal number, which is lost in the sum",
    ),
    equivalent(
        "formula_layer_norm_backward_f32_fold::unguarded_first",
        "@p ld.global.u32 %r, [%rd]; }",
        "the first of four chunks is always there",
    ),
    equivalent(
        "formula_layer_norm_backward_f32_fold::constant_first",
        "mov.b32 %r, 0f00000000;",
        "instead of 0 a subnormal number, which is lost in the sum",
    ),
    equivalent(
        "formula_layer_norm_backward_f32_fold::constant_last",
        "mov.b32 %r, 0f00000000;",
        "instead of 0 a subnormal number, which is lost in the sum",
    ),
    equivalent(
        "fused_rows_held::bound_first",
        "setp.ge.u32 %out, %row, %items;",
        "a row of several warps is a block, and there are no more blocks than rows",
    ),
    equivalent(
        "fused_rows_of_four::bound_first",
        "setp.ge.u32 %out, %row, %items;",
        "a row of several warps is a block, and there are no more blocks than rows",
    ),
    equivalent(
        "fused_rows_of_four::constant_last",
        "mov.b32 %t, 0f00000000;",
        "the parts of warps that are not there: instead of 0 a subnormal number, which is lost in the sum",
    ),
    equivalent(
        "fused_rows_again::bound_first",
        "setp.ge.u32 %out, %row, %items;",
        "a row of several warps is a block, and there are no more blocks than rows",
    ),
    equivalent(
        "fused_rows_held::constant_last",
        "mov.b32 %t, 0f00000000;",
        "the parts of warps that are not there: instead of 0 a subnormal number, which is lost in the sum",
    ),
];

fn main() {
    let arguments = Arguments::from_args();
    if pointwise::embed::embedded().is_empty() {
        eprintln!("NOT TESTED: no kernels are embedded to plant faults in: {}", pointwise::embed::embedded().note());
        libtest_mimic::run(&arguments, Vec::new()).exit();
    }
    let mut trials = vec![Trial::test("there_are_enough", there_are_enough)];
    for kernel in kernels() {
        let kernel: &'static Kernel = Box::leak(Box::new(kernel));
        let name = kernel.name;
        trials.push(Trial::test(format!("{name}::without_a_fault"), || kernel.right().map(|_| ())));
        for fault in planted::all(&kernel.ptx) {
            trials.push(Trial::test(format!("{name}::{}", fault.name), move || is_found(kernel, &fault)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// The shapes of operands whose gradients are summed over rows.
const SUMMED: [[usize; 2]; 9] =
    [[1, 8], [8600, 8], [8600, 16], [8600, 32], [70, 400], [6, 256], [6, 512], [5, 1000], [2, 2040]];

/// Lengths of rows by single elements, of rows that shared memory keeps, and of one that is too long for it.
const STREAMED: &[usize] = &[5, 20, 30, 17_000, 20_001, 20_008, 120_000];

/// Lengths of rows that are no aligned vectors: parts of a warp, a warp, and several.
const STAGED: &[usize] = &[44, 100, 197, 1021, 2999];

/// Kernels of every template that the family's ops share.
fn kernels() -> Vec<Kernel> {
    let kernel = |symbol, runs| {
        let ptx = pointwise::embed::embedded().ptx(symbol, 90).unwrap_or_default();
        Kernel { name: symbol, symbol, ptx, runs, right: OnceLock::new() }
    };
    let fused = |name, (ptx, runs)| Kernel { name, symbol: "pointwise_fused", ptx, runs, right: OnceLock::new() };
    let unary = |symbol, op: &str, dtype, strategy| {
        let def: &'static OpDef = tests::unary().find(|def| def.info.name == op).expect("an op of the family");
        kernel(symbol, runs::unary(def, dtype, strategy))
    };
    let several = |symbol, op: &str, dtype, strategy| {
        let def = info::op(op).expect("an op of the family");
        kernel(symbol, runs::several(def, dtype, strategy))
    };
    let rows = |symbol: &'static str, op: &str, dtype, lies: &[RowsLie], lengths: &[usize]| {
        let def = info::op(op).expect("an op of the family");
        kernel(symbol, lies.iter().flat_map(|&lie| runs::rows(def, dtype, lengths, lie)).collect())
    };
    let sums = |symbol: &'static str, op: &str, dtype, shapes: &[[usize; 2]]| {
        let def = info::op(op).expect("an op of the family");
        kernel(symbol, runs::sums(def, dtype, shapes))
    };
    let sub = info::op("sub").expect("an op of the family");
    vec![
        unary("formula_silu_f32_flat", "silu", DType::F32, Strategy::RegisterCopy),
        kernel("formula_relu_f16_strided", {
            let relu: &'static OpDef = info::op("relu").expect("an op of the family");
            let by = [Strategy::ExplicitParallel, Strategy::Direct];
            by.into_iter()
                .flat_map(|by| runs::unary(relu, DType::F16, by).into_iter().chain(runs::strided(relu, DType::F16, by)))
                .collect()
        }),
        unary("formula_exp_f8e4m3_table", "exp", DType::F8E4M3, Strategy::Table),
        several("formula_add_f32_flat", "add", DType::F32, Strategy::Auto),
        several("formula_mul_f16_rows", "mul", DType::F16, Strategy::Auto),
        // By single elements, one and four a thread, and where they fit by vectors across the ends of rows.
        kernel(
            "formula_sub_i32_strided",
            [Strategy::Direct, Strategy::ExplicitParallel, Strategy::Auto]
                .into_iter()
                .flat_map(|by| runs::several(sub, DType::I32, by))
                .chain(runs::two_columns(sub, DType::I32))
                .collect(),
        ),
        several("formula_pow_f32_flat", "pow", DType::F32, Strategy::Auto),
        several("binary_lookup_pairs_flat", "pow", DType::F8E4M3, Strategy::Table),
        several("formula_lerp_f32_rows", "lerp", DType::F32, Strategy::Auto),
        several("formula_mul_backward_f32_flat", "mul_backward", DType::F32, Strategy::Auto),
        kernel("convert_f32_f16_flat", runs::convert(DType::F32, DType::F16, Strategy::RegisterCopy)),
        kernel("random_dropout_f32_register_copy", runs::dropout(DType::F32)),
        rows(
            "formula_softmax_f32_held",
            "softmax",
            DType::F32,
            &[RowsLie::Dense, RowsLie::Once],
            &[8, 64, 128, 512, 1000, 1536, 2048],
        ),
        rows(
            "formula_softmax_bf16_streamed",
            "softmax",
            DType::BF16,
            &[RowsLie::Dense, RowsLie::Once, RowsLie::Apart],
            STREAMED,
        ),
        rows(
            "formula_layer_norm_bf16_streamed",
            "layer_norm",
            DType::BF16,
            &[RowsLie::Dense, RowsLie::Once, RowsLie::Apart],
            STREAMED,
        ),
        rows(
            "formula_softmax_bf16_staged",
            "softmax",
            DType::BF16,
            &[RowsLie::Dense, RowsLie::Once, RowsLie::Apart],
            STAGED,
        ),
        rows(
            "formula_layer_norm_bf16_staged",
            "layer_norm",
            DType::BF16,
            &[RowsLie::Dense, RowsLie::Once, RowsLie::Apart],
            STAGED,
        ),
        // Chunks of one row and of two, parts of a warp and several warps, a tail.
        sums("formula_rms_norm_backward_f32_held_sum", "rms_norm_backward", DType::F32, &SUMMED),
        sums("formula_layer_norm_backward_bf16_held_sum", "layer_norm_backward", DType::BF16, &SUMMED),
        sums(
            "formula_layer_norm_backward_f32_fold",
            "layer_norm_backward",
            DType::F32,
            &[SUMMED[1], [70, 12], SUMMED[7]],
        ),
        fused("fused_elements", runs::fused_elements()),
        fused("fused_rows_held", runs::fused_rows(&[1928, 2044])),
        fused("fused_rows_of_four", runs::fused_rows(&[1536])),
        fused("fused_rows_again", runs::fused_rows(&[9000, 5004])),
        fused("fused_rows_of_a_warp", runs::fused_rows(&[64, 20])),
    ]
}

impl Kernel {
    /// Returns the memory after the calls without a fault.
    fn right(&self) -> Result<&[Vec<u8>], Failed> {
        if let Some(right) = self.right.get() {
            return Ok(right);
        }
        let device = Device::emulated()?;
        let right = self.runs.iter().map(|run| run(&device)).collect::<Result<Vec<_>, _>>()?;
        Ok(self.right.get_or_init(|| right))
    }
}

fn there_are_enough() -> Result<(), Failed> {
    let mut count = 0;
    for Kernel { name, ptx, .. } in kernels() {
        let found = planted::all(&ptx).len();
        if found == 0 {
            return Err(format!("no fault is planted in {name}: is there no such kernel?").into());
        }
        count += found;
    }
    if count < 200 { Err(format!("{count} faults").into()) } else { Ok(()) }
}

/// The fault is found, or is known to be none.
fn is_found(kernel: &Kernel, fault: &Planted) -> Result<(), Failed> {
    let (device, right) = (Device::emulated()?, kernel.right()?);
    let differs = || kernel.runs.iter().zip(right).any(|(run, right)| run(&device).map_or(true, |got| got != *right));
    let is_found = pointwise::__private::with_kernel(&fault.ptx, kernel.symbol, differs)?;
    let name = format!("{}::{}", kernel.name, fault.name);
    let known = EQUIVALENT.iter().find(|known| known.name == name);
    let Planted { line, before, .. } = fault;
    match known {
        None if is_found => Ok(()),
        None => Err(format!("nobody finds it: line {line}, `{before}`, was changed").into()),
        Some(known) if is_found => {
            Err(format!("it is found, though it is said to change nothing: {}", known.reason).into())
        }
        Some(known) if known.line == before => Ok(()),
        Some(known) => {
            Err(format!("line {line} is `{before}`, no longer `{}`: why does it change nothing?", known.line).into())
        }
    }
}
