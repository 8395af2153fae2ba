"""Times of calls on the GPU: CUDA events around single calls, the L2 cache cold or warm, the host always ahead; and
what their kernels alone take, by CUPTI, which PyTorch's profiler reads."""
import ctypes
import os
import statistics
import time
import warnings

import torch
from torch.autograd import profiler

import rows

# The kernel of torch.cuda._sleep: a mark in a trace.
MARK = "spin_kernel"
# Up to so many events, less one, are recorded ahead of a timed call. Where its commands lie in the device's queue changes the
# time between two events by 0.6 us (H200), for all calls of a list alike; so the calls of a list take turns.
PLACES = 8
# As our runner has them: calls in a graph; calls of the host without a wait between them, at most, and how long these
# may take the device; rounds of them; launches of a graph.
GRAPH_CALLS = 100
HOST_CALLS = 100
HOST_BUDGET_US = 4_000
ROUNDS = 5
REPLAYS = 10
# What a trace has besides kernels and copies.
WAITS = ("Context Sync", "Event Sync", "Stream Sync", "Stream Wait Event")


class Timer:
    """Before each timed call comes a sleep of the GPU, during which the host enqueues what follows: neither its own time
    nor a launch's shows; then, if it is to be `cold`, a write of twice the L2, right before the call as in our runner.

    Lines that a kernel has loaded with `evict_last`, as inductor's do, outlive any write of others: the next call, of
    whatever peer, would find its operands there. So they are made ordinary ones before the calls that are timed by
    events, and before each one that CUPTI times. Not before each one by events: that waits for the device, which would
    move the call's commands in the queue, and its time by 0.6 us. Inductor's own times by events have that advantage."""

    def __init__(self):
        self.l2 = torch.cuda.get_device_properties(0).L2_cache_size
        self.flush = torch.empty(2 * self.l2, dtype=torch.uint8, device="cuda")
        # The driver's memset, as our runner has it: what follows PyTorch's own fill is up to 3 % faster (H200).
        driver = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
        self.reset_persisting, self.memset = driver.cuCtxResetPersistingL2Cache, driver.cuMemsetD8Async
        self.memset.argtypes = [ctypes.c_uint64, ctypes.c_ubyte, ctypes.c_size_t, ctypes.c_void_p]
        self.cycles_per_us = 1500.0
        self.cycles_per_us = 1e6 / max(self.once(lambda: torch.cuda._sleep(1_000_000)), 1.0)

    def release(self):
        """Waits for all calls, and lets the L2 lines go that they wanted to be kept."""
        torch.cuda.synchronize()
        code = self.reset_persisting()
        if code != 0:
            raise RuntimeError(f"cuCtxResetPersistingL2Cache: error {code}")

    def clear(self):
        """Fills the L2 with something else."""
        code = self.memset(self.flush.data_ptr(), 0, self.flush.nbytes, torch.cuda.current_stream().cuda_stream)
        if code != 0:
            raise RuntimeError(f"cuMemsetD8Async: error {code}")

    def once(self, call):
        """Microseconds of one call."""
        return self.times(call, 3, False)[1]

    def times(self, call, repeats, cold, sleep_us=150.0):
        """Sorted microseconds of `repeats` calls."""
        self.release()
        pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeats)]
        filler = torch.cuda.Event(enable_timing=True)
        if not cold:
            # All calls are queued behind one wait: what each finds in the cache the one before it has left there.
            torch.cuda._sleep(int(repeats * sleep_us * self.cycles_per_us))
        for i, (start, end) in enumerate(pairs):
            if cold:
                torch.cuda._sleep(int(sleep_us * self.cycles_per_us))
                self.clear()
            for _ in range(3 * i % PLACES):
                filler.record()
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

    def on_the_host(self, call, us):
        """Microseconds of the host a call, the device idle before each round and its queue never full."""
        calls = int(min(HOST_CALLS, max(4, HOST_BUDGET_US / us)))
        rounds = []
        for _ in range(ROUNDS):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(calls):
                call()
            rounds.append((time.perf_counter() - begin) * 1e6 / calls)
        torch.cuda.synchronize()
        return round(statistics.median(rounds), 3)

    def in_a_graph(self, call):
        """Microseconds from one call to the next inside of a CUDA graph."""
        graph = torch.cuda.CUDAGraph()
        with warnings.catch_warnings():
            # An empty graph: the call was launched on another stream.
            warnings.simplefilter("error")
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                for _ in range(GRAPH_CALLS):
                    call()
        graph.replay()
        return round(statistics.median(self.times(graph.replay, REPLAYS, False)) / GRAPH_CALLS, 3)

    def busy(self, calls):
        """Returns for each name how long the device is busy with its call, cold, as the sum of kernels and copies. `calls` has
        (call, its microseconds) by name."""
        repeats = {name: int(min(50, max(10, 20_000 / (us + 25)))) for name, (_, us) in calls.items()}
        for call, _ in calls.values():
            call()
        torch.cuda.synchronize()
        with profiler.profile(use_device="cuda", use_cpu=False, use_kineto=True) as trace:
            for name, (call, _) in calls.items():
                for _ in range(repeats[name]):
                    self.release()
                    self.clear()
                    torch.cuda._sleep(1)
                    call()
                    torch.cuda._sleep(1)
            torch.cuda.synchronize()
        on_device = [e for e in trace.kineto_results.events() if e.device_type() == torch.autograd.DeviceType.CUDA]
        found = between_marks(sorted((e.start_ns(), e.duration_ns(), e.name()) for e in on_device))
        if len(found) != sum(repeats.values()):
            raise RuntimeError(f"CUPTI saw {len(found)} of {sum(repeats.values())} calls")
        figures = {}
        for name in calls:
            own, found = found[: repeats[name]], found[repeats[name] :]
            figures[name] = busy_figures(own)
        return figures


def between_marks(events):
    """The durations between the first mark and the second, the third and the fourth, and so on: one list a call."""
    calls, of_call = [], None
    for _, duration, name in events:
        if MARK in name:
            if of_call is not None:
                calls.append(of_call)
            of_call = [] if of_call is None else None
        elif of_call is not None and name not in WAITS:
            of_call.append(duration)
    return calls


def busy_figures(calls):
    """The figures of one call of lists of nanoseconds."""
    kernels = statistics.median_low(len(call) for call in calls)
    if kernels == 0:
        raise RuntimeError("CUPTI saw no kernel of the call")
    us = sorted(sum(call) / 1e3 for call in calls)
    last = len(us) - 1
    return {
        "busy_us": round(statistics.median(us), 3), "busy_p10_us": round(us[round(0.1 * last)], 3),
        "busy_p90_us": round(us[round(0.9 * last)], 3), "kernels": kernels,
    }


def copy_kernel(timer, source):
    """The cold time of a copy by a Triton kernel."""
    try:
        import triton_ops

        calls, _ = triton_ops.choices(rows.Row("copy", "copy", "f32", [source.shape]), [source])
        return min(timer.measure(call, warm=False)["cold_us"] for call in calls)
    except Exception as error:  # its figures are a help, not a need
        return f"{type(error).__name__}: {error}"[:300]


def meta(timer, clock):
    """Figures to compare the others with: copies of several sizes, and calls that do next to nothing. With the clock `cupti`
    also the busy time of one such call, or why there is none."""
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
    found = {
        "l2_bytes": timer.l2, "copy_gbps": copies[-1]["cold_gbps"], "copies": copies,
        "empty_us": timer.measure(lambda: one.fill_(1.0))["cold_us"],
        "events_us": timer.measure(lambda: None)["cold_us"],
    }
    if clock == "cupti":
        try:
            found["empty_busy_us"] = timer.busy({"empty": (lambda: one.fill_(1.0), found["empty_us"])})["empty"]["busy_us"]
        except Exception as error:
            found["no_busy"] = f"{type(error).__name__}: {error}"[:300]
    return found
