#!/usr/bin/env python3
"""Cache levels and access patterns that `tdtool count --loads` gives, against uninstrumented timing.

Loads of four patterns over 16 KB, 256 KB, 8 MB and 256 MB (programs/loads.c). What a level takes on this host is what
the walk takes on its own over a size that fits it; of the other patterns the share of a level that is known is the
part of the memory that the caches before it cannot hold.

    tests/figures/load_levels.py                 # needs gcc; a quiet machine: other programs use the last cache
"""

import argparse
import json
import os
import subprocess
import tempfile

from common import arguments, need

SIZES = {"16 KB": 16 << 10, "256 KB": 256 << 10, "8 MB": 8 << 20, "256 MB": 256 << 20}
KINDS = ("chase", "indirect", "stream", "hash")
LOADS = {"16 KB": 8_000_000, "256 KB": 8_000_000, "8 MB": 4_000_000, "256 MB": 4_000_000}
SOURCE = f"{os.path.dirname(os.path.abspath(__file__))}/programs/loads.c"


def plain(program, kind, size, loads):
    """Nanoseconds per load without probes: the least of three runs."""
    run = lambda: float(subprocess.run([program, kind, str(size), str(loads)], check=True, capture_output=True).stdout)
    return min(run() for _ in range(3))


def document(tool, program, kind, size, loads):
    """The document of `tdtool count --loads`."""
    command = [tool, "count", "--loads", "--functions", kind, "--format", "json", "--", program, kind, str(size), str(loads)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def words(load):
    """The class in short."""
    found = load["class"] or {"kind": "?"}
    text = found["kind"].replace("_", " ")
    if found["kind"] == "stride":
        text += f" {found['stride']}"
    if found.get("inner"):
        text += f" × {found['scale']} (stride {found['inner']['stride']})"
    return text


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, blocks=False)
    parser.add_argument("cases", nargs="*", help="patterns (default: all)")
    args = parser.parse_args()
    need(args.tool)
    print(f"{'pattern':<9} {'size':>7} {'plain ns':>8} | {'L1 %':>9} {'L2 %':>9} {'L3 %':>9} {'DRAM %':>9} | "
          f"{'mean':>6} {'p50':>6} {'p90':>6} | addresses")
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/loads"
        subprocess.run(["gcc", "-O1", SOURCE, "-o", program], check=True)
        for kind in args.cases or KINDS:
            for name, size in SIZES.items():
                alone = plain(program, kind, size, LOADS[name])
                found = document(args.tool, program, kind, size, LOADS[name])
                # The load of the data, not that of the index.
                rows = [load for load in found["loads"] if load["class"] and load["class"]["stride"] != 4]
                load = rows[0] if rows else found["loads"][0]
                shares = {one["level"]: one for one in load["levels"]}
                cell = lambda one: f"{100 * one['share']:.0f} ±{50 * (one['high'] - one['low']):.0f}" if one else "?"
                cells = " ".join(f"{cell(shares.get(level)):>9}" for level in ("L1", "L2", "L3", "DRAM"))
                latency = load["latency"]
                print(f"{kind:<9} {name:>7} {alone:>8.2f} | {cells} | {latency['mean']:>6.1f} {latency['p50']:>6.1f} "
                      f"{latency['p90']:>6.1f} | {words(load)}", flush=True)
    timer = found["timer"]
    hits = ", ".join(f"{one['level']} {one['mean']:.1f}" for one in timer["caches"])
    print(f"hits on this host: {hits} ns; memory from {timer['memory']:.0f} ns on; step {timer['step']} ticks of "
          f"{1 / timer['ticks_per_ns']:.2f} ns; not measured: {', '.join(timer['assumed']) or 'none'}")


if __name__ == "__main__":
    main()
