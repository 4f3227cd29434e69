#!/usr/bin/env python3
"""The bound of a loop's recurrences, as predicted, against the loop as measured; LLVM-MCA's predictions beside it.

For every loop of tests/truth/bounds/kernels.csv, or with `--fresh` of fresh.csv: the largest of `recurrences` (by the middles of latencies) by `tdtool deps`, given the same initial
registers as the measurement; the issue width that `tdtool block` computes; the larger of these two, which is what is
predicted; the loop form measured by `tdtool block` (where it is `ok` and is not void), and the predictions of LLVM-MCA
that are stored with it, which know width and ports, too. Then the share of the loops that each predicted within 15 % of that, and of the real loop (native.csv and fresh_native.csv there: the
compiled function itself, timed on an Emerald Rapids; of other processors it says nothing).

    tests/figures/bounds.py [--fresh] [--runs 3] [--measured-only] [--kept FILE]
"""

import argparse
import json
import os
import subprocess

from common import TOOL, median, need, percent, rows, table

TRUTH = "tests/truth/bounds"
NEAR = 0.15


def main():
    """Runs and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tool", default=TOOL, help=f"the binary (default {TOOL})")
    parser.add_argument("--runs", type=int, default=3, help="measurements of each loop; the median counts (default 3)")
    parser.add_argument("--options", default="", metavar="TEXT", help="more options for `tdtool block`")
    parser.add_argument("--measured-only", action="store_true", help="leave out `tdtool deps`")
    parser.add_argument("--kept", metavar="FILE", help="keep what is measured there, or take it from there")
    parser.add_argument("--fresh", action="store_true", help="the loops that were written to check the rules")
    args = parser.parse_args()
    truth, times = (f"{TRUTH}/{name}.csv" for name in (("fresh", "fresh_native") if args.fresh else ("kernels", "native")))
    need(args.tool, truth, times)
    loops = rows(truth)
    native = {row["name"]: float(row["cycles"]) for row in rows(times)}
    real = [native.get(row["name"]) for row in loops]
    others = [name for name in loops[0] if name.startswith("llvm-mca")]
    measured, widths = zip(*kept(loops, args))
    bounds = [None if args.measured_only else predict(row, args.tool) for row in loops]
    predicted = [None if bound is None else max(bound, width) for bound, width in zip(bounds, widths)]
    body = [[row["name"], row["origin"], text(value), note, text(true), text(bound), text(width), text(own),
             away(own, value), away(own, true),
             *(cell for name in others for cell in (row[name], away(float(row[name]), value))), row["bound_by"]]
            for row, (value, note), true, bound, width, own in
            zip(loops, measured, real, bounds, widths, predicted)]
    table(["loop", "from", "measured", "range or reason", "real loop", "recurrence", "width", "predicted", "off",
           "off the real loop"]
          + [cell for name in others for cell in (name, "off")] + ["what bounds it"], body)
    print()
    print("Against the loop form:\n")
    verdict(loops, [value for value, _ in measured], predicted, others)
    print("\nAgainst the real loop:\n")
    verdict(loops, real, predicted, others)


def kept(loops, args):
    """What was measured, or is measured now; what is kept is there for the next run if this one is ended."""
    found = {}
    if args.kept and os.path.exists(args.kept):
        with open(args.kept) as file:
            found = json.load(file)
    for row in loops:
        if row["name"] not in found:
            found[row["name"]] = measure(row, args)
            if args.kept:
                with open(args.kept, "w") as file:
                    json.dump(found, file)
    return [found[row["name"]] for row in loops]


def measure(row, args):
    """Cycles of the loop form, the median of several processes, and their range or why there is none; and the issue
    width."""
    values, reason, width = [], "", 0.0
    for _ in range(args.runs):
        initial = [word for one in row["init"].split() for word in ("--init", one)]
        done = subprocess.run([args.tool, "block", row["hex"], "--format", "json", *initial, *args.options.split()],
                              capture_output=True, text=True)
        if not done.stdout.startswith("{"):
            reason = " ".join(done.stderr.split())[:120]
            continue
        report = json.loads(done.stdout)
        width = max((b["cycles"] for b in report.get("bounds") or [] if b["name"] == "issue-width"), default=width)
        form = (report.get("forms") or {}).get("loop") or {}
        if report["status"] == "ok" and form.get("cycles"):
            values.append(form["cycles"])
        else:
            reason = report["reason"] or form.get("reason") or report["status"]
    if not values:
        return (None, reason), width
    return (median(values), f"{min(values):.2f}–{max(values):.2f}, {len(values)} of {args.runs}"), width


def predict(row, tool):
    """The largest of the recurrences; 0 where the tool finds none, nothing where it fails."""
    initial = [word for one in row["init"].split() for word in ("--init", one)]
    done = subprocess.run([tool, "deps", row["hex"], "--format", "json", *initial], capture_output=True, text=True)
    if done.returncode != 0:
        return None
    return max((one["middle"] for one in json.loads(done.stdout)["recurrences"]), default=0.0)


def text(value):
    """Cycles for people."""
    return "–" if value is None else f"{value:.2f}"


def away(predicted, value):
    """How far a prediction lies from the measurement."""
    return "–" if predicted is None or value is None else f"{100 * (predicted / value - 1):+.0f} %"


def verdict(loops, measured, predicted, others):
    """Shares within 15 %, by where the loops come from and of all; a loop that was not measured counts nowhere."""
    body = []
    origins = list(dict.fromkeys(row["origin"] for row in loops))
    for which in (*origins, *(["all"] if len(origins) > 1 else [])):
        chosen = [number for number, row in enumerate(loops)
                  if which in ("all", row["origin"]) and measured[number] is not None]
        cells = []
        for name in (None, *others):
            guesses = [predicted[n] if name is None else float(loops[n][name]) for n in chosen]
            near = sum(guess is not None and abs(guess / measured[n] - 1) <= NEAR
                       for n, guess in zip(chosen, guesses))
            cells.append(f"{near} ({percent(near / len(chosen), 0)})" if chosen else "–")
        body.append([which, len(chosen), *cells])
    table(["loops", "measured", "tdtool deps", *others], body)


if __name__ == "__main__":
    main()
