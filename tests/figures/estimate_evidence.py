#!/usr/bin/env python3
"""Estimated top-down of real programs beside what valgrind's cachegrind counts in the same run: instructions for Retiring,
simulated mispredictions for Bad Speculation, simulated misses for Memory Bound.

  cargo build --release && python3 tests/figures/estimate_evidence.py

Debian: apt-get install valgrind gzip xz-utils zstd. Cachegrind's predictor is a small one of 2004 (two-level, 16 K counters), so
its mispredictions are more than a processor's; its second cache is set to the size of the core's.
"""

import argparse
import re
import shlex
import subprocess
import tempfile

from common import arguments, need, table
from estimate_real import PROGRAMS, estimate, text

CHOSEN = ("gzip", "xz", "zstd")


def second_cache():
    """Size and ways of the core's second cache."""
    folder = "/sys/devices/system/cpu/cpu0/cache/index2/"
    with open(folder + "size") as size, open(folder + "ways_of_associativity") as ways:
        return int(size.read().strip().rstrip("K")) * 1024, int(ways.read() or 8) or 8


def cachegrind(command):
    """Instructions, mispredictions, misses of the first data cache and of the second cache for data."""
    size, ways = second_cache()
    options = ["--tool=cachegrind", "--cache-sim=yes", "--branch-sim=yes", "--cachegrind-out-file=/dev/null",
               "--I1=32768,8,64", "--D1=32768,8,64", f"--LL={size},{ways},64"]
    done = subprocess.run(["valgrind", *options, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          errors="replace", check=True)
    found = lambda name: int(re.search(rf"{name}:\s+([\d,]+)", done.stderr)[1].replace(",", ""))
    return [found(name) for name in ("I +refs", "Mispredicts", "D1 +misses", "LLd +misses")]


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, blocks=False)
    parser.add_argument("--words", type=int, default=1_500_000, help="words of the text (default 1.5 million)")
    parser.add_argument("--width", type=int, default=6, help="slots of the core per cycle (default 6: Zen 3 and 4)")
    args = parser.parse_args()
    need(args.tool)
    body = []
    with tempfile.TemporaryDirectory() as folder:
        text(f"{folder}/text", args.words)
        for name in CHOSEN:
            command = shlex.split(PROGRAMS[name].replace("{text}", f"{folder}/text"))
            document, error = estimate(args.tool, command, folder)
            if document is None:
                raise SystemExit(f"{name}: {error}")
            notes = " ".join(document["notes"])
            ghz = float(re.search(r"core clock ([\d.]+) GHz", notes)[1])
            penalty = re.search(r"misprediction costs (\d+) cycles", notes)
            cycles = document["runs"][0]["seconds"] * ghz * 1e9
            instructions, wrong, first, second = cachegrind(command)
            share = lambda part: "{value:.0f} ({low:.0f}-{high:.0f})".format(
                **{key: 100 * document["program"]["parts"][part][key] for key in ("value", "low", "high")})
            body.append([name, share("retiring"), f"{100 * instructions / cycles / args.width:.0f}", share("bad_speculation"),
                         f"{100 * wrong * float(penalty[1]) / cycles:.0f}" if penalty else "no penalty", share("memory_bound"),
                         f"{1000 * first / instructions:.1f}", f"{1000 * second / instructions:.2f}"])
    table(["program", "Retiring %", "instructions / slots %", "Bad Speculation %", "simulated mispredictions x penalty %",
           "Memory Bound %", "D1 misses per 1000", "L2 misses per 1000"], body)


if __name__ == "__main__":
    main()
