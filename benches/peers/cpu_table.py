"""The CPU table of docs/performance.md, from what `cargo bench -p benches --bench cpu` left and the JSON of torch_cpu.py:

    python3 cpu_table.py target/criterion [torch.json]

Cells are microseconds on one thread and on two, medians; behind them PyTorch's time over ours on one thread.
"""
import json
import sys
from pathlib import Path


def main():
    ours = {}
    for file in Path(sys.argv[1]).glob("*/*/*/new/estimates.json"):
        op, dtype, threads = file.parts[-5:-2]
        ours[op, dtype, int(threads)] = json.loads(file.read_text())["median"]["point_estimate"]
    rows = json.load(open(sys.argv[2]))["rows"] if len(sys.argv) > 2 else []
    theirs = {(row["op"], row["dtype"], row["threads"]): row["ns"] for row in rows}
    order = list(dict.fromkeys(row["op"] for row in rows)) + sorted({key[0] for key in ours})
    print("| op | f32: 1 thread, 2 | PyTorch | its time over ours | bf16: 1 thread, 2 | PyTorch | its time over ours |")
    print("|---|---|---|---|---|---|---|")
    for op in dict.fromkeys(op for op in order if any(key[0] == op for key in ours)):
        cells = []
        for dtype in ["f32", "bf16"]:
            for times in (ours, theirs):
                both = [times.get((op, dtype, threads)) for threads in (1, 2)]
                cells.append(", ".join(f"{ns / 1e3:.0f}" for ns in both if ns is not None))
            mine, peer = ours.get((op, dtype, 1)), theirs.get((op, dtype, 1))
            cells.append(f"{peer / mine:.1f}" if mine and peer else "")
        print(f"| {op} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
