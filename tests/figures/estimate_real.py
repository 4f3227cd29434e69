#!/usr/bin/env python3
"""Estimated top-down of real programs: what is covered, what stays unexplained, and what the further runs cost.

  cargo build --release && python3 tests/figures/estimate_real.py

Debian: apt-get install gzip xz-utils zstd sqlite3 python3 perl redis-server g++. Programs that are not installed are left out
and named. Cost: wall time of all further runs / that of the sampled one.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

from common import arguments, need, table

QUERY = ("with recursive n(i) as (select 1 union all select i+1 from n where i<12000000) "
         "select sum(i%7), count(*), max(i*31 % 1009) from n where i%3=0")
PYTHON = "d = dict()\nfor i in range(10000000): k = str(i % 5003); d[k] = d.get(k, 0) + (i & 7)\nprint(len(d))"
PERL = "for $i (1..10000000) { $n[$i % 5003] += length(\"x$i\"); } print scalar @n"
# Written before the first run; {text} is text that the script makes, {folder} has the programs it compiles.
PROGRAMS = {
    "gzip": "gzip -6 -c {text}", "xz": "xz -2 -T1 -c {text}", "zstd": "zstd -9 -q --single-thread -c {text}",
    "sort": "sort --parallel=1 {text}", "sqlite3": "sqlite3 :memory: " + shlex.quote(QUERY),
    "python3": "python3 -c " + shlex.quote(PYTHON), "perl": "perl -e " + shlex.quote(PERL),
    "words.cpp": "{folder}/words 60", "sieve.rs": "{folder}/sieve",
    "redis": "sh -c " + shlex.quote("redis-server --port 0 --unixsocket {folder}/s --save '' >/dev/null & "
                                    "until redis-cli -s {folder}/s ping >/dev/null 2>&1; do :; done; "
                                    "redis-benchmark -s {folder}/s -n 800000 -P 16 -q -t lpush,lrange_100,zadd; "
                                    "redis-cli -s {folder}/s shutdown nosave"),
}
PARTS = ("retiring", "bad_speculation", "fetch_latency", "fetch_bandwidth", "core_bound", "memory_bound", "unexplained")


def text(path, words):
    """Lines of words of a fixed pseudo-random choice."""
    state = 1
    with open(path, "w") as out:
        for _ in range(words // 8):
            line = []
            for _ in range(8):
                state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
                line.append(f"w{(state >> 40) % (7 + (state >> 33) % 20000)}")
            out.write(" ".join(line) + "\n")


def estimate(tool, command, folder):
    """The document's estimate, or why there is none."""
    out = f"{folder}/report.json"
    if os.path.exists(out):
        os.remove(out)
    done = subprocess.run([tool, "report", "--estimate", "--format", "json", "--output", out, "--", *command],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          errors="replace")
    if done.returncode != 0 or not os.path.exists(out):
        return None, (done.stderr.strip().splitlines() or ["no document"])[0]
    with open(out) as file:
        return json.load(file)["estimate"], None


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, blocks=False)
    parser.add_argument("--only", default="", help="programs, separated by commas")
    parser.add_argument("--words", type=int, default=6_000_000, help="words of the text (default 6 million)")
    args = parser.parse_args()
    need(args.tool)
    body, covered, few, decided, level1, cheap = [], 0, 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        text(f"{folder}/text", args.words)
        subprocess.run(["g++", "-O2", "-g", "-o", f"{folder}/words", "tests/figures/programs/words.cpp"], check=True)
        subprocess.run(["rustc", "-O", "-g", "-o", f"{folder}/sieve", "tests/figures/programs/sieve.rs"], check=True)
        for name, line in PROGRAMS.items():
            if args.only and name not in args.only.split(","):
                continue
            command = shlex.split(line.replace("{text}", f"{folder}/text").replace("{folder}", folder))
            if not shutil.which("redis-server" if name == "redis" else command[0]):
                body.append([name, "not installed"])
                continue
            document, error = estimate(args.tool, command, folder)
            if document is None:
                body.append([name, f"failed: {error}"])
                continue
            parts = {part: 100 * document["program"]["parts"][part]["value"] for part in PARTS}
            seconds = [run["seconds"] for run in document["runs"]]
            cost = sum(seconds[1:]) / seconds[0]
            covered += document["covered"] >= 0.95
            few += parts["unexplained"] <= 10
            named = document["program"]["bottleneck"]
            decided += named != "undecided"
            level1 += named in ("backend_bound", "frontend_bound")
            cheap += cost <= 8
            body.append([name, f"{seconds[0]:.2f}", f"{100 * document['covered']:.0f}", document["program"]["bottleneck"],
                         *(f"{parts[part]:.0f}" for part in PARTS), f"{cost:.1f}"])
            print(*body[-1], file=sys.stderr, flush=True)
    table(["program", "s", "covered %", "bottleneck", *PARTS, "cost"], body)
    print(f"\nof {len(body)}: covered 95 % or more {covered}, at most 10 % unexplained {few}, decided {decided} (at level 1 only {level1}), cost at most 8 {cheap}")


if __name__ == "__main__":
    main()
