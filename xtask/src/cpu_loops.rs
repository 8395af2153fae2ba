//! `cargo xtask cpu-loops`: checks the machine code of the CPU executor's loops.
//!
//! Reads the assembly of the release build. A loop that calls a function for every element, or that was left scalar,
//! gives the right results ten times slower, and no test of results would say so. The test build cannot take its place: it
//! has debug assertions and checks for overflow, and some of its loops on f32 are scalar.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use pointwise_core::DType;

use crate::shell::{Background, cargo, root};

/// The levels of the loops: functions with these names, made once for each loop.
const LEVELS: [&str; 2] = ["pointwise::cpu::level::avx2::<", "pointwise::cpu::level::avx512::<"];

/// The functions that a formula's loop calls for a block: those of a uniform operand, and the loops that load and store one.
const SOURCE: &str = "<pointwise::cpu::operand::Source>::";
const OPERANDS: &str = "pointwise::cpu::operand::";

/// The loop of an op and an element type.
const FORMULA: &str = "pointwise::cpu::formula::Run";

/// The functions that any loop may call.
const ALLOWED: [&str; 3] = ["memcpy", "memmove", "memset"];

/// Ops with a loop that breaks a rule for a known reason. The long path of a power's gradient stays a function, called
/// for each element. So does an angle's for f16 by AVX2. A root's gradient has more single instructions by AVX-512.
const KNOWN: [&str; 6] = ["PowBackward", "SqrtBackward", "::Sin>", "::Cos>", "::SinBackward>", "::CosBackward>"];

/// One function.
#[derive(Debug, Default)]
struct Loop {
    name: String,
    /// Float instructions on whole registers, and on single elements.
    packed: usize,
    scalar: usize,
    /// Functions called.
    calls: Vec<String>,
}

/// A running compilation. It ends with the value.
pub(crate) struct Compiles {
    cargo: Background,
    assembly: PathBuf,
}

/// Starts to compile; none where there is nothing to read.
pub(crate) fn start() -> Result<Option<Compiles>> {
    if !cfg!(target_arch = "x86_64") {
        println!("cpu-loops reads x86-64 assembly; nothing to read here");
        return Ok(None);
    }
    let folder = root().join("target/cpu-loops");
    fs::create_dir_all(&folder)?;
    let assembly = folder.join("pointwise.s");
    let emit = format!("asm={}", assembly.display());
    let mut command = cargo();
    command.args(["rustc", "--quiet", "--release", "-p", "pointwise", "--lib", "--"]).args([
        "--emit",
        &emit,
        // Names that say op and element type; one file.
        "-Csymbol-mangling-version=v0",
        "-Ccodegen-units=1",
    ]);
    Ok(Some(Compiles { cargo: Background::start(&mut command)?, assembly }))
}

impl Compiles {
    /// Waits for the compiler and reads what it wrote.
    pub(crate) fn check(self) -> Result<()> {
        self.cargo.end()?;
        read(&self.assembly)
    }
}

pub(crate) fn check() -> Result<()> {
    start()?.map_or(Ok(()), Compiles::check)
}

fn read(file: &Path) -> Result<()> {
    let text = fs::read_to_string(file).with_context(|| format!("no assembly in {}", file.display()))?;
    let loops = loops(&text);
    if loops.is_empty() {
        bail!("no function of the assembly begins with {LEVELS:?}");
    }
    let faults: Vec<String> = loops.iter().filter_map(fault).collect();
    if !faults.is_empty() {
        bail!("{} of {} loops:\n{}", faults.len(), loops.len(), faults.join("\n"));
    }
    let floats = loops.iter().filter(|function| is_float_map(&function.name)).count();
    if floats == 0 {
        bail!("no loop on floats was found in {}: their names have changed", file.display());
    }
    println!(
        "{} CPU loops call nothing of libm; all {floats} on floats are vector code, but for some of {KNOWN:?}",
        loops.len()
    );
    Ok(())
}

/// The loops of an assembly file.
fn loops(text: &str) -> Vec<Loop> {
    let mut all = Vec::new();
    let mut open: Option<Loop> = None;
    for line in text.lines() {
        if let Some(label) = line.strip_suffix(':').filter(|label| label.starts_with("_R")) {
            let name = format!("{:#}", rustc_demangle::demangle(label));
            let is_loop = LEVELS.iter().any(|level| name.starts_with(level));
            open = is_loop.then(|| Loop { name, ..Loop::default() });
        } else if line.starts_with(".Lfunc_end") {
            all.extend(open.take());
        } else if let Some(function) = &mut open {
            function.read(line.trim());
        }
    }
    all
}

impl Loop {
    fn read(&mut self, line: &str) {
        let (mnemonic, operands) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if let Some(called) = called(mnemonic, operands) {
            if !self.calls.contains(&called) {
                self.calls.push(called);
            }
            return;
        }
        // Comparisons of floats by their bits are vector code as much as those by value.
        let counts = is_arithmetic(mnemonic, ["ps", "pd"]) || mnemonic.starts_with("vpcmp");
        if counts && ["%ymm", "%zmm"].iter().any(|register| operands.contains(register)) {
            self.packed += 1;
        }
        if is_arithmetic(mnemonic, ["ss", "sd"]) {
            self.scalar += 1;
        }
    }
}

/// The function that an instruction calls, or whose address it takes in order to.
fn called(mnemonic: &str, operands: &str) -> Option<String> {
    let is_call = mnemonic.starts_with("call");
    let leaves = mnemonic.starts_with("jmp") && !operands.starts_with(['.', '*']);
    if let Some((symbol, _)) = operands.split_once("@GOTPCREL") {
        return Some(symbol.trim_start_matches('*').to_owned());
    }
    // `call *%rax`: the address came from the line above.
    if (is_call || leaves) && !operands.starts_with('*') {
        return Some(operands.trim_end_matches("@PLT").to_owned());
    }
    None
}

/// `vaddps`, `vfmadd213ss` and their like, ending in one of two suffixes. Moves and conversions are not arithmetic.
fn is_arithmetic(mnemonic: &str, suffixes: [&str; 2]) -> bool {
    let Some(stem) = suffixes.iter().find_map(|suffix| mnemonic.strip_prefix('v')?.strip_suffix(suffix)) else {
        return false;
    };
    let stems =
        ["add", "sub", "mul", "div", "sqrt", "max", "min", "round", "rndscale", "blendv", "and", "andn", "or", "xor"];
    stems.contains(&stem) || ["cmp", "fmadd", "fmsub", "fnmadd", "fnmsub"].iter().any(|start| stem.starts_with(start))
}

/// The first of the types that the loop of an op is made for: its operands'. `None` for other loops, such as
/// conversions: some of them have no vector instructions.
fn element(name: &str) -> Option<&str> {
    if name.contains("pointwise_core::cast::Convert") {
        return None;
    }
    let (_, types) = name.split_once(FORMULA)?;
    types.split(',').next()
}

/// True if the loop runs an op on floats. The Rust types have the names of the element types, in capitals or not.
fn is_float_map(name: &str) -> bool {
    let word = element(name).and_then(|element| element.rsplit(['<', ':']).next());
    word.and_then(|word| DType::from_name(&word.to_lowercase())).is_some_and(DType::is_float)
}

/// True if a function loads or stores a block of elements.
fn serves_blocks(symbol: &str) -> bool {
    let name = format!("{:#}", rustc_demangle::demangle(symbol));
    let is_loop = |level: &&str| name.strip_prefix(*level).is_some_and(|of| of.starts_with(OPERANDS));
    name.starts_with(SOURCE) || LEVELS.iter().any(is_loop)
}

/// Returns the fault of a loop, if it has one.
fn fault(function: &Loop) -> Option<String> {
    let is_map = element(&function.name).is_some();
    let is_known = KNOWN.iter().any(|op| function.name.contains(op));
    // The other loops (rotary embedding, random numbers) call functions of this crate for whole rows.
    let is_fine = |symbol: &&String| {
        let is_own = symbol.starts_with("_R") || *symbol == "_Unwind_Resume";
        ALLOWED.contains(&symbol.as_str()) || serves_blocks(symbol) || is_own && (!is_map || is_known)
    };
    if let Some(symbol) = function.calls.iter().find(|symbol| !is_fine(symbol)) {
        return Some(format!("{} calls {symbol}", function.name));
    }
    // The last few elements are done one by one, by as many instructions; constants of a call are made once.
    (is_float_map(&function.name) && !is_known && 2 * function.packed < function.scalar).then(|| {
        format!(
            "{} has {} float instructions on vectors, {} on single elements",
            function.name, function.packed, function.scalar
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = concat!(
        "_RINvNtNtCsbGfiMLyBDCb_9pointwise3cpu5level4avx2INtNtB4_7formula3RunffINtNtCs41aNMYLLtqg_14pointwise_core",
        "5arity5UnaryNtNtNtB1a_6family5unary3ExpEKj1_KB2j_EEB6_"
    );

    fn of(body: &str) -> Vec<Loop> {
        loops(&format!("{NAME}:\n{body}\n.Lfunc_end0:\n"))
    }

    #[test]
    fn a_loop_for_avx512_is_read_too() {
        let all = loops(&format!(
            "{}:\n\tvrndscaleps\t$9, %zmm0, %zmm1\n\tvpcmpeqd\t%zmm0, %zmm1, %k1\n\tvroundss\t$9, %xmm0, %xmm0, %xmm1\n\
             .Lfunc_end0:\n",
            NAME.replace("4avx2", "6avx512").replace("B1a_", "B1c_").replace("KB2j_", "KB2l_")
        ));
        assert_eq!((all.len(), all[0].packed, all[0].scalar), (1, 2, 1));
    }

    #[test]
    fn a_vector_loop_is_fine() {
        let all =
            of("\tcallq\t*memcpy@GOTPCREL(%rip)\n\tvfmadd213ps\t%ymm0, %ymm1, %ymm2\n\tvaddss\t%xmm0, %xmm1, %xmm2");
        assert_eq!((all[0].packed, all[0].scalar), (1, 1));
        assert!(is_float_map(&all[0].name), "{}", all[0].name);
        assert_eq!(fault(&all[0]), None);
    }

    #[test]
    fn a_call_of_libm_is_found() {
        for line in ["callq\t*fmaf@GOTPCREL(%rip)", "movq\tfmaf@GOTPCREL(%rip), %r15", "callq\tfmaf@PLT", "jmp\tfmaf"] {
            let all = of(&format!("\tvaddps\t%ymm0, %ymm1, %ymm2\n\t{line}"));
            assert!(fault(&all[0]).unwrap().ends_with("calls fmaf"), "{line}");
        }
    }

    #[test]
    fn a_call_of_a_function_of_the_maths_is_found() {
        let fault_of = |symbol: &str| fault(&of(&format!("\tvaddps\t%ymm0, %ymm1, %ymm2\n\tcallq\t{symbol}"))[0]);
        let spread = "_RINvMNtNtCsbGfiMLyBDCb_9pointwise3cpu7operandNtB3_6Source6spreadaEB7_";
        let maths = "_RNvNtCs41aNMYLLtqg_14pointwise_core5maths3exp";
        assert_eq!(fault_of(spread), None);
        // Another loop, or a part of this one that stayed a function, called for each element.
        assert!(fault_of(NAME).unwrap().ends_with(NAME));
        assert!(fault_of(maths).unwrap().ends_with(maths));
    }

    #[test]
    fn a_scalar_loop_is_found() {
        let all = of("\tvmulss\t%xmm0, %xmm1, %xmm2\n\tvmovups\t%ymm0, (%rax)\n\tjmp\t.LBB0_1\n\tcallq\t*%rbx");
        assert!(fault(&all[0]).unwrap().contains("0 float instructions on vectors, 1 on single"));
    }
}
