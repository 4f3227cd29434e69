#!/usr/bin/env python3
"""What a pair of markers costs: without tdtool, and in `tdtool report --regions`."""

import json
import subprocess
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
TDTOOL = ROOT / "target/release/tdtool"
RUNS = 11


def spread(values):
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main():
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "markers"
        source = ROOT / "tests/figures/programs/markers.c"
        subprocess.run(["gcc", "-O2", "-o", program, source], check=True)

        def run(*command):
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout

        plain = [[float(n) for n in run(program, "20000000").split()] for _ in range(RUNS)]
        print("ns per pair without tdtool:", spread([a - b for a, b in plain]))
        for pairs, rounds in [("1000", "0"), ("200000", "0"), ("2000", "20000")]:
            probed, logged, means = [], [], []
            for _ in range(RUNS):
                out = Path(folder) / "regions.json"
                options = ["--format", "json", "--output", out]
                own = run(TDTOOL, "report", "--regions", *options, "--", program, pairs, rounds)
                a, b = (float(n) for n in own.split())
                found = json.loads(out.read_text())
                assert found["lost"] == 0 and found["regions"][0]["entries"] == int(pairs)
                probed.append(a - b)
                logged.append(1e9 * found["pair_cost"])
                means.append((found["regions"][0]["mean"] or 0) * 1e9 / b)
            print(f"{pairs} pairs, {rounds} rounds: ns per pair", spread(probed))
            print("    of them logged and subtracted", spread(logged))
            if means[0]:
                print("    time of the region / time of its code without markers", spread(means))


if __name__ == "__main__":
    main()
