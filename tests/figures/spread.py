#!/usr/bin/env python3
"""How well measurements repeat: separate processes over the same blocks, default preset.

Spread = (max - min) / median of the runs' `cycles`, unrounded. A block that is not `ok` in any of the runs counts
as failed. Every run is a process of its own with nothing kept from the one before.

    tests/figures/spread.py [--runs 5] [--sample 2000] [--keep FOLDER]
"""

import argparse
import csv
import os

from common import Batch, arguments, cycles, draw, median, need, percent, table

LIMITS = [0.002, 0.005, 0.01, 0.02, 0.05]


def main():
    """Runs and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, sample=2000)
    parser.add_argument("--runs", type=int, default=5, help="processes (default 5)")
    parser.add_argument("--keep", metavar="FOLDER", help="write each run's cycles to FOLDER/spread.csv")
    args = parser.parse_args()
    need(args.tool, args.blocks)
    blocks = draw(args.blocks, args.sample, args.seed)
    runs = []
    for index in range(args.runs):
        batch = Batch(args.tool, blocks, *args.options.split())
        print(f"run {index + 1}: {percent(batch.share('ok'))} ok, {len(blocks) / batch.seconds:.0f} blocks/s",
              flush=True)
        runs.append(batch)
    measured = [[cycles(run.rows[i]) for run in runs] for i in range(len(blocks))]
    spreads = [(max(m) - min(m)) / median(m) for m in measured if None not in m]
    print(f"\n{len(blocks)} blocks of {os.path.basename(args.blocks)}, seed {args.seed}, {args.runs} processes: "
          f"{len(spreads)} ({percent(len(spreads) / len(blocks))}) ok in all\n")
    body = [[f"≤ {100 * limit:g} %", percent(sum(s <= limit for s in spreads) / len(blocks), 1),
             percent(sum(s <= limit for s in spreads) / max(len(spreads), 1), 1)] for limit in LIMITS]
    table(["spread", "of all blocks", "of those ok in all runs"], body)
    if spreads:
        print(f"\nmedian spread of those ok in all runs: {percent(median(spreads))}")
    statuses(runs, measured)
    if args.keep:
        keep(args.keep, blocks, runs)


def statuses(runs, measured):
    """What the blocks were that were not ok in all runs."""
    kinds = {}
    for index, values in enumerate(measured):
        if None in values:
            words = "/".join(sorted({run.rows[index]["status"] for run in runs}))
            kinds[words] = kinds.get(words, 0) + 1
    print("\nnot ok in all runs: " + (", ".join(f"{n} {words}" for words, n in
                                                sorted(kinds.items(), key=lambda k: -k[1])) or "none"))


def keep(folder, blocks, runs):
    """Status and cycles of every run, for a closer look."""
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/spread.csv", "w", newline="") as file:
        writer = csv.writer(file)
        head = [f"{name}{i + 1}" for i in range(len(runs)) for name in ("status", "cycles", "unrolled", "loop")]
        writer.writerow(["hex", *head])
        for index, block in enumerate(blocks):
            cells = [run.rows[index][name] for run in runs for name in ("status", "cycles", "unrolled", "loop")]
            writer.writerow([block, *cells])


if __name__ == "__main__":
    main()
