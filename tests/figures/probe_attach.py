#!/usr/bin/env python3
"""A threaded program under load, attached to again and again: it ends as it would have, and its code is as it was.

Three threads compute and compare, one waits for input, a timer's signals come every 50 µs.

    tests/figures/probe_attach.py                            # 200 windows of one second
    tests/figures/probe_attach.py --times 20 --seconds 0.1
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from common import arguments, need

SOURCE = "tests/probe/attached_programs.rs"


def program(folder):
    """The program of the test suite."""
    text = open(SOURCE).read()
    parts = [re.search(rf'const {name}: &str = r#"(.*?)"#;', text, re.S).group(1) for name in ("COMMON", "THREADS")]
    with open(f"{folder}/live.c", "w") as file:
        file.write("".join(parts))
    subprocess.run(["gcc", "-O2", "-pthread", f"{folder}/live.c", "-o", f"{folder}/live", "-lrt"], check=True)
    return f"{folder}/live"


def is_restored(pid, path):
    """Whether the code in memory is what the file says."""
    content = open(path, "rb").read()
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            if line.rstrip().endswith(path) and " r-xp " in line:
                start, end = (int(word, 16) for word in line.split()[0].split("-"))
                offset = int(line.split()[2], 16)
                memory.seek(start)
                own = content[offset:offset + end - start]
                if memory.read(end - start)[:len(own)] != own:
                    return False
    return True


def main():
    """Prints what went wrong, and sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, blocks=False)
    parser.add_argument("--times", type=int, default=200, metavar="N", help="windows (default 200)")
    parser.add_argument("--seconds", type=float, default=1.0, metavar="N", help="length of each (default 1)")
    args = parser.parse_args()
    need(args.tool)
    faults, entries, stopped, probes = [], 0, [], 0
    with tempfile.TemporaryDirectory() as folder:
        path = program(folder)
        live = subprocess.Popen([path], stdout=subprocess.PIPE, text=True)
        time.sleep(0.2)
        for number in range(args.times):
            command = [args.tool, "count", "--functions", "part,tight,work,check,on,main", "--format", "json",
                       "--seconds", str(args.seconds), "-p", str(live.pid)]
            ran = subprocess.run(command, capture_output=True, text=True)
            if live.poll() is not None:
                sys.exit(f"window {number}: the program has ended: {live.returncode}")
            if ran.returncode != 0:
                faults.append(f"window {number}: {ran.stderr.strip()}")
                continue
            document = json.loads(ran.stdout)
            part = [block["count"] for block in document["blocks"] if block["function"] == "part"]
            entries += sum(part)
            probes = max(probes, document["cost"][0]["probes"])
            stopped += [int(word) for note in document["notes"] for word in re.findall(r"stopped for (\d+) ms", note)]
            if not sum(part):
                faults.append(f"window {number}: nothing was counted")
            if document["contradictions"]:
                faults.append(f"window {number}: {document['contradictions'][0]}")
            if not is_restored(live.pid, path):
                faults.append(f"window {number}: its code is not as it was")
        with open(f"/proc/{live.pid}/maps") as maps:
            mappings = len(maps.readlines())
        os.kill(live.pid, signal.SIGTERM)
        output, _ = live.communicate()
        if (live.returncode, output.strip()) != (4, "right"):
            faults.append(f"it ended with {live.returncode}: {output!r}")
    print("\n".join(faults[:20]))
    stopped.sort()
    print(f"{args.times} windows of {args.seconds} s, {probes} probes: {entries} entries of blocks; stopped for "
          f"{stopped[len(stopped) // 2]} ms (median), at most {stopped[-1]} ms; {mappings} mappings at the end; "
          f"{len(faults)} faults")
    sys.exit(len(faults) > 0)


if __name__ == "__main__":
    main()
