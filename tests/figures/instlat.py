"""Notation of InstLatx64's tables, as far as it names one instruction form of `tdtool microbench`.

InstLatx64 writes `ADD r32, r32` where both operands are one register and `ADD r1_32, r2_32` where they are two;
`MOVD r32, xmm+MOVD xmm, r32` is two instructions in one chain, `MOVAPS LS pair` a load and a store of one place.
"""

import dataclasses
import re

# Mnemonics of InstLatx64 that are another one's encoding.
ALIASES = {"cmovnz": "cmovne", "setc": "setb", "cmpsd": "cmpsd", "vpclmulqdq": "vpclmulqdq"}
# Loads that write all of the register, so that a reload by another instruction takes as long.
WHOLE = {"movss", "movsd", "movaps", "movups", "movapd", "movupd", "movdqa", "movdqu", "movd", "movq"}
# Their result does not depend on a register that is all of their operands (zeroing and ones idioms).
IDIOM = re.compile(r"xor|sub|v?(pxor[dq]?|xorp[sd]|psub[bwdq]|psubu?s[bw]|pcmp(eq|gt)[bwdq]|pandn[dq]?|andnp[sd])")
GPR = {"r8", "r16", "r32", "r64"}
FAMILY = {"xmm": "vector", "ymm": "vector", "zmm": "vector", "mm": "mmx", "k": "mask"}


@dataclasses.dataclass
class Instruction:
    """One instruction of a row; `same` says that all its registers are one."""

    encoding: str | None
    mnemonic: str
    operands: tuple
    numbers: tuple = ()
    mask: str = ""
    lock: bool = False

    @property
    def same(self):
        """Whether two or more operands are the same register."""
        used = [n for n, o in zip(self.numbers, self.operands) if o in GPR or o in FAMILY]
        return len(used) > 1 and len(set(used)) == 1

    @property
    def idiom(self):
        """Whether its result does not depend on its operands."""
        return self.same and IDIOM.fullmatch(self.mnemonic) is not None


@dataclasses.dataclass
class Reading:
    """What a row measures. `kind`: single, pair (two instructions in one chain), stored (a load and a store)."""

    kind: str
    parts: list
    to: str | None = None


class Unread(Exception):
    """Why a row names no form."""


def family(operand):
    """The register file of an operand, None if it is no register."""
    return "gpr" if operand in GPR else FAMILY.get(operand)


def operand(text):
    """Class of an operand as written, and which register of its class it is (0: not numbered)."""
    text = text.strip().lower()
    text = re.sub(r"^im(?=\d)", "imm", text)
    if text in ("cl", "al", "ax", "eax", "rax", "1"):
        return text, 0
    if m := re.fullmatch(r"r(\d?)_?(8|16|32|64)l?", text):
        if not m[1] or "_" in text:
            return "r" + m[2], int(m[1] or 0)
    if m := re.fullmatch(r"([xyz])(?:mm|m)?(\d?)", text):
        return m[1] + "mm", int(m[2] or 0)
    if m := re.fullmatch(r"(mm|k)(\d?)", text):
        return m[1], int(m[2] or 0)
    if text in ("imm8", "imm16", "imm32", "imm64"):
        return text, 0
    if m := re.fullmatch(r"\[m(\d+)\]", text):
        return "m" + m[1], 0
    if text.startswith("[r64"):
        shape = text.strip("[]").replace(" ", "").replace("r64+r64*8", "bis").replace("r64+r64", "bi").replace("r64", "b")
        shape = {"b+disp8": "bd", "bi": "bi", "bis": "bis", "bi+disp8": "bid", "bis+disp8": "bisd"}.get(shape)
        if shape:
            return "ADDR" + shape, 0
        raise Unread("an address that microbench's forms do not have")
    raise Unread("an operand that microbench's forms do not have")


def instruction(text, extension):
    """One instruction as written."""
    encoding = None
    if m := re.match(r"\{(VEX|EVEX)\}\s*", text):
        encoding, text = m[1], text[m.end():]
    elif extension.startswith("AVX512"):
        encoding = "EVEX"
    text = re.sub(r"<[^>]*>", "", text)
    m = re.fullmatch(r"(LOCK )?([A-Z][A-Z0-9]*)((?:\s.*)?)", text.strip())
    if not m:
        raise Unread("not an instruction")
    rest = m[3].strip()
    mask = ""
    if masked := re.match(r"([xyz]mm\d?)\s*\{k\d?\}(\{z\})?", rest):
        mask, rest = ("kz" if masked[2] else "k"), masked[1] + rest[masked.end():]
    pieces = [piece for piece in rest.split(",") if piece.strip()]
    read = [operand(piece) for piece in pieces]
    mnemonic = m[2].lower()
    return Instruction(
        encoding,
        ALIASES.get(mnemonic, mnemonic),
        tuple(o for o, _ in read),
        tuple(n for _, n in read),
        mask,
        bool(m[1]),
    )


def reading(form, extension):
    """What the row measures; raises Unread."""
    text = re.sub(r"\s+", " ", form).strip()
    if extension.startswith("X87"):
        return Reading("single", [Instruction(None, text.split()[0].lower(), ("st",))])
    if text.startswith("PUSH"):
        raise Unread("a chain through the stack")
    if re.match(r"(\{\w+\} )?V?MOV[^ ,]*\+", text):
        raise Unread("a move and an instruction: which operand continues the chain is not stated")
    if "unaligned" in text or "]+" in text or text.startswith("ASP"):
        raise Unread("unaligned, a memory copy or another address size")
    if text.endswith(" LS pair"):
        return stored(text.removesuffix(" LS pair").removesuffix(" aligned"), extension)
    if m := re.fullmatch(r"(I?MUL r(?:8l|16|32|64)) (\w+)/[er]ax upd", text):
        if m[2] == "ah":
            raise Unread("the high byte of a product is no operand of microbench")
        return Reading("single", [instruction(m[1], extension)], "r" + m[2].strip("re")[0] + "x")
    if re.search(r"\d/ ?\d", text) or re.search(r"\((?!1\.0f?\)).*\)", text):
        raise Unread("of certain operand values")
    if re.search(r"_0$", text) or re.search(r", [0-9a-f]+h$", text):
        raise Unread("of a certain immediate")
    text = re.sub(r"\(1\.0f?\)", "", text).strip()
    parts = [part.strip() for part in re.split(r"\+(?![^\[]*\])", text)]
    if len(parts) == 2 and ".." not in text:
        prefix = re.match(r"\{\w+\}", text)
        second = parts[1] if not prefix or parts[1].startswith("{") else prefix[0] + " " + parts[1]
        return Reading("pair", [instruction(parts[0], extension), instruction(second, extension)])
    return Reading("single", [instruction(text, extension)])


def stored(text, extension):
    """A store, and the load of what it stored."""
    one = instruction(text, extension)
    if one.mnemonic.removeprefix("v") not in WHOLE:
        raise Unread("a load that merges: the reload of microbench is another instruction")
    return Reading("stored", [one])


class Catalog:
    """Forms of `tdtool microbench list --refused --format json`, by encoding, mnemonic and operands."""

    def __init__(self, forms):
        self.forms = {}
        self.by_mnemonic = {}
        # Where several encodings have the same operands, only the one that assemblers choose has a name of its own.
        for listed in sorted(forms, key=lambda listed: listed["form"] == listed["code"]):
            for known in named(listed["code"]):
                key = (known.encoding, known.mnemonic, known.operands, known.mask, known.lock)
                if key not in self.forms:
                    listed = {**listed, "operands": known.operands}
                    self.forms[key] = listed
                    self.by_mnemonic.setdefault((known.encoding, known.mnemonic), []).append((known, listed))

    def encodings(self, one):
        """Those that the row may mean, the likeliest first: what it says, else not EVEX."""
        return [one.encoding] if one.encoding else [None, "VEX", "EVEX"]

    def find(self, one):
        """The form of an instruction."""
        operands = one.operands[::-1] if one.mnemonic == "xchg" and one.operands[1].startswith("m") else one.operands
        for encoding in self.encodings(one):
            found = self.forms.get((encoding, one.mnemonic, operands, one.mask, one.lock))
            if found:
                return found
        raise Unread("no form has these operands")

    def forms_of(self, reading):
        """The forms of all its instructions."""
        if reading.kind == "single":
            return [self.find(reading.parts[0])]
        if reading.kind == "stored":
            one = reading.parts[0]
            is_store = lambda known: len(known.operands) == 2 and known.operands[0].startswith("m") and known.operands[0] != "mm"
            store = self.only(one, lambda known: is_store(known) and known.operands[1] not in GPR)
            register = store["operands"][1]
            load = self.only(one, lambda known: known.operands == (register, store["operands"][0]))
            return [store, load]
        forms = self.pair(*reading.parts)
        reading.parts = [
            dataclasses.replace(part, operands=form["operands"], numbers=(0,) * len(form["operands"]))
            for part, form in zip(reading.parts, forms)
        ]
        return forms

    def pair(self, first, second):
        """The forms of two instructions, which may share the operands stated for the second."""
        if not first.operands and len(second.operands) > 1:
            return [self.find(dataclasses.replace(first, operands=second.operands)), self.find(second)]
        stated = {*first.operands, *second.operands}
        return [self.of_registers(part, stated) for part in (first, second)]

    def of_registers(self, one, stated):
        """The form as written in full, else the only one between registers with those stated."""
        if len(one.operands) > 1:
            return self.find(one)
        gprs = one.operands or tuple(stated & GPR)
        registers = lambda known: not any(re.fullmatch(r"m\d+", o) for o in known.operands)
        fits = lambda known: registers(known) and set(o for o in known.operands if o in GPR) <= set(gprs)
        return self.only(one, fits)

    def only(self, one, fits):
        """The only form of a mnemonic that fits."""
        for encoding in self.encodings(one):
            named = self.by_mnemonic.get((encoding, one.mnemonic), [])
            alike = [listed for known, listed in named if not known.mask and fits(known)]
            if len(alike) == 1:
                return alike[0]
            if alike:
                raise Unread("the width of its operands is not stated")
        raise Unread("no form has these operands")


def named(code):
    """Instructions that a name such as `VEX_Vaddps_xmm_xmm_xmmm128:reg` is of."""
    code, _, mask = code.partition("+")
    if mask not in ("", "k", "kz"):
        return
    name, _, place = code.partition(":")
    pieces = name.split("_")
    encoding = pieces.pop(0) if pieces[0] in ("VEX", "EVEX", "XOP") else None
    mnemonic = pieces.pop(0).lower()
    operands = []
    for piece in pieces:
        if piece in ("k1", "k1z", "er", "sae") or piece.startswith("b"):
            if piece == "k1" and not operands:
                operands.append("k")
            continue
        if piece == "m" and mnemonic == "lea":
            operands.append(place if place.startswith("ADDR") else "ADDRbd")
        elif m := re.fullmatch(r"(rm|r\d+m|[xyz]mmm|mmm|km)(\d+)(b\d+)?", piece):
            register = "r" + m[2] if m[1] == "rm" else m[1][:-1]
            operands.append("m" + m[2] if place in ("mem", "lock") else register)
        elif piece in ("kr", "kk", "krp1"):
            operands.append("k")
        else:
            operands.append(piece.lower())
    yield Instruction(encoding, mnemonic, tuple(operands), (), mask, place == "lock")
