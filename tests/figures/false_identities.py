#!/usr/bin/env python3
"""The same processor under false identities: blocks, and estimates of programs of known behaviour.

Each identity is a CPUID dump of another processor (`--dumps`), which the tool is made to believe with its option
`--cpuid`. Blocks: those of tests/block/known.csv and a sample of BHive, measured twice as what the processor is (how far
two runs differ anyway) and once as each of the others. Programs: those of tests/figures/estimate_labels.csv.

    tests/figures/false_identities.py [--sample 1000] [--programs dram_chase,misp50] [--identity NAME ...]
"""

import argparse
import csv
import subprocess
import sys
import tempfile

from common import Batch, arguments, cycles, draw, need, percent, rows, table

DUMPS = "../shared/processors/cpuid.csv"
KNOWN = "tests/block/known.csv"
IDENTITIES = [
    "masked-granite-rapids-as-rocket-lake",
    "0050654_SkylakeX_CPUID",
    "0830F10_K17_Rome_CPUID2",
    "0B40F40_K20_GraniteRidge_02_CPUID",
]
# How far a block may be from what it is under the true identity.
SAME = 0.02


def written(dumps, identity, folder):
    """A file with the rows of one processor."""
    path = f"{folder}/{identity.replace('/', '-')}.csv"
    found = [row for row in rows(dumps) if row["processor"] == identity]
    if not found:
        sys.exit(f"error: {dumps} has no {identity}")
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["leaf", "subleaf", "eax", "ebx", "ecx", "edx"])
        writer.writerows([row[key] for key in ("leaf", "subleaf", "eax", "ebx", "ecx", "edx")] for row in found)
    return path


def compared(base, other):
    """Blocks that both have, and how many of them differ."""
    both = [(cycles(a), cycles(b)) for a, b in zip(base.rows, other.rows)]
    both = [(a, b) for a, b in both if a and b]
    return len(both), sum(abs(b / a - 1) > SAME for a, b in both)


def blocks(args, files):
    """Rows of the table of blocks."""
    sets = {"known": [row["hex"] for row in rows(KNOWN)], "BHive": draw(args.blocks, args.sample, args.seed)}
    body = []
    for name, wanted in sets.items():
        base = Batch(args.tool, wanted, *args.options.split())
        again = Batch(args.tool, wanted, *args.options.split())
        runs = [("true, again", again)]
        for identity, path in files.items():
            runs.append((identity, Batch(args.tool, wanted, "--cpuid", path, *args.options.split())))
        body.append([name, "true", len(wanted), percent(base.share("ok")), "", ""])
        for identity, run in runs:
            both, differ = compared(base, run)
            body.append([name, identity, len(wanted), percent(run.share("ok")), differ, percent(differ / max(both, 1))])
    return body


def estimates(args, files):
    """Rows of the table of programs: the verdict counts as estimate_known.py prints them."""
    body = []
    for identity, path in {"true": None, **files}.items():
        command = ["python3", "tests/figures/estimate_known.py", "--tool", args.tool, "--only", args.programs, "--size", "0.6"]
        if path:
            command.append(f"--global=--cpuid {path}")
        done = subprocess.run(command, capture_output=True, text=True)
        body.append([identity, (done.stdout.strip().splitlines() or [done.stderr.strip()])[-1]])
    return body


def main():
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, sample=1000)
    parser.add_argument("--dumps", default=DUMPS, help=f"CPUID dumps (default {DUMPS})")
    parser.add_argument("--identity", nargs="*", default=IDENTITIES, help="processors of the dumps")
    parser.add_argument("--programs", default="", help="programs to estimate, separated by commas; none: blocks only")
    args = parser.parse_args()
    need(args.tool, args.blocks, args.dumps)
    with tempfile.TemporaryDirectory() as folder:
        files = {identity: written(args.dumps, identity, folder) for identity in args.identity}
        table(["blocks", "identity", "number", "ok", "over 2 % apart", "share"], blocks(args, files))
        if args.programs:
            print()
            table(["identity", "programs"], estimates(args, files))


if __name__ == "__main__":
    main()
