#!/usr/bin/env python3
"""Blocks of known throughput: how far the profiler is from tests/block/known.csv.

Each block that has an expected value for this machine's core is measured once with the default preset, in one
process. A block that is not `ok`, or whose form was not measured, counts as wrong by any distance.

Printed twice: with tests/block/errata.csv applied, and for the list as it was committed before measuring.

    tests/figures/known.py [--core golden_cove] [--all]
"""

import argparse
import re
from fractions import Fraction

from common import Batch, arguments, median, need, number, percent, rows, table

LIST = "tests/block/known.csv"
ERRATA = "tests/block/errata.csv"
CORES = {
    "zen3": ("AuthenticAMD", 0x19, [*range(0x00, 0x10), *range(0x20, 0x60)]),
    "zen4": ("AuthenticAMD", 0x19, [*range(0x10, 0x20), *range(0x60, 0xB0)]),
    "golden_cove": ("GenuineIntel", 6, [0x97, 0x9A, 0xB7, 0xBA, 0xBF, 0x8F, 0xCF]),
}
WITHIN = [0.002, 0.005, 0.01, 0.02, 0.05]


def this_core():
    """The column of the processor this runs on, or None."""
    with open("/proc/cpuinfo") as file:
        text = file.read().split("\n\n")[0]
    field = dict(re.findall(r"^(vendor_id|cpu family|model)\s*: (.*)$", text, re.M))
    for core, (vendor, family, models) in CORES.items():
        if (field.get("vendor_id"), int(field.get("cpu family", 0))) == (vendor, family) \
                and int(field.get("model", -1)) in models:
            return core
    return None


def touches_memory(row):
    """Whether an instruction other than a nop has a memory operand."""
    return any("[" in i and not i.strip().startswith("nop") for i in row["asm"].split(";"))


def main():
    """Measures the list and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, blocks=False)
    parser.add_argument("--core", choices=CORES, help="whose expected values (default: this machine's)")
    parser.add_argument("--all", action="store_true", help="print every block, not only the worst")
    args = parser.parse_args()
    need(args.tool, LIST, ERRATA)
    core = args.core or this_core()
    if core is None:
        raise SystemExit("error: no expected values for this processor\ntry: --core")
    known = [row for row in rows(LIST) if row[core]]
    batch = Batch(args.tool, [row["hex"] for row in known], *args.options.split())
    changes = {row["name"]: row["change"] for row in rows(ERRATA) if row["core"] == core}
    pairs = list(zip(known, batch.rows))
    print(f"Expected values of {core}; default preset; a block that is not ok counts as wrong.\n")
    corrected = judged([(dict(row, form=changes.get(row["name"], row["form"])), got) for row, got in pairs
                        if changes.get(row["name"]) != "withdrawn"], core)
    summary(core, corrected)
    print(f"\nAs committed, {ERRATA} not applied:\n")
    summary(core, judged(pairs, core))
    worst(corrected, len(corrected) if args.all else 20)


def judged(pairs, core):
    """(error, row, expected, measured, got) of each block; infinite where there is no verdict."""
    result = []
    for row, got in pairs:
        expected = float(Fraction(row[core]))
        measured = number(got["loop" if row["form"] == "loop" else "unrolled"])
        good = got["status"] == "ok" and measured is not None
        error = abs(measured / expected - 1) if good else float("inf")
        result.append((error, row, expected, measured, got))
    return result


def summary(core, errors):
    """Shares by kind of block."""
    kinds = [("all", lambda r: True), ("with memory", touches_memory),
             ("no multiple of 0.25", lambda r: (Fraction(r[core]) * 4).denominator != 1)]
    kinds += [(f"class {c}", lambda r, c=c: r["class"] == c)
              for c in sorted({row["class"] for _, row, *_ in errors})]
    body = []
    for name, keep in kinds:
        some = [error for error, row, *_ in errors if keep(row)]
        if some:
            middle = median(some)
            shares = [percent(sum(e <= w for e in some) / len(some), 1) for w in WITHIN]
            ok = sum(e < float("inf") for e in some)
            body.append([name, len(some), ok, "not ok" if middle == float("inf") else percent(middle), *shares])
    table(["blocks", "number", "ok", "median error", *(f"within {100 * w:g} %" for w in WITHIN)], body)


def worst(errors, count):
    """The blocks furthest off."""
    print()
    body = []
    for error, row, expected, measured, got in sorted(errors, key=lambda e: -e[0])[:count]:
        off = got["status"] if error == float("inf") else percent(error)
        body.append([row["name"], row["form"], f"{expected:.3f}", "" if measured is None else f"{measured:.3f}",
                     got["loop"][:6], off, got["reason"][:60] or row["why"]])
    table(["block", "form", "expected", "measured", "loop", "error", "why"], body)


if __name__ == "__main__":
    main()
