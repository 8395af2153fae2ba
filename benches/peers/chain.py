"""Calls that follow one another on the device, each on what the one before wrote: PyTorch's side of `./chain`.

Run:   python3 chain.py

Microseconds from call to call of `neg` in bf16, between two tensors: in a stream, queued while the device is busy, and
in a CUDA graph; of PyTorch and of torch.compile's kernel.
"""

import statistics

import script

if __name__ == "__main__":
    # Before PyTorch is imported: --help needs none.
    script.parser(__doc__).parse_args()
torch = script.require("torch")

CALLS, FILLS, ROUNDS = 100, 16, 15
# A function is compiled for each size.
torch._dynamo.config.cache_size_limit = 100


def times(before, work):
    """Median of microseconds a call."""
    found = []
    for _ in range(ROUNDS):
        before()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        found.append(start.elapsed_time(end) * 1e3 / CALLS)
    return statistics.median(found)


def chain(call, x, y):
    for _ in range(CALLS // 2):
        call(x, y)
        call(y, x)


def eager(x, y):
    torch.neg(x, out=y)


@torch.compile(dynamic=False)
def compiled(x, y):
    y.copy_(torch.neg(x))


def main():
    script.require_gpu(torch)
    properties = torch.cuda.get_device_properties(0)
    flush = torch.empty(2 * properties.L2_cache_size, dtype=torch.uint8, device="cuda")
    print(f"# {properties.name}, PyTorch {torch.__version__}: neg of bfloat16, microseconds a call")
    print(f"{'bytes of x':>12} {'stream':>9} {'graph':>9} {'compiled':>9} {'graph':>9}")
    for size in [10, 14, 17, 20, 22, 23, 24, 25, 26]:
        x = torch.randn(2**size // 2, dtype=torch.bfloat16, device="cuda")
        y = torch.empty_like(x)
        line = []
        for call in (eager, compiled):
            chain(call, x, y)
            torch.cuda.synchronize()
            # torch.compile's calls take the host longer than PyTorch's.
            fills = FILLS if call is eager else 8 * FILLS
            line.append(times(lambda: [flush.zero_() for _ in range(fills)], lambda: chain(call, x, y)))
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                chain(call, x, y)
            graph.replay()
            torch.cuda.synchronize()
            line.append(times(lambda: None, graph.replay))
        print(f"{2**size:12} " + " ".join(f"{value:9.2f}" for value in line), flush=True)


if __name__ == "__main__":
    script.run(main)
