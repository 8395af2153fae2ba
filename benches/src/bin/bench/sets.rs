//! The rows of each set.

use pointwise::rope::ROPE;
use pointwise::{
    DType,
    info::{MASKED_FILL, OpInfo, listed},
};

use crate::workload::{Row, RowId, read_params, reference};
use pointwise_cli::error::Result;

/// The values of `--set`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Set {
    /// the 431 rows of the public TileOPs run
    Reference,
    /// every op on every float type (i32, i64 and bool where an op takes no floats), 2^28 elements
    Large,
    /// copy, silu, add and gelu in bf16 and f32, tensors from 1 KiB to 4 GiB
    Sizes,
    /// all of them
    All,
}

impl Set {
    /// True if the rows of `name` are part of it.
    pub(crate) fn has(self, name: &str) -> bool {
        match self {
            Set::Reference => name == "reference",
            Set::Large => name == "large",
            Set::Sizes => name == "sizes",
            Set::All => true,
        }
    }
}

/// The rows of a set.
///
/// # Errors
/// The errors of the file of workloads.
pub(crate) fn rows(set: Set) -> Result<Vec<Row>> {
    Ok(match set {
        Set::Reference => reference()?,
        Set::Large => large(),
        Set::Sizes => sizes(),
        Set::All => [reference()?, large(), sizes()].concat(),
    })
}

/// Elements of a tensor of the set `large`: 2^28.
const SIDE: usize = 1 << 14;
/// The types it goes through.
const FLOATS: [DType; 5] = [DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2];

/// Returns every op but those on rows.
fn infos() -> impl Iterator<Item = &'static OpInfo> {
    listed().filter(|info| !info.is_of_rows())
}

/// Every op on large tensors.
pub(crate) fn large() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |op: &str, takes: &[DType], shapes: &[&[usize]], params: &str| {
        let mut types: Vec<DType> = FLOATS.into_iter().filter(|dtype| takes.contains(dtype)).collect();
        if types.is_empty() {
            types = vec![DType::I32, DType::I64, DType::Bool];
        } else if op.starts_with("logical") {
            // Bools are what they are for.
            types.push(DType::Bool);
        }
        rows.extend(types.into_iter().map(|dtype| row("large", op, dtype, "", shapes, params)));
    };
    let square: &[usize] = &[SIDE, SIDE];
    for info in infos() {
        let params = match info.name {
            "clamp" => "min=-0.5;max=0.5",
            "round_decimals" => "decimals=2",
            "masked_fill" => "value=-100.0",
            _ if info.is_random() => "p=0.5;seed=42",
            _ => "",
        };
        // The last of fewer arguments than operands holds two of them.
        let count = info.arguments().len();
        let shape = |k: usize| match () {
            () if info.is_channel(k) => &[SIDE][..],
            () if k + 1 == count && count < info.operands.len() => &[SIDE, 2 * SIDE],
            () => square,
        };
        let shapes: Vec<&[usize]> = match info.shape {
            // The value is a parameter.
            [] if info.name == MASKED_FILL.name => vec![square; count - 1],
            [] => (0..count).map(shape).collect(),
            [_, _, _] => vec![&[16, 1 << 12, 1 << 12]],
            _ => vec![&[1 << 16, 1 << 12]],
        };
        add(info.name, info.types, &shapes, params);
    }
    let rotary = [DType::F32, DType::F16, DType::BF16];
    for def in ROPE {
        add(def.name, &rotary, &[&[8, 1 << 13, 32, 128]], "angles=frequencies");
    }
    let tokens = 1 << 16;
    add("rope_neox_position_ids", &rotary, &[&[tokens, 32, 128], &[tokens]], "max_position=65536");
    rows
}

/// A sweep over sizes; a row's case is the bytes of one tensor.
pub(crate) fn sizes() -> Vec<Row> {
    let mut rows = Vec::new();
    for op in ["copy", "silu", "add", "gelu"] {
        for dtype in [DType::BF16, DType::F32] {
            for bytes in (10..=32).step_by(2).map(|power| 1_usize << power) {
                let shape: &[usize] = &[bytes / dtype.size()];
                let shapes = vec![shape; if op == "add" { 2 } else { 1 }];
                let mut row = row("sizes", op, dtype, &bytes.to_string(), &shapes, "");
                row.id = RowId::Name(format!("sizes/{op}/{dtype}/{bytes}"));
                rows.push(row);
            }
        }
    }
    rows
}

fn row(set: &'static str, op: &str, dtype: DType, case: &str, shapes: &[&[usize]], params: &str) -> Row {
    Row {
        id: RowId::Name(format!("{set}/{op}/{dtype}")),
        set,
        op: op.to_owned(),
        case: case.to_owned(),
        dtype,
        shapes: shapes.iter().map(|shape| shape.to_vec()).collect(),
        params: read_params(params).unwrap_or_default(),
        published: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pointwise::info::op;

    #[test]
    fn large_has_every_op_once_a_type() {
        let rows = large();
        let names = infos().map(|info| info.name);
        for name in names.chain(ROPE.iter().map(|def| def.name)) {
            let types: Vec<DType> = rows.iter().filter(|row| row.op == name).map(|row| row.dtype).collect();
            assert!(!types.is_empty(), "{name}");
        }
        let mut ids: Vec<&RowId> = rows.iter().map(|row| &row.id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), rows.len());
        for row in &rows {
            let n: usize = row.shapes[0].iter().product();
            let is_of_halves = op(&row.op).is_some_and(|def| def.takes_halves());
            assert!(n == 1 << 28 || n == 1 << 29 && is_of_halves, "{row:?}");
        }
    }

    #[test]
    fn sizes_go_from_a_kilobyte_to_four_gigabytes() {
        let rows = sizes();
        assert_eq!(rows.len(), 4 * 2 * 12);
        assert_eq!(rows[0].id, RowId::Name("sizes/copy/bf16/1024".to_owned()));
        assert_eq!(rows[11].case, (1_u64 << 32).to_string());
    }
}
