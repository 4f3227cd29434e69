#!/usr/bin/env python3
"""Makes tests/truth/verdicts.csv: blocks of known nature, labelled before the tool's verdict on them was seen.

    tests/truth/make/verdicts.py --mca COMMAND --blocks FILE

The drawn ones come from the BHive suite (Chen et al., IISWC 2019; MIT licence) by tests/truth/make/draw.py; of its
candidates those were kept of which the assembly, read by hand, says the same as LLVM-MCA and the measured throughput.
The others were written for the purpose. COMMAND is an llvm-mca with its -mcpu.
"""

import argparse
import csv
import os
import re
import subprocess
import tempfile

from bounds import disassembled

TARGET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "verdicts.csv")
ITERATIONS = 200
# Constants of Golden Cove in the reasons: Intel's optimization reference manual (248966) and uops.info (Alder Lake P):
# 6 operations renamed a cycle, 8 from the op cache, 5 integer ports, 3 loads, 2 stores, 512 entries.
# Row of bhive-dev.csv (1 is the header), class, reason.
DRAWN = [
    (18359, "front-end", "an imm64 takes two op-cache slots: 15 bytes, 3 slots; ports 0.40, width 0.33"),
    (10570, "front-end", "an imm64 takes two op-cache slots; ports 0.40, width 0.33, loads 0.33"),
    (12715, "front-end", "an imm64 takes two op-cache slots; the move is eliminated: ports 0.20, width 0.33"),
    (10538, "front-end", "an imm64 takes two op-cache slots; ports 0.40, width 0.33, loads 0.33"),
    (10554, "front-end", "an imm64 takes two op-cache slots; ports 0.40, width 0.33, loads 0.33"),
    (13776, "issue-width", "9 operations, three moves and a zeroing eliminated; 3 loads 1.00, one store; r13 adds an "
                           "immediate, 1 at most"),
    (7521, "issue-width", "5 operations, three on ports at most: 0.60; no chain from one iteration to the next"),
    (8721, "issue-width", "8 operations; loads 0.67, five on integer ports: 1.00; the chain on rcx is 1"),
    (12767, "issue-width", "5 operations, four moves eliminated; one store 0.50; no chain"),
    (13272, "issue-width", "5 operations, two moves eliminated; ports 0.60; no chain"),
    (8348, "issue-width", "16 operations; loads 2.00, stores 1.00, multiplication 1.00; no chain"),
    (8384, "ports", "5 loads of 3 a cycle: 1.67; width 1.17; no chain from one iteration to the next"),
    (7382, "ports", "3 loads of 3 a cycle: 1.00; width 0.50; none leads to another"),
    (9189, "ports", "2 loads of 3 a cycle: 0.67; width 0.33; rsi is loaded anew"),
    (19548, "ports", "2 stores of 2 a cycle: 1.00; width 0.33; nothing is read back"),
    (11181, "dependency", "rcx += r10, 1 cycle; width 0.50, ports 0.60"),
    (10956, "dependency", "rdx through cmp and cmove: 2; width 0.50; one store 0.50"),
    (19272, "dependency", "vsqrtss merges xmm0 into its result: its latency, 12; the divider alone is 3"),
    (17250, "dependency", "ecx through cmp and cmovl: 2; width 0.83"),
    (12951, "dependency", "rax through sub and sar: 2; width 0.67"),
    (17325, "dependency", "eax is loaded from the address that it makes: a load's latency, 5; the store is elsewhere"),
    (7495, "store-forwarding", "a counter of 16 bits: load, add, store to [rdx+0x60], read back by the next iteration"),
    (16403, "store-forwarding", "sbb to [rsp+0x88], read back by the next iteration; all else is under 1"),
    (6795, "store-forwarding", "three counters on the stack, each read back by the next iteration"),
    (19349, "store-forwarding", "sums at [rsp+0x88] and [rsp+0x90], each read back; multiplications 4"),
    (18876, "store-forwarding", "sums on the stack at 0x90, 0x98 and 0xa8, each read back; multiplications 4"),
    (3912, "store-forwarding", "[rdx] += product, by movss and addss, read back by the next iteration"),
]
# Name, class, assembly (Intel syntax), reason.
MADE = [
    ("movabs_4", "front-end", "movabs rax,0x1122334455667788;movabs rcx,0x1122334455667788;"
     "movabs rdx,0x1122334455667788;movabs rsi,0x1122334455667788",
     "6.4 in 64 bytes, two op-cache slots each: two lines, 3.2 a cycle; ports 0.80, width 0.67"),
    ("movabs_move", "front-end", "movabs rax,0x1122334455667788;mov rcx,rdx;movabs rdi,0x1122334455667788",
     "two op-cache slots for each imm64; the move is eliminated: ports 0.40, width 0.50"),
    ("movabs_zero", "front-end", "movabs r8,0x1122334455667788;movabs r9,0x1122334455667788;mov r10,rbx;xor r11d,r11d",
     "two op-cache slots for each imm64; move and zeroing are eliminated: ports 0.40, width 0.67"),
    ("movabs_5", "front-end", "movabs rax,0x1122334455667788;movabs rcx,0x1122334455667788;"
     "movabs rdx,0x1122334455667788;vxorps xmm0,xmm0,xmm0;movabs rdi,0x1122334455667788;movabs r8,0x1122334455667788",
     "two op-cache slots for each imm64: 1.56 and more; ports 1.00, width 1.00"),
    ("moves", "issue-width", "mov rax,rbx;mov rcx,rbx;mov rdx,rbx;mov rsi,rbx;mov rdi,rbx;mov r8,rbx",
     "6 eliminated moves: no port, no chain, width 1.00"),
    ("mixed_6", "issue-width", "mov rcx,rbx;xor edx,edx;lea rsi,[rbx+8];vxorps xmm1,xmm1,xmm1;mov rdi,[rbx];test rdi,rdi",
     "6 operations, three eliminated, one load, two on integer ports; width 1.00"),
    ("mixed_7", "issue-width", "mov rax,rbx;lea rcx,[rbx+1];lea rdx,[rbx+16];mov rsi,[rbx];vpxor xmm1,xmm1,xmm1;"
     "mov r8,rcx;test rdi,rdi", "7 operations, three eliminated, one load, three on integer ports; width 1.17"),
    ("imul_3", "ports", "imul rax,rbx,3;imul rcx,rbx,5;imul rdx,rbx,7", "three multiplications on one port; no chain"),
    ("popcnt_3", "ports", "popcnt rax,rbx;lzcnt rcx,rbx;xor ecx,ecx;popcnt rdx,rbx", "three on port 1 alone; no chain"),
    ("load_6", "ports", "mov rax,[rbx];mov rcx,[rbx+8];mov rdx,[rbx+16];mov rsi,[rbx+24];mov rdi,[rbx+32];"
     "mov r8,[rbx+40]", "6 loads of 3 a cycle: 2.00; width 1.00"),
    ("vpermd_2", "ports", "vpermd ymm1,ymm0,ymm2;vpermd ymm3,ymm0,ymm2", "two shuffles across lanes on port 5; no chain"),
    ("vdivpd", "ports", "vdivpd ymm1,ymm0,ymm2", "the divider, 8 cycles each by uops.info (1 in LLVM-MCA's model); no chain"),
    ("imul_chain", "dependency", "imul rax,rax", "latency 3, throughput 1"),
    ("imul_add", "dependency", "imul rax,rcx;add rax,rdx", "latency 3 and 1"),
    ("addsd_mulsd", "dependency", "addsd xmm0,xmm1;mulsd xmm0,xmm1", "latency 3 and 4"),
    ("chase", "dependency", "mov rax,[rax]", "a load's latency, 5; nothing is stored"),
    ("movups", "store-forwarding", "movups [rbx],xmm0;movups xmm0,[rbx]", "16 bytes stored and read back"),
    ("vmovups", "store-forwarding", "vmovups [rbx],ymm0;vmovups ymm0,[rbx]", "32 bytes stored and read back"),
    ("halves", "store-forwarding", "mov [rbx],eax;mov [rbx+4],eax;mov rax,[rbx]", "two stores, one load: blocked"),
    ("sum_memory", "store-forwarding", "addsd xmm0,[rbx];movsd [rbx],xmm0", "a sum in memory, read back"),
    ("narrow", "store-forwarding", "mov byte ptr [rbx],al;mov rax,[rbx]", "a byte stored, 8 read: blocked"),
]

# Why a label was kept although LLVM-MCA (19.1.7, sapphirerapids) says otherwise.
OTHERWISE = {
    "mixed_6": "no: its model lets zeroing idioms wait for their operands, which hardware does not",
    "mixed_7": "no: its model lets zeroing idioms wait for their operands, which hardware does not",
}


def main():
    """Makes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mca", required=True, metavar="COMMAND", help="llvm-mca with its -mcpu")
    parser.add_argument("--blocks", required=True, help="bhive-dev.csv")
    args = parser.parse_args()
    with open(args.blocks, newline="") as file:
        suite = list(csv.DictReader(file))
    rows = [described(f"bhive-{number}", suite[number - 2]["hex"], f"BHive: {suite[number - 2]['sources']}", kind,
                      reason, args.mca) for number, kind, reason in DRAWN]
    rows += [described(name, assembled(text), "made", kind, reason, args.mca) for name, kind, text, reason in MADE]
    with open(TARGET, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{TARGET}: {len(rows)} blocks, {len(DRAWN)} of them drawn")


def assembled(text):
    """Hexadecimal bytes of assembly."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "block")
        with open(f"{path}.s", "w") as file:
            file.write(".intel_syntax noprefix\n" + text.replace(";", "\n") + "\n")
        subprocess.run(["as", "-o", f"{path}.o", f"{path}.s"], check=True)
        subprocess.run(["objcopy", "-O", "binary", "-j", ".text", f"{path}.o", f"{path}.bin"], check=True)
        with open(f"{path}.bin", "rb") as file:
            return file.read().hex()


def described(name, code, origin, kind, reason, mca):
    """One row: the label, and what LLVM-MCA says."""
    assembly = disassembled(code)
    text = simulated(mca, assembly, "-bottleneck-analysis")
    found = {what: float(share) for what, share in
             re.findall(r"(Resource Pressure|Register Dependencies|Memory Dependencies)\s+\[ ([\d.]+)% \]", text)}
    ports = re.search(r"Resource pressure per iteration:\n.*\n(.*)\n", text).group(1).split()
    row = {"name": name, "origin": origin, "hex": code, "class": kind, "reason": reason,
            "mca cycles": cycles(text), "mca cycles -noalias=0": cycles(simulated(mca, assembly, "-noalias=0")),
            "mca busiest port": max(float(one) for one in ports if one != "-") if set(ports) != {"-"} else 0,
            "mca operations": f"{int(re.search(r'Total uOps: +([0-9]+)', text).group(1)) / ITERATIONS:.0f}",
            "mca bottleneck": max(found, key=found.get) if any(found.values()) else "none reported"}
    return row | {"mca agrees": agreement(row, assembly.count("\n"))}


def agreement(row, count):
    """Whether LLVM-MCA's numbers say the same as the label, and if not, how they differ."""
    time, alias, port = float(row["mca cycles"]), float(row["mca cycles -noalias=0"]), float(row["mca busiest port"])
    if row["class"] == "front-end":
        return "no front end in the model; its bounds are below the measured time"
    agrees = {"issue-width": port < count / 6 and time <= 1.15 * count / 6,
              "ports": time <= 1.15 * port,
              "dependency": row["mca bottleneck"] == "Register Dependencies",
              "store-forwarding": alias >= 1.4 * time}[row["class"]]
    return "yes" if agrees else OTHERWISE[row["name"]]


def simulated(mca, assembly, option):
    """LLVM-MCA's report."""
    return subprocess.run([*mca.split(), f"-iterations={ITERATIONS}", option], input=assembly, capture_output=True,
                          text=True, check=True).stdout


def cycles(text):
    """Cycles an iteration in a report."""
    return f"{int(re.search(r'Total Cycles: +([0-9]+)', text).group(1)) / ITERATIONS:.2f}"


if __name__ == "__main__":
    main()
