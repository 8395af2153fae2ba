#!/usr/bin/env python3
"""Joins several runs of compare.py into one, of each time the run's in the middle.

    python3 medians.py RUN RUN.. --out DIR

Each RUN is a folder with ours.json and peers.jsonl; DIR gets the same two files, which `bench --from
DIR/ours.json --peers DIR/peers.jsonl` holds against each other. Of each row, and of each peer in it, the cold times are
those of the run whose median is the middle one (of two the smaller), with its percentiles; so are, each by itself, the
warm and the busy times, and those of graphs and of the host. Where tensors lie differs from run to run, and with it the
times, of all libraries alike: the fastest of several peers in one run is the luckiest of them, too. `compare.py --runs
N` calls this.
"""
import json
import statistics
import sys
from pathlib import Path

import script


class Unfit(Exception):
    """Runs that cannot be joined, and why."""


def middle(found, us):
    """Returns the one with the middle time, without those that have none; None if no time is left."""
    there = [one for one in found if one is not None and us(one) is not None]
    if not there:
        return None
    return sorted(there, key=us)[(len(there) - 1) // 2]


def median_of(values):
    there = [value for value in values if value is not None]
    return statistics.median_low(there) if there else None


def middle_times(runs):
    """The middle of several runs' times of one call, as ours.json has them."""
    times = {clock: middle([run.get(clock) for run in runs], lambda one: one["us"]) for clock in ("cold", "warm", "busy")}
    return times | {name: median_of(run.get(name) for run in runs) for name in ("graph_us", "host_us")}


def join_ours(reports):
    """One report of several of the same rows."""
    first, *others = reports
    rows = [{row["row"]: row for row in report["rows"]} for report in reports]
    if any(list(of) != list(rows[0]) for of in rows[1:]):
        raise Unfit("the runs are not of the same rows: give all the same --set")
    for row in first["rows"]:
        same = [of[row["row"]] for of in rows]
        # A row that one run skipped has the times of the others.
        row.update(next((one for one in same if not one.get("skipped")), row) | middle_times(same))
    floors = [report["launch_floor"] for report in reports if report.get("launch_floor")]
    if floors:
        first["launch_floor"] = middle_times(floors)
    return first


def join_peers(runs):
    """The lines of one file of several."""
    calls, errors, ends = {}, {}, []
    for lines in runs:
        for line in lines[1:]:
            if "end" in line:
                ends.append(set(line["end"].get("unreached", [])))
                continue
            at = (line["row"], line["peer"])
            if "error" in line:
                errors[at] = line
            else:
                calls.setdefault(at, []).append(line)
    yield runs[0][0]
    for at, lines in calls.items():
        cold = middle(lines, lambda one: one.get("cold_us"))
        others = {name: median_of(line.get(name) for line in lines) for name in ("warm_us", "graph_us", "host_us")}
        yield cold | {name: us for name, us in others.items() if us is not None}
        if busy := middle(lines, lambda one: one.get("busy_us")):
            yield busy
    yield from (line for at, line in errors.items() if at not in calls)
    if ends:
        reached = {row for row, _ in calls}
        yield {"end": {"unreached": sorted(set.intersection(*ends) - reached, key=str)}}


def read(path, parse):
    try:
        return parse(path.read_text())
    except (OSError, ValueError) as error:
        raise Unfit(f"cannot read {path}: {error}") from error


def read_peers(path):
    lines = read(path, lambda text: [json.loads(line) for line in text.splitlines() if line.strip()])
    # What peers.py leaves where it fails before it has timed anything.
    if not lines:
        raise Unfit(f"{path} is empty: leave its run out, or time it again")
    if not isinstance(lines[0], dict) or "meta" not in lines[0]:
        raise Unfit(f"{path} is not of peers.py: its first line has no meta")
    return lines


def join(folders, out):
    """Joins the runs of some folders into a folder.

    Raises Unfit, and OSError where the folder cannot be written."""
    reports = [read(folder / "ours.json", json.loads) for folder in folders]
    lines = [read_peers(folder / "peers.jsonl") for folder in folders]
    try:
        ours, peers = join_ours(reports), list(join_peers(lines))
    except (KeyError, TypeError) as error:
        raise Unfit(f"a run is not as bench and peers.py write it: {type(error).__name__}: {error}") from error
    out.mkdir(parents=True, exist_ok=True)
    (out / "ours.json").write_text(json.dumps(ours, indent=1) + "\n")
    (out / "peers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in peers))


def main():
    parser = script.parser(__doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR")
    options = parser.parse_args()
    try:
        join(options.runs, options.out)
    except (Unfit, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
