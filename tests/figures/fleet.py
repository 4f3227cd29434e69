#!/usr/bin/env python3
"""A simulated fleet for docs/guide/fleet: N hosts for one day, made from real windows of this machine.

Binaries, functions and their noise from window to window are those of reports of the whole system; shares of nodes and
their errors those of estimates of built-in programs. As from `tdtool`, counted nodes of binaries are of level 1, and
estimated ones have no build-ids. Planted, unless --nothing: a version of one binary takes 12 % more CPU time and 5
points more Backend Bound (Memory Bound); one processor is 20 % slower. `--check` runs the queries over fleets with and
without them, seed after seed: what is planted must be found, and a false alarm in at most 5 % of the seeds.

  tests/figures/fleet.py --hosts 1000 --out /tmp/fleet --engines duckdb,datafusion,spark1,spark2
  tests/figures/fleet.py --check --seeds 40
"""

import argparse
import collections
import csv
import hashlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
QUERIES = os.path.join(ROOT, "docs", "guide", "fleet")
TABLES = ["windows", "nodes", "functions", "blocks", "counts"]
DAY = 1796083200000  # 2026-12-01
HERTZ = 99
LENGTH = 10.0
# Instance type, processor, table, CPUs, cost per hour.
TYPES = [
    ("c7.2xlarge", "Sapphire Rapids", "spr", 8, 0.357),
    ("c8.2xlarge", "Emerald Rapids", "emr", 8, 0.374),
    ("a7.2xlarge", "EPYC Genoa", "zen4", 8, 0.321),
    ("m6.4xlarge", "Ice Lake", "icx", 16, 0.768),
]
SLOW, SLOWER = 2, 1.20
REGRESSED, MORE, POINTS = 1, 1.12, 0.05
ESTIMATES = ["pointer-chase", "random-branches", "matmul-naive", "matmul-blocked"]


def tdtool(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"{words}: {done.stderr}")


class Real:
    """What is measured on this machine, through `tdtool export`."""

    def __init__(self, args):
        os.makedirs(args.real, exist_ok=True)
        system = [os.path.join(args.real, f"system-{i}.json") for i in range(6)]
        for path in system:
            if not os.path.exists(path):
                tdtool(args.measurer, "report", "-a", "--duration", "2", "--format", "json", "--output", path)
        estimates = [os.path.join(args.real, f"estimate-{name}.json") for name in ESTIMATES]
        for path, name in zip(estimates, ESTIMATES):
            if not os.path.exists(path):
                run = ["--", args.measurer, "workload", "run", name]
                tdtool(args.measurer, "report", "--estimate", "--format", "json", "--output", path, *run)
        with tempfile.TemporaryDirectory() as folder:
            for i, path in enumerate(system + estimates):
                words = ["--host", "real", "--start", str(DAY + i)]
                tdtool(args.tdtool, "export", "--parquet", folder, *words, path)
            place = os.path.join("date=2026-12-01", "host=real", "part-0.parquet")
            read = {table: pq.ParquetFile(os.path.join(folder, table, place)) for table in TABLES}
            self.schemas = {table: file.schema_arrow for table, file in read.items()}
            self.formats = {table: format_of(file) for table, file in read.items()}
            self.functions(read["functions"].read().to_pylist(), len(system))
            self.nodes(read["nodes"].read().to_pylist(), len(system))

    def functions(self, rows, windows):
        rows = [row for row in rows if row["start_ms"] < DAY + windows and "halt" not in (row["name"] or "")]
        modules = collections.Counter()
        for row in rows:
            modules[row["module"]] += row["samples"]
        self.modules = [module for module, _ in modules.most_common(6)]
        totals = [sum(row["samples"] for row in rows if row["start_ms"] == DAY + i) for i in range(windows)]
        self.rates, self.noise, self.names = [], [], []
        for module in self.modules:
            own = [row for row in rows if row["module"] == module]
            by_window = np.array([sum(r["samples"] for r in own if r["start_ms"] == DAY + i) for i in range(windows)])
            self.noise.append(float(np.clip(np.std(np.log((by_window + 5) / (np.array(totals) + 5))), 0.05, 0.6)))
            self.rates.append(max(modules[module] / sum(totals), 0.02) * 0.4)
            names = collections.Counter()
            for row in own:
                names[row["name"]] += row["samples"]
            best = names.most_common(4)
            whole = sum(count for _, count in best)
            self.names.append([(name, count / whole) for name, count in best])

    def nodes(self, rows, windows):
        trees = collections.defaultdict(list)
        for row in rows:
            known = row["share"] is not None and row["low"] is not None
            if row["start_ms"] >= DAY + windows and row["module"] is None and known and row["level"] <= 2:
                trees[row["start_ms"]].append(row)
        trees = [tree for tree in trees.values() if len(tree) >= 6]
        self.trees = [trees[i % len(trees)] for i in range(len(self.modules))]


def format_of(file):
    """Names, types and repetition of the columns, as the format has them."""
    columns = [file.schema.column(i) for i in range(len(file.schema))]
    return [(c.name, c.physical_type, str(c.logical_type), c.max_definition_level) for c in columns]


class Fleet:
    def __init__(self, real, out, hosts, seed, planted, windows=288):
        self.real, self.out, self.planted, self.windows = real, out, planted, windows
        self.rng = np.random.default_rng(seed)
        self.rows = collections.Counter()
        for host in range(hosts):
            self.host(host)

    def build(self, module, version):
        return hashlib.sha1(f"{module}{version}".encode()).hexdigest()

    def host(self, number):
        rng, real, count = self.rng, self.real, self.windows
        kind = int(rng.integers(len(TYPES)))
        instance, processor, uarch, cpus, cost = TYPES[kind]
        name = f"host{number:05}"
        starts = DAY + np.arange(count) * (86_400_000 // count)
        key = {"schema": 1, "host": name}
        hours = np.arange(count) / count * 24
        load = (1 + 0.4 * np.sin((hours - 9) / 24 * 2 * np.pi)) * np.exp(rng.normal(0, 0.15))
        source = "counted" if rng.random() < 0.4 else "estimated"
        tables = {table: [] for table in TABLES}
        busy = np.zeros(count)
        for m, module in enumerate(real.modules):
            is_new = (rng.random() < 0.5) & (hours >= 2)
            effect = np.exp(rng.normal(0, 0.05)) * (SLOWER if self.planted and kind == SLOW else 1)
            hurt = is_new & (self.planted and m == REGRESSED)
            noise = np.exp(rng.normal(0, real.noise[m], count))
            used = real.rates[m] * cpus * LENGTH * load * effect * noise * np.where(hurt, MORE, 1.0)
            used = np.minimum(used, cpus * LENGTH / 2)
            busy += used
            builds = np.where(is_new, self.build(module, 2), self.build(module, 1))
            owner = dict(key, module=module)
            self.code(tables, owner, starts, builds, used, m)
            self.tree(tables, owner, starts, builds, used, m, source, hurt)
        for event, value in [("task_clock_ms", busy * 1e3), ("context_switches", rng.poisson(900, count) * 1.0)]:
            tables["counts"].append(dict(key, start_ms=starts, event=event, value=value, source="counted"))
        labels = {"instance_type": instance, "cost_per_hour": str(cost), "region": "eu-1", "service": "web"}
        window = dict(key, start_ms=starts, start=starts, seconds=LENGTH, busy_seconds=busy, lost=0, uarch=uarch)
        window.update(processor=processor, kernel="6.1", cpus=cpus, tool="0.1.0", labels=json.dumps(labels), notes="")
        window.update({name: labels[name] for name in ["region", "service", "instance_type"]}, cost_per_hour=cost)
        tables["windows"].append(window)
        for table, parts in tables.items():
            self.write(table, name, parts)

    def code(self, tables, owner, starts, builds, used, m):
        for f, (name, share) in enumerate(self.real.names[m]):
            samples = self.rng.poisson(used * share * HERTZ)
            at = samples > 0
            row = dict(owner, start_ms=starts[at], build_id=builds[at], function_start=hex(0x1000 * (f + 1)))
            row.update(samples=samples[at])
            tables["functions"].append(dict(row, name=name, event="cpu-clock", cpu_seconds=samples[at] / HERTZ))
            begin, end = hex(0x1000 * (f + 1) + 64), hex(0x1000 * (f + 1) + 96)
            tables["blocks"].append(dict(row, block_start=begin, block_end=end))

    def tree(self, tables, owner, starts, builds, used, m, source, hurt):
        rng, count = self.rng, len(starts)
        for node in self.real.trees[m]:
            if source == "counted" and node["level"] > 1:
                continue
            width = (node["high"] - node["low"]) / 2
            # An estimate's error is of the host's code, a count's of the window.
            host_error = rng.normal(0, min(max(width / 2, 0.005), 0.03) if source == "estimated" else 0.005)
            share = node["share"] * 0.9 + 0.03 + host_error + rng.normal(0, 0.015, count)
            moved = {"Memory_Bound": POINTS, "Backend_Bound": POINTS, "Retiring": -POINTS}.get(node["node"], 0.0)
            share = share + np.where(hurt, moved, 0.0)
            error = width if source == "estimated" else 0.02
            build_id = builds if source == "counted" else None
            row = dict(owner, start_ms=starts, build_id=build_id, node=node["node"], parent=node["parent"])
            row.update(level=node["level"], share=share, low=share - error, high=share + error, cpu_seconds=used)
            tables["nodes"].append(dict(row, source=source))

    def column(self, field, parts, lengths):
        values = [part.get(field.name) for part in parts]
        if all(isinstance(value, np.ndarray) for value in values):
            whole = np.concatenate(values)
            whole = whole.tolist() if whole.dtype.kind == "U" else whole
            return pa.array(whole).cast(field.type)
        if any(isinstance(value, np.ndarray) for value in values):
            pieces = [v if isinstance(v, np.ndarray) else np.full(n, np.nan) for v, n in zip(values, lengths)]
            return pa.array(np.concatenate(pieces), field.type, from_pandas=True)
        return pa.array(values, field.type).take(pa.array(np.repeat(np.arange(len(values)), lengths)))

    def write(self, table, host, parts):
        schema = self.real.schemas[table]
        lengths = [len(part["start_ms"]) for part in parts]
        columns = [self.column(field, parts, lengths) for field in schema]
        folder = os.path.join(self.out, table, "date=2026-12-01", f"host={host}")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "part-0.parquet")
        whole = pa.Table.from_arrays(columns, schema=schema)
        self.rows[table] += whole.num_rows
        pq.write_table(whole, path, compression="snappy", store_schema=False, version="2.6")
        if host.endswith("00000"):
            found = format_of(pq.ParquetFile(path))
            assert found == self.real.formats[table], f"{table}: {found} is not {self.real.formats[table]}"


def query(folder, names, engine="duckdb"):
    """Rows of each query, and its seconds; engine spark1 and spark2 have so many workers."""
    words = ["--engine", engine.rstrip("12"), "--times", folder]
    if engine.startswith("spark"):
        words += ["--processes", "--workers", engine[-1]]
    files = [os.path.join(QUERIES, name + ".sql") for name in names]
    begin = time.monotonic()
    runner = [sys.executable, os.path.join(QUERIES, "query.py")]
    done = subprocess.run([*runner, *words, *files], capture_output=True, text=True, timeout=3000)
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1:], 0.0
    seconds = {line.split()[1]: float(line.split()[2]) for line in done.stderr.splitlines() if ".sql" in line}
    return done.stdout, seconds, time.monotonic() - begin


def dicts(text):
    return list(csv.DictReader(io.StringIO(text)))


def judge(real, folder, planted):
    """What was missed, and false alarms, by query."""
    missed, alarms = [], collections.Counter()
    module = real.modules[REGRESSED]
    found = {(r["module"], r["metric"]) for r in dicts(query(folder, ["regressions"])[0]) if r["verdict"] != "same"}
    true = {(module, "cpu"), (module, "Backend_Bound")} if planted else set()
    missed += [("regressions", one) for one in true if one not in found]
    alarms["regressions"] += bool(found - true)
    slow = {r["instance_type"] for r in dicts(query(folder, ["processors"])[0]) if r["verdict"] == "slower"}
    true = {TYPES[SLOW][0]} if planted else set()
    missed += [("processors", one) for one in true - slow]
    alarms["processors"] += bool(slow - true)
    alarms["sources"] += any(r["verdict"] == "differs" for r in dicts(query(folder, ["sources"])[0]))
    return missed, alarms


def check(args, real):
    for planted in [True, False]:
        missed, alarms, begin = [], collections.Counter(), time.monotonic()
        for seed in range(args.seeds):
            with tempfile.TemporaryDirectory(dir=args.scratch) as folder:
                Fleet(real, folder, args.hosts, 1000 * planted + seed, planted, args.windows)
                more, false = judge(real, folder, planted)
                missed += more
                alarms.update(false)
                print(planted, seed, more, dict(false), file=sys.stderr, flush=True)
        seconds = time.monotonic() - begin
        print(f"planted={planted} seeds={args.seeds} hosts={args.hosts} windows={args.windows}: "
              f"missed {len(missed)} {missed[:3]}, seeds with a false alarm {dict(alarms)} ({seconds:.0f} s)", flush=True)


def size(folder):
    files = [os.path.join(top, name) for top, _, names in os.walk(folder) for name in names]
    return len(files), sum(os.path.getsize(file) for file in files)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tdtool", default=os.path.join(ROOT, "target", "debug", "tdtool"), help="with the feature parquet")
    parser.add_argument("--measurer", default=os.path.join(ROOT, "target", "release", "tdtool"), help="makes the reports")
    parser.add_argument("--real", default="/tmp/tdtool-fleet-real", help="keeps the reports of this machine")
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--windows", type=int, default=288, help="windows of a day")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nothing", action="store_true", help="plant nothing")
    parser.add_argument("--out", help="keep the fleet here")
    parser.add_argument("--engines", default="duckdb", help="duckdb, datafusion, spark1, spark2, ballista")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--scratch", help="folder for fleets of --check")
    args = parser.parse_args()
    real = Real(args)
    if args.check:
        return check(args, real)
    out = args.out or tempfile.mkdtemp()
    begin = time.monotonic()
    if not os.path.isdir(os.path.join(out, "windows")):
        fleet = Fleet(real, out, args.hosts, args.seed, not args.nothing, args.windows)
        files, size_in_bytes = size(out)
        print(f"{args.hosts} hosts: {sum(fleet.rows.values())} rows {dict(fleet.rows)}, {files} files, "
              f"{size_in_bytes} bytes, made in {time.monotonic() - begin:.0f} s", flush=True)
    names = sorted(name[:-4] for name in os.listdir(QUERIES) if name.endswith(".sql"))
    answers = {}
    for engine in args.engines.split(","):
        text, seconds, whole = query(out, names, engine)
        print(f"{engine}: {seconds}, with its start {whole:.1f} s", flush=True)
        if text is not None:
            answers[engine] = text
    if len(set(answers.values())) > 1:
        first, *others = answers.items()
        for name, text in others:
            lines = zip(first[1].splitlines(), text.splitlines())
            differ = [(a, b) for a, b in lines if a != b]
            print(f"{first[0]} and {name} differ in {len(differ)} lines: {differ[:3]}")
    elif len(answers) > 1:
        print(f"the same answers from {', '.join(answers)}")
    print(f"missed, false alarms: {judge(real, out, not args.nothing)}")


if __name__ == "__main__":
    main()
