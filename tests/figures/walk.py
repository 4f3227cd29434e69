#!/usr/bin/env python3
"""One block, step by step: what each part of the method changes, as in the BHive paper's worked example.

Prints a row for each step with the verdict, the cycles, the pages, and the assumptions that are violated.

    tests/figures/walk.py updcrc                 # gzip's checksum loop
    tests/figures/walk.py subnormals             # a large floating-point block
    tests/figures/walk.py HEX [--gradual TEXT] [--copies 8,16,64]
"""

import argparse
import json
import subprocess
import sys

from common import arguments, need, table

BLOCKS = {
    # add rdi,1; mov eax,edx; shr rdx,8; xor al,[rdi-1]; movzx eax,al; xor rdx,[8*rax+0x4110a]; cmp rdi,rcx
    "updcrc": "4883c70189d048c1ea083247ff0fb6c0483314c50a1104004839cf",
    # SUBNORMALS
    "subnormals": "",
}
PLAIN = "--physical-pages 1 --value-sets 1 --no-reseed --no-loop"


def main():
    """Runs and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, blocks=False)
    parser.add_argument("block", help="updcrc, subnormals, or hexadecimal bytes")
    parser.add_argument("--gradual", default="--gradual-underflow", metavar="OPTION",
                        help="the option that leaves FTZ and DAZ off (default --gradual-underflow)")
    parser.add_argument("--copies", default="", metavar="N,N",
                        help="numbers of copies for the last steps (default: few, some, the usual)")
    args = parser.parse_args()
    need(args.tool)
    code = BLOCKS.get(args.block, args.block)
    if not code:
        sys.exit(f"error: no block is chosen for {args.block}")
    table(["step", "options", "status", "unrolled", "loop", "pages", "violated, or why not"],
          [line(args, code, name, options) for name, options in steps(args)])
    report = measure(args, code, "")
    print(f"\n{len(report['block']['instructions'])} instructions, {len(code) // 2} bytes\n")
    table(["assumption", "verdict", "how"], [[i["name"], i["verdict"], i["how"]] for i in report["invariants"]])


def steps(args):
    """Names and options."""
    gradual = args.gradual
    yield "as it is: crash", f"{PLAIN} --no-mapping {gradual}"
    yield "pages mapped, each its own", f"{PLAIN} --physical-pages 256 {gradual}".replace("--physical-pages 1 ", "")
    yield "one physical page", f"{PLAIN} {gradual}"
    yield "no gradual underflow", PLAIN
    yield "16 physical pages", "--no-loop"
    for copies in filter(None, args.copies.split(",")):
        yield f"{copies} copies", f"--no-loop --copies {copies}"
    yield "default", ""


def measure(args, code, options):
    """The report of one run; a dictionary with a status and a reason where the tool refuses."""
    command = [args.tool, "block", code, "--format", "json", *options.split(), *args.options.split()]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        return {"status": "no report", "reason": done.stderr.strip().splitlines()[0] if done.stderr else "",
                "invariants": [], "block": {"instructions": []}}


def line(args, code, name, options):
    """One row."""
    report = measure(args, code, options)
    forms = report.get("forms") or {}
    value = lambda form: "" if not (forms.get(form) or {}).get("cycles") else f"{forms[form]['cycles']:.2f}"
    violated = [f"{i['name']}: {i['how']}" for i in report["invariants"] if i["verdict"] == "violated"]
    place = report.get("where") or {}
    why = [report["reason"]] if report.get("reason") else []
    if place.get("address"):
        why.append(f"instruction {place['instruction']}, copy {place['copy']}, address {place['address']}")
    return [name, f"`{options.strip()}`" if options.strip() else "", report["status"], value("unrolled"),
            value("loop"), len(report.get("pages", [])), "; ".join(why + violated) or "none"]


if __name__ == "__main__":
    main()
