#!/usr/bin/env python3
"""Makes tests/truth/bounds/native.csv: cycles an iteration of the real loops of tests/truth/bounds/kernels.csv.

    tests/truth/make/native.py [--repeats 3000]

Each kernel's program is built twice, for 900 and 300 iterations. Its one call of `kernel` goes to a function that calls
it again and again with the same arguments and keeps the least time by the time-stamp counter; the difference over 600 is
an iteration. Core cycles for each tick: a chain of dependent additions in the same process. Kernels whose count does not
follow `COUNT`, or that take away what they work on, have no row.
"""

import argparse
import csv
import os
import re
import subprocess
import tempfile

import bounds
import kernels

TARGET = os.path.join(os.path.dirname(bounds.TARGET), "native.csv")
COUNTS = (300, 900)
TIMER = r"""
#include <stdio.h>
#include <x86intrin.h>
typedef unsigned long u64;
extern u64 kernel(u64, u64, u64, u64, u64, double, double);
static u64 ticks(void) { unsigned a; _mm_lfence(); u64 t = __rdtscp(&a); _mm_lfence(); return t; }
static u64 chain(void) {
    u64 start = ticks(), n = 1000, x = 0;
    __asm__ volatile("1:\n.rept 20\nadd %2, %0\n.endr\ndec %1\njnz 1b" : "+r"(x), "+r"(n) : "r"(n));
    return ticks() - start;
}
u64 timed(u64 a, u64 b, u64 c, u64 d, u64 e, double f, double g) {
    u64 best = -1ul, unit = -1ul, result = 0;
    for (int i = 0; i < REPEATS; i++) {
        u64 t = chain();
        if (t < unit) unit = t;
        t = ticks();
        result = kernel(a, b, c, d, e, f, g);
        t = ticks() - t;
        if (t < best) best = t;
    }
    printf("%.3f\n", best * 20000.0 / unit);
    fflush(stdout);
    return result;
}
"""


def main():
    """Makes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3000, help="calls of each kernel (default 3000)")
    args = parser.parse_args()
    found = {name: (path, defines) for name, path, defines in kernels.sources()}
    rows = []
    for name, level, *_ in bounds.KERNELS:
        short, long = (timed(*found[name], level, count, args.repeats) for count in COUNTS)
        cycles = (long - short) / (COUNTS[1] - COUNTS[0]) if short and long else 0
        if cycles > 0.1:
            rows.append({"name": name, "optimisation": level, "cycles": f"{cycles:.2f}"})
            print(rows[-1], flush=True)
    with open(TARGET, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def timed(path, defines, level, count, repeats):
    """Core cycles of one call of a kernel, nothing where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        code, timer, binary = (os.path.join(folder, name) for name in ("code.s", "timer.c", "program"))
        subprocess.run(["gcc", f"-{level}", *kernels.FLAGS, *defines, f"-DCOUNT={count}", "-S", "-o", code, path],
                       check=True)
        with open(code) as file:
            text = re.sub(r"\bcall\tkernel\b", "call\ttimed", file.read())
        with open(code, "w") as file:
            file.write(text)
        with open(timer, "w") as file:
            file.write(TIMER)
        subprocess.run(["gcc", "-O2", *kernels.FLAGS, f"-DREPEATS={repeats}", "-static", "-no-pie", "-o", binary, code,
                        timer], check=True)
        done = subprocess.run([binary], capture_output=True, text=True, timeout=60)
    return float(done.stdout.split()[0]) if done.returncode == 0 and done.stdout else None


if __name__ == "__main__":
    main()
