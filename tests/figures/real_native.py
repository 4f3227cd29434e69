"""Samples and processor time of the hot loops of a program, and what `tdtool block` says of them."""

import collections
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import time

from common import percent
from real_programs import ADDITIONS, CLOCK

ENVIRONMENT = dict(os.environ, LC_ALL="C")
MAPPED = re.compile(r"PERF_RECORD_MMAP2 (\d+)/\d+: \[(0x\w+)\((0x\w+)\) @ (0x\w+|0) .*: r-xp (/.*)")
SAMPLE = re.compile(r"^\s*(\d+)\s+([0-9a-f]+)\s*$")
TOGETHER = 0.3  # seconds: shorter runs are sampled several together
LEAST, MOST = 5, 16  # rounds
HOT = 0.08  # of the samples
SEGMENTS = {}


def timed(words, folder, args):
    """The rows of the hot loops of a command."""
    clock = built_clock(folder)
    begin = time.monotonic()
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT, check=False)
    together = max(1, round(TOGETHER / max(time.monotonic() - begin, 1e-3)))
    end, rounds = time.monotonic() + args.seconds, []
    while len(rounds) < LEAST or (time.monotonic() < end and len(rounds) < MOST):
        rounds.append(sampled(words, together, clock, folder))
    samples = sum(rounds, collections.Counter())
    clocks = [taken(one, clock) for one in rounds]
    for path in [one for one in samples if one[0] == clock]:
        del samples[path]
    for path, start, ranges in hottest(samples, args):
        inside = [within(one, path, ranges) for one in rounds]
        cycles, error = estimated(inside, clocks)
        row = {"samples": sum(inside), "share": percent(sum(inside) / sum(samples.values()), 0), "cycles": f"{cycles / together:.0f}",
               "error": percent(error, 1), "target": f"{path}:@{start:#x}"}
        yield row | measured(path, start, words, args)


def built_clock(folder):
    """The program that takes a known number of cycles."""
    clock = os.path.realpath(f"{folder}/clock")
    if not os.path.exists(clock):
        with open(f"{clock}.c", "w") as file:
            file.write(CLOCK)
        subprocess.run(["gcc", "-O1", "-o", clock, f"{clock}.c"], check=True)
    return clock


def taken(samples, path):
    """The samples in a file."""
    return sum(count for (file, _), count in samples.items() if file == path)


def estimated(inside, clocks):
    """Cycles in a loop and their relative error, from its samples and the clock's in each round."""
    cycles = [2 * ADDITIONS * samples / clock for samples, clock in zip(inside, clocks)]
    low, middle, high = statistics.quantiles(cycles, method="inclusive")
    # Of a normal distribution: the deviation is 0.74 of the distance of the quartiles, the median's 1.25 of the mean's.
    scatter = 1.25 * 0.74 * (high - low) / middle / len(cycles) ** 0.5 if middle else 1
    return middle, 2 * max(scatter, (1 / max(1, sum(inside)) + 1 / sum(clocks)) ** 0.5)


def sampled(words, together, clock, folder):
    """Samples of runs of a command between two of the clock, by file and address in it; the kernel's without a file."""
    data, found, mapped = f"{folder}/perf.data", collections.Counter(), collections.defaultdict(list)
    script = f"{clock}; i=0; while [ $i -lt {together} ]; do {shlex.join(words)}; i=$((i+1)); done; {clock}"
    with open(f"{folder}/out", "w") as out:
        subprocess.run(["perf", "record", "-q", "-F", "3989", "-e", "cpu-clock", "-o", data, "setarch", "-R", "sh", "-c", script],
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
    return [loop for loop in wanted if loops[loop] > HOT * sum(samples.values())][:args.loops]


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
