#!/usr/bin/env python3
"""What `tdtool report --estimate` says its further runs take, beside what they took.

  cargo build --release && python3 tests/figures/announced.py

Each announcement is judged by the seconds from its line to the end of tdtool: before the counted run, after it, and once it is
decided what runs are made. A range is right if it has the seconds, or an end of it is within 30 %; a number, if it is within
30 %. Where windows missed some code, it is announced once more, which is not judged. With --budget: whether all ends within that
and a run, the longest of those made.
"""

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

from common import arguments, median, need, table
from estimate_known import CONTENTION, FLAT, OPTIONS, SOURCE
from estimate_real import PROGRAMS, text

# Written before the first run. Kinds of programs/ with their size, by length and number of threads.
KNOWN = {
    "fp_chain": "{folder}/estimate fp_chain normal 0.3", "misp50": "{folder}/estimate misp50 normal 1",
    "dram_chase": "{folder}/estimate dram_chase normal 1", "divide": "{folder}/estimate divide normal 0.5",
    "mix_three": "{folder}/estimate mix_three normal 3", "retire": "{folder}/estimate retire normal 2",
    "flat_chain": "{folder}/flat flat_chain normal 1",
    "false_sharing": "{folder}/contention false_sharing normal 1", "padded": "{folder}/contention padded normal 1",
    "shared_atomic": "{folder}/contention shared_atomic normal 0.4", "convoy": "{folder}/contention convoy normal 1",
    "read_shared": "{folder}/contention read_shared normal 3",
}
REAL = ["gzip", "zstd", "sort", "sqlite3", "python3", "perl", "words.cpp", "sieve.rs"]
# Sizes of those programs, for runs of about a second.
SHORTER = [("10000000", "2000000"), ("12000000", "2000000"), ("words 60", "words 12")]
SAID = re.compile(r"estimated top-down: .*(?:about|(at most)) (?:([\d.]+) to )?([\d.]+) s")
NEAR = 1.3
WHEN = ["before counts", "after counts", "decided"]


def announced(command):
    """For each announcement its least and most, and what the rest took; and the run before it, in seconds."""
    begin, said, last = time.monotonic(), [], ""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace") as child:
        for line in child.stderr:
            last, found = line.strip(), SAID.search(line)
            if found:
                most, low, high = found.groups()
                said.append((float(0 if most else low or high), float(high), time.monotonic()))
    end = time.monotonic()
    if child.returncode or not said:
        return None, last
    return [(low, high, end - at) for low, high, at in said], said[0][2] - begin


def ratio(low, high, took):
    """Announced / actual: 1 inside of a range."""
    return 1.0 if low <= took <= high else min((low / took, high / took), key=lambda of: max(of, 1 / max(of, 1e-9)))


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, blocks=False)
    parser.add_argument("--only", default="", help="programs, separated by commas")
    parser.add_argument("--budget", help="seconds, as of tdtool")
    parser.add_argument("--words", type=int, default=1_500_000, help="words of the text (default 1.5 million)")
    args = parser.parse_args()
    need(args.tool, SOURCE, FLAT, CONTENTION)
    budget = ["--budget", args.budget] if args.budget else []
    body, near, widths, held = [], [[], [], []], [[], [], []], []
    with tempfile.TemporaryDirectory() as folder:
        text(f"{folder}/text", args.words)
        for name, build in {
            "estimate": ["gcc", *OPTIONS, SOURCE, "-lm"], "flat": ["gcc", "-O2", "-g", "-Dflat_chain", FLAT],
            "contention": ["gcc", "-O2", "-g", "-pthread", CONTENTION],
            "words": ["g++", "-O2", "-g", "tests/figures/programs/words.cpp"],
            "sieve": ["rustc", "-O", "-g", "tests/figures/programs/sieve.rs"],
        }.items():
            subprocess.run([*build, "-o", f"{folder}/{name}"], check=True)
        for name, line in {**KNOWN, **{name: PROGRAMS[name] for name in REAL}}.items():
            if args.only and name not in args.only.split(","):
                continue
            for long, short in SHORTER:
                line = line.replace(long, short)
            command = shlex.split(line.replace("{text}", f"{folder}/text").replace("{folder}", folder))
            if not shutil.which(command[0]):
                body.append([name, "not installed"])
                continue
            out = f"{folder}/report.json"
            options = ["--format", "json", "--output", out, *budget]
            all_of_it, first = announced([args.tool, "report", "--estimate", *options, "--", *command])
            if all_of_it is None:
                body.append([name, f"failed: {first}"])
                continue
            cells = [f"{first:.2f}"]
            for number, one in enumerate(all_of_it[:3]):
                of = ratio(*one)
                low, high, took = one
                near[number].append(1 / NEAR <= of <= NEAR)
                widths[number].append(high / max(low, 0.1))
                cells += [f"{low:.1f}-{high:.1f}" if low < high else f"{high:.1f}", f"{took:.1f}", f"{of:.2f}"]
            if args.budget:
                with open(out) as file:
                    longest = max(run["seconds"] for run in json.load(file)["estimate"]["runs"][1:])
                held.append(all_of_it[0][2] <= float(args.budget) + longest)
                cells += ["held" if held[-1] else "EXCEEDED"]
            body.append([name, *cells])
            print(*body[-1], sep=" | ", file=sys.stderr, flush=True)
    table(["program", "first run", *(cell for when in WHEN for cell in (when, "took", "ratio"))], body)
    for when, own, width in zip(WHEN, near, widths):
        print(f"\n{when}: within 30 % {sum(own)} of {len(own)}, most / least {median(width or [0]):.1f} in the median")
    if args.budget:
        print(f"\nbudget held: {sum(held)} of {len(held)}")


if __name__ == "__main__":
    main()
