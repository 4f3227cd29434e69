#!/usr/bin/env python3
"""Verdicts of `tdtool block` on blocks of known nature: right, undecided, wrong.

For every block of tests/truth/verdicts.csv (tests/truth/README.md says how they were labelled): `hierarchy.bound` of
`tdtool block --format json` in three processes. Right: all three name the label's class. Wrong: any of them names
another class. Undecided: the rest, `undecided`, `unexplained` or not measured in at least one of them.

    tests/figures/verdicts.py [--runs 3] [--only CLASS]
"""

import argparse
import collections
import json
import subprocess

from common import TOOL, need, percent, rows, table

TRUTH = "tests/truth/verdicts.csv"
CLASSES = ("front-end", "issue-width", "ports", "dependency", "store-forwarding")


def main():
    """Runs and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tool", default=TOOL, help=f"the binary (default {TOOL})")
    parser.add_argument("--runs", type=int, default=3, help="processes for each block (default 3)")
    parser.add_argument("--only", choices=CLASSES, help="only the blocks of this class")
    parser.add_argument("--options", default="", metavar="TEXT", help="more options for `tdtool block`")
    args = parser.parse_args()
    need(args.tool, TRUTH)
    blocks = [row for row in rows(TRUTH) if args.only in (None, row["class"])]
    said = [[verdict(row["hex"], args) for _ in range(args.runs)] for row in blocks]
    judged = [judge(row["class"], one) for row, one in zip(blocks, said)]
    table(["block", "drawn", "label", "verdicts", "cycles", "judged", "why the label"],
          [[row["name"], "yes" if row["origin"].startswith("BHive") else "no", row["class"],
            ", ".join(dict.fromkeys(name for name, _ in one)), cycles(one), right, row["reason"]]
           for row, one, right in zip(blocks, said, judged)])
    print()
    summary(blocks, judged)


def verdict(code, args):
    """The class that one process names, and the measured cycles."""
    done = subprocess.run([args.tool, "block", code, "--format", "json", *args.options.split()],
                          capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        return "no report", None
    report = json.loads(done.stdout)
    measured = (report.get("throughput") or {}).get("cycles")
    if report["status"] != "ok":
        return report["status"], measured
    return (report.get("hierarchy") or {}).get("bound") or "none given", measured


def judge(label, said):
    """right, undecided or wrong."""
    names = {name for name, _ in said}
    if names == {label}:
        return "right"
    return "**wrong**" if names & set(CLASSES) - {label} else "undecided"


def cycles(said):
    """The least and the most that was measured."""
    values = [value for _, value in said if value is not None]
    return f"{min(values):.2f}–{max(values):.2f}" if values else "–"


def summary(blocks, judged):
    """One row for each class, for the drawn ones and for all."""
    sets = collections.defaultdict(list)
    for row, right in zip(blocks, judged):
        names = [row["class"], "**all**"] + (["drawn by seed"] if row["origin"].startswith("BHive") else [])
        for name in names:
            sets[name].append(right)
    body = []
    for name in (*CLASSES, "drawn by seed", "**all**"):
        counts, total = collections.Counter(sets[name]), len(sets[name])
        if total:
            body.append([name, total, *(f"{counts[what]} ({percent(counts[what] / total, 0)})"
                                        for what in ("right", "undecided", "**wrong**"))])
    table(["blocks", "count", "right", "undecided", "wrong"], body)


if __name__ == "__main__":
    main()
