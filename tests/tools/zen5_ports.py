#!/usr/bin/env python3
"""Writes events/ports/zen5.toml from zen5_ports.csv, whose head says where its ports come from.

    tests/tools/zen5_ports.py --codes ~/.cargo/registry/src/*/iced-x86-1.22.0/src/code.rs
"""

import argparse
import csv
import pathlib
import re

from port_tables import MEMORY, AMD_FUSED, NO_PORT, STACK, compact, forms, text_of

LETTERS = {"xmm": "x", "ymm": "y", "zmm": "z", "gpr": "g", "k": "k", "memory": "m", "immediate": "i", "identifier": "j"}
AGU = "agu0|agu1|agu2|agu3"
MEMORY["zen5"] = dict(
    load=AGU, vector=f"{AGU} ld0|ld1", store=f"{AGU} st0|st1", vector_store=f"{AGU} fp4|fp5 st0|st1",
    store512=f"{AGU} fp4|fp5 st0|st1*2", update=0, fused=AMD_FUSED, source="native")
SOURCES = {"osaca": "OSACA 0.7.2 (commit 1c058435), machine file zen5 (figures of WINIC), confirmed natively",
           "native": "measured natively on a Zen 5 (family 1Ah model 2) with tests/tools/native_ports.py"}


def facts(path):
    """Rows by mnemonic and operands, and rows by a pattern of forms."""
    by_name, by_form = {}, []
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    for row in csv.DictReader(lines, delimiter=";"):
        entry = (row["ports"], int(row["slots"]), row["source"], False)
        if row["operands"].startswith("/"):
            by_form.append((re.compile(row["operands"][1:]), entry))
        for name in row["mnemonics"].split():
            assert by_name.setdefault((name, row["operands"]), entry) == entry, (name, row)
    return by_name, by_form


def entry(form, name, classes, by_name, by_form):
    """(ports, slots, source, complete) of a form; None: unknown."""
    for pattern, found in by_form:
        if pattern.fullmatch(form):
            return found
    if name in NO_PORT or name in STACK:
        return "", 1, "native", False
    operands = ",".join(LETTERS[kind] for kind in classes) or "-"
    found = by_name.get((name, operands), by_name.get((name, re.sub("[xyz]", "v", operands))))
    # Of these names the table has other sizes or counts, by form.
    return None if re.match(r"I?[Mm]ul_rm16_|Lea_|Rc[lr]_", form) else found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--codes", type=pathlib.Path, required=True, help="code.rs of iced-x86")
    args = parser.parse_args()
    here = pathlib.Path(__file__).resolve().parent
    by_name, by_form = facts(here / "zen5_ports.csv")
    all_forms = list(forms(re.findall(r"^\t([A-Z]\w*) = ", args.codes.read_text(), re.M)))
    chosen = {}
    for form, text, classes in all_forms:
        found = entry(form, text.split()[0], classes, by_name, by_form)
        if found:
            chosen[form] = found
    # A memory form that is absent is as its register form.
    known = {form for form, _, _ in all_forms if form in chosen or form.removesuffix("_mem") + "_reg" in chosen}
    text = text_of("zen5", "Zen 5", compact(chosen), None, None, SOURCES).replace("port_tables.py", "zen5_ports.py")
    (here.parents[1] / "events/ports/zen5.toml").write_text(text)
    print(f"zen5: {len(known)} forms of {len(all_forms)}")


if __name__ == "__main__":
    main()
