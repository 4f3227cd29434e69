#!/usr/bin/env python3
"""`tdtool report --estimate` on programs whose bottleneck is known by construction.

  CARGO_PROFILE_DEV_DEBUG=0 cargo build && python3 tests/figures/estimate_known.py --tool target/debug/tdtool --set seen

Labels are in tests/figures/estimate_labels.csv, written before the first run; programs in tests/figures/programs/estimate.c
and flat.c (judged as a whole), and `tdtool workload`; those of the set "system" in tests/figures/programs/system.c, whose parts of the wall time are judged;
those of the set "contention" in contention.c, by the kind of contention that has most of the time, if one has 5 % of it, and of "indirect" in
indirect.cc: whether the interval of the program's Bad Speculation has the true share. Where a program has a control, which does the same work without the bottleneck, the true share of the
bottleneck is 1 - (time of the control) / (time of the program).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

from common import arguments, need, rows, table

SOURCE = "tests/figures/programs/estimate.c"
SYSTEM = "tests/figures/programs/system.c"
FLAT = "tests/figures/programs/flat.c"
CONTENTION = "tests/figures/programs/contention.c"
INDIRECT = "tests/figures/programs/indirect.cc"
LABELS = "tests/figures/estimate_labels.csv"
OPTIONS = ["-O2", "-g", "-fno-if-conversion", "-fno-if-conversion2", "-fno-tree-vectorize", "-msse4.2"]
PARTS = ["retiring", "bad_speculation", "fetch_bandwidth", "fetch_latency", "core_bound", "memory_bound", "unexplained"]
KINDS = ["contested_accesses", "false_sharing", "lock_latency"]
# Phases of a mixture: program, function, part.
CHAIN, BRANCH = ("fp_chain", "k_fpchain", "core_bound"), ("misp50", "k_branch", "bad_speculation")
CHASE, GATHER = ("dram_chase", "k_chase", "memory_bound"), ("dram_gather", "k_gather", "memory_bound")
MIXED = {"mix_chain_misp": [CHAIN, BRANCH], "mix_chase_chain": [CHASE, CHAIN], "mix_three": [CHAIN, BRANCH, GATHER]}
# (the control of "search" is as random as its program: it was meant to be none)
NO_CONTROL = {"flat_chain", "flat_small", "search", "divide", "divide_data", "divide_vectors", "divide_call", "port", "forward", "retire", "sqrt", "mul_chain", "crc"}


def times(program, kind, mode, size, rounds=3):
    """Seconds of processor time by function: the least of some runs."""
    best = {}
    for _ in range(rounds):
        out = subprocess.run([program, kind, mode, str(size)], check=True, capture_output=True, text=True).stdout
        for name, seconds in (line.split() for line in out.splitlines()):
            best[name] = min(best.get(name, 9e9), float(seconds))
    return best


def cause(program, kind, size):
    """The true share of a program's bottleneck, by its control."""
    if kind in NO_CONTROL:
        return None
    normal, control = (sum(times(program, kind, mode, size).values()) for mode in ("normal", "control"))
    return max(0.0, 1 - control / normal)


def estimate(tool, command, folder, options=()):
    """The document of an estimate, and its cost as a multiple of the sampled run."""
    out = f"{folder}/report.json"
    done = subprocess.run([tool, *options, "report", "--estimate", "--format", "json", "--output", out, "--", *command],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr
    with open(out) as file:
        return json.load(file)["estimate"], None


def repeated(command, seconds):
    """A built-in program with as many repeats as it does in some seconds, so that all runs do the same."""
    out = subprocess.run([*command, "--seconds", str(seconds), "--format", "json"], check=True, capture_output=True).stdout
    return [*command, "--repeats", str(max(1, int(json.loads(out)["repeats"])))]


# The parts of the nodes of level 1, which are named where their parts are not known apart.
SUMS = {"backend_bound": ("core_bound", "memory_bound"), "frontend_bound": ("fetch_latency", "fetch_bandwidth")}


def judged(label, found):
    """right, level 1 (its node only), undecided or WRONG."""
    if found in ("undecided", label):
        return "undecided" if found == "undecided" else "right"
    return "level 1" if label in SUMS.get(found, ()) else "WRONG"


def system(args, folder):
    """Prints the programs whose time goes to the kernel and to waiting."""
    program, body = f"{folder}/system", []
    subprocess.run(["gcc", "-O2", "-g", "-o", program, SYSTEM], check=True)
    for label in rows(LABELS):
        kind = label["program"]
        if label["set"] != args.set or args.only and kind not in args.only.split(","):
            continue
        out = subprocess.run([args.tool, *args.globals.split(), "report", "--format", "json", "--", program, kind, "normal",
                              str(max(1, int(args.size)))], check=True, capture_output=True, text=True).stdout
        parts = {row["kind"]: row["share"] for row in json.loads(out).get("wall_time", [])}
        # Processors that others had are none of its time.
        own = {part: value for part, value in parts.items() if part != "no_processor"}
        most = max(own, key=own.get, default="nothing")
        said = "right" if most in label["bottleneck"].split("|") else "WRONG"
        body.append([kind, label["bottleneck"], said, " ".join(f"{part} {100 * value:.0f}" for part, value in parts.items())])
    table(["program", "label", "verdict", "% of the wall time"], body)


def contention(args, folder):
    """Prints the programs whose threads contend, and their controls."""
    program, body, verdicts = f"{folder}/contention", [], []
    subprocess.run(["gcc", "-O2", "-g", "-pthread", "-o", program, CONTENTION], check=True)
    for label in rows(LABELS):
        kind = label["program"]
        if label["set"] != args.set or args.only and kind not in args.only.split(","):
            continue
        document, error = estimate(args.tool, [program, kind, "normal", str(args.size)], folder, args.globals.split())
        if document is None:
            body.append([kind, label["bottleneck"], "failed", error.strip().splitlines()[-1]])
            continue
        if args.keep:
            os.makedirs(args.keep, exist_ok=True)
            with open(f"{args.keep}/{kind}.json", "w") as file:
                json.dump(document, file)
        # The part of the program is of the covered time.
        parts = {part: document["program"]["parts"].get(part) for part in KINDS}
        values = {part: found["value"] for part, found in parts.items() if found}
        most = max(values, key=values.get, default=None)
        found = most if most and values[most] >= 0.05 else "none"
        true = cause(program, kind, args.size) if label["bottleneck"] != "none" else 0.0
        verdicts.append("right" if found == label["bottleneck"] else "unnamed" if found == "none" else "WRONG")
        part = parts.get(found)
        of = f"{100 * part['value']:.0f} ({100 * part['low']:.0f}-{100 * part['high']:.0f})" if part else ""
        lines = document.get("contended_lines", [])
        body.append([kind, label["bottleneck"], verdicts[-1], f"{100 * true:.0f}", of,
                     " ".join(f"{line['place']}:{line['contention']}" for line in lines[:2]),
                     " ".join(f"{run['run']}:{run['seconds']:.1f}" for run in document["runs"])])
        print(*body[-1], sep=" | ", flush=True, file=sys.stderr)
    table(["program", "label", "verdict", "true %", "estimated %", "lines", "runs"], body)
    print(f"\nright {verdicts.count('right')}, unnamed {verdicts.count('unnamed')}, wrong {verdicts.count('WRONG')} of {len(verdicts)}")


# How far a true share may be off by itself, as times of runs vary.
VARIES = 0.03


def indirect(args, folder):
    """Prints the programs of indirect branches: the true share of mispredictions, and whether it is inside the interval."""
    program, body, widths, inside = f"{folder}/indirect", [], [], 0
    subprocess.run(["g++", "-O2", "-g", "-o", program, INDIRECT], check=True)
    for label in rows(LABELS):
        kind = label["program"]
        if label["set"] != args.set or args.only and kind not in args.only.split(","):
            continue
        document, error = estimate(args.tool, [program, kind, "normal", str(args.size)], folder, args.globals.split())
        if document is None:
            body.append([kind, "failed", error.strip().split("\n")[-1]])
            continue
        keep(args, kind, document)
        true, whole = cause(program, kind, args.size), document["program"]
        part = whole["parts"]["bad_speculation"]
        is_in = part["low"] - VARIES <= true <= part["high"] + VARIES
        inside += is_in
        widths.append(part["high"] - part["low"])
        # Where it has most of the time, or little, another bottleneck is wrong.
        label = "bad_speculation" if true > 0.6 else "other" if true < 0.3 else "either"
        found = "other" if whole["bottleneck"] not in ("bad_speculation", "undecided") else whole["bottleneck"]
        said = "right" if label == "either" else judged(label, found)
        caller = [row for row in document["functions"] if row["name"].startswith("k_")]
        body.append([kind, said, "inside" if is_in else "OUTSIDE", f"{100 * true:.0f}", percent(part),
                     percent(whole["parts"]["unexplained"]), *(percent(row["parts"]["bad_speculation"]) for row in caller[:1])])
        print(*body[-1], sep=" | ", flush=True, file=sys.stderr)
    table(["program", "verdict", "interval", "true %", "Bad Speculation", "Unexplained", "Bad Speculation of the caller"], body)
    verdicts = [row[1] for row in body]
    print(f"\nright {verdicts.count('right')}, undecided {verdicts.count('undecided')}, wrong {verdicts.count('WRONG')} of {len(body)}; "
          f"true share inside {inside}; interval {100 * sum(widths) / max(1, len(widths)):.0f} points wide, at most "
          f"{100 * max(widths, default=0):.0f}")


def percent(part):
    """A part with its interval."""
    return f"{100 * part['value']:.0f} ({100 * part['low']:.0f}-{100 * part['high']:.0f})"


def keep(args, kind, document):
    """Keeps the document of an estimate, if asked."""
    if args.keep:
        os.makedirs(args.keep, exist_ok=True)
        with open(f"{args.keep}/{kind.replace(' ', '-')}.json", "w") as file:
            json.dump(document, file)


def shown(row):
    """Parts of a row in per cent."""
    return " ".join(f"{100 * row['parts'][part]['value']:.0f}" for part in PARTS)


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, blocks=False)
    parser.add_argument("--set", default="seen", help="seen, aside, flat, built-in, system, contention or indirect (default seen)")
    parser.add_argument("--only", default="", help="programs, separated by commas")
    parser.add_argument("--size", type=float, default=1.0, help="length of the programs (default 1: about a second)")
    parser.add_argument("--global", dest="globals", default="", metavar="TEXT",
                        help="options of every command, such as --global=--no-table")
    parser.add_argument("--keep", help="folder for the documents")
    args = parser.parse_args()
    need(args.tool, SOURCE, SYSTEM, FLAT, CONTENTION, INDIRECT, LABELS)
    body, verdicts, off = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        apart = {"system": system, "contention": contention, "indirect": indirect}
        if args.set in apart:
            return apart[args.set](args, folder)
        program = f"{folder}/estimate"
        subprocess.run(["gcc", *OPTIONS, "-o", program, SOURCE, "-lm"], check=True)
        for label in rows(LABELS):
            kind = label["program"]
            if label["set"] != args.set or args.only and kind not in args.only.split(","):
                continue
            name, *control = kind.split()
            if args.set == "flat":
                program = f"{folder}/{kind}"
                subprocess.run(["gcc", "-O2", "-g", f"-D{kind}", "-o", program, FLAT], check=True)
            command = [program, kind, "normal", str(args.size)]
            if args.set == "built-in":
                command = repeated([args.tool, "workload", "run", name, *["--control"] * len(control)], args.size)
            document, error = estimate(args.tool, command, folder, args.globals.split())
            if document is None:
                said = [line for line in error.splitlines() if line.startswith("error: ")] or ["failed"]
                body.append([kind, label["bottleneck"], "failed", said[0], "", ""])
                continue
            keep(args, kind, document)
            cost = sum(run["seconds"] for run in document["runs"][1:]) / document["runs"][0]["seconds"]
            hot = [row for row in document["functions"] if row["name"].startswith("k_") or row["name"] == label["function"]]
            if label["bottleneck"] == "mixed":
                spent = times(program, kind, "normal", args.size)
                all_of_it, held = sum(spent.values()), sum(row["share"] for row in hot)
                for phase, function, part in MIXED[kind]:
                    true = spent[function] / all_of_it * cause(program, phase, args.size / len(MIXED[kind]))
                    mine = sum(row["share"] * row["parts"][part]["value"] for row in hot) / held
                    off.append(abs(true - mine))
                    body.append([kind, part, "", f"{100 * true:.0f}", f"{100 * mine:.0f}", f"{cost:.1f}"])
                continue
            wanted = [row for row in hot if row["name"] == label["function"]]
            if args.set == "built-in":
                wanted = [row for row in document["loops"] + document["functions"] if not row["name"].startswith("[")]
                wanted = sorted(wanted, key=lambda row: -row["share"])
            if args.set == "flat":
                wanted = [document["program"]]
            if not wanted:
                body.append([kind, label["bottleneck"], "undecided", "not covered", "", f"{cost:.1f}"])
                verdicts.append("undecided")
                continue
            row = wanted[0]
            verdicts.append(judged(label["bottleneck"], row["bottleneck"]))
            true = None if args.set == "built-in" else cause(program, kind, args.size)
            part = row["parts"][label["bottleneck"]]
            if true is not None:
                off.append(abs(true - part["value"]))
            body.append([kind, label["bottleneck"], verdicts[-1], "" if true is None else f"{100 * true:.0f}", percent(part),
                         f"{cost:.1f}", shown(row)])
            print(*body[-1], sep=" | ", flush=True, file=sys.stderr)
    table(["program", "label", "verdict", "true %", "estimated %", "cost", "/".join(PARTS)], body)
    print(f"\nright {verdicts.count('right')}, at level 1 only {verdicts.count('level 1')}, undecided {verdicts.count('undecided')}, "
          f"wrong {verdicts.count('WRONG')} of "
          f"{len(verdicts)}; shares within 7 points: {sum(one <= 0.07 for one in off)} of {len(off)}")


if __name__ == "__main__":
    main()
