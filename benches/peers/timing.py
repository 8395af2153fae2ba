"""Times of calls on the GPU: CUDA events around single calls, the L2 cache cold or warm, the host always ahead."""
import statistics
import time

import torch

import rows


class Timer:
    """Before each timed call comes a write of twice the L2 (`cold`) and a sleep of the GPU, during which the host
    enqueues the call and both events: neither its own time nor a launch's shows."""

    def __init__(self):
        self.l2 = torch.cuda.get_device_properties(0).L2_cache_size
        self.flush = torch.empty(2 * self.l2, dtype=torch.uint8, device="cuda")
        self.cycles_per_us = 1500.0
        self.cycles_per_us = 1e6 / max(self.once(lambda: torch.cuda._sleep(1_000_000)), 1.0)

    def once(self, call):
        """Microseconds of one call."""
        return self.times(call, 3, False)[1]

    def times(self, call, repeats, cold, sleep_us=150.0):
        """Sorted microseconds of `repeats` calls."""
        pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeats)]
        for start, end in pairs:
            if cold:
                self.flush.zero_()
            torch.cuda._sleep(int(sleep_us * self.cycles_per_us))
            start.record()
            call()
            end.record()
        torch.cuda.synchronize()
        return sorted(start.elapsed_time(end) * 1e3 for start, end in pairs)

    def measure(self, call, warm=True):
        """The figures of one call: medians cold and warm, and the cold times' 10th and 90th percentile."""
        call()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        host_us = (time.perf_counter() - begin) * 1e6
        torch.cuda.synchronize()
        sleep_us = min(3000.0, max(150.0, 2 * host_us + 50))
        estimate = self.times(call, 3, True, sleep_us)[1]
        repeats = int(min(50, max(20, 20_000 / (estimate + sleep_us))))
        cold = self.times(call, repeats, True, sleep_us)
        figures = {
            "cold_us": statistics.median(cold), "p10_us": cold[repeats // 10], "p90_us": cold[(9 * repeats) // 10],
            "warm_us": statistics.median(self.times(call, repeats // 2, False, sleep_us)) if warm else None,
        }
        return {name: value and round(value, 3) for name, value in figures.items()}


def copy_kernel(timer, source):
    """The cold time of a copy by a Triton kernel."""
    try:
        import triton_ops

        calls, _ = triton_ops.choices(rows.Row("copy", "copy", "f32", [source.shape]), [source])
        return min(timer.measure(call, warm=False)["cold_us"] for call in calls)
    except Exception as error:  # its figures are a help, not a need
        return f"{type(error).__name__}: {error}"[:300]


def meta(timer):
    """What the figures are to be read with: copies of several sizes, and calls that do next to nothing."""
    copies = []
    for mib in (1, 4, 16, 64, 128, 256, 512, 1024):
        source = torch.empty(mib << 18, dtype=torch.float32, device="cuda").normal_()
        target = torch.empty_like(source)
        figures = timer.measure(lambda: target.copy_(source))
        moved = 2 * source.nbytes
        gbps = round(moved / figures["cold_us"] / 1e3, 1)
        kernel = copy_kernel(timer, source)
        copies.append({"bytes_moved": moved, **figures, "cold_gbps": gbps, "triton_cold_us": kernel})
    one = torch.zeros(1, device="cuda")
    del source, target
    torch.cuda.empty_cache()
    return {
        "l2_bytes": timer.l2, "copy_gbps": copies[-1]["cold_gbps"], "copies": copies,
        "empty_us": timer.measure(lambda: one.fill_(1.0))["cold_us"],
        "events_us": timer.measure(lambda: None)["cold_us"],
    }
