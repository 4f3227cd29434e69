#!/usr/bin/env python3
"""How often the ± of a multiplexed node covers its true value, on a real kernel with a simulated PMU.

alternate.c changes the rates of all events between two sets in phases of 5 to 500 ms, and prints the share of each; what
`tables eval` makes of the mean rates is the truth. Prints a row a run length: nodes inside their ±, and the mean ±.

    tests/simpmu/coverage.py --work WORKDIR [--seconds 2,10,30] [--levels 2,6] [--runs 15,6,3]
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import zlib

from tables import ROOT, Table, rates_text

HERE = pathlib.Path(__file__).resolve().parent
# Skylake with eight counters: level 2 takes 2 groups, level 6 takes 15.
GUEST = ["-c", "max,vendor=GenuineIntel,family=6,model=94,stepping=3", "-m", "counters=8"]
# Mean time from phase to like phase in ms, and the share of the time in phases of the second kind.
PERIODS = [(5, 20), (20, 60), (60, 70), (70, 200), (200, 500)]
DUTIES = [0.1, 0.3, 0.5, 0.7, 0.9]
# The second kind of phases: the front end delivers less, or more.
SECOND = {
    "IDQ_UOPS_NOT_DELIVERED.CORE": 6000,
    "IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE": 1200,
    "UOPS_ISSUED.ANY": 3300,
    "UOPS_RETIRED.RETIRE_SLOTS": 3000,
    "INST_RETIRED.ANY": 2700,
}


def second(rates, table):
    """The rates of the second kind of phases: those of events that are not above change by up to a factor of two."""
    fixed = {table.config(name)[0]: rate for name, rate in SECOND.items()}
    changed = {}
    for (config, config1), (rate, mask, name) in rates.items():
        factor = 0.5 + zlib.crc32(f"second {name}".encode()) % 151 / 100
        clock = "CLK" in name or name == table.clocks
        changed[config, config1] = (fixed.get(config, rate if clock else round(rate * factor, 3)), mask, name)
    return changed


def lines(rates):
    """As the module reads them."""
    several = {c for c, c1 in rates if c1}
    at = lambda config, config1: f"{config:#x}:{config1:#x}" if config in several else f"{config:#x}"
    return "".join(f"{at(*key)} {rate:g} {mask:#x}\n" for key, (rate, mask, _) in sorted(rates.items()))


def script(options, out, draw):
    """The shell script of the guest, and its runs."""
    runs, text = [], f"cp {out}/alternate {out}/first {out}/second /tmp/; cd /tmp\n"
    for level in options.levels:
        for seconds, count in zip(options.seconds, options.runs):
            for number in range(count):
                low, high = PERIODS[number % len(PERIODS)]
                duty, jitter = DUTIES[draw.randrange(len(DUTIES))], draw.choice([0, 0.1])
                period, name = draw.uniform(low, high), f"{level}-{seconds}-{number}"
                runs.append((level, seconds, (low, high), duty, out / name))
                program = f"./alternate $SIMPMU_RATES first second {period:.3f} {duty} {jitter} {seconds} {number + 1}"
                text += f"cat first > $SIMPMU_RATES; {options.tdtool} report --level {level} --format json --no-code "
                text += f"-o {out}/{name}.json -- {program} 2> {out}/{name}.err\n"
    return text, runs


def judge(run, tables, rates, options):
    """Nodes inside their ±, those with one, the sum of ±, and what is outside."""
    level, seconds, period, duty, path = run
    document = json.loads(path.with_suffix(".json").read_text())
    share = next(float(l.split()[1]) for l in path.with_suffix(".err").read_text().splitlines() if l.startswith("share"))
    mixed = {}
    for key, (rate, mask, name) in rates[0].items():
        mixed[key] = (rate + share * (rates[1][key][0] - rate), mask, name)
    expected = tables[0].expected(options.tdtool, mixed)
    inside, all_of_them, width, off = 0, 0, 0.0, []
    for node in document["nodes"]:
        right = expected.get(node["id"])
        if None in (node["value"], node["error"], right) or (node["running"] or 1) > 0.99:
            continue
        all_of_them += 1
        width += node["error"]
        # The report prints tenths of a percent; half of that is no deviation.
        if abs(node["value"] - right) <= node["error"] + 5e-4:
            inside += 1
        else:
            off.append(f"{node['id']} {node['value']:.4f} ± {node['error']:.4f}, is {right:.4f}")
    if options.verbose:
        print(f"  level {level}, {seconds} s, {period} ms, duty {duty}: {inside}/{all_of_them}; {'; '.join(off)}")
    return inside, all_of_them, width


def main():
    numbers = lambda text: [int(n) for n in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tdtool", default=ROOT / "target/release/tdtool", type=pathlib.Path)
    parser.add_argument("--simpmu", default=ROOT / "../shared/simpmu", type=pathlib.Path)
    parser.add_argument("--work", default=os.environ.get("SIMPMU_WORK"), type=pathlib.Path)
    parser.add_argument("--seconds", type=numbers, default=[2, 10, 30], help="lengths of runs")
    parser.add_argument("--runs", type=numbers, default=[15, 6, 3], help="so many of each length")
    parser.add_argument("--levels", type=numbers, default=[2, 6])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="each run, and the nodes outside their ±")
    options = parser.parse_args()
    options.tdtool, options.simpmu = options.tdtool.resolve(), options.simpmu.resolve()
    if not options.work or not (options.work / "kver").exists():
        print(f"skipped: no guest in {options.work}; {options.simpmu}/setup.sh makes one")
        return 0
    tables = [Table("skl", HERE / "skl.rates")]
    _, rates = rates_text(tables)
    # The values by hand are those of the first kind of phases.
    tables[0].by_hand = {}
    rates = [rates, second(rates, tables[0])]
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        subprocess.run(["gcc", "-O1", str(HERE / "alternate.c"), "-o", str(out / "alternate")], check=True)
        for name, kind in zip(("first", "second"), rates):
            (out / name).write_text(lines(kind))
        text, runs = script(options, out, random.Random(options.seed))
        (out / "guest.sh").write_text(text)
        limit = str(900 + 20 * sum(run[1] for run in runs))
        command = [options.simpmu / "run.sh", "-n", "-k", "no_timer_check", "-d", options.work, "-r", out / "first", *GUEST, "-w", out, "-t", limit]
        done = subprocess.run([*command, "--", "sh", out / "guest.sh"], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"the guest failed with status {done.returncode}: {done.stdout}{done.stderr}")
        sums = {}
        for run in runs:
            row = sums.setdefault(run[:2], [0, 0, 0.0])
            for at, more in enumerate(judge(run, tables, rates, options)):
                row[at] += more
    low = False
    for (level, seconds), (inside, every, width) in sums.items():
        low |= inside < 0.93 * every
        print(f"level {level}, {seconds} s: {100 * inside / every:.1f} % of {every} nodes, mean ± {100 * width / every:.1f}")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
