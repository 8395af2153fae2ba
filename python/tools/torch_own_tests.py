"""Runs PyTorch's own tests of elementwise ops without and with `pointwise.override()`, and compares.

    python python/tools/torch_own_tests.py FOLDER [--device cpu] [--only NAME] [--save FILE] [-- PYTEST'S OPTIONS]

FOLDER has `test_unary_ufuncs.py` and `test_binary_ufuncs.py` of PyTorch's repository (folder `test`), best of the
release that is installed. They need pytest, expecttest and numpy, and scipy for the references of some ops. The two
runs differ in nothing but the call of `override()`. What fails in both is torch's, or the machine's. The exit code is 1
if a test fails with `override()` alone, and 2 if a run ends early.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

FILES = ("test_unary_ufuncs.py", "test_binary_ufuncs.py")
# Where a run, which has this file as a plugin of pytest, writes, and whether it turns the kernels on.
RESULTS, OVERRIDE = "POINTWISE_TEST_RESULTS", "POINTWISE_TEST_OVERRIDE"
# Calls of pointwise's kernels before the test that runs.
_BEFORE = [0]


def pytest_configure(config):
    if os.environ.get(OVERRIDE):
        import pointwise

        pointwise.override()


def pytest_runtest_setup(item):
    if os.environ.get(OVERRIDE):
        from pointwise import _native

        _BEFORE[0] = _native.override_calls()


def pytest_runtest_teardown(item):
    if os.environ.get(OVERRIDE):
        from pointwise import _native

        item.user_properties.append(("calls", _native.override_calls() - _BEFORE[0]))


def pytest_runtest_logreport(report):
    if "PYTEST_XDIST_WORKER" in os.environ:
        return  # xdist's own process writes it
    outcome = report.outcome
    if hasattr(report, "wasxfail"):
        # One that is expected to fail, and does or does not.
        outcome = "xfailed" if outcome == "skipped" else "xpassed"
    line = {"test": report.nodeid, "when": report.when, "outcome": outcome}
    line["calls"] = dict(report.user_properties).get("calls", 0)
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        line["why"] = crash.message if crash else str(report.longrepr)
    with open(os.environ[RESULTS], "a") as file:
        file.write(json.dumps(line) + "\n")


def run(folder, options, override):
    """Runs the tests. Returns for each its outcome, why it failed, and how often it ran a kernel of pointwise's."""
    with tempfile.TemporaryDirectory() as empty:
        results = pathlib.Path(empty, "results")
        results.touch()
        env = os.environ | {RESULTS: str(results), "PYTORCH_TESTING_DEVICE_ONLY_FOR": options.device}
        env["PYTHONPATH"] = os.pathsep.join([str(pathlib.Path(__file__).parent), env.get("PYTHONPATH", "")])
        env.pop(OVERRIDE, None)
        if override:
            env[OVERRIDE] = "1"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "torch_own_tests", "-p", "no:cacheprovider"]
        command += ["--tb=short", "--no-header", "--no-summary", *(["-k", options.only] if options.only else [])]
        files = [str(pathlib.Path(folder, name)) for name in FILES]
        code = subprocess.run([*command, *options.pytest, *files], env=env, cwd=folder).returncode
        found = {}
        for line in map(json.loads, results.read_text().splitlines()):
            test = found.setdefault(line["test"], {"outcome": "passed", "why": "", "calls": 0})
            if line["outcome"] != "passed" and test["outcome"] != "failed":
                test["outcome"], test["why"] = line["outcome"], line.get("why", "")
            test["calls"] += line["calls"] if line["when"] == "teardown" else 0
    if code not in (0, 1):
        print(f"pytest ended with {code} after {next(reversed(found), 'no test')}")
        sys.exit(2)
    return found


def main(options):
    runs = {way: run(options.folder, options, way == "override()") for way in ("torch", "override()")}
    theirs, ours = runs.values()
    if options.save:
        pathlib.Path(options.save).write_text(json.dumps(runs, indent=1))
    for name in FILES:
        print(f"\n{name}")
        for way, tests in runs.items():
            tests = [test for key, test in tests.items() if name in key]
            counts = collections.Counter(test["outcome"] for test in tests)
            line = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
            print(f"  {way:<12}{line}")
        print(f"  {sum(1 for test in tests if test['calls'])} tests ran kernels of pointwise's")
    worse = 0
    for key in sorted(theirs.keys() | ours.keys()):
        before, after = (tests.get(key, {"outcome": "not run", "why": ""}) for tests in (theirs, ours))
        if before["outcome"] != after["outcome"]:
            worse += after["outcome"] == "failed"
            print(f"\n{key}: {before['outcome']}, with override() {after['outcome']}")
            print("    " + "\n    ".join((after["why"] or before["why"]).splitlines()[:12]))
    print(f"\n{worse} tests fail with override() alone")
    return int(worse > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="where PyTorch's test files are")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--only", help="tests whose names pytest's -k selects")
    parser.add_argument("--save", help="write the outcomes to a file, as JSON")
    # What is behind `--` is pytest's.
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    chosen = parser.parse_args(sys.argv[1:at])
    chosen.pytest = sys.argv[at + 1 :]
    sys.exit(main(chosen))
