#!/usr/bin/env python3
"""Draws candidates for tests/truth/verdicts.csv from the BHive suite by a fixed seed, and prints them to be read.

    tests/truth/make/draw.py --mca COMMAND --blocks FILE [--tool PATH] [--sample 700] [--movabs 250]

The first blocks of the shuffled suite, and the first that contain a movabs (few others are bound by the front end of
Golden Cove). A candidate's throughput, measured by `tdtool block --batch --quick` (which gives no verdict), lies within
8 % of one bound (15 % for the front end), and the others well below: LLVM-MCA's busiest port, its operations over 6
(rename width), its cycles with register dependencies as the bottleneck, 0.3125 cycles for each movabs (measured: 3.2 a
cycle). For store forwarding it takes 1.4 times LLVM-MCA's cycles, and `-noalias=0` raises these as much.
"""

import argparse
import csv
import random
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

from bounds import disassembled
from verdicts import ITERATIONS, cycles, simulated

SEED = 20261122


def main():
    """Prints the candidates of each class in the order in which they were drawn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mca", required=True, metavar="COMMAND", help="llvm-mca with its -mcpu")
    parser.add_argument("--blocks", required=True, help="bhive-dev.csv")
    parser.add_argument("--tool", default="target/release/tdtool", help="the binary")
    parser.add_argument("--sample", type=int, default=700, help="blocks drawn from all (default 700)")
    parser.add_argument("--movabs", type=int, default=250, help="blocks drawn from those with a movabs (default 250)")
    args = parser.parse_args()
    with open(args.blocks, newline="") as file:
        suite = list(csv.DictReader(file))
    order = list(range(len(suite)))
    random.Random(SEED).shuffle(order)
    with_movabs = [n for n in order if re.search("4[89]b[89a-f]", suite[n]["hex"])]
    numbers = list(dict.fromkeys(order[:args.sample] + with_movabs[:args.movabs]))
    with ThreadPoolExecutor(2) as pool:
        models = list(pool.map(lambda n: model(suite[n]["hex"], args.mca), numbers))
    for number, made, measured in zip(numbers, models, throughput([suite[n]["hex"] for n in numbers], args.tool)):
        kind = made and measured and candidate(made, measured)
        if kind:
            print(f"{kind} row {number + 2} measured {measured:.2f} {made}")


def model(code, mca):
    """What LLVM-MCA says of a block, and its assembly; nothing where it refuses."""
    assembly = disassembled(code)
    try:
        text, alias = simulated(mca, assembly, "-bottleneck-analysis"), simulated(mca, assembly, "-noalias=0")
    except subprocess.CalledProcessError:
        return None
    ports = [float(one) for one in re.search(r"Resource pressure per iteration:\n.*\n(.*)\n", text).group(1).split()
             if one != "-"]
    register = re.search(r"Register Dependencies\s+\[ ([\d.]+)% \]", text)
    return {"count": assembly.count("\n"), "cycles": float(cycles(text)), "alias": float(cycles(alias)),
            "operations": int(re.search(r"Total uOps: +(\d+)", text).group(1)) / ITERATIONS,
            "ports": max(ports, default=0.0), "register": float(register.group(1)) if register else 0.0,
            "movabs": assembly.count("movabs"), "assembly": "; ".join(" ".join(one.split())
                                                                     for one in assembly.strip().split("\n"))}


def throughput(blocks, tool):
    """Measured cycles of each block, nothing where it is not `ok`."""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/in.csv", "w") as file:
            file.write("hex\n" + "\n".join(blocks) + "\n")
        subprocess.run([tool, "block", "--batch", f"{folder}/in.csv", "-o", f"{folder}/out.csv", "--quick"], check=True,
                       stderr=subprocess.DEVNULL)
        with open(f"{folder}/out.csv", newline="") as file:
            return [float(row["cycles"]) if row["status"] == "ok" else None for row in csv.DictReader(file)]


def candidate(made, measured):
    """The class that a block is a candidate for."""
    def near(bound, share=0.08):
        return bound > 0 and abs(measured / bound - 1) <= share
    few, ports = made["count"] / 6, made["ports"]
    width = max(few, made["operations"] / 6)
    front = made["movabs"] * 0.3125 + (made["count"] - made["movabs"]) / 6
    if made["movabs"] and near(front, 0.15) and ports < 0.85 * front and width < 0.85 * front:
        return "front-end"
    if made["count"] >= 5 and near(width) and near(few) and ports < 0.8 * measured and made["cycles"] < 1.1 * width:
        return "issue-width"
    if near(ports) and made["operations"] / 6 < 0.75 * measured and made["cycles"] < 1.12 * ports:
        return "ports"
    if near(made["cycles"]) and made["register"] > 40 and max(ports, width) < 0.75 * measured:
        return "dependency"
    if measured > max(1.4 * made["cycles"], 3.5) and made["alias"] > 1.4 * made["cycles"]:
        return "store-forwarding"
    return None


if __name__ == "__main__":
    main()
