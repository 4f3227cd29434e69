#!/usr/bin/env python3
"""Turns counts in columns `block,kind,name,value,running_pct` into perf's own CSV lines.

    zen4_to_perf_csv.py RECORDING.csv FOLDER            one file a block: FOLDER/block-N.csv
    zen4_to_perf_csv.py RECORDING.csv FILE --intervals  one file, a block an interval of 1 s

A line is what `perf stat -x,` prints (perf-stat(1), "CSV FORMAT"): count, unit, event, run
time, running share in percent, and two empty metric columns. Groups stay in file order and the
commas inside `cpu/…,cmask=0x6/` stay unquoted, as perf leaves them. The recording does not say
the run times; the ones written are the share of one second, so equal shares give equal run
times and nothing is added to what the recording holds. Metrics are not written: they are what
a report must find.
"""

import csv
import sys
from pathlib import Path


def blocks(path):
    """Rows of kind `event` by block, in file order."""
    found = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            rows = found.setdefault(row["block"], [])
            if row["kind"] == "event":
                rows.append(row)
    return found


def line(row):
    """One line of perf."""
    share = float(row["running_pct"])
    return f"{row['value']},,{row['name']},{round(share * 1e7)},{share:.2f},,"


def main(recording, out, *options):
    found = blocks(recording)
    if "--intervals" in options:
        with open(out, "w") as file:
            for second, rows in enumerate(found.values(), start=1):
                file.writelines(f"     {second}.000000000,{line(row)}\n" for row in rows)
        return
    Path(out).mkdir(parents=True, exist_ok=True)
    for block, rows in found.items():
        Path(out, f"block-{block}.csv").write_text("".join(line(row) + "\n" for row in rows))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
