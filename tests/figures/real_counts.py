"""Iterations of the loops that `real_native.py` times, by `tdtool count`, and what callgrind simulates of them."""

import json
import os
import re
import subprocess

from common import percent
from real_native import ENVIRONMENT, covers, loop_around, place
from real_programs import PROGRAMS, parsed, prepare, stdin
from real_rounds import FEWEST, estimated, kept, read

MISS, MISPREDICTION, EXECUTION = 14, 15, 30  # cycles; the first two: Software Optimization Guides of Zen 4 and 5
MOST_PAGES, MOST_PATHS = 10, 2
MOST_ERROR = 0.1
SECONDS = 300


def fill(rows, folder, small, args):
    """Enters iterations, misses and mispredictions into the rows that have none. `small`: a smaller input."""
    commands, inputs, simulated = dict(PROGRAMS), prepare(folder, 1, 26), {}
    for row in rows:
        if row["tool"] and not row["iterations"] and not row["uncounted"] and re.search(args.only, row["program"]):
            path, start = place(row)
            full, few = (parsed(commands[row["program"]], names) for names in (inputs, small))
            row["iterations"], row["uncounted"] = counted(full, path, start, folder, args)
            if row["iterations"]:
                if (key := (row["program"], path)) not in simulated:
                    simulated[key] = executions(few, folder, path)
                own = row["iterations"] if few == full else counted(few, path, start, folder, args)[0]
                row |= of_loop(simulated[key], own, path, start, args)
            print(row["program"], row["target"], row["iterations"], row["uncounted"], flush=True)


def of_loop(counts, few, path, start, args):
    """Misses and mispredictions of an iteration; nothing where callgrind does not execute the loop as often as the processor."""
    own = counts.get(start, [0])[0]
    if not few or abs(own / few - 1) >= 0.01:
        return {}
    ranges = loop_around(path, start, args)[2]
    names = ("misses", "mispredicted")
    return {name: f"{sum(events[i] for at, events in counts.items() if covers(ranges, at)) / own:.3f}" for i, name in enumerate(names, 1)}


def judge(row, best):
    """Native cycles, and what the replay leaves out, from the other columns. `best`: the best rate of the run."""
    rounds = kept(read(row["rounds"]), best)
    row |= {"kept": f"{len(rounds)} of {len(read(row['rounds']))}", "native": "", "error": "", "ratio": "", "limits": "", "judged": ""}
    if not row["iterations"]:
        return
    if len(rounds) < FEWEST:
        row["native"] = "contended"
        return
    cycles, error = estimated(rounds)
    native = cycles / int(row["iterations"])
    if row["misses"]:
        memory, branches = float(row["misses"]) * MISS > native / 10, float(row["mispredicted"]) * MISPREDICTION > native / 10
    else:
        memory, branches = int(row["pages"]) > MOST_PAGES, int(row["paths"] or 0) > MOST_PATHS
    short = EXECUTION > native * int(row["trips"]) / 10
    limits = ["memory"] * memory + ["branches"] * branches + ["short"] * short
    row |= {"native": f"{native:.2f}", "error": percent(error, 1), "ratio": f"{float(row['tool']) / native:.3f}",
            "limits": " ".join(limits), "judged": "" if limits or error > MOST_ERROR else "yes"}


def counted(command, path, start, folder, args):
    """How often a run enters the block at an address (p_vaddr) of a file; 0 and why not."""
    result = f"{folder}/count"
    words = [args.tool, "count", "--module", path, "--functions", hex(start), "--format", "json", "-o", result, "--", *command.words]
    try:
        with stdin(command) as source:
            done = subprocess.run(words, timeout=SECONDS, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                  errors="replace", env=ENVIRONMENT, check=False)
    except subprocess.TimeoutExpired:
        return 0, f"it took {SECONDS} s"
    if not os.path.exists(result):
        return 0, (done.stderr.strip() or "no document").splitlines()[0]
    with open(result) as file:
        document = json.load(file)
    os.remove(result)
    counts = [block["count"] for block in document["blocks"] if int(block["start"], 16) == start]
    reasons = [one["reason"] for one in document["refused"] if int(one["start"], 16) == start] + document["notes"]
    return (counts[0], "") if counts else (0, next(iter(reasons), "no such block"))


def executions(command, folder, path):
    """For each instruction of a file: executions, misses of the first-level data cache, mispredictions, by callgrind."""
    output, counts, inside, skip = f"{folder}/callgrind", {}, False, False
    with stdin(command) as source:
        subprocess.run(["valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-strings=no", "--compress-pos=no",
                        "--cache-sim=yes", "--branch-sim=yes", f"--callgrind-out-file={output}", *command.words],
                       stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT, check=False)
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
