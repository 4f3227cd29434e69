"""Event names of a table -> raw encodings and simpmu's rates file; expected node values.

The encoder is written anew here, from the vendors' manuals, so that it checks the program's.
"""

import csv
import io
import pathlib
import subprocess
import tomllib
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Table:
    """A table of the project with the rates chosen for its events."""

    def __init__(self, name, rates_file):
        path = next((ROOT / "events").glob(f"*/{name}.toml"))
        data = tomllib.loads(path.read_text())
        self.name, self.clocks = name, data["clocks"]
        self.events = {n: e for n, e in data["events"].items() if e.get("pmu", "core") == "core"}
        self.amd = data["vendor"] == "AuthenticAMD"
        self.chosen, self.by_hand = read_rates(rates_file)

    def config(self, name):
        """(config, config1) as in Intel SDM vol. 3 ch. 20 and AMD's PPR, PERF_CTL."""
        e = self.events[name]
        if "metric" in e:
            return 0x8000 + 0x100 * e["metric"], 0
        code, umask = e.get("code", 0), e.get("umask", 0)
        c = (code & 0xFF) | (umask & 0xFF) << 8 | e.get("edge", 0) << 18 | e.get("any", 0) << 21
        c |= e.get("inv", 0) << 23 | e.get("cmask", 0) << 24
        c |= code >> 8 << 32 if self.amd else 0
        return c, e.get("value", 0) if "extra" in e else 0

    def mask(self, name):
        """The counters that can count it, as simpmu writes them; 0: no constraint."""
        e = self.events[name]
        if "metric" in e or "counters" not in e:
            return 0
        general = sum(1 << n for n in e["counters"])
        return general | (1 << (32 + e["fixed"]) if "fixed" in e else 0)

    def expected(self, tdtool, rates):
        """Values of all nodes: by hand where the rates file has them, else `tables eval` on the rates."""
        values = {"#SMT_ON": 0, "#DURATION_MS": 1000, "#SOCKETS": 1, "#CORES_PER_SOCKET": 2}
        slots = next((rates[self.config(n)][0] for n in self.events if self.config(n) == (0x400, 0)), 0)
        for name, e in self.events.items():
            rate = rates[self.config(name)][0]
            if "metric" in e:
                rate = rate * slots / 255
            # The module takes a tenth of all counts to be kernel mode.
            rate *= {"user": 0.9, "kernel": 0.1}.get(e.get("ring"), 1)
            values[name] = rate * 1e6
        counts = io.StringIO()
        out = csv.writer(counts)
        out.writerow(["trial", "event", "value"])
        out.writerows([0, k, v] for k, v in values.items())
        path = pathlib.Path(f"/tmp/simpmu-{self.name}-{id(self)}.csv")
        path.write_text(counts.getvalue())
        done = subprocess.run(
            [tdtool, "tables", "eval", self.name, "--counts", path], capture_output=True, text=True
        )
        path.unlink()
        rows = csv.DictReader(io.StringIO(done.stdout))
        nodes = {r["node"]: float(r["value"]) for r in rows if r["value"] not in ("", "nan")}
        for node, value in self.by_hand.items():
            if abs(nodes.get(node, 9) - value) > 1e-6:
                raise SystemExit(f"{self.name} {node}: by hand {value}, `tables eval` {nodes.get(node)}")
        return nodes | self.by_hand


def read_rates(path):
    """The two kinds of lines of a rates file here: `EVENT RATE` and `= NODE VALUE`."""
    chosen, expected = {}, {}
    for line in path.read_text().splitlines():
        words = line.split("#")[0].split() if not line.startswith("=") else line.split()
        if words[:1] == ["="]:
            expected[words[1]] = float(words[2])
        elif words:
            chosen[words[0]] = float(words[1])
    return chosen, expected


def rates_text(tables):
    """simpmu's file for all tables of a machine, and {(config, config1): (rate, mask, name)}.

    Events without a chosen rate get one of their own; two names of one encoding share it.
    """
    merged = {}
    for table in tables:
        for name in table.chosen:
            if name not in table.events:
                raise SystemExit(f"{table.name} has no event {name}")
            entry = (table.chosen[name], table.mask(name), name)
            merged.setdefault(table.config(name), entry)
    for table in tables:
        for name in sorted(table.events):
            filler = 40 + zlib.crc32(name.encode()) % 400
            merged.setdefault(table.config(name), (filler, table.mask(name), name))
    several = {c for c, c1 in merged if c1}
    lines = []
    for (config, config1), (rate, mask, name) in sorted(merged.items()):
        at = f"{config:#x}:{config1:#x}" if config in several else f"{config:#x}"
        mask = mask if len(tables) == 1 else 0
        lines.append(f"{at} {rate:g} {mask:#x}  # {name}")
    return "\n".join(lines) + "\n", merged
