#!/usr/bin/env python3
"""Blocks whose pages share physical pages: how many are flagged, and how many really differ.

The blocks with `may_alias` = 1 in the set are measured with 1, 2, 4, 8 and 16 physical pages. A block differs from
its value with 16 pages if both are `ok`, they lie more than 5 % apart, and neither lies in the other's range.

    tests/figures/alias.py [--sample 0] [--pages 1,2,4,8,16] [--also N]
"""

import argparse

from common import Batch, arguments, draw, need, number, percent, table


def main():
    """Runs and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, sample=0)
    parser.add_argument("--pages", default="1,2,4,8,16", help="numbers of physical pages, the last the reference")
    parser.add_argument("--also", type=int, default=0, metavar="N",
                        help="the same for N blocks with may_alias = 0 (default none)")
    args = parser.parse_args()
    need(args.tool, args.blocks)
    counts = [int(text) for text in args.pages.split(",")]
    report("may_alias = 1", args, counts, draw(args.blocks, args.sample, args.seed, marked("1")))
    if args.also:
        print()
        report("may_alias = 0", args, counts, draw(args.blocks, args.also, args.seed, marked("0")))


def marked(value):
    """Whether a row is marked so."""
    return lambda row: row["may_alias"] == value


def report(name, args, counts, blocks):
    """One table: a row for each number of physical pages."""
    batches = {n: Batch(args.tool, blocks, "--physical-pages", str(n), *args.options.split()) for n in counts}
    reference = batches[counts[-1]].rows
    several = sum(int(row["pages"] or 0) > 1 for row in reference)
    print(f"{len(blocks)} blocks with {name}; {several} touch more than one page; reference {counts[-1]} pages\n")
    body = []
    for count in counts:
        rows = batches[count].rows
        both = [(a, b) for a, b in zip(rows, reference) if a["status"] == b["status"] == "ok"]
        flagged = sum(int(row["pages"] or 0) > count for row in rows)
        differs = [(a, b) for a, b in both if differ(a, b)]
        slower = sum(number(a["cycles"]) > number(b["cycles"]) for a, b in differs)
        missed = sum(int(a["pages"] or 0) <= count for a, _ in differs)
        body.append([count, f"{flagged} ({percent(flagged / len(blocks), 1)})", len(both),
                     f"{len(differs)} ({percent(len(differs) / max(len(both), 1), 1)})", slower, missed])
    table(["physical pages", "flagged: more pages than that", "ok in both", "differ > 5 %", "of those slower",
           "differ, not flagged"], body)


def differ(a, b):
    """Whether two results differ by more than 5 % and outside of each other's range."""
    x, y = number(a["cycles"]), number(b["cycles"])
    apart = number(a["low"]) > number(b["high"]) or number(b["low"]) > number(a["high"])
    return apart and abs(x / y - 1) > 0.05


if __name__ == "__main__":
    main()
