#!/usr/bin/env python3
"""Writes events/ports/*.toml: for each instruction form, the ports that its µops can use.

    pip download --no-deps osaca==0.7.1 && unzip osaca-0.7.1-py3-none-any.whl 'osaca/data/*.yml'
    tests/tools/port_tables.py --osaca osaca/data --codes ~/.cargo/registry/src/*/iced-x86-1.22.0/src/code.rs

Forms are iced-x86's codes, written as assembly with different registers (no zero idiom, no move to itself). Figures come
from OSACA's machine files for Intel (imported there from uops.info) and from LLVM's scheduling models, which llvm-mca 22
prints with `-instruction-tables=full`. Only facts are taken: port sets and counts. A form that neither has stays out of
the file and is unknown to the program. Entries of memory forms are without their loads and stores, which [load] and
[store] have for all forms. Needs llvm-mca-22 and PyYAML.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import textwrap

import yaml

# core → (llvm-mca's processor, OSACA's machine files in order of precedence, title)
CORES = {
    "icl": ("icelake-server", ["icl"], "Sunny Cove with one 512-bit FMA unit: Ice Lake, Tiger Lake, Rocket Lake"),
    "icx": ("icelake-server", ["icx512", "icl"], "Sunny Cove with two 512-bit FMA units: Ice Lake server"),
    "golden_cove": ("sapphirerapids", ["spr"], "Golden Cove: Sapphire Rapids, Alder Lake and later"),
    "zen3": ("znver3", [], "Zen 3"),
    "zen4": ("znver4", [], "Zen 4"),
}
# Loads, stores by the size of the register; extra issue slots of a read-modify-write; fused compare and branch.
INTEL_FUSED = ["cmp", "test", "add", "sub", "and", "inc", "dec"]
AMD_FUSED = ["cmp", "test", "add", "sub", "and", "inc", "dec", "or", "xor"]
MEMORY = {
    "icl": dict(load="p2|p3", store="p4|p9 p7|p8", update=1, fused=INTEL_FUSED, source="llvm"),
    "golden_cove": dict(load="p2|p3|p10", load512="p2|p3", store="p4|p9 p7|p8", update=1, fused=INTEL_FUSED, source="llvm"),
    "zen3": dict(load="agu0|agu1|agu2", vector="agu0|agu1|agu2 ld0|ld1", store="agu0|agu1|agu2 st0|st1",
                 vector_store="agu0|agu1|agu2 st0*1", update=0, fused=AMD_FUSED, source="osaca"),
    "zen4": dict(load="agu0|agu1|agu2", vector="agu0|agu1|agu2 ld0|ld1", load512="agu0|agu1|agu2*2 ld0|ld1*2",
                 store="agu0|agu1|agu2 st0|st1", vector_store="agu0|agu1|agu2 st0*1",
                 store512="agu0|agu1|agu2*2 st0*2", update=0, fused=AMD_FUSED, source="osaca"),
}
MEMORY["icx"] = MEMORY["icl"] | dict(store512="p4*1 p9*1 p7|p8")
MEMORY["golden_cove"]["store512"] = "p4*1 p9*1 p7|p8"
# No µop of these waits for a port.
NO_PORT = {"nop", "endbr64", "vzeroupper"}
# What renaming does on AMD: LLVM gives no port.
AMD_RENAMED = re.compile(r"mov|v?mov([au]p[sd]|dq[au]\d*)|xchg")
# uops.info: pushes and pops are a store or load, the stack engine does the rest; a jump that is always taken needs port 6.
STACK = {"push": "", "pop": ""}
INTEL_HAND = STACK | {"jmp": "p6", "call": "p6", "ret": "p6"}
# LLVM's model of Golden Cove is of a client, without the server's 512-bit unit of port 5.
CLIENT = re.compile(r"v(add|sub|mul|f\w*(add|sub)\w*|min|max|cvt\w*|round\w*|rndscale|scalef|range|reduce|getexp|getmant|fixupimm)[sp]?[sd]")
# LLVM's model of Golden Cove leaves out that its divider is not pipelined.
NO_DIVIDER = re.compile(r"v?(div|sqrt)[sp][sdh]")

LEFT_OUT = re.compile(
    r"^(MVEX|XOP|KNC|D3NOW|VIA|DeclareByte|INVALID|Reservednop|Rep|F[a-z0-9]+|In|Ins[bwd]|Outs?[bwd]?|Sys\w+|Vm\w+|Enclv?s?|Int[13o]?|"
    r"Iret\w?|[LS][gi]dt\w*|Str|Ltr|Lar|Lsl|Ver[rw]|Xsave\w*|Xrstor\w*|Movs[bwdq]_m\d+|Stos\w|Lods\w|Scas\w|Cmps[bwdq]_m\d+)(_|$)"
    r"|_(mm|mmm64|tmm|tmmt|bnd|cr|dr|tr|sti|st0)(_|$)|V\w+(ph|sh)_")
REGISTERS = {"8": ["cl", "bl", "sil"], "16": ["cx", "bx", "si"], "32": ["ecx", "ebx", "esi"], "64": ["rcx", "rbx", "rsi"]}
VECTOR = {"xmm": 128, "ymm": 256, "zmm": 512}
SIZES = {8: "byte", 16: "word", 32: "dword", 64: "qword", 128: "xmmword", 256: "ymmword", 512: "zmmword"}


def memory(bits, address="[rdi]"):
    size = SIZES.get(bits)
    return f"{size} ptr {address}" if size else address


def operand(token, at, in_memory):
    """(assembly, OSACA class, whether register or memory) of a token of a code's name; None: not supported."""
    general = re.fullmatch(r"r(8|16|32|64)", token)
    if general:
        return REGISTERS[general[1]][at % 3], "gpr", False
    either = re.fullmatch(r"(?:r(\d+)m(\d+)|rm(\d+))", token)
    if either:
        bits, size = either[1] or either[3], either[2] or either[3]
        return (memory(int(size)), "memory", True) if in_memory else (REGISTERS[bits][at % 3], "gpr", True)
    vector = re.fullmatch(r"([xyz]mm)(?:m(\d+)(?:b\d+)?)?", token)
    if vector:
        if in_memory and vector[2]:
            return memory(int(vector[2])), "memory", True
        return f"{vector[1]}{at + 1}", vector[1], bool(vector[2])
    plain = re.fullmatch(r"m(\d*)(?:int|fp)?", token)
    if plain:
        return memory(int(plain[1] or 0)), "memory", False
    lanes = re.fullmatch(r"vm\d+([xyz])", token)
    if lanes:
        return f"[rdi+{lanes[1]}mm5]", "memory", False
    if token in ("kr", "kp1"):
        return f"k{at + 2}", "k", False
    mask = re.fullmatch(r"km(\d+)", token)
    if mask:
        return (memory(int(mask[1])), "memory", True) if in_memory else (f"k{at + 2}", "k", True)
    if re.fullmatch(r"imm\d+", token):
        return "3", "immediate", False
    if token in ("AL", "AX", "EAX", "RAX", "CL"):
        return token.lower(), "gpr", False
    if token == "1":
        return "1", "immediate", False
    return ("target", "identifier", False) if re.fullmatch(r"rel\d+", token) else None


def forms(codes):
    """(form, assembly, operand classes) of every supported code, on registers and in memory."""
    for code in codes:
        if LEFT_OUT.search(code):
            continue
        parts = re.sub(r"^(VEX|EVEX)_", "", code).split("_")
        name, tokens = parts[0].lower(), [t for t in parts[1:] if t not in ("k1", "k1z", "er", "sae")]
        name = {"retnq": "ret", "pushq": "push", "popq": "pop", "leaveq": "leave", "nopw": "nop", "nopd": "nop", "nopq": "nop"}.get(name, name)
        if name.startswith("j") or name == "call":
            tokens = [t for t in tokens if t != "64"]
            if any(t in ("16", "32") for t in tokens):
                continue
        for in_memory in (False, True):
            operands = [operand(token, at, in_memory) for at, token in enumerate(tokens)]
            if None in operands:
                break
            has_rm = any(either for _, _, either in operands)
            if in_memory and not has_rm:
                break
            suffix = ("_mem" if in_memory else "_reg") if has_rm else ""
            classes = [kind for _, kind, _ in operands]
            if name == "xchg" and "memory" in classes:
                continue
            if name == "lea":
                for label, address in LEA.items():
                    text = f"lea {operands[0][0]}, {address}"
                    yield code + label, text, classes
                continue
            yield code + suffix, f"{name} " + ", ".join(text for text, _, _ in operands), classes


LEA = {"": "[rdi+8]", "+bi": "[rdi+rsi]", "+bis": "[rdi+rsi*4]", "+bid": "[rdi+rsi+8]", "+bisd": "[rdi+rsi*4+8]"}


class Llvm:
    """A scheduling model, as llvm-mca prints it."""

    def __init__(self, processor, lines):
        self.units, self.found = {}, {}
        lines = list(dict.fromkeys(lines))
        refused = {int(n) for n in re.findall(r"<stdin>:(\d+):\d+: error", self.run(processor, lines).stderr)}
        lines = [line for at, line in enumerate(lines, 3) if at not in refused]
        # An instruction without a model ends the program, so they are asked in parts.
        for start in range(0, len(lines), 64):
            self.ask(processor, lines[start:start + 64])

    @staticmethod
    def run(processor, lines):
        text = ".intel_syntax noprefix\ntarget:\n" + "\n".join(lines) + "\n"
        command = ["llvm-mca-22", "-march=x86-64", f"-mcpu={processor}", "-instruction-tables=full"]
        return subprocess.run(command, input=text, capture_output=True, text=True)

    def ask(self, processor, lines):
        out = self.run(processor, lines).stdout
        rows = re.findall(r"^ (\d+) +\d+ +[\d.]+ ([^\t\n]*)\t", out, re.M)
        if len(rows) != len(lines):
            if len(lines) > 1:
                self.ask(processor, lines[:len(lines) // 2])
                self.ask(processor, lines[len(lines) // 2:])
            return
        if not self.units:
            for name, count, parts in re.findall(r"^\[\d+\] +- (\w+):(\d+)([^\n]*)", out, re.M):
                parts = tuple(sorted(set(p.strip() for p in parts.split(",") if p.strip())))
                alone = (name,) if count == "1" else tuple(f"{name}.{at}" for at in range(int(count)))
                self.units[name] = parts or alone
        for line, row in zip(lines, rows):
            resources = row[1].split()[-3]
            known = re.match(r"\w+", resources)[0] in self.units
            self.found[line] = (int(row[0]), self.own(resources if known else ""))

    def own(self, resources):
        """Units → cycles, without what the names of larger groups repeat of smaller ones."""
        used = {}
        for name, cycles in re.findall(r"(\w+)(?:\[(\d+)\])?", resources):
            if not name.endswith(("PortAny", "Int", "LSU")):
                units = frozenset(u for unit in self.units[name] for u in self.units.get(unit, (unit,)))
                used[units] = max(used.get(units, 0), int(cycles or 1))
        left = {}
        for units in sorted(used, key=len):
            rest = used[units] - sum(cycles for other, cycles in left.items() if other < units)
            if rest > 0:
                left[units] = rest
        return left


def intel_name(unit):
    port = re.fullmatch(r"[A-Z]+Port0*(\d+)", unit)
    return f"p{port[1]}" if port else "div" if "FPDivider" in unit else None


def amd_name(unit):
    name = re.fullmatch(r"Zn\d(ALU\d|AGU\d|BRU1|FP\d|FP45\.\d)", unit)
    return {"bru1": "br1", "fp45.0": "fp4", "fp45.1": "fp5"}.get(name[1].lower(), name[1].lower()) if name else None


def named(used, name, amd, in_memory):
    """Port set → amount under the names of the tables; without loads and stores if the form accesses memory."""
    out = collections.Counter()
    for units, cycles in used.items():
        ports = frozenset(name(unit) for unit in units if name(unit))
        if not ports or (amd and ports <= {"agu0", "agu1", "agu2"}) or (amd and in_memory and ports == {"fp4", "fp5"}):
            continue
        out[ports] += cycles
    return out


LOADS = {frozenset(s) for s in (("p2", "p3"), ("p2", "p3", "p10"))}
STORES = {frozenset(s) for s in (("p4", "p9"), ("p7", "p8"), ("p4",), ("p9",))}


def execution(used):
    """Without µops of loads and stores."""
    memory = LOADS | STORES | {frozenset({"p2", "p3", "p7", "p8", "p10"})}
    return collections.Counter({ports: n for ports, n in used.items() if ports not in memory})


class Osaca:
    """A machine file: (mnemonic, operand classes in Intel's order) → port set → amount."""

    def __init__(self, folder, name):
        self.found = {}
        only_wide = name.endswith("512")
        name = name.removesuffix("512")
        data = yaml.load((folder / f"{name}.yml").read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        # OSACA numbers Golden Cove's fifth ALU 10 and its third load port 11, uops.info and LLVM the other way.
        swap = {"10": "11", "11": "10"} if name == "spr" else {}
        self.rename = {f"p{a}": f"p{b}" for a, b in swap.items()}
        for form in data["instruction_forms"]:
            names = form["name"] if isinstance(form["name"], list) else [form["name"]]
            # In the files that were imported from uops.info, entries of several names are assumptions made by hand.
            by_hand = len(names) > 1 and (name != "spr" or "cmp" in names)
            if by_hand or not form.get("port_pressure"):
                continue
            classes = tuple(self.kind(o) for o in reversed(form["operands"]))
            if only_wide and "zmm" not in classes:
                continue
            ports = self.ports(form["port_pressure"])
            if None not in classes and ports is not None:
                for each in names:
                    self.found.setdefault((each.lower(), classes), ports)

    @staticmethod
    def kind(operand):
        if operand["class"] == "register":
            name = operand.get("name")
            return "k" if operand.get("prefix") == "k" else name if name in ("gpr", "xmm", "ymm", "zmm", "k") else None
        return operand["class"] if operand["class"] in ("memory", "immediate", "identifier") else None

    def ports(self, pressure):
        out = collections.Counter()
        for amount, ports in pressure:
            ports = list(ports)
            if all(p.endswith("DV") for p in ports):
                if ports == ["0DV"]:
                    out[frozenset({"div"})] += amount
                elif ports == ["1DV"]:
                    out[frozenset({"idiv"})] += amount
                continue
            if all(p.endswith("D") for p in ports):
                continue
            if not all(p.isdigit() for p in ports):
                return None
            renamed = (self.rename.get(f"p{p}", f"p{p}") for p in ports)
            out[frozenset(renamed)] += amount
        return out


def osaca_entry(models, text, classes):
    name = text.split()[0]
    for key, model in models:
        # A VEX form has the ports of the legacy one.
        vex = (f"v{name}", (classes[0], *classes)) if classes else None
        found = model.found.get((name, tuple(classes)), model.found.get(vex))
        if found is not None:
            return key, found
    return None


def written(ports):
    number = lambda n: f"{n:g}"
    order = lambda p: (re.sub(r"\d", "", p), int(re.sub(r"\D", "", p) or 0))
    items = sorted(("|".join(sorted(units, key=order)), n) for units, n in ports.items() if n)
    return " ".join(units if n == 1 and "|" in units else f"{units}*{number(n)}" if n != 1 else units for units, n in items)


def table(core, all_forms, osaca):
    processor, machines, title = CORES[core]
    amd = core.startswith("zen")
    llvm = Llvm(processor, [text for _, text, _ in all_forms])
    models = [(name.removesuffix("512"), Osaca(osaca, name)) for name in machines]
    chosen, agree, doubted = {}, collections.Counter(), set()
    for form, text, classes in all_forms:
        name, in_memory = text.split()[0], "memory" in classes and not text.startswith("lea ")
        lanes = bool(re.search(r"\+[xyz]mm5\]", text))
        if name in NO_PORT:
            chosen[form] = ("", 1, "llvm", lanes)
            continue
        if amd and form in ("Lea_r64_m", "Lea_r64_m+bi", "Lea_r32_m", "Lea_r32_m+bi"):
            chosen[form] = ("alu0|alu1|alu2|alu3", 1, "amd", False)
            continue
        by_hand = (STACK if amd else INTEL_HAND).get(name)
        if by_hand is not None:
            chosen[form] = (by_hand, 1, "uops", False)
            continue
        # LLVM's Golden Cove counts additions that renaming does as none: others are as `add`.
        same = re.sub(r"^(inc|dec) (.*)", r"add \2, 3", text) if core == "golden_cove" else text
        entry, found = None, llvm.found.get(same)
        if found:
            uops, used = found
            used = named(used, amd_name if amd else intel_name, amd, in_memory)
            unsound = core == "golden_cove" and (NO_DIVIDER.match(name) or "zmm" in text and CLIENT.match(name))
            if not unsound and (used or in_memory or amd and AMD_RENAMED.fullmatch(name)):
                entry = ("llvm", used, uops)
        measured = osaca_entry(models, text, classes)
        if measured:
            if entry:
                same = execution(measured[1]) == execution(entry[1])
                agree[same] += 1
                doubted |= set() if same else {form}
            entry = (measured[0], measured[1], None)
        elif entry and in_memory and form.removesuffix("_mem") + "_reg" in doubted:
            # Where LLVM differs from what was measured on registers, its memory form is not used.
            continue
        if entry is None or (lanes and amd):
            continue
        source, used, uops = entry
        if (in_memory or name in ("call", "ret", "leave")) and not lanes:
            used = execution(used)
        count = sum(n for units, n in used.items() if not units <= {"div", "idiv"})
        uops = max(1, uops if amd and uops else round(count))
        chosen[form] = (written(used), uops, source, lanes)
    return title, chosen, agree, models


def compact(chosen):
    """Without memory forms that are their register form and an access, and EVEX forms that are as their VEX form."""
    out = {}
    for form, entry in chosen.items():
        if form.endswith("_mem"):
            register = chosen.get(form.removesuffix("_mem") + "_reg")
            if register and register[:2] == entry[:2]:
                continue
        sibling = re.sub(r"_(k1z?|er|sae)(?=_)", "", re.sub(r"m(\d+)b\d+", r"m\1", form.replace("EVEX_", "VEX_") + "_"))[:-1]
        if sibling != form and chosen.get(sibling, ())[:2] == entry[:2]:
            continue
        out[form] = entry
    return out


def text_of(core, title, chosen, machines, processor, others={}):
    access = MEMORY[core]
    keys = ({"llvm"} if processor else set()) | {source for _, _, source, _ in chosen.values()} | {access["source"]}
    sources = {"llvm": f"LLVM 22.1.8, scheduling model of {processor}", "osaca": f"OSACA 0.7.1, machine file {core}"}
    sources["amd"] = "AMD Software Optimization Guide for family 19h: lea of two parts"
    sources["uops"] = "uops.info; the optimization guides on the stack engine"
    sources |= {name: f"OSACA 0.7.1, machine file {name} (figures of uops.info)" for name in ("icl", "icx", "spr")}
    sources |= others
    lines = [f"# {title}: µops and ports; the keys are explained in src/isa/ports/file.rs.",
             "# Written by tests/tools/port_tables.py.", "", "schema = 1",
             f"fused = [{', '.join(f'{name!r}' for name in access['fused'])}]".replace("'", '"'), "", "[sources]"]
    lines += [f'{key} = "{sources[key]}"' for key in sorted(keys)]
    load = dict(gpr=access["load"], vector=access.get("vector", access["load"]),
                wide=access.get("load512", access.get("vector", access["load"])))
    store = dict(gpr=access["store"], vector=access.get("vector_store", access["store"]),
                 wide=access.get("store512", access.get("vector_store", access["store"])))
    for name, ports in (("load", load), ("store", store)):
        lines += ["", f"[{name}]"] + [f'{key} = "{value}"' for key, value in ports.items()]
        lines += [f"update_slots = {access['update']}"] if name == "store" else []
        lines += [f'source = "{access["source"]}"']
    groups = collections.defaultdict(list)
    for form, (ports, uops, source, lanes) in chosen.items():
        groups[ports, uops, source, lanes].append(form)
    for (ports, uops, source, lanes), names in sorted(groups.items(), key=lambda g: (g[0][2], g[0][0], g[0][1], g[0][3])):
        lines += ["", "[[uops]]", f'ports = "{ports}"', f"slots = {uops}", f'source = "{source}"']
        lines += ["complete = true"] if lanes else []
        lines += ['forms = """'] + textwrap.wrap(" ".join(sorted(names)), 120) + ['"""']
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--osaca", type=pathlib.Path, required=True, help="folder of OSACA's machine files")
    parser.add_argument("--codes", type=pathlib.Path, required=True, help="code.rs of iced-x86")
    parser.add_argument("--cores", nargs="*", default=list(CORES))
    args = parser.parse_args()
    codes = re.findall(r"^\t([A-Z]\w*) = ", args.codes.read_text(), re.M)
    all_forms = list(forms(codes))
    folder = pathlib.Path(__file__).resolve().parents[2] / "events/ports"
    for core in args.cores:
        title, chosen, agree, _ = table(core, all_forms, args.osaca)
        kept = compact(chosen)
        (folder / f"{core}.toml").write_text(text_of(core, title, kept, *reversed(CORES[core][:2])))
        by = collections.Counter(source for _, _, source, _ in chosen.values())
        print(f"{core}: {len(chosen)} forms of {len(all_forms)} {dict(by)}; both sources {sum(agree.values())}, agree {agree[True]}")


if __name__ == "__main__":
    main()
