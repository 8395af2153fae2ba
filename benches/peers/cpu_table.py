"""The CPU table of docs/performance.md, from what `cargo bench -p benches --bench cpu` left and the JSON of
torch_cpu.py:

    python3 cpu_table.py target/criterion torch.json.. [--threads 1] [--worst N]

A cell is nanoseconds an element, 2^16 elements on one thread, and behind it PyTorch's time over ours: 2^16 elements on
one thread and on two, 2^22 on one and on two; with `--threads 1` on one alone, for a machine whose other cores are
busy. All from the fastest call, of several runs of PyTorch the fastest of all. `--worst`: not the table but the N slowest
beside PyTorch.
"""

import json
import math
import sys
from pathlib import Path

import script

TYPES = ["f32", "bf16", "f16", "i32"]
WAYS = [(n, threads) for n in (1 << 16, 1 << 22) for threads in (1, 2)]


def ours(folder):
    """Nanoseconds by op, type, elements and threads."""
    times = {}
    for file in Path(folder).glob("*/*/*/new/sample.json"):
        op, dtype, way = file.parts[-5:-2]
        n, _, threads = way.partition("-")
        sample = script.read(file, json.loads)
        fastest = min(time / count for time, count in zip(sample["times"], sample["iters"]))
        times[op, dtype, int(n), int(threads or 0)] = fastest
    return times


def main():
    parser = script.parser(__doc__)
    parser.add_argument("criterion")
    parser.add_argument("torch", nargs="+")
    parser.add_argument("--threads", type=int, choices=(1, 2), help="of this many threads alone")
    parser.add_argument("--worst", type=script.positive)
    options = parser.parse_args()
    mine = ours(options.criterion)
    theirs = {}
    for row in (row for file in options.torch for row in script.read(file, json.loads)["rows"]):
        key = row["op"], row["dtype"], row["n"], row["threads"]
        theirs[key] = min(row["ns"], theirs.get(key, math.inf))
    ways = [way for way in WAYS if options.threads in (None, way[1])]
    ratios = {key: theirs[key] / mine[key] for key in theirs if key in mine and key[2:] in ways}
    if not ratios:
        sys.exit(f"error: no op has times both in {options.criterion} and in {' '.join(options.torch)}")
    if options.worst:
        for key, ratio in sorted(ratios.items(), key=lambda item: item[1])[: options.worst]:
            print(f"{ratio:5.2f}  {mine[key] / key[2]:7.4f} ns  {key[0]:16} {key[1]:5} {key[2]:8} {key[3]} threads")
        return
    print("| op | " + " | ".join(TYPES) + " |")
    print("|---|" + "---|" * len(TYPES))
    for op in dict.fromkeys(key[0] for key in theirs if key in mine):
        cells = []
        for dtype in TYPES:
            first = mine.get((op, dtype, *WAYS[0]))
            behind = " ".join(f"{ratios[op, dtype, *way]:.2f}" for way in ways if (op, dtype, *way) in ratios)
            cells.append(f"{first / WAYS[0][0]:.3f}: {behind}" if first and behind else "")
        print(f"| {op} | " + " | ".join(cells) + " |")
    for dtype in TYPES:
        means = []
        for way in ways:
            logs = [math.log(ratio) for key, ratio in ratios.items() if key[1] == dtype and key[2:] == way]
            if logs:
                lost = sum(log < 0 for log in logs)
                means.append(f"{math.exp(sum(logs) / len(logs)):.2f} ({lost} of {len(logs)} below 1)")
        print(f"\n{dtype}: geometric means " + ", ".join(means), end="")
    print()


if __name__ == "__main__":
    script.run(main)
