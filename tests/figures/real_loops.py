#!/usr/bin/env python3
"""Hot loops of real programs: their share of the samples, and cycles of an iteration by samples and by `tdtool block`.

Each program runs on generated text under `tdtool report`, several times. A loop is the innermost one around a hot
block (`tdtool block --list`), with all of its blocks. It is measured with the program's own values: `tdtool block
FILE:@START -- ARGS`.
Cycles by samples: the samples of the loop's blocks, as time, by the core's clock (dependent additions), divided by the
iterations (`error`: two standard deviations of the samples), which callgrind counts exactly (valgrind; --no-counts leaves them out). Where a program chooses code by
processor callgrind may run other code: no count then. callgrind also simulates caches and branch predictors, simpler ones
than the processor's. `limits` is `memory` where misses of the first-level cache would cost a tenth of the time at 14 cycles
each, `branches` where mispredictions would at 15: a loop replayed from one entry has neither.

    tests/figures/real_loops.py [--only REGEX] [--no-counts] [--size 1] [--samples 1000] [--loops 2] [-o rows.csv]
"""

import argparse
import collections
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from common import TOOL, append, need, percent, table

COLUMNS = ["program", "command", "samples", "share", "target", "blocks", "iterations", "native", "error", "tool", "ratio", "trips",
           "misses", "mispredicted", "limits", "status"]
MISS, MISPREDICTION = 14, 15  # cycles: L2 load-to-use of Zen 4 and 5, and a redirect (Software Optimization Guides)
PYTHON = "s=0\nfor i in range(3000000): s+=i&7"
CHECKSUM = "import zlib\nd = bytes(range(256)) * 64\nfor i in range(8000): zlib.NAME(d)"
QUERY = ("with recursive n(i) as (select 1 union all select i+1 from n where i<1000000) "
         "select sum(i%7), count(*) from n where i%3=0")
# Debian: apt-get install bzip2 xz-utils sqlite3 zstd lz4 perl mawk jq openssl valgrind
PROGRAMS = [
    ("gzip", "gzip -9 -c {text}"), ("gunzip", "gzip -d -c {text}.gz"), ("xz", "xz -3 -T1 -c {text}"),
    ("bzip2", "bzip2 -c {text}"), ("zstd", "zstd -12 -q --single-thread -c {text}"), ("lz4", "lz4 -9 -q -c {text}"),
    ("sort", "sort --parallel=1 {text}"), ("sort -n", "sort -n --parallel=1 {text}"), ("md5sum", "md5sum {big}"),
    ("cksum", "cksum {big}"), ("base64", "base64 {big}"), ("wc", "wc -L {big}"), ("grep", "grep -c -E 'qu.*ick.*z$' {big}"),
    ("sha3", "openssl dgst -sha3-256 {big}"), ("sha1sum", "sha1sum {big}"), ("od", "od -An -tx4 {text}"), 
    ("uniq", "uniq -c {big}"), ("cut", "cut -d, -f1 {big}"), ("sum", "sum {big}"), ("cmp", "cmp {big} {big2}"), ("sum -s", "sum -s {big}"),
    ("base32", "base32 {big}"), ("b2sum", "b2sum {big}"), ("sha512", "openssl dgst -sha512 {big}"),
    ("chacha20", "openssl enc -chacha20 -K 00 -iv 00 -in {big}"), ("aes", "openssl enc -aes-128-ctr -K 00 -iv 00 -in {big}"),
    ("adler32", "python3 -c " + shlex.quote(CHECKSUM.replace("NAME", "adler32"))),
    ("crc32", "python3 -c " + shlex.quote(CHECKSUM.replace("NAME", "crc32"))), ("factor", "factor 340282366920938463463374607431768211297"),
    ("python3", "python3 -c " + shlex.quote(PYTHON)), ("sqlite3", "sqlite3 :memory: " + shlex.quote(QUERY)),
    ("mawk", "mawk '{{s+=$1; n[$2]++}} END {{print s}}' {big}"), ("perl", "perl -ne '$n{{$_}}++ for split /[ ,]/' {text}"),
    ("jq", "jq -n '[range(400000)] | map(. * 3) | add'"),
]
CLOCK = r"""
#include <stdio.h>
#include <time.h>
int main(void) {
    double best = 0;
    for (int k = 0; k < 20; k++) {
        struct timespec a, b; unsigned long x = 0, one = 1;
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (int i = 0; i < 100000; i++) __asm__ volatile(".rept 100\nadd %1, %0\n.endr" : "+r"(x) : "r"(one));
        clock_gettime(CLOCK_MONOTONIC, &b);
        double rate = 1e7 / ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec));
        best = rate > best ? rate : best;
    }
    printf("%f\n", best);
}
"""


def main():
    """Runs all programs and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tool", default=TOOL, help=f"the binary (default {TOOL})")
    parser.add_argument("--options", default="", metavar="TEXT", help="more options for `tdtool block`")
    parser.add_argument("--runs", type=int, default=40, metavar="N", help="most runs that are sampled (default 40)")
    parser.add_argument("--samples", type=int, default=1000, metavar="N", help="samples that suffice (default 1000)")
    parser.add_argument("--loops", type=int, default=2, metavar="N", help="most loops of a program (default 2)")
    parser.add_argument("--only", default="", metavar="REGEX", help="only these programs")
    parser.add_argument("--size", type=float, default=1, help="size of the inputs, relative (default 1)")
    parser.add_argument("--no-counts", action="store_true", help="count no iterations")
    parser.add_argument("-o", metavar="FILE", dest="output", help="append the rows to this CSV")
    args = parser.parse_args()
    need(args.tool)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        inputs = prepare(folder, args.size)
        clock = nanosecond(folder)
        for name, command in PROGRAMS:
            if re.search(args.only, name):
                for row in rows(name, command.format(**inputs), folder, clock, args):
                    found.append(row)
                    if args.output:
                        append(args.output, row, COLUMNS)
    print(f"{clock:.2f} cycles a nanosecond\n")
    table(COLUMNS, [[row[key] for key in COLUMNS] for row in found])


def prepare(folder, size):
    """Text of numbers and words, plain, compressed and larger."""
    words = "the quick brown fox jumps over a lazy dog while sorting numbers and hashing keys".split()
    text, big, state = f"{folder}/text", f"{folder}/big", 1
    with open(text, "w") as file:
        for _ in range(int(400_000 * size)):
            state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            file.write(f"{state >> 40} {words[state >> 33 & 7]} {words[(state >> 50) % len(words)]},{state >> 60}\n")
    with open(big, "w") as target:
        for _ in range(18):
            with open(text) as file:
                shutil.copyfileobj(file, target)
    subprocess.run(["gzip", "-k", text], check=True)
    shutil.copy(big, big + "2")
    return {"text": text, "big": big, "big2": big + "2"}


def nanosecond(folder):
    """Core cycles in a nanosecond."""
    with open(f"{folder}/clock.c", "w") as file:
        file.write(CLOCK)
    subprocess.run(["gcc", "-O1", "-o", f"{folder}/clock", f"{folder}/clock.c"], check=True)
    return float(subprocess.run([f"{folder}/clock"], capture_output=True, text=True, check=True).stdout)


def rows(name, command, folder, clock, args):
    """The rows of one program."""
    environment = dict(os.environ, LC_ALL="C")
    samples, total, time, runs = collections.Counter(), 0, 0, 0
    while runs < args.runs and total < args.samples:
        report = reported(command, folder, args, environment)
        runs += 1
        total += (report.get("sampled") or {}).get("samples") or 0
        time += report["software"]["task_clock_ms"] * 1e6
        for block in report.get("blocks") or []:
            if os.path.exists(block["path"] or ""):
                samples[block["path"], int(block["start"], 16)] += block["samples"]
    loops = {found for (path, start), _ in samples.most_common(12) if (found := loop_around(path, start, args))}
    inside = {loop: sum(count for (path, start), count in samples.items() if path == loop[0] and start in loop[2])
              for loop in loops}
    hottest = [loop for loop in sorted(loops, key=lambda one: -inside[one]) if inside[loop] > 0.03 * total][:args.loops + 4]
    counts, taken = {}, 0
    for loop in hottest:
        path, start, blocks = loop
        row = {"program": name, "command": command.replace(folder + "/", ""), "samples": inside[loop],
               "share": percent(inside[loop] / total, 0), "blocks": len(blocks), "target": f"{path}:@{start:#x}"}
        row |= measured(path, start, command, args)
        if row["tool"] and not args.no_counts:
            if path not in counts:
                counts[path] = executions(command, folder, path, environment)
            row |= by_samples(inside[loop] / total * time * clock / runs, counts[path], start, set(blocks), path, args)
            if row.get("native"):
                row["error"] = percent(2 / inside[loop] ** 0.5, 0)
                row["ratio"] = f"{float(row['tool']) / float(row['native']):.2f}"
        yield {key: row.get(key, "") for key in COLUMNS}
        taken += bool(row["tool"])
        if taken >= args.loops:
            break


def reported(command, folder, args, environment):
    """The report of one run."""
    document = f"{folder}/report.json"
    with open(f"{folder}/out", "w") as out:
        subprocess.run([args.tool, "report", "--blocks", "80", "--format", "json", "-o", document, "--",
                        *shlex.split(command)], stdout=out, stderr=subprocess.DEVNULL, env=environment)
    with open(document) as file:
        return json.load(file)


def listed(path, start, args):
    """The blocks and loops of the function around an address."""
    done = subprocess.run([args.tool, "block", "--list", f"{path}:{start:#x}", "--format", "json"], capture_output=True, text=True)
    return json.loads(done.stdout) if done.stdout.startswith("{") else None


def loop_around(path, start, args):
    """The innermost loop around a block: file, start, starts of its blocks; None: there is none."""
    function = listed(path, start, args)
    if not function:
        return None
    starts = [int(block["start"], 16) for block in function["blocks"]]
    number = next((block["innermost_loop"] for block in function["blocks"]
                   if int(block["start"], 16) <= start < int(block["end"], 16)), None)
    if number is None:
        return None
    loop = function["loops"][number]
    return path, int(loop["start"], 16), tuple(starts[block] for block in loop["blocks"])


def by_samples(cycles, counts, start, blocks, path, args):
    """Cycles of an iteration, and what callgrind simulates of one."""
    iterations = counts.get(start, [0])[0]
    if not iterations:
        return {}
    function = listed(path, start, args)
    ranges = [(int(block["start"], 16), int(block["end"], 16)) for block in function["blocks"]
              if int(block["start"], 16) in blocks]
    own = [events for at, events in counts.items() if any(low <= at < high for low, high in ranges)]
    misses, mispredicted = (sum(events[i] for events in own) / iterations for i in (1, 2))
    native = cycles / iterations
    limits = ["memory"] * (misses * MISS > native / 10) + ["branches"] * (mispredicted * MISPREDICTION > native / 10)
    return {"iterations": iterations, "native": f"{native:.2f}", "misses": f"{misses:.3f}",
            "mispredicted": f"{mispredicted:.3f}", "limits": " ".join(limits)}


def executions(command, folder, path, environment):
    """For each instruction of a file: executions, misses of the first-level data cache, mispredictions, by callgrind."""
    output, counts, inside, skip = f"{folder}/callgrind", {}, False, False
    subprocess.run(["valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-strings=no", "--compress-pos=no",
                    "--cache-sim=yes", "--branch-sim=yes", f"--callgrind-out-file={output}", *shlex.split(command)],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
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


def measured(path, start, command, args):
    """What `tdtool block` says of the loop with the program's values."""
    words = shlex.split(command)
    is_own = os.path.realpath(shutil.which(words[0]) or "") == os.path.realpath(path)
    done = subprocess.run([args.tool, "block", f"{path}:@{start:#x}", "--format", "json", *args.options.split(), "--",
                           *(words[1:] if is_own else words)], capture_output=True, text=True, errors="replace",
                          env=dict(os.environ, LC_ALL="C"))
    document = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    notes = " ".join(document.get("notes") or [])
    trips = re.search(r"measured as a loop: (\d+) iterations with the program", notes)
    cycles = (document.get("throughput") or {}).get("cycles") if trips else None
    why = document.get("reason") or "; ".join(re.findall(r"not with the program's values: ([^;]*)", notes)) or document.get("status")
    return {"tool": f"{cycles:.2f}" if cycles else "", "trips": trips[1] if trips else "",
            "status": (document.get("status") if cycles else why) or (done.stderr.strip() or "no report").splitlines()[0][:60]}


if __name__ == "__main__":
    main()
