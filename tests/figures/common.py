"""What the figure scripts share: running the tool on a list of blocks, reading its CSV, printing a table.

Python 3 standard library only. Everything runs from the repository root.
"""

import csv
import os
import random
import subprocess
import sys
import tempfile
import time

TOOL = "target/release/tdtool"
BLOCKS = "../shared/blocks/bhive-dev.csv"


def arguments(parser, blocks=True, sample=None):
    """The options that every script has."""
    parser.add_argument("--tool", default=TOOL, help=f"the binary (default {TOOL})")
    if blocks:
        parser.add_argument("--blocks", default=BLOCKS, help=f"CSV of blocks (default {BLOCKS})")
        parser.add_argument("--seed", type=int, default=1, help="seed of the sample (default 1)")
    if sample is not None:
        parser.add_argument("--sample", type=int, default=sample, metavar="N",
                            help=f"blocks drawn; 0 is all of them (default {sample})")
    parser.add_argument("--options", default="", metavar="TEXT",
                        help="more options for `tdtool block`, such as '--cpu 1'")


def need(*paths):
    """Ends the script where an input is missing."""
    missing = [path for path in paths if not os.path.exists(path)]
    if missing:
        sys.exit(f"error: missing {', '.join(missing)}\n"
                 "try: cargo build --release, and run from the repository root")


def rows(path):
    """A CSV file as a list of dictionaries."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def draw(path, count, seed, keep=lambda row: True):
    """`count` blocks of a CSV, in their order there, drawn by a fixed seed; 0 is all."""
    all_of_them = [row for row in rows(path) if keep(row)]
    if count and count < len(all_of_them):
        chosen = sorted(random.Random(seed).sample(range(len(all_of_them)), count))
        all_of_them = [all_of_them[i] for i in chosen]
    return [row["hex"] for row in all_of_them]


class Batch:
    """One process of the tool over a list of blocks: its rows, and how long it took."""

    def __init__(self, tool, blocks, *options):
        with tempfile.TemporaryDirectory() as folder:
            source, target = f"{folder}/blocks.csv", f"{folder}/out.csv"
            with open(source, "w") as file:
                file.write("hex\n" + "\n".join(blocks) + "\n")
            command = [tool, "block", "--batch", source, "-o", target, *options]
            start = time.monotonic()
            done = subprocess.run(command, capture_output=True, text=True)
            self.seconds = time.monotonic() - start
            if done.returncode != 0:
                sys.exit(f"error: {' '.join(command)}\n{done.stderr.strip()}")
            self.rows = rows(target)
        if len(self.rows) != len(blocks):
            sys.exit(f"error: {len(self.rows)} rows for {len(blocks)} blocks")

    def share(self, *statuses):
        """Share of the rows with one of these statuses."""
        return sum(row["status"] in statuses for row in self.rows) / len(self.rows)


def append(path, row, columns):
    """One row at the end of a CSV; the header where there is no file yet."""
    new = not os.path.exists(path)
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


def number(text):
    """A field as a number; nothing is None."""
    return float(text) if text else None


def cycles(row):
    """The headline of a row that is `ok`, else None."""
    return number(row["cycles"]) if row["status"] == "ok" else None


def median(values):
    """The middle one; the mean of the two in the middle."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def percent(share, digits=2):
    """A share for people."""
    return f"{100 * share:.{digits}f} %"


def table(header, body):
    """Prints a Markdown table."""
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for line in body:
        print("| " + " | ".join(str(cell) for cell in line) + " |")
