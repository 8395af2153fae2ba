"""Times the cross entropy of rows of logits, forward and with its gradient, of PyTorch, eager and compiled, and of the package:

    python3 losses.py [--classes N] [--rows N] [--dtype NAME]... [--json FILE]

Cold, beside a copy of the logits."""
import argparse
import json

import script

DTYPES = ("bf16", "f32")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--classes", type=int, default=128_256)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--dtype", action="append", choices=DTYPES)
    parser.add_argument("--json")
    options = parser.parse_args()
    torch = script.require("torch")
    pointwise = script.require("pointwise")
    script.require_gpu(torch)
    from timing import Timer
    timer, rows = Timer(), []
    torch.manual_seed(0)
    for dtype in options.dtype or DTYPES:
        like = {"dtype": {"bf16": torch.bfloat16, "f32": torch.float32}[dtype], "device": "cuda"}
        x = torch.randn(options.rows, options.classes, requires_grad=True, **like)
        labels = torch.randint(0, options.classes, (options.rows,), device="cuda")
        target = torch.empty_like(x)

        def eager(x, labels):
            return torch.nn.functional.cross_entropy(x, labels)

        def ours(x, labels):
            return pointwise.cross_entropy(x, labels).mean()

        compiled = torch.compile(eager, dynamic=False)
        row = {"dtype": dtype, "rows": options.rows, "classes": options.classes}
        row["copy"] = timer.measure(lambda: target.copy_(x.detach()), warm=False)["cold_us"]
        for name, loss in {"eager": eager, "compile": compiled, "pointwise": ours}.items():
            def step():
                x.grad = None
                loss(x, labels).backward()

            def forward():
                with torch.no_grad():
                    loss(x, labels)

            for what, call in (("forward", forward), ("both", step)):
                call()
                row[f"{name} {what}"] = timer.measure(call, warm=False)["cold_us"]
        shown = "  ".join(f"{key} {value:.1f}" for key, value in row.items() if isinstance(value, float))
        print(f"{dtype} {options.rows} x {options.classes}, us: {shown}", flush=True)
        rows.append(row)
        del x, target, compiled
        torch._dynamo.reset()
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"device": torch.cuda.get_device_name(), "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
