"""Kernels of tests/figures/loops: building them, finding the hot loop of each by single steps, timing it natively.

Needs gcc, rustc, objdump and, unless left out, clang.
"""

import collections
import dataclasses
import os
import re
import subprocess
import zlib

from common import median, rows

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "loops")
VECTORS = "-O3 -mavx2 -mfma -ffast-math"
COMMON = ["-fno-math-errno", "-fno-builtin", "-shared", "-fPIC", "-fcf-protection=none"]
GCC = ["-fno-tree-loop-distribute-patterns"]
RUST_VECTORS = "-C opt-level=3 -C target-feature=+avx2,+fma"
BUILDS = [("C", "gcc", "-O2"), ("C", "clang", VECTORS), ("C", "gcc", VECTORS), ("C", "clang", "-O2"),
          ("Rust", "rustc", "-C opt-level=2"), ("Rust", "rustc", RUST_VECTORS)]
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t([0-9a-f ]+?)\s*\t(.*)$")
# Instructions whose last operand in AT&T syntax is read, not written.
READERS = ("cmp", "test", "ucomis", "vucomis", "comis", "vcomis", "bt", "nop", "lea", "push", "mul", "div", "idiv", "imul",
           "j", "vptest", "prefetch")
JUMP = re.compile(r"^(bnd )?j[a-z]+\b")


def aside(name):
    """Whether a kernel is kept aside until the method is frozen. Decided before anything was measured: a quarter."""
    return zlib.crc32(name.encode()) % 4 == 0


def builds_of(name, source, every=False):
    """The builds of a kernel: in C gcc and clang with one of the two levels each, the other way round for half of them."""
    if source.endswith(".rs"):
        return BUILDS[4:]
    half = zlib.crc32(name.encode()) // 4 % 2
    return BUILDS[:4] if every else BUILDS[2 * half:2 * half + 2]


@dataclasses.dataclass
class Loop:
    """The hot loop of a compiled kernel; `path` is the most frequent way through it, as addresses."""
    file: str
    kernel: dict
    build: tuple
    start: int
    end: int
    path: list
    share: float
    blocks: int
    per_element: float
    visited: set
    code: dict

    @property
    def name(self):
        return " ".join([self.kernel["name"], *self.build[1:]])

    @property
    def hex(self):
        """The path in one piece: jumps inside left out, the last one leading to the start."""
        inner = "".join(self.code[at][0] for at in self.path[:-1] if not JUMP.match(self.code[at][1]))
        last = bytes.fromhex(self.code[self.path[-1]][0])
        if not 0x70 <= last[0] <= 0x7f and last[0] not in (0x0f, 0xeb, 0xe9):
            return inner + last.hex()
        if last[0] in (0xeb, 0xe9):
            return inner + "e9" + (-(len(inner) // 2 + 5)).to_bytes(4, "little", signed=True).hex()
        condition = (last[1] if last[0] == 0x0f else last[0]) & 15
        return inner + f"0f{0x80 + condition:02x}" + (-(len(inner) // 2 + 6)).to_bytes(4, "little", signed=True).hex()

    @property
    def text(self):
        """The path in AT&T syntax."""
        lines = [plain(self.code[at][1]) for at in self.path]
        return "\n".join(re.sub(r"^(j[a-z]+)\s+([0-9a-f]+)$", r"\1 0x\2", line) for line in lines)

    @property
    def stores(self):
        """Whether any instruction of the loop stores, on whatever path."""
        lines = [plain(self.code[at][1]) for at in self.visited]
        return any(line.endswith(")") and not line.startswith(READERS) for line in lines)


def plain(text):
    """An instruction without symbols and comments."""
    return re.sub(r"\s*(<[^>]*>|#.*$)", "", text).strip()


def build(folder, build, clang):
    """Compiles all kernels of one build into a shared library; its path."""
    language, compiler, flags = build
    target = f"{folder}/{compiler}{re.sub(r'[^A-Za-z0-9]+', '_', flags)}.so"
    if os.path.exists(target):
        return target
    if language == "Rust":
        command = ["rustc", *flags.split(), "-o", target, f"{HERE}/kernels.rs"]
    else:
        extra = GCC if compiler == "gcc" else []
        command = [clang if compiler == "clang" else "gcc", *flags.split(), *COMMON, *extra, "-o", target,
                   *(f"{HERE}/{name}.c" for name in ("arrays", "memory", "integers"))]
    subprocess.run(command, check=True)
    return target


def timer(folder):
    """Compiles the native timer; its path."""
    subprocess.run(["gcc", "-O2", "-o", f"{folder}/timer", f"{HERE}/timer.c", "-ldl"], check=True)
    return f"{folder}/timer"


def kernels(pattern=""):
    """The kernels whose names match."""
    return [row for row in rows(f"{HERE}/kernels.csv") if re.search(pattern, row["name"])]


def disassembly(file):
    """Address: (bytes, text) of every instruction of a file."""
    text = subprocess.run(["objdump", "-d", "-w", file], capture_output=True, text=True, check=True).stdout
    found = (INSTRUCTION.match(line) for line in text.splitlines())
    return {int(m[1], 16): (m[2].replace(" ", ""), m[3]) for m in found if m}


def find(timer_path, file, code, kernel, build):
    """The loop whose backward jumps are the most often taken, or the reason why there is none."""
    n = int(kernel["n"])
    traces = [trace(timer_path, file, code, kernel, length) for length in (n // 2, n // 4)]
    turns = [collections.Counter(b for a, b in zip(one, one[1:]) if b <= a) for one in traces]
    if not turns[0]:
        return "no loop"
    start = max(turns[0], key=lambda at: turns[0][at])
    per_element = (turns[0][start] - turns[1][start]) / (n // 2 - n // 4)
    outside = [len(one) for one in traces]
    paths, current = collections.Counter(), None
    for at in traces[0]:
        if at == start:
            paths.update([tuple(current)] if current else [])
            current = []
        if current is not None:
            current.append(at)
    path = list(max(paths, key=lambda one: paths[one]))
    visited = {at for one, count in paths.items() for at in one}
    after_jump = {b for a, b in zip(traces[0], traces[0][1:]) if JUMP.match(code[a][1])}
    end = path[-1] + len(code[path[-1]][0]) // 2
    if per_element <= 0 or outside[0] <= outside[1]:
        return "its iterations do not grow with its length"
    return Loop(file, kernel, build, start, end, path, paths[tuple(path)] / sum(paths.values()),
                max(1, len(visited & after_jump)), per_element, visited, code)


def trace(timer_path, file, code, kernel, length):
    """The addresses of the instructions of one call, those of the library only."""
    done = subprocess.run([timer_path, "trace", file, kernel["name"], str(length), kernel["fill"].replace(" ", ",")],
                          capture_output=True, text=True, check=True)
    return [at for at in (int(line, 16) for line in done.stdout.split()) if at in code]


def native(timer_path, loop, cpu):
    """One process: cycles of an iteration, and how much more an iteration takes in the upper half of the lengths than in
    the lower one (a check: 0)."""
    n, fill = int(loop.kernel["n"]), loop.kernel["fill"]
    # Elements that the most unrolled vector loop takes at once.
    unit = 128 if n >= 2048 and re.search("u8|text|runs", fill) else 32 if n >= 1024 else 16
    done = subprocess.run(["taskset", "-c", cpu, timer_path, "time", loop.file, loop.kernel["name"], str(n),
                           fill.replace(" ", ","), str(unit)], capture_output=True, text=True, check=True)
    lengths, *batches = [[float(x) for x in line.split()] for line in done.stdout.splitlines()]
    turns, half = [one * loop.per_element for one in lengths], len(lengths) // 2
    found = sorted((slope(turns, one), slope(turns[:half], one[:half]) / slope(turns[half:], one[half:]) - 1)
                   for one in batches)
    fast = [one for one in found if one[0] <= 1.03 * found[0][0]]
    return (median([one for one, _ in fast]), median([bend for _, bend in fast])) if fast else None


def slope(x, y):
    """Slope of a line through points: the median over pairs near each other. Where the exit of a loop ceases to be
    predicted there is a step, which only the few pairs on both sides of it see."""
    apart = max(1, len(x) // 6)
    return median([(y[i] - y[i + apart]) / (x[i] - x[i + apart]) for i in range(len(x) - apart)])
