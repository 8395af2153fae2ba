"""The table of docs/performance.md from the JSON files of one run: `python3 tables.py bandwidth.json [torch.json]`."""
import json
import sys


def main():
    ours = json.load(open(sys.argv[1]))
    torch = json.load(open(sys.argv[2])) if len(sys.argv) > 2 else {"rows": []}
    theirs = {(row["op"], row["dtype"], row["peer"]): row["share"] for row in torch["rows"]}
    types = ["f32", "f16", "bf16", "f8e4m3", "f8e5m2"]
    shares = {(row["op"], row["dtype"]): row["share"] for row in ours["rows"]}
    print("| op | " + " | ".join(types) + " | PyTorch f32 | f16 | bf16 |")
    print("|---|" + "---|" * (len(types) + 3))
    for op in dict.fromkeys(row["op"] for row in ours["rows"]):
        cells = [f"{shares[op, t]:.3f}" if (op, t) in shares else "" for t in types]
        cells += [f"{theirs[op, t, 'torch']:.2f}" if (op, t, "torch") in theirs else "" for t in types[:3]]
        print(f"| {op} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
