//! The tables of docs/accuracy.md.

use std::fmt::Write as _;

use crate::record::{Record, Row};

/// Results as Markdown, PyTorch's beside them where there are any.
pub(crate) fn markdown(ours: &Record, peers: Option<&Record>) -> String {
    let mut out = String::new();
    for what in ["One operand", "Several operands", GRADIENTS[0], GRADIENTS[1]] {
        let rows = || ours.rows.iter().filter(|row| group(row) == what);
        if rows().next().is_none() {
            continue;
        }
        let _ = writeln!(out, "### {what}, f32\n");
        let _ = writeln!(out, "| op | bound | max | mean | rounded | at | PyTorch max | mean | rounded |");
        let _ = writeln!(out, "|---|---|---|---|---|---|---|---|---|");
        for row in rows().filter(|row| row.dtype == "f32") {
            let [max, mean, rounded] = cells(row);
            let [their_max, their_mean, their_rounded] = peer(peers, row);
            let at = if row.not_rounded == 0 { String::new() } else { places(row) };
            let _ = writeln!(
                out,
                "| {} | {} | {max} | {mean} | {rounded} | {at} | {their_max} | {their_mean} | {their_rounded} |",
                row.op,
                row.bound.map(|bound| bound.to_string()).unwrap_or_default(),
            );
        }
        let _ = writeln!(out, "\n### {what}, f16 and bf16\n");
        let _ = writeln!(out, "| op | f16 max | mean | rounded | PyTorch | bf16 max | mean | rounded | PyTorch |");
        let _ = writeln!(out, "|---|---|---|---|---|---|---|---|---|");
        for row in rows().filter(|row| row.dtype == "f16") {
            let _ = write!(out, "| {} |", row.op);
            for dtype in ["f16", "bf16"] {
                match ours.row(&row.op, dtype) {
                    Some(row) => {
                        let their = peer(peers, row);
                        let their = if their[1].is_empty() { their[0].clone() } else { their.join(", ") };
                        let _ = write!(out, " {} | {their} |", cells(row).join(" | "));
                    }
                    None => out += " | | | |",
                }
            }
            out += "\n";
        }
        let small: Vec<&Row> = rows().filter(|row| row.dtype.starts_with("f8")).collect();
        let off: Vec<String> = small
            .iter()
            .filter(|row| row.not_rounded > 0)
            .map(|row| format!("{} in {} ({} of {})", row.op, row.dtype, row.not_rounded, row.compared))
            .collect();
        if small.is_empty() {
            out += "\n";
        } else if off.is_empty() {
            let _ = writeln!(out, "\nfp8: every result of the {} sweeps is correctly rounded.\n", small.len());
        } else {
            let _ = writeln!(out, "\nfp8: correctly rounded but for {}.\n", off.join(", "));
        }
    }
    out
}

/// The headings of gradients.
const GRADIENTS: [&str; 2] = ["Gradients of ops of one operand", "Gradients of ops of several operands"];

fn group(row: &Row) -> &'static str {
    match row.operands {
        _ if row.is_gradient() => GRADIENTS[usize::from(row.op.contains('/'))],
        1 => "One operand",
        _ => "Several operands",
    }
}

/// Largest and mean distance, and the share of correctly rounded results.
fn cells(row: &Row) -> [String; 3] {
    let mean = format!("{:.3}", row.mean_ulp);
    if row.not_rounded == 0 {
        return ["exact".to_owned(), mean, "all".to_owned()];
    }
    let max = match row.max_ulp {
        None => "other NaN".to_owned(),
        // Distances that gradients may have do not count.
        Some(0.0) if row.is_gradient() => "allowed".to_owned(),
        Some(0.0) => "sign of 0".to_owned(),
        Some(max) if max < 1000.0 => format!("{max:.3}"),
        Some(max) => format!("{max:.1e}"),
    };
    let max = if row.wrong_nan > 0 { format!("{max}, other NaN") } else { max };
    let mean = if row.mean_ulp < 1000.0 { mean } else { format!("{:.1e}", row.mean_ulp) };
    // Never 100 % where a result is not.
    [max, mean, format!("{:.2} %", (100.0 * row.rounded()).min(99.99))]
}

fn peer(peers: Option<&Record>, row: &Row) -> [String; 3] {
    peers.and_then(|peers| peers.row(&row.op, &row.dtype)).map(cells).unwrap_or_default()
}

/// The worst input, in six digits.
fn places(row: &Row) -> String {
    let short = |x: &String| x.parse::<f64>().map_or_else(|_| x.clone(), |x| format!("{:.5e}", x));
    row.worst.iter().map(short).collect::<Vec<_>>().join(", ")
}
