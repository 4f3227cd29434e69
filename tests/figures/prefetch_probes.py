#!/usr/bin/env python3
"""Prefetch advice of `tdtool prefetch -- PROGRAM`, applied by hand and timed.

For each program of prefetch/*.c, and apart those of prefetch/set_aside/*.c, to which nothing in the method was fitted: the
advised distance and loop, and the time without a prefetch, with it, and at half, twice and four times the distance. Where
nothing is advised, distances 4, 16 and 64 show whether a prefetch would have helped.

A program prints the least processor time of its repetitions. Variants take turns; of the rounds the least time of each
variant counts (best), and the median, least and largest of the ratios to "none" in the same round.

    tests/figures/prefetch_probes.py --rounds 7              # needs gcc; 10 minutes

With --apply, `tdtool prefetch --apply` alone finds, writes, measures and confirms the prefetches, in the programs without one:
its distances, and the whole program's processor time that they save.

    tests/figures/prefetch_probes.py --apply --rounds 5 spmv
"""

import argparse
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile

from common import arguments, need

SOURCES = f"{os.path.dirname(os.path.abspath(__file__))}/prefetch"


def build(source, folder, distance, outer=False):
    """A program with this distance."""
    out = f"{folder}/{os.path.basename(source)[:-2]}-{distance}{'-outer' if outer else ''}"
    more = ["-DOUTER"] if outer else []
    subprocess.run(["gcc", "-O2", "-g", f"-DDIST={distance}", *more, source, "-o", out], check=True)
    return out


def advice(tool, program):
    """The document."""
    command = [tool, "prefetch", "--format", "json", "--", program]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)


def times(programs, rounds):
    """Of each: the least seconds, and the ratios of the first to it in the same round."""
    run = lambda program: float(subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()[0])
    seen = [[run(program) for program in programs] for _ in range(rounds)]
    return [(min(one[k] for one in seen), [one[0] / one[k] for one in seen]) for k in range(len(programs))]


def show(labels, found):
    """One line per variant."""
    least = found[0][0]
    for label, (seconds, ratios) in zip(labels, found):
        middle = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"    {label:<16} best {seconds:8.5f} s  {least / seconds:5.2f}×   median {middle}", flush=True)


def explain(row):
    """A row of the advice in one line."""
    if row["refused"]:
        return row["refused"]
    number = lambda key: "-" if row.get(key) is None else f"{row[key]:.1f}"
    text = f"{row['distance']} {row.get('distance_range') or ''} {row['site']}; IC {number('ic')}, MC {number('mc')}"
    text += f", misses {number('misses')}, iteration {number('iteration')}, taken {number('taken')}"
    return f"{text}, at most {number('speedup_at_most')}×; unknown: {row['unknown']}"


def one(tool, source, folder, rounds):
    """A program."""
    plain = build(source, folder, 0)
    document = advice(tool, plain)
    rows = [row for row in document["advice"] if row["function"] == "kernel"]
    print(os.path.basename(source)[:-2], document.get("in_flight"))
    for row in rows:
        print(f"  {row['load']} {row['class']}: {explain(row)}", flush=True)
    advised = [row for row in rows if not row["refused"] and row["distance"] and row["site"]]
    if advised:
        distance, site = advised[0]["distance"], advised[0]["site"]
        distances = dict.fromkeys([distance, max(1, distance // 2), 2 * distance, 4 * distance])
        labels = ["none"] + [f"{d} {site}" for d in distances]
        programs = [plain] + [build(source, folder, d, site == "outer") for d in distances]
    else:
        labels, programs = ["none", "4", "16", "64"], [plain] + [build(source, folder, d) for d in (4, 16, 64)]
    show(labels, times(programs, rounds))


def strip(path):
    """Takes out the prefetches that a program can be built with."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"\n *if \(OUTER_DIST.*?\n        }", "", text, flags=re.DOTALL)
    text = re.sub(r"\n *(if \(\w+\) )?AHEAD\(.*\);", "", text)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def applied(tool, source, folder, rounds):
    """What the command alone makes of a program: each place of it, its distances, and what is kept."""
    name = os.path.basename(source)[:-2]
    build = f"gcc -O2 -g {os.path.relpath(source, SOURCES)} -o {name}"
    command = [tool, "prefetch", "--format", "json", "--apply", "--build", build, "--rounds", str(rounds), "--", f"./{name}"]
    done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    document = json.loads(done.stdout)
    print(name)
    for row in document["advice"]:
        if row["function"] == "kernel" and row["refused"]:
            print(f"  {row['load']} {row['class']}: {row['refused']}")
    for row in document.get("applied", []):
        print(f"  line {row['line']}, {row['site']}: {row['statement']}")
        for tried in row["tried"] + [row["confirmed"] or {}]:
            if time := tried.get("time"):
                low, high = (100 * (1 - end) for end in time["interval"][::-1]) if time["interval"] else (-100, 100)
                print(f"    {tried['distance']:>4} ahead: saves {100 * (1 - time['ratio']):.1f} ({low:.1f} to {high:.1f}) %", tried.get("failed") or "")
        print(f"    {'kept, ' + str(row['confirmed']['distance']) if row['kept'] else 'not kept: ' + row['reason']}", flush=True)


def main():
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, blocks=False)
    parser.add_argument("--rounds", type=int, default=7, help="runs of each variant (default 7)")
    parser.add_argument("--apply", action="store_true", help="by the command alone")
    parser.add_argument("programs", nargs="*", help="names of programs (default: all)")
    args = parser.parse_args()
    need(args.tool)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
        for path in glob.glob(f"{folder}/**/*.c", recursive=True) if args.apply else []:
            strip(path)
        for title, sources in (("programs", f"{SOURCES}/*.c"), ("set aside", f"{SOURCES}/set_aside/*.c")):
            print(f"== {title}")
            for source in sorted(glob.glob(sources)):
                if not args.programs or os.path.basename(source)[:-2] in args.programs:
                    (applied if args.apply else one)(os.path.abspath(args.tool), source, folder, args.rounds)


if __name__ == "__main__":
    main()
