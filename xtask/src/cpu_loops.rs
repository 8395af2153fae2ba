//! `cargo xtask cpu-loops`: what the compiler made of the CPU executor's loops.
//!
//! Disassembles `pointwise` as the tests are compiled with. A loop that calls a function for every element, or that was left
//! scalar, gives the right results ten times slower, and no test of results would say so.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::shell::{artifact, build_tests};

/// The loops are those of these levels: functions named so, made once for each loop.
const LEVELS: [&str; 2] = ["pointwise::cpu::level::avx2::<", "pointwise::cpu::level::avx512::<"];

/// The option by which names are found, which `.cargo/config.toml` has.
const MANGLING: &str = "-Csymbol-mangling-version=v0";

/// What loops of formulas call for a block: a uniform operand, and the loops that load and store one.
const SPREAD: &str = "<pointwise::cpu::operand::Source>::spread::<";
const OPERANDS: &str = "pointwise::cpu::operand::";

/// The loop of an op and an element type.
const FORMULA: &str = "pointwise::cpu::formula::Run";

/// What any loop may call.
const ALLOWED: [&str; 3] = ["memcpy", "memmove", "memset"];

/// Element types whose maths is floating-point.
const FLOATS: [&str; 5] = ["<f32", "::f16", "::bf16", "::F8E4M3", "::F8E5M2"];

/// Ops of which a loop is known to break a rule. The long path of a power's gradient stays a function, called for each
/// element; that of an angle stays one for f16 by AVX2; a root's gradient has more single instructions by AVX-512.
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

/// Reads the loops of the library; nothing where there is nothing to read.
pub(crate) fn check() -> Result<()> {
    if !cfg!(target_arch = "x86_64") {
        println!("cpu-loops reads x86-64 instructions; nothing to read here");
        return Ok(());
    }
    let library = artifact(&build_tests("ops")?, "pointwise", "rlib")?;
    let loops = disassembled(&library)?;
    if loops.is_empty() {
        bail!(
            "no function in {} has a name that begins with {LEVELS:?}: RUSTFLAGS, where set, needs {MANGLING}",
            library.display()
        );
    }
    let faults: Vec<String> = loops.iter().filter_map(fault).collect();
    if !faults.is_empty() {
        bail!("{} of {} loops:\n{}", faults.len(), loops.len(), faults.join("\n"));
    }
    let floats = loops.iter().filter(|function| is_float_map(&function.name)).count();
    if floats == 0 {
        bail!("no loop on floats was found in {}: their names have changed", library.display());
    }
    println!(
        "{} CPU loops call nothing of libm; all {floats} on floats are vector code, but for some of {KNOWN:?}",
        loops.len()
    );
    Ok(())
}

/// The loops of a library.
fn disassembled(library: &Path) -> Result<Vec<Loop>> {
    let mut objdump = Command::new("objdump");
    objdump.args(["--disassemble", "--reloc", "--no-show-raw-insn", "--wide"]).arg(library);
    let mut child =
        objdump.stdout(Stdio::piped()).spawn().context("cannot run objdump, which comes with the linker")?;
    let text = child.stdout.take().context("objdump has no output")?;
    let loops = loops(BufReader::new(text).lines()).context("cannot read what objdump says")?;
    let status = child.wait().context("cannot wait for objdump")?;
    if !status.success() {
        bail!("objdump failed ({status}) on {}", library.display());
    }
    Ok(loops)
}

/// The loops in what `objdump` says.
fn loops(lines: impl Iterator<Item = std::io::Result<String>>) -> std::io::Result<Vec<Loop>> {
    let mut all = Vec::new();
    let mut open: Option<Loop> = None;
    for line in lines {
        let line = line?;
        // `0000000000000000 <SYMBOL>:` begins a function, `  1f:\tINSTRUCTION` is in it, and what the linker puts in.
        if let Some((_, symbol)) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            all.extend(open.take());
            let name = format!("{:#}", rustc_demangle::demangle(symbol));
            let is_loop = LEVELS.iter().any(|level| name.starts_with(level));
            open = is_loop.then(|| Loop { name, ..Loop::default() });
        } else if let Some(function) = &mut open
            && let Some((_, text)) = line.split_once(":\t").or_else(|| line.split_once(": "))
        {
            function.read(text);
        }
    }
    all.extend(open);
    Ok(all)
}

impl Loop {
    fn read(&mut self, text: &str) {
        let (word, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        if word.starts_with("R_X86_64_") {
            if let Some(called) = called(word, operands)
                && !self.calls.contains(&called)
            {
                self.calls.push(called);
            }
            return;
        }
        // Comparisons of floats by their bits are vector code as much as those by value.
        let counts = is_arithmetic(word, ["ps", "pd"]) || word.starts_with("vpcmp");
        if counts && ["%ymm", "%zmm"].iter().any(|register| operands.contains(register)) {
            self.packed += 1;
        }
        if is_arithmetic(word, ["ss", "sd"]) {
            self.scalar += 1;
        }
    }
}

/// The function of a relocation, which the instruction before calls, or whose address it takes in order to.
fn called(kind: &str, operands: &str) -> Option<String> {
    let is_code = kind.ends_with("_PLT32") || kind.contains("_GOTPCREL");
    let (symbol, _) = operands.trim().rsplit_once(['-', '+'])?;
    is_code.then(|| symbol.to_owned())
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

/// The first of the types that the loop of an op is made for: its operands'. `None` for other loops, those of
/// conversions among them, of which some have no vector instructions.
fn element(name: &str) -> Option<&str> {
    if name.contains("pointwise_core::cast::Convert") {
        return None;
    }
    let (_, types) = name.split_once(FORMULA)?;
    types.split(',').next()
}

/// Whether the loop is that of an op on floats.
fn is_float_map(name: &str) -> bool {
    element(name).is_some_and(|element| FLOATS.iter().any(|float| element.ends_with(float)))
}

/// Whether a function loads or stores a block of elements.
fn serves_blocks(symbol: &str) -> bool {
    let name = format!("{:#}", rustc_demangle::demangle(symbol));
    let is_loop = |level: &&str| name.strip_prefix(*level).is_some_and(|of| of.starts_with(OPERANDS));
    name.starts_with(SPREAD) || LEVELS.iter().any(is_loop)
}

/// What is wrong with a loop.
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
    // Elements are done one by one, by as many instructions, in up to three places: the last few of a loop, and those of
    // its versions for a uniform operand. A part that was left scalar within a loop has as many copies as a vector lanes.
    (is_float_map(&function.name) && !is_known && 4 * function.packed < function.scalar).then(|| {
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
        named(NAME, body)
    }

    /// A function's loops, of its instructions and relocations.
    fn named(name: &str, body: &str) -> Vec<Loop> {
        let text = format!(
            "Disassembly of section .text.{name}:\n\n0000000000000000 <{name}>:\n{body}\n\n0000000000000000 <f>:\n"
        );
        loops(text.lines().map(|line| Ok(line.to_owned()))).unwrap()
    }

    fn instruction(text: &str) -> String {
        format!("   0:\t{text}\n")
    }

    fn relocation(kind: &str, symbol: &str) -> String {
        format!("\t\t\t2: R_X86_64_{kind}\t{symbol}-0x4\n")
    }

    #[test]
    fn a_loop_for_avx512_is_read_too() {
        let name = NAME.replace("4avx2", "6avx512").replace("B1a_", "B1c_").replace("KB2j_", "KB2l_");
        let all = named(
            &name,
            &["vrndscaleps $0x9,%zmm0,%zmm1", "vpcmpeqd %zmm0,%zmm1,%k1", "vroundss $0x9,%xmm0,%xmm0,%xmm1"]
                .map(instruction)
                .concat(),
        );
        assert_eq!((all.len(), all[0].packed, all[0].scalar), (1, 2, 1));
    }

    #[test]
    fn a_vector_loop_is_fine() {
        let all = of(&[
            instruction("call   *0x0(%rip)        # 6 <f+0x6>"),
            relocation("GOTPCRELX", "memcpy"),
            instruction("vfmadd213ps %ymm0,%ymm1,%ymm2"),
            instruction("vmulps 0x0(%rip),%ymm1,%ymm2        # 1f <f+0x1f>"),
            relocation("PC32", ".LCPI0_1"),
            instruction("vaddss %xmm0,%xmm1,%xmm2"),
        ]
        .concat());
        assert_eq!((all.len(), all[0].packed, all[0].scalar), (1, 2, 1));
        assert!(is_float_map(&all[0].name), "{}", all[0].name);
        assert_eq!(fault(&all[0]), None);
    }

    #[test]
    fn a_call_of_libm_is_found() {
        for kind in ["GOTPCREL", "GOTPCRELX", "REX_GOTPCRELX", "PLT32"] {
            let all = of(&(instruction("vaddps %ymm0,%ymm1,%ymm2") + &relocation(kind, "fmaf")));
            assert!(fault(&all[0]).unwrap().ends_with("calls fmaf"), "{kind}");
        }
    }

    #[test]
    fn a_call_of_a_function_of_the_maths_is_found() {
        let called = |symbol: &str| instruction("vaddps %ymm0,%ymm1,%ymm2") + &relocation("PLT32", symbol);
        let fault_of = |symbol: &str| fault(&of(&called(symbol))[0]);
        let spread = "_RINvMNtNtCsbGfiMLyBDCb_9pointwise3cpu7operandNtB3_6Source6spreadaEB7_";
        let maths = "_RNvNtCs41aNMYLLtqg_14pointwise_core5maths3exp";
        assert_eq!(fault_of(spread), None);
        // Another loop, or a part of this one that stayed a function, called for each element.
        assert!(fault_of(NAME).unwrap().ends_with(NAME));
        assert!(fault_of(maths).unwrap().ends_with(maths));
    }

    #[test]
    fn a_scalar_loop_is_found() {
        let all = of(&["vmulss %xmm0,%xmm1,%xmm2", "vmovups %ymm0,(%rax)", "jmp    0 <f>", "call   *%rbx"]
            .map(instruction)
            .concat());
        assert!(fault(&all[0]).unwrap().contains("0 float instructions on vectors, 1 on single"));
    }
}
