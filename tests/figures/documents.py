#!/usr/bin/env python3
"""Keeps the documents of some 60 commands, and compares those of two builds.

    documents.py inputs DIR --program target/release/tdtool     # sessions and reports to read, once
    documents.py keep DIR OUT --program target/release/tdtool   # run every command, keep what it writes
    documents.py compare OUT_BEFORE OUT_AFTER                   # say what differs

Run it from the repository root. Documents over recorded input must be equal, number by number; a
live measurement must have the same keys with values of the same type. Keys that only the later
build writes are added, not different; texts (notes, titles, errors) may be reworded and are counted.
Recordings of ../shared are left out where it is absent.
"""
import argparse
import csv
import io
import json
import os
import pathlib
import subprocess
import sys

FIXTURES = pathlib.Path("tests/fixtures")
SHARED = pathlib.Path("../shared")


def commands(inputs):
    """(name, arguments, form, what must be equal) of every command."""
    def add(name, form, equal, *args):
        rows.append((name, [str(a) for a in args], form, equal))

    rows = []
    imports = sorted((FIXTURES / "import").glob("perf-*")) + sorted((FIXTURES / "import").glob("zen4-*"))
    for file in imports:
        add(f"report-{file.name}", "json", "values", "report", file, "--format", "json")
    two = FIXTURES / "import/zen4-two-intervals.csv"
    add("report-csv", "csv", "values", "report", two, "--format", "csv")
    add("report-intervals", "json", "values", "report", two, "-I", "--format", "json")
    add("report-nodes", "json", "values", "report", two, "--nodes", "backend_bound*", "--format", "json")
    add("report-uarch", "json", "values", "report", two, "--uarch", "zen4", "-l", "2", "--format", "json")
    for uarch in ["skl", "icx", "spr", "adl-e", "srf", "zen3", "zen4", "zen5", "paper"]:
        add(f"plan-{uarch}", "text", "values", "tables", "plan", uarch, "--level", "3")
    for vector in sorted((FIXTURES / "vectors").glob("*-smt0")):
        uarch = vector.name.removesuffix("-smt0")
        add(f"eval-{uarch}", "csv", "values", "tables", "eval", uarch, "--counts", vector / "events.csv")
    add("tables-check", "text", "shape", "tables", "check")
    add("tables-list", "text", "shape", "tables", "list")
    for name, block in BLOCKS.items():
        for uarch in ["emr", "zen3"]:
            add(f"deps-{name}-{uarch}", "json", "values", "deps", block, "--uarch", uarch, "--format", "json")
    marked = FIXTURES / "block/marked.o"
    add("deps-marked", "json", "values", "deps", f"{marked}", "--uarch", "emr", "--format", "json")
    add("deps-batch", "csv", "values", "deps", "--batch", inputs / "blocks.csv", "--uarch", "zen3")
    add("deps-dot", "text", "shape", "deps", BLOCKS["update"], "--uarch", "emr", "--format", "dot")
    add("session", "json", "values", "report", inputs / "run.tds", "--format", "json")
    add("session-samples", "json", "values", "report", inputs / "samples.tds", "--format", "json")
    add("session-csv", "csv", "values", "report", inputs / "run.tds", "--format", "csv")
    add("session-folded", "text", "values", "report", inputs / "samples.tds", "--folded", "-")
    add("diff", "json", "values", "diff", inputs / "a.json", inputs / "b.json", "--format", "json")
    add("doctor", "json", "shape", "doctor", "--format", "json")
    add("workloads", "text", "shape", "workload", "list")
    add("live", "json", "shape", "report", "--format", "json", "--", "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
    for name, block in BLOCKS.items():
        add(f"block-{name}", "json", "shape", "block", block, "--format", "json")
    add("block-csv", "csv", "header", "block", BLOCKS["chain"], "--format", "csv")
    add("block-batch", "csv", "header", "block", "--batch", inputs / "blocks.csv", "--quick")
    add("microbench-latency", "json", "shape", "microbench", "latency", "IMUL_GPR64i64_GPR64i64", "--format", "json")
    add("microbench-throughput", "csv", "header", "microbench", "throughput", "IMUL_GPR64i64_GPR64i64", "--format", "csv")
    add("microbench-list", "text", "shape", "microbench", "list", "imul")
    if SHARED.exists():
        for file in ["quipper/perf.data.weight_struct", "gematria/simple_x86_elf_object.perf.data",
                     "autofdo/propeller_sample_1.perfdata1", "quipper/perf.data.branch-4.14",
                     "quipper/perf.data.hybrid_topology", "quipper/perf.data.lost_samples-4.4"]:
            path = SHARED / "recordings" / file
            add(f"perfdata-{path.name}", "json", "values", "report", path, "--format", "json", "--symfs", path.parent)
        add("perfstat-zen4", "json", "values", "report", SHARED / "recordings/perf-stat/zen4-pipeline.csv", "--format", "json")
    return rows


BLOCKS = {
    "chain": "480fafc3" "4801c1",                      # imul rax,rbx; add rcx,rax
    "update": "480307" "480fafc3" "488907",            # add rax,[rdi]; imul rax,rbx; mov [rdi],rax
    "load": "488b00",                                  # mov rax,[rax]
    "vector": "c5f458c1" "c5ec59d3",                   # vaddps ymm0,ymm1,ymm1; vmulps ymm2,ymm2,ymm3
    "copy": "8a06" "8807" "48ffc6" "48ffc7" "48ffc9" "75f2",  # a byte copy with its back edge
}


def inputs(folder, program):
    """What the commands above read: made once, by the earlier build."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "blocks.csv").write_text("\n".join(BLOCKS.values()) + "\n")
    loop = ["sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"]
    run = lambda *args: subprocess.run([program, *map(str, args)], check=True, stdout=subprocess.DEVNULL)
    run("record", "--no-samples", "-o", folder / "run.tds", "--", *loop)
    run("record", "-g", "-o", folder / "samples.tds", "--", *loop)
    two = FIXTURES / "import/zen4-two-intervals.csv"
    for name, level in [("a", 1), ("b", 2)]:
        run("report", two, "-l", level, "--format", "json", "--output", folder / f"{name}.json")


def keep(folder, out, program):
    out.mkdir(parents=True, exist_ok=True)
    for name, args, _, _ in commands(folder):
        if args[:2] in (["block", "--batch"], ["deps", "--batch"]):
            args = [*args, "-o", str(out / name)]
            (out / name).unlink(missing_ok=True)
        done = subprocess.run([program, *args], capture_output=True, env={**os.environ, "NO_COLOR": "1"})
        if "-o" not in args:
            (out / name).write_bytes(done.stdout)
        (out / f"{name}.status").write_text(f"{done.returncode}\n")
    print(f"{len(commands(folder))} documents in {out}")


class Difference:
    def __init__(self):
        self.values, self.added, self.texts = [], 0, 0


def compare_json(before, after, equal, path, found):
    if isinstance(before, dict) and isinstance(after, dict):
        found.added += len(after.keys() - before.keys())
        for key in before:
            if key in after:
                compare_json(before[key], after[key], equal, f"{path}.{key}", found)
            elif before[key] is not None and equal == "values":
                found.values.append(f"{path}.{key} is gone")
    elif isinstance(before, list) and isinstance(after, list):
        # Notes are text: more of them take nothing away.
        notes = path.endswith(".notes") and len(before) <= len(after)
        found.texts += len(after) - len(before) if notes else 0
        if equal == "values" and len(before) != len(after) and not notes:
            found.values.append(f"{path}: {len(before)} entries, now {len(after)}")
        for i, (b, a) in enumerate(zip(before, after)):
            compare_json(b, a, equal, f"{path}[{i}]", found)
    elif isinstance(before, str) and isinstance(after, str):
        found.texts += before != after
    elif equal == "values" and before != after:
        found.values.append(f"{path}: {before} is now {after}")
    elif equal == "shape" and None not in (before, after) and is_kind(before) != is_kind(after):
        found.values.append(f"{path}: {before!r} is now {after!r}")


def is_kind(value):
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


def compare_text(form, equal, before, after, found):
    if form == "csv":
        rows = [list(csv.reader(io.StringIO(text))) for text in (before, after)]
        if not rows[0] or not rows[1]:
            return found.values.append("is empty") if rows[0] != rows[1] else None
        if rows[1][0][: len(rows[0][0])] != rows[0][0]:
            found.values.append(f"columns {rows[0][0]} are now {rows[1][0]}")
        elif equal == "values":
            width = len(rows[0][0])
            for n, (b, a) in enumerate(zip(*rows)):
                if b != a[:width]:
                    found.values.append(f"row {n}: {b} is now {a}")
            if len(rows[0]) != len(rows[1]):
                found.values.append(f"{len(rows[0])} rows, now {len(rows[1])}")
        found.added += max(0, len(rows[1][0]) - len(rows[0][0]))
    elif before != after:
        if equal == "values":
            found.values.append("differs")
        found.texts += 1


def compare(inputs_folder, before, after):
    wrong = 0
    for name, _, form, equal in commands(inputs_folder):
        found = Difference()
        old, new = before / name, after / name
        if not old.exists() or not new.exists():
            print(f"{name}: absent")
            wrong += 1
            continue
        status = [(folder / f"{name}.status").read_text() for folder in (before, after)]
        if status[0] != status[1]:
            found.values.append(f"exit status {status[0].strip()} is now {status[1].strip()}")
        texts = [old.read_text(errors="replace"), new.read_text(errors="replace")]
        if form == "json":
            documents = [[json.loads(line) for line in documents_of(text)] for text in texts]
            compare_json(*documents, equal, "", found)
        else:
            compare_text(form, equal, *texts, found)
        wrong += bool(found.values)
        print(f"{'DIFFERS' if found.values else 'equal  '} {name} ({found.added} keys added, {found.texts} texts reworded)")
        for line in found.values[:8]:
            print(f"        {line[:300]}")
    print(f"{wrong} of {len(commands(inputs_folder))} documents differ")
    return 1 if wrong else 0


def documents_of(text):
    """One JSON document, or one a line."""
    if not text.strip():
        return []
    try:
        json.loads(text)
        return [text]
    except json.JSONDecodeError:
        return [line for line in text.splitlines() if line.strip()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["inputs", "keep", "compare"])
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--program", default="target/release/tdtool")
    parser.add_argument("--inputs", type=pathlib.Path, default=pathlib.Path("."))
    asked = parser.parse_args()
    if asked.verb == "inputs":
        return inputs(asked.folders[0], asked.program)
    if asked.verb == "keep":
        return keep(*asked.folders, asked.program)
    return compare(asked.inputs, *asked.folders)


if __name__ == "__main__":
    sys.exit(main())
