#!/usr/bin/env python3
"""A table of ports against measurement: reciprocal throughputs that events/ports/CORE.toml implies, for a sample of forms, beside
what `tdtool microbench throughput` measures on the processor at hand.

    tests/figures/ports_native.py [--core zen5] [--tdtool target/debug/tdtool] [--part 1/4] [--measures 12]

Printed: the form, the cycles that ports and issue slots need, the measured ones, and the difference. A measurement whose latencies
bind (`bound_low`) or that is not `ok` is marked and not counted.
"""

import argparse
import csv
import itertools
import pathlib
import re
import subprocess
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTH = {"zen3": 6, "zen4": 6, "zen5": 8, "icl": 5, "icx": 5, "golden_cove": 6}
SAMPLE = """Add_rm64_r64:reg Add_rm64_imm8:reg Sub_rm64_r64:reg And_rm64_r64:reg Cmp_rm64_r64:reg Test_rm64_r64:reg Neg_rm64:reg
Lea_r64_m Lea_r64_m:ADDRbi Lea_r64_m:ADDRbis Lea_r64_m:ADDRbid Shl_rm64_imm8:reg Rol_rm64_imm8:reg VEX_Shlx_r64_rm64_r64:reg
VEX_Rorx_r64_rm64_imm8:reg Bsf_r64_rm64:reg Tzcnt_r64_rm64:reg Lzcnt_r64_rm64:reg Popcnt_r64_rm64:reg Bt_rm64_r64:reg
Bts_rm64_r64:reg Cmove_r64_rm64:reg Sete_rm8:reg Imul_r64_rm64_imm8:reg Imul_r64_rm64:reg VEX_Mulx_r64_r64_rm64:reg
VEX_Pext_r64_r64_rm64:reg VEX_Bextr_r64_rm64_r64:reg VEX_Andn_r64_r64_rm64:reg Movsxd_r64_rm32:reg Movzx_r32_rm8:reg Bswap_r64
Xchg_rm64_r64:reg Xadd_rm64_r64:reg Mov_r64_rm64:mem Mov_rm64_r64:mem Add_r64_rm64:mem
Movups_xmm_xmmm128:mem VEX_Vmovups_ymm_ymmm256:mem VEX_Vaddps_ymm_ymm_ymmm256:reg VEX_Vmulpd_ymm_ymm_ymmm256:reg
VEX_Vfmadd231ps_ymm_ymm_ymmm256:reg VEX_Vdivps_ymm_ymm_ymmm256:reg VEX_Vdivpd_xmm_xmm_xmmm128:reg VEX_Vsqrtps_xmm_xmmm128:reg
VEX_Vsqrtpd_ymm_ymmm256:reg VEX_Vandps_ymm_ymm_ymmm256:reg VEX_Vpaddd_ymm_ymm_ymmm256:reg VEX_Vpaddsb_xmm_xmm_xmmm128:reg
VEX_Vpmulld_ymm_ymm_ymmm256:reg VEX_Vpshufb_ymm_ymm_ymmm256:reg VEX_Vpshufd_xmm_xmmm128_imm8:reg VEX_Vunpcklps_ymm_ymm_ymmm256:reg
VEX_Vshufps_xmm_xmm_xmmm128_imm8:reg VEX_Vpslld_ymm_ymm_imm8 VEX_Vpslld_ymm_ymm_xmmm128:reg VEX_Vpsrldq_xmm_xmm_imm8
VEX_Vpackssdw_xmm_xmm_xmmm128:reg VEX_Vpalignr_ymm_ymm_ymmm256_imm8:reg VEX_Vpblendvb_ymm_ymm_ymmm256_ymm:reg
VEX_Vblendps_ymm_ymm_ymmm256_imm8:reg VEX_Vpermd_ymm_ymm_ymmm256:reg VEX_Vperm2i128_ymm_ymm_ymmm256_imm8:reg
VEX_Vcvtps2pd_ymm_xmmm128:reg VEX_Vcvtdq2ps_ymm_ymmm256:reg VEX_Vcvttsd2si_r64_xmmm64:reg VEX_Vcvtsi2sd_xmm_xmm_rm64:reg
VEX_Vcmpps_ymm_ymm_ymmm256_imm8:reg VEX_Vpcmpeqd_ymm_ymm_ymmm256:reg VEX_Vpcmpgtq_ymm_ymm_ymmm256:reg VEX_Vmaxps_ymm_ymm_ymmm256:reg
VEX_Vroundps_ymm_ymmm256_imm8:reg VEX_Vrcpps_ymm_ymmm256:reg VEX_Vptest_xmm_xmmm128:reg VEX_Vpmovmskb_r32_ymm VEX_Vmovq_rm64_xmm:reg
VEX_Vpextrd_rm32_xmm_imm8:reg VEX_Vpinsrd_xmm_xmm_rm32_imm8:reg VEX_Vhaddps_ymm_ymm_ymmm256:reg VEX_Vpsadbw_ymm_ymm_ymmm256:reg
VEX_Vpbroadcastd_ymm_xmmm32:reg VEX_Vpbroadcastd_ymm_xmmm32:mem EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er:reg
EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8:reg EVEX_Vpermt2d_zmm_k1z_zmm_zmmm512b32:reg EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8:reg
EVEX_Vcompressps_zmmm512_k1z_zmm:reg EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32:reg EVEX_Vmovups_zmm_k1z_zmmm512:mem
EVEX_Vmovups_zmmm512_k1z_zmm:mem VEX_Kandq_kr_kr_kr VEX_Kmovq_r64_kr VEX_Kmovq_kr_r64 Paddd_xmm_xmmm128:reg Pand_xmm_xmmm128:reg
Addpd_xmm_xmmm128:reg Punpcklbw_xmm_xmmm128:reg Pmuludq_xmm_xmmm128:reg""".split()


def uses(text):
    """Port set → amount."""
    out = {}
    for kind in text.split():
        ports, _, amount = kind.partition("*")
        key = frozenset(ports.split("|"))
        out[key] = out.get(key, 0) + float(amount or 1)
    return out


def bound(parts):
    """The most µops per port over unions of their port sets."""
    total = {}
    for part in parts:
        for ports, amount in part.items():
            total[ports] = total.get(ports, 0) + amount
    best = 0.0
    for count in range(1, len(total) + 1):
        for chosen in itertools.combinations(total, count):
            union = frozenset().union(*chosen)
            best = max(best, sum(n for ports, n in total.items() if ports <= union) / len(union))
    return best


def implied(table, by_form, form, width):
    """Cycles of an instruction among its like; None: unknown."""
    code, _, where = form.partition(":")
    address = where.removeprefix("ADDR") if where.startswith("ADDR") else ""
    where = "" if address else where
    memory = where.startswith("mem")
    own = f"{code}{'_' + where if where else ''}" + (f"+{address}" if address else "")
    names = [own] + ([code + "_reg"] if memory else [])
    names += [re.sub(r"_(k1z?|er|sae)(?=_)", "", re.sub(r"m(\d+)b\d+", r"m\1", n.replace("EVEX_", "VEX_"))) for n in names]
    row = next((by_form[n] for n in names if n in by_form), None)
    if row is None:
        return None
    parts = [uses(row["ports"])]
    if memory:
        kind = "wide" if "zmm" in code else "vector" if "mm" in code.replace("rmm", "") else "gpr"
        store = re.search(r"_[xyz]?(mm)?m\d+_|^\w+?_rm\d+_", code.replace("_k1z", "")) and not re.match(r"\w*?_([xyz]mm|r\d+|kr)_", code.removeprefix("VEX_").removeprefix("EVEX_"))
        parts.append(uses(table["store" if store else "load"][kind]))
    return max(bound(parts), row["slots"] / width)


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--core", default="zen5")
    parser.add_argument("--tdtool", default=str(ROOT / "target/debug/tdtool"))
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--measures", default="12")
    args = parser.parse_args()
    table = tomllib.loads((ROOT / f"events/ports/{args.core}.toml").read_text())
    by_form = {form: row for row in table["uops"] for form in row["forms"].split()}
    listed = subprocess.run([args.tdtool, "microbench", "list"], capture_output=True, text=True, check=True).stdout
    names = {code: name for name, code in (line.split()[:2] for line in listed.splitlines() if len(line.split()) > 1)}
    part, parts = map(int, args.part.split("/"))
    compared = off = 0
    for form in SAMPLE[part - 1::parts]:
        cycles = implied(table, by_form, form, WIDTH[args.core])
        if cycles is None or form not in names:
            print(f"{form:52} {'unknown' if cycles is None else 'no such form of microbench'}", flush=True)
            continue
        command = [args.tdtool, "microbench", "throughput", names[form], "--measures", args.measures, "--format", "csv"]
        found = next(csv.DictReader(subprocess.run(command, capture_output=True, text=True).stdout.splitlines()), {})
        measured = float(found.get("cycles") or "nan")
        binds = float(found.get("bound_low") or 0) > 0.95 * measured
        note = "latency binds" if binds else "" if found.get("status") == "ok" else found.get("reason", "not measured")
        compared += not note
        differs = abs(measured / cycles - 1) > 0.1
        off += differs and not note
        print(f"{form:52} {cycles:6.3f} {measured:6.3f} {100 * (measured / cycles - 1):+5.0f} % {note or '*' * differs}", flush=True)
    print(f"{compared} compared, {off} off by more than 10 %")


if __name__ == "__main__":
    main()
