#!/usr/bin/env python3
"""How often a processor is identified, by dumps of CPUID as they are, behind other models and with leaves hidden.

python3 tests/figures/identify.py [TDTOOL]        reads ../shared/processors/cpuid.csv
"""
import collections
import csv
import json
import os
import subprocess
import sys
import tempfile

TDTOOL = sys.argv[1] if len(sys.argv) > 1 else "target/release/tdtool"
DUMPS = "../shared/processors/cpuid.csv"
HIDDEN = {(7, 1), (0x1A, 0), (0x1D, 0), (0x1D, 1), (0x1E, 0), (0x1E, 1)}
HIDDEN_LEAVES = {0x23, 0x24, 0x80000002, 0x80000003, 0x80000004}
MODELS = {
    "GenuineIntel": {"Rocket Lake": 0xA0671, "Skylake": 0x506E3, "Icelake-Server": 0x606A0, "kvm64": 0xF61},
    "AuthenticAMD": {"Zen 2": 0x830F10, "Zen 3": 0xA00F11, "kvm64": 0x60FB1},
}
# By InstLatx64's names, the first part that a name has; BroadwellDE is Broadwell's server core.
RIGHT = [("HaswellE", "hsx"), ("Haswell", "hsw"), ("BroadwellDE", "bdx"), ("BroadwellE", "bdx"), ("Broadwell", "bdw"),
         ("SkylakeX", "skx"), ("CascadeLake", "clx"), ("Skylake", "skl"), ("Kabylake", "skl"), ("offee", "skl"),
         ("CometLake", "skl"), ("IceLakeY", "icl"), ("RocketLake", "rkl"), ("TigerLake", "tgl"),
         ("SapphireRapids", "spr"), ("EmeraldRapids", "emr"), ("GraniteRapids", "gnr"), ("masked-granite", "gnr"),
         ("AlderLake", "adl"), ("RaptorLake", "adl"), ("LunarLake", "lnl"), ("ArrowLake", "arl"),
         ("WildcatLake", "ptl"), ("K17_Zen", "zen1"), ("Rome", "zen2"), ("Renoir", "zen2"), ("Milan", "zen3"),
         ("Vermeer", "zen3"), ("Rembrandt", "zen3"), ("Cezanne", "zen3"), ("K19", "zen4"), ("K20", "zen5")]


def right(name):
    table = next((table for part, table in RIGHT if part in name), None)
    return table + "-e" if table and name.endswith("/atom") else table


def dumps():
    """The first CPU of each processor; older dumps number every subleaf 0."""
    found, last, done = {}, {}, set()
    for row in csv.DictReader(open(DUMPS)):
        name, leaf, subleaf = row["processor"], int(row["leaf"], 16), int(row["subleaf"], 16)
        registers = found.setdefault(name, {})
        if name in done or ((leaf, subleaf) in registers and last[name] != leaf):
            done.add(name)
            continue
        while (leaf, subleaf) in registers:
            subleaf += 1
        registers[leaf, subleaf] = [int(row[k], 16) for k in ("eax", "ebx", "ecx", "edx")]
        last[name] = leaf
    return found


def views(registers):
    vendor = b"".join(registers[0, 0][i].to_bytes(4, "little") for i in (1, 3, 2)).decode()
    shown = [("as it is", registers)]
    for name, eax in MODELS[vendor].items():
        shown.append(("as " + name, {**registers, (1, 0): [eax, *registers[1, 0][1:]]}))
    for name, view in shown:
        yield name, view
        guest = [*view[1, 0][:2], view[1, 0][2] | 1 << 31, view[1, 0][3]]
        hidden = {k: v for k, v in view.items() if k not in HIDDEN and k[0] not in HIDDEN_LEAVES}
        yield name + ", leaves hidden", hidden
        yield name + ", guest", {**view, (1, 0): guest}
        yield name + ", guest, leaves hidden", {**hidden, (1, 0): guest}


def identified(view):
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        for (leaf, subleaf), values in view.items():
            file.write(",".join(f"{value:x}" for value in (leaf, subleaf, *values)) + "\n")
        file.flush()
        command = [TDTOOL, "tables", "identify", "--cpuid", file.name, "--format", "json"]
        return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def main():
    if not os.path.exists(DUMPS):
        sys.exit(f"skipped: no {DUMPS}")
    shares, wrong = collections.OrderedDict(), []
    for name, registers in dumps().items():
        for view, shown in views(registers):
            document = identified(shown)
            table = document["table"]
            verdict = "right" if table == right(name) else "unknown" if table is None else "wrong"
            if verdict == "wrong" and right(name) in document["others"]:
                verdict = "named"
            shares.setdefault(view, collections.Counter())[verdict] += 1
            if verdict == "wrong":
                wrong.append(f"{name}, {view}: {table}, contradicted by {len(document['contradicted'])} facts")
    for view, count in shares.items():
        print(f"{view:40} right {count['right']:3} unknown {count['unknown']:3} named among others {count['named']:3} wrong {count['wrong']:3}")
    print("\n".join(wrong))


main()
