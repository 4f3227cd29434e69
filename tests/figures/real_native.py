"""Samples and processor time of the hot loops of a program, and what `tdtool block` says of them."""

import collections
import json
import os
import re
import shlex
import shutil
import subprocess
import time

from common import percent
from real_programs import stdin
from real_rounds import CLOCK, LOST, WIDE, built, kept, read, taken, written

ENVIRONMENT = dict(os.environ, LC_ALL="C")
MAPPED = re.compile(r"PERF_RECORD_MMAP2 (\d+)/\d+: \[(0x\w+)\((0x\w+)\) @ (0x\w+|0) .*: r-xp (/.*)")
SAMPLE = re.compile(r"^\s*(\d+)\s+([0-9a-f]+)\s*$")
# Short rounds: a tenant of the sibling thread leaves some tenths of a second.
TOGETHER = 0.1  # seconds: shorter runs are sampled several together
FREQUENCY = "15989"
LEAST, MOST = 5, 16  # rounds: kept ones, all
HOT = 0.08  # of the samples
SEGMENTS, FUNCTIONS = {}, {}


def first(command, folder, args):
    """The rows of the hot loops of a command, after one round."""
    begin = time.monotonic()
    with stdin(command) as source:
        subprocess.run(command.words, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT, check=False)
    together = max(1, round(TOGETHER / max(time.monotonic() - begin, 1e-3)))
    found, *around = sampled(command, together, calmest(folder)[1], folder)
    for path, start, ranges in hottest(found, args):
        samples = within(found, path, ranges)
        row = {"share": percent(samples / sum(found.values()), 0), "runs": together, "target": f"{path}:@{start:#x}",
               "rounds": written(taken(samples, together, *around))}
        yield row | measured(path, start, command, args)


def further(rows, command, folder, args):
    """More rounds for the rows of a command, for some seconds or until enough are kept; none begins with a low rate."""
    loops = [(row, *loop_around(*place(row), args)) for row in rows]
    end = time.monotonic() + args.seconds
    while time.monotonic() < end and any(unfinished(row, args.best) for row in rows):
        rate, cpu = calmest(folder)
        if rate < (1 - LOST) * args.best:
            continue
        found, *around = sampled(command, int(rows[0]["runs"]), cpu, folder)
        for row, path, _, ranges in loops:
            row["rounds"] += written(taken(within(found, path, ranges), int(row["runs"]), *around))


def unfinished(row, best):
    """Whether a row needs more rounds."""
    rounds = read(row["rounds"])
    return bool(row["tool"]) and len(rounds) < MOST and len(kept(rounds, best)) < LEAST


def place(row):
    """File and address of a row's loop."""
    path, start = row["target"].rsplit(":@", 1)
    return path, int(start, 16)


def sampled(command, together, cpu, folder):
    """A round: samples of runs of a command, by file and address in it; those of the clock; the rates before and after."""
    clock, wide, rates, data = built(folder, "clock", CLOCK), built(folder, "wide", WIDE), f"{folder}/rates", f"{folder}/perf.data"
    line = shlex.join(command.words) + (f" < {shlex.quote(command.input)}" if command.input else "")
    script = f"{clock}; {wide} {rates}; i=0; while [ $i -lt {together} ]; do {line}; i=$((i+1)); done; {wide} {rates}; {clock}"
    with open(f"{folder}/out", "w") as out:
        subprocess.run(["perf", "record", "-q", "-F", FREQUENCY, "-e", "cpu-clock", "-o", data,
                        "taskset", "-c", cpu, "setarch", "-R", "sh", "-c", script], stdin=subprocess.DEVNULL,
                       stdout=out, stderr=subprocess.DEVNULL, env=ENVIRONMENT, check=False)
    with open(rates) as file:
        before, after = map(float, file)
    os.remove(rates)
    found = located(data)
    of_clock = sum(count for (path, _), count in found.items() if path == clock)
    return collections.Counter({at: count for at, count in found.items() if at[0] not in (clock, wide)}), of_clock, before, after


def calmest(folder):
    """The best rate of a logical processor now, and which that is. A round stays on it: another one has another sibling."""
    wide = built(folder, "wide", WIDE)

    def rate(cpu):
        return float(subprocess.run(["taskset", "-c", str(cpu), wide], capture_output=True, text=True, check=True).stdout)

    return max((rate(cpu), str(cpu)) for cpu in os.sched_getaffinity(0))


def located(data):
    """The samples of a recording by file and address in it; the kernel's without a file."""
    found, mapped = collections.Counter(), collections.defaultdict(list)
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
    for function, ranges in functions(path, at, args):
        number = next((block["innermost_loop"] for block, (low, high) in zip(function["blocks"], ranges) if low <= at < high), None)
        if number is not None:
            loop = function["loops"][number]
            return path, int(loop["start"], 16), tuple(ranges[block] for block in loop["blocks"])
    return None


def functions(path, at, args):
    """The listed function with an address, as a list of one, with the ranges of its blocks; empty: none."""
    known = FUNCTIONS.setdefault(path, [])
    if found := [one for one in known if covers(one[1], at)]:
        return found[:1]
    done = subprocess.run([args.tool, "block", "--list", f"{path}:{at:#x}", "--format", "json"], capture_output=True, text=True)
    if done.stdout.startswith("{"):
        function = json.loads(done.stdout)
        known.append((function, [(int(block["start"], 16), int(block["end"], 16)) for block in function["blocks"]]))
        return known[-1:]
    return []


def measured(path, start, command, args):
    """What `tdtool block` says of the loop with the program's values."""
    words = command.words
    is_own = os.path.realpath(shutil.which(words[0]) or "") == os.path.realpath(path)
    with stdin(command) as source:
        done = subprocess.run([args.tool, "block", f"{path}:@{start:#x}", "--format", "json", *args.options.split(), "--",
                               *(words[1:] if is_own else words)], stdin=source, capture_output=True, text=True, errors="replace",
                              env=ENVIRONMENT)
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
