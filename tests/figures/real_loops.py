#!/usr/bin/env python3
"""Hot loops of real programs: cycles of an iteration by samples and counts, and by `tdtool block`.

A program runs on generated text, first with nothing attached, then sampled (`perf record -e cpu-clock`). Its loops are
the innermost ones around its hottest addresses (`tdtool block --list`): the hottest --loops of them, whatever they are.
Native cycles of an iteration: the loop's share of the samples × processor time of the runs without samples (the lower
quartile) × the core's clock (dependent additions, around each run) ÷ iterations. `error`: two standard deviations of the
samples, and the distance from the shortest to the median run. Iterations (--count): entries of the loop's first instruction, counted by a
hardware breakpoint (`perf stat -e mem:ADDRESS:x`), of the same run or, where that takes too long, of a smaller input
(`scaled`, by bytes). Measured with the program's own values: `tdtool block FILE:@START -- ARGS`.

What a loop replayed from its entry leaves out, by rules that do not look at its result:
  memory    misses of the first-level cache would cost a tenth of the time, at 14 cycles each
  branches  mispredictions would, at 15
  short     the start and end of an execution would, at 30: executions overlap in the program
Misses and mispredictions are callgrind's (valgrind), on the smaller input, where it executes the loop as often as the
processor does. Elsewhere it runs other code (SHA extensions, AVX-512): then `memory` is more than 10 pages accessed by an
execution, `branches` more than two paths through the loop.

    tests/figures/real_loops.py [--only REGEX] -o rows.csv     # samples and tdtool block; nothing else should run
    tests/figures/real_loops.py --count rows.csv               # then counts, and prints the table
"""

import argparse
import collections
import contextlib
import csv
import json
import os
import re
import resource
import shlex
import shutil
import statistics
import subprocess
import tempfile
import time

from common import TOOL, append, need, percent, table
from real_programs import CLOCK, PROGRAMS, prepare
from real_counts import fill

COLUMNS = ["program", "command", "target", "samples", "share", "cycles", "spread", "blocks", "trips", "executions", "pages",
           "paths", "tool", "status", "iterations", "counted", "native", "error", "ratio", "misses", "mispredicted", "limits"]
SHOWN = ["program", "target", "samples", "trips", "native", "error", "tool", "ratio", "counted", "limits", "status"]
ENVIRONMENT = dict(os.environ, LC_ALL="C")
MAPPED = re.compile(r"PERF_RECORD_MMAP2 (\d+)/\d+: \[(0x\w+)\((0x\w+)\) @ (0x\w+|0) .*: r-xp (/.*)")
SAMPLE = re.compile(r"^\s*(\d+)\s+([0-9a-f]+)\s*$")
TOGETHER = 0.2  # seconds: shorter runs are timed and sampled several together
RUNS = 10


def main():
    """Samples and measures, or counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tool", default=TOOL, help=f"the binary (default {TOOL})")
    parser.add_argument("--options", default="", metavar="TEXT", help="more options for `tdtool block`")
    parser.add_argument("--seconds", type=float, default=6, help="most seconds of runs, and of sampled runs, of a program (default 6)")
    parser.add_argument("--samples", type=int, default=3000, metavar="N", help="samples that suffice (default 3000)")
    parser.add_argument("--loops", type=int, default=2, metavar="N", help="most loops of a program (default 2)")
    parser.add_argument("--only", default="", metavar="REGEX", help="only these programs")
    parser.add_argument("--count", metavar="FILE", help="count iterations for the rows of this CSV, and print its table")
    parser.add_argument("--folder", help="keep the inputs in this folder")
    parser.add_argument("-o", metavar="FILE", dest="output", help="append the rows to this CSV")
    args = parser.parse_args()
    need(args.tool)
    with contextlib.ExitStack() as stack:
        folder = args.folder or stack.enter_context(tempfile.TemporaryDirectory())
        inputs = prepare(folder, 1, 26)
        if args.count:
            small = prepare(folder, 1 / 8, 3)
            with open(args.count) as file:
                found = list(csv.DictReader(file))
            commands = {name: (command.format(**inputs), command.format(**small)) for name, command in PROGRAMS}
            fill(found, commands, folder, args)
            with open(args.count, "w") as file:
                writer = csv.DictWriter(file, COLUMNS)
                writer.writeheader()
                writer.writerows(found)
        else:
            found = sampled_and_measured(inputs, folder, args)
    table(SHOWN, [[row.get(key, "") for key in SHOWN] for row in found])


def sampled_and_measured(inputs, folder, args):
    """The rows of all programs."""
    found = []
    for name, command in PROGRAMS:
        if re.search(args.only, name):
            for row in rows(name, shlex.split(command.format(**inputs)), folder, args):
                row["command"] = row["command"].replace(folder + "/", "")
                found.append(row)
                if args.output:
                    append(args.output, row, COLUMNS)
    return found


def nanosecond(folder):
    """Core cycles in a nanosecond."""
    if not os.path.exists(f"{folder}/clock"):
        with open(f"{folder}/clock.c", "w") as file:
            file.write(CLOCK)
        subprocess.run(["gcc", "-O1", "-o", f"{folder}/clock", f"{folder}/clock.c"], check=True)
    return float(subprocess.run([f"{folder}/clock"], capture_output=True, text=True, check=True).stdout)


def rows(name, words, folder, args):
    """The rows of one program."""
    nanosecond(folder)
    cycles, samples = [], collections.Counter()
    together = max(1, int(TOGETHER / max(processor_time(words, folder), 1e-3)))
    script = f"i=0; while [ $i -lt {together} ]; do {shlex.join(words)}; i=$((i+1)); done" if together > 1 else ""
    several = ["sh", "-c", script] if script else words
    end = time.time() + args.seconds
    while len(cycles) < 4 or (time.time() < end and len(cycles) < RUNS):
        before, seconds = nanosecond(folder), processor_time(several, folder)
        cycles.append(seconds * (before + nanosecond(folder)) / 2 * 1e9 / together)
    end = time.time() + args.seconds
    while not samples or (time.time() < end and sum(samples.values()) < args.samples):
        samples += sampled(several, folder)
    total = sum(samples.values())
    if not total:
        return
    # Other work on the host only makes runs longer.
    cycles.sort()
    native = cycles[len(cycles) // 4]
    spread = (statistics.median(cycles) - cycles[0]) / native / 2
    for path, start, ranges in hottest(samples, args):
        inside = within(samples, path, ranges)
        row = {"program": name, "command": shlex.join(words), "samples": inside, "share": percent(inside / total, 0),
               "cycles": f"{inside / total * native:.0f}", "spread": f"{spread:.4f}", "blocks": len(ranges), "target": f"{path}:@{start:#x}"}
        row |= measured(path, start, words, args)
        yield {key: row.get(key, "") for key in COLUMNS}


def processor_time(words, folder):
    """User and system time of a run, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(f"{folder}/out", "w") as out:
        subprocess.run(["setarch", "-R", *words], stdout=out, stderr=subprocess.DEVNULL, env=ENVIRONMENT, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def sampled(words, folder):
    """Samples of a run, by file and address in it; the kernel's without a file."""
    data, found, mapped = f"{folder}/perf.data", collections.Counter(), collections.defaultdict(list)
    with open(f"{folder}/out", "w") as out:
        subprocess.run(["perf", "record", "-q", "-F", "3989", "-e", "cpu-clock", "-o", data, "setarch", "-R", *words],
                       stdout=out, stderr=subprocess.DEVNULL, env=ENVIRONMENT, check=False)
    text = subprocess.run(["perf", "script", "-i", data, "--show-mmap-events", "-F", "pid,ip"], capture_output=True, text=True,
                          errors="replace").stdout
    for line in text.splitlines():
        if sample := SAMPLE.match(line):
            at = int(sample[2], 16)
            inside = (one for one in reversed(mapped[sample[1]]) if one[0] <= at < one[1])
            start, _, offset, path = next(inside, (at, 0, 0, None))
            found[path, path and address(path, at - start + offset)] += 1
        elif mapping := MAPPED.search(line):
            start, length, offset = (int(field, 16) for field in mapping.groups()[1:4])
            mapped[mapping[1]].append((start, start + length, offset, mapping[5]))
    return found


SEGMENTS = {}


def address(path, offset):
    """The address (p_vaddr) of an offset in a file."""
    if path not in SEGMENTS:
        text = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True).stdout
        lines = [line.split() for line in text.splitlines() if line.strip().startswith("LOAD")]
        SEGMENTS[path] = [tuple(int(word, 16) for word in (line[1], line[2], line[4])) for line in lines]
    return next((offset - own + at for own, at, size in SEGMENTS[path] if own <= offset < own + size), offset)


def hottest(samples, args):
    """The hottest loops: file, start, ranges of addresses."""
    loops = {}
    for (path, at), _ in samples.most_common(60):
        if path and os.path.exists(path) and not any(path == one[0] and covers(one[2], at) for one in loops):
            loop = loop_around(path, at, args)
            if loop:
                loops[loop] = within(samples, path, loop[2])
    wanted = sorted(loops, key=lambda one: -loops[one])
    return [loop for loop in wanted if loops[loop] > 0.08 * sum(samples.values())][:args.loops]


def covers(ranges, at):
    """Whether an address is in one of the ranges."""
    return any(low <= at < high for low, high in ranges)


def within(samples, path, ranges):
    """The samples in a loop."""
    return sum(count for (file, at), count in samples.items() if file == path and covers(ranges, at))


def loop_around(path, at, args):
    """The innermost loop around an address; None: there is none."""
    done = subprocess.run([args.tool, "block", "--list", f"{path}:{at:#x}", "--format", "json"], capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        return None
    function = json.loads(done.stdout)
    ranges = [(int(block["start"], 16), int(block["end"], 16)) for block in function["blocks"]]
    number = next((block["innermost_loop"] for block, (low, high) in zip(function["blocks"], ranges) if low <= at < high), None)
    if number is None:
        return None
    loop = function["loops"][number]
    return path, int(loop["start"], 16), tuple(ranges[block] for block in loop["blocks"])


def measured(path, start, words, args):
    """What `tdtool block` says of the loop with the program's values."""
    is_own = os.path.realpath(shutil.which(words[0]) or "") == os.path.realpath(path)
    done = subprocess.run([args.tool, "block", f"{path}:@{start:#x}", "--format", "json", *args.options.split(), "--",
                           *(words[1:] if is_own else words)], capture_output=True, text=True, errors="replace", env=ENVIRONMENT)
    document = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    notes = " ".join(document.get("notes") or [])
    trips = re.search(r"measured as a loop: (\d+) iterations with the program", notes)
    executions = re.search(r"(\d+) executions", notes)
    paths = re.search(r"on (\d+) distinct path", notes)
    cycles = (document.get("throughput") or {}).get("cycles") if trips else None
    why = document.get("reason") or "; ".join(re.findall(r"not with the program's values: ([^;]*)", notes)) or document.get("status")
    return {"tool": f"{cycles:.2f}" if cycles else "", "trips": trips[1] if trips else "", "executions": executions[1] if executions else "1",
            "pages": len(document.get("pages") or []), "paths": paths[1] if paths else "",
            "status": (document.get("status") if cycles else why) or (done.stderr.strip() or "no report").splitlines()[0][:60]}


if __name__ == "__main__":
    main()
