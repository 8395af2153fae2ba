//! The ops of a library as JSON: what Python makes schemas, fakes, gradients and signatures from.

use pointwise::DType;
use pointwise::rope::{ROPE, RopePairs};
use serde_json::{Value, json};

use crate::kernel::{Library, Role};
use crate::registry::{NumberKind, OpSpec};

fn op(op: &OpSpec) -> Value {
    let kind = |kind| match kind {
        NumberKind::Float => "float",
        NumberKind::OptionalFloat => "float?",
        NumberKind::Int => "int",
        NumberKind::Bool => "bool",
    };
    json!({
        "name": op.name,
        "rows": op.of_rows,
        "group": op.group,
        "operands": op.operands.iter().map(|operand| json!({
            "name": operand.name, "dtype": operand.dtype.map(DType::torch_name), "domain": operand.domain.name(),
            "number": operand.takes_number, "shares": operand.shares_gradient,
        })).collect::<Vec<_>>(),
        "params": op.params.iter().map(|param| json!({
            "name": param.name, "kind": kind(param.kind), "default": param.default,
        })).collect::<Vec<_>>(),
        "results": op.results.iter().map(|result| json!({
            "name": result.name, "dtype": result.dtype.map(DType::torch_name), "domain": result.domain.name(),
            "kept": result.is_kept, "weight": result.weight,
        })).collect::<Vec<_>>(),
        "dtypes": op.dtypes.iter().map(|dtype| dtype.torch_name()).collect::<Vec<_>>(),
        "int_to_float": op.int_to_float,
        "promotes": op.promotes,
        "refuses_bool": op.refuses_bool,
        "constant": op.is_constant,
        "random": op.is_random(),
        "shared_words": op.shares_words(),
        "indices": op.indices,
        "double": op.has_oracle,
        "doc": op.doc.trim(),
        "backward": op.backward,
        "gradient": op.is_gradient(),
    })
}

/// The ops of a library, and the schemas of its kernels with their numbers.
pub(crate) fn describe(library: &Library) -> String {
    let mut kernels = Vec::new();
    for (number, role) in library.roles.iter().enumerate() {
        let slot = match role {
            Role::Op(slot) => slot,
            Role::Override(_) | Role::Fused => continue,
            Role::Rope(rope) => {
                kernels.push(json!({
                    "number": number, "op": rope.name(), "schema": rope.schema(), "numbers": [], "out": rope.out,
                }));
                continue;
            }
        };
        kernels.push(json!({
            "number": number,
            "op": library.ops[slot.op].name,
            "schema": library.schema(slot),
            "numbers": (0..32).filter(|k| slot.numbers >> k & 1 == 1).collect::<Vec<u32>>(),
            "out": slot.out,
        }));
    }
    let rope = if library.roles.iter().any(|role| matches!(role, Role::Rope(_))) { ROPE } else { &[] };
    json!({
        "ops": library.ops.iter().map(op).collect::<Vec<_>>(),
        "kernels": kernels,
        "rope": rope.iter().map(|def| json!({
            "name": def.name,
            "interleaved": def.pairs == RopePairs::Interleaved,
            "doc": def.doc,
        })).collect::<Vec<_>>(),
    })
    .to_string()
}
