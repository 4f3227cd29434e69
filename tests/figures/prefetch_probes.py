#!/usr/bin/env python3
"""Prefetch advice of `tdtool prefetch -- PROGRAM`, applied by hand and timed.

For each program of prefetch/*.c: the advised distance and loop, and the seconds without a prefetch, with it, and at half,
twice, four times and an eighth of the distance, in turn; the median of the rounds. Where nothing is advised, distances 4 and 16 show
whether a prefetch would have helped.

    tests/figures/prefetch_probes.py --rounds 5              # needs gcc
"""

import argparse
import glob
import json
import os
import statistics
import subprocess
import tempfile

from common import arguments, need

SOURCES = f"{os.path.dirname(os.path.abspath(__file__))}/prefetch"


def build(name, folder, distance, outer=False):
    """A program with this distance."""
    out = f"{folder}/{name}-{distance}{'-outer' if outer else ''}"
    more = ["-DOUTER"] if outer else []
    subprocess.run(["gcc", "-O2", "-g", f"-DDIST={distance}", *more, f"{SOURCES}/{name}.c", "-o", out], check=True)
    return out


def advice(tool, program):
    """The rows of the document."""
    command = [tool, "prefetch", "--format", "json", "--", program]
    document = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    return [row for row in document["advice"] if row["function"] == "kernel"]


def times(programs, rounds):
    """Median seconds of each, in turn, against the first; and the least and largest ratio to it in the same round."""
    run = lambda program: float(subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()[0])
    seen = [[run(program) for program in programs] for _ in range(rounds)]
    medians = [statistics.median(one) for one in zip(*seen)]
    ratios = [[one[0] / one[k] for one in seen] for k in range(len(programs))]
    return [(median, statistics.median(own), min(own), max(own)) for median, own in zip(medians, ratios)]


def show(labels, found):
    """One line per variant."""
    for label, (seconds, faster, low, high) in zip(labels, found):
        print(f"    {label:<16} {seconds:7.3f} s  {faster:5.2f}× ({low:.2f} to {high:.2f})")


def one(tool, name, folder, rounds):
    """A program."""
    plain = build(name, folder, 0)
    rows = advice(tool, plain)
    print(name, flush=True)
    for row in rows:
        cycles = f"IC {row['ic']:.1f} ({row['ic_source']}), MC {row['mc']:.0f} ({row['mc_source']})" if row["distance"] else ""
        print(f"  {row['load']} {row['class']}: {row['refused'] or row['distance'] or row['unknown']} {row['site'] or ''} {cycles}")
    advised = [row for row in rows if not row["refused"] and row["distance"] and row["site"]]
    if advised:
        distance, outer = advised[0]["distance"], advised[0]["site"] == "outer"
        distances = [distance, max(1, distance // 2), 2 * distance, 4 * distance, max(1, distance // 8)]
        labels = ["none"] + [f"{d} {advised[0]['site']}" for d in distances]
        programs = [plain] + [build(name, folder, d, outer) for d in distances]
    else:
        labels, programs = ["none", "4", "16"], [plain] + [build(name, folder, d) for d in (4, 16)]
    show(labels, times(programs, rounds))


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, blocks=False)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each variant (default 5)")
    parser.add_argument("programs", nargs="*", help="programs (default: all)")
    args = parser.parse_args()
    need(args.tool)
    names = sorted(os.path.basename(path)[:-2] for path in glob.glob(f"{SOURCES}/*.c"))
    with tempfile.TemporaryDirectory() as folder:
        for name in args.programs or names:
            one(args.tool, name, folder, args.rounds)


if __name__ == "__main__":
    main()
