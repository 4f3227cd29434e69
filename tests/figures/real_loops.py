#!/usr/bin/env python3
"""Hot loops of real programs: their share of the samples, and cycles of an iteration by samples and by `tdtool block`.

Each program runs on generated text under `tdtool report`. A loop is the smallest backward jump around one of the
eight hottest blocks; of those with at most 12 blocks the one with
most samples is taken.
Cycles by samples: the samples of the loop's blocks, as time, by the core's clock (dependent additions), divided by the
iterations, which callgrind counts exactly (valgrind; --no-counts leaves them out). Where memory matters this is above what
the block costs in isolation, and where a program chooses code by processor callgrind may run other code: no count then.

A loop of one block is measured as FILE:START..END. `--target` gives another form for all of them, such as
'{file}:{start}..{end} -- {command}', with the program's own values.

    tests/figures/real_loops.py [--only REGEX] [--no-counts] [--size 1] [-o rows.csv]
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
from compiled import INSTRUCTION, plain

COLUMNS = ["program", "command", "samples", "share", "target", "blocks", "iterations", "native", "tool", "status", "verdict"]
PYTHON = "s=0\nfor i in range(3000000): s+=i&7"
QUERY = ("with recursive n(i) as (select 1 union all select i+1 from n where i<1000000) "
         "select sum(i%7), count(*) from n where i%3=0")
# Debian: apt-get install bzip2 xz-utils sqlite3 zstd lz4 perl mawk jq openssl valgrind
PROGRAMS = [
    ("gzip", "gzip -9 -c {text}"), ("gunzip", "gzip -d -c {text}.gz"), ("xz", "xz -3 -T1 -c {text}"),
    ("bzip2", "bzip2 -c {text}"), ("zstd", "zstd -12 -q --single-thread -c {text}"), ("lz4", "lz4 -9 -q -c {text}"),
    ("sort", "sort --parallel=1 {text}"), ("sort -n", "sort -n --parallel=1 {text}"), ("md5sum", "md5sum {big}"),
    ("cksum", "cksum {big}"), ("base64", "base64 {big}"), ("wc", "wc -L {big}"), ("grep", "grep -c -E 'qu.*ick.*z$' {big}"),
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
    parser.add_argument("--target", default="{file}:{start}..{end}", metavar="TEXT", help="how a loop is named")
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
                row = one(name, command.format(**inputs), folder, clock, args)
                found += [row] if row else []
                if row and args.output:
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
    return {"text": text, "big": big}


def nanosecond(folder):
    """Core cycles in a nanosecond."""
    with open(f"{folder}/clock.c", "w") as file:
        file.write(CLOCK)
    subprocess.run(["gcc", "-O1", "-o", f"{folder}/clock", f"{folder}/clock.c"], check=True)
    return float(subprocess.run([f"{folder}/clock"], capture_output=True, text=True, check=True).stdout)


def one(name, command, folder, clock, args):
    """The row of one program."""
    document = f"{folder}/report.json"
    environment = dict(os.environ, LC_ALL="C")
    with open(f"{folder}/out", "w") as out:
        subprocess.run([args.tool, "report", "--blocks", "60", "--format", "json", "-o", document, "--",
                        *shlex.split(command)], stdout=out, stderr=subprocess.DEVNULL, env=environment)
    with open(document) as file:
        report = json.load(file)
    blocks = [block for block in report.get("blocks") or [] if os.path.exists(block["path"] or "")]
    total = (report.get("sampled") or {}).get("samples")
    loops = {found for block in blocks[:8] if (found := loop_around(block))}
    if not loops:
        print(f"note: {name}: no hot loop", file=sys.stderr)
        return None
    shares = {loop: sum(block["samples"] for block in blocks if block["path"] == loop[0] and
                        loop[1] <= int(block["start"], 16) < loop[2]) / total for loop in loops}
    # An interpreter's or a block sorter's whole function is a loop, too: small ones first.
    path, start, end, parts = loop = max(loops, key=lambda one: (one[3] <= 12 and shares[one] > 0.05, shares[one]))
    share = shares[loop]
    row = {"program": name, "command": command.replace(folder + "/", ""), "samples": total, "share": percent(share, 0),
           "blocks": parts, "iterations": "", "native": ""}
    if not args.no_counts:
        count = executions(command, folder, path, environment).get(start)
        if count:
            row["iterations"] = count
            row["native"] = f"{share * report['software']['task_clock_ms'] * 1e6 * clock / count:.2f}"
    row["target"] = f"{path}:{start:#x}..{end:#x}"
    what = args.target.format(file=path, start=hex(start), end=hex(end), command=command)
    return row | measured(what, args)


def loop_around(block):
    """The smallest loop around a hot block: file, start, end, number of basic blocks; None: none within 4 KiB."""
    path, hot = block["path"], int(block["start"], 16)
    lines = code(path, hot, hot + 4096)
    back = [(at, target) for at, (bytes_, text) in lines.items() if (target := target_of(text)) and target <= hot <= at
            and hot - target < 4096]
    if not back:
        return None
    at, start = min(back, key=lambda one: one[0] - one[1])
    end = at + len(lines[at][0]) // 2
    body = code(path, start, end)
    targets = {target for _, text in body.values() if (target := target_of(text)) and start < target < end}
    after = {where + len(bytes_) // 2 for where, (bytes_, text) in body.items() if target_of(text) or text.startswith("call")}
    return path, start, end, 1 + len((targets | after) - {start, end})


def code(path, start, end):
    """Address: (bytes, text) of a range."""
    text = subprocess.run(["objdump", "-d", "-w", f"--start-address={start:#x}", f"--stop-address={end:#x}", path],
                          capture_output=True, text=True).stdout
    found = (INSTRUCTION.match(line) for line in text.splitlines())
    return {int(m[1], 16): (m[2].replace(" ", ""), plain(m[3])) for m in found if m}


def target_of(text):
    """Where a direct jump leads."""
    found = re.match(r"^(?:bnd )?j[a-z]+\s+([0-9a-f]+)$", text)
    return int(found[1], 16) if found else None


def executions(command, folder, path, environment):
    """How often each instruction of a file is executed, by callgrind."""
    output, counts, inside, skip = f"{folder}/callgrind", collections.Counter(), False, False
    subprocess.run(["valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-strings=no", "--compress-pos=no",
                    f"--callgrind-out-file={output}", *shlex.split(command)], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env=environment)
    if not os.path.exists(output):
        return counts
    with open(output, errors="replace") as file:
        for line in file:
            if line.startswith("ob="):
                inside = os.path.realpath(line[3:].strip()) == os.path.realpath(path)
            elif line.startswith("calls="):
                skip = True
            elif line.startswith("0x"):
                if inside and not skip:
                    fields = line.split()
                    counts[int(fields[0], 16)] += int(fields[2])
                skip = False
    os.remove(output)
    return counts


def measured(what, args):
    """What `tdtool block` says of the loop."""
    done = subprocess.run([args.tool, "block", *what.split(" ", 1)[:1], "--format", "json", *args.options.split(),
                           *shlex.split(what)[1:]], capture_output=True, text=True)
    document = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    cycles = (document.get("throughput") or {}).get("cycles")
    return {"tool": f"{cycles:.2f}" if cycles else "", "verdict": (document.get("hierarchy") or {}).get("bound") or "",
            "status": document.get("status") or (done.stderr.strip() or "no report").splitlines()[0][:60]}


if __name__ == "__main__":
    main()
