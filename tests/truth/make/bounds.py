#!/usr/bin/env python3
"""Makes tests/truth/bounds/kernels.csv: loops that a recurrence bounds, with LLVM-MCA's predictions for them.

    tests/truth/make/bounds.py --mca NAME=COMMAND [--mca NAME=COMMAND …]

The code is that of tests/truth/deps/gcc-O*.csv. What bounds each loop was written by hand, from its assembly, before
any prediction was made. The measurement is to start with the real values of the registers that addresses are made of
(`init`). COMMAND is an llvm-mca with its -mcpu; it is run with and without `-noalias=0`.
"""

import argparse
import csv
import os
import re
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DEPS = os.path.join(HERE, "..", "deps")
TARGET = os.path.join(HERE, "..", "bounds", "kernels.csv")
ITERATIONS = 1000

# Name, level, where it is from, what bounds it.
KERNELS = [
    ("stencil_add", "O1", "notes", "load → add → store → the next iteration's load: forwarding and 1"),
    ("stencil_half", "O1", "notes", "a third of: load → mulsd → addsd → store → load three iterations on"),
    ("accumulate", "O1", "notes", "load → addsd → store → the next iteration's load: forwarding and an addition"),
    ("halves", "O1", "notes", "two 32-bit stores → one 64-bit load: blocked until both are in the cache"),
    ("updcrc", "O1", "notes", "crc → xor → movzx → load of the table → xor → crc"),
    ("lz_copy_1", "O1", "notes", "load → store → the next iteration's load: forwarding"),
    ("lz_copy_3", "O1", "notes", "a third of: load → store → load three iterations on"),
    ("sum_int", "O0", "notes", "sum and i in stack slots, each load → add → store → load"),
    ("stencil_long_2", "O1", "own", "half of: load → lea (times 3) → add → store → load two iterations on"),
    ("prefix_memory", "O1", "own", "load → add → store → the next iteration's load"),
    ("fibonacci", "O1", "own", "load → add → store → the next iteration's load (the nearer of two)"),
    ("biquad", "O1", "own", "load of out[i-1] → mulsd → addsd/subsd → store → load"),
    ("lagged", "O1", "own", "half of: load → add → store → load two iterations on"),
    ("murmur", "O1", "own", "load → xor → rol → lea (times 5, plus) → store → load"),
    ("xorshift", "O1", "own", "load → three times shift and xor → store → load"),
    ("struct_one", "O1", "own", "half of: a → c → b → a two iterations on, through three fields: three times forwarding and 1"),
    ("complex_power", "O1", "own", "load → mulsd → addsd/subsd → store → load"),
    ("adler", "O1", "own", "sums[0] and sums[1], each load → add → store → load; [1] needs [0]'s forwarded value"),
    ("halves_read", "O1", "own", "store of 64 → load of 32 within it → xor → add → store"),
    ("bytes_word", "O1", "own", "four 8-bit stores → one 32-bit load: blocked"),
    ("unaligned_words", "O1", "own", "store of 8 bytes → load of the same 8 → add → store"),
    ("sum_double", "O1", "own", "addsd in a register"),
    ("horner", "O1", "own", "mulsd → addsd in a register"),
    ("dot", "O1", "own", "addsd in a register"),
    ("fnv", "O1", "own", "xor → imul in a register"),
    ("list_walk", "O1", "own", "load of the next pointer"),
    ("bit_count", "O1", "own", "lea → and in a register"),
    ("big_multiply", "O1", "own", "add of the carry → shift in a register"),
    ("counters", "O1", "own", "each counter load → add → store → load"),
    ("push_pop", "O1", "own", "three registers round through push and pop"),
    ("ring_buffer", "O1", "own", "a quarter of: load → lea → store → load four iterations on"),
    ("two_pointers", "O1", "own", "a quarter of: load → add → store → load four iterations on"),
    ("pointer_bump", "O1", "own", "the cursor: load → add → store → load"),
    ("interpreter", "O1", "own", "the depth: four times load → add → store → load; the stack's slots"),
]


def main():
    """Makes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mca", action="append", required=True, metavar="NAME=COMMAND", help="may be repeated")
    tools = [text.split("=", 1) for text in parser.parse_args().mca]
    rows = [row(*kernel, tools) for kernel in KERNELS]
    with open(TARGET, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{TARGET}: {len(rows)} kernels")


def row(name, level, origin, reason, tools):
    """One kernel."""
    with open(os.path.join(DEPS, f"gcc-{level}.csv"), newline="") as file:
        found = next(one for one in csv.DictReader(file) if one["name"] == name)
    registers = dict(re.findall(r"(\w+)=(\w+)", found["registers"]))
    assembly = disassembled(found["hex"])
    pointers = [one for one in registers if re.search(rf"\([^)]*%{one}\b", assembly)]
    result = {"name": name, "optimisation": level, "origin": origin, "hex": found["hex"],
              "init": " ".join(f"{one}=0x{registers[one]}" for one in pointers), "bound_by": reason}
    for tool, command in tools:
        for suffix, options in (("", []), (" -noalias=0", ["-noalias=0"])):
            result[tool + suffix] = cycles(command.split() + options, assembly)
    return result


def disassembled(text):
    """Assembly of raw bytes, AT&T syntax."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(bytes.fromhex(text))
        file.flush()
        listing = subprocess.run(["objdump", "-D", "-b", "binary", "-m", "i386:x86-64", file.name],
                                 capture_output=True, text=True, check=True).stdout
    parts = [line.split("\t") for line in listing.splitlines()]
    return "\n".join(part[2].split("#")[0] for part in parts if len(part) == 3) + "\n"


def cycles(command, assembly):
    """Cycles an iteration by LLVM-MCA."""
    text = subprocess.run([*command, f"-iterations={ITERATIONS}"], input=assembly, capture_output=True, text=True,
                          check=True).stdout
    total = re.search(r"Total Cycles: +(\d+)", text).group(1)
    return f"{int(total) / ITERATIONS:.2f}"


if __name__ == "__main__":
    main()
