#!/usr/bin/env python3
"""How much longer `tdtool block` takes because it explains the number.

Blocks drawn by seed, one process each, with and without `--no-explain`, by turns. Only blocks that are `ok` both times
count: what is unstable is measured again where it is to be explained.

    tests/figures/explain_cost.py [--sample 50]
"""

import argparse
import json
import statistics
import subprocess
import time

from common import arguments, draw, need, table


def main():
    """Runs and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, sample=50)
    args = parser.parse_args()
    need(args.tool, args.blocks)
    with_it, without = [], []
    for code in draw(args.blocks, args.sample, args.seed):
        plain, fine = run(code, args, "--no-explain")
        full, good = run(code, args)
        if fine and good:
            without.append(plain)
            with_it.append(full)
    ratios = sorted(a / b for a, b in zip(with_it, without))
    table(["blocks", "without, s", "with, s", "ratio of sums", "median ratio", "largest"],
          [[len(ratios), f"{sum(without):.1f}", f"{sum(with_it):.1f}", f"{sum(with_it) / sum(without):.2f}",
            f"{statistics.median(ratios):.2f}", f"{ratios[-1]:.2f}"]])


def run(code, args, *more):
    """Seconds of one process, and whether its block is ok."""
    start = time.monotonic()
    done = subprocess.run([args.tool, "block", code, "--format", "json", *more, *args.options.split()],
                          capture_output=True, text=True)
    taken = time.monotonic() - start
    return taken, done.stdout.startswith("{") and json.loads(done.stdout)["status"] == "ok"


if __name__ == "__main__":
    main()
