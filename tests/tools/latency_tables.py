#!/usr/bin/env python3
"""Latencies of instructions on registers, as llvm-mca's scheduling model has them: entries for events/latency/*.toml.

Instructions of one latency and one class share an entry. `llvm-mca -instruction-info` gives the latency from any
register to the result; what it does not tell apart (flags, addresses), the tables have from other sources. With a
machine file of OSACA beside it, entries in which both agree have the source `both`, and where they differ, the range
and `differ`.

    tests/tools/latency_tables.py znver3
    tests/tools/latency_tables.py znver4 --mca llvm-mca-22 --osaca osaca/data/zen4.yml
"""

import argparse
import collections
import re
import subprocess

# class → (operands in Intel syntax, mnemonics); {m} stands for the mnemonic.
GROUPS = [
    ("gpr", "{m} rax, rbx", "add sub and or xor adc sbb imul bsf bsr popcnt lzcnt tzcnt blsi blsr blsmsk crc32 cmp test"
     " cmovb cmove cmovl cmovo cmovs cmovp cmovae cmovne cmovge cmovno cmovns cmovnp cmovle cmovg cmovbe cmova"),
    ("gpr", "{m} rax", "inc dec neg not mul div idiv"),
    ("gpr8", "{m} al", "sete setne setb setae setl setge setle setg sets setns seto setno setp setnp setbe seta"),
    ("gpr", "{m} rax, rbx, rcx", "pdep pext andn bzhi bextr shlx shrx sarx mulx adcx adox"),
    ("gpr imm", "{m} rax, 3", "shl shr sar rol ror rcl rcr bt bts btr btc"),
    ("gpr cl", "{m} rax, cl", "shl shr sar rol ror rcl rcr"),
    ("gpr imm", "{m} rax, rbx, 3", "shld shrd rorx imul"),
    ("gpr cl", "{m} rax, rbx, cl", "shld shrd"),
    ("gpr", "{m} eax, bl", "movzx movsx"),
    ("gpr", "{m}", "cdq cqo cwde cdqe"),
    ("gpr32", "{m} eax", "bswap"), ("gpr64", "{m} rax", "bswap"),
    ("gpr", "{m} rax, rbx", "xchg xadd"),
    ("xmm", "{m} xmm0, xmm1",
     "addps addpd addss addsd subps subpd subss subsd mulps mulpd mulss mulsd divps divpd divss divsd sqrtps sqrtpd "
     "sqrtss sqrtsd rcpps rsqrtps minps maxps minpd maxpd minss maxss minsd maxsd haddps haddpd addsubps cvtdq2ps "
     "cvtps2dq cvttps2dq cvtps2pd cvtpd2ps cvtsd2ss cvtss2sd cvtdq2pd cvttpd2dq andps orps xorps andnps andpd orpd "
     "xorpd andnpd unpcklps unpckhps unpcklpd unpckhpd movlhps movhlps movddup movshdup paddb paddw paddd paddq psubb "
     "psubw psubd psubq pand por pxor pandn pcmpeqb pcmpeqw pcmpeqd pcmpeqq pcmpgtb pcmpgtw pcmpgtd pcmpgtq pmulld "
     "pmullw pmulhw pmuludq pmaddwd pmaddubsw psadbw pshufb punpcklbw punpckldq punpcklqdq punpckhqdq packssdw packuswb "
     "pminsd pmaxsd pminub pmaxub pabsd phaddd aesenc aesdec aesenclast ucomisd ucomiss comisd comiss ptest psllw "
     "pslld psllq psrlw psrld psrlq psraw psrad movd2"),
    ("xmm imm", "{m} xmm0, 3", "pslld psrld psllq psrlq psllw psrlw psraw psrad pslldq psrldq"),
    ("xmm imm", "{m} xmm0, xmm1, 3", "pshufd pshuflw pshufhw shufps shufpd palignr roundps roundpd roundss roundsd "
     "blendps blendpd pblendw dpps dppd mpsadbw pclmulqdq insertps cmpps cmppd cmpss cmpsd pcmpistri pcmpestri"),
    ("xmm gpr", "{m} xmm0, eax", "movd cvtsi2sd cvtsi2ss"), ("xmm gpr", "{m} xmm0, rax", "movq"),
    ("xmm gpr", "{m} eax, xmm0", "cvttsd2si cvtsd2si cvttss2si cvtss2si pmovmskb movmskps movmskpd"),
]
VEX = {  # classes of VEX and EVEX forms with the mnemonics behind the `v`
    "{v}0, {v}1, {v}2": "addps addpd subps subpd mulps mulpd divps divpd minps maxps minpd maxpd andps orps xorps andnps "
    "andpd orpd xorpd unpcklps unpcklpd paddb paddw paddd paddq psubb psubw psubd psubq pcmpeqd pcmpgtd pmulld pmullw "
    "pmuludq pmaddwd pmaddubsw psadbw pshufb punpcklbw punpckldq punpcklqdq pminsd pmaxsd pminub pmaxub psllvd "
    "psrlvd psravd psllvq psrlvq packssdw permilps haddps pand por pxor pandn",
    "{v}0, {v}1": "sqrtps sqrtpd cvtdq2ps cvtps2dq cvttps2dq pabsd movddup movshdup rcpps rsqrtps",
    "{v}0, {v}1, 3": "pshufd permilps permilpd roundps roundpd pslld psrld psllq psrlq",
    "{v}0, {v}1, {v}2, 3": "shufps shufpd palignr blendps blendpd pblendw cmpps cmppd",
}
FUSED = [f"vf{sign}{kind}{order}{form}" for sign in ("", "n") for kind in ("madd", "msub")
         for order in ("132", "213", "231") for form in ("ps", "pd", "ss", "sd")]
SCALAR = "addss addsd subss subsd mulss mulsd divss divsd sqrtss sqrtsd minss maxss minsd maxsd cvtsd2ss cvtss2sd"
CROSSING = [("ymm imm", "vpermq ymm0, ymm1, 3"), ("ymm", "vpermd ymm0, ymm1, ymm2"), ("ymm", "vpermps ymm0, ymm1, ymm2"),
            ("ymm imm", "vpermpd ymm0, ymm1, 3"), ("ymm", "vperm2i128 ymm0, ymm1, ymm2, 1"),
            ("ymm", "vperm2f128 ymm0, ymm1, ymm2, 1"), ("ymm", "vextracti128 xmm0, ymm1, 1"),
            ("ymm", "vextractf128 xmm0, ymm1, 1"), ("ymm", "vinserti128 ymm0, ymm1, xmm2, 1"),
            ("ymm", "vinsertf128 ymm0, ymm1, xmm2, 1"), ("ymm", "vbroadcastss ymm0, xmm1"),
            ("ymm", "vpbroadcastd ymm0, xmm1"), ("ymm", "vcvtps2pd ymm0, xmm1"), ("ymm", "vcvtdq2pd ymm0, xmm1"),
            ("ymm", "vpmovmskb eax, ymm1"), ("xmm", "vpmovzxbw xmm0, xmm1"), ("ymm", "vpmovzxbw ymm0, xmm1"),
            ("ymm", "vptest ymm0, ymm1")]


def candidates():
    """(class, instruction) of everything asked for."""
    for kind, template, names in GROUPS:
        yield from ((kind, template.format(m=name)) for name in names.split())
    for operands, names in VEX.items():
        for vector in ("xmm", "ymm", "zmm"):
            kind = vector + (" imm" if operands.endswith(", 3") else "")
            yield from ((kind, f"v{name} " + operands.replace("{v}", vector)) for name in names.split())
    for name in FUSED:
        for vector in (("xmm",) if name[-2] == "s" else ("xmm", "ymm", "zmm")):
            yield vector, f"{name} {vector}0, {vector}1, {vector}2"
    yield from (("xmm", f"v{name} xmm0, xmm1, xmm2") for name in SCALAR.split())
    yield from CROSSING
    for name in ("kand", "kor", "kxor", "kxnor", "kandn", "kadd"):
        yield from (("k", f"{name}{width} k1, k2, k3") for width in "bwdq")


def model(processor, lines, tool="llvm-mca"):
    """llvm-mca's latency of each line that it accepts."""
    text = ".intel_syntax noprefix\n" + "\n".join(lines) + "\n"
    command = [tool, "-march=x86-64", f"-mcpu={processor}", "-instruction-info", "-iterations=1",
               "-resource-pressure=false", "-summary-view=false", "-output-asm-variant=1"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    refused = {int(line) - 2 for line in re.findall(r"<stdin>:(\d+):\d+: error", done.stderr)}
    if refused:
        kept = [line for at, line in enumerate(lines) if at not in refused]
        return model(processor, kept, tool)
    # Decoded, but not in the model: one at a time.
    unknown = re.search(r"unsupported instruction.*?instruction: *\t(\S+)", done.stderr, re.S)
    if unknown:
        wide = [line for line in lines if re.search(r"zmm|\bk[1-7]", line)]
        return model(processor, [line for line in lines if line not in wide] if wide else
                     [line for line in lines if line.split()[0] != unknown[1]], tool)
    found = re.findall(r"^ \d+ +(\d+) +[\d.]+ .*$", done.stdout, re.M)
    assert len(found) == len(lines), done.stderr
    return dict(zip(lines, map(int, found)))


def osaca(path):
    """OSACA's latency by mnemonic and operand kinds, those in the order of Intel's syntax."""
    import yaml
    with open(path) as file:
        forms = yaml.safe_load(file)["instruction_forms"]
    found = {}
    for form in forms:
        kinds = [operand.get("name", "imm") for operand in form.get("operands", []) if operand["class"] != "memory"]
        names = form["name"] if isinstance(form["name"], list) else [form["name"]]
        if isinstance(form.get("latency"), (int, float)) and len(kinds) == len(form.get("operands", [])):
            found.update({(name.lower(), tuple(reversed(kinds))): form["latency"] for name in names})
    return found


def kinds_of(line):
    """The key of a line in what `osaca` returns."""
    mnemonic, _, operands = line.partition(" ")
    kinds = ("imm" if one.isdigit() else one[:3] if "mm" in one else "gpr" for one in operands.split(", "))
    return mnemonic, tuple(kinds)


def main():
    """Prints the entries."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("processor", help="as llvm-mca names it")
    parser.add_argument("--mca", default="llvm-mca", help="the program (default llvm-mca)")
    parser.add_argument("--osaca", help="a machine file of OSACA (needs PyYAML)")
    args = parser.parse_args()
    other = osaca(args.osaca) if args.osaca else {}
    asked = dict((line, kind) for kind, line in candidates())
    entries = collections.defaultdict(list)
    for line, latency in model(args.processor, list(asked), args.mca).items():
        mnemonic, kinds = kinds_of(line)
        second = other.get((mnemonic, kinds), other.get((mnemonic + "q", kinds)))
        if 0 < latency < 100:
            source = "llvm" if second is None else "both" if second == latency else "differ"
            ends = sorted((latency, second if second is not None else latency))
            cycles = f"{ends[0]:g}" if ends[0] == ends[1] else f"[{ends[0]:g}, {ends[1]:g}]"
            entries[asked[line], ends[1], cycles, source].append(mnemonic)
    for (kind, _, cycles, source), names in sorted(entries.items()):
        names = ", ".join(f'"{name}"' for name in dict.fromkeys(names))
        print(f'[[latency]]\nclass = "{kind}"\nregister = {cycles}\nmnemonics = [{names}]\nsource = "{source}"\n')


if __name__ == "__main__":
    main()
