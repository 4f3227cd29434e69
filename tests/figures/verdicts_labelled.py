#!/usr/bin/env python3
"""Verdicts of `tdtool block` on the blocks of verdicts_labelled.csv, labelled by hand before any of them was measured.

The columns named after cores hold the classes that are right there, the expected one first; empty: not judged on that
core. Each block is measured in several processes. Right: all name a right class. Wrong: at least one of them names
another class; a verdict has no degrees, so that any such is confidently wrong. Undecided: the rest. Blocks that begin
with `1:` are bodies of loops.

verdicts_errata.csv has the labels that native_blocks.py, a program apart from the tool, found wrong on a core; the
results are shown with and without them. verdicts_aside.csv was labelled with that program, and is measured once; verdicts_aside2.csv by reasoning, which that program
confirms, before the rules of the verdict were changed, and is measured when they are final.

    tests/figures/verdicts_labelled.py [--list tests/figures/verdicts_aside.csv] [--core zen5] [--runs 3] [--hogs 2] [--only REGEX] [--part K/N] [-o rows.csv]
    tests/figures/verdicts_labelled.py --from rows.csv …      only the tables of earlier runs
"""

import argparse
import collections
import contextlib
import json
import os
import re
import subprocess
import sys

from common import TOOL, append, need, percent, rows, table
import known

HERE = os.path.dirname(os.path.abspath(__file__))
LIST = os.path.join(HERE, "verdicts_labelled.csv")
ERRATA = os.path.join(HERE, "verdicts_errata.csv")
CLASSES = ("dependency", "ports", "issue-width", "store-forwarding", "front-end")
COLUMNS = ["name", "label", "said", "statuses", "cycles", "judged", "hogs"]


def main():
    """Runs and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tool", default=TOOL, help=f"the binary (default {TOOL})")
    parser.add_argument("--list", default=LIST, help="the labelled blocks")
    parser.add_argument("--core", choices=("golden_cove", "zen4", "zen5"), help="whose labels (default: this machine's)")
    parser.add_argument("--runs", type=int, default=3, help="processes for each block (default 3)")
    parser.add_argument("--hogs", type=int, default=0, help="busy loops beside the measurement (default 0)")
    parser.add_argument("--only", default="", metavar="REGEX", help="only these blocks")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="only part K of N")
    parser.add_argument("--options", default="", metavar="TEXT", help="more options for `tdtool block`")
    parser.add_argument("-o", metavar="FILE", dest="output", help="append the rows to this CSV")
    parser.add_argument("--from", nargs="+", metavar="CSV", dest="earlier", help="only print earlier results")
    args = parser.parse_args()
    if args.earlier:
        return report([row for path in args.earlier for row in rows(path)])
    need(args.tool)
    core = args.core or known.this_core() or zen5()
    if core is None:
        sys.exit("error: no labels for this processor\ntry: --core")
    part, parts = map(int, args.part.split("/"))
    blocks = [row for row in rows(args.list) if row[core] and re.search(args.only, row["name"])][part - 1::parts]
    found = []
    with hogs(args.hogs):
        for block in blocks:
            found.append(judged(block, core, args))
            if args.output:
                append(args.output, found[-1], COLUMNS)
    report(found)


def zen5():
    """`zen5` where this is one: AMD's family 26 (known.csv has no column for it)."""
    with open("/proc/cpuinfo") as file:
        return "zen5" if re.search(r"^cpu family\s*: 26$", file.read(), re.M) else None


@contextlib.contextmanager
def hogs(count):
    """That many busy loops, ended afterwards."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()


def judged(block, core, args):
    """One block: what each process says, and whether that is right."""
    accepted = set(block[core].split("|"))
    said = [verdict(block["asm"], args) for _ in range(args.runs)]
    right = judgement({name for name, _, _ in said}, accepted)
    values = [value for _, _, value in said if value]
    return {"name": block["name"], "label": block[core], "said": " ".join(dict.fromkeys(name for name, _, _ in said)),
            "statuses": " ".join(dict.fromkeys(status for _, status, _ in said)), "judged": right, "hogs": args.hogs,
            "cycles": f"{min(values):.2f}–{max(values):.2f}" if values else ""}


def judgement(names, accepted):
    """Whether the classes that the processes named are right."""
    return "right" if names <= accepted else "wrong" if names & set(CLASSES) - accepted else "undecided"


def corrected(found):
    """The rows with the labels of the errata; without those that it withdraws."""
    labels = {row["name"]: row["zen5"] for row in rows(ERRATA)}
    for row in found:
        label = labels.get(row["name"], row["label"])
        if label:
            yield {**row, "label": label, "judged": judgement(set(row["said"].split()), set(label.split("|")))}


def verdict(asm, args):
    """The class that one process names, its status and the measured cycles."""
    done = subprocess.run([args.tool, "block", "--asm", asm, "--format", "json", *args.options.split()],
                          capture_output=True, text=True)
    document = json.loads(done.stdout) if done.stdout.startswith("{") else {"status": "no-report"}
    status = document["status"]
    name = (document.get("hierarchy") or {}).get("bound") or "none" if status == "ok" else status
    return name, status, (document.get("throughput") or {}).get("cycles")


def report(found):
    """Every block, then the shares by class, as labelled and with the errata."""
    table(["block", "label", "verdicts", "cycles", "judged"],
          [[row["name"], row["label"], row["said"], row["cycles"], row["judged"]] for row in found])
    shares(found)
    if zen5():
        print("\nWith the errata:")
        shares(list(corrected(found)))


def shares(found):
    """The shares by class."""
    print()
    sets = collections.defaultdict(list)
    for row in found:
        for name in (row["label"].split("|")[0], "**all**"):
            sets[name].append(row["judged"])
    table(["label", "blocks", "right", "undecided", "wrong"],
          [[name, len(some), *(f"{some.count(what)} ({percent(some.count(what) / len(some), 0)})"
                               for what in ("right", "undecided", "wrong"))]
           for name in (*CLASSES, "undecided", "**all**") if (some := sets[name])])


if __name__ == "__main__":
    main()
