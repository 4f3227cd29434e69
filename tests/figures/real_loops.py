#!/usr/bin/env python3
"""Hot loops of real programs: cycles of an iteration by samples and counts, and by `tdtool block`.

A program runs on generated text and is sampled (`perf record -e cpu-clock`), in rounds, each between two runs of a
program of as many cycles as it has dependent additions. Its loops are the innermost ones around its hottest addresses
(`tdtool block --list`): the hottest --loops of them with 8 % of the samples, whatever they are.
Native cycles of an iteration: samples in the loop ÷ samples in the additions × their number ÷ iterations, the median of
the rounds. So neither the clock's frequency nor what sampling costs enters. `error`: two standard deviations, by the
scatter of the rounds or the number of samples, whichever is larger. Iterations: entries of the loop's first block in a run of
the same command, counted exactly (`tdtool count`). Measured with the program's own values: `tdtool block FILE:@START -- ARGS`.

A loop is judged if it has both figures, an error of at most 10 % and no limit. Limits: what a loop replayed from its
entry leaves out, by rules that do not look at its result:
  memory    misses of the first-level cache would cost a tenth of the time, at 14 cycles each
  branches  mispredictions would, at 15
  short     the start and end of an execution would, at 30: executions overlap in the program
Misses and mispredictions are callgrind's (valgrind), on a smaller input, where it executes the loop as often as the
processor does. Elsewhere it runs other code (SHA extensions, AVX-512): then `memory` is more than 10 pages accessed by an
execution, `branches` more than two paths through the loop.

    tests/figures/real_loops.py -o rows.csv                # all that the file does not have yet, then the table
    quiet tests/figures/real_loops.py -o rows.csv --for 80 # timing only, of what fits into 80 s; repeat until none is left

`quiet`: whatever keeps other work off the machine. Only timing needs that.
"""

import argparse
import contextlib
import csv
import os
import re
import shlex
import shutil
import tempfile
import time

from common import TOOL, append, need, table
from real_counts import fill
from real_native import timed
from real_programs import PROGRAMS, prepare

COLUMNS = ["program", "command", "target", "samples", "share", "cycles", "trips", "executions", "pages", "paths", "tool",
           "status", "iterations", "native", "error", "ratio", "misses", "mispredicted", "limits", "judged"]
SHOWN = ["program", "target", "samples", "trips", "iterations", "native", "error", "tool", "ratio", "limits", "judged", "status"]
LEFT_FOR_ONE = 20  # seconds


def main():
    """Times, counts, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tool", default=TOOL, help=f"the binary (default {TOOL})")
    parser.add_argument("--options", default="", metavar="TEXT", help="more options for `tdtool block`")
    parser.add_argument("--seconds", type=float, default=6, help="most seconds of runs of a program (default 6)")
    parser.add_argument("--loops", type=int, default=2, metavar="N", help="most loops of a program (default 2)")
    parser.add_argument("--only", default="", metavar="REGEX", help="only these programs")
    parser.add_argument("--for", type=float, metavar="SECONDS", dest="limit", help="only time, and begin nothing that would end later")
    parser.add_argument("--folder", help="keep the inputs in this folder")
    parser.add_argument("-o", metavar="FILE", dest="output", required=True, help="the rows, a CSV")
    args = parser.parse_args()
    need(args.tool)
    with contextlib.ExitStack() as stack:
        folder = args.folder or stack.enter_context(tempfile.TemporaryDirectory())
        left = time_programs(prepare(folder, 1, 26), folder, args)
        if args.limit:
            print(f"{left} programs left")
            return
        small = prepare(folder, 1 / 8, 3)
        found = read(args.output)
        fill(found, folder, small, args)
    os.remove(args.output)
    for row in found:
        append(args.output, row, COLUMNS)
    table(SHOWN, [[row[key] for key in SHOWN] for row in found])
    summary(found)


def read(path):
    """The rows so far."""
    if not os.path.exists(path):
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def time_programs(inputs, folder, args):
    """Appends the rows of the programs that the file does not have; how many are left."""
    known = {row["program"] for row in read(args.output)}
    end = time.monotonic() + args.limit if args.limit else float("inf")
    wanted = [one for one in PROGRAMS if one[0] not in known and re.search(args.only, one[0])]
    for done, (name, command) in enumerate(wanted):
        if time.monotonic() + LEFT_FOR_ONE > end:
            return len(wanted) - done
        words = shlex.split(command.format(**inputs))
        if shutil.which(words[0]):
            rows = list(timed(words, folder, args)) or [{"status": "no loop with 8 % of the samples"}]
        else:
            rows = [{"status": "not installed"}]
        for row in rows:
            row |= {"program": name, "command": shlex.join(words).replace(folder + "/", "")}
            append(args.output, {key: row.get(key, "") for key in COLUMNS}, COLUMNS)
    return 0


def summary(rows):
    """How many are judged, and how many of those agree."""
    loops = [row for row in rows if row["target"]]
    both = [row for row in loops if row["ratio"]]
    judged = [row for row in both if row["judged"]]
    within = sum(abs(float(row["ratio"]) - 1) <= 0.1 for row in judged)
    print(f"\n{len(loops)} loops of {len({row['program'] for row in rows})} programs; {len(both)} with both figures; "
          f"{sum(bool(row['limits']) for row in both)} with limits; {len(judged)} judged, {within} within 10 %")


if __name__ == "__main__":
    main()
