#!/usr/bin/env python3
"""Whether removing the bottleneck that `tdtool report --estimate` names speeds a program up by as much as it says.

  cargo build --release && python3 tests/figures/estimate_speedups.py

Each pair of tests/figures/programs/speedups.c does the same work with a bottleneck and without. The estimate is of the first
program; predicted is its bottleneck's share of the function with the work (of the expected part where it is undecided, or a node of level 1), removed
is 1 - (time of the second) / (time of the first), of the least of some interleaved runs. What takes the place of a bottleneck
makes the removed share smaller than the predicted one.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

from common import arguments, need, table

SOURCE = "tests/figures/programs/speedups.c"
OPTIONS = ["-O2", "-g", "-fno-if-conversion", "-fno-if-conversion2", "-fno-tree-vectorize",
           "-fno-tree-loop-distribute-patterns", "-pthread"]
# Written before the first run. Pair: what is done, and the part that it removes.
PAIRS = {
    "prefetch": ("prefetch 16 iterations ahead", "memory_bound"),
    "branchless": ("a mask instead of a random branch", "bad_speculation"),
    "accumulators": ("four sums instead of one", "core_bound"),
    "forwarding": ("a register instead of two stores that a load waits for", "memory_bound"),
    "divide": ("a multiplication by the reciprocal", "core_bound"),
    "interchange": ("along rows instead of columns", "memory_bound"),
    "footprint": ("bytes instead of words", "memory_bound"),
    "stride": ("next to each other instead of 4 KiB apart", "memory_bound"),
    "sorted": ("the same numbers sorted before a branch on them", "bad_speculation"),
    "list": ("an array instead of a list in random order", "memory_bound"),
    "hash": ("four coefficients of a polynomial at once", "core_bound"),
    "sharing": ("a cache line for each thread", "memory_bound"),
}


def once(program, pair, which, size):
    """Result and seconds of the work."""
    out = subprocess.run([program, pair, which, str(size)], check=True, capture_output=True, text=True).stdout.split()
    return out[0], float(out[1])


def removed(program, pair, size, rounds):
    """The share of the first program's time that the second lacks."""
    best = {}
    for _ in range(rounds):
        results = set()
        for which in ("before", "after"):
            result, seconds = once(program, pair, which, size)
            results.add(result)
            best[which] = min(best.get(which, 9e9), seconds)
        if len(results) > 1:
            sys.exit(f"error: {pair}: both programs must have the same result: {results}")
    return 1 - best["after"] / best["before"]


def estimated(tool, program, pair, size, folder):
    """The hottest function with the work, and what all further runs cost; or why there is none."""
    out = f"{folder}/report.json"
    done = subprocess.run([tool, "report", "--estimate", "--format", "json", "--output", out, "--",
                           program, pair, "before", str(size)], capture_output=True, text=True)
    if not os.path.exists(out) or done.returncode != 0:
        return None, done.stderr.strip().splitlines()[0] if done.stderr else "no document"
    with open(out) as file:
        document = json.load(file)["estimate"]
    os.remove(out)
    work = [row for row in document["functions"] if row["name"].startswith(("k_", "counting"))]
    if not work:
        return None, "the work was not covered"
    runs = document["runs"]
    return max(work, key=lambda row: row["share"]), sum(run["seconds"] for run in runs[1:]) / runs[0]["seconds"]


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, blocks=False)
    parser.add_argument("--only", default="", help="pairs, separated by commas")
    parser.add_argument("--size", type=float, default=2.0, help="length of the programs (default 2: about two seconds)")
    parser.add_argument("--rounds", type=int, default=5, help="timed runs of each program (default 5)")
    args = parser.parse_args()
    need(args.tool, SOURCE)
    body, within, undecided, cpus = [], 0, 0, len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/speedups"
        subprocess.run(["gcc", *OPTIONS, "-o", program, SOURCE], check=True)
        for pair, (change, part) in PAIRS.items():
            if args.only and pair not in args.only.split(","):
                continue
            if pair == "sharing" and cpus < 2:
                body.append([pair, change, "skipped: one processor", "", "", "", "", ""])
                continue
            row, cost = estimated(args.tool, program, pair, args.size, folder)
            true = removed(program, pair, args.size, args.rounds)
            if row is None:
                body.append([pair, change, f"failed: {cost}", "", f"{100 * true:.0f}", "", "", ""])
                continue
            named = row["bottleneck"]
            is_part = named in row["parts"] and named != "backend_bound"
            share = row["parts"][named if is_part else part]
            is_within = share["low"] <= true <= share["high"]
            within += is_within and is_part
            undecided += not is_part
            body.append([pair, change, named if is_part else f"{named} ({part})",
                         f"{100 * share['value']:.0f} ({100 * share['low']:.0f}-{100 * share['high']:.0f})", f"{100 * true:.0f}",
                         f"{1 / (1 - share['value']) if share['value'] < 1 else 99:.2f}", f"{1 / (1 - true):.2f}",
                         "yes" if is_within else "NO"])
            print(*body[-1], f"cost {cost:.1f}", sep=" | ", flush=True, file=sys.stderr)
    table(["pair", "change", "bottleneck", "predicted %", "removed %", "predicted x", "measured x", "within"], body)
    print(f"\nwithin the interval {within} of {len(body)}, not decided {undecided}")


if __name__ == "__main__":
    main()
