#!/usr/bin/env python3
"""Kills `tdtool record` (SIGKILL) at random moments of short runs, and reads what each left: every session must be
readable up to its last chunk. One that has nothing yet says so.

    tests/figures/kills.py --kills 1000
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

from common import TOOL, need

# Busy for a second at most, and gone then, although its recorder is killed.
COMMAND = ["timeout", "-s", "KILL", "1", "sh", "-c", "while :; do :; done"]
# What a session says that has nothing yet.
EMPTY = ("the file is empty", "ends inside its header: nothing recorded", "the recording ended before its first interval was over")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", default=TOOL, help=f"the binary (default {TOOL})")
    parser.add_argument("--kills", type=int, default=1000, help="recorders that are killed (default 1000)")
    parser.add_argument("--longest", type=float, default=0.3, help="latest moment, in seconds (default 0.3)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments (default 1)")
    args = parser.parse_args()
    need(args.tool)
    moments = random.Random(args.seed)
    found = {"with samples": 0, "without samples": 0, "nothing yet": 0, "no file": 0, "unreadable": 0}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.kills):
            session = f"{folder}/{number}.tds"
            recorder = subprocess.Popen([args.tool, "record", "--buffer", "4", "-F", "5000", "-o", session, "--", *COMMAND],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            time.sleep(moments.uniform(0, args.longest))
            recorder.kill()
            recorder.wait()
            found[left(args.tool, session)] += 1
            try:
                os.killpg(recorder.pid, signal.SIGKILL)  # The command goes on.
            except ProcessLookupError:
                pass
            if os.path.exists(session):
                os.remove(session)
    print(", ".join(f"{count} {what}" for what, count in found.items()))
    sys.exit(1 if found["unreadable"] else 0)


def left(tool, session):
    """What a killed recorder has left."""
    if not os.path.exists(session):
        return "no file"
    ran = subprocess.run([tool, "report", session], capture_output=True, text=True)
    if ran.returncode == 0:
        return "with samples" if " samples of " in ran.stdout else "without samples"
    if any(text in ran.stderr for text in EMPTY):
        return "nothing yet"
    print(f"{session}: {ran.stderr}", file=sys.stderr)
    return "unreadable"


if __name__ == "__main__":
    main()
