#!/usr/bin/env python3
"""Blocks of BHive, measured `ok` in a batch, against a program that shares nothing with the profiler.

Natively each block is a child that maps the page of a fault (BHive's method). Initial registers, vectors, memory,
MXCSR and the number of physical pages are the profiler's: with others other addresses collide, division takes other
times and other operands are subnormal, so it would not be the same work. With one page (`--physical 1`), as in the
paper, Zen mispredicts the way of lines that have two addresses.

*Unrolled*: copies of some 200 and 400 instructions between fences, with registers set anew, many times over; their
difference. Fewer where addresses move over more than the physical pages. *Loop*: some 40 instructions with a back
edge, few and many iterations; not where that takes more pages. Both in cycles of a chain of dependent `imul` and `add`
timed before and after, which must agree within 1 %; of each run the median of the fastest quarter, at the fastest of
four placements. Rows over 10 % off are measured three times more by both.

    tests/figures/native_bhive.py [--sample 400] [--seed 1] [--cpu 1] [--physical 16]

Needs gcc. Left out are blocks for which the profiler restores registers between copies, and that end in a jump.
"""

import argparse
import collections
import functools
import json
import os
import re
import subprocess
import tempfile

from common import BLOCKS, Batch, arguments, cycles, draw, need, number, percent, table

LIMITS = (0.02, 0.05, 0.10, 0.30)
TIMER = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>
typedef unsigned char u8; typedef unsigned long u64;
enum { PAGES = 512, ROUNDS = 150, RIP = 1 << 22 };
static struct { u64 registers[16], vector, saved, left; unsigned mxcsr, usual; } *context;
static struct { u8 bytes[4096]; int length, rips, rip[64][3], wide, kind; u64 memory; } block;
static u8 *code, *at, *backing, dirty[16 * 64], stack[1 << 17];
static int memory, physical, pages;
static void end(const char *why) { dprintf(1, "\"X\": \"%s\", ", why); _exit(0); }
static void fault(int number, siginfo_t *info, void *unused) {
    u64 page = (u64)info->si_addr & ~4095ul;
    if (number != SIGSEGV || info->si_code == SI_KERNEL) end(strsignal(number));
    if (pages == PAGES) end("too many pages");
    if (mmap((void *)page, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, memory,
             pages++ % physical * 4096) != (void *)page) end("a page that cannot be mapped");
}
static void put(const char *text) { for (unsigned b; sscanf(text, "%2x", &b) == 1; text += 2) *at++ = b; }
static void reach(const void *target) { int value = (u8 *)target - (at + 4); memcpy(at, &value, 4); at += 4; }
static void operand(int field, const void *target) { *at++ = 5 | (field & 7) << 3; reach(target); }
static void registers(void) {
    if (block.kind & 1) put("dbe3d9e8d9e8d9e8d9e8");
    for (int i = 0; block.kind & 2 && i < 8; i++) put("0f6f"), operand(i, &context->vector);
    put("31c0");
    for (int i = 0; i < 16; i++) put(i < 8 ? "488b" : "4c8b"), operand(i, &context->registers[i]);
}
static u8 *build(u8 *start, int copies, int offset, int loop) {
    at = start;
    put("53554154415541564157");
    put("4889"), operand(4, &context->saved);
    put("0fae"), operand(2, &context->mxcsr);
    for (int i = 0; i < 16; i++) {
        put(i < 8 ? "c4e2" : "c462"), put(block.wide ? "7d59" : "7959"); // vpbroadcastq
        operand(i, &context->vector);
    }
    u8 *head = at, *first;
    if (!loop) put("0faef00faee8");
    registers();
    first = (u8 *)(((u64)at + 5 + 63) / 64 * 64) + offset;
    put("e9"), reach(first);
    at = first;
    for (int c = 0; c < copies; c++) {
        u8 *copy = at;
        memcpy(at, block.bytes, block.length);
        for (int r = 0; r < block.rips; r++) {
            int value = code + RIP + block.rip[r][2] - (copy + block.rip[r][1]);
            memcpy(copy + block.rip[r][0], &value, 4);
        }
        at += block.length;
    }
    put("48ff"), operand(1, &context->left);
    put("0f85"), reach(loop ? first : head);
    put("488b"), operand(4, &context->saved);
    put("fcc5f877dbe30fae"), operand(2, &context->usual);
    put("415f415e415d415c5d5bc3");
    return start;
}
static u64 ticks(void) { unsigned a; _mm_lfence(); u64 t = __rdtscp(&a); _mm_lfence(); return t; }
static u64 timed(u8 *entry, u64 times) {
    for (int l = 0; l < physical * 64; l++)
        for (int i = 0; dirty[l] && i < 8; i++) ((u64 *)backing)[l * 8 + i] = block.memory;
    context->left = times;
    _mm_mfence();
    u64 start = ticks();
    ((void (*)(void))entry)();
    return ticks() - start;
}
static u64 warm(u8 *entry, u64 times) {
    timed(entry, times);
    for (int w = 0; w < physical * 512; w++) dirty[w / 8] |= ((u64 *)backing)[w] != block.memory;
    return timed(entry, times), timed(entry, times);
}
static u64 chained(u64 n) {
    u64 start = ticks(), x = 1;
    __asm__ volatile("1:\n.rept 10\nimul %2, %0\nadd %2, %0\n.endr\ndec %1\njnz 1b" : "+r"(x), "+r"(n) : "r"(3ul));
    return ticks() - start;
}
static double chain(void) { u64 few = chained(150); return ((double)chained(450) - (double)few) / (300 * 40); }
static int order(const void *a, const void *b) { double d = *(double *)a - *(double *)b; return d < 0 ? -1 : d > 0; }
static double difference(u8 *few, u64 few_times, u8 *many, u64 many_times) {
    static double a[ROUNDS], b[ROUNDS];
    int kept = 0;
    for (int i = 0; i < 4 * ROUNDS && kept < ROUNDS; i++) {
        double before = chain(), x = timed(few, few_times), y = timed(many, many_times), after = chain();
        if (before > after * 1.01 || after > before * 1.01) continue;
        a[kept] = 2 * x / (before + after);
        b[kept++] = 2 * y / (before + after);
    }
    qsort(a, kept, sizeof *a, order);
    qsort(b, kept, sizeof *b, order);
    return kept < ROUNDS / 4 ? -1 : b[kept / 8] - a[kept / 8];
}
static void measure(int straight, int looped) {
    warm(build(code, 2 * straight, 0, 0), 1);
    if (pages > physical) straight = straight * physical / pages < 4 ? 4 : straight * physical / pages;
    for (int loop = 0; loop < 2; loop++) {
        double best = -1;
        int before = pages, copies = loop ? looped : straight, most = 2 * copies;
        for (int offset = 0; offset < 64; offset += 16) {
            u8 *few = build(code, copies, offset, loop), *many = loop ? few : build(code + (RIP >> 2), most, offset, 0);
            u64 one = warm(many, 8) / 8 + 1, times = 20000 / one + 3, longer = loop ? 3 * times : times;
            warm(few, times);
            warm(many, longer);
            if (loop && pages > before) return;
            double all = difference(few, times, many, longer) / (loop ? 2 * times : times);
            if (all > 0 && (best < 0 || all < best)) best = all;
        }
        if (best > 0) dprintf(1, "\"%c\": %f, \"pages\": %d, ", loop ? 'L' : 'U', best / copies, pages);
    }
}
int main(int count, char **arguments) {
    static char hex[8200];
    int copies, looped;
    physical = atoi(arguments[count - 1]);
    context = mmap((void *)0x6a0000000000, RIP >> 1, PROT_READ | PROT_WRITE | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    code = (u8 *)context + 65536;
    memory = memfd_create("block", 0);
    if (ftruncate(memory, 16 * 4096)) return 1;
    backing = mmap(0, 16 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, 0);
    struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (int i = 0; i < 5; i++) sigaction((int[]){SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP}[i], &action, 0);
    context->mxcsr = 0x9fc0; context->usual = 0x1f80;
    while (scanf("%8199s %d %d %d %d %lx %lx %d", hex, &copies, &looped, &block.wide, &block.kind, &block.memory,
                 &context->vector, &block.rips) == 8) {
        at = block.bytes;
        put(hex);
        block.length = at - block.bytes;
        for (int i = 0; i < 3 * block.rips; i++) if (scanf("%d", &block.rip[i / 3][i % 3]) != 1) return 1;
        for (int i = 0; i < 16; i++) if (scanf("%lx", &context->registers[i]) != 1) return 1;
        for (int w = 0; w < 16 * 512; w++) ((u64 *)backing)[w] = block.memory;
        dprintf(1, "{");
        int child = fork(), status;
        if (!child) { alarm(5); measure(copies, looped); _exit(0); }
        waitpid(child, &status, 0);
        dprintf(1, status ? "\"X\": \"killed\", \"status\": %d}\n" : "\"status\": %d}\n", status);
    }
}
"""


def main():
    """Measures by both and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, sample=400)
    parser.add_argument("--cpu", default="1", help="the processor of the native runs (default 1)")
    parser.add_argument("--physical", type=int, default=16, help="physical pages, up to 16 (default 16)")
    parser.add_argument("--passes", type=int, default=3, help="native passes over all blocks (default 3)")
    args = parser.parse_args()
    need(args.tool, args.blocks)
    blocks = draw(args.blocks, args.sample, args.seed)
    found = Batch(args.tool, blocks, *args.options.split()).rows
    left = collections.Counter(f"{row['status']}: {row['reason']}" for row in found if cycles(row) is None)
    rows = {block: row for block, row in zip(blocks, found) if cycles(row)}
    lines = {block: line for block, line in ((block, prepared(args, block, left)) for block in rows) if line}
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/timer.c", "w") as file:
            file.write(TIMER)
        subprocess.run(["gcc", "-O2", "-Wall", "-D_GNU_SOURCE", "-o", "timer", "timer.c"], cwd=folder, check=True)
        once = lambda blocks: dict(zip(blocks, timed(args, folder, [lines[block] for block in blocks])))
        native = least([once(lines) for _ in range(args.passes)])
        off = {block: cycles(rows[block]) / native[block]["U"] - 1 for block in lines if "U" in native[block]}
        left.update("natively: " + native[block].get("X", "no calm round") for block in lines if block not in off)
        print(f"{len(blocks)} blocks of {os.path.basename(args.blocks)}, seed {args.seed}: {len(off)} compared; "
              + ("; ".join(f"{count} {why}" for why, count in left.most_common()) or "none left out") + "\n")
        within = [(limit, sum(abs(one) <= limit for one in off.values())) for limit in LIMITS]
        table(["within", "of the compared", "blocks"],
              [[f"{100 * limit:g} %", percent(count / max(len(off), 1), 1), count] for limit, count in within])
        far = sorted((block for block in off if abs(off[block]) > 0.10), key=lambda block: -abs(off[block]))
        again = [(Batch(args.tool, far, *args.options.split()).rows, once(far)) for _ in range(3 if far else 0)]
    if far:
        print("\nOver 10 % off: `cycles` of four measurements, natively unrolled and as a loop\n")
        table(["block", "off", "cycles", "profiler's loop", "unrolled", "loop", "pages"],
              [line(block, off[block], [(rows[block], native[block]), *((mine[i], theirs[block]) for mine, theirs in again)])
               for i, block in enumerate(far)])


def least(passes):
    """The fastest of several passes over the blocks: disturbance only slows."""
    faster = lambda one, other: one | {key: min(one.get(key, other[key]), other[key]) for key in "UL" if key in other}
    return {block: functools.reduce(faster, (one[block] for one in passes)) for block in passes[0]}


def line(block, off, runs):
    """A row of the table of those far off."""
    text = lambda values: " ".join("–" if one is None else f"{one:.2f}" for one in values)
    mine = [text(map(cycles, (row for row, _ in runs))), text(number(row["loop"]) for row, _ in runs)]
    return [block, percent(off, 0), *mine, *(text(one.get(key) for _, one in runs) for key in "UL"), runs[0][1]["pages"]]


def prepared(args, block, left):
    """What the native program reads of a block; nothing where it is left out."""
    command = [args.tool, "block", block, "--no-explain", "--format", "json"]
    report = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    restored = next((one["verdict"] for one in report["assumptions"] if one["name"] == "own-registers"), None)
    code = [(int(one["offset"], 16), bytes.fromhex(one["bytes"]), one["text"]) for one in report["block"]["instructions"]]
    text, values = "\n".join(words for *_, words in code), report["values"]
    why = ("no values" if not values else "registers restored between copies" if restored != "held" else
           "ends in a jump" if re.search(r"^(bnd )?(j|call|ret|loop)", text, re.M) else None)
    if why:
        left[why] += 1
        return None
    rips = [relative(*one) for one in code if "[rip" in one[2]]
    moved = -rips[0][2] % 64 if rips else 0
    places = [number for field, after, target in rips for number in (field, after, target % (1 << 20) + moved)]
    kind = bool(re.search(r"^f|\bst\b", text, re.M)) + 2 * bool(re.search(r"\bmm\d", text))
    copies = (max(4, -(-200 // len(code))), max(8, 40 // len(code)), int("ymm" in text), kind)
    words = [block, *copies, f"{values['memory']:x}", f"{values['vector']:x}", len(rips), *places]
    return " ".join(map(str, words + [f"{one:x}" for one in values["registers"]]))


def relative(start, data, words):
    """Where an instruction has the displacement of its operand, where it ends, and the address."""
    distance = int(re.search(r"\[rip([+-]\w+)?\]", words)[1] or "0", 0)
    bytes4 = (distance % (1 << 32)).to_bytes(4, "little")
    field = next(i for i in range(1, len(data)) if data[i:i + 4] == bytes4 and data[i - 1] & 0xc7 == 5)
    return start + field, start + len(data), start + len(data) + distance


def timed(args, folder, lines):
    """Of each line: U(nrolled) and L(oop) in cycles, X the reason of a failure."""
    command = ["taskset", "-c", args.cpu, f"{folder}/timer", str(args.physical)]
    done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    return [json.loads(one) for one in done.stdout.splitlines()]


if __name__ == "__main__":
    main()
