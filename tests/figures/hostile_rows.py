#!/usr/bin/env python3
"""Known blocks between hostile ones, in random order: does one of them get another result than in a clean batch?

Half of the rows are blocks of tests/block/known.csv, half are of tests/block/hostile.csv and random bytes. A known
row is off if it ran in the clean batches and not in this one or the other way round, if it has other pages, or if it
is `ok` and its cycles are outside of all clean ones by more than the tolerance. --clean has no hostile rows: what the
machine's own noise does.

    tests/figures/hostile_rows.py [--rows 10000] [--seed 1] [--tolerance 0.05] [--clean]
"""

import argparse
import random
from collections import Counter

from common import Batch, arguments, need, rows

KNOWN = "tests/block/known.csv"
HOSTILE = "tests/block/hostile.csv"
RAN = ("ok", "unstable")
CLEAN = 5  # clean batches


def random_bytes(draw):
    """A row that may or may not be code."""
    return draw.randbytes(draw.randint(2, 9)).hex()


def differs(row, clean, tolerance):
    """How a row's result differs from the same block's in the clean batches, in kind or time, or None."""
    if (row["status"] in RAN) not in {other["status"] in RAN for other in clean}:
        return "kind", f"{row['status']}, alone {clean[0]['status']}: {row['reason']}"
    if row["pages"] not in {other["pages"] for other in clean}:
        return "kind", f"{row['pages']} pages, alone {clean[0]['pages']}"
    alone = [float(other["cycles"]) for other in clean if other["status"] == "ok"]
    if row["status"] == "ok" and alone:
        cycles, room = float(row["cycles"]), max(tolerance * min(alone), 0.02)
        if not min(alone) - room <= cycles <= max(alone) + room:
            return "time", f"{cycles:.3f} cycles, alone {min(alone):.3f} to {max(alone):.3f}"
    return None


def main():
    """Runs both batches and prints what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, blocks=False)
    parser.add_argument("--rows", type=int, default=10000, help="rows in all (default 10000)")
    parser.add_argument("--seed", type=int, default=1, help="seed of order and random bytes (default 1)")
    parser.add_argument("--tolerance", type=float, default=0.05, help="of cycles, as a share (default 0.05)")
    parser.add_argument("--clean", action="store_true", help="no hostile rows: what noise alone does")
    args = parser.parse_args()
    need(args.tool, KNOWN, HOSTILE)
    known = [row["hex"] for row in rows(KNOWN)]
    hostile = [row["hex"] for row in rows(HOSTILE)]
    draw = random.Random(args.seed)
    options = ["--quick", *args.options.split()]
    batches = [Batch(args.tool, known, *options).rows for _ in range(CLEAN)]
    clean = {block: rows_of for block, *rows_of in zip(known, *batches)}
    mixed = [known[i % len(known)] for i in range(args.rows // 2)]
    if not args.clean:
        others = hostile + [random_bytes(draw) for _ in hostile]
        mixed += [others[i % len(others)] for i in range(args.rows - len(mixed))]
    draw.shuffle(mixed)
    batch = Batch(args.tool, mixed, *options)
    off, lines, kinds, all_known, vouched = [], Counter(), Counter(), 0, 0
    for block, row in zip(mixed, batch.rows):
        if block in clean:
            all_known += 1
            vouched += row["status"] == "ok"
            if why := differs(row, clean[block], args.tolerance):
                off.append(why[0])
                lines[f"{block}: {why[1]}"] += 1
        else:
            kinds[row["status"]] += 1
    hostile_rows = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
    print(f"{len(mixed)} rows in {batch.seconds:.0f} s; hostile: {hostile_rows or 'none'}")
    print(f"known: {all_known}, {vouched} ok; off in kind: {off.count('kind')}, in time: {off.count('time')}")
    for line, count in lines.most_common(20):
        print(f"  {count} × {line}")


if __name__ == "__main__":
    main()
