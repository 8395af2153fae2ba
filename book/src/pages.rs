//! A page for each op.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use pointwise::DType;
use pointwise::info::{Accuracy, OpInfo, all, op};

use crate::errors::{self, Errors};
use crate::plot::{Curve, draw};
use crate::{beside, curves, python, several, tables};

/// Values beyond these are not drawn.
const MOST: f64 = 6.0;

/// Writes all pages, their figures and their place in `SUMMARY.md`; returns how many there are.
///
/// # Errors
/// A file that cannot be read or written.
pub(crate) fn write(out: &Path) -> Result<usize> {
    let read = |name: &str| fs::read_to_string(out.join(name)).with_context(|| format!("reading {name}"));
    let (accuracy, performance, ops) = (read("accuracy.md")?, read("performance.md")?, read("ops.md")?);
    let curves = read(errors::FILE)?;
    let errors = Errors::read(&curves)?;
    let folder = out.join("ops");
    fs::create_dir_all(&folder)?;
    let infos = infos();
    for info in &infos {
        let figures = match info.operands.len() {
            1 => figures(&folder, info, &errors)?,
            _ => several::figures(&folder, info, &errors)?,
        };
        let page = page(info, &figures, &accuracy, &performance)?;
        fs::write(folder.join(format!("{}.md", info.name)), page)?;
    }
    let mut names: Vec<&str> = infos.iter().map(|info| info.name).collect();
    names.extend(beside::write(&folder, &accuracy, &performance)?);
    fs::write(out.join("ops.md"), linked(&ops, &names))?;
    let summary = out.join("SUMMARY.md");
    let with_pages = summary_with(&fs::read_to_string(&summary)?, &names)?;
    fs::write(summary, with_pages)?;
    Ok(names.len())
}

/// The ops that compute no gradient.
fn infos() -> Vec<&'static OpInfo> {
    all().map(|def| &def.info).filter(|info| !info.is_gradient()).collect()
}

/// The table of the ops with a link to each one's page.
fn linked(table: &str, names: &[&str]) -> String {
    let line = |line: &str| {
        let name = line.strip_prefix("| `").and_then(|rest| rest.split_once("` |")).map(|(name, _)| name);
        match name.filter(|name| names.contains(name)) {
            Some(name) => line.replacen(&format!("`{name}`"), &format!("[`{name}`](ops/{name}.md)"), 1),
            None => line.to_owned(),
        }
    };
    table.lines().map(line).collect::<Vec<_>>().join("\n") + "\n"
}

/// Returns the summary with the pages of the ops below the page of their table.
fn summary_with(summary: &str, names: &[&str]) -> Result<String> {
    let mut text = String::new();
    let mut is_there = false;
    for line in summary.lines() {
        text += &format!("{line}\n");
        if line.contains("](ops.md)") {
            is_there = true;
            let indent = line.len() - line.trim_start().len() + 2;
            for name in names {
                text += &format!("{:indent$}- [{name}](ops/{name}.md)\n", "");
            }
        }
    }
    is_there.then_some(text).ok_or_else(|| anyhow!("SUMMARY.md has no line for ops.md, below which the ops' pages go"))
}

/// Draws the figures of an op of one operand; returns the lines of its page that show them.
fn figures(folder: &Path, info: &OpInfo, errors: &Errors<'_>) -> Result<Vec<String>> {
    let name = info.name;
    let Some(def) = op(name).filter(|def| def.info.supports(DType::F32)) else { return Ok(Vec::new()) };
    let mut lines = Vec::new();
    let (value, gradient) = (curves::value(def)?, curves::gradient(def)?);
    let mut drawn = vec![Curve { name, points: &value }];
    if !gradient.is_empty() {
        drawn.push(Curve { name: "gradient", points: &gradient });
    }
    draw(&folder.join(format!("{name}.svg")), &drawn, "y", Some(MOST))?;
    lines.push(format!("![{name} over x]({name}.svg)\n"));
    lines.extend(errors.figures(folder, info, "x")?);
    Ok(lines)
}

fn page(info: &OpInfo, figures: &[String], accuracy: &str, performance: &str) -> Result<String> {
    let name = info.name;
    let mut page = format!("# {name}\n\n{}\n", info.doc.trim());
    let formula = tidy(info.formula);
    page += "\n";
    if !is_plumbing(&formula) {
        write!(page, "```rust,ignore\n{} -> {formula}\n```\n\n", info.operands.join(", "))?;
    }
    for line in figures {
        writeln!(page, "{line}")?;
    }
    writeln!(page, "| | |\n|---|---|")?;
    let calls: Vec<String> = calls(info).iter().map(|call| format!("`{call}`")).collect();
    writeln!(page, "| Rust | {} |", calls.join("; "))?;
    writeln!(page, "| Python | `{}` |", python::call(name)?)?;
    let inplace = if python::has_inplace(name) { format!("; in place `pointwise.{name}_`") } else { String::new() };
    writeln!(page, "| torch op | `torch.ops.pointwise.{name}`{inplace} |")?;
    for param in info.params {
        writeln!(page, "| parameter {} | {} by default |", param.name, shown(param.default))?;
    }
    let types = info.types.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(", ");
    let converted = if info.properties.int_to_float { "; integers and bool are converted to f32" } else { "" };
    writeln!(page, "| element types | {types}{converted} |")?;
    writeln!(page, "| result | {} |", if info.bool_results() == 0 { "of the operands' type" } else { "bool" })?;
    let bound = match info.accuracy {
        Accuracy::Exact => "correctly rounded in f32, and once more to narrower types".to_owned(),
        accuracy => format!("at most {} ULP in f32", accuracy.bound(DType::F32)),
    };
    writeln!(page, "| bound | {bound} |")?;
    if let Some(gradient) = op(name).and_then(|def| def.backward) {
        let (operands, formula) = (gradient.info.operands.join(", "), tidy(gradient.info.formula));
        write!(page, "\n## Gradient\n\n{}\n\n", gradient.info.doc.trim())?;
        match is_plumbing(&formula) {
            true => writeln!(
                page,
                "`ops::{}`, [derived from the formula](../gradients.md#derived-from-the-formula).",
                gradient.info.name
            )?,
            false => write!(page, "```rust,ignore\n{operands} -> {formula}\n```\n")?,
        }
    }
    sections(&mut page, name, accuracy, performance)?;
    Ok(page)
}

/// True if a formula only names a function: the op's own, or one that derives a gradient.
fn is_plumbing(formula: &str) -> bool {
    let derives = ["of_one(", "of_two(", "of_three(", "of_choice("].iter().any(|function| formula.contains(function));
    let one_call = formula.split_once('.').and_then(|(_, rest)| rest.strip_suffix(')')).is_some_and(|call| {
        let is_word = |letter: char| letter.is_alphanumeric() || ['_', '(', ',', ' '].contains(&letter);
        call.matches('(').count() == 1 && call.chars().all(is_word)
    });
    derives || one_call
}

/// The calls of an op in Rust, with the defaults of its parameters. `book/tests/calls.rs` compiles them.
fn calls(info: &OpInfo) -> Vec<String> {
    let name = if info.name == "where" { "where_cond" } else { info.name };
    let operands: Vec<String> = info.arguments().iter().map(|x| format!("&{x}")).collect();
    let params: Vec<String> = info.params.iter().map(|param| shown(param.default)).collect();
    // Ops of several operands have their parameters in kernel objects alone.
    match params.as_slice() {
        [] => vec![format!("ops::{name}({})?", operands.join(", "))],
        _ if operands.len() > 1 => vec![
            format!("ops::{name}({})?", operands.join(", ")),
            format!("kernels::{name}({}).run({})?", params.join(", "), operands.join(", ")),
        ],
        _ => vec![format!("ops::{name}({}, {})?", operands.join(", "), params.join(", "))],
    }
}

/// Appends the figures of an op, of accuracy and of speed, if there are any.
pub(crate) fn sections(page: &mut String, name: &str, accuracy: &str, performance: &str) -> Result<()> {
    let what = "Errors in units of the last place (ULP)";
    section(page, "Accuracy", what, "../accuracy.md", accuracy, name)?;
    let what = "Beside a copy, and beside the fastest other library";
    section(page, "Speed", what, "../performance.md", performance, name)
}

/// The figures that other pages have of an op.
fn section(page: &mut String, heading: &str, what: &str, link: &str, source: &str, name: &str) -> Result<()> {
    let mut found = tables::find(source, name);
    // On a part of the inputs alone.
    found.retain(|found| found.section != "Next to PyTorch");
    if !found.is_empty() {
        let text = tables::markdown(&found);
        write!(page, "\n## {heading}\n\n{what}; [how it was measured]({link}).\n\n{}\n", text.trim_end())?;
    }
    Ok(())
}

/// A parameter's default as it is written in Rust.
fn shown(default: f64) -> String {
    match default {
        f64::MAX => "f64::MAX".to_owned(),
        f64::MIN => "f64::MIN".to_owned(),
        f64::INFINITY => "f64::INFINITY".to_owned(),
        f64::NEG_INFINITY => "f64::NEG_INFINITY".to_owned(),
        _ => default.to_string(),
    }
}

/// A formula's tokens as they are written by hand.
fn tidy(formula: &str) -> String {
    let one_line = formula.split_whitespace().collect::<Vec<_>>().join(" ");
    let pairs =
        [(" . ", "."), (" (", "("), ("( ", "("), (" )", ")"), (" , ", ", "), (":: ", "::"), (" ::", "::"), (" ;", ";")];
    // Words that stand too close to a bracket.
    let words = [
        ("let(", "let ("),
        ("if(", "if ("),
        ("*(", "* ("),
        ("/(", "/ ("),
        ("+(", "+ ("),
        ("=(", "= ("),
        ("&(", "& ("),
        ("(- ", "(-"),
        ("= - ", "= -"),
        ("> - ", "> -"),
        ("{ - ", "{ -"),
        ("! ", "!"),
    ];
    let text = pairs.iter().chain(&words).fold(one_line, |text, (from, to)| text.replace(from, to));
    let text = text.strip_prefix("- ").map_or(text.clone(), |rest| format!("-{rest}"));
    // A block around one expression says nothing.
    match text.strip_prefix("{ ").and_then(|text| text.strip_suffix(" }")) {
        Some(inner) if !inner.contains([';', '{', '}']) => inner.to_owned(),
        _ if text.contains(';') || text.len() > LINE => broken(&text),
        _ => text,
    }
}

/// The most letters of a formula in one line.
const LINE: usize = 80;

/// A formula with a line for each statement, its blocks indented.
fn broken(text: &str) -> String {
    let (mut lines, mut line, mut depth) = (Vec::new(), String::new(), 0_usize);
    let mut end = |line: &mut String, depth: usize| {
        let words = std::mem::take(line);
        if !words.trim().is_empty() {
            lines.push(format!("{:1$}{2}", "", 4 * depth, words.trim()));
        }
    };
    for letter in text.chars() {
        match letter {
            '{' => {
                line.push(letter);
                end(&mut line, depth);
                depth += 1;
            }
            '}' => {
                end(&mut line, depth);
                depth = depth.saturating_sub(1);
                line.push(letter);
            }
            ';' => {
                line.push(letter);
                end(&mut line, depth);
            }
            _ => line.push(letter),
        }
    }
    end(&mut line, depth);
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_the_table_become_links() {
        let table = "| `exp` | x |\n| `exp_backward` | x |\n";
        assert_eq!(linked(table, &["exp"]), "| [`exp`](ops/exp.md) | x |\n| `exp_backward` | x |\n");
    }

    #[test]
    fn formulas_are_written_as_by_hand() {
        assert_eq!(tidy("{ of_two (Pow , a , b) }"), "of_two(Pow, a, b)");
        assert_eq!(tidy("if x > T :: ZERO { x } else { y }"), "if x > T::ZERO { x } else { y }");
        assert_eq!(tidy("(- a) . mul_add (g * (b - a) , c)"), "(-a).mul_add(g * (b - a), c)");
        assert_eq!(tidy("- x"), "-x");
        assert_eq!(tidy("! x . is_nan () & ! y"), "!x.is_nan() & !y");
        assert_eq!(
            tidy("if (x > - three) & (x != y) { x } else { - y }"),
            "if (x > -three) & (x != y) { x } else { -y }"
        );
        let text = "{ let d = b - a ; if d { d } else { a } }";
        let expected = "{\n    let d = b - a;\n    if d {\n        d\n    } else {\n        a\n    }\n}";
        assert_eq!(tidy(text), expected);
    }

    #[test]
    fn formulas_that_name_a_function_are_left_out() {
        for formula in ["x.gelu()", "x.clamp(min, max)", "b.scaled_add(alpha, a)", "of_one(Gelu, grad, x)"] {
            assert!(is_plumbing(formula), "{formula}");
        }
        for formula in ["-x", "a * b", "gate.silu() * value", "if x > T::ZERO { x } else { x * slope }", "a / b"] {
            assert!(!is_plumbing(formula), "{formula}");
        }
    }

    /// The file of the calls is written by `POINTWISE_BLESS=1`.
    #[test]
    fn calls_on_the_pages_are_compiled() {
        let mut text =
            "//! The calls on the ops' pages, compiled. `POINTWISE_BLESS=1 cargo test -p book` writes this file.\n\
                        \nuse pointwise::prelude::*;\n"
                .to_owned();
        for info in infos() {
            let operands: Vec<String> = info.arguments().iter().map(|x| format!("{x}: Tensor")).collect();
            let calls: Vec<String> = calls(info).iter().map(|call| format!("    {call};\n")).collect();
            let (name, operands) = (info.name, operands.join(", "));
            text += &format!(
                "\n#[allow(dead_code)]\nfn page_{name}({operands}) -> Result<()> {{\n{}    Ok(())\n}}\n",
                calls.concat()
            );
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calls.rs");
        if std::env::var_os("POINTWISE_BLESS").is_some() {
            fs::write(&path, &text).unwrap();
        }
        assert!(
            fs::read_to_string(&path).unwrap_or_default() == text,
            "book/tests/calls.rs is not what the pages have"
        );
    }

    #[test]
    fn pages_stand_below_their_table() {
        let summary = "# Summary\n\n- [Ops](ops.md)\n- [Bench](bench.md)\n";
        let expected = "# Summary\n\n- [Ops](ops.md)\n  - [exp](ops/exp.md)\n- [Bench](bench.md)\n";
        assert_eq!(summary_with(summary, &["exp"]).unwrap(), expected);
        assert!(summary_with("- [Bench](bench.md)\n", &["exp"]).is_err());
    }
}
