#!/usr/bin/env python3
"""Ports of Zen 5 measured natively: which port sets explain how long instructions take alone and among others whose
ports are known. Prints `form | mnemonic | operands | cycles alone and beside each probe | ports` for every form that the host runs.

    tests/tools/native_ports.py --codes ~/.cargo/registry/src/*/iced-x86-1.22.0/src/code.rs [--cpu 1] [--only REGEX]

A loop holds instructions that are independent of one another; its cycles are timed as in tests/figures/native_chains.py.
A probe whose ports overlap those of the instruction takes longer beside it, by an amount that tells how many they
share. Products are on FP0 and FP1, additions on FP2 and FP3 (AMD's guide, GCC's zn4zn5.md); byte shuffles on FP1 and FP2.
Ports are told for vectors: the least of the sets below whose bound (µops per port) is nearest. zen5_ports.csv has them, by hand
only where several µops (conversions from and to general registers, microcode), general registers, dividers and zero idioms come
in; of legacy forms it has those of the VEX forms, as here they merge into registers whose upper parts are not 0.
"""

import argparse
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from port_tables import LEFT_OUT, SIZES  # noqa: E402

POOL = {"64": "rax rbx rsi rdi r8 r9 r10 r11 r13 r14".split(), "32": "eax ebx esi edi r8d r9d r10d r11d r13d r14d".split(),
        "16": "ax bx si di r8w r9w r10w r11w r13w r14w".split(), "8": "al bl sil dil r8b r9b r10b r11b r13b r14b".split()}
READ = {"64": "rbp", "32": "ebp", "16": "bp", "8": "bpl"}
COUNT = {"64": "rcx", "32": "ecx", "16": "cx", "8": "cl"}
UNSAFE = re.compile(
    r"^(hlt|cl[iacd]|st[iadc]|sldt|leave|enter|push|pop|ret|call|j|loop|x(begin|abort|end|test|getbv|setbv)|ud|wr|rd|mwait|monitor|cpuid|"
    r"i?div$|in[vt]|clgi|stgi|skinit|serialize|swapgs|lmsw|smsw|lldt|ltr|senduipi|uiret|tpause|umwait|umonitor|clzero|"
    r"getsec|rsm|pconfig|psmash|pvalidate|rmp|t?l?pause|wait|hreset|cmpxchg16b|cmpxchg8b|lfence|mfence|sfence|mov[sd]|movdir|enqcmd|"
    r"maskmov|vmaskmovdqu|fx|ld|bnd|ptwrite|clwb|cldemote|clflush|xlat|las?lahf|les|lds|lss|lfs|lgs)")
FP = {"M": ("vmulps {v}, xmm14, xmm15", "01"), "A": ("vaddps {v}, xmm14, xmm15", "23"), "B": ("vpshufb {v}, xmm14, xmm15", "12"),
      "C": ("vpaddsb {v}, xmm14, xmm15", "03"), "P": ("vpaddd {v}, xmm14, xmm15", "0123")}
INSTANCES = 60  # a multiple of the registers of each kind
ENTER = """.globl block{0}
.align 64
block{0}: push rbx; push rbp; push r12; push r13; push r14; push r15
mov r12,rdi; mov r15,rsi
mov rax,0x3ff0000000000000; {2}
mov eax,5; kxnorq k1,k1,k1; kxnorq k2,k2,k2; kxnorq k3,k3,k3
mov eax,5; mov ebx,5; mov ecx,3; mov edx,0; mov ebp,3; mov esi,5; mov edi,5; mov r8d,5; mov r9d,5; mov r10d,5; mov r11d,5; mov r13d,5; mov r14d,5
test ebx,ebx
.align 64
1:
{1}
dec r12
jnz 1b
vzeroupper
pop r15; pop r14; pop r13; pop r12; pop rbp; pop rbx
ret"""
TIMER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <setjmp.h>
#include <x86intrin.h>
typedef unsigned long u64;
extern void (*blocks[])(u64, void *);
extern u64 count;
static char memory[1 << 16] __attribute__((aligned(4096)));
static char stack[1 << 16];
static sigjmp_buf back;
static void caught(int s) { siglongjmp(back, s); }
static u64 ticks(void) { unsigned a; _mm_lfence(); u64 t = __rdtscp(&a); _mm_lfence(); return t; }
static u64 chain(void) {
    u64 start = ticks(), n = 400, x = 0;
    __asm__ volatile("1:\n.rept 20\nadd %2, %0\n.endr\ndec %1\njnz 1b" : "+r"(x), "+r"(n) : "r"(n));
    return ticks() - start;
}
static int order(const void *a, const void *b) { double d = *(double *)a - *(double *)b; return d < 0 ? -1 : d > 0; }
int main(void) {
    enum { ROUNDS = 31 };
    stack_t alt = { .ss_sp = stack, .ss_size = sizeof stack };
    sigaltstack(&alt, 0);
    struct sigaction act = { .sa_handler = caught, .sa_flags = SA_ONSTACK | SA_NODEFER };
    sigaction(SIGILL, &act, 0); sigaction(SIGSEGV, &act, 0); sigaction(SIGFPE, &act, 0); sigaction(SIGBUS, &act, 0);
    static double found[ROUNDS];
    for (u64 k = 0; k < count; k++) {
        volatile int bad = sigsetjmp(back, 1);
        for (volatile int i = 0; i < ROUNDS && !bad; i++) {
            u64 unit = chain(), t = ticks();
            blocks[k](40, memory);
            u64 few = ticks() - t;
            t = ticks();
            blocks[k](140, memory);
            u64 many = ticks() - t, other = chain();
            found[i] = ((double)many - (double)few) / 100 * 8000.0 / (unit < other ? unit : other);
        }
        qsort(found, ROUNDS, sizeof *found, order);
        printf("%f\n", bad ? -1.0 : found[ROUNDS * 3 / 10]);
    }
}
"""
VALUES = {"d": "; ".join(f"vpbroadcastq zmm{n},rax" for n in range(16)),
          "s": "mov eax,0x3f800000; " + "; ".join(f"vpbroadcastd zmm{n},eax" for n in range(16))}


def timed(blocks, cpu):
    """Cycles of an iteration of each block of instructions; None for those that fault or do not assemble."""
    found = [None] * len(blocks)
    for start in range(0, len(blocks), 2000):
        wanted = list(range(start, min(start + 2000, len(blocks))))
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(3):
                lines, at_line = [".intel_syntax noprefix", ".text"], {}
                for number, block in enumerate(wanted):
                    body = blocks[block]
                    kind = "d" if re.search(r"[ps]d\b|sd2|pd2", body[0].split()[0]) else "s"
                    for line in ENTER.format(number, "\n".join(body), VALUES[kind]).split("\n"):
                        lines.append(line)
                        at_line[len(lines)] = block
                lines += [".data", ".globl blocks", "blocks:", *(f".quad block{n}" for n in range(len(wanted))),
                          ".globl count", f"count: .quad {len(wanted)}", '.section .note.GNU-stack,"",@progbits', ""]
                pathlib.Path(folder, "b.s").write_text("\n".join(lines))
                done = subprocess.run(["as", "-o", f"{folder}/b.o", f"{folder}/b.s"], capture_output=True, text=True)
                refused = {at_line.get(int(n)) for n in re.findall(r"b\.s:(\d+): Error", done.stderr)}
                if not refused:
                    break
                wanted = [b for b in wanted if b not in refused]
            pathlib.Path(folder, "t.c").write_text(TIMER)
            subprocess.run(["gcc", "-O1", "-static", "-no-pie", "-o", f"{folder}/t", f"{folder}/t.c", f"{folder}/b.o"], check=True)
            out = subprocess.run(["taskset", "-c", cpu, f"{folder}/t"], capture_output=True, text=True).stdout.split()
        for block, cycles in zip(wanted, out):
            found[block] = float(cycles) if float(cycles) > 0 else None
    return found


def operand(token, at, turn, in_memory, name):
    """(assembly, class) of the operand `at` of the `turn`th instance."""
    vector = re.fullmatch(r"([xyz]mm)(?:p3)?(?:m(\d+)(?:b\d+)?)?", token)
    general = re.fullmatch(r"r(\d+)(?:m(\d+))?|rm(\d+)", token)
    lanes = re.fullmatch(r"vm\d+([xyz])", token)
    mask = re.fullmatch(r"kr|kp1|km(\d+)", token)
    plain = re.fullmatch(r"m(\d*)(?:int|fp)?", token)
    fixed = {"AL": "8", "AX": "16", "EAX": "32", "RAX": "64"}
    def at_address(bits):
        return f"{SIZES[int(bits)]} ptr [r15]" if bits and int(bits) in SIZES else "[r15]", "memory"
    if vector:
        if in_memory and vector[2]:
            return at_address(vector[2])
        number = turn % 12 if at == 0 else 11 + at if at < 4 else 15
        return f"{vector[1]}{number}", vector[1]
    if general:
        bits, size = general[1] or general[3], general[2] or general[3]
        if in_memory and size:
            return at_address(size)
        return (POOL[bits][turn % 10] if at == 0 else READ[bits] if at == 1 else COUNT[bits]), "gpr"
    if mask:
        if in_memory and mask[1]:
            return at_address(mask[1])
        return f"k{2 + turn % 6}" if at == 0 else "k1", "k"
    if plain:
        return at_address(plain[1])
    if re.fullmatch(r"imm\d+", token):
        return "3", "immediate"
    if token == "1":
        return "1", "immediate"
    if token == "CL":
        return "cl", "gpr"
    if token in fixed:
        return token.lower(), "gpr"
    return None


def candidates(codes, only):
    """(form, name, classes, instances) of every code that can be timed."""
    for code in codes:
        if LEFT_OUT.search(code) or not re.search(only, code):
            continue
        parts = re.sub(r"^(VEX|EVEX)_", "", code).split("_")
        name, tokens = parts[0].lower(), [t for t in parts[1:] if t not in ("k1", "k1z", "er", "sae")]
        if UNSAFE.match(name) and not re.match(r"movs[xsdhl]|movd|movdd|movdq", name) or not tokens:
            continue
        evex = "{evex} " if code.startswith("EVEX_") and "zmm" not in code and not name.startswith("vp2") else ""
        for in_memory in (False, True):
            instances = []
            for turn in range(INSTANCES):
                operands = [operand(t, at, turn, in_memory, name) for at, t in enumerate(tokens)]
                if None in operands:
                    break
                instances.append(f"{evex}{name} " + ", ".join(text for text, _ in operands))
            if len(instances) < INSTANCES:
                break
            classes = [kind for _, kind in operands]
            either = any(re.fullmatch(r"rm\d+|r\d+m\d+|[xyz]mmm\d+(b\d+)?|km\d+", t) for t in tokens)
            if in_memory and not either:
                break
            if name == "xchg" and "memory" in classes:
                continue
            yield code + (("_mem" if in_memory else "_reg") if either else ""), name, classes, instances


def beside(instances, probe, each=1):
    """The instances, each with `each` instances of a probe."""
    out = []
    for turn, line in enumerate(instances):
        out.append(line)
        for n in range(each):
            at = turn * each + n
            out.append(probe.format(v=f"xmm{16 + at % 12}", r=POOL["64"][(turn + 5 + n) % 10], e=POOL["32"][(turn + 5 + n) % 10]))
    return out


GPR = {"I": ("imul {r}, rbp, 7", 1), "L": ("cmovo {r}, rbp", 1), "D": ("lea {r}, [rbp+8]", 2), "S": ("movd {e}, xmm15", 1), "W": ("mov [r15+64], rbp", 1)}


SETS = [frozenset(ports) for ports in ("0123", "01", "23", "12", "03")]
ENTRIES = [(), *(((s, n),) for s in SETS for n in (1, 2)), *(((a, 1), (b, 1)) for a, b in itertools.combinations(SETS, 2))]


def bound(uses):
    """The most µops per port over unions of their port sets."""
    unions = {frozenset().union(*(s for s, _ in some)) for n in range(1, len(uses) + 1) for some in itertools.combinations(uses, n)}
    return max((sum(n for s, n in uses if s <= union) / len(union) for union in unions), default=0)


def explained(values, in_memory):
    """The ports of a vector instruction whose cycles alone and beside probes are `values`."""
    def error(entry):
        total = 0.02 * sum(n for _, n in entry)
        for key, cycles in values.items():
            each, probe = (int(key[0]), key[1]) if key[:1].isdigit() else (1, key)
            if probe in FP or not probe:
                uses = [*entry, *([(frozenset(FP[probe][1]), each)] if probe else [])]
                ratio = cycles / max(bound(uses), 0.5 if in_memory else 0, (1 + each) / 8)
                total += (ratio - 1) ** 2 * (1 if ratio >= 1 else 6)
        return total
    best = min(ENTRIES, key=error)
    return " ".join("|".join(f"fp{port}" for port in sorted(s)) + f"*{n}" * (n > 1) for s, n in best)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--codes", type=pathlib.Path, required=True, help="code.rs of iced-x86")
    parser.add_argument("--cpu", default="1")
    parser.add_argument("--only", default="", help="codes that match this")
    args = parser.parse_args()
    codes = re.findall(r"^\t([A-Z]\w*) = ", args.codes.read_text(), re.M)
    forms = list(candidates(codes, args.only))
    kinds, blocks = [], []
    for form, name, classes, instances in forms:
        vector = bool({"xmm", "ymm", "zmm", "k"} & set(classes))
        probes = {k: (p, 1) for k, (p, _) in FP.items()} if vector else {}
        if vector and "memory" in classes:
            probes |= {f"{n}{k}": (FP[k][0], n) for k, n in (("P", 3), ("M", 2), ("A", 2), ("B", 2), ("C", 2))}
        gpr = {k: v for k, v in GPR.items() if not vector or k == "S"}
        blocks.append(instances)
        kinds.append([""] + list(probes) + list(gpr))
        blocks += [beside(instances, p, n) for p, n in [*probes.values(), *gpr.values()]]
    cycles = iter(timed(blocks, args.cpu))
    for (form, name, classes, _), keys in zip(forms, kinds):
        values = {key: next(cycles) for key in keys}
        if values[""] is None:
            continue
        values = {key: value / INSTANCES for key, value in values.items() if value}
        shown = " ".join(f"{key or 'alone'}={value:.3f}" for key, value in values.items())
        ports = explained(values, "memory" in classes) if "M" in values and values[""] < 1.3 else ""
        print(f"{form}|{name}|{','.join(classes)}|{shown}|{ports}", flush=True)


if __name__ == "__main__":
    main()
