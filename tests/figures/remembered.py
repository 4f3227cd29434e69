#!/usr/bin/env python3
"""Bad Speculation of a branch on random data that a program goes through again and again, beside the truth.

  cargo build --release && python3 tests/figures/remembered.py

`if (a[i] >= 128) s += a[i]` over arrays of 256 bytes to 1 MiB. The true share is 1 - (time of an array that has 8,192 of these
bytes again and again) / (time of random ones), where a predictor remembers 8,192 outcomes; how many more it does decides it, and
processors differ (`tdtool doctor` says how many). --piece: another number. Sorted bytes are no control: where the branch is taken
rarely or always it takes less time, predicted or not.
"""

import argparse
import os
import subprocess
import sys
import tempfile

from common import need, table
from estimate_known import estimate

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
__attribute__((noinline)) long walk(const unsigned char *a, long n) {
    long s = 0;
    for (long i = 0; i < n; i++) if (a[i] >= 128) { s += a[i]; __asm__ volatile("" : "+r"(s)); }
    return s;
}
int main(int count, char **arguments) {
    static unsigned char a[1 << 20];
    long n = atol(arguments[1]), s = 0;
    unsigned x = 1;
    for (long i = 0; i < n; i++) { x = x * 1664525u + 1013904223u; a[i] = x >> 24; }
    if (count > 2 && arguments[2][0] == 'p') { long piece = atol(arguments[4]); for (long i = piece; i < n; i++) a[i] = a[i % piece]; }
    clock_t start = clock();
    for (long left = count > 3 ? atol(arguments[3]) : 0; left > 0; left -= n) s += walk(a, n);
    printf("%.4f %ld\n", (double)(clock() - start) / CLOCKS_PER_SEC, s);
}
"""
OPTIONS = ["-O2", "-g", "-fno-if-conversion", "-fno-if-conversion2", "-fno-tree-vectorize"]


def seconds(command):
    """The least processor time of some runs."""
    runs = (subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(5))
    return min(float(out.split()[0]) for out in runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", default="target/release/tdtool")
    parser.add_argument("--bytes", default=",".join(str(1 << bits) for bits in range(8, 21)))
    parser.add_argument("--piece", default="8192", help="bytes of the predicted array (default 8192)")
    parser.add_argument("--options", default="", help="of tdtool, before its command")
    args = parser.parse_args()
    need(args.tool)
    tool, options, rows, outside = os.path.abspath(args.tool), args.options.split(), [], 0
    with tempfile.TemporaryDirectory() as folder:
        source, program = f"{folder}/walk.c", f"{folder}/walk"
        with open(source, "w") as file:
            file.write(PROGRAM)
        subprocess.run(["cc", *OPTIONS, "-o", program, source], check=True)
        for size in args.bytes.split(","):
            random, predicted = ([program, size, order, str(3 << 27), args.piece] for order in ("random", "predicted"))
            spent = seconds(random)
            truth = max(0.0, 1 - seconds(predicted) / spent) if int(size) > int(args.piece) else 0.0
            for command, true in ((random, truth), (predicted, 0.0)):
                found, error = estimate(tool, command, folder, options)
                if found is None:
                    rows.append([size, command[2], f"{100 * true:.0f}", error.strip()[:60], ""])
                    continue
                part = found["program"]["parts"]["bad_speculation"]
                inside = part["low"] - 0.03 <= true <= part["high"] + 0.03
                outside += not inside
                shown = f"{100 * part['value']:.0f} ({100 * part['low']:.0f}-{100 * part['high']:.0f})"
                rows.append([size, command[2], f"{100 * true:.0f}", shown,
                             "yes" if inside else "NO"])
    table(["bytes", "order", "true share, %", "Bad Speculation, %", "within 3 points of the range"], rows)
    sys.exit(1 if outside else 0)


if __name__ == "__main__":
    main()
