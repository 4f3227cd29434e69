"""Why a value differs from InstLatx64's: named reasons, each confirmed by a check of its own.

Most checks run InstLatx64's operands, which differ from those of `tdtool microbench`, with `tdtool block`: the number of
the table must come out. Needs `as`.
"""

import math

import instlat

GPRS = ["rax", "rcx", "rdx", "rbx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14"]
NARROW = {"r8": ["al", "cl", "dl", "bl", "sil", "dil"], "r16": ["ax", "cx", "dx", "bx", "si", "di"],
          "r32": ["eax", "ecx", "edx", "ebx", "esi", "edi"]}
SUFFIX = {"r8": "b", "r16": "w", "r32": "d", "r64": ""}
POINTER = {"m8": "byte", "m16": "word", "m32": "dword", "m64": "qword", "m128": "xmmword"}
SHIFTS = ("rol", "ror", "rcl", "rcr", "shl", "shr", "sar", "shld", "shrd", "rorx")
IMMEDIATES = {"imm16": "0x1234", "imm32": "0x12345678", "imm64": "0x123456789abcdef0"}
# Characters of an argument, of 131,072 that Linux allows: code for more instructions than op caches hold (4,096 on Zen 3
# and Golden Cove).
LONG = 120_000


def register(kind, number):
    """A register of a class."""
    if kind == "r64":
        return GPRS[number % len(GPRS)]
    if kind in NARROW:
        number %= len(GPRS)
        return NARROW[kind][number] if number < 6 else GPRS[number] + SUFFIX[kind]
    return kind + str(number % (16 if kind.endswith("mm") and kind != "mm" else 8))


def text(one, numbers, place="[rdi+64]"):
    """An instruction in assembly, with the register of each operand."""
    words = []
    for kind, number in zip(one.operands, numbers):
        if instlat.family(kind):
            words.append(register(kind, number))
        elif kind.startswith("imm") or kind == "1":
            words.append(IMMEDIATES.get(kind, "1" if kind == "1" or one.mnemonic not in SHIFTS else "5"))
        elif kind in POINTER:
            words.append(f"{POINTER[kind]} ptr {place}")
        elif kind.startswith("ADDR"):
            raise instlat.Unread("an address")
        else:
            words.append(kind)
    encoding = "{evex} " if one.encoding == "EVEX" else ""
    return f"{encoding}{'lock ' if one.lock else ''}{one.mnemonic} {', '.join(words)}"


class Lab:
    """Blocks with InstLatx64's operands, measured by `tdtool block`."""

    def __init__(self, bench):
        self.bench = bench

    def cycles(self, *lines, copies=1):
        """Cycles of a block: the headline first, then the other modes of its samples; none where it is not measured."""
        code = ";".join(lines).replace(", ", ",")
        key = ("block", code) if copies == 1 else ("block", code, str(copies))
        document = self.bench.run("block", "--asm", ";".join([code] * copies), key=key)
        if not isinstance(document, dict) or document["status"] != "ok":
            return []
        measured = document["throughput"]
        modes = [mode["cycles"] for mode in measured["modes"] if mode["share"] >= 0.05]
        return [cycles / copies for cycles in (measured["cycles"], *modes)]

    def chain(self, parts):
        """The instructions of a row on one register."""
        return self.cycles(*(text(one, [0] * len(one.operands)) for one in parts))

    def independent(self, parts, long=False):
        """The same, one register after the other, per turn; as much of it as an argument takes."""
        count = 8 if any(o in ("mm", "k") for one in parts for o in one.operands) else 13
        lines = [text(one, [n] * len(one.operands)) for n in range(count) for one in parts]
        copies = LONG // (len(";".join(lines)) + 1) if long else 1
        return [cycles / count for cycles in self.cycles(*lines, copies=copies)]


def near(found, reference):
    """Whether one of the numbers is within 5 %."""
    return any(abs(value - reference) <= 0.05 * reference + 0.005 for value in found)


def between(value, found, room=0.05):
    """Inside the range of these numbers, with 5 % of room."""
    return bool(found) and min(found) * (1 - room) <= value <= max(found) * (1 + room)


def one_register(lab, row, value):
    """InstLatx64 gives all operands one register: an idiom, an eliminated move, or other links of the chain"""
    parts = row.reading.parts
    if row.reading.kind != "single" or not (parts[0].same or len(parts[0].operands) == 1):
        return False
    found = lab.chain(parts) if value.what == "latency" else lab.independent(parts)
    return near(found, value.table)


def mixed_links(lab, row, value):
    """no whole number of cycles in the table or here: links differ, and the table is between two chains measured here"""
    parts = row.reading.parts
    if value.what != "latency" or value.ours is None or row.reading.kind != "single" or not parts[0].same:
        return False
    fraction = any(abs(cycles - round(cycles)) > 0.1 for cycles in (value.table, value.ours))
    return fraction and between(value.table, [value.ours, *lab.chain(parts)])


def bypass(lab, row, value):
    """the pair's chain has bypass delays between its two instructions, which apart they do not have"""
    return row.reading.kind == "pair" and value.what == "latency" and near(lab.chain(row.reading.parts), value.table)


def implicit(lab, row, value):
    """InstLatx64 breaks the dependency through an implicit register, which microbench reports as the bound"""
    if value.what != "throughput" or not value.note.startswith("bound by implicit"):
        return False
    one = row.reading.parts[0]
    lines = [line for n in range(6, 12) for line in ("mov eax, ecx", "mov edx, ecx", text(one, [n] * len(one.operands)))]
    return near([cycles / 6 for cycles in lab.cycles(*lines)], value.table)


def pair_in_turn(lab, row, value):
    """the throughput of InstLatx64's pair is of a chain within each turn of its registers"""
    return row.reading.kind == "pair" and value.what == "throughput" and near(lab.independent(row.reading.parts), value.table)


def beyond_op_cache(lab, row, value):
    """InstLatx64's code exceeds the op cache: a block longer than that takes as long"""
    if value.what != "throughput" or value.ours is None or value.ours > value.table or row.reading.kind == "stored":
        return False
    return near(lab.independent(row.reading.parts, long=True), value.table)


def op_cache(lab, row, value):
    """InstLatx64's code exceeds the op cache in part: the decoders bound it"""
    if value.what != "throughput" or value.ours is None or value.ours > value.table or row.reading.kind == "stored":
        return False
    parts = row.reading.parts
    return between(value.table, [value.ours, *lab.independent(parts, long=True)])


def whole_turns(lab, row, value):
    """InstLatx64's turn of thirteen registers takes a whole number of cycles"""
    if value.what != "throughput" or value.ours is None:
        return False
    general = any(o in instlat.GPR for part in row.reading.parts for o in part.operands)
    return general and abs(13 * value.table - math.ceil(13 * value.ours - 0.1)) < 0.02


def dependent(lab, row, value):
    """InstLatx64's throughput is its latency: its operands depend on each other"""
    latency = next((v for v in row.values if v.what == "latency"), None)
    return (value.what == "throughput" and value.ours is not None and value.ours < value.table
            and latency is not None and latency.agrees and near([value.table], latency.table))


def store_forwarding(lab, row, value):
    """through memory: the time of store forwarding depends on how far apart store and load are, and on the address"""
    one = row.reading.parts[0]
    if not any(o in POINTER for o in one.operands) or row.reading.kind != "single":
        return False
    numbers = [0] * len(one.operands)
    if value.what == "latency":
        places = ("[rdi+64]", "[rsp+64]", "[r15+0x800]")
        found = [cycles for place in places for cycles in lab.cycles(text(one, numbers, place))]
    else:
        lines = lambda step: (text(one, numbers, f"[rdi+{step * n}]") for n in range(16))
        found = [cycles / 16 for step in (8, 64) for cycles in lab.cycles(*lines(step))]
    return between(value.table, found + [value.ours] * (value.ours is not None))


def few_places(lab, row, value):
    """InstLatx64's stores are reloaded in the next turn of few places: a turn takes the latency of forwarding"""
    latency = next((v for v in row.values if v.what == "latency"), None)
    if row.reading.kind != "stored" or value.what != "throughput" or latency is None or not latency.agrees:
        return False
    places = round(latency.table / value.table)
    return places > 1 and value.ours < value.table and abs(latency.table / places - value.table) < 0.002


def no_chain(lab, row, value):
    """no chain: InstLatx64's latency is its throughput, for operands on which the result does not depend"""
    throughput = next((v for v in row.values if v.what == "throughput"), None)
    return (value.what == "latency" and value.ours is None and str(value.refused).startswith("no chain")
            and throughput is not None and value.table <= 1.1 * throughput.table + 0.005)


def contradicts_itself(lab, row, value):
    """the table contradicts itself: a chain faster than independent instances, or in under a cycle what is not eliminated"""
    throughput = next((v for v in row.values if v.what == "throughput"), None)
    if value.what != "latency" or throughput is None:
        return False
    faster = value.table < 0.9 * throughput.table and throughput.agrees
    written = row.reading.parts[0]
    shown = value.table < 0.9 and row.numbered and value.table < 1.1 * throughput.table
    return faster or shown and value.ours is not None and near(lab.cycles(text(written, written.numbers)), value.ours)


ALL = [no_chain, one_register, contradicts_itself, mixed_links, bypass, implicit, dependent, whole_turns, few_places,
       pair_in_turn, store_forwarding, beyond_op_cache, op_cache]

# Of these, `tdtool block` measures the table's number within 5 % when it runs the table's operands.
REPRODUCED = {check.__doc__ for check in (one_register, bypass, implicit, pair_in_turn, beyond_op_cache)}


def reason(lab, row, value):
    """The first reason that its check confirms, None if none does."""
    for check in ALL:
        try:
            if check(lab, row, value):
                return check.__doc__
        except instlat.Unread:
            continue
    return None
