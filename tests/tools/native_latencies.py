#!/usr/bin/env python3
"""Latencies of instructions on registers, measured in chains of their own on the processor at hand: entries for
events/latency/*.toml, like those of latency_tables.py, whose list of instructions they share.

    tests/tools/native_latencies.py [--cpu 1] [--raw]

A chain repeats an instruction (or two that swap operands) four times in a loop; its cycles are timed as in
tests/figures/native_chains.py, against a chain of additions. Where the latency from several operands differs, the entry
has the range. A latency is a whole number of cycles: chains that are not, within 0.07 and 0.4 %, are listed as comments and make
no entry. Between register files only a round trip can be timed; each way counts half of `movq` there and back. Every
cycle of dependencies that leaves a register file comes back to it, so how the round trip divides cancels out. Vector
chains are also timed as four and as eight links behind an `lfence`: on Zen 5 many vector instructions take 1 cycle while
the scheduler is nearly empty, and 2 behind others that wait in it.
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "figures"))
from latency_tables import FUSED, candidates  # noqa: E402
from native_chains import COPIES, TIMER  # noqa: E402

ENTER = """.globl block{0}
.align 64
block{0}: push rbx; push rbp; push r12; push r13; push r14; push r15
mov r12,rdi; lea r15,[rsi+2048]; mov [r15],r15; mov qword ptr [r15+8],0; lea r14,[rsi+1024]
mov rax,{2}; movq xmm0,rax; vbroadcast{3} zmm0,xmm0
vmovaps zmm1,zmm0; vmovaps zmm2,zmm0; vmovaps zmm3,zmm0; vmovaps zmm4,zmm0
{5}
mov eax,5; kxnorq k1,k1,k1; kxnorq k2,k2,k2; kxnorq k3,k3,k3
mov eax,5; mov ebx,3; mov ecx,3; mov edx,1; mov ebp,13; mov esi,3; mov edi,7; xor r13d,r13d; xor r8d,r8d; mov r9d,3
{4}
test ebx,ebx
.align 64
1:
{1}
dec r12
jnz 1b
vzeroupper
pop r15; pop r14; pop r13; pop r12; pop rbp; pop rbx
ret"""

# Legacy instructions that write their destination without reading all of it.
WRITE_ONLY = set("""bsf bsr popcnt lzcnt tzcnt blsi blsr blsmsk sqrtps sqrtpd sqrtss sqrtsd rcpps rsqrtps cvtdq2ps cvtps2dq
cvttps2dq cvtps2pd cvtpd2ps cvtdq2pd cvttpd2dq cvtsd2ss cvtss2sd movddup movshdup pabsd pshufd pshuflw pshufhw roundps
roundpd roundss roundsd rorx imul3 movzx movsx xchg aesimc
pmovzxbw pmovsxbw pmovzxdq pmovsxdq pmovzxbd pmovzxwd pmovsxwd""".split())
NAMES = {"rax": 0, "eax": 0, "al": 0, "ax": 0, "rbx": 1, "ebx": 1, "bl": 1, "bx": 1, "rcx": 2, "ecx": 2}
WIDTHS = {"r": ("rax", "rbx", "rcx"), "e": ("eax", "ebx", "ecx"), "l": ("al", "bl", "cl")}

# class, mnemonics, chain, what to subtract: a number, or the name of another chain. {t} is half of `movq` there and back.
SPECIAL = [
    ("gpr", "cmp test", "{m} rax, rbx; cmovb rax, rsi", 1), ("gpr", "bt", "{m} rax, rbx; cmovb rax, rsi", 1),
    ("gpr8", "sete setne setb setae setl setge setle setg sets setns seto setno setp setnp setbe seta",
     "{m} al; cmp al, bl", 1),
    ("gpr", "cmovb cmove cmovl cmovo cmovs cmovp cmovae cmovne cmovge cmovno cmovns cmovnp cmovle cmovg cmovbe cmova",
     "cmp rax, rbx; {m} rax, rsi", 1),
    ("gpr", "cwde cdqe", "{m}", 0), ("gpr", "cdq cqo", "{m}; add rax, rdx", 1),
    ("gpr", "mul", "mul rbx", 0), ("gpr", "mul", "mul rbx; mov rax, rdx", 0), ("gpr", "imul1", "imul rbx; mov rax, rdx", 0),
    ("gpr", "mulx", "mulx rdx, rbx, rcx", 0), ("gpr", "mulx", "mulx rbx, rdx, rcx", 0), ("gpr", "mulx", "mulx rbx, rcx, rcx", 0),
    ("gpr32", "div idiv", "xor edx, edx; {m} ebx; or eax, 0x70000000", 1), ("gpr32", "div idiv", "xor edx, edx; {m} edi", 0),
    ("gpr64", "div idiv", "xor edx, edx; {m} rbx; bts rax, 62", 1), ("gpr64", "div idiv", "xor edx, edx; {m} rdi", 0),
    ("gpr64", "div", "mov edx, 5; {m} rbp; bts rax, 62", 1),
    ("xmm gpr", "movd movq vmovd vmovq", "movq xmm0, rax; movq rax, xmm0", "{t}"),
    ("k gpr", "kmovb kmovw kmovd kmovq", "kmovq k1, rax; kmovq rax, k1", "{k}"),
    ("xmm gpr", "pmovmskb movmskps movmskpd", "{m} eax, xmm0; movq xmm0, rax", "{t}"),
    ("ymm", "vpmovmskb vmovmskps vmovmskpd", "{m} eax, ymm0; vmovq xmm0, rax", "{t}"),
    ("xmm gpr", "cvtsi2sd cvtsi2ss", "{m} xmm0, rax; movq rax, xmm0", "{t}"),
    ("xmm gpr", "vcvtsi2sd vcvtsi2ss", "{m} xmm0, xmm1, rax; vmovq rax, xmm0", "{t}"),
    ("xmm gpr", "cvttsd2si cvtsd2si cvttss2si cvtss2si vcvttsd2si vcvttss2si", "{m} rax, xmm0; movq xmm0, rax", "{t}"),
    ("xmm imm", "pextrq vpextrq", "{m} rax, xmm0, 1; movq xmm0, rax; punpcklqdq xmm0, xmm0", "{t}+1"),
    ("xmm imm", "pextrd pextrb pextrw", "{m} eax, xmm0, 0; movq xmm0, rax", "{t}"),
    ("xmm imm", "pinsrd pinsrw pinsrb", "{m} xmm0, eax, 0; movq rax, xmm0", "{t}"), ("xmm imm", "pinsrq", "{m} xmm0, rax, 0; movq rax, xmm0", "{t}"),
    ("xmm", "ucomisd ucomiss comisd comiss vucomisd vucomiss vcomisd vcomiss ptest vptest",
     "{m} xmm0, xmm1; cmovb rax, rsi; movq xmm0, rax", "{t}+1"),
    ("ymm", "vptest", "{m} ymm0, ymm1; cmovb rax, rsi; vmovq xmm0, rax", "{t}+1"),
    ("k", "vpcmpd vpcmpub vpcmpeqd_", "vpcmpd k1, zmm0, zmm1, 0; vpmovm2d zmm0, k1", "{m}"),
]
PAIRS = [  # further instructions with two and three registers
    ("xmm", "{m} xmm0, xmm1", "packusdw packsswb pmaddubsw pmulhuw pmulhrsw pmuldq pavgb psignd pminsw pmaxsw pminuw pminud pmaxud "
     "pminsb pmaxsb paddsb paddusb psubusb punpckhbw punpckhwd punpckhdq punpcklwd pcmpgtw hsubps hsubpd phaddw aesimc "
     "aesdeclast pmovzxbw pmovsxbw pmovzxdq pmovsxdq pmovzxbd pmovzxwd rsqrtss rcpss sha1nexte sha256msg1"),
    ("xmm", "{v}0, {v}1", "vpmovzxbd vpmovsxbw vpmovsxdq vpmovzxdq vpmovzxwd vpabsb vpabsw vbroadcastss vpbroadcastd vpbroadcastq "
     "vpopcntd vplzcntd vpconflictd vcvtdq2pd vcvtps2pd vsqrtss_"),
    ("ymm", "{v}0, {x}1", "vpmovzxbw vpmovsxbw vpmovzxbd vpmovzxdq vpmovsxdq vpmovzxwd vbroadcastsd vpbroadcastq vpbroadcastw vpbroadcastb "
     "vcvtdq2pd vcvtps2pd"),
    ("zmm", "{v}0, {y}1", "vpmovzxbw vpmovzxwd vpmovzxdq vcvtdq2pd vcvtps2pd"), ("zmm", "{v}0, {x}1", "vpbroadcastd vpbroadcastq vbroadcastsd"),
    ("ymm", "{v}0, {v}1", "vpopcntd vplzcntd vpabsb"), ("zmm", "{v}0, {v}1", "vpopcntd vplzcntd"),
    *[(w, "{v}0, {v}1, {v}2", "vpmulhw vpmuldq vpcmpeqb vpcmpeqw vpcmpeqq vpcmpgtb vpcmpgtw vpcmpgtq vpminsw vpmaxsw vpminud vpmaxud "
       "vpunpcklwd vpunpckhbw vpunpckhdq vpunpckhqdq vpunpckhwd vpackusdw vpackuswb vpacksswb vpaddsb vpavgb vpsignd vunpckhps vunpckhpd "
       "vaesenc vaesdec vaesenclast vaesdeclast vhaddpd vpmulhuw vpmulhrsw") for w in ("xmm", "ymm")],
    *[(w, "{v}0, {v}1, {v}2", "vpermt2d vpermi2d vpmullq vpandd vpord vpxord vpandnd vpandq vporq vpxorq vpmulhw vpmuldq vpdpbusd vpdpwssd "
       "vpmadd52luq vpermw vprolvd vprorvd vpsllvw vgf2p8affineqb_") for w in ("xmm", "ymm", "zmm")],
    *[(w, "{v}0, {v}1, {v}2, 3", "vpternlogd vpternlogq valignd valignq vpshldd") for w in ("xmm", "ymm", "zmm")],
    *[(w, "{v}0, {v}1, 3", "vprold vprord vpsraw vpsrad vpsllw vpsrlw vpslldq vpsrldq") for w in ("xmm", "ymm", "zmm")],
    *[("ymm imm", "{v}0, {v}1, {v}2, 3", "vpblendd mpsadbw vperm2i128_")],
    *[(w, "{v}0, {v}1, {v}2", "vpermd vpermps vpermq vpermpd") for w in ("zmm",)],
    ("zmm imm", "{v}0, {v}1, 3", "vpermq vpermpd"), ("zmm", "{v}0, {v}1, {v}2, 1", "vshuff32x4 vshufi64x2"),
    *[("xmm imm", "{v}0, {v}1, {v}2, 3", "vroundsd vroundss vcmpsd vcmpss vpclmulqdq vinsertps")],
    ("xmm", "{v}0, {v}1, {v}2", "vsqrtsd vsqrtss vcvtss2sd vmovhlps vmovlhps vmovss vmovsd vpermilpd_"),
    *[("k", "{m} k1, k2, 3", "kshiftlw kshiftrw kshiftlq kshiftrq")],
    ("k", "{m} k1, k2", "knotw knotq"), ("k", "{m} k1, k2, k3", "kunpckbw kunpckdq"),
]


def swap(line, chosen):
    """`line` with register 0 and 1 by `chosen`, a map of numbers."""
    def vector(found):
        return found[1] + str(chosen.get(int(found[2]), int(found[2])))
    line = re.sub(r"\b([xyz]mm)(\d)", vector, line)
    line = re.sub(r"\b(k)(\d)", lambda f: "k" + str(chosen.get(int(f[2]) - 1, int(f[2]) - 1) + 1), line)

    def general(found):
        name = found[0]
        kind = "l" if name.endswith("l") else name[0]
        return WIDTHS[kind][chosen.get(NAMES[name], NAMES[name])]
    mnemonic, _, rest = line.partition(" ")
    if rest.endswith(", cl"):
        return mnemonic + " " + re.sub(r"\b(rax|eax|al|rbx|ebx|bl|rcx|ecx)\b", general, rest[:-4]) + ", cl"
    return mnemonic + " " + re.sub(r"\b(rax|eax|al|rbx|ebx|bl|rcx|ecx)\b", general, rest)


def chains(line):
    """The chains of an instruction on registers of one file."""
    mnemonic, _, rest = line.partition(" ")
    operands = [o for o in rest.split(", ") if not o.isdigit() and o != "cl"]
    if len(operands) == 1:
        return [(line, 1)]
    three = len(operands) == 3
    if not three:
        found = [(f"{line}; {swap(line, {0: 1, 1: 0})}", 2)]
        reads = not mnemonic.startswith(("v", "k")) and mnemonic not in WRITE_ONLY
        if mnemonic == "imul" and re.search(r", \d+$", line):
            reads = False
        return found + ([(line, 1)] if reads else [])
    found = [(swap(line, {1: 0}), 1), (swap(line, {2: 0}), 1)]
    if mnemonic in FUSED or re.match(r"vpternlog|vperm[ti]2|vpdp|vpmadd52", mnemonic):
        found.append((line, 1))
    return found


def asked():
    """(class, mnemonic, chain, instances, what to subtract)."""
    special = {(kind, m) for kind, names, *_ in SPECIAL for m in names.split()}
    for kind, line in candidates():
        mnemonic = line.split()[0]
        if (kind, mnemonic) in special or (kind[:3], mnemonic) in special or kind == "xmm gpr" or mnemonic in ("div", "idiv", "mulx", "mul"):
            continue
        if mnemonic.startswith("pcmp") and mnemonic.endswith("stri") or mnemonic in ("vpmovmskb", "vptest"):
            continue
        yield from ((kind, mnemonic, chain, times, 0) for chain, times in chains(line))
    for kind, names, chain, off in SPECIAL:
        yield from ((kind, m, chain.replace("{m}", m), 1, off) for m in names.split() if not m.endswith("_"))
    for kind, form, names in PAIRS:
        width = kind.split()[0]
        for m in names.split():
            if m.endswith("_"):
                continue
            line = form if form.startswith("{m}") else "{m} " + form
            line = line.format(m=m, v=width, x="xmm", y="ymm")
            label = kind + (" imm" if re.search(r", \d$", line) and "imm" not in kind and "shuf" not in m and kind != "k" else "")
            yield from ((label, m, chain, times, 0) for chain, times in chains(line))


EXTRA = [  # what is printed but makes no entry: loads, addresses, forwarding
    ("movq there and back", "movq xmm0, rax; movq rax, xmm0"), ("kmovq there and back", "kmovq k1, rax; kmovq rax, k1"),
    ("load", "mov r15, [r15]"), ("load 32", "mov eax, [r15+rax+8]"), ("load indexed", "mov r8, [r15+r8*8+8]"), ("load byte", "movzx r8d, byte ptr [r15+r8+8]"),
    ("vector load and movq", "movq xmm0, [r15+r8+8]; movq r8, xmm0"), ("vector load indexed", "movups xmm0, [r15+r8*8+8]; movq r8, xmm0"),
    ("ymm load and movq", "vmovups ymm0, [r15+r8+8]; vmovq r8, xmm0"), ("zmm load and movq", "vmovups zmm0, [r15+r8+8]; vmovq r8, xmm0"),
    ("add from memory, address", "add r8, [r15+r8+8]"), ("movsd load", "movsd xmm0, [r15+r8+8]; movq r8, xmm0"),
    ("lea b+d", "lea rax, [rax+8]"), ("lea b+i", "lea rax, [rax+rbx]"), ("lea b+i from index", "lea rax, [rbx+rax]"),
    ("lea b+i+d", "lea rax, [rax+rbx+8]"), ("lea b+i*4", "lea rax, [rax+rbx*4]"), ("lea index*4", "lea rax, [rbx+rax*4]"),
    ("lea b+i*4+d", "lea rax, [rax+rbx*4+8]"), ("lea i*4+d", "lea rax, [rax*4+8]"), ("lea eax", "lea eax, [rax+rbx]"), ("lea32 3", "lea eax, [rax+rbx+8]"),
    ("ah", "mov ah, bl; mov bl, ah"), ("read ah", "movzx eax, ah"), ("add al", "add al, bl"), ("mov al", "mov al, bl"), ("add ax", "add ax, bx"),
    ("adc CF", "adc eax, ebx; mov eax, edx"), ("adc CF 4", "adc eax, ebx; adc esi, ebx; adc edi, ebx; adc r8d, ebx"),
    ("adcx CF", "adcx eax, ebx; adcx esi, ebx; adcx edi, ebx; adcx r8d, ebx"), ("sbb CF", "sbb eax, ebx; mov eax, edx"),
    ("rcl 1", "rcl rax, 1"), ("rcr 1", "rcr rax, 1"), ("shl cl from cl", "shl rcx, cl"), ("shlx from count", "shlx rax, rbx, rax"), ("rol cl flags", "rol ebx, cl; adc ecx, 0"),
    ("mov", "mov rax, rbx; mov rbx, rax"), ("movaps", "movaps xmm0, xmm1; movaps xmm1, xmm0"), ("movzx", "movzx eax, bl; movzx ebx, al"),
    ("add 1", "add rax, 1"), ("inc", "inc rax"), ("push pop", "push rax; pop rax"), ("xor same", "xor eax, eax; add eax, ebx"),
    ("stack", "mov [rsp-8], rax; mov rax, [rsp-8]; imul rax, rax"), ("slot", "mov [r15+64], rax; mov rax, [r15+64]; imul rax, rax"),
    ("few", "mov [r14+r9*8+64], rax; mov rax, [r14+r9*8+64]; imul rax, rax"),
    ("few through memory only", "mov rdx, [r15+r9*8]; add rdx, rbx; mov [r15+r9*8], rdx"),
    ("update", "add [r15+64], rbx"), ("update const", "add qword ptr [r15+64], 3"),
    ("xmm", "mulps xmm0, [r15+64]; movups [r15+64], xmm0"), ("xmm mov", "movups [r15+64], xmm0; movups xmm0, [r15+64]; mulps xmm0, xmm1"),
    ("movsd fwd", "movsd [r15+64], xmm0; movsd xmm0, [r15+64]; mulsd xmm0, xmm1"), ("ymm", "vmovups [r15+64], ymm0; vmovups ymm0, [r15+64]; vmulps ymm0, ymm0, ymm1"),
    ("zmm", "vmovups [r15+64], zmm0; vmovups zmm0, [r15+64]; vmulps zmm0, zmm0, zmm1"),
    ("gpr to xmm", "mov [r15+64], rax; movq xmm0, [r15+64]; movq rax, xmm0"), ("xmm to gpr", "movq [r15+64], xmm0; mov rax, [r15+64]; movq xmm0, rax"),
    ("blocked", "mov [r15+64], eax; mov [r15+68], eax; mov rax, [r15+64]; imul rax, rax"), ("partial", "mov [r15+64], eax; mov rax, [r15+60]; imul rax, rax"),
    ("part of a store", "mov [r15+64], rax; mov eax, [r15+68]; imul rax, rax"), ("byte of a store", "mov [r15+64], rax; movzx eax, byte ptr [r15+66]; imul rax, rax"),
    ("lock add", "lock add qword ptr [r15+64], 1"), ("lock xadd", "lock xadd [r15+64], rax"), ("xchg m", "xchg [r15+64], rax"),
    ("gather dd ymm", "vpsrld ymm0, ymm3, 31; vpcmpeqd ymm2, ymm2, ymm2; vpgatherdd ymm3, [r14+ymm0*4], ymm2"),
    ("mulss dn", "mulss xmm0, xmm1"), ("divsd 1.7", "divsd xmm0, xmm1; andpd xmm0, xmm2; orpd xmm0, xmm2"), ("sqrtsd", "sqrtsd xmm0, xmm0; orpd xmm0, xmm2"),
    ("addss after mulss", "mulss xmm0, xmm1; addss xmm0, xmm2"), ("addps;mulps", "mulps xmm0, xmm1; addps xmm0, xmm2; addps xmm0, xmm2"), ("pand addps", "pand xmm0, xmm1; addps xmm0, xmm2"),
    ("paddd addps", "paddd xmm0, xmm1; mulps xmm0, xmm2"), ("mul add chain", "imul rax, rbx; add rax, rbx"),
    ("fadd", "fadd st, st(1)"), ("fmul", "fmul st, st(1)"), ("fdiv", "fdiv st, st(1)"), ("fsqrt", "fsqrt"), ("fchs", "fchs"), ("fabs", "fabs"), ("fxch", "fxch"),
    ("fxch fadd", "fadd st, st(1); fxch st(2)"), ("fld fstp", "fld st; fstp st(1)"), ("fld m; fstp m", "fld qword ptr [r15+64]; fstp qword ptr [r15+64]"),
    ("faddp", "fld st(1); faddp st(1), st"), ("fld st; fmulp", "fld st(0); fmulp st(1), st"), ("fcmov", "fcmovb st, st(1)"), ("frndint", "frndint"), ("fild fistp", "fild dword ptr [r15+64]; fistp dword ptr [r15+64]"),
    ("mm paddd", "paddd mm0, mm1"), ("mm pmullw", "pmullw mm0, mm1"), ("mm pmaddwd", "pmaddwd mm0, mm1"), ("mm pshufb", "pshufb mm0, mm1"), ("mm movq", "movq mm0, rax; movq rax, mm0"), ("mm pxor", "pxor mm0, mm1"), ("mm pand", "pand mm0, mm1"),
    ("mm packssdw", "packssdw mm0, mm1"), ("mm psllq", "psllq mm0, 1"), ("mm punpckldq", "punpckldq mm0, mm1"), ("mm movq mm", "movq mm0, mm1; movq mm1, mm0"), ("movq2dq", "movq2dq xmm0, mm0; movdq2q mm0, xmm0"),
    ("mm pxor same", "pxor mm0, mm0; paddd mm0, mm1"),
]


def measured(blocks, cpu):
    """Cycles of each chain: 10th, 50th, 90th percentile; None for those that the assembler refuses."""
    def body(number, chain):
        name = chain.split()[0]
        double = re.search(r"[ps]d\b", name) or "sd2" in name or "pd2" in name
        value, kind = ("0x3ff0000000000000", "sd") if double else ("0x3f800000", "ss")
        x87 = ""
        # Merging into registers whose upper parts are not 0 takes longer.
        upper = "" if re.search(r"[yz]mm", chain) else "vzeroupper"
        if re.search(r"\bst\b|\bf[a-z]+\b", chain):
            x87 = "fninit; fld1; fld1; fld1; fld1; fld1"
            return ENTER.format(number, "\n".join([chain] * COPIES), value, kind, x87, upper).replace("vzeroupper", "vzeroupper; fninit")
        if "mm0" in re.sub(r"[xyz]mm", "", chain):
            return ENTER.format(number, "\n".join([chain] * COPIES), value, kind, x87, upper).replace("vzeroupper", "vzeroupper; emms")
        return ENTER.format(number, "\n".join([chain] * COPIES), value, kind, x87, upper)

    with tempfile.TemporaryDirectory() as folder:
        kept = list(range(len(blocks)))
        while True:
            lines, where = [".intel_syntax noprefix", ".text"], []
            for number in kept:
                text = body(number, blocks[number]).splitlines()
                where += [(len(lines) + 1, len(lines) + len(text), number)]
                lines += text
            lines += [".data", ".globl blocks", "blocks:", *(f".quad block{number}" for number in kept),
                      ".globl count", f"count: .quad {len(kept)}", '.section .note.GNU-stack,"",@progbits']
            with open(f"{folder}/blocks.s", "w") as file:
                file.write("\n".join(lines) + "\n")
            done = subprocess.run(["as", "-o", f"{folder}/blocks.o", f"{folder}/blocks.s"], capture_output=True, text=True)
            bad = {int(n) for n in re.findall(r"blocks\.s:(\d+): Error", done.stderr)}
            drop = {number for first, last, number in where if any(first <= b <= last for b in bad)}
            if not drop:
                break
            kept = [number for number in kept if number not in drop]
        with open(f"{folder}/timer.c", "w") as file:
            file.write(TIMER.replace("ROUNDS = 300", "ROUNDS = 60").replace("blocks[k](500,", "blocks[k](100,").replace("blocks[k](2000,", "blocks[k](500,").replace("/ 1500", "/ 400"))
        subprocess.run(["gcc", "-O1", "-static", "-no-pie", "-o", f"{folder}/timer", f"{folder}/timer.c",
                        f"{folder}/blocks.o"], check=True)
        done = subprocess.run(["taskset", "-c", cpu, f"{folder}/timer"], capture_output=True, text=True, check=True)
        found = [None] * len(blocks)
        for number, line in zip(kept, done.stdout.splitlines()):
            found[number] = [float(one) / COPIES for one in line.split()]
        return found


def main():
    """Measures and prints the entries."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cpu", default="1", help="the processor to run on (default 1)")
    parser.add_argument("--raw", action="store_true", help="print every chain instead of the entries")
    args = parser.parse_args()
    all_of_them = list(asked())
    texts = [chain for _, _, chain, _, _ in all_of_them]
    cycles = measured(texts + [chain for _, chain in EXTRA], args.cpu)
    few, more = (measured(["lfence; " + "; ".join([text] * n) for text in texts], args.cpu) for n in (4, 8))
    # Only those that a scheduler full of waiting instructions slows down: vectors, on Zen 5.
    alone = [(b[1] - a[1]) / 4 if a and b and re.search("[xyz]mm", text) and "movq" not in text else None
             for text, a, b in zip(texts, few, more)]
    extra = dict((name, (found, chain)) for (name, chain), found in zip(EXTRA, cycles[len(all_of_them):]))
    transfer, mask = extra["movq there and back"][0][1] / 2, extra["kmovq there and back"][0][1] / 2
    limits = collections.defaultdict(list)
    for (kind, mnemonic, chain, times, off), found, free in zip(all_of_them, cycles, alone):
        if found is None:
            print(f"# refused: {chain}")
            continue
        if isinstance(off, str):
            off = eval(off.replace("{t}", str(transfer)).replace("{k}", str(mask)).replace("{m}", "1"))  # noqa: S307
        limits[kind, mnemonic].append(((found[0] - off) / times, (found[1] - off) / times, (found[2] - off) / times, chain))
        if free is not None and free < found[1] - 0.5:
            limits[kind, mnemonic].append((*[(free - off) / times] * 3, "lfence; " + chain))
        if args.raw:
            print(f"{kind}\t{mnemonic}\t{chain}\t" + "\t".join(f"{(f - off) / times:.2f}" for f in found))
    for name, (found, chain) in extra.items():
        print(f"# {name}: {chain}: " + (" ".join(f"{f:.2f}" for f in found) if found else "refused"))
    if args.raw:
        return
    entries = collections.defaultdict(list)
    for (kind, mnemonic), all_chains in limits.items():
        half = 2 if any("movq" in c or "kmov" in c for *_, c in all_chains) else 1
        free = [middle for _, middle, _, chain in all_chains if chain.startswith("lfence")]
        full = [middle for _, middle, _, chain in all_chains if not chain.startswith("lfence")]
        ends = [round(middle * half) / half for middle in full]
        sure = all(abs(middle - end) < 0.07 + 0.004 * middle for middle, end in zip(full, ends))
        alone = max(1, int(min(free) + 0.07)) if free else None
        if not sure or min(ends) < 1:
            print(f"# {kind} {mnemonic}: " + ", ".join(f"{c[3]}: {c[0]:.2f} {c[1]:.2f} {c[2]:.2f}" for c in all_chains))
        else:
            entries[kind, min(ends), max(ends), alone or 0].append(mnemonic)
    for (kind, low, high, alone), names in sorted(entries.items()):
        cycles = f"{low:g}" if low == high else f"[{low:g}, {high:g}]"
        names = ", ".join(f'"{name}"' for name in dict.fromkeys(names))
        alone = f"\nalone = {alone}" if alone else ""
        print(f'\n[[latency]]\nclass = "{kind}"\nregister = {cycles}{alone}\nmnemonics = [{names}]\nsource = "measured"')


if __name__ == "__main__":
    main()
