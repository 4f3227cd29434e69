#!/usr/bin/env python3
"""Makes tests/truth/deps/*.csv of our own kernels: one file for each compiler and level of optimisation.

    tests/truth/make/kernels.py [--clang COMMAND] [--only NAME] [--check]

Needs gcc, valgrind, objdump, and x86-64 Linux with ptrace. `--check` steps through a window of every kernel with ptrace
and compares, instruction by instruction, the accesses computed from registers with lackey's.
"""

import argparse
import csv
import os
import re
import subprocess
import tempfile

import code_of as code
import region
import snapshot
import trace

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "..", "kernels")
TARGET = os.path.join(HERE, "..", "deps")
# Golden Cove's reorder buffer: Intel's optimization reference manual (248966), 512 entries; 256: Zen 3's.
WINDOWS = (512, 256)
VARIANTS = {
    "stencil": [(f"stencil_{kind}_{distance}", [f"-DT={kind.replace('_', ' ')}", f"-DD={distance}"])
                for kind, distance in (("int", 1), ("long", 2), ("double", 3), ("float", 4), ("int", 5), ("double", 6),
                                       ("short", 7), ("char", 8))],
    "lz_copy": [(f"lz_copy_{distance}", [f"-DD={distance}"]) for distance in (1, 3, 8)],
}
FLAGS = ["-fno-pie", "-fno-stack-protector", "-fcf-protection=none"]
COLUMNS = ["name", "compiler", "optimisation", "class", "start", "end", "hex", "iterations", "path_share", "triples",
           "triples_256", "registers", "memory"]


def main():
    """Makes all files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--clang", help="the command of a clang, such as 'zig clang --target=x86_64-linux-gnu'")
    parser.add_argument("--only", help="only this kernel, printed and not stored")
    parser.add_argument("--levels", default="0123", help="levels of optimisation (default 0123)")
    parser.add_argument("--check", action="store_true", help="compare with single steps; store nothing")
    args = parser.parse_args()
    compilers = [("gcc", ["gcc"])] + ([("clang", args.clang.split())] if args.clang else [])
    for name, command in compilers:
        for level in args.levels:
            rows = list(table(name, command, level, args))
            if args.only or args.check:
                continue
            store(os.path.join(TARGET, f"{name}-O{level}.csv"), rows)


def store(path, rows):
    """Writes a CSV."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{path}: {len(rows)} kernels", flush=True)


def sources():
    """`(name, path, defines)` of every kernel."""
    for file in sorted(os.listdir(SOURCES)):
        stem = file.removesuffix(".c")
        if file.endswith(".c"):
            for name, defines in VARIANTS.get(stem, [(stem, [])]):
                yield name, os.path.join(SOURCES, file), defines


def table(compiler, command, level, args):
    """The rows of one compiler at one level."""
    for name, path, defines in sources():
        if args.only and name != args.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            binary = os.path.join(folder, name)
            subprocess.run([*command, f"-O{level}", *FLAGS, *defines, "-c", "-o", f"{binary}.o", path], check=True,
                           stderr=subprocess.DEVNULL)
            subprocess.run(["gcc", "-static", "-no-pie", "-o", binary, f"{binary}.o"], check=True)
            row = kernel(binary, args.check)
        if row is None:
            print(f"{name} {compiler} -O{level}: no loop", flush=True)
            continue
        row |= {"name": name, "compiler": compiler, "optimisation": f"O{level}", "class": kind(path)}
        if args.only:
            print(row)
        yield row


def kind(path):
    """`plain`, or what the source's second line says."""
    with open(path) as file:
        found = re.search(r"/\* class: (\S+) \*/", file.read(400))
    return found.group(1) if found else "plain"


def kernel(binary, check):
    """The row of one program, or nothing where the compiler left no loop."""
    first, last = function(binary)
    instructions = code.disassemble(binary, first, last + 1)
    repeated = {address for address, one in instructions.items() if one.repeats}
    steps = within(trace.steps(trace.lines([binary]), repeated), first, last)
    loop = region.hottest((address for address, _ in steps), lambda address: first <= address <= last)
    if loop is None or loop.count < 40:
        return None
    found = region.Region(region.iterations(steps, loop, (first, last)))
    if not found.path or max(found.path) - min(found.path) > 1 << 16:
        return None
    instructions = code.disassemble(binary, min(found.path), max(found.path) + 16)
    visit = found.middle(WINDOWS[0] // len(found.path) + 2) + 1
    process = snapshot.Process([binary])
    if not process.stop_at(loop.head, visit):
        raise RuntimeError(f"{binary}: visit {visit} not reached")
    registers = process.registers()
    words, log = snapshot.window(process, {a: instructions[a] for a in found.path}, WINDOWS[0] + len(found.path))
    process.end()
    if check:
        compare(binary, steps, loop, visit, log, set(found.path))
    return row(found, [instructions[a] for a in found.path], registers, words)


def function(binary):
    """First and last address of `kernel`."""
    text = subprocess.run(["nm", "-S", binary], capture_output=True, text=True, check=True).stdout
    start, size = re.search(r"^(\w+) (\w+) \w kernel$", text, re.M).groups()
    return int(start, 16), int(start, 16) + int(size, 16) - 1


def within(steps, first, last):
    """The steps from the first to the last in the function."""
    kept = list(steps)
    inside = [index for index, (address, _) in enumerate(kept) if first <= address <= last]
    return kept[inside[0]:inside[-1] + 1]


def row(found, path, registers, words, base=0):
    """The fields of a region; `base` is where its file was loaded."""
    joined, offsets = code.joined(path, base)
    texts = {window: " ".join(f"{offsets[w]:#x}>{offsets[r]:#x}@{delta}:{share:.2f}" for (w, r, delta), share
                              in sorted(found.triples(window).items()) if share >= 0.05) for window in WINDOWS}
    end = path[-1].address + len(path[-1].code)
    return {"start": f"{path[0].address - base:#x}", "end": f"{end - base:#x}",
            "hex": joined.hex(), "iterations": len(found.taken), "path_share": f"{found.share():.2f}",
            "triples": texts[512], "triples_256": "=" if texts[256] == texts[512] else texts[256],
            "registers": " ".join(f"{name}={registers[name]:x}" for name in snapshot.GENERAL),
            "memory": runs(words)}


def runs(words):
    """Words as `address:value,value,…`, one such run for those that lie behind each other; hexadecimal."""
    text, before = [], None
    for address in sorted(words):
        text.append(f",{words[address]:x}" if before == address - 8 else f" {address:x}:{words[address]:x}")
        before = address
    return "".join(text).strip()


def compare(binary, steps, loop, visit, log, own):
    """Whether the single steps saw what lackey saw; prints it."""
    seen = 0
    for start, (address, _) in enumerate(steps):
        seen += address == loop.head
        if seen == visit:
            break
    different = [(index, mine, steps[start + index]) for index, mine in enumerate(log)
                 if start + index < len(steps) and mine[0] in own and not same(mine, steps[start + index])]
    print(f"{os.path.basename(binary)}: {len(log)} steps, {len(different)} differ {different[:1]}", flush=True)


def same(mine, theirs):
    """Whether the address and all accesses of two steps agree."""
    return mine[0] == theirs[0] and touches(mine[1]) == touches((a, s, k) for k, a, s in theirs[1])


def touches(accesses):
    """Accesses without their order, a modification split in two."""
    return sorted((address, size, one) for address, size, kind_ in accesses for one in kind_.replace("M", "LS"))


if __name__ == "__main__":
    main()
