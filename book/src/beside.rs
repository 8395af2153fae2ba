//! Pages of dropout, masked_fill, the position encodings and the rotary embeddings.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use pointwise::info::{MASKED_FILL, OpInfo};
use pointwise::kernel::SinusoidalLayout::Interleaved;
use pointwise::rope::{ROPE, ROPE_SETTINGS, RopeDef, rope_op};
use pointwise::{DType, Device, kernels, ops};

use crate::curves::Point;
use crate::pages::sections;
use crate::plot::{Axes, Curve, draw_over};
use crate::python;

/// A figure: draws it, and returns the line of the page.
type Figure = fn(&Path) -> Result<String>;

/// An op, and what its page has of its own.
struct Beside {
    info: &'static OpInfo,
    /// A call in Rust; a test compiles it.
    call: &'static str,
    figure: Option<Figure>,
    /// The link to more text.
    more: &'static str,
}

const OUTSIDE: &str = "More: [the notes below the table of the ops](../ops.md#outside-the-tables).";
const ROTARY: &str = include_str!("snippets/rope_neox.rs");

fn all() -> [Beside; 4] {
    [
        Beside { info: &MASKED_FILL, call: include_str!("snippets/masked_fill.rs"), figure: None, more: OUTSIDE },
        Beside {
            info: &kernels::dropout(0.5).def().info,
            call: include_str!("snippets/dropout.rs"),
            figure: None,
            more: OUTSIDE,
        },
        Beside {
            info: &kernels::alibi().def().info,
            call: include_str!("snippets/alibi.rs"),
            figure: Some(alibi),
            more: OUTSIDE,
        },
        Beside {
            info: &kernels::sinusoidal(Interleaved).def().info,
            call: include_str!("snippets/sinusoidal.rs"),
            figure: Some(sinusoidal),
            more: OUTSIDE,
        },
    ]
}

/// Writes the pages and their figures; returns their names.
///
/// # Errors
/// A file that cannot be written.
pub(crate) fn write(folder: &Path, accuracy: &str, performance: &str) -> Result<Vec<&'static str>> {
    let mut names = Vec::new();
    for op in all() {
        let name = op.info.name;
        let mut page = of_op(&op, folder)?;
        sections(&mut page, name, accuracy, performance)?;
        fs::write(folder.join(format!("{name}.md")), page)?;
        names.push(name);
    }
    for def in ROPE {
        let mut page = of_rope(def, folder)?;
        sections(&mut page, def.name, accuracy, performance)?;
        fs::write(folder.join(format!("{}.md", def.name)), page)?;
        names.push(def.name);
    }
    Ok(names)
}

fn of_op(op: &Beside, folder: &Path) -> Result<String> {
    let (name, info) = (op.info.name, op.info);
    let mut page = format!("# {name}\n\n{}\n\n```rust,ignore\n{}```\n\n", info.doc.trim(), op.call);
    if let Some(figure) = op.figure {
        write!(page, "{}\n\n", figure(folder)?)?;
    }
    page += "| | |\n|---|---|\n";
    python_rows(&mut page, name)?;
    let types = info.types.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(", ");
    writeln!(page, "| element types | {types} |\n\n{}", op.more)?;
    Ok(page)
}

fn python_rows(page: &mut String, name: &str) -> Result<()> {
    writeln!(page, "| Python | `{}` |", python::call(name)?)?;
    if python::has_inplace(name) {
        writeln!(page, "| in place | `pointwise.{name}_` |")?;
    }
    Ok(())
}

fn of_rope(def: &'static RopeDef, folder: &Path) -> Result<String> {
    let name = def.name;
    let call = ROTARY.replace("rope_neox", name);
    let mut page = format!("# {name}\n\n{}\n\n```rust,ignore\n{call}```\n\n", def.doc);
    page += "How tensors lie, positions, tables, precision, and a kernel object for a loop: \
             [Rotary embedding](../rope.md).\n\n";
    page += "![which lanes are a pair](../figures/pairs.svg)\n\n";
    let frequencies = frequencies(def)?;
    // Plain frequencies need no picture.
    if frequencies.iter().any(|(_, ratio)| (ratio - 1.0).abs() > 1e-9) {
        let curves = [Curve { name, points: &frequencies }];
        let axes = Axes { x: "pair", y: "part of the plain frequency", from: 0.0, to: 63.0 };
        draw_over(&folder.join(format!("{name}.svg")), &curves, &axes, None)?;
        write!(
            page,
            "The frequency of each pair of a head of 128 lanes, with the defaults, as a part of that of `rope_neox`:\n\n\
             ![frequencies of {name}]({name}.svg)\n\n"
        )?;
    }
    page += "| | |\n|---|---|\n";
    python_rows(&mut page, name)?;
    page += "| element types | f32, f16, bf16 |\n\n";
    let short = name.trim_start_matches("rope_");
    let settings: Vec<_> = ROPE_SETTINGS.iter().filter(|setting| setting.doc.contains(short)).collect();
    if !settings.is_empty() {
        page += "## Parameters\n\nOf `pointwise run` and of Python; in Rust those of `RopeConfig`.\n\n";
        page += "| parameter | default | |\n|---|---|---|\n";
        for setting in settings {
            writeln!(page, "| `{}` | {} | {} |", setting.name, setting.default, setting.doc)?;
        }
    }
    Ok(page)
}

/// The frequencies of a named op over the plain frequencies.
fn frequencies(def: &'static RopeDef) -> Result<Vec<Point>> {
    const LANES: usize = 128;
    const TOKENS: u64 = 4096;
    let plain = rope_op("rope_neox").context("there is no rope_neox")?;
    let of =
        |def: &'static RopeDef| -> Result<Vec<f64>> { Ok(def.op().config(LANES)?.frequencies(TOKENS)?.inv_freq_f64) };
    let pairs = of(def)?.into_iter().zip(of(plain)?).enumerate();
    Ok(pairs.map(|(k, (own, plain))| (k as f64, own / plain)).collect())
}

/// The bias that a query adds to its scores with the keys before it.
fn alibi(folder: &Path) -> Result<String> {
    const HEADS: usize = 8;
    const TOKENS: usize = 64;
    let y = ops::alibi(&Device::cpu(), DType::F32, HEADS, TOKENS)?.to_vec::<f32>()?;
    let last = |head: usize| -> Vec<Point> {
        let row = &y[(head * TOKENS + TOKENS - 1) * TOKENS..][..TOKENS];
        row.iter().enumerate().map(|(j, bias)| (j as f64, f64::from(*bias))).collect()
    };
    let [first, third, eighth] = [0, 2, 7].map(last);
    let curves = [("head 0", &first), ("head 2", &third), ("head 7", &eighth)];
    let curves = curves.map(|(name, points)| Curve { name, points });
    let axes = Axes { x: "key j", y: "bias", from: 0.0, to: (TOKENS - 1) as f64 };
    draw_over(&folder.join("alibi.svg"), &curves, &axes, None)?;
    Ok(format!("The bias of query {} of {TOKENS}, with {HEADS} heads:\n\n![bias over the key](alibi.svg)", TOKENS - 1))
}

/// A few lanes over the positions.
fn sinusoidal(folder: &Path) -> Result<String> {
    const TOKENS: usize = 101;
    const LANES: usize = 64;
    let y = ops::sinusoidal(&Device::cpu(), DType::F32, TOKENS, LANES, Interleaved)?.to_vec::<f32>()?;
    let lane =
        |lane: usize| -> Vec<Point> { (0..TOKENS).map(|p| (p as f64, f64::from(y[p * LANES + lane]))).collect() };
    let [a, b, c] = [8, 16, 17].map(lane);
    let curves = [("lane 8", &a), ("lane 16", &b), ("lane 17", &c)].map(|(name, points)| Curve { name, points });
    let axes = Axes { x: "position", y: "y", from: 0.0, to: (TOKENS - 1) as f64 };
    draw_over(&folder.join("sinusoidal.svg"), &curves, &axes, None)?;
    Ok(format!("Three of {LANES} lanes:\n\n![lanes over the position](sinusoidal.svg)"))
}

/// The calls on the pages, compiled.
#[cfg(test)]
#[allow(dead_code)]
mod snippets {
    mod alibi {
        include!("snippets/alibi.rs");
    }
    mod dropout {
        include!("snippets/dropout.rs");
    }
    mod masked_fill {
        include!("snippets/masked_fill.rs");
    }
    mod rope_neox {
        include!("snippets/rope_neox.rs");
    }
    mod sinusoidal {
        include!("snippets/sinusoidal.rs");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rotary_embedding_is_a_function() {
        use pointwise::rope::{rope_llama31, rope_longrope, rope_neox, rope_non_neox, rope_yarn};
        let q = pointwise::Tensor::full(&Device::cpu(), 1.0_f32, [1, 2, 1, 8]).unwrap();
        rope_neox(&q, None, 0).unwrap();
        rope_non_neox(&q, None, 0).unwrap();
        rope_llama31(&q, None, 0).unwrap();
        rope_yarn(&q, None, 0).unwrap();
        rope_longrope(&q, None, 0).unwrap();
        let names: Vec<&str> = ROPE.iter().map(|def| def.name).collect();
        assert_eq!(names, ["rope_neox", "rope_non_neox", "rope_llama31", "rope_yarn", "rope_longrope"]);
    }

    #[test]
    fn scaled_frequencies_are_between_the_factor_and_one() {
        let ratios = frequencies(rope_op("rope_llama31").unwrap()).unwrap();
        assert!((ratios[0].1 - 1.0).abs() < 1e-9 && (ratios[63].1 - 0.125).abs() < 1e-9);
    }
}
