#!/usr/bin/env python3
"""The matrix product's four loop orders, each with its estimated top-down tree, alone and on several processors.

  cargo build --release && python3 tests/figures/estimate_matmul.py

One product of `tdtool workload` for each copy, so runs do the same work. Nanoseconds are processor time of a
multiply-add, the least of some runs without the estimate; parts are those of the hottest function or loop, in per cent.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

from common import arguments, need, table

ORDERS = ("naive", "blocked", "interchanged", "copied")
PARTS = {"retiring": "Retiring", "bad_speculation": "Bad", "fetch_latency": "Fetch Lat.", "fetch_bandwidth": "Fetch Bw.",
         "core_bound": "Core", "memory_bound": "Memory", "unexplained": "Unexpl."}


def command(args, order, copies):
    """One product for each copy."""
    return [args.tool, "workload", "run", f"matmul-{order}", "--size", str(args.size), "--repeats", str(args.repeats),
            "--copies", str(copies)]


def nanoseconds(args, order, copies):
    """Processor time of a multiply-add: the least of some runs."""
    run = lambda: json.loads(subprocess.run([*command(args, order, copies), "--format", "json"], check=True, capture_output=True).stdout)
    return min(run()["ns_per_iteration"] for _ in range(args.rounds))


def estimate(args, order, copies, folder):
    """The hottest function or loop with the product, or why there is none."""
    out = f"{folder}/report.json"
    done = subprocess.run([args.tool, "report", "--estimate", "--format", "json", "--output", out, "--", *command(args, order, copies)],
                          capture_output=True, text=True)
    if done.returncode != 0 or not os.path.exists(out):
        return None, done.stderr.strip().splitlines()[:1]
    with open(out) as file:
        document = json.load(file)["estimate"]
    os.remove(out)
    found = [row for row in document["functions"] if f"{order}_rows" in row["name"]]
    return (max(found, key=lambda row: row["share"]), None) if found else (None, ["not covered"])


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, blocks=False)
    parser.add_argument("--size", type=int, default=1024, help="rows of a matrix (default 1024)")
    parser.add_argument("--repeats", type=int, default=1, help="products of each copy (default 1)")
    parser.add_argument("--rounds", type=int, default=3, help="timed runs (default 3)")
    parser.add_argument("--copies", default="1,2", help="numbers of copies, separated by commas (default 1,2)")
    args = parser.parse_args()
    need(args.tool)
    body = []
    with tempfile.TemporaryDirectory() as folder:
        for copies in map(int, args.copies.split(",")):
            for order in ORDERS:
                time = nanoseconds(args, order, copies)
                row, why = estimate(args, order, copies, folder)
                if row is None:
                    body.append([copies, order, f"{time:.2f}", *why])
                    continue
                body.append([copies, order, f"{time:.2f}", row["bottleneck"],
                             *(f"{100 * row['parts'][part]['value']:.0f}" for part in PARTS)])
                print(*body[-1], file=sys.stderr, flush=True)
    table(["copies", "order", "ns", "bottleneck", *PARTS.values()], body)


if __name__ == "__main__":
    main()
