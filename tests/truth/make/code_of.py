"""Machine code of a region: its instructions by objdump, their bytes put behind each other, their addresses computed."""

import re
import subprocess

SIZES = {"BYTE": 1, "WORD": 2, "DWORD": 4, "QWORD": 8, "XMMWORD": 16, "YMMWORD": 32, "TBYTE": 10, "FWORD": 6}
MASK = (1 << 64) - 1


class Instruction:
    """One instruction: address, bytes and objdump's text in Intel syntax."""

    def __init__(self, address, code, text):
        self.address, self.code, self.text = address, code, text
        self.mnemonic = text.split()[0]

    @property
    def repeats(self):
        """Whether it has a prefix that repeats it."""
        return self.mnemonic.startswith("rep")


def disassemble(path, start, end, bias=0):
    """Instructions of a file between two addresses (those of a run: the file's own plus `bias`), by address."""
    text = subprocess.run(["objdump", "-d", "-w", "-M", "intel", f"--start-address={start - bias:#x}",
                           f"--stop-address={end - bias:#x}", path],
                          capture_output=True, text=True, check=True).stdout
    found = {}
    for line in text.splitlines():
        part = line.split("\t")
        if len(part) == 3 and part[0].strip().endswith(":"):
            address = int(part[0].strip()[:-1], 16) + bias
            found[address] = Instruction(address, bytes.fromhex(part[1].replace(" ", "")), part[2].strip())
    return found


def joined(path, base=0):
    """The bytes of instructions put behind each other from address 0, and the offset of each.

    An operand relative to the instruction pointer keeps its target: its displacement is computed anew, as if the
    region lay at address 0 and the file at `base` less. Programs lie below 2 GiB in their files, so that it fits.
    """
    code, offsets = b"", {}
    for instruction in path:
        offsets[instruction.address] = len(code)
        code += moved(instruction, len(code) + base)
    return code, offsets


def moved(instruction, offset):
    """Its bytes, with the displacement of a relative memory operand made to fit at `offset`."""
    relative = re.search(r"\[rip\+0x([0-9a-f]+)\]", instruction.text)
    if not relative:
        return instruction.code
    old = int(relative.group(1), 16) & 0xffffffff
    place = instruction.code.rfind(old.to_bytes(4, "little"), 0, len(instruction.code))
    if place < 0:
        raise ValueError(f"no displacement in {instruction.text}")
    new = (old + instruction.address - offset) & 0xffffffff
    return instruction.code[:place] + new.to_bytes(4, "little") + instruction.code[place + 4:]


def accesses(instruction, registers):
    """`(address, size, kind)` of what it touches, from the registers before it; kind is L, S or M.

    Made from objdump's text alone, so that it owes nothing to VEX.
    """
    text, name = instruction.text, instruction.mnemonic
    rsp = registers["rsp"]
    if name in ("nop", "lea", "endbr64", "data16", "cs"):
        return []
    found = []
    memory = re.search(r"(\w+) PTR (?:[a-z]s:)?(0x[0-9a-f]+|\[[^\]]+\])", text)
    if memory and not text.startswith("nop"):
        size = SIZES[memory.group(1)]
        first = text.split(None, 1)[1].lstrip().split(",")[0]
        found.append((address_of(memory.group(2), instruction, registers), size,
                      kind_of(name, "PTR" in first)))
    if name == "push" or name == "call":
        found.append(((rsp - 8) & MASK, 8, "S"))
    if name == "pop" or name == "ret":
        found.append((rsp, 8, "L"))
    if name == "leave":
        found.append((registers["rbp"], 8, "L"))
    return found


def kind_of(name, destination):
    """Whether an instruction with that name loads from its memory operand, stores to it, or both."""
    if not destination or name in ("cmp", "test", "bt", "push", "call", "jmp", "mul", "div", "imul", "idiv", "ucomisd",
                                   "comisd", "comiss", "ucomiss", "fld", "fild", "lods") or name.startswith("lods"):
        return "L"
    return "S" if name.startswith(("mov", "vmov", "set", "pop", "stos", "fst", "fist", "pextr")) else "M"


def address_of(operand, instruction, registers):
    """The effective address of an operand in brackets, or of an absolute one."""
    total = 0
    for sign, term in re.findall(r"([+-]?)([^+-]+)", operand.strip("[]")):
        factor = 1
        if "*" in term:
            term, scale = term.split("*")
            factor = int(scale)
        value = (instruction.address + len(instruction.code) if term == "rip" else
                 int(term, 16) if term.startswith("0x") else 0 if term in ("riz", "eiz") else registers[term])
        total += (-1 if sign == "-" else 1) * factor * value
    return total & MASK
