#!/usr/bin/env python3
"""How many blocks can be measured, and what each part of the method adds, as in the table of the BHive paper.

First the whole set with the default preset: shares of the verdicts, reasons of failure, blocks a second. Then a
sample with one part after the other: `ran` is `ok` or `unstable`.

    tests/figures/ablation.py [--only whole|steps] [--sample 4000] [--jobs 1]
"""

import argparse
import collections
import re

from common import Batch, arguments, draw, need, percent, table

# What is added, what the paper says for it, and the options that leave out all that follows.
STEPS = [
    ("none", "16.65 %", "--no-mapping --single-factor --physical-pages 1 --value-sets 1 --no-reseed --no-loop "
                        "--passes 1"),
    ("+ pages mapped on a fault", "91.28 %", "--single-factor --physical-pages 1 --value-sets 1 --no-reseed --no-loop "
                                             "--passes 1"),
    ("+ two unroll factors", "94.24 %", "--physical-pages 1 --value-sets 1 --no-reseed --no-loop --passes 1"),
    ("+ 16 physical pages", "", "--physical-pages 16 --value-sets 1 --no-reseed --no-loop --passes 1"),
    ("+ sets of initial values", "", "--physical-pages 16 --no-reseed --no-loop --passes 1"),
    ("+ registers set again", "", "--physical-pages 16 --no-loop --passes 1"),
    ("+ loop form, repeated passes: all", "", ""),
    ("--method bhive (one page, one set, unrolled)", "", "--method bhive"),
    ("--quick", "", "--quick"),
]


def main():
    """Runs and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, sample=4000)
    parser.add_argument("--only", choices=["whole", "steps"], help="only the whole set, or only the steps")
    parser.add_argument("--jobs", type=int, default=1, help="blocks measured at once (default 1)")
    args = parser.parse_args()
    need(args.tool, args.blocks)
    common = ["--jobs", str(args.jobs), *args.options.split()]
    if args.only != "steps":
        whole(args, common)
    if args.only != "whole":
        steps(args, common)


def whole(args, common):
    """All blocks, default preset."""
    batch = Batch(args.tool, draw(args.blocks, 0, args.seed), *common)
    count = len(batch.rows)
    print(f"All {count} blocks, default preset, {args.jobs} at once: {count / batch.seconds:.0f} blocks/s "
          f"({batch.seconds:.0f} s)\n")
    table(["status", "blocks", "share"],
          [[status, sum(row["status"] == status for row in batch.rows), percent(batch.share(status))]
           for status in ("ok", "unstable", "failed", "rejected")])
    reasons = collections.Counter((row["status"], shape(row["reason"])) for row in batch.rows if row["status"] != "ok")
    print()
    table(["status", "reason", "blocks", "share"],
          [[status, reason, n, percent(n / count)] for (status, reason), n in reasons.most_common(25)])
    print()


def shape(reason):
    """A reason without its numbers, so that equal ones are counted together."""
    reason = re.sub(r"0x[0-9a-f]+|-?\d+(\.\d+)?", "N", reason)
    return reason.replace("|", "/")


def steps(args, common):
    """One part of the method after the other."""
    blocks = draw(args.blocks, args.sample, args.seed)
    print(f"{len(blocks)} blocks drawn with seed {args.seed}\n")
    body = []
    for name, paper, options in STEPS:
        batch = Batch(args.tool, blocks, *options.split(), *common)
        body.append([name, percent(batch.share("ok", "unstable")), percent(batch.share("ok")),
                     f"{len(blocks) / batch.seconds:.0f}", paper])
        print(f"({name}: {body[-1][1]} ran)", flush=True)
    print()
    table(["method", "ran", "ok", "blocks/s", "BHive paper"], body)


if __name__ == "__main__":
    main()
