#!/usr/bin/env python3
"""Chains of instructions timed in a program of their own, apart from the block profiler: what additions of constants that
renaming does cost those that use the sum.

`pending.csv`: a block, four copies of which are the body of a loop. Cycles of one copy: the difference of 2,000 and 500
iterations by the time-stamp counter, against a chain of additions timed just before; the 10th, 50th and 90th
percentiles of 300 repetitions. Needs gcc. What others do with the core shows as up to 3 % off. rbx and rbp are 3 and 13;
r15 is an address, rcx is 0.

    tests/figures/native_chains.py [--cpu 1]
"""

import argparse
import os
import subprocess
import tempfile

from common import rows, table

HERE = os.path.dirname(os.path.abspath(__file__))
COPIES = 4
ENTER = """.globl block{0}
.align 64
block{0}: push rbx; push rbp; push r12; push r13; push r15
mov r12,rdi; mov r15,rsi; mov eax,5; mov ebx,3; mov ebp,13; xor ecx,ecx; test ebx,ebx
.align 64
1:
{1}
dec r12
jnz 1b
pop r15; pop r13; pop r12; pop rbp; pop rbx
ret"""
TIMER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>
typedef unsigned long u64;
extern void (*blocks[])(u64, void *);
extern u64 count;
static char memory[1 << 16] __attribute__((aligned(4096)));
static u64 ticks(void) { unsigned a; _mm_lfence(); u64 t = __rdtscp(&a); _mm_lfence(); return t; }
static u64 chain(void) {
    u64 start = ticks(), n = 1000, x = 0;
    __asm__ volatile("1:\n.rept 20\nadd %2, %0\n.endr\ndec %1\njnz 1b" : "+r"(x), "+r"(n) : "r"(n));
    return ticks() - start;
}
static int order(const void *a, const void *b) { double d = *(double *)a - *(double *)b; return d < 0 ? -1 : d > 0; }
int main(void) {
    enum { ROUNDS = 300 };
    static double found[ROUNDS];
    for (u64 k = 0; k < count; k++) {
        for (int i = 0; i < ROUNDS; i++) {
            u64 unit = chain(), other = chain(), t = ticks();
            blocks[k](500, memory);
            u64 few = ticks() - t;
            t = ticks();
            blocks[k](2000, memory);
            u64 many = ticks() - t;
            found[i] = ((double)many - (double)few) / 1500 * 20000.0 / (unit < other ? unit : other);
        }
        qsort(found, ROUNDS, sizeof *found, order);
        printf("%f %f %f\n", found[ROUNDS / 10], found[ROUNDS / 2], found[ROUNDS * 9 / 10]);
    }
}
"""


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cpu", default="1", help="the processor to run on (default 1)")
    args = parser.parse_args()
    blocks = rows(f"{HERE}/pending.csv")
    lines = [".intel_syntax noprefix", ".text"]
    lines += [ENTER.format(number, "\n".join([row["block"]] * COPIES)) for number, row in enumerate(blocks)]
    lines += [".data", ".globl blocks", "blocks:", *(f".quad block{number}" for number in range(len(blocks))),
              ".globl count", f"count: .quad {len(blocks)}", '.section .note.GNU-stack,"",@progbits']
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("blocks.s", "\n".join(lines) + "\n"), ("timer.c", TIMER)):
            with open(f"{folder}/{name}", "w") as file:
                file.write(text)
        subprocess.run(["gcc", "-O1", "-static", "-no-pie", "-o", f"{folder}/timer", f"{folder}/timer.c",
                        f"{folder}/blocks.s"], check=True)
        done = subprocess.run(["taskset", "-c", args.cpu, f"{folder}/timer"], capture_output=True, text=True, check=True)
    body = [[row["what"], f"`{row['block']}`", *(f"{float(one) / COPIES:.2f}" for one in line.split())]
            for row, line in zip(blocks, done.stdout.splitlines())]
    table(["what", "block", "10 %", "median", "90 %"], body)


if __name__ == "__main__":
    main()
