"""Times PyTorch's ops on rows, eager and compiled, and Triton kernels written for them, cold, beside a copy:

    python3 row_ops.py [--op NAME]... [--dtype NAME]... [--len N]... [--backward] [--json FILE]

The shapes are those of `row_bandwidth`."""
import argparse
import json

import script

LARGE = 1 << 27
LENGTHS = (64, 256, 1000, 1024, 4096, 4097, 5120, 8192, 16384, 32768, 65536)
FEW = (1, 16, 256, 2048)
OPS = ("rms_norm", "add_rms_norm", "layer_norm", "softmax")
DTYPES = ("bf16", "f16", "f32")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--op", action="append", choices=OPS)
    parser.add_argument("--dtype", action="append", choices=DTYPES)
    parser.add_argument("--len", action="append", type=int, help="rows of this length alone, 2^27 elements together")
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    torch = script.require("torch")
    script.require_gpu(torch)
    import torch_rows
    from timing import Timer
    timer, rows = Timer(), []
    for dtype in options.dtype or DTYPES:
        for op in options.op or OPS:
            function = getattr(torch_rows, op)
            few = [] if options.len else [(count, 4096) for count in FEW]
            for count, n in [(LARGE // n, n) for n in options.len or LENGTHS] + few:
                full, shared = torch_rows.OPERANDS[op]
                grad = options.backward
                like = {"dtype": torch_rows.DTYPES[dtype], "device": "cuda", "requires_grad": grad}
                operands = [torch.randn(count, n, **like) for _ in range(full)]
                operands += [torch.randn(n, **like) for _ in range(shared)]
                torch._dynamo.reset()
                compiled = torch.compile(function, dynamic=False)
                calls = {"eager": [lambda: function(*operands)], "compile": [lambda: compiled(*operands)]}
                if grad:
                    calls = {name: [torch_rows.backward(made[0], operands)] for name, made in calls.items()}
                else:
                    calls["triton"] = torch_rows.by_triton(op, operands)
                row = {"op": op, "dtype": dtype, "rows": count, "len": n}
                for name, variants in calls.items():
                    try:
                        for call in variants:
                            call()
                        times = [timer.measure(call, warm=False)["cold_us"] for call in variants]
                        row[name] = min(times)
                    except Exception as error:  # a block too large for Triton
                        row[name] = None
                        print(f"# {op} {dtype} {n} {name}: {str(error).splitlines()[0][:100]}")
                shown = "  ".join(f"{name} {row[name]:9.2f}" for name in calls if row[name])
                print(f"{op + ('_backward' if grad else ''):22} {dtype:4} {count:8} x {n:6}  {shown}", flush=True)
                rows.append(row)
                del operands, calls, compiled
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"device": torch.cuda.get_device_name(), "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
