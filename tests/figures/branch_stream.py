#!/usr/bin/env python3
"""Time and memory of `tdtool branches`, beside `perf script`, on a recording made long.

    tests/figures/branch_stream.py ../shared/recordings/autofdo/propeller_sample_1.perfdata1 \
        --binary ../shared/recordings/autofdo/propeller_sample_1.bin --megabytes 1024

Makes a perf.data file whose samples are those of the given one, repeated with later times until it has that
many megabytes, and runs both tools on both files: the best of --runs wall-clock times, and the peak of
resident memory (wait4).
"""

import argparse
import os
import struct
import tempfile
import time

import common

ID, IP, TID, TIME = 1 << 16, 1, 2, 4
SAMPLE = 9


def repeat(source, target, megabytes):
    """Writes `source` with its samples repeated. File mode, one layout of samples, little endian."""
    data = open(source, "rb").read()
    header = list(struct.unpack_from("<8s12Q", data))
    attrs_at, (data_at, data_size) = header[3], header[5:7]
    sample_type, = struct.unpack_from("<Q", data, attrs_at + 24)
    offset = 8 + 8 * sum(1 for bit in (ID, IP, TID) if sample_type & bit)
    records, at = [], data_at
    while at < data_at + data_size:
        kind, _, size = struct.unpack_from("<IHH", data, at)
        if kind == SAMPLE:
            records.append(data[at:at + size])
        at += size
    times = [struct.unpack_from("<Q", r, offset)[0] for r in records]
    span = max(times) - min(times) + 1000
    samples, places, at = bytearray(b"".join(records)), [], 0
    for record in records:
        places.append(at + offset)
        at += len(record)
    copies = max(1, megabytes * (1 << 20) // len(samples))
    features_at = data_at + data_size
    features = data[features_at:]
    bits = header[9:13]
    number = sum(bin(word).count("1") for word in bits)
    table = [list(struct.unpack_from("<QQ", features, 16 * n)) for n in range(number)]
    added = copies * len(samples)
    header[6] = data_size + added
    with open(target, "wb") as out:
        out.write(struct.pack("<8s12Q", *header))
        out.write(data[104:features_at])
        for copy in range(1, copies + 1):
            for place, when in zip(places, times):
                struct.pack_into("<Q", samples, place, when + copy * span)
            out.write(samples)
        for place, size in table:
            out.write(struct.pack("<QQ", place + added, size))
        out.write(features[16 * number:])
    return (copies + 1) * len(records)


def run(command):
    """Seconds and peak KiB of a command whose output goes nowhere."""
    begin = time.monotonic()
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.execvp(command[0], command)
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"error: {' '.join(command)} failed")
    return time.monotonic() - begin, usage.ru_maxrss


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("recording")
    parser.add_argument("--binary", default=None)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--runs", type=int, default=3, help="of the short file (default 3)")
    parser.add_argument("--skip-perf", action="store_true", help="perf script takes minutes on the long one")
    parser.add_argument("--folder", default=None, help="for the long file (default: a temporary one)")
    common.arguments(parser, blocks=False)
    options = parser.parse_args()
    common.need(options.tool, options.recording)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        long = f"{folder}/long.perf.data"
        samples = repeat(options.recording, long, options.megabytes)
        print(f"{os.path.getsize(long) / 1e9:.2f} GB, {samples} samples")
        for path, runs in [(options.recording, options.runs), (long, 1)]:
            tdtool = [options.tool, "branches", path, "--format", "json"]
            if options.binary:
                tdtool += ["--binary", options.binary]
            commands = [("tdtool branches", tdtool)]
            if path != long or not options.skip_perf:
                commands.append(("perf script", ["perf", "script", "-i", path, "-F", "ip,brstack"]))
            for name, command in commands:
                found = [run(command) for _ in range(runs)]
                seconds, kib = min(s for s, _ in found), max(k for _, k in found)
                print(f"{os.path.basename(path)}: {name}: {seconds:.2f} s, {kib / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
