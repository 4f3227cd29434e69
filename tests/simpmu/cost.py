#!/usr/bin/env python3
"""Processor time of `tdtool report -a --interval` beside that of perf stat for the same groups, on a simulated PMU.

In the guest one CPU is busy. Of two lengths of measurement the difference is taken, so that start and end are left out; a
row has seconds of processor time (user + system) per second: tdtool's, perf's, for each repetition.

    tests/simpmu/cost.py --work WORKDIR [--levels 1,2,6] [--interval 100] [--repeat 3] [--seconds 2,12]
    tests/simpmu/cost.py --work WORKDIR --instructions      # one CPU, time by instructions: nothing else on the host counts
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from tables import ROOT, Table, rates_text

HERE = pathlib.Path(__file__).resolve().parent
# Skylake with eight counters.
GUEST = ["-c", "max,vendor=GenuineIntel,family=6,model=94,stepping=3", "-m", "counters=8"]
SCRIPT = """
TIMEFORMAT="%U %S"
cd $(mktemp -d)
{busy} {tdtool} workload run dependent-adds --seconds 100000 > /dev/null 2>&1 & W=$!
sleep 1
for L in {levels}; do
  {tdtool} tables events skl --level $L | sed -n "s/^  -e '\\(.*\\)'.*/\\1/p" | sed 's/:W$//' > groups
  args=(); while read -r g; do args+=(-e "$g"); done < groups
  for r in $(seq {repeat}); do for s in {seconds}; do
    echo "$L tdtool $r $s $( {{ time {tdtool} report --level $L -a --interval {interval} --duration $s --no-code --format csv > o 2> e; }} 2>&1 ) $(cut -d, -f15 o | sort -u | wc -l)"
    echo "$L perf $r $s $( {{ time perf stat -a -I {interval} -x, "${{args[@]}}" -o p sleep $s; }} 2>&1 ) $(cut -d, -f1 p | sort -u | wc -l)"
  done; done
done
kill $W
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tdtool", default=ROOT / "target/release/tdtool", type=pathlib.Path)
    parser.add_argument("--simpmu", default=ROOT / "../shared/simpmu", type=pathlib.Path)
    parser.add_argument("--work", default=os.environ.get("SIMPMU_WORK"), type=pathlib.Path)
    parser.add_argument("--levels", default="1,2,6")
    parser.add_argument("--interval", default=100, type=int)
    parser.add_argument("--repeat", default=3, type=int)
    parser.add_argument("--seconds", default="2,12")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.tdtool, options.simpmu = options.tdtool.resolve(), options.simpmu.resolve()
    options.work = options.work or options.simpmu / "work"
    if not (options.work / "kver").exists():
        print(f"skipped: no guest in {options.work}; {options.simpmu}/setup.sh {options.work} makes one")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        (out / "rates").write_text(rates_text([Table("skl", HERE / "skl.rates")])[0])
        shell = SCRIPT.format(
            tdtool=options.tdtool,
            busy="nice" if options.instructions else "taskset 1",
            levels=options.levels.replace(",", " "),
            seconds=options.seconds.replace(",", " "),
            interval=options.interval,
            repeat=options.repeat,
        )
        (out / "guest.sh").write_text(shell)
        kind = ["-s", "1", "-q", "-icount shift=0,sleep=off"] if options.instructions else []
        command = [options.simpmu / "run.sh", "-n", "-k", "no_timer_check", "-d", options.work, "-r", out / "rates", *GUEST]
        command += [*kind, "-t", "3000", "--", "bash", out / "guest.sh"]
        done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    if options.verbose:
        print(done.stdout)
    times = {}
    for level, who, run, seconds, user, system, intervals in re.findall(r"^(\d) (\w+) (\d+) (\d+) ([\d.]+) ([\d.]+) (\d+)$", done.stdout, re.M):
        times[int(level), who, int(run), int(seconds)] = (float(user), float(system))
    short, long = map(int, options.seconds.split(","))
    print(f"{'level':5} {'tdtool':>8} {'perf':>8}   user + system")
    for level, who, run, seconds in sorted(times):
        if who == "tdtool" and seconds == long:
            rate = {w: [(b - a) / (long - short) for a, b in zip(times[level, w, run, short], times[level, w, run, long])] for w in ("tdtool", "perf")}
            parts = "  ".join(f"{w} {u:.3f} + {s:.3f}" for w, (u, s) in rate.items())
            print(f"{level:5} {sum(rate['tdtool']):8.3f} {sum(rate['perf']):8.3f}   {parts}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
