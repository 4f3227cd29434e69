#!/usr/bin/env python3
"""Compiled loops timed natively, and what `tdtool block` and LLVM-MCA say of them.

The kernels are those of tests/figures/loops (kernels.csv: length and contents of their arrays, together at most 16 KiB).
Each is compiled by gcc and by clang, or by rustc, and its hot loop found by stepping through one call. Native cycles of
an iteration: loops/timer.c in three processes that agree, some before the tool runs and some after. A quarter of the kernels
is kept aside (compiled.aside): measured only with --aside.

    tests/figures/native_loops.py [--cpu 1] [--only REGEX] [--part 1/6] [-o loops.csv]
    tests/figures/native_loops.py --again -o loops.csv …   again those without an answer: a shared core gives none
    tests/figures/native_loops.py --known                  the timer, on loops of known cycles
    tests/figures/native_loops.py --from loops.csv …       only the tables of earlier runs
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import compiled
from common import TOOL, append, median, need, percent, rows, table

COLUMNS = ["name", "language", "compiler", "flags", "set", "stores", "blocks", "path_share", "start", "end", "native",
           "spread", "bend", "tool", "status", "unrolled", "loop", "verdict", "form", "mca", "tool_error", "mca_error"]
# What the timer is checked by: cycles of an iteration on AMD's and Intel's cores.
KNOWN = [("known_adds", 4, 4), ("known_multiplies", 12, 12), ("known_loads", 16, 20)]
MODELS = {("AuthenticAMD", 25): "znver4", ("AuthenticAMD", 26): "znver5", ("GenuineIntel", 6): "sapphirerapids"}


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tool", default=TOOL, help=f"the binary (default {TOOL})")
    parser.add_argument("--options", default="", metavar="TEXT", help="more options for `tdtool block`")
    parser.add_argument("--target", metavar="TEXT", help="how loops of several blocks are named (default: %(default)s)",
                        default="{file}:{function}@{start} -- {timer} time {file} {function} {n} {fill} 32")
    parser.add_argument("--mca", default="llvm-mca-22", metavar="COMMAND", help="LLVM-MCA (default llvm-mca-22)")
    parser.add_argument("--mcpu", default=model(), help="its processor (default: this one)")
    parser.add_argument("--clang", default="clang-22", help="clang (default clang-22)")
    parser.add_argument("--cpu", default="1", help="the processor to run on (default 1)")
    parser.add_argument("--processes", type=int, default=3, help="processes of the native timer that agree within 3 %% (default 3)")
    parser.add_argument("--only", default="", metavar="REGEX", help="only these kernels")
    parser.add_argument("--aside", action="store_true", help="the kernels kept aside instead of the others")
    parser.add_argument("--every", action="store_true", help="all four builds of each kernel in C, not two")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="only part K of N")
    parser.add_argument("--again", action="store_true", help="only loops that have no answer in the CSV of -o yet")
    parser.add_argument("--for", type=float, default=float("inf"), metavar="SECONDS", dest="limit", help="begin none later than this")
    parser.add_argument("--build", metavar="DIR", help="where the libraries are kept; default: nowhere")
    parser.add_argument("-o", metavar="FILE", dest="output", help="append the rows to this CSV")
    parser.add_argument("--known", action="store_true", help="only check the timer")
    parser.add_argument("--from", nargs="+", metavar="CSV", dest="earlier", help="only print earlier results")
    args = parser.parse_args()
    if args.earlier:
        return report(last([row for path in args.earlier for row in rows(path)]))
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.build or scratch
        os.makedirs(folder, exist_ok=True)
        if args.known:
            return known(folder, args)
        need(args.tool)
        report(list(measured(folder, args)))


def model():
    """LLVM's name of this processor."""
    with open("/proc/cpuinfo") as file:
        field = dict(re.findall(r"^(vendor_id|cpu family)\s*: (.*)$", file.read(), re.M))
    return MODELS.get((field.get("vendor_id"), int(field.get("cpu family", 0))), "native")


def known(folder, args):
    """The timer on loops of known cycles."""
    timer, file = compiled.timer(folder), f"{folder}/known.so"
    subprocess.run(["gcc", "-shared", "-o", file, f"{compiled.HERE}/known.s"], check=True)
    code, body = compiled.disassembly(file), []
    for name, amd, intel in KNOWN:
        kernel = {"name": name, "n": "1024", "fill": "list"}
        loop = compiled.find(timer, file, code, kernel, ("assembly", "as", ""))
        found = [compiled.native(timer, loop, args.cpu) for _ in range(args.processes)]
        body.append([name, f"{amd} / {intel}", " ".join(f"{one[0]:.3f}" for one in found if one)])
    table(["loop", "known cycles (AMD / Intel)", "native, one process each"], body)


def measured(folder, args):
    """A row for each loop, also appended to the output."""
    chosen = [(kernel, build) for kernel in compiled.kernels(args.only) if compiled.aside(kernel["name"]) == args.aside
              for build in compiled.builds_of(kernel["name"], kernel["source"], args.every)]
    if args.again:
        answered = {identity(row) for row in last(rows(args.output)) if is_answered(row)}
        chosen = [one for one in chosen if (one[0]["name"], *one[1][1:3]) not in answered]
    part, parts = map(int, args.part.split("/"))
    timer, code, end = compiled.timer(folder), {}, time.monotonic() + args.limit
    for kernel, build in chosen[part - 1::parts]:
        if time.monotonic() > end:
            break
        file = compiled.build(folder, build, args.clang)
        code[file] = code.get(file) or compiled.disassembly(file)
        loop = compiled.find(timer, file, code[file], kernel, build)
        if isinstance(loop, str):
            print(f"note: {kernel['name']} {build[1]} {build[2]}: {loop}", file=sys.stderr)
            continue
        row = measure(timer, loop, args)
        if args.output:
            append(args.output, row, COLUMNS)
        yield row


def identity(row):
    """What names a loop."""
    return row["name"], row["compiler"], row["flags"]


def is_answered(row):
    """Whether the tool has an answer that it vouches for, and processes of the timer agree."""
    return row["status"] == "ok" and row["native"] != ""


def last(found):
    """One row of each loop: its last answer, else its last row."""
    of = {}
    for row in found:
        if is_answered(row) or not is_answered(of.get(identity(row), row)):
            of[identity(row)] = row
    return list(of.values())


def measure(timer, loop, args):
    """One loop: natively, by the tool, natively again, by LLVM-MCA."""
    found = natively(timer, loop, args, [], args.processes // 2)
    tool = block(timer, loop, args)
    found = natively(timer, loop, args, found, args.processes)
    cycles = [one[0] for one in found]
    native = median(cycles) if len(found) == args.processes else None
    row = {"name": loop.kernel["name"], "language": loop.build[0], "compiler": loop.build[1], "flags": loop.build[2],
           "set": "aside" if compiled.aside(loop.kernel["name"]) else "tune", "stores": "yes" if loop.stores else "no",
           "blocks": loop.blocks, "path_share": f"{loop.share:.3f}", "start": hex(loop.start), "end": hex(loop.end),
           "native": native, "spread": (max(cycles) - min(cycles)) / native if native else None,
           "bend": median([one[1] for one in found]) if found else None, "mca": mca(loop, args), **tool}
    for who in ("tool", "mca"):
        row[f"{who}_error"] = row[who] / native - 1 if native and row[who] else None
    return {key: f"{row[key]:.4f}" if isinstance(row[key], float) else "" if row[key] is None else str(row[key])
            for key in COLUMNS}


def natively(timer, loop, args, found, wanted):
    """Processes of the timer until as many agree with the fastest within 3 %: contention only ever adds. 20 at most."""
    for _ in range(20):
        least = min((one[0] for one in found), default=0)
        found = sorted(one for one in found if one[0] <= 1.03 * least)
        if len(found) >= wanted:
            return found[:wanted]
        found += [one for one in [compiled.native(timer, loop, args.cpu)] if one]
    return found


def block(timer, loop, args):
    """What the tool measures. A loop of several blocks runs with the values of the timer's run, or as --target says."""
    kernel = loop.kernel
    names = {"file": loop.file, "function": kernel["name"], "start": hex(loop.start), "end": hex(loop.end),
             "timer": timer, "n": kernel["n"], "fill": kernel["fill"].replace(" ", ",")}
    command = []
    if loop.blocks == 1:
        what, form = "{file}:{start}..{end}".format(**names), "range"
    else:
        what, _, command = args.target.partition(" -- ")
        what, form = what.format(**names), "captured"
        command = ["--", *(word.format(**names) for word in command.split())] if command else []
    done = subprocess.run([args.tool, "block", what, "--format", "json", "--cpu", args.cpu, *args.options.split(),
                           *command],
                          capture_output=True, text=True)
    document = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    forms, hierarchy = document.get("forms") or {}, document.get("hierarchy") or {}
    return {"tool": (document.get("throughput") or {}).get("cycles"), "form": form,
            "status": document.get("status") or done.stderr.strip().split("\n")[0] or "no report",
            "unrolled": (forms.get("unrolled") or {}).get("cycles"), "loop": (forms.get("loop") or {}).get("cycles"),
            "verdict": hierarchy.get("bound") or "undecided"}


def mca(loop, args):
    """LLVM-MCA's cycles of an iteration: those of 1,000 less those of 500."""
    totals = []
    for count in (500, 1000):
        done = subprocess.run([args.mca, "-mtriple=x86_64", f"-mcpu={args.mcpu}", f"-iterations={count}",
                               "-instruction-info=0", "-resource-pressure=0"],
                              input=loop.text + "\n", capture_output=True, text=True)
        total = re.search(r"^Total Cycles:\s+(\d+)", done.stdout, re.M)
        if not total:
            print(f"note: {loop.name}: LLVM-MCA: {done.stderr.strip()[:200]}", file=sys.stderr)
            return None
        totals.append(int(total[1]))
    return (totals[1] - totals[0]) / 500


def report(found):
    """The table of loops and the summaries."""
    table(["loop", "stores", "blocks", "native ± spread", "tool", "status", "unrolled", "loop", "verdict", "mca", "error",
           "mca's"],
          [[f"{row['name']} {row['compiler']} {row['flags'].split(' -m')[0].split(' -C t')[0]}", row["stores"],
            row["blocks"], f"{short(row['native'])} ± {percent(float(row['spread'] or 0), 1)}", short(row["tool"]),
            row["status"], short(row["unrolled"]), short(row["loop"]), row["verdict"], short(row["mca"]),
            error(row["tool_error"]), error(row["mca_error"])] for row in found])
    print()
    body = []
    for name in ("tune", "aside"):
        for what, keep in (("all", lambda r: True), ("without stores", lambda r: r["stores"] == "no"),
                           ("with stores", lambda r: r["stores"] == "yes"), ("one block", lambda r: r["blocks"] == "1")):
            some = [row for row in found if row["set"] == name and row["native"] and keep(row)]
            if some:
                sure = [row for row in some if row["status"] == "ok"]
                body.append([name, what, len(some), *judged(some, "tool"), len(sure), *judged(sure, "tool")[1:3],
                             *judged(some, "mca")[1:]])
    table(["set", "loops", "number", "tool: no answer", "within 10 %", "over 1.5×", "worst", "`ok`", "of them within 10 %",
           "over 1.5×", "mca: within 10 %", "over 1.5×", "worst"], body)
    spreads = sorted(float(row["spread"]) for row in found if row["spread"])
    bends = [row["name"] for row in found if row["bend"] and abs(float(row["bend"])) > 0.1]
    if spreads:
        print(f"\nNative, spread over processes: median {percent(median(spreads), 1)}, 90th percentile "
              f"{percent(spreads[len(spreads) * 9 // 10], 1)}, largest {percent(spreads[-1], 1)}; longer calls differ from shorter ones by over 10 % in "
              f"{len(bends)} loops; {sum(not row['native'] for row in found)} loops without three processes that agree")


def judged(some, who):
    """No answer, share within 10 %, number off by more than 1.5, worst factor. No answer is not within."""
    errors = [float(row[f"{who}_error"]) for row in some if row[f"{who}_error"]]
    factors = [max(1 + e, 1 / (1 + e)) for e in errors]
    good = sum(abs(e) <= 0.1 for e in errors)
    return [len(some) - len(errors), f"{good} ({percent(good / max(len(some), 1), 0)})", sum(f > 1.5 for f in factors),
            f"{max(factors):.2f}×" if factors else "–"]


def short(text):
    return f"{float(text):.2f}" if text else "–"


def error(text):
    return f"{100 * float(text):+.0f} %" if text else "–"


if __name__ == "__main__":
    main()
