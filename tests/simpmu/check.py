#!/usr/bin/env python3
"""Runs tdtool in a guest with a simulated PMU and compares its trees with what the rates give.

Usage: tests/simpmu/check.py [--tdtool PATH] [--simpmu DIR] [--work DIR] [--keep DIR] [GUEST[/CASE]...]

See README.md beside this file. Ends with status 1 if a value is off, a node is missing that
should be there, or an event was opened that the rates file does not list.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import blocks
import functions
from tables import ROOT, Table, rates_text

HERE = pathlib.Path(__file__).resolve().parent

# Shell functions of the guest. `report` writes CASE.json; $W N works for N seconds.
PRELUDE = """
T={tdtool} OUT={out}
case_() {{ C=$1; echo "== $C"; }}
report() {{ "$T" report --format json --output "$OUT/$C.json" "$@" > "$OUT/$C.out" 2> "$OUT/$C.err"; echo $? > "$OUT/$C.rc"; }}
W="$T workload run dependent-adds --seconds"
block() {{ "$T" block --format json --no-loop --no-sentinel --clock pmu "$@" > "$OUT/$C.json" 2> "$OUT/$C.err"; }}
"""

# GUEST: processor, module parameters, tables; then CASE: (shell, what to expect).
# `level`: every node down to it must be there; `mux`: groups take turns.
ALL = {"level": 1, "mux": False}
# `block`: a document of the block profiler; see blocks.py. Its guests count time by instructions, one
# nanosecond each, so that cycles are known as well. QEMU before 9.1 takes a user's `iretq` for the
# kernel's and kills with SMAP whoever executes one: the processors have no SMAP.
BLOCK = {"block": True, "instructions": 1}
BLOCK_CLOCK = {"smp": "1", "qemu": "-icount shift=0,sleep=off"}
BLOCKS = {
    "add": ("block 4801d8", BLOCK),
    "add4": ("block 4801d84801d84801d84801d8", BLOCK | {"instructions": 4}),
}

GUESTS = {
    "icx": {
        "cpu": "Icelake-Server,model=106,stepping=6",
        "module": "topdown=1 counters=8",
        "tables": ["icx"],
        "cases": {
            "level1": ("report --level 1 -- $W 1", ALL | {"bottleneck": "Backend_Bound"}),
            "level2": ("report --level 2 -- $W 2", {"level": 2, "mux": True, "bottleneck": "Core_Bound"}),
            "level3": ("report --level 3 -- $W 4", {"level": 3, "mux": True}),
            "level2-apart": ("report --level 2 --no-multiplex -- $W 0.5", {"level": 2}),
            "level3-apart": ("report --level 3 --no-multiplex -- $W 0.5", {"level": 3}),
            "children": ('report --level 1 -- sh -c "$W 0.5 & $W 0.5; wait"', ALL),
            "pid": ("$W 4 > /dev/null & sleep 1; report --level 1 -p $! --duration 1; wait", ALL),
            "all": ("report --level 1 -a -- $W 1", ALL),
            "cpu": ("taskset 1 $W 4 > /dev/null & sleep 1; report --level 1 -C 0 --duration 1; wait", ALL),
            "cpus-apart": ("report --level 1 -a --per-thread -- $W 1", ALL),
            "cgroup": (
                "mkdir -p /sys/fs/cgroup/t; (echo 0 > /sys/fs/cgroup/t/cgroup.procs; exec $W 4 > /dev/null) & "
                "sleep 1; report --level 1 --cgroup t --duration 1; wait",
                ALL,
            ),
            "interval": ("report --level 1 --interval 500 -- $W 2", ALL | {"intervals": 3}),
            "repeat": ("report --level 1 -r 3 -- $W 0.5", ALL),
            "drilldown": ("report --drilldown -- $W 0.5", ALL | {"under": "Backend_Bound"}),
            # An ordinary user at perf_event_paranoid 2: a tenth of every count is the kernel's.
            "user-only": (
                "echo 2 > /proc/sys/kernel/perf_event_paranoid; "
                'setpriv --reuid=65534 --clear-groups "$T" report --level 1 --format json -- $W 1 > $OUT/$C.json; '
                "echo 3 > /proc/sys/kernel/perf_event_paranoid",
                ALL | {"note": "user mode only"},
            ),
            # Somebody else holds three of the eight general counters.
            "watchdog": (
                "echo 7 > /sys/module/simpmu/parameters/busy; report --level 2 -- $W 3; "
                "echo 0 > /sys/module/simpmu/parameters/busy",
                {"level": 2, "mux": True, "note": "other programs hold counters"},
            ),
            "per-function": (functions.SHELL, {"functions": True}),
        },
    },
    # Two threads a core: level 1 and what the short report adds must still need no turns.
    "icx-smt": {
        "cpu": "Icelake-Server,model=106,stepping=6",
        "smp": "4,cores=2,threads=2",
        "module": "topdown=1 counters=8",
        "tables": ["icx"],
        "rates": ["icx"],
        "cases": {"level1": ("report --level 1 -- $W 1", ALL | {"whole": True})},
    },
    # Four counters where the table has eight: groups are too large and are split.
    "icx-small": {
        "cpu": "Icelake-Server,model=106,stepping=6",
        "module": "topdown=1 counters=4",
        "tables": ["icx"],
        "rates": ["icx"],
        "cases": {
            "too-large": ("report --level 2 -- $W 3", {"level": 2, "mux": True, "note": "too large"}),
        },
    },
    "skl": {
        "cpu": "max,vendor=GenuineIntel,family=6,model=94,stepping=3",
        "module": "counters=8",
        "tables": ["skl"],
        "cases": {
            "level1": ("report --level 1 -- $W 1", ALL),
            "level2": ("report --level 2 -- $W 2", {"level": 2, "mux": True}),
            "level2-apart": ("report --level 2 --no-multiplex -- $W 0.5", {"level": 2}),
            # Another profiler takes turns with us: six of the eight counters of every CPU.
            "shared": (
                "perf stat -a -e '{r010d,r010e,r019c,r01b1,r02c2,r00c4}' sleep 60 > /dev/null 2>&1 & "
                "$W 60 > /dev/null & sleep 2; report --level 1 -a --duration 2; kill %1 %2",
                {"level": 1, "mux": True, "unsplit": True},
            ),
            # A CPU leaves in the middle.
            "offline": (
                "taskset 1 $W 60 > /dev/null & P=$!; (sleep 6; echo 0 > /sys/devices/system/cpu/cpu1/online) & "
                "report --level 1 -a --duration 12; kill $P; echo 1 > /sys/devices/system/cpu/cpu1/online",
                ALL | {"note": "went offline"},
            ),
        },
    },
    "zen4": {
        "cpu": "max,vendor=AuthenticAMD,family=25,model=17,stepping=1",
        "module": "amd=1 counters=6",
        "tables": ["zen4"],
        "cases": {
            "level1": ("report --level 1 -- $W 1", ALL),
            "level2": ("report --level 2 -- $W 3", {"level": 2, "mux": True}),
            "level2-apart": ("report --level 2 --no-multiplex -- $W 0.5", {"level": 2}),
        },
    },
    "adl": {
        "cpu": "max,vendor=GenuineIntel,family=6,model=151,stepping=2",
        "smp": "4",
        "module": "hybrid=1 topdown=2 counters=8 atom_counters=6",
        "tables": ["adl", "adl-e"],
        "cases": {
            "both-kinds": ('report --level 2 -- sh -c "taskset 1 $W 1; taskset 8 $W 1"', {"level": 2, "mux": True}),
            "all": ('report --level 1 -a -- sh -c "taskset 1 $W 1; taskset 8 $W 1"', ALL),
            "drilldown": ('report --drilldown -- sh -c "taskset 1 $W 0.5; taskset 8 $W 0.5"', ALL | {"under": "Backend_Bound"}),
        },
    },
    "icx-block": BLOCK_CLOCK
    | {
        "cpu": "Icelake-Server,model=106,stepping=6,smap=off",
        "module": "topdown=1 counters=8",
        "tables": ["icx"],
        "cases": BLOCKS
        | {
            # An ordinary user may count the worker, too; a load, so that a page is mapped.
            "user": (
                "echo 2 > /proc/sys/kernel/perf_event_paranoid; "
                'setpriv --reuid=65534 --clear-groups "$T" block --format json --no-loop --no-sentinel --clock pmu '
                "488b00 > $OUT/$C.json 2> $OUT/$C.err; echo 3 > /proc/sys/kernel/perf_event_paranoid",
                BLOCK,
            ),
            # Somebody else holds three of the eight general counters: groups are split.
            "watchdog": (
                "echo 7 > /sys/module/simpmu/parameters/busy; block 4801d8; echo 0 > /sys/module/simpmu/parameters/busy",
                BLOCK,
            ),
            "sentinel": (
                '"$T" block --format json --clock pmu --budget 500 4801d8 > $OUT/$C.json 2> $OUT/$C.err',
                BLOCK | {"refused": True},
            ),
        },
    },
    "zen4-block": BLOCK_CLOCK
    | {
        "cpu": "max,vendor=AuthenticAMD,family=25,model=17,stepping=1,smap=off",
        "module": "amd=1 counters=6",
        "tables": ["zen4"],
        "cases": BLOCKS,
    },
    # Several kinds of core: the P cores unless another CPU is named. Several CPUs and time counted by
    # instructions do not go together in QEMU, so cycles are not known here.
    "adl-block": {
        "cpu": "max,vendor=GenuineIntel,family=6,model=151,stepping=2,smap=off",
        "smp": "4",
        "module": "hybrid=1 topdown=2 counters=8 atom_counters=6",
        "tables": ["adl", "adl-e"],
        "cases": {
            "p": ("block 4801d8", BLOCK | {"instructions": None}),
            "e": ("block 4801d8 --cpu 3", BLOCK | {"instructions": None, "table": 1}),
        },
    },
}


def boot(name, guest, options, out):
    """One boot of the guest with all chosen cases; the rates in force."""
    tables = [Table(t, HERE / f"{t}.rates") for t in guest["tables"]]
    text, rates = rates_text(tables)
    (out / "rates").write_text(text)
    if any(want.get("functions") for _, want in guest["cases"].values()):
        functions.prepare(HERE, out, tables[0])
    script = PRELUDE.format(tdtool=options.tdtool, out=out)
    for case, (shell, _) in guest["cases"].items():
        if options.wanted(name, case):
            script += f"case_ {case}\n{shell}\n"
    script += f"cat $SIMPMU_RATES > {out}/opened\n"
    (out / "guest.sh").write_text(script)
    command = [options.simpmu / "run.sh", "-n", "-k", "no_timer_check", "-d", options.work, "-r", out / "rates", "-c", guest["cpu"]]
    command += ["-m", guest["module"], "-s", guest.get("smp", "2"), "-w", out, "-t", "900", "-q", guest.get("qemu", "")]
    done = subprocess.run([*command, "--", "sh", out / "guest.sh"], capture_output=True, text=True)
    if done.returncode:
        print(done.stdout, done.stderr, file=sys.stderr)
        raise SystemExit(f"the guest {name} failed with status {done.returncode}")
    return tables, rates


# The report prints tenths of a percent; half of that is no deviation.
RESOLUTION = 5e-4


class Check:
    """Counts what is off and prints one line a case."""

    def __init__(self):
        self.bad = 0

    def fail(self, what):
        self.bad += 1
        print(f"  FAIL {what}")

    def case(self, label, documents, tables, expected, want):
        mux, worst, inside, outside, several = want.get("mux"), 0.0, 0, [], len(tables) > 1
        for document in documents:
            seen = set()
            for node in document["nodes"]:
                if node["level"] > want["level"]:
                    continue
                table = node["core"] if several else tables[0].name
                right = expected[table].get(node["id"])
                seen.add((table, node["id"]))
                if node["value"] is None or right is None:
                    # Undefined in both is agreement.
                    if right is not None and not self.idle(node, want):
                        self.fail(f"{label} {table} {node['id']}: {node['missing']}, not {right:.4f}")
                    continue
                off = abs(node["value"] - right)
                relative = off / abs(right) if abs(right) > 0.01 else off / 0.01
                worst = max(worst, relative)
                # A split node without turns has its terms from runs of their own.
                turns = node["split"] or mux and (node["running"] or 1) < 0.99
                if relative > (0.03 if turns else 0.01):
                    self.fail(f"{label} {table} {node['id']}: {node['value']:.5f}, not {right:.5f}")
                if turns and node["error"] is not None:
                    if off <= node["error"] + RESOLUTION:
                        inside += 1
                    else:
                        outside.append(f"{node['id']} off {off:.2g} ± {node['error']:.2g}")
            for table in tables:
                missing = {n for n in table.by_hand if (table.name, n) not in seen} - self.deeper(document, want)
                if missing and not several and want["level"] > 1:
                    self.fail(f"{label}: no row for {', '.join(sorted(missing))}")
        self.verdict(label, documents[-1], want)
        # A 95 % interval misses now and then.
        if len(outside) > 0.1 * (inside + len(outside)):
            self.fail(f"{label}: {len(outside)} of {inside + len(outside)} outside their ±: {'; '.join(outside[:5])}")
        note = want.get("note")
        if note and not any(note in n for d in documents for n in d.get("notes", [])):
            self.fail(f"{label}: no note that {note}")
        if len(documents) < want.get("intervals", 1):
            self.fail(f"{label}: {len(documents)} documents")
        within = f", {inside} inside their ±, {len(outside)} outside" if mux else ""
        print(f"{label}: {len(documents)} document(s), worst {100 * worst:.2f} %{within}")

    def verdict(self, label, document, want):
        """The bottleneck the rates give by hand; no group taking turns where none has to."""
        rows = {(n["core"], n["id"]): n for n in document["nodes"]}
        marked = [n for n in document["nodes"] if n["bottleneck"]]
        if "bottleneck" in want and [n["id"] for n in marked] != [want["bottleneck"]]:
            self.fail(f"{label}: the bottleneck is {[n['id'] for n in marked]}, not {want['bottleneck']}")
        if "under" in want:
            roots = set()
            for node in marked:
                while node["parent"]:
                    node = rows[(node["core"], node["parent"])]
                roots.add(node["id"])
            if roots != {want["under"]}:
                self.fail(f"{label}: the bottleneck lies under {sorted(roots)}, not {want['under']}")
        split = [n["id"] for n in document["nodes"] if n["split"] or "were split" in " ".join(document["notes"])]
        if want.get("unsplit") and split:
            self.fail(f"{label}: groups were split for {', '.join(split)}")
        turns = [n["id"] for n in document["nodes"] if (n["running"] or 1) < 0.99]
        if want.get("whole") and turns:
            self.fail(f"{label}: groups took turns for {', '.join(turns)}")

    @staticmethod
    def idle(node, want):
        """With whole CPUs apart, one of them may have had nothing to do."""
        return node["scope"] is not None or node["interval"] is not None

    @staticmethod
    def deeper(document, want):
        return set() if want["level"] > 2 else {"Microcode_Sequencer"}


def documents(path):
    """One JSON document, or one a line."""
    text = path.read_text()
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tdtool", default=ROOT / "target/release/tdtool", type=pathlib.Path)
    parser.add_argument("--simpmu", default=ROOT / "../shared/simpmu", type=pathlib.Path)
    parser.add_argument("--work", default=os.environ.get("SIMPMU_WORK"), type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path, help="keep the guests' files here")
    parser.add_argument("only", nargs="*")
    options = parser.parse_args()
    options.tdtool, options.simpmu = options.tdtool.resolve(), options.simpmu.resolve()
    options.work = options.work or options.simpmu / "work"
    if not (options.work / "kver").exists():
        print(f"skipped: no guest in {options.work}; {options.simpmu}/setup.sh {options.work} makes one")
        return 0
    wanted = options.only
    options.wanted = lambda g, c=None: (
        not wanted or g in wanted or any(w.startswith(f"{g}/") if c is None else w == f"{g}/{c}" for w in wanted)
    )
    check = Check()
    for name, guest in GUESTS.items():
        if not options.wanted(name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(options.keep or folder).resolve() / name
            out.mkdir(parents=True, exist_ok=True)
            tables, rates = boot(name, guest, options, out)
            expected = {t.name: t.expected(options.tdtool, rates) for t in tables}
            for case, (_, want) in guest["cases"].items():
                if not options.wanted(name, case):
                    continue
                if want.get("block"):
                    table = tables[want.get("table", 0)]
                    blocks.check(check.fail, f"{name}/{case}", out, case, want, table, rates, expected[table.name])
                    continue
                if want.get("functions"):
                    functions.check(check.fail, f"{name}/{case}", out, case, expected[tables[0].name])
                    continue
                path = out / f"{case}.json"
                if not path.exists() or not path.read_text().strip():
                    check.fail(f"{name}/{case}: no report: {(out / f'{case}.err').read_text()}")
                    continue
                check.case(f"{name}/{case}", documents(path), tables, expected, want)
            opened(check, name, rates, out)
    return 1 if check.bad else 0


def opened(check, name, rates, out):
    """Every encoding that was opened must be one the rates file lists."""
    listed = {c for c, _ in rates}
    used = 0
    for line in (out / "opened").read_text().splitlines():
        config, count = line.split()[0].split(":")[0], int(line.split()[-1])
        if count:
            used += 1
            if int(config, 16) not in listed:
                check.fail(f"{name}: opened {line}, which no event of the table has")
    print(f"{name}: {used} encodings opened, all of the table")


if __name__ == "__main__":
    sys.exit(main())
