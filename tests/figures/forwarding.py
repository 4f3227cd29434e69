#!/usr/bin/env python3
"""How long a stored value takes to its load on this processor, by how the two are addressed.

`forwarding.csv`: a block that is a chain through memory, and the arithmetic in it, which is measured by itself and taken
off; where it comes back only after several `iterations`, that many of them count. Both forms of the block profiler: as straight code and as a loop. r14 and r15 hold the same address, rcx is 8.

    tests/figures/forwarding.py [--tool PATH] [--only TEXT] [--kept FILE]
"""

import argparse
import json
import os
import subprocess

from common import TOOL, need, rows, table

HERE = os.path.dirname(os.path.abspath(__file__))
INIT = ("r14=0x10000000", "r15=0x10000000", "rcx=8")
TRIES = 3


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tool", default=TOOL, help=f"the binary (default {TOOL})")
    parser.add_argument("--only", default="", metavar="TEXT", help="only rows that have this in their first field")
    parser.add_argument("--kept", metavar="FILE", help="keep what is measured there, or take it from there")
    args = parser.parse_args()
    need(args.tool)
    known, body = {"": (0.0, 0.0, "ok")}, []
    if args.kept and os.path.exists(args.kept):
        with open(args.kept) as file:
            known = json.load(file)
    for row in rows(f"{HERE}/forwarding.csv"):
        if args.only not in row["what"]:
            continue
        for text in (row["rest"], row["block"]):
            if text not in known:
                known[text] = measure(text, args.tool)
                if args.kept:
                    with open(args.kept, "w") as file:
                        json.dump(known, file)
        *whole, status = known[row["block"]]
        rest, times = known[row["rest"]][0], int(row["iterations"])
        body.append([row["what"], f"`{row['block']}`",
                     *("–" if value is None or rest is None else f"{times * value - rest:.2f}" for value in whole), status])
    table(["how", "block", "straight", "loop", "status"], body)


def measure(text, tool):
    """Cycles of both forms, and the status; a block that is not ok is tried again."""
    initial = [word for one in INIT for word in ("--init", one)]
    for _ in range(TRIES):
        done = subprocess.run([tool, "block", "--asm", text, "--format", "json", *initial], capture_output=True, text=True)
        report = json.loads(done.stdout) if done.stdout.startswith("{") else {"status": "failed"}
        forms = report.get("forms") or {}
        found = [(forms.get(form) or {}).get("cycles") for form in ("unrolled", "loop")]
        if report["status"] == "ok":
            break
    return (*found, report["status"])


if __name__ == "__main__":
    main()
