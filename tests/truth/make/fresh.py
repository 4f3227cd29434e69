#!/usr/bin/env python3
"""Makes tests/truth/bounds/fresh.csv and fresh_native.csv: loops written to check rules that were chosen by others.

    tests/truth/make/fresh.py --mca NAME=COMMAND [--mca NAME=COMMAND …] [--native] [--repeats 3000]

As bounds.py and native.py do, of tests/truth/fresh/*.c. The sources were written before any prediction of them was
made; what bounds a loop is what its source says.
"""

import argparse
import csv
import os
import re

import bounds
import kernels
import native

SOURCES = os.path.join(bounds.HERE, "..", "fresh")
TARGET = os.path.join(bounds.HERE, "..", "bounds", "fresh.csv")
NATIVE = os.path.join(bounds.HERE, "..", "bounds", "fresh_native.csv")
# Those meant for it, as their sources say; all others at -O1, as in bounds.py.
UNOPTIMISED = ("locals", "product")


def main():
    """Makes the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mca", action="append", default=[], metavar="NAME=COMMAND", help="may be repeated")
    parser.add_argument("--native", action="store_true", help="time the compiled functions, too")
    parser.add_argument("--repeats", type=int, default=3000, help="calls of each kernel (default 3000)")
    args = parser.parse_args()
    kernels.SOURCES = SOURCES
    tools = [text.split("=", 1) for text in args.mca]
    if args.mca:
        store(TARGET, [row(*one, tools) for one in sources()])
    if args.native:
        store(NATIVE, list(times(args.repeats)))


def sources():
    """`(name, path, level)` of each."""
    for name, path, _ in kernels.sources():
        yield name, path, "0" if name in UNOPTIMISED else "1"


def row(name, path, level, tools):
    """One loop."""
    args = argparse.Namespace(only=name, check=False)
    found = next(kernels.table("gcc", ["gcc"], level, args))
    registers = dict(re.findall(r"(\w+)=(\w+)", found["registers"]))
    assembly = bounds.disassembled(found["hex"])
    pointers = [one for one in registers if re.search(rf"\([^)]*%{one}\b", assembly)]
    with open(path) as file:
        says = re.match(r"/\* (.*?)\.? \*/", file.read()).group(1)
    result = {"name": name, "optimisation": f"O{level}", "origin": "fresh", "hex": found["hex"],
              "init": " ".join(f"{one}=0x{registers[one]}" for one in pointers), "bound_by": says}
    for tool, command in tools:
        for suffix, options in (("", []), (" -noalias=0", ["-noalias=0"])):
            result[tool + suffix] = bounds.cycles(command.split() + options, assembly)
    return result


def times(repeats):
    """The rows of the compiled functions."""
    for name, path, level in sources():
        short, long = (native.timed(path, [], f"O{level}", count, repeats) for count in native.COUNTS)
        cycles = (long - short) / (native.COUNTS[1] - native.COUNTS[0]) if short and long else 0
        if cycles > 0.1:
            yield {"name": name, "optimisation": f"O{level}", "cycles": f"{cycles:.2f}"}


def store(path, rows):
    """Writes a CSV."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{path}: {len(rows)} loops")


if __name__ == "__main__":
    main()
