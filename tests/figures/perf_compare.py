#!/usr/bin/env python3
"""The ten hottest functions by `tdtool record` + `report` beside those by `perf record` + `perf report`.

Every program runs several times under each in turn, on the same conditions (-F 999 -e cpu-clock, cpu 0): what
else the machine does then meets both alike. (perf 6.1 ends itself when it records tdtool recording, so that one
run cannot be sampled by both.) A share agrees if
the two differ by no more than three standard deviations of both numbers of samples (binomial). Where perf
names no function (stripped files), modules are compared. Prints a Markdown table; exits with 1 where
anything disagrees.

    python3 tests/figures/perf_compare.py --tool target/release/tdtool
"""

import argparse
import collections
import json
import math
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FREQUENCY = "999"


def build(folder):
    """The two programs of ours, with debug information."""
    cpp, rust = os.path.join(folder, "words"), os.path.join(folder, "sieve")
    source = os.path.join(HERE, "programs")
    subprocess.run(["g++", "-O2", "-g", "-o", cpp, f"{source}/words.cpp"], check=True)
    subprocess.run(["rustc", "-O", "-g", "-o", rust, f"{source}/sieve.rs"], check=True)
    return cpp, rust


def corpus(folder, tool):
    """A text that is the same every time, as large as gzip and sort need."""
    path = os.path.join(folder, "text")
    state, words = 42, []
    for _ in range(1_500_000):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        words.append(f"{(state >> 33) % (1 + (state >> 40) % 50000):x}")
    with open(path, "w") as file:
        file.write("\n".join(words))
    return path


def programs(folder, tool):
    cpp, rust = build(folder)
    text = corpus(folder, tool)
    script = os.path.join(folder, "script.py")
    with open(script, "w") as file:
        file.write("import json, re\nd = {str(i): [i, str(i * 7)] for i in range(60000)}\n"
                   "for _ in range(12):\n    s = json.dumps(d); json.loads(s); re.findall(r'[0-9]+7', s)\n"
                   "    sorted(d, key=lambda k: k[::-1])\n")
    return [("gzip -9 (C, stripped)", ["gzip", "-9kc", text]),
            ("sort (C, stripped)", ["sort", "--parallel=1", text, text]),
            ("python3 (C)", ["/usr/bin/python3", script]),
            ("words.cpp (C++)", [cpp, "12"]),
            ("sieve.rs (Rust)", [rust, "12"])]


def plain(name):
    """A name without what tools write differently: spaces, clones, hashes, versions."""
    name = re.sub(r"::h[0-9a-f]{16}$|@@?[A-Z]+_[0-9.]+$", "", name.strip())
    name = re.sub(r" \[clone [^\]]*\]|\s+", "", name)
    return name


def bare(name):
    """A C++ function's name alone: no template arguments, parameters, return type. Template instances and
    overloads then count together, on both sides."""
    name = name.replace("(anonymous namespace)", "{anonymous}")
    kept, depth, operator = [], 0, False
    for at, letter in enumerate(name):
        operator = name[:at].endswith(("operator", "operator<", "operator>", "operator-"))
        if letter == "<" and not operator:
            depth += 1
        elif letter == ">" and not operator and depth > 0:
            depth -= 1
        elif depth == 0:
            if letter == "(" and not name[:at].endswith("operator"):
                break
            kept.append(letter)
    return "".join(kept).split(" ")[-1]


def record(command, folder, tool):
    """One run under each."""
    data, session = os.path.join(folder, "perf.data"), os.path.join(folder, "run.tds")
    for recorder, output in ("perf", data), (tool, session):
        subprocess.run(["taskset", "-c", "0", recorder, "record", "-F", FREQUENCY, "-e", "cpu-clock",
                        "-o", output, "--", *command],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return data, session


def by_perf(data):
    text = subprocess.run(["perf", "report", "-i", data, "--no-inline", "-g", "none", "--stdio", "-w", "0,0,0,0",
                           "--sort", "dso,sym", "-n", "-t", "\t"],
                          check=True, capture_output=True, text=True).stdout
    found = collections.Counter()
    for line in text.splitlines():
        parts = line.split("\t")
        if line.startswith("#") or len(parts) < 4:
            continue
        name = re.sub(r"^\[.\] ", "", parts[3].strip())
        found[(parts[2].strip(), name.strip())] += int(parts[1])
    return found


def by_tdtool(session, tool):
    text = subprocess.run([tool, "report", session, "--format", "json", "--functions", "100000", "--blocks", "0"],
                          check=True, capture_output=True, text=True).stdout
    found = collections.Counter()
    for row in json.loads(text)["functions"]:
        found[(row["module"], row["name"])] += row["samples"]
    return found


def unnamed(name):
    return re.fullmatch(r"0x[0-9a-f]+", name) is not None


def spelled(counter):
    """The same with names spelled alike."""
    sums = collections.Counter()
    for (module, symbol), samples in counter.items():
        sums[(module, plain(symbol))] += samples
    return sums


def merged(counter):
    """The same with bare names."""
    sums = collections.Counter()
    for (module, symbol), samples in counter.items():
        sums[(module, bare(symbol))] += samples
    return sums


def compare(name, perf, ours):
    """Rows of the table, and how many of them disagree."""
    all_perf, all_ours = sum(perf.values()), sum(ours.values())
    stripped = {module for (module, symbol), n in perf.items() if unnamed(symbol)}
    perf_keys, ours_keys = collections.Counter(), collections.Counter()
    for source, keys in ((perf, perf_keys), (ours, ours_keys)):
        for (module, symbol), samples in source.items():
            keys[(module, "(module)" if module in stripped else symbol)] += samples
    rows, bad = [], 0
    for key, samples in perf_keys.most_common(10):
        p, q = samples / all_perf, ours_keys[key] / all_ours
        deviation = math.sqrt(max(p * (1 - p) / all_perf + q * (1 - q) / all_ours, 1e-12))
        off = abs(p - q) / deviation
        bad += off > 3
        rows.append((name, key[1][:60], key[0], p, q, off))
    return rows, bad, (all_perf, all_ours)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", default="target/release/tdtool")
    parser.add_argument("--rounds", type=int, default=3, help="runs under each (default 3)")
    parser.add_argument("--all", action="store_true", help="every row, not the summary alone")
    arguments = parser.parse_args()
    tool = os.path.abspath(arguments.tool)
    summary, failed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name, command in programs(folder, tool):
            perf, ours = collections.Counter(), collections.Counter()
            for _ in range(arguments.rounds):
                data, session = record(command, folder, tool)
                perf.update(by_perf(data))
                ours.update(by_tdtool(session, tool))
            if "C++" in name:
                perf, ours = merged(perf), merged(ours)
            else:
                perf, ours = spelled(perf), spelled(ours)
            rows, bad, (n, m) = compare(name, perf, ours)
            failed += bad
            worst = max(rows, key=lambda row: row[5])
            hottest = rows[0]
            summary.append(f"| {name} | {n:,} | {m:,} | `{hottest[1]}` {hottest[3]:.1%} / {hottest[4]:.1%} | "
                           f"{len(rows) - bad} of {len(rows)} | {worst[5]:.1f} σ |")
            if arguments.all or bad:
                for _, symbol, module, p, q, off in rows:
                    print(f"  {name:24} {p:7.2%} {q:7.2%} {off:5.1f} σ  {module:24} {symbol}", file=sys.stderr)
    print("| program | samples, perf | samples, tdtool | hottest: perf / tdtool | agree within 3 σ | furthest |\n"
          "|---|---|---|---|---|---|")
    print("\n".join(summary))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
