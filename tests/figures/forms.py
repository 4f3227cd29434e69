#!/usr/bin/env python3
"""Latency and throughput of single instruction forms against tests/microbench/expected.csv.

    tests/figures/forms.py [--tdtool PATH] [--core golden_cove] > table.md

Measures every row with `tdtool microbench latency` and `tdtool microbench throughput`, again up to three
times where the verdict is not `ok`, and prints a Markdown table. A number agrees if it is within
8 % or 0.05 cycles of what is expected, or inside the expected range with as much room.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def measured(tdtool, what, form):
    """The document of one command, the first that is ok of three."""
    for _ in range(3):
        done = subprocess.run(
            [tdtool, "microbench", what, form, "--format", "json"], capture_output=True, text=True
        )
        if not done.stdout:
            return None, done.stderr.strip()
        document = json.loads(done.stdout)
        parts = document["latencies"] if what == "latency" else [document]
        if all(part["status"] == "ok" for part in parts):
            return document, ""
    return document, "unstable"


def latency(document, row):
    """The largest of the latencies from the kind of input to the kind of output."""
    ways = [
        way
        for way in document["latencies"]
        if way["input"] == row["input"] and way["output"] == row["output"]
    ]
    known = [way for way in ways if way["cycles"] is not None]
    return max(known, key=lambda way: way["cycles"]) if known else None


def agrees(value, expected):
    low, _, high = expected.partition("-")
    low, high = float(low), float(high or low)
    return low - max(0.08 * low, 0.05) <= value <= high + max(0.08 * high, 0.05)


def cell(value, expected):
    if value is None:
        return "–", "–", None
    if not expected:
        return f"{value:.2f}", "–", None
    same = agrees(value, expected)
    return f"{value:.2f}", expected, same


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdtool", default=str(ROOT / "target/release/tdtool"))
    parser.add_argument("--expected", default=str(ROOT / "tests/microbench/expected.csv"))
    args = parser.parse_args()
    rows = list(csv.DictReader(open(args.expected)))
    total = {"latency": [0, 0], "throughput": [0, 0]}
    print("| form | latency | expected | throughput | expected | bounded by | |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        marks = []
        lat, want_lat = "–", "–"
        if row["latency"]:
            document, why = measured(args.tdtool, "latency", row["form"])
            way = latency(document, row) if document else None
            value = way["cycles"] if way else None
            lat, want_lat, same = cell(value, row["latency"])
            if way and way["high"] - way["low"] > 1:
                lat += f" ({way['low']:.1f} to {way['high']:.1f})"
            if same is not None:
                total["latency"][0] += same
                total["latency"][1] += 1
                marks += [] if same else ["latency"]
            if why:
                marks.append(why)
        document, why = measured(args.tdtool, "throughput", row["form"])
        cycles = document["cycles"]["cycles"] if document and document["cycles"] else None
        tput, want_tput, same = cell(cycles, row["throughput"])
        if same is not None:
            total["throughput"][0] += same
            total["throughput"][1] += 1
            marks += [] if same else ["throughput"]
        if why:
            marks.append(why)
        bound = document["bounded_by"] if document else None
        bounded = ", ".join(bound["through"]) if bound and bound["binding"] else ""
        print(f"| {row['form']} | {lat} | {want_lat} | {tput} | {want_tput} | {bounded} | {', '.join(marks)} |")
        sys.stdout.flush()
    for what, (good, count) in total.items():
        print(f"\n{what}: {good} of {count} agree", end="")
    print()


if __name__ == "__main__":
    main()
