#!/usr/bin/env python3
"""One block, step by step: what each part of the method changes, as in the BHive paper's worked example.

Prints a row for each step with the verdict, the cycles, the pages, and the assumptions that are violated.

    tests/figures/walk.py updcrc                 # gzip's checksum loop
    tests/figures/walk.py subnormals             # a large floating-point block
    tests/figures/walk.py HEX [--copies 100]

The paper unrolls 100 times at first; `--copies` is that number, and the last steps use as many as the tool chooses.
Steps with gradual underflow use the option of `--gradual` where the tool has it; else their cycles are those
without, times the slowdown that the assumption `subnormals` of the report tells.
"""

import argparse
import json
import re
import subprocess

from common import arguments, need, table

BLOCKS = {
    # add rdi,1; mov eax,edx; shr rdx,8; xor al,[rdi-1]; movzx eax,al; xor rdx,[8*rax+0x4110a]; cmp rdi,rcx
    "updcrc": "4883c70189d048c1ea083247ff0fb6c0483314c50a1104004839cf",
    # openblas, in bhive-dev.csv: eight steps of a matrix product, each 8 fused multiply-adds of doubles from memory,
    # which holds subnormal doubles; 64 and 512 bytes further in every copy.
    "subnormals": (
        "0f1f840000000000c5fb104780c5fb104ea0c5fb1056a8c5fb105eb0c4e2f1b9e0c5fb104eb8c4e2e9b9e8c5fb"
        "1056c0c4e2e1b9f0c5fb105ec8c4e2f1b9f8c5fb104ed0c462e9b9c0c5fb1056d8c462e1b9c8c462f1b9d0c462"
        "e9b9d84883c6404883c708c5fb104780c5fb104ea0c5fb1056a8c5fb105eb0c4e2f1b9e0c5fb104eb8c4e2e9b9"
        "e8c5fb1056c0c4e2e1b9f0c5fb105ec8c4e2f1b9f8c5fb104ed0c462e9b9c0c5fb1056d8c462e1b9c8c462f1b9"
        "d0c462e9b9d84883c6404883c708c5fb104780c5fb104ea0c5fb1056a8c5fb105eb0c4e2f1b9e0c5fb104eb8c4"
        "e2e9b9e8c5fb1056c0c4e2e1b9f0c5fb105ec8c4e2f1b9f8c5fb104ed0c462e9b9c0c5fb1056d8c462e1b9c8c4"
        "62f1b9d0c462e9b9d84883c6404883c708c5fb104780c5fb104ea0c5fb1056a8c5fb105eb0c4e2f1b9e0c5fb10"
        "4eb8c4e2e9b9e8c5fb1056c0c4e2e1b9f0c5fb105ec8c4e2f1b9f8c5fb104ed0c462e9b9c0c5fb1056d8c462e1"
        "b9c8c462f1b9d0c462e9b9d84883c6404883c708c5fb104780c5fb104ea0c5fb1056a8c5fb105eb0c4e2f1b9e0"
        "c5fb104eb8c4e2e9b9e8c5fb1056c0c4e2e1b9f0c5fb105ec8c4e2f1b9f8c5fb104ed0c462e9b9c0c5fb1056d8"
        "c462e1b9c8c462f1b9d0c462e9b9d84883c6404883c708c5fb104780c5fb104ea0c5fb1056a8c5fb105eb0c4e2"
        "f1b9e0c5fb104eb8c4e2e9b9e8c5fb1056c0c4e2e1b9f0c5fb105ec8c4e2f1b9f8c5fb104ed0c462e9b9c0c5fb"
        "1056d8c462e1b9c8c462f1b9d0c462e9b9d84883c6404883c708c5fb104780c5fb104ea0c5fb1056a8c5fb105e"
        "b0c4e2f1b9e0c5fb104eb8c4e2e9b9e8c5fb1056c0c4e2e1b9f0c5fb105ec8c4e2f1b9f8c5fb104ed0c462e9b9"
        "c0c5fb1056d8c462e1b9c8c462f1b9d0c462e9b9d84883c6404883c708c5fb104780c5fb104ea0c5fb1056a8c5"
        "fb105eb0c4e2f1b9e0c5fb104eb8c4e2e9b9e8c5fb1056c0c4e2e1b9f0c5fb105ec8c4e2f1b9f8c5fb104ed0c4"
        "62e9b9c0c5fb1056d8c462e1b9c8c462f1b9d0c462e9b9d84883c6404883c70848ffc8"
    ),
}
PLAIN = "--value-sets 1 --no-reseed --no-loop"


def main():
    """Runs and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, blocks=False)
    parser.add_argument("block", help="updcrc, subnormals, or hexadecimal bytes")
    parser.add_argument("--gradual", default="--gradual-underflow", metavar="OPTION",
                        help="the option that leaves FTZ and DAZ off (default --gradual-underflow)")
    parser.add_argument("--copies", type=int, default=100, help="copies in the first steps (default 100)")
    args = parser.parse_args()
    need(args.tool)
    code = BLOCKS.get(args.block, args.block)
    able = args.gradual in subprocess.run([args.tool, "block", "--help"], capture_output=True, text=True).stdout
    table(["step", "options", "status", "cycles", "loop", "pages", "violated, or why not"],
          [line(args, code, able, *step) for step in steps(args)])
    report = measure(args, code, "")
    print(f"\n{len(report['block']['instructions'])} instructions, {len(code) // 2} bytes\n")
    table(["assumption", "verdict", "how"], [[i["name"], i["verdict"], i["how"]] for i in report["assumptions"]])


def steps(args):
    """Name, options, and whether underflow is gradual."""
    many = f"{PLAIN} --copies {args.copies}"
    yield "as it is", f"{many} --physical-pages 1 --no-mapping", True
    yield "pages mapped, up to 16 physical ones", f"{many} --physical-pages 16", True
    yield "one physical page", f"{many} --physical-pages 1", True
    yield "no gradual underflow", f"{many} --physical-pages 1", False
    yield "fewer copies", f"{PLAIN} --physical-pages 1", False
    yield "16 physical pages", f"{PLAIN} --physical-pages 16", False
    yield "everything: the default", "", False


def measure(args, code, options):
    """The report of one run; a dictionary with a status and a reason where the tool refuses."""
    command = [args.tool, "block", code, "--format", "json", *options.split(), *args.options.split()]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        reason = done.stderr.strip().splitlines() or ["no output"]
        return {"status": "no report", "reason": reason[0], "assumptions": [], "block": {"instructions": []}}


def slowdown(report):
    """How many times as long the block takes with gradual underflow, as the report tells; 1 if it tells nothing."""
    how = next((i["how"] for i in report["assumptions"] if i["name"] == "subnormals"), "")
    found = re.search(r"takes ([0-9.]+) times as long", how)
    return float(found[1]) if found else 1.0


def line(args, code, able, name, options, gradual):
    """One row."""
    report = measure(args, code, f"{options} {args.gradual}" if gradual and able else options)
    forms = report.get("forms") or {}
    factor = slowdown(report) if gradual and not able else 1.0
    values = [(forms.get(form) or {}).get("cycles") for form in ("unrolled", "loop")]
    values = ["" if value is None else f"{value * factor:.2f}" for value in values]
    if factor != 1.0:
        values[0] += f" (x {factor:g})"
    violated = [f"{i['name']}: {i['how']}" for i in report["assumptions"] if i["verdict"] == "violated"]
    place = report.get("where") or {}
    why = [report["reason"]] if report.get("reason") else []
    if place.get("address"):
        why.append(f"instruction {place['instruction']}, copy {place['copy']}, address {place['address']}")
    return [name, f"`{options}`" if options else "", report["status"], *values, len(report.get("pages", [])),
            "; ".join(why + violated).replace("|", "/") or "none"]


if __name__ == "__main__":
    main()
