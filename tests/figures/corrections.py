#!/usr/bin/env python3
"""Corrections of iced-x86, each shown by a block on this processor; and chains that give latencies.

`corrections.csv`: a block whose time tells whether an input is waited for: the cycles of an iteration if it is
(`dependent`), and if it is not (`free`). What is measured decides by the nearer of the two, on a logarithmic scale,
and is compared with what is said of Golden Cove (`what`: waits, breaks, free, renamed).

`chains.csv`: a block that is a chain through one operand; the latency is (cycles - minus) / divide.

    tests/figures/corrections.py [--chains] [--tool PATH]
"""

import argparse
import math
import os
import subprocess
import tempfile

from common import Batch, arguments, need, number, rows, table

HERE = os.path.dirname(os.path.abspath(__file__))
TRIES = 4


def assemble(text):
    """The bytes of a block, in hexadecimal."""
    with tempfile.TemporaryDirectory() as folder:
        source, target, binary = (f"{folder}/{name}" for name in ("a.s", "a.o", "a.bin"))
        with open(source, "w") as file:
            file.write(".intel_syntax noprefix\n" + text.replace(";", "\n") + "\n")
        subprocess.run(["as", source, "-o", target], check=True)
        subprocess.run(["objcopy", "-O", "binary", "-j", ".text", target, binary], check=True)
        with open(binary, "rb") as file:
            return file.read().hex()


def measured(tool, blocks, options):
    """A row for each block; those that are not ok are tried again a few times."""
    got = {}
    left = list(dict.fromkeys(blocks))
    for _ in range(TRIES):
        if left:
            got.update(zip(left, Batch(tool, left, *options).rows))
            left = [block for block in left if got[block]["status"] != "ok"]
    return [got[block] for block in blocks]


def best(row):
    """The smaller of the forms: a chain is what remains when nothing else limits."""
    values = [number(row[form]) for form in ("unrolled", "loop")]
    values = [value for value in values if value]
    return min(values) if row["status"] == "ok" and values else None


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, blocks=False)
    parser.add_argument("--chains", action="store_true", help="the chains that give latencies")
    args = parser.parse_args()
    need(args.tool)
    listed = rows(f"{HERE}/{'chains' if args.chains else 'corrections'}.csv")
    results = measured(args.tool, [assemble(row["asm"]) for row in listed], args.options.split())
    (chains if args.chains else corrections)(listed, results)


def corrections(listed, results):
    """Whether each input is waited for."""
    body = []
    for row, result in zip(listed, results):
        cycles, dependent, free = best(result), float(row["dependent"]), float(row["free"])
        if cycles is None:
            verdict, shown = result["reason"] or result["status"], ""
        else:
            shown = f"{cycles:.2f}"
            nearer = abs(math.log(cycles / dependent)) < abs(math.log(cycles / free))
            waits = "waits" if nearer else "does not wait"
            agrees = nearer == (row["what"] == "waits")
            verdict = waits if agrees else f"{waits}: **not as said**"
        body.append([row["name"], f"`{row['asm']}`", f"{dependent:g}", f"{free:g}", shown, verdict])
    table(["input", "block", "if waited for", "if not", "measured", "verdict"], body)


def chains(listed, results):
    """The latency that each chain gives."""
    body = []
    for row, result in zip(listed, results):
        cycles = best(result)
        shown = result["reason"] or result["status"]
        if cycles is not None:
            shown = f"{(cycles - float(row['minus'])) / float(row['divide']):.2f}"
        body.append([row["mnemonics"], row["class"], row["key"], f"`{row['asm']}`", shown])
    table(["mnemonics", "class", "latency", "block", "cycles"], body)


if __name__ == "__main__":
    main()
