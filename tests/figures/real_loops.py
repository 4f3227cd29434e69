#!/usr/bin/env python3
"""Hot loops of real programs: cycles of an iteration by samples and counts, and by `tdtool block`.

A program runs on generated text and is sampled (`perf record -e cpu-clock`), in rounds, each between two runs of a
program of as many cycles as it has dependent additions. Rounds in which something else used the core do not count, by a
rule that looks at other code only (`real_rounds.py`). A program's loops are the innermost ones around its hottest addresses
(`tdtool block --list`) in the first round: the hottest --loops of them with 8 % of the samples, whatever they are. Further
rounds only where `tdtool block` measures a loop.
Native cycles of an iteration: samples in the loop ÷ samples in the additions × their number ÷ iterations, the median of
the rounds kept. So neither the clock's frequency nor what sampling costs enters. `error`: two standard deviations, by the
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
    tests/figures/real_loops.py -o rows.csv --table        # then this

`quiet`: whatever keeps other work off the machine. Only timing needs that.
"""

import argparse
import contextlib
import os
import random
import re
import shlex
import shutil
import tempfile
import time

from common import TOOL, append, need, rows, table
from real_counts import fill, judge
from real_native import first, further, unfinished
from real_programs import PROGRAMS, parsed, prepare
from real_rounds import FEWEST, best, kept, read

# `rounds`: see `written` in `real_rounds.py`; `native` and what follows it are computed from the columns before them.
COLUMNS = ["program", "command", "target", "share", "trips", "executions", "pages", "paths", "tool", "status", "runs", "rounds",
           "iterations", "uncounted", "misses", "mispredicted", "kept", "native", "error", "ratio", "limits", "judged"]
SHOWN = ["program", "target", "share", "trips", "iterations", "kept", "native", "error", "tool", "ratio", "limits", "judged", "status",
         "uncounted"]
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
    parser.add_argument("--table", action="store_true", help="time nothing more: count what is not counted, and print")
    parser.add_argument("--folder", help="keep the inputs in this folder")
    parser.add_argument("-o", metavar="FILE", dest="output", required=True, help="the rows, a CSV")
    args = parser.parse_args()
    need(args.tool)
    with contextlib.ExitStack() as stack:
        folder = args.folder or stack.enter_context(tempfile.TemporaryDirectory())
        if not args.table:
            left = time_programs(prepare(folder, 1, 26), folder, args)
            if args.limit:
                print(f"{left} programs left")
                return
        found = stored(args.output)
        fill(found, folder, prepare(folder, 1 / 8, 3), args)
    for row in found:
        judge(row, best(found))
    store(args.output, found)
    table(SHOWN, [[row[key] for key in SHOWN] for row in found])
    summary(found)


def stored(path):
    """The rows so far."""
    return rows(path) if os.path.exists(path) else []


def store(path, found):
    """Writes all rows."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)
    for row in found:
        append(path, row, COLUMNS)


def time_programs(inputs, folder, args):
    """Times the programs that the file does not have, then those that need more rounds; how many are left."""
    end = time.monotonic() + args.limit if args.limit else float("inf")
    wanted = [one for one in PROGRAMS if re.search(args.only, one[0])]
    for begin in (begin_program, go_on):
        for name, command in wanted if begin == begin_program else by_need(wanted, stored(args.output)):
            found = stored(args.output)
            if time.monotonic() + LEFT_FOR_ONE > end:
                break
            args.best = best(found)
            begin(name, parsed(command, inputs), found, folder, args)
    found, known = stored(args.output), {row["program"] for row in stored(args.output)}
    return len({name for name, _ in wanted} - known) + len({row["program"] for row in found if unfinished(row, best(found))})


def by_need(wanted, found):
    """Those first that lack the fewest rounds, else at random: some stay contended, and would use up the time of the others."""
    def lack(name):
        have = [len(kept(read(row["rounds"]), best(found))) for row in found if row["program"] == name and row["tool"]]
        return max((FEWEST - count if count < FEWEST else FEWEST for count in have), default=FEWEST)

    return sorted(random.sample(wanted, len(wanted)), key=lambda one: lack(one[0]))


def begin_program(name, command, found, folder, args):
    """Appends the rows of a program, if there are none yet."""
    if any(row["program"] == name for row in found):
        return
    if shutil.which(command.words[0]):
        new = list(first(command, folder, args)) or [{"status": "no loop with 8 % of the samples"}]
    else:
        new = [{"status": "not installed"}]
    line = shlex.join(command.words) + (f" < {command.input}" if command.input else "")
    for row in new:
        row |= {"program": name, "command": line.replace(folder + "/", "")}
        append(args.output, {key: row.get(key, "") for key in COLUMNS}, COLUMNS)


def go_on(name, command, found, folder, args):
    """More rounds for a program's loops, if they need some."""
    own = [row for row in found if row["program"] == name and unfinished(row, args.best)]
    if own:
        further(own, command, folder, args)
        store(args.output, found)


def summary(found):
    """How many are judged, and how many of those agree."""
    loops = [row for row in found if row["target"]]
    both = [row for row in loops if row["ratio"]]
    contended = sum(row["native"] == "contended" for row in loops)
    judged = [row for row in both if row["judged"]]
    within = sum(abs(float(row["ratio"]) - 1) <= 0.1 for row in judged)
    print(f"\n{len(loops)} loops of {len({row['program'] for row in found})} programs; {len(both)} with both figures, "
          f"{contended} contended; "
          f"{sum(bool(row['limits']) for row in both)} with limits; {len(judged)} judged, {within} within 10 %")


if __name__ == "__main__":
    main()
