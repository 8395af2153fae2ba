"""The CPU table of docs/performance.md, from what `cargo bench -p benches --bench cpu` left and the JSON of
torch_cpu.py:

    python3 cpu_table.py [--fastest] target/criterion [torch.json]

Cells are microseconds on one thread and on two, medians; behind them PyTorch's time over ours on one thread.
`--fastest`: of each the fastest sample, for a machine that does other work too.
"""

import json
import statistics
import sys
from pathlib import Path


def main():
    files = [argument for argument in sys.argv[1:] if argument != "--fastest"]
    fastest = len(files) < len(sys.argv) - 1
    ours = {}
    for file in Path(files[0]).glob("*/*/*/new/sample.json"):
        op, dtype, threads = file.parts[-5:-2]
        sample = json.loads(file.read_text())
        times = [time / count for time, count in zip(sample["times"], sample["iters"])]
        ours[op, dtype, int(threads)] = min(times) if fastest else statistics.median(times)
    rows = json.load(open(files[1]))["rows"] if len(files) > 1 else []
    theirs = {(row["op"], row["dtype"], row["threads"]): row["fastest_ns" if fastest else "ns"] for row in rows}
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
