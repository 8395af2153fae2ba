#!/usr/bin/env python3
"""Times peers of pointwise on the rows of workloads.csv, and on rows of 2^28 results for every op.

    python3 benches/peers/peers.py --out FILE [--workloads CSV] [--set reference|large|all] [--op RE] [--peer RE]
                                   [--clock events|cupti] [--workers N] [--budget-s S] [--check]

Peers: `torch` (eager), `inductor` (torch.compile), `triton` (kernels written by hand, the common ops), `cupy`, and
where they can be imported `liger` and `flashinfer`. TileOPs is not timed: workloads.csv has its published times. RE is
matched with the whole name. Workers compile their rows side by side, then time them one at a time, all peers of a row
on the same inputs; `timing.py` says how. `--clock cupti` adds busy times when all times by events are there. At the
budget's end what was not reached is said. Before a peer is timed on a row, its result there is compared with eager
PyTorch's: one that differs (`agree.py`) has no time but an error, and is printed. `--check` times nothing: it compares
every peer's result on small shapes.

FILE gets JSON lines: first {"meta": ...}, then one object a measurement:
{"row": index of the csv's data row or "large/OP/DTYPE", "op", "dtype", "peer", "cold_us", "p10_us", "p90_us",
"warm_us", "note"}, and of calls of less than 4 MiB "host_us" and "graph_us" (or why there is none: "no_graph"), where a
peer that failed has no times but an "error"; then, with busy times, a second one
{"row", "peer", "busy_us", "busy_p10_us", "busy_p90_us", "kernels"}; last {"end": {"seconds", "wrong", "unreached"}}.
"""
import json
import multiprocessing
import os
import queue
import re
import subprocess
import sys
import tempfile
import time
import traceback

import agree
import script

PEERS = ("torch", "inductor", "triton", "cupy", "liger", "flashinfer")


def parser():
    parser = script.parser(__doc__)
    parser.add_argument("--out", type=script.output)
    parser.add_argument("--workloads", metavar="CSV")
    parser.add_argument("--set", choices=("reference", "large", "all"), default="reference")
    parser.add_argument("--op", type=script.pattern, default=".*", metavar="RE")
    parser.add_argument("--peer", type=script.pattern, default=".*", metavar="RE")
    parser.add_argument("--clock", choices=("events", "cupti"), default="events")
    parser.add_argument("--workers", type=script.positive, default=12)
    parser.add_argument("--budget-s", type=float, default=460)
    parser.add_argument("--check", action="store_true")
    return parser


# Before PyTorch is imported: --help needs none.
OPTIONS = parser().parse_args() if __name__ == "__main__" else None
torch = script.require("torch")
import rows  # noqa: E402


def chosen(options):
    """The rows asked for."""
    found = []
    if options.set in ("reference", "all"):
        found.extend(rows.read(options.workloads))
    if options.set in ("large", "all"):
        found.extend(rows.large())
    return [row for row in found if re.fullmatch(options.op, row.op)]


class Peers:
    """The calls of all peers of a row; what inductor compiled is kept from the first use of a row to the next."""

    def __init__(self, options, device):
        import other_ops

        self.missing = other_ops.missing()
        if device == "cpu":
            # There it compiles C++.
            self.missing.pop("inductor", None)
        self.names = [name for name in PEERS if re.fullmatch(options.peer, name) and name not in self.missing]
        self.device = device
        self.compiled = {}

    def calls(self, row, tensors, name):
        """Calls of one peer to choose the fastest from, the result tensor or None, a note; None without such an op."""
        import other_ops
        import torch_ops

        if name == "torch":
            return [torch_ops.eager(row, self.device, tensors)], None, None
        if name == "inductor":
            function = self.compiled.get(row.key)
            if function is None:
                function = self.compiled[row.key] = torch_ops.compiled(row, self.device)
            return [lambda: function(*tensors)], None, None
        if name == "triton":
            import triton_ops

            found = triton_ops.choices(row, tensors)
            return found and (*found, None)
        found = getattr(other_ops, name)(row, tensors)
        return found and ([found[0]], *found[1:])


def worker(index, share, options, lock, messages, begins, compile_until, time_until):
    """One process: compiles its share, says so, and times it row by row when no other process does."""
    try:
        with torch.inference_mode():
            work(share, options, lock, messages, begins, compile_until, time_until)
    except BaseException:
        messages.put(("failed", index, traceback.format_exc()))
    else:
        messages.put(("done", index, None))


def work(share, options, lock, messages, begins, compile_until, time_until):
    torch.set_num_threads(1)
    torch._dynamo.config.cache_size_limit = 10_000
    peers = Peers(options, "cuda")
    errors = {}
    for row in share:
        if time.time() > compile_until:
            break
        tensors = rows.inputs(row, "cuda", zeros=True)
        for name in peers.names:
            if name != "torch":
                try:
                    calls = peers.calls(row, tensors, name)
                    for call in calls[0] if calls else []:
                        call()
                    torch.cuda.synchronize()
                except Exception as error:  # of a peer's own making; the row goes on without it
                    errors[row.key, name] = f"{type(error).__name__}: {error}"[:500]
        del tensors
        torch.cuda.empty_cache()
        messages.put(("compiled", None, None))
    messages.put(("ready", None, None))
    begins["timing"].wait()
    timer = None
    choice, times = {}, {}
    for row in share:
        with lock:
            if time.time() > time_until:
                messages.put(("unreached", row.key, None))
                continue
            timer = timer or timing().Timer()
            tensors = rows.inputs(row, "cuda")
            want = expected(peers, row, tensors)
            for name in peers.names:
                line = {"row": row.key, "op": row.op, "dtype": row.dtype, "peer": name}
                try:
                    if (row.key, name) in errors:
                        raise RuntimeError(errors[row.key, name])
                    if name == "inductor" and row.key not in peers.compiled:
                        messages.put(("unreached", f"{row.key} {name}", None))
                        continue
                    calls = peers.calls(row, tensors, name)
                    if calls is None:
                        continue
                    best = 0
                    if len(calls[0]) > 1:
                        best = min(range(len(calls[0])), key=lambda at: timer.times(calls[0][at], 7, True)[3])
                    if name != "torch" and (wrong := difference(row, tensors, want, calls[0][best], calls[1])):
                        messages.put(("wrong", None, f"{row.key} {row.op} {row.dtype} {row.shapes} {name}: {wrong}"))
                        raise RuntimeError(wrong)
                    line |= timer.measure(calls[0][best])
                    if row.is_short():
                        line |= short_call(timer, name, calls[0][best], line["cold_us"])
                    choice[row.key, name], times[row.key, name] = best, line["cold_us"]
                    if calls[2]:
                        line["note"] = calls[2]
                except Exception as error:
                    line["error"] = f"{type(error).__name__}: {error}"[:500]
                messages.put(("line", None, line))
                calls = None
            del tensors, want
            if options.clock == "events":
                peers.compiled.pop(row.key, None)
            torch.cuda.empty_cache()
    messages.put(("timed", None, None))
    begins["busy"].wait()
    for row in share if options.clock == "cupti" else []:
        timed = [name for name in peers.names if (row.key, name) in times]
        if not timed:
            continue
        with lock:
            if time.time() > time_until:
                messages.put(("unreached", f"{row.key} busy", None))
                continue
            tensors = rows.inputs(row, "cuda")
            try:
                calls = {name: peers.calls(row, tensors, name)[0][choice[row.key, name]] for name in timed}
                found = timer.busy({name: (call, times[row.key, name]) for name, call in calls.items()})
            except Exception as error:
                messages.put(("unreached", f"{row.key} busy: {type(error).__name__}: {error}"[:300], None))
            else:
                for name, figures in found.items():
                    messages.put(("line", None, {"row": row.key, "peer": name, **figures}))
            calls = None
            del tensors
            peers.compiled.pop(row.key, None)
            torch.cuda.empty_cache()


def expected(peers, row, tensors):
    """Eager PyTorch's result, or why there is none as text."""
    try:
        return peers.calls(row, tensors, "torch")[0][0]()
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]


def difference(row, tensors, want, call, result):
    """Returns the fault of a call's result, None if it has none. The call writes to `result`, if that is given, or returns it."""
    if isinstance(want, str):
        return f"cannot be compared, PyTorch failed: {want}"
    if result is not None:
        agree.spoil(result, want)
    # CuPy launches on a stream of its own.
    synchronize(want)
    got = call()
    synchronize(want)
    got = result if result is not None else got
    if isinstance(got, tuple):  # Liger's q and k
        got = torch.cat([part.transpose(1, 2) for part in got], dim=2)
    if row.op == "dropout":
        return agree.dropped(got, tensors[0], row.number("p", 0.5), row.dtype)
    return agree.compare(got, want, row.op, row.dtype)


def synchronize(tensor):
    if tensor.is_cuda:
        torch.cuda.synchronize()


def short_call(timer, name, call, us):
    """More times of a short call: on the host, and in a graph if the call can be captured."""
    found = {"host_us": timer.on_the_host(call, us)}
    # CuPy launches on a stream of its own, which is not the one that is captured.
    if name != "cupy":
        try:
            found["graph_us"] = timer.in_a_graph(call)
        except Exception as error:  # some calls cannot be captured
            found["no_graph"] = f"{type(error).__name__}: {error}"[:300]
            torch.cuda.synchronize()
    return found


def timing():
    import timing

    return timing


def versions():
    """Versions of what is timed."""
    import importlib.metadata as packages

    def version(*names):
        for name in names:
            try:
                return packages.version(name)
            except packages.PackageNotFoundError:
                pass
        return None

    query = ["nvidia-smi", "--query-gpu=driver_version,clocks.sm,clocks.mem", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, check=True).stdout
        driver, *clocks = answer.splitlines()[0].split(", ")
    except (OSError, subprocess.CalledProcessError, IndexError):
        driver, clocks = None, []
    return {
        "gpu": torch.cuda.get_device_name(0), "driver": driver, "clocks_at_start": clocks, "cuda": torch.version.cuda,
        "torch": torch.__version__, "triton": version("triton"),
        "cupy": version("cupy-cuda13x", "cupy-cuda12x", "cupy"), "liger": version("liger-kernel"),
        "flashinfer": version("flashinfer-python"),
    }


def first_line(messages, clock):
    """In a process of its own, so that the parent holds no GPU memory."""
    try:
        import other_ops

        with torch.inference_mode():
            found = versions() | {"missing": other_ops.missing()} | timing().meta(timing().Timer(), clock)
            messages.put(("meta", None, found))
    except BaseException:
        messages.put(("failed", "meta", traceback.format_exc()))


def first_message(process, messages):
    """The first message of a process, or a failure if it ends without one."""
    while True:
        is_over = process.exitcode is not None
        try:
            return messages.get(timeout=1)
        except queue.Empty:
            if is_over:
                return "failed", None, f"the process that takes them ended with {process.exitcode}"


def run(options, found):
    script.require_gpu(torch)
    begin = time.time()
    folder = tempfile.TemporaryDirectory(prefix="peers")
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUPY_CACHE_DIR"):
        os.environ[name] = os.path.join(folder.name, name)
    # One thread a worker: the workers are what runs side by side.
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    context = multiprocessing.get_context("spawn")
    messages, lock = context.Queue(), context.Lock()
    begins = {"timing": context.Event(), "busy": context.Event()}
    unreached, failed, ready, timed, compiled, wrong = [], 0, 0, 0, 0, 0
    with open(options.out, "w") as out:

        def write(value):
            out.write(json.dumps(value) + "\n")
            out.flush()

        process = context.Process(target=first_line, args=(messages, options.clock))
        process.start()
        kind, _, value = first_message(process, messages)
        process.join()
        if kind == "failed":
            sys.exit(f"error: no figures of the device:\n{value}")
        write({"meta": value | {"workers": options.workers, "rows": len(found), "clock": options.clock}})
        print(json.dumps(value), flush=True)
        if "no_busy" in value:
            print(f"no busy times: {value['no_busy']}", flush=True)
            options.clock = "events"
        compile_until, time_until = begin + 0.5 * options.budget_s, begin + options.budget_s - 10
        workers = min(options.workers, len(found))
        processes = []
        for index in range(workers):
            share = found[index::workers]
            arguments = (index, share, options, lock, messages, begins, compile_until, time_until)
            process = context.Process(target=worker, args=arguments, daemon=True)
            process.start()
            processes.append(process)
        alive, lines = workers, 0
        while alive:
            try:
                kind, key, value = messages.get(timeout=5)
            except queue.Empty:
                if time.time() > begin + options.budget_s + 20:
                    print(f"{alive} workers did not end", flush=True)
                    failed += alive
                    break
                if all(process.exitcode is not None for process in processes):
                    print(f"{alive} workers ended without a word", flush=True)
                    failed += alive
                    break
                # A worker that died must not hold up the others.
                dead = sum(process.exitcode not in (None, 0) for process in processes)
                if ready + dead >= workers or time.time() > compile_until + 60:
                    begins["timing"].set()
                if timed + dead >= workers or time.time() > time_until:
                    begins["busy"].set()
                continue
            if kind == "line":
                write(value)
                lines += 1
            elif kind == "wrong":
                wrong += 1
                print(value, flush=True)
            elif kind == "compiled":
                compiled += 1
            elif kind == "unreached":
                unreached.append(key)
            elif kind == "ready":
                ready += 1
                if ready == workers:
                    print(f"{compiled} of {len(found)} rows compiled after {time.time() - begin:.0f} s", flush=True)
                    begins["timing"].set()
            elif kind == "timed":
                timed += 1
                if timed == workers:
                    print(f"timed by events after {time.time() - begin:.0f} s", flush=True)
                    begins["busy"].set()
            elif kind == "failed":
                failed += 1
                alive -= 1
                print(value, flush=True)
                ready, timed = ready + 1, timed + 1
                if ready >= workers:
                    begins["timing"].set()
                if timed >= workers:
                    begins["busy"].set()
            elif kind == "done":
                alive -= 1
        for process in processes:
            process.terminate()
        seconds = round(time.time() - begin, 1)
        write({"end": {"seconds": seconds, "failed_workers": failed, "wrong": wrong, "unreached": unreached}})
    print(f"{lines} lines in {seconds} s; {failed} workers failed; {wrong} results not PyTorch's, without a time; not reached: {unreached or 'nothing'}")
    return 1 if failed else 0


def check(options, found):
    """Every peer against eager PyTorch, on small shapes."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    peers, wrong, compared, seen = Peers(options, device), 0, 0, set()
    for name, why in peers.missing.items():
        print(f"{name} is missing: {why}")
    with torch.inference_mode():
        for row in found:
            row = row.shrunk()
            kind = (row.op, row.dtype, str(row.shapes), str(row.params))
            if kind in seen:
                continue
            seen.add(kind)
            tensors = rows.inputs(row, device)
            try:
                want = peers.calls(row, tensors, "torch")[0][0]()
            except Exception as error:
                wrong += 1
                print(f"{row.key} {row.op} {row.dtype} {row.shapes} torch: {type(error).__name__}: {error}", flush=True)
                continue
            for name in peers.names:
                if name == "torch" or device == "cpu" and name not in ("inductor", "triton"):
                    continue
                try:
                    calls = peers.calls(row, tensors, name)
                    if calls is None:
                        continue
                    for call in calls[0]:
                        compared += 1
                        if why := difference(row, tensors, want, call, calls[1]):
                            wrong += 1
                            print(f"{row.key} {row.op} {row.dtype} {row.shapes} {name}: {why}", flush=True)
                except Exception as error:
                    wrong += 1
                    why = f"{type(error).__name__}: {error}"[:500]
                    print(f"{row.key} {row.op} {row.dtype} {row.shapes} {name}: {why}", flush=True)
    print(f"{compared} results compared on {device}, {wrong} wrong")
    return 1 if wrong else 0


def main():
    options = OPTIONS
    options.workloads = options.workloads or rows.default_path()
    if options.workloads is None and options.set != "large":
        parser().error("workloads.csv lies neither beside this script nor in the command's sources: --workloads")
    if not options.check and not options.out:
        parser().error("--out FILE")
    try:
        found = chosen(options)
    except (KeyError, ValueError) as error:
        parser().error(f"{options.workloads} has not the columns of workloads.csv: {error}")
    if not found:
        parser().error("no such row")
    sys.exit(check(options, found) if options.check else run(options, found))


if __name__ == "__main__":
    script.run(main)
