#!/usr/bin/env python3
"""Compares `tdtool tables eval` with vectors of known results.

    compare_vectors.py TDTOOL VECTORS     VECTORS holds U-smt0/{events,expect}.csv and so on

For each folder: rows expected, rows wrong (value beyond a relative 1e-6, or another `over`), and
the largest relative difference. Ends with status 1 if a row is wrong or missing.
"""

import csv
import pathlib
import subprocess
import sys


def rows(lines):
    return {(r["trial"], r["node"]): r for r in csv.DictReader(lines)}


def main():
    tdtool, vectors = sys.argv[1], pathlib.Path(sys.argv[2])
    wrong_in_all = 0
    for folder in sorted(p for p in vectors.iterdir() if (p / "expect.csv").exists()):
        uarch = folder.name.split("-smt")[0]
        command = [tdtool, "tables", "eval", uarch, "--counts", folder / "events.csv"]
        got = rows(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())
        wrong, largest = 0, 0.0
        expected = rows((folder / "expect.csv").read_text().splitlines())
        for key, want in expected.items():
            have = got.get(key)
            if have is None or have["value"] == "":
                wrong += 1
                continue
            a, b = float(want["value"]), float(have["value"])
            relative = abs(a - b) / abs(a) if a else abs(b)
            largest = max(largest, relative)
            wrong += relative > 1e-6 or (want["over"] != "" and want["over"] != have["over"])
        print(f"{folder.name}: {len(expected)} rows, {wrong} wrong, largest difference {largest:.1e}")
        wrong_in_all += wrong
    return 1 if wrong_in_all else 0


if __name__ == "__main__":
    sys.exit(main())
