"""Iterations of the loops that `real_loops.py` samples, by hardware breakpoints, and what callgrind simulates of them."""

import os
import re
import shlex
import subprocess

from common import percent

MISS, MISPREDICTION, EXECUTION = 14, 15, 30  # cycles; the first two: Software Optimization Guides of Zen 4 and 5
MOST_PAGES, MOST_PATHS = 10, 2
SECONDS = 3  # a breakpoint takes 15 µs
ENVIRONMENT = dict(os.environ, LC_ALL="C")


def fill(rows, commands, folder, args):
    """Enters iterations, native cycles and limits into rows."""
    simulated = {}
    for row in rows:
        if row["tool"] and row["program"] in commands and not row["iterations"] and re.search(args.only, row["program"]):
            path, start = row["target"].rsplit(":@", 1)
            full, small = (shlex.split(command) for command in commands[row["program"]])
            reads = [(a, b) for a, b in zip(full, small) if a != b and os.path.exists(a)]
            few = counted(small, path, int(start, 16), folder)
            if not few:
                continue
            # Of a program that reads no input the count is the same.
            scale = next((os.path.getsize(a) / os.path.getsize(b) for a, b in reads), 1)
            exact = few if full == small else few * scale * 15e-6 < SECONDS and counted(full, path, int(start, 16), folder)
            row["iterations"], row["counted"] = (exact, "exact") if exact else (round(few * scale), "scaled")
            key = row["program"], path
            if key not in simulated:
                simulated[key] = executions(small, folder, path)
            judged(row, few, simulated[key], int(start, 16), path, args)
            print(row["program"], row["target"], row["native"], row["tool"], row["ratio"], row["limits"], flush=True)


def judged(row, few, counts, start, path, args):
    """Native cycles, their error, and what the replay leaves out."""
    from real_loops import covers, loop_around
    native = float(row["cycles"]) / row["iterations"]
    error = 2 * (1 / int(row["samples"]) + float(row["spread"]) ** 2) ** 0.5
    own = counts.get(start, [0])[0]
    if abs(own / few - 1) < 0.01:
        ranges = loop_around(path, start, args)[2]
        misses, mispredicted = (sum(events[i] for at, events in counts.items() if covers(ranges, at)) / own for i in (1, 2))
        memory, branches = misses * MISS > native / 10, mispredicted * MISPREDICTION > native / 10
        row |= {"misses": f"{misses:.3f}", "mispredicted": f"{mispredicted:.3f}"}
    else:
        memory, branches = int(row["pages"]) > MOST_PAGES, int(row["paths"] or 0) > MOST_PATHS
    short = EXECUTION > native * int(row["trips"]) / 10
    limits = ["memory"] * memory + ["branches"] * branches + ["short"] * short
    row |= {"native": f"{native:.2f}", "error": percent(error, 1), "ratio": f"{float(row['tool']) / native:.3f}", "limits": " ".join(limits)}


def counted(words, path, start, folder):
    """How often a run executes the instruction at an address (p_vaddr) of a file; 0: it took too long."""
    at = mapped_at(words, path, start, folder)
    if at is None:
        return 0
    result = f"{folder}/stat"
    try:
        subprocess.run(["perf", "stat", "-x,", "-o", result, "-e", f"mem:{at:#x}:x:u", "setarch", "-R", *words], timeout=60,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT, check=False)
    except subprocess.TimeoutExpired:
        return 0
    with open(result) as file:
        fields = [line.split(",") for line in file if ",mem:" in line or ",,mem" in line]
    return int(fields[0][0]) if fields and fields[0][0].isdigit() else 0


def mapped_at(words, path, start, folder):
    """Where an address of a file is in the process."""
    from real_loops import MAPPED, address
    data = f"{folder}/perf.data"
    subprocess.run(["perf", "record", "-q", "-F", "100", "-e", "cpu-clock", "-o", data, "setarch", "-R", *words],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT, check=False)
    text = subprocess.run(["perf", "script", "-i", data, "--show-mmap-events", "-F", "ip"], capture_output=True, text=True,
                          errors="replace").stdout
    for mapping in filter(None, map(MAPPED.search, text.splitlines())):
        first, length, offset = (int(field, 16) for field in mapping.groups()[1:4])
        low = address(path, offset)
        if os.path.realpath(mapping[5]) == os.path.realpath(path) and low <= start < low + length:
            return first + start - low
    return None


def executions(words, folder, path):
    """For each instruction of a file: executions, misses of the first-level data cache, mispredictions, by callgrind."""
    output, counts, inside, skip = f"{folder}/callgrind", {}, False, False
    subprocess.run(["valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-strings=no", "--compress-pos=no",
                    "--cache-sim=yes", "--branch-sim=yes", f"--callgrind-out-file={output}", *words],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT, check=False)
    if not os.path.exists(output):
        return counts
    with open(output, errors="replace") as file:
        for line in file:
            if line.startswith("events:"):
                events = line.split()[1:]
            elif line.startswith("ob="):
                inside = os.path.realpath(line[3:].strip()) == os.path.realpath(path)
            elif line.startswith("calls="):
                skip = True
            elif line.startswith("0x"):
                if inside and not skip:
                    fields = line.split()
                    of = dict(zip(events, map(int, fields[2:])))
                    now = counts.setdefault(int(fields[0], 16), [0, 0, 0])
                    now[0] += of.get("Ir", 0)
                    now[1] += of.get("D1mr", 0) + of.get("D1mw", 0)
                    now[2] += of.get("Bcm", 0) + of.get("Bim", 0)
                skip = False
    os.remove(output)
    return counts
