"""Checks that AOTInductor's packages load and run, with pointwise and without.

    python python/tools/aoti_cuda.py [--device cuda] [--folder FOLDER]

Three cases: a model of torch's ops alone; the same after `import pointwise`; a model of pointwise's ops. Each is
compiled, loaded and run in a process of its own, and its package loaded and run once more in a new one. So a crash is an
exit code, and what crashes without pointwise is not pointwise's. Of a crash the stack is printed: Python's, and that of
C++ by gdb or cuda-gdb where one is there. The exit code is 1 if a case fails.
"""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

CASES = ("torch alone", "torch, pointwise imported", "pointwise's ops")


def child(case, device, path, steps):
    """Runs the steps of a case; says which are done."""
    import warnings

    import torch

    warnings.simplefilter("ignore")
    if case != "torch alone":
        import pointwise

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up = torch.nn.Linear(16, 64)

        def forward(self, x):
            x = self.up(x)
            if case == "pointwise's ops":
                return pointwise.add(pointwise.silu_and_mul(x), 1.5)
            gate, value = x.chunk(2, -1)
            return torch.nn.functional.silu(gate) * value + 1.5

    torch.manual_seed(0)
    block, x = Block().to(device), torch.randn(4, 16, device=device)
    with torch.no_grad():
        want = block(x)
        if device == "cuda":
            torch.cuda.synchronize()
        print("step start", flush=True)
        if "compile" in steps:
            torch._inductor.aoti_compile_and_package(torch.export.export(block, (x,)), package_path=path)
            print("step compiled", flush=True)
        libraries = [line.split()[-1] for line in open("/proc/self/maps") if "libstdc++" in line]
        print("libraries", *sorted(set(libraries)), flush=True)
        loaded = torch._inductor.aoti_load_package(path)
        print("step loaded", flush=True)
        for _ in range(3):
            torch.testing.assert_close(loaded(x), want)
        if device == "cuda":
            torch.cuda.synchronize()
        print("step ran", flush=True)


def run(command, timeout):
    """Runs a process. Returns its exit code, None if it took too long, and what it wrote."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "errors": "replace"}
    process = subprocess.Popen(command, start_new_session=True, **pipes)
    try:
        out, err = process.communicate(timeout=timeout)
        return process.returncode, out, err
    except subprocess.TimeoutExpired:
        # With the compilers that it started, which hold the pipes.
        os.killpg(process.pid, signal.SIGKILL)
        return None, *process.communicate()


def outcome(code, out):
    """In words."""
    last = [line.split()[1] for line in out.splitlines() if line.startswith("step ")]
    after = f"after `{last[-1]}`" if last else "at the start"
    if code is None:
        return f"no end {after}"
    if code < 0:
        return f"{signal.Signals(-code).name} {after}"
    return "ran" if code == 0 else f"exit code {code} {after}"


def main(options):
    debugger = shutil.which("gdb") or shutil.which("cuda-gdb")
    rows, stacks = [], []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for number, case in enumerate(CASES):
            path = pathlib.Path(folder, f"case{number}.pt2")
            for title, steps in (("compiled here", "compile load"), ("in a new process", "load")):
                if steps == "load" and not path.exists():
                    continue
                arguments = [__file__, "--child", case, "--device", options.device, "--steps", steps]
                command = [sys.executable, "-X", "faulthandler", *arguments, "--path", str(path)]
                code, out, err = run(command, options.timeout)
                rows.append((case, title, outcome(code, out)))
                print(f"{case:<28}{title:<20}{rows[-1][-1]}", flush=True)
                if code == 0:
                    continue
                found = [line for line in out.splitlines() if line.startswith("libraries")]
                stacks.append("\n".join([f"\n{case}, {title}: {rows[-1][-1]}", *found, err[-4000:]]))
                if code is not None and code < 0 and debugger:
                    orders = ["-batch", "-ex", "run", "-ex", "bt 40", "-ex", "info sharedlibrary stdc", "--args"]
                    _, out, err = run([debugger, *orders, *command], 2 * options.timeout)
                    stacks.append(f"{debugger}:\n{out[-8000:]}\n{err[-1000:]}")
    print("\n".join(stacks))
    return int(any(row[-1] != "ran" for row in rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--folder", help="where packages are written: a temporary folder")
    parser.add_argument("--timeout", type=int, default=150, help="seconds for each process")
    for hidden in ("--child", "--steps", "--path"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        child(chosen.child, chosen.device, chosen.path, chosen.steps.split())
    else:
        sys.exit(main(chosen))
