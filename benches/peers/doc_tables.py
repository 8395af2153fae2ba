"""The tables of docs/performance.md from a comparison of all rows:

    python3 doc_tables.py joined.json docs/performance.md

puts those of joined.json in place of the ones that are there, and prints what the text beside them says.
"""
import json
import math
import sys

import script

FLOATS = ["f32", "f16", "bf16", "f8e4m3", "f8e5m2"]
# The groups of the reference rows: ops, and which of their rows.
UNARY = "abs ceil cos erf exp expm1 floor log log1p neg reciprocal round rsqrt sign sin sqrt trunc"
ACTIVATIONS = (
    "relu gelu silu sigmoid tanh hardswish hardsigmoid mish selu leaky_relu elu hardtanh softplus prelu"
)
ARITHMETIC = "add sub mul div floor_divide remainder pow lerp maximum minimum"
GATED = "silu_and_mul gelu_and_mul gelu_tanh_and_mul"
ROPE = "rope_neox rope_non_neox rope_llama31 rope_yarn rope_longrope rope_neox_position_ids"


def is_broadcast(row):
    return len(set(row["shapes"].split(";"))) > 1


def is_same(row):
    return not is_broadcast(row)


def is_forced(row):
    return row["case"].startswith("strategy-")


def any_row(_):
    return True


GROUPS = [
    ("activation", ACTIVATIONS, any_row),
    ("special (where, clamp, masked_fill, nan_to_num, is*)", "where clamp masked_fill nan_to_num isnan isinf isfinite", any_row),
    ("arithmetic, same shape", ARITHMETIC, is_same),
    ("arithmetic, broadcast", ARITHMETIC, is_broadcast),
    ("comparison, same shape", "eq ne gt lt ge le", is_same),
    ("comparison, broadcast", "eq ne gt lt ge le", is_broadcast),
    ("logical, same shape", "logical_and logical_or logical_not", is_same),
    ("logical, broadcast", "logical_and logical_or logical_not", is_broadcast),
    ("bitwise, same shape", "bitwise_and bitwise_or bitwise_xor bitwise_not", is_same),
    ("bitwise, broadcast", "bitwise_and bitwise_or bitwise_xor bitwise_not", is_broadcast),
    ("unary_math", UNARY, any_row),
    ("gated", GATED, lambda row: not is_forced(row)),
    ("gated, a strategy forced", GATED, is_forced),
    ("alibi", "alibi", any_row),
    ("sinusoidal", "sinusoidal", any_row),
    ("rope", ROPE, any_row),
    ("dropout", "dropout", any_row),
]


def mean(values):
    """Geometric."""
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def counts(ratios):
    slower, faster = sum(r > 1.02 for r in ratios), sum(r < 0.98 for r in ratios)
    return f"{slower} / {len(ratios) - slower - faster} / {faster}"


def ratios(rows, clock="best_peer"):
    return [row[clock]["ratio"] for row in rows if row.get(clock)]


def reference_table(rows):
    lines = ["| rows | n | share of a copy | x best other | slower / tie / faster | x best, warm |", "|" + "---|" * 6]
    warm = lambda rows: mean(ratios(rows, "best_warm"))
    found = 0
    for name, ops, belongs in GROUPS:
        group = [row for row in rows if row["op"] in ops.split() and belongs(row)]
        found += len(group)
        over = ratios(group)
        share = mean(row["cold"]["share"] for row in group)
        lines.append(f"| {name} | {len(group)} | {share:.2f} | {mean(over):.2f} | {counts(over)} | {warm(group):.2f} |")
    assert found == len(rows), "a row in no group, or in two"
    over = ratios(rows)
    share = mean(row["cold"]["share"] for row in rows)
    lines.append(f"| all | {len(rows)} | {share:.2f} | {mean(over):.3f} | {counts(over)} | {warm(rows):.3f} |")
    return lines


def short_table(rows):
    """Calls of less than 4 MiB, which have times in a graph and on the host: ours, then the fastest peer's."""
    lines = ["| short call | type | events | busy | in a graph | on the host | fastest |", "|" + "---|" * 7]
    for row in rows:
        if not row.get("best_graph") or not row.get("best_host"):
            continue
        both = lambda us, best: f"{us:.2f}, {best['us']:.2f}" if us and best else ""
        busy = row.get("busy") or {}
        clocks = ("best_peer", "best_busy", "best_graph", "best_host")
        peers = ", ".join(row[clock]["peer"] if row.get(clock) else "-" for clock in clocks)
        lines.append(
            f"| {row['op']} {row['shapes']} | {row['dtype']} | {both(row['cold']['us'], row['best_peer'])} "
            f"| {both(busy.get('us'), row.get('best_busy'))} | {both(row['graph_us'], row['best_graph'])} "
            f"| {both(row['host_us'], row['best_host'])} | {peers} |"
        )
    return lines


def large_tables(rows):
    """The tables of forward ops and of gradients, and the shares of integers and bools."""
    by_op = {}
    for row in rows:
        # Rows of one op by another case have a name of their own: large/NAME/DTYPE.
        by_op.setdefault(row["row"].split("/")[1], {})[row["dtype"]] = row
    forward = ["| op | f32 | f16 | bf16 | f8e4m3 | f8e5m2 | x best, f32 | x best, f16 | x best, bf16 |", "|" + "---|" * 9]
    gradients = ["| op | f32 | f16 | bf16 | x best, f32 | x best, f16 | x best, bf16 |", "|" + "---|" * 7]
    others = []
    for op, of in by_op.items():
        share = lambda dtype: f"{of[dtype]['cold']['share']:.2f}" if of.get(dtype, {}).get("cold") else ""
        best = lambda dtype: f"{of[dtype]['best_peer']['ratio']:.2f}" if of.get(dtype, {}).get("best_peer") else ""
        others += [f"{op} {dtype} {share(dtype)}" for dtype in of if dtype not in FLOATS]
        if not any(dtype in FLOATS for dtype in of):
            continue
        table, types = (gradients, FLOATS[:3]) if op.endswith("_backward") else (forward, FLOATS)
        cells = [share(dtype) for dtype in types] + [best(dtype) for dtype in FLOATS[:3]]
        table.append("| " + op + " | " + " | ".join(cells) + " |")
    return forward, gradients, others


def put(text, table):
    """The text with the table in place of the one whose first line begins alike."""
    lines = text.split("\n")
    begin = next((i for i, line in enumerate(lines) if line.startswith(table[0][:40])), None)
    if begin is None:
        sys.exit(f"error: the document has no table whose first line begins {table[0][:40]!r}")
    end = next((i for i in range(begin, len(lines)) if not lines[i].startswith("|")), len(lines))
    return "\n".join(lines[:begin] + table + lines[end:])


def main():
    parser = script.parser(__doc__)
    parser.add_argument("joined", help="what compare.py made")
    parser.add_argument("document", type=script.output)
    options = parser.parse_args()
    document, rows = options.document, script.read(options.joined, json.loads)["rows"]
    of_set = lambda name: [row for row in rows if row["set"] == name and row.get("cold")]
    reference, large = of_set("reference"), of_set("large")
    if not reference or not large:
        sys.exit(f"error: {options.joined} has no times on a GPU of both sets: make it by `compare.py --set all`")
    forward, gradients, others = large_tables(large)
    with open(document) as file:
        text = file.read()
    for table in (reference_table(reference), short_table(reference), forward, gradients):
        text = put(text, table)
    with open(document, "w") as file:
        file.write(text)
    for name, of in (("reference", reference), ("large", large)):
        for clock in ("best_peer", "best_busy", "best_warm", "best_graph", "best_host"):
            over = ratios(of, clock)
            if not over:
                continue
            print(f"{name}, {clock}: {mean(over):.3f}, {counts(over)}, {sum(r > 1.05 for r in over)} above 1.05 of {len(over)}")
    both = [row for row in reference if min(ratios([row]) + ratios([row], "best_busy"), default=0) > 1.02]
    print(f"slower by both clocks: {len(both)}")
    print("integers and bools: " + ", ".join(others))


if __name__ == "__main__":
    script.run(main)
