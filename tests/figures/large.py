#!/usr/bin/env python3
"""Time and peak memory of `tdtool report FILE` beside `perf report` on a large perf.data file, which is made from a
small one: its samples are repeated, each time later.

    perf record -F 20000 -g -e cpu-clock -o small.data -- PROGRAM
    tests/figures/large.py small.data --samples 12000000
"""

import argparse
import os
import struct
import subprocess
import sys
import tempfile
import time

from common import TOOL, need

SAMPLE, FINISHED_ROUND = 9, 68
IP, TID, TIME, IDENTIFIER = 1 << 0, 1 << 1, 1 << 2, 1 << 16
HEADER, FEATURE_BITS = 104, 72  # struct perf_file_header


def records(data):
    """Kind, start and end of each record."""
    at = 0
    while at + 8 <= len(data):
        kind, _, size = struct.unpack_from("<IHH", data, at)
        yield kind, at, at + size
        at += size


def repeat(small, large, samples):
    """Writes `small` with its samples repeated up to `samples`; returns their number."""
    with open(small, "rb") as file:
        whole = file.read()
    attributes, data_at, data_size = struct.unpack_from("<16xQ", whole, 8)[0], *struct.unpack_from("<QQ", whole, 40)
    sample_type = struct.unpack_from("<Q", whole, attributes + 24)[0]
    if not sample_type & TIME:
        sys.exit(f"error: the samples of {small} have no time")
    place = 8 + 8 * sum(bool(sample_type & field) for field in (IDENTIFIER, IP, TID))
    data = whole[data_at:data_at + data_size]
    body, places = bytearray(), []
    for kind, start, end in records(data):
        if kind == SAMPLE:
            places.append(len(body) + place)
        if kind in (SAMPLE, FINISHED_ROUND):
            body += data[start:end]
    times = [struct.unpack_from("<Q", body, at)[0] for at in places]
    length = max(times) - min(times) + 1
    rounds = max(1, -(-samples // len(times)) - 1)
    with open(large, "wb") as file:
        file.write(whole[:data_at + data_size])
        for number in range(1, rounds + 1):
            for at, moment in zip(places, times):
                struct.pack_into("<Q", body, at, moment + number * length)
            file.write(body)
        added = rounds * len(body)
        # Feature sections lie after the records, and have offsets in the file.
        bits = int.from_bytes(whole[FEATURE_BITS:HEADER], "little").bit_count()
        table = data_at + data_size
        for at in range(table, table + 16 * bits, 16):
            offset, size = struct.unpack_from("<QQ", whole, at)
            file.write(struct.pack("<QQ", offset + added, size))
        file.write(whole[table + 16 * bits:])
        file.seek(48)
        file.write(struct.pack("<Q", data_size + added))
    return (rounds + 1) * len(times)


def measured(command):
    """Seconds and peak memory in MB of a command."""
    started = time.monotonic()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"error: {' '.join(command)} ended with {child.returncode}")
    return time.monotonic() - started, usage.ru_maxrss * 1024 / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("small", help="a recording of perf with times, in file mode")
    parser.add_argument("--samples", type=int, default=12_000_000, help="samples of the large one (default 12000000)")
    parser.add_argument("--tool", default=TOOL, help=f"the binary (default {TOOL})")
    parser.add_argument("--options", default="", help="more options for `tdtool report`")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each; the fastest counts (default 1)")
    parser.add_argument("--no-perf", action="store_true", help="without perf")
    parser.add_argument("-o", "--output", help="where the large recording is kept; an existing one is used")
    args = parser.parse_args()
    need(args.small, args.tool)
    with tempfile.TemporaryDirectory() as folder:
        large = args.output or f"{folder}/large.data"
        if not os.path.exists(large):
            print(f"{repeat(args.small, large, args.samples)} samples, {os.path.getsize(large) / 1e6:.0f} MB")
        commands = [("tdtool", [args.tool, "report", large, *args.options.split()])]
        if not args.no_perf:
            commands.append(("perf", ["perf", "report", "--stdio", "-f", "--no-children", "-g", "none", "-i", large]))
        # By turns: what else the machine does disturbs both.
        runs = [[measured(command) for _, command in commands] for _ in range(args.rounds)]
        fastest = [min(of_one) for of_one in zip(*runs)]
        for (name, _), (seconds, memory) in zip(commands, fastest):
            print(f"{name:8}{seconds:8.1f} s {memory:8.0f} MB {seconds / fastest[-1][0]:8.2f} of the last")


if __name__ == "__main__":
    main()
