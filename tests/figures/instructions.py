#!/usr/bin/env python3
"""Latency and throughput of `tdtool microbench` against InstLatx64's table of the same core.

    tests/figures/instructions.py --core zen3 [--tdtool PATH] [--table CSV] [--sample N] [--seed N]
                                  [--kept FILE] [--time-limit SECONDS] [--output CSV]

Rows of the table (`extension,form,latency,throughput`) that name one instruction form, or two in one chain, are drawn by
the seed, measured, and compared: a value agrees within 5 % or half of the table's last digit. Every other value is
given the first reason that a check of its own confirms; what no check confirms is listed as unexplained.
Measurements are kept in FILE: after the time limit, rerun to resume.
"""

import argparse
import collections
import csv
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time

import instlat
import instlat_reasons

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLES = ROOT.parent / "shared/processors/instructions"
WITHIN = 0.05
NO_CHAIN = "no chain through its operands"


class Bench:
    """Documents of tdtool by command, measured once and kept."""

    def __init__(self, tdtool, path, limit):
        self.tdtool, self.path = tdtool, path
        self.end = time.monotonic() + limit
        self.kept = {}
        if path and os.path.exists(path):
            for line in open(path):
                command, document = json.loads(line)
                self.kept[tuple(command)] = document

    def run(self, *command, key=()):
        """The document of a command, ok or the third; None where time is up; text where it is refused."""
        full, command = command, key or command
        if command in self.kept:
            return self.kept[command]
        if time.monotonic() > self.end:
            return None
        for _ in range(3):
            done = subprocess.run([self.tdtool, *full, "--format", "json"], capture_output=True, text=True)
            document = json.loads(done.stdout) if done.stdout else done.stderr.strip()
            if not done.stdout or settled(document):
                break
        self.kept[command] = document
        if self.path:
            with open(self.path, "a") as file:
                file.write(json.dumps([command, document]) + "\n")
        return document


def settled(document):
    """Whether another try would change nothing; a chain whose links are no whole cycles stays one."""
    parts = document.get("latencies", [document])
    return all(part["status"] != "unstable" or part.get("link") is not None for part in parts)


class Value:
    """One value of a row: the table's, ours, or why there is none."""

    def __init__(self, what, written, ours=None, refused=None, note=""):
        self.what, self.table, self.ours, self.refused, self.note = what, float(written), ours, refused, note
        self.reason = None
        self.half_digit = 0.5 * 10 ** -len(written.partition(".")[2])

    @property
    def agrees(self):
        """Within 5 % or half of the last digit."""
        if self.ours is None:
            return False
        return abs(self.ours - self.table) <= WITHIN * self.table + self.half_digit


def throughput(bench, forms, parts, table):
    """Cycles for these forms with independent operands; an idiom keeps its one register."""
    if parts[0].idiom:
        block = bench.run("block", "--asm", instlat_reasons.text(parts[0], [0] * len(parts[0].operands)))
        if not isinstance(block, dict):
            return block and Value("throughput", table, refused=block)
        document = bench.run("microbench", "--from", block["block"]["hex"])
    else:
        document = bench.run("microbench", ", ".join(form["code"] for form in forms))
    if document is None or isinstance(document, str):
        return document and Value("throughput", table, refused=document)
    cycles = document["cycles"]
    bound = document["bounded_by"]
    note = "bound by " + ", ".join(bound["through"]) if bound and bound["binding"] else ""
    if document["status"] != "ok" or cycles is None:
        return Value("throughput", table, refused=f"{document['status']}: {document['reason']}")
    # InstLatx64 breaks dependencies through implicit registers.
    cycles = document.get("after_moves") or cycles
    return Value("throughput", table, cycles["cycles"], note=note)


def ways(bench, form):
    """Latencies of a form; text where it is refused."""
    document = bench.run("microbench", "latency", form)
    return document["latencies"] if isinstance(document, dict) else document


def wanted(found, one, to):
    """Ways that InstLatx64's chain takes: from the address where it loads, else through the registers that come back."""
    between = lambda source, result: [way for way in found if (way["input"], way["output"]) == (source, result)]
    loads = between("address", "register")
    if any(re.fullmatch(r"m\d+", o) for o in one.operands):
        return between("memory", "memory") or loads
    if to:
        return [way for way in between("register", "register") if way["to"] == to]
    if len(set(one.numbers)) > 1:
        # Two registers: the chain is through the operands that are the destination.
        own = {f"operand {i}" for i, n in enumerate(one.numbers) if n == one.numbers[0]}
        return [way for way in between("register", "register") if way["from"] in own and way["to"] == "operand 0"]
    return (between("register", "register") or loads or between("flags", "flags") or between("flags", "register"))


def latency_single(bench, form, one, to, table):
    """The latency of one instruction in a chain of its own."""
    if one.idiom:
        return Value("latency", table, refused=NO_CHAIN)
    found = ways(bench, form["code"])
    if found is None or isinstance(found, str):
        return found and Value("latency", table, refused=found)
    taken = wanted(found, one, to)
    if not taken:
        return Value("latency", table, refused=NO_CHAIN)
    return longest(taken, "link", table)


def longest(taken, key, table):
    """The longest of these ways by a field of theirs."""
    known = [way[key] for way in taken if way[key] is not None]
    if not known:
        return Value("latency", table, refused="; ".join(sorted({str(way["reason"]) for way in taken})))
    return Value("latency", table, max(known))


def latency_stored(bench, form, table):
    """Store and reload together."""
    found = ways(bench, form["code"])
    if found is None or isinstance(found, str):
        return found and Value("latency", table, refused=found)
    return longest([way for way in found if way["output"] == "memory"], "link", table)


def latency_pair(bench, forms, table):
    """Two in one chain, apart: of ways between register files the shares, whose sum is that of the chain."""
    total = 0.0
    for form in forms:
        found = ways(bench, form["code"])
        if found is None or isinstance(found, str):
            return found and Value("latency", table, refused=found)
        taken = [way for way in found if way["output"] == "register" and way["input"] == "register"]
        crossing = [way for way in taken if way["share"] is not None]
        value = longest(crossing or taken, "share" if crossing else "cycles", table)
        if value.ours is None:
            return value
        total += value.ours
    return Value("latency", table, total)


class Row:
    """A row of the table with the forms that it names."""

    def __init__(self, row, catalog):
        self.row, self.name = row, " ".join(row["form"].split())
        self.reading = instlat.reading(row["form"], row["extension"])
        self.forms = catalog.forms_of(self.reading)
        self.values = []

    @property
    def numbered(self):
        """Whether the table numbers the registers of its operands."""
        return any(number for part in self.reading.parts for number in part.numbers)

    @property
    def refused(self):
        """Why tdtool does not measure its forms."""
        return next((form["reason"] for form in self.forms if form["reason"]), None)

    def measure(self, bench):
        """Whether all of it is measured."""
        row, kind = self.row, self.reading.kind
        if row["latency"]:
            table = row["latency"]
            if kind == "single":
                value = latency_single(bench, self.forms[0], self.reading.parts[0], self.reading.to, table)
            elif kind == "pair":
                value = latency_pair(bench, self.forms, table)
            else:
                value = latency_stored(bench, self.forms[0], table)
            self.values.append(value)
        if row["throughput"]:
            self.values.append(throughput(bench, self.forms, self.reading.parts, row["throughput"]))
        return all(self.values)


def readable(path, catalog):
    """Rows that name forms, and how many do not, by reason."""
    rows, unread = [], collections.Counter()
    for row in csv.DictReader(open(path, newline="")):
        try:
            rows.append(Row(row, catalog))
        except instlat.Unread as reason:
            unread[str(reason)] += 1
    return rows, unread


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tdtool", default=str(ROOT / "target/release/tdtool"))
    parser.add_argument("--core", default="zen3", help="name of the table (default zen3)")
    parser.add_argument("--table", help="CSV of the table (default: that of the core in ../shared/processors)")
    parser.add_argument("--sample", type=int, default=320, help="rows drawn; 0 is all (default 320)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (default 1)")
    parser.add_argument("--kept", help="file for the measurements; rerun to resume")
    parser.add_argument("--time-limit", type=float, default=3600, help="seconds (default 3600)")
    parser.add_argument("--output", help="CSV file for all values")
    return parser.parse_args()


def main():
    args = options()
    table = args.table or TABLES / f"{args.core}.csv"
    if not os.path.exists(table):
        sys.exit(f"error: no table {table}\ntry:   --table CSV")
    listed = subprocess.run([args.tdtool, "microbench", "list", "--refused", "--format", "json"],
                            capture_output=True, text=True, check=True).stdout
    catalog = instlat.Catalog(json.loads(listed)["forms"])
    rows, unread = readable(table, catalog)
    refused = [row for row in rows if row.refused]
    rows = [row for row in rows if not row.refused]
    if args.sample and args.sample < len(rows):
        rows = random.Random(args.seed).sample(rows, args.sample)
    bench = Bench(args.tdtool, args.kept, args.time_limit)
    done = [row for row in rows if row.measure(bench)]
    print(f"{len(done)} of {len(rows)} rows measured; {len(refused)} refused by microbench, {sum(unread.values())} not read")
    judge(done, instlat_reasons.Lab(bench))
    for what, counts in (("refused", collections.Counter(row.refused for row in refused)), ("not read", unread)):
        print(f"\n{what}:")
        for reason, count in counts.most_common():
            print(f"  {count} {reason}")
    if args.output:
        write(done, args.output)


def judge(rows, lab):
    """Prints the shares that agree, and the reason of every other value."""
    reasons = collections.defaultdict(list)
    for row in rows:
        for value in row.values:
            if not value.agrees:
                value.reason = instlat_reasons.reason(lab, row, value)
                reasons[value.reason].append((row, value))
    for name, kinds in (("all rows", ("single", "pair", "stored")), ("single instructions", ("single",))):
        print(f"{name}:")
        for what in ("latency", "throughput"):
            shares(what, [value for row in rows if row.reading.kind in kinds for value in row.values if value.what == what])
    for reason in sorted(reasons, key=lambda reason: (reason is None, str(reason))):
        print(f"\n{len(reasons[reason])} {reason or 'UNEXPLAINED'}")
        for row, value in reasons[reason][:None if reason is None else 6]:
            ours = "none" if value.ours is None else f"{value.ours:.3f}"
            print(f"  {row.name}: {value.what} {value.table} in the table, {ours} here {value.note} {value.refused or ''}")


def shares(what, values):
    """Prints how many agree."""
    compared = [value for value in values if value.refused != NO_CHAIN]
    agree = sum(value.agrees for value in compared)
    others = [value for value in compared if not value.agrees]
    again = sum(value.reason in instlat_reasons.REPRODUCED for value in others)
    explained = sum(value.reason is not None for value in others) - again
    count = max(len(compared), 1)
    print(f"  {what}: {agree} of {len(compared)} agree ({agree / count:.1%}), {again} more with the table's operands "
          f"({(agree + again) / count:.1%}), {explained} differ for another confirmed reason, "
          f"{len(others) - again - explained} unexplained; {len(values) - len(compared)} of no chain not compared")


def write(rows, path):
    """All values as CSV."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["extension", "form", "tdtool", "what", "table", "tdtool_cycles", "agrees", "reason", "refused"])
        for row in rows:
            names = ", ".join(form["form"] for form in row.forms)
            for value in row.values:
                ours = "" if value.ours is None else f"{value.ours:.3f}"
                writer.writerow([row.row["extension"], row.name, names, value.what, value.table, ours, value.agrees,
                                 value.reason or "", value.refused or ""])


if __name__ == "__main__":
    main()
