#!/usr/bin/env python3
"""A server's throughput with and without an attached estimate, in turn: redis-server under redis-benchmark.

  cargo build --release && python3 tests/figures/serve.py

Debian: apt-get install redis-server. A second of the server's processor time is right beside other programs, too.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

from common import arguments, need, table

SECONDS = 10


def look(server, socket):
    """Time, commands served and processor time until now; the list stays short."""
    ask = ["redis-cli", "-s", socket]
    subprocess.run([*ask, "ltrim", "mylist", "0", "100"], check=True, stdout=subprocess.DEVNULL)
    stats = subprocess.run([*ask, "info", "stats"], check=True, capture_output=True, text=True).stdout
    served = next(line.split(":")[1] for line in stats.splitlines() if line.startswith("total_commands_processed:"))
    with open(f"/proc/{server}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return time.time(), int(served), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, blocks=False)
    parser.add_argument("--rounds", type=int, default=3, help="with and without, each (default 3)")
    args = parser.parse_args()
    need(args.tool)
    body = []
    with tempfile.TemporaryDirectory() as folder:
        socket = f"{folder}/s"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", socket, "--save", ""], **quiet)
        while not os.path.exists(socket):
            time.sleep(0.1)
        load = subprocess.Popen(["redis-benchmark", "-s", socket, "-n", "2000000000", "-P", "16", "-t", "lpush"], **quiet)
        time.sleep(1)
        for number in range(2 * args.rounds):
            before = look(server.pid, socket)
            if number % 2:
                subprocess.run([args.tool, "report", "--estimate", "-p", str(server.pid)], check=True, **quiet)
            else:
                time.sleep(SECONDS)
            wall, served, used = (after - then for after, then in zip(look(server.pid, socket), before))
            name = "with" if number % 2 else "without"
            body.append([name, f"{wall:.1f}", f"{served / wall:.0f}", f"{served / used:.0f}"])
            print(*body[-1], file=sys.stderr, flush=True)
        load.kill()
        server.kill()
    table(["estimate", "s", "commands/s", "commands/s of processor time"], body)


if __name__ == "__main__":
    main()
