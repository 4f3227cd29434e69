#!/usr/bin/env python3
"""Makes tests/truth/deps/programs.csv: hot innermost loops of real programs.

    tests/truth/make/programs.py [--loops 3] [--only NAME]

Loops of the program file itself (no shared library), position independent and stripped as the distribution ships them.
All addresses, those in the snapshot of registers and memory too, are the file's own: whatever points into the program's
image is moved from where it was loaded to where its file says, which is the same shift for all of them.
"""

import argparse
import collections
import itertools
import os
import re
import shutil
import subprocess
import tempfile

import code_of as code
import kernels
import region
import snapshot
import trace

# Where valgrind 3.19 puts a position independent program.
VALGRIND_BASE = 0x108000
# Steps of a loop that are looked at, and visits that come before them at most.
STEPS, VISITS = 150_000, 8_000
PROGRAMS = [
    ("gzip", "gzip -c", "text"), ("gzip-d", "gzip -dc", "gz"), ("sort", "sort -n", "text"),
    ("sort-text", "sort", "text"), ("mawk", "mawk {s+=$1;n[$1%17]++}END{print(s,n[3])}", "text"),
    ("perl", "perl -ne $h{$_%97}+=length;END{print(scalar(keys(%h)))}", "text"), ("sha256sum", "sha256sum", "text"),
    ("md5sum", "md5sum", "text"), ("sha1sum", "sha1sum", "text"), ("sha512sum", "sha512sum", "text"),
    ("b2sum", "b2sum", "text"), ("cksum", "cksum", "text"), ("sum", "sum", "text"), ("base64", "base64", "text"),
    ("wc", "wc", "text"), ("od", "od -x", "text"), ("tr", "tr a-z A-Z", "text"), ("grep", "grep -c lin.*77", "text"),
    ("factor", "factor 1000000000000000003", "text"), ("sed", "sed s/li/xy/", "text"),
    ("fold", "fold -w 7", "text"), ("expand", "expand", "text"), ("nl", "nl", "text"), ("uniq", "uniq -c", "text"),
    ("unexpand", "unexpand -a", "text"), ("fmt", "fmt -w 30", "text"), ("cut", "cut -d1 -f2", "text"),
    ("ptx", "ptx", "text"), ("tac", "tac", "text"), ("seq", "seq 2000", "text"), ("tsort", "tsort", "text"),
    ("strings", "strings -n 3", "gz"), ("basenc", "basenc --z85", "gz"), ("paste", "paste -s", "text"),
]


def main():
    """Makes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--loops", type=int, default=3, help="hottest loops of each program (default 3)")
    parser.add_argument("--only", help="only this program, printed and not stored")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        inputs = prepared(folder)
        for name, command, kind in PROGRAMS:
            if args.only in (None, name):
                rows += program(name, command.split(), inputs[kind], args.loops)
    if args.only:
        print(*rows, sep="\n")
    else:
        kernels.store(os.path.join(kernels.TARGET, "programs.csv"), rows)


def prepared(folder):
    """Inputs: 1500 lines of numbers in a mixed order, and the same compressed."""
    text = os.path.join(folder, "text")
    with open(text, "w") as file:
        file.writelines(f"{n * 7919 % 1501} line {n}\n" for n in range(1, 1501))
    subprocess.run(f"gzip -nk {text}", shell=True, check=True)
    return {"text": text, "gz": text + ".gz"}


def program(name, command, stdin, wanted):
    """The rows of one program."""
    path = shutil.which(command[0])
    if path is None:
        print(f"{name}: not installed", flush=True)
        return []
    command = [path, *command[1:]]
    image = code.disassemble(path, VALGRIND_BASE, VALGRIND_BASE + (1 << 24), VALGRIND_BASE)
    rows = []
    for number, loop in enumerate(loops(command, stdin, image, wanted)):
        made = one(command, stdin, image, loop)
        print(f"{name} {loop.head - VALGRIND_BASE:#x}: {made if isinstance(made, str) else 'stored'}", flush=True)
        if not isinstance(made, str):
            rows.append({"name": f"{name}-{number + 1}", "compiler": "debian", "optimisation": "",
                         "class": "plain"} | made)
    return rows


def loops(command, stdin, image, wanted):
    """The hottest loops that contain none of the others."""
    jumps, before = collections.Counter(), None
    for line in trace.lines(command, stdin):
        if line[:2] == "I ":
            address = int(line[3:line.index(",")], 16)
            if before is not None and 0 <= before - address < 4096 and address in image:
                jumps[(before, address)] += 1
            before = address
    tails = collections.defaultdict(dict)
    for (source, head), count in jumps.items():
        if source in image and image[source].mnemonic.startswith("j"):
            tails[head][source] = count
    found = sorted((region.Loop(head, max(s for s, n in of.items() if n * 20 >= max(of.values())), sum(of.values()))
                    for head, of in tails.items()), key=lambda loop: -loop.count)
    kept = []
    for loop in found:
        if len(kept) < wanted and loop.count >= 300 and not any(
                loop.head <= one.tail and one.head <= loop.tail for one in kept):
            kept.append(loop)
    return kept


def one(command, stdin, image, loop):
    """The row of one loop, or why there is none."""
    skipped = min(loop.count // 3, VISITS)
    repeated = {address for address, one_ in image.items() if one_.repeats}
    steps, seen = [], 0
    for step in trace.steps(trace.lines(command, stdin), repeated):
        seen += step[0] == loop.head
        if seen > skipped:
            steps.append(step)
            if len(steps) == STEPS:
                break
    found = region.Region(region.iterations(steps, loop))
    if not found.path or len(found.taken) < 40:
        return "no path without repetition"
    visit = found.middle(kernels.WINDOWS[0] // len(found.path) + 2) + 1
    process = snapshot.Process(command, stdin)
    base, end = mapped(process.pid, command[0])
    try:
        if not process.stop_at(loop.head - VALGRIND_BASE + base, skipped + visit):
            return "not reached natively"
    except RuntimeError as error:
        return f"native run: {error}"
    registers = process.registers()
    native = {a - VALGRIND_BASE + base: image[a] for a in found.path}
    words, log = snapshot.window(process, {a: code.Instruction(a, i.code, i.text) for a, i in native.items()},
                                 kernels.WINDOWS[0] + len(found.path))
    process.end()
    if not followed(log, steps, loop, visit, base):
        return "the native run goes another way"
    moved = {name: home(registers[name], base, end) for name in snapshot.GENERAL}
    words = {home(address, base, end): home(value, base, end) for address, value in words.items()}
    return kernels.row(found, [code.Instruction(a, image[a].code, image[a].text) for a in found.path], moved, words,
                       VALGRIND_BASE)


def mapped(pid, path):
    """First and last address of the program's image."""
    with open(f"/proc/{pid}/maps") as file:
        text = file.read()
    spans = re.findall(r"^(\w+)-(\w+) .* " + re.escape(os.path.realpath(path)) + "$", text, re.M)
    base = int(spans[0][0], 16)
    sizes = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
    ends = [int(start, 16) + int(size, 16) for start, size in
            re.findall(r"^  LOAD +\S+ (\S+) \S+ \S+ (\S+)", sizes, re.M)]
    return base, base + max(ends)


def home(value, base, end):
    """A pointer into the image, as the file has it; any other value as it is."""
    return value - base if base <= value < end else value


def followed(log, steps, loop, visit, base):
    """Whether the native run goes the way of the traced one, at least for the next iterations."""
    seen = 0
    for start, (address, _) in enumerate(steps):
        seen += address == loop.head
        if seen == visit:
            break
    pairs = list(zip(log[:100], itertools.islice(steps, start, start + 100)))
    return all(mine[0] - base == theirs[0] - VALGRIND_BASE for mine, theirs in pairs)


if __name__ == "__main__":
    main()
