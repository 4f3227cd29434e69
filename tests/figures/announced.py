#!/usr/bin/env python3
"""What `tdtool report --estimate` says its further runs take, beside what they took.

  cargo build --release && python3 tests/figures/announced.py

Each announcement is judged by the seconds from its line to the end of tdtool: the first one before the counted run, the
second one after it. A range is right if it has the seconds, or an end of it is within 30 %; a number, if it is within 30 %.
"""

import argparse
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

from common import arguments, need, table
from estimate_known import CONTENTION, FLAT, OPTIONS, SOURCE
from estimate_real import PROGRAMS, text

# Written before the first run. Kinds of programs/ with their size, by length and number of threads.
KNOWN = {
    "fp_chain": "{folder}/estimate fp_chain normal 0.3", "misp50": "{folder}/estimate misp50 normal 1",
    "dram_chase": "{folder}/estimate dram_chase normal 3", "divide": "{folder}/estimate divide normal 0.5",
    "mix_three": "{folder}/estimate mix_three normal 5", "retire": "{folder}/estimate retire normal 2",
    "flat_chain": "{folder}/flat flat_chain normal 1",
    "false_sharing": "{folder}/contention false_sharing normal 1", "padded": "{folder}/contention padded normal 1",
    "shared_atomic": "{folder}/contention shared_atomic normal 0.4", "convoy": "{folder}/contention convoy normal 1",
    "read_shared": "{folder}/contention read_shared normal 3",
}
REAL = ["gzip", "zstd", "sort", "sqlite3", "python3", "perl", "words.cpp", "sieve.rs"]
SAID = re.compile(r"estimated top-down: .*about (?:([\d.]+)(?: (m?s))? to )?([\d.]+) (m?s|min)")
UNITS = {"ms": 1e-3, "s": 1, "min": 60, None: 1}
NEAR = 1.3


def announced(command):
    """For each announcement its least and most, and what the rest took; and the run before it, in seconds."""
    begin, said, last = time.monotonic(), [], []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace") as child:
        for line in child.stderr:
            found = SAID.search(line)
            last = [line.strip()]
            if found:
                low, unit, high, own = found.groups()
                high = float(high) * UNITS[own]
                low = float(low) * UNITS[unit or own] if low else high
                said.append((low, high, time.monotonic()))
    end = time.monotonic()
    if child.returncode or not said:
        return None, last[0] if last else "nothing said"
    return [(low, high, end - at) for low, high, at in said], said[0][2] - begin


def ratio(low, high, took):
    """Announced / actual: 1 inside of a range."""
    return 1.0 if low <= took <= high else min((low / took, high / took), key=lambda of: max(of, 1 / of))


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
    body, near = [], [[], []]
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
            command = shlex.split(line.replace("{text}", f"{folder}/text").replace("{folder}", folder))
            if not shutil.which(command[0]):
                body.append([name, "not installed"])
                continue
            all_of_it, first = announced([args.tool, "report", "--estimate", *budget, "--", *command])
            if all_of_it is None:
                body.append([name, f"failed: {first}"])
                continue
            cells = [f"{first:.2f}"]
            for number, one in enumerate(all_of_it[:2]):
                of = ratio(*one)
                near[number].append(1 / NEAR <= of <= NEAR)
                low, high, took = one
                cells += [f"{low:.1f}-{high:.1f}" if low < high else f"{high:.1f}", f"{took:.1f}", f"{of:.2f}"]
            body.append([name, *cells])
            print(*body[-1], sep=" | ", file=sys.stderr, flush=True)
    table(["program", "first run", "announced", "took", "ratio", "after counts", "took", "ratio"], body)
    print(f"\nwithin 30 %: {sum(near[0])} of {len(near[0])} before counts, {sum(near[1])} of {len(near[1])} after")


if __name__ == "__main__":
    main()
