#!/usr/bin/env python3
"""Dependencies through memory against the ground truth of real runs: precision and recall.

For every loop of tests/truth/deps/*.csv (tests/truth/README.md says how they were made), `tdtool deps` without and with
the real registers and memory at the loop. A triple (writer, reader, Δ) is true if it holds in at least half of the
iterations of the real run with fewer instructions between than the reorder buffer holds. Counts are summed over loops
before dividing (micro-average). Loops whose addresses depend on data are counted apart, and so are those of real
programs. Where `tdtool deps` fails, nothing counts as found.

    tests/figures/deps_truth.py [--window 512] [--misses] [--only NAME]
"""

import argparse
import collections
import concurrent.futures
import glob
import json
import re
import subprocess
import sys
import tempfile

from common import TOOL, need, percent, rows, table

TRUTH = "tests/truth/deps/*.csv"
MODES = ("unseeded", "seeded")


def main():
    """Runs and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tool", default=TOOL, help=f"the binary (default {TOOL})")
    parser.add_argument("--window", type=int, default=512, choices=[512, 256],
                        help="entries of the reorder buffer (default 512: Golden Cove)")
    parser.add_argument("--options", default="", metavar="TEXT", help="more options for `tdtool deps`")
    parser.add_argument("--only", metavar="NAME", help="only the kernels of this name")
    parser.add_argument("--misses", action="store_true", help="list every triple missed or wrongly found")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once (default 1)")
    args = parser.parse_args()
    need(args.tool)
    loops = [row | {"set": group(row)} for path in sorted(glob.glob(TRUTH)) for row in rows(path)
             if args.only in (None, row["name"])]
    if not loops:
        sys.exit(f"error: no loop in {TRUTH}\ntry: run from the repository root")
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        scores = list(pool.map(lambda row: score(row, args), loops))
    summary(loops, scores)
    by_kernel(loops, scores)
    if args.misses:
        misses(loops, scores)
    failures(loops, scores)


def group(row):
    """The set that a loop is counted in."""
    if row["compiler"] == "debian":
        return "real programs"
    return "data-dependent" if row["class"] == "data-dependent" else f"{row['compiler']} -{row['optimisation']}"


def truth(row, window):
    """`{(writer, reader, Δ)}` that hold in at least half of the iterations."""
    text = row["triples_256"] if window == 256 and row["triples_256"] != "=" else row["triples"]
    found = re.findall(r"(\w+)>(\w+)@(\d+):(\S+)", text)
    return {(int(w, 0), int(r, 0), int(delta)) for w, r, delta, share in found if float(share) >= 0.5}


def seeds(row):
    """The lines of a file for `--registers`."""
    lines = [f"{name}=0x{value}" for name, value in re.findall(r"(\w+)=(\w+)", row["registers"])]
    for start, values in re.findall(r"(\w+):([\w,]+)", row["memory"]):
        lines += [f"[{int(start, 16) + 8 * n:#x}]=0x{value}" for n, value in enumerate(values.split(","))]
    return "\n".join(lines) + "\n"


def score(row, args):
    """For each mode: what is true, what was found, and an error."""
    result = {"true": truth(row, args.window)}
    for mode in MODES:
        with tempfile.NamedTemporaryFile("w", suffix=".registers") as file:
            file.write(seeds(row))
            file.flush()
            seeded = ["--registers", file.name] if mode == "seeded" else []
            command = [args.tool, "deps", row["hex"], "--format", "json", *seeded, *args.options.split()]
            done = subprocess.run(command, capture_output=True, text=True)
        result[mode], result[f"{mode} error"] = found(done)
    return result


def found(done):
    """The triples of a finished process, and what went wrong."""
    if done.returncode != 0:
        return set(), " ".join(done.stderr.split())[:160] or f"status {done.returncode}"
    dependencies = json.loads(done.stdout)["dependencies"]
    return {(number(d["writer"]), number(d["reader"]), int(d["delta"])) for d in dependencies
            if d["kind"] == "memory"}, None


def number(address):
    """An address as the tool writes it."""
    return address if isinstance(address, int) else int(address, 0)


class Sum:
    """Counts of several loops."""

    def __init__(self, scores, mode):
        self.true = sum(len(one["true"]) for one in scores)
        self.found = sum(len(one[mode]) for one in scores)
        self.right = sum(len(one["true"] & one[mode]) for one in scores)

    def cells(self):
        """Found, right, precision and recall."""
        return [self.found, self.right, percent(self.right / self.found, 1) if self.found else "–",
                percent(self.right / self.true, 1) if self.true else "–"]


def summary(loops, scores):
    """One row for each set, and all plain kernels together."""
    sets = collections.defaultdict(list)
    for row, one in zip(loops, scores):
        sets[row["set"]].append(one)
        if row["set"] not in ("real programs", "data-dependent"):
            sets["**all plain kernels**"].append(one)
    body = []
    for name in sorted(sets):
        body.append([name, len(sets[name]), Sum(sets[name], "seeded").true,
                     *(cell for mode in MODES for cell in Sum(sets[name], mode).cells())])
    header = ["set", "loops", "true"] + [f"{mode}: {what}" for mode in MODES
                                         for what in ("found", "right", "precision", "recall")]
    table(header, body)
    print()


def by_kernel(loops, scores):
    """One row for each kernel, all compilers and levels together."""
    kernels = collections.defaultdict(list)
    for row, one in zip(loops, scores):
        kernels[(row["set"] if row["compiler"] == "debian" else row["class"], row["name"])].append(one)
    body = [[name, kind, len(kernels[(kind, name)]), Sum(kernels[(kind, name)], "seeded").true,
             *(cell for mode in MODES for cell in Sum(kernels[(kind, name)], mode).cells())]
            for kind, name in sorted(kernels, key=lambda key: (key[0] != "plain", key))]
    header = ["kernel", "class", "loops", "true"] + [f"{mode}: {what}" for mode in MODES
                                                     for what in ("found", "right", "precision", "recall")]
    table(header, body)
    print()


def misses(loops, scores):
    """Every difference."""
    body = []
    for row, one in zip(loops, scores):
        for mode in MODES:
            for what, triples in (("missed", one["true"] - one[mode]), ("false", one[mode] - one["true"])):
                if triples:
                    text = ", ".join(f"{w:#x}→{r:#x} Δ{delta}" for w, r, delta in sorted(triples))
                    body.append([row["name"], row["set"], mode, what, text])
    table(["kernel", "set", "mode", "what", "triples"], body)
    print()


def failures(loops, scores):
    """Loops that the tool refused."""
    body = [[row["name"], row["set"], mode, one[f"{mode} error"]] for row, one in zip(loops, scores)
            for mode in MODES if one[f"{mode} error"]]
    print(f"{len(body)} of {len(loops) * len(MODES)} runs failed\n")
    if body:
        table(["kernel", "set", "mode", "error"], body)


if __name__ == "__main__":
    main()
