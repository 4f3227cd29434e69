#!/usr/bin/env python3
"""Whether a processor's history of branches, by which it predicts indirect calls, has the addresses of called functions.

A loop calls 2 or 4 functions in turn, through a table and with no branch that differs between the calls. Where the history has
their addresses, all are predicted. A Zen 3 or 4 has their lowest four bits only: functions 16 bytes apart, as compilers align
them, are mispredicted each time. The times are of a call, the least of three runs; needs gcc.

  python3 tests/figures/call_history.py
"""

import subprocess
import tempfile

from common import table

STEPS = [5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 80, 128, 4096, 4168]
PROGRAM = """
#include <stdio.h>
#include <time.h>
%s
static long (*volatile table[])(long) = { %s };
static unsigned char order[1 << 16];
__attribute__((noinline)) static long calls(long rounds) {
    long sum = 0;
    for (long r = 0; r < rounds; r++)
        for (long i = 0; i < sizeof order; i++) sum = table[order[i]](sum);
    return sum;
}
int main(void) {
    for (long i = 0; i < sizeof order; i++) order[i] = i %% %d;
    clock_t start = clock();
    volatile long sum = calls(160);
    printf("%%.2f\\n", (double)(clock() - start) / CLOCKS_PER_SEC * 1e9 / (160.0 * sizeof order));
}
"""


def nanoseconds(functions, step, folder):
    """A call of so many functions in turn, so many bytes apart."""
    names = [f"f{i}" for i in range(functions)]
    with open(f"{folder}/f.s", "w") as file:
        file.write(".text\n.p2align 12\nbase:\n")
        for i, name in enumerate(names):
            file.write(f".org base+{i * step}, 0xcc\n.globl {name}\n{name}: lea {i + 1}(%rdi),%rax\nret\n")
    with open(f"{folder}/calls.c", "w") as file:
        file.write(PROGRAM % ("".join(f"extern long {name}(long);\n" for name in names), ", ".join(names), functions))
    subprocess.run(["gcc", "-O2", "-z", "noexecstack", "-o", "calls", "calls.c", "f.s"], cwd=folder, check=True)
    runs = [subprocess.run(["./calls"], cwd=folder, check=True, capture_output=True, text=True) for _ in range(3)]
    return min(float(run.stdout) for run in runs)


def main():
    """Prints the table."""
    with tempfile.TemporaryDirectory() as folder:
        body = [[step, *(f"{nanoseconds(n, step, folder):.2f}" for n in (2, 4))] for step in STEPS]
    table(["bytes apart", "2 in turn, ns", "4 in turn, ns"], body)


if __name__ == "__main__":
    main()
