#!/usr/bin/env python3
"""Blocks timed in a program of their own, which shares nothing with the block profiler but the clock.

Straight blocks: copies of about 120 instructions as the body of a loop that counts in memory; blocks that begin with
`1:`: the loop itself, counted in rcx. Cycles of one copy: the difference of two counts of iterations by the time-stamp
counter, against a chain of `imul` (3 cycles each) timed just before and after; the median of the fastest quarter of
400 repetitions whose two chains agree within 1 %. Other work on the core only makes a block slower. rsi, rdi, r8 to r15
are addresses 64 KiB and 33 lines apart, the other registers are small; vectors hold 1.0.

Beside each block its variant is timed, which differs in one thing only: the column `variant` of the list, or where
that is `padded` the same instructions with prefixes without effect, so that none is shorter than six bytes. Four
placements: 120 instructions at the start of a line and 24 bytes into it, 64 and 48 instructions 40 bytes into it.

    tests/figures/native_blocks.py FILE.csv [--only REGEX] [--cpu 1]     columns name, asm, variant
    tests/figures/native_blocks.py --asm "add rax,rbx" …

Needs gcc. `ds` before an instruction is a prefix without effect.
"""

import argparse
import os
import re
import subprocess
import tempfile

from common import rows, table

PLACEMENTS = ((120, 0), (120, 24), (64, 40), (48, 40))
PADDED = 6
ENTER = """.globl block{0}
block{0}: push rbx; push rbp; push r12; push r13; push r14; push r15; mov [rip+saved],rsp
mov [rip+left],rdi; mov rcx,rdi; mov rax,rsi
{3}
mov eax,5; mov ebx,3; mov ebp,13; mov edx,2; mov rcx,{2}
vbroadcastsd ymm0,[rip+one]
{4}
.balign 64
{5}
{1}
mov rsp,[rip+saved]; pop r15; pop r14; pop r13; pop r12; pop rbp; pop rbx; vzeroupper
ret"""
POINTERS = ("rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15")
STRIDE = 65536 + 33 * 64
TIMER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>
typedef unsigned long u64;
extern void (*blocks[])(u64, void *);
extern u64 loops[], count;
static char memory[1 << 21] __attribute__((aligned(4096)));
static u64 ticks(void) { unsigned a; _mm_lfence(); u64 t = __rdtscp(&a); _mm_lfence(); return t; }
static u64 run(u64 n) {
    u64 start = ticks(), x = 1;
    __asm__ volatile("1:\n.rept 10\nimul %2, %0\n.endr\ndec %1\njnz 1b" : "+r"(x), "+r"(n) : "r"(3ul));
    return ticks() - start;
}
static double chain(void) { u64 few = run(200); return ((double)run(600) - (double)few) / (400 * 30); }
static int order(const void *a, const void *b) { double d = *(double *)a - *(double *)b; return d < 0 ? -1 : d > 0; }
int main(void) {
    enum { ROUNDS = 400 };
    static double found[ROUNDS];
    for (u64 k = 0; k < count; k++) {
        u64 few = loops[k] ? 2000 : 20, many = loops[k] ? 6000 : 120, kept = 0;
        for (int i = 0; i < 4 * ROUNDS && kept < ROUNDS; i++) {
            double before = chain();
            u64 t = ticks();
            blocks[k](few, memory);
            u64 a = ticks() - t;
            t = ticks();
            blocks[k](many, memory);
            u64 b = ticks() - t;
            double after = chain(), unit = (before + after) / 2;
            if (before > after * 1.01 || after > before * 1.01) continue;
            found[kept++] = ((double)b - (double)a) / (many - few) / unit;
        }
        qsort(found, kept, sizeof *found, order);
        printf("%f\n", found[kept / 8]);
    }
}
"""


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("list", nargs="?", help="CSV with the columns name and asm")
    parser.add_argument("--asm", nargs="+", default=[], help="blocks")
    parser.add_argument("--only", default="", metavar="REGEX", help="only these blocks")
    parser.add_argument("--cpu", default="1", help="the processor to run on (default 1)")
    args = parser.parse_args()
    blocks = [(row["name"], row["asm"], row.get("variant") or "") for row in (rows(args.list) if args.list else [])]
    blocks = [one for one in blocks if re.search(args.only, one[0])] + [(asm, asm, "") for asm in args.asm]
    blocks = [(name, asm, padded(asm) if variant == "padded" else variant) for name, asm, variant in blocks]
    all_of_them = [text for _, asm, variant in blocks for text in (asm, variant) if text]
    found = [dict(zip(all_of_them, measured(all_of_them, *place, args.cpu))) for place in PLACEMENTS]
    cells = lambda text: " ".join(f"{one[text]:.2f}" for one in found) if text else ""
    table(["block", "instructions", "cycles", "of the variant"],
          [[name, len(instructions(asm)), cells(asm), cells(variant)] for name, asm, variant in blocks])


def instructions(asm):
    """The instructions of a block, with their prefixes."""
    parts = [part.strip() for part in asm.removeprefix("1:").replace("ds;", "ds ").split(";")]
    return [part.replace("ds ", "ds; ") for part in parts if part]


def padded(asm):
    """The block with prefixes before all instructions of fewer than PADDED bytes, but for the end of a loop."""
    parts = instructions(asm)
    own, end = (parts[:-2], parts[-2:]) if asm.startswith("1:") else (parts, [])
    with tempfile.TemporaryDirectory() as folder:
        labelled = "\n".join(f"l{index}: {part}" for index, part in enumerate([*own, ""]))
        subprocess.run(["as", "-o", f"{folder}/o", "-"], input=f".intel_syntax noprefix\n{labelled}\n", text=True, check=True)
        names = subprocess.run(["nm", "-n", f"{folder}/o"], capture_output=True, text=True, check=True).stdout
    at = sorted(int(line.split()[0], 16) for line in names.splitlines())
    longer = ["ds; " * max(0, PADDED - (after - start)) + part for part, start, after in zip(own, at, at[1:])]
    return ("1: " if end else "") + "; ".join(longer + end)


def measured(blocks, fill, offset, cpu):
    """Cycles of one copy of each, in straight code of `fill` instructions that starts `offset` bytes into a line."""
    copies = [1 if asm.startswith("1:") else max(4, fill // len(instructions(asm))) for asm in blocks]
    lines = [".intel_syntax noprefix", ".text"]
    lines += [entry(number, asm, times, offset) for number, (asm, times) in enumerate(zip(blocks, copies))]
    lines += [".data", ".balign 64", "left: .quad 0", "saved: .quad 0", "one: .double 1.0", ".globl blocks",
              "blocks:", *(f".quad block{number}" for number in range(len(blocks))),
              ".globl loops", "loops:", *(f".quad {int(asm.startswith('1:'))}" for asm in blocks),
              ".globl count", f"count: .quad {len(blocks)}", '.section .note.GNU-stack,"",@progbits']
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("blocks.s", "\n".join(lines) + "\n"), ("timer.c", TIMER)):
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        subprocess.run(["gcc", "-O2", "-no-pie", "-o", "timer", "timer.c", "blocks.s"], cwd=folder, check=True)
        done = subprocess.run(["taskset", "-c", cpu, os.path.join(folder, "timer")], capture_output=True, text=True,
                              check=True)
    return [float(line) / times for line, times in zip(done.stdout.splitlines(), copies)]


def entry(number, asm, copies, offset):
    """The function of one block."""
    pointers = "\n".join(f"lea {name},[rax+{index * STRIDE}]" for index, name in enumerate(POINTERS))
    vectors = "\n".join(f"vmovapd ymm{index},ymm0" for index in range(1, 16))
    body = "\n".join([asm] * copies)
    if not asm.startswith("1:"):
        body = f"1:\n{body}\ndec qword ptr [rip+left]\njnz 1b"
    return ENTER.format(number, body, "[rip+left]" if asm.startswith("1:") else "7", pointers, vectors,
                        f".skip {offset},0x90" if offset else "")


if __name__ == "__main__":
    main()
