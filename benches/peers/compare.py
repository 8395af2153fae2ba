#!/usr/bin/env python3
"""Times pointwise and its peers on this machine's GPU, one after the other, and joins them.

    python3 compare.py [--bench PROGRAM] [--out DIR] [--set reference|large|all] [--clock cupti|events]
                       [--budget-s S] [--runs N] [--steps ours,peers,join] [--check]

PROGRAM is `bench`, which times pointwise; unless it is named, the one in the folder above this script (the bundle's) or the
workspace's target/release. DIR (`compare`) gets ours.json, peers.jsonl, joined.json, joined.txt and figures/. `--clock
cupti`, the default, times kernels with CUPTI too, on both sides; without its library events alone. `--budget-s` is for
the peers. `--runs N` measures both sides N times in turns, into DIR/run1 and so on, and joins the middle times
(medians.py). `--steps` leaves out steps whose files are there. `--check` only says whether everything is there. A peer
may also lie unpacked in a folder of PYTHONPATH, with what it needs (Liger: `packaging`).
"""
import importlib.util
import os
import shlex
import subprocess
import sys
from pathlib import Path

import medians
import script

HERE = Path(__file__).resolve().parent
# What each peer is imported as, and the package that brings it.
PACKAGES = {
    "triton": ("triton", "triton"), "cupy": ("cupy", "cupy-cuda13x"), "liger": ("liger_kernel", "liger-kernel"),
    "flashinfer": ("flashinfer", "flashinfer-python"),
}


def find_bench(named):
    """The program, or what to do."""
    if named:
        places = [Path(named)]
    else:
        places = [HERE.parent / "bench", HERE.parents[1] / "target/release/bench"]
    for place in places:
        if place.is_file() and os.access(place, os.X_OK):
            return place.resolve()
    tried = ", ".join(str(place) for place in places)
    sys.exit(f"error: no program bench at {tried}: build it with `cargo build --release -p benches --bin bench`, or "
             "name it with --bench")


def check_python(steps):
    """That PyTorch sees a GPU; says which peers are missing."""
    if "peers" not in steps:
        return
    torch = script.require("torch")
    script.require_gpu(torch)
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name(0)}")
    for peer, why in missing_peers().items():
        print(f"  {peer} is missing: {why}")


def missing_peers():
    """The peers that cannot run, and why. By importing them: a package may be there and lack what it needs."""
    import other_ops

    reasons = other_ops.missing()
    for peer, (module, package) in PACKAGES.items():
        if peer in reasons and importlib.util.find_spec(module) is None:
            reasons[peer] = f"`{sys.executable} -m pip install {package}` brings it"
    return reasons


def find_cupti():
    """CUPTI's library in PyTorch's packages, the newest first; None if it is not there."""
    found = []
    for module in ("nvidia", "triton", "torch"):
        spec = importlib.util.find_spec(module)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            found.extend(path for path in Path(folder).glob("**/libcupti.so*") if path.is_file())

    def newness(path):
        version = path.name.removeprefix("libcupti.so").strip(".").split(".")
        return int(version[0]) if version[0].isdigit() else 0

    # The first of the best: that of the packages PyTorch itself uses.
    return max(found, key=newness, default=None)


def run(command, copy_to=None):
    """Runs a command, showing it; what it prints goes to a file too. Returns its exit code."""
    print(f"$ {shlex.join(map(str, command))}", flush=True)
    if copy_to is None:
        return subprocess.run(command).returncode
    with open(copy_to, "w") as copy, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            copy.write(line)
            print(line, end="", flush=True)
    return process.returncode


def main():
    parser = script.parser(__doc__)
    parser.add_argument("--bench", metavar="PROGRAM")
    parser.add_argument("--out", default="compare", metavar="DIR")
    parser.add_argument("--set", choices=("reference", "large", "all"), default="all")
    parser.add_argument("--clock", choices=("cupti", "events"), default="cupti")
    parser.add_argument("--budget-s", type=float, default=460, metavar="S")
    parser.add_argument("--runs", type=script.positive, default=1, metavar="N")
    parser.add_argument("--steps", default="ours,peers,join")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    steps = options.steps.split(",")
    if unknown := set(steps) - {"ours", "peers", "join"}:
        parser.error(f"no step {', '.join(sorted(unknown))}: ours, peers, join")
    # xtask checks before it builds the program.
    bench = None if options.check else find_bench(options.bench)
    check_python(steps)
    cupti = find_cupti() if options.clock == "cupti" else None
    clock = "events"
    if cupti:
        clock = "cupti"
        print(f"CUPTI: {cupti}")
    elif options.clock == "cupti":
        print(f"no libcupti here, so no busy times: `{sys.executable} -m pip install nvidia-cuda-cupti` brings it")
    if options.check:
        return
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    ours, peers = out / "ours.json", out / "peers.jsonl"
    failed = []
    runs = [out] if options.runs == 1 else [out / f"run{i + 1}" for i in range(options.runs)]
    for folder in runs:
        folder.mkdir(exist_ok=True)
        if "ours" in steps:
            command = [bench, "--device", "cuda", "--set", options.set, "--json", folder / ours.name]
            command += ["--clock", "cupti", "--libcupti", cupti] if cupti else []
            if code := run(command):
                sys.exit(f"error: bench ended with {code}; `pointwise doctor` says what works here")
        if "peers" in steps:
            command = [sys.executable, HERE / "peers.py", "--set", options.set, "--out", folder / peers.name]
            if code := run([*command, "--clock", clock, "--budget-s", str(options.budget_s)]):
                # What it wrote before is of use.
                failed.append(f"peers.py ended with {code}")
    if "join" in steps and len(runs) > 1:
        try:
            medians.join(runs, out)
        except (medians.Unfit, OSError) as error:
            sys.exit(f"error: {'; '.join([*failed, str(error)])}")
    if "join" in steps:
        for path in (ours, peers):
            if not path.is_file():
                sys.exit(f"error: {path} is not there to be joined: it is what the step {path.stem} writes")
        command = [bench, "--from", ours, "--peers", peers, "--json", out / "joined.json"]
        if code := run([*command, "--figures", out / "figures"], copy_to=out / "joined.txt"):
            failed.append(f"the join ended with {code}")
    if failed:
        sys.exit(f"error: {'; '.join(failed)}")
    print(f"in {out}: {', '.join(sorted(path.name for path in out.iterdir()))}")


if __name__ == "__main__":
    script.run(main)
