#!/usr/bin/env python3
"""Whether the address trace and the processor's alignment check (EFLAGS.AC) say the same.

Each block is measured by itself, once with the values that the tool finds and once with every register
at an address that is a multiple of 2 only, so that most accesses are unaligned. Counted is
what the assumption `alignment` says in `how`.

    tests/figures/alignment.py [--sample 600]
"""

import argparse
import collections
import json
import subprocess

from common import arguments, draw, need, table

# As little timing as there can be: the check is a run of its own.
SHORT = ["--passes", "1", "--placements", "1", "--rounds", "4", "--no-loop", "--budget", "1", "--format", "json"]
REGISTERS = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{i}" for i in range(8, 16))]
ODD = [word for register in REGISTERS for word in ("--init", f"{register}=0x12345602")]
SAYINGS = [
    ("no memory is touched", "no memory"),
    ("both find no unaligned access", "finds none either"),
    ("both find the same first unaligned access", "agrees: first"),
    ("unaligned only in accesses of more than 8 bytes, which the processor does not check", "need not look"),
    ("the processor finds one that is not in the trace", "not in the trace"),
    ("the check was not made", "was not made"),
    ("they disagree", "DISAGREES"),
]


def saying(tool, block, options):
    """What a block's `alignment` says, or its status where it was not measured."""
    done = subprocess.run([tool, "block", block, *SHORT, *options], capture_output=True, text=True)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        return "no document"
    how = [i["how"] for i in report["assumptions"] if i["name"] == "alignment"]
    if not how:
        return report["status"]
    return next((name for name, words in reversed(SAYINGS) if words in how[0]), how[0])


def main():
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, sample=600)
    args = parser.parse_args()
    need(args.tool, args.blocks)
    blocks = draw(args.blocks, args.sample, args.seed)
    usual, odd = (collections.Counter(saying(args.tool, block, [*args.options.split(), *more]) for block in blocks)
                  for more in ([], ODD))
    names = [name for name, _ in SAYINGS]
    names += sorted((set(usual) | set(odd)) - set(names))
    table([f"of {len(blocks)} blocks", "usual values", "registers 0x12345602"],
          [[name, usual[name], odd[name]] for name in names])


if __name__ == "__main__":
    main()
