//! The forms that programs are mostly made of: what `--calibrate` measures.

use super::catalog::{Catalog, unavailable};
use super::form::Form;

/// Patterns of names, the most frequent extensions first.
const USUAL: &[&str] = &[
    // Integer: two operands, then one, then shifts and the rest.
    "ADD_GPR64i64_*", "ADD_GPR32i32_GPR32i32", "ADD_GPR32i32_IMMi8", "ADD_MEM64i64_*",
    "SUB_GPR64i64_*", "SUB_GPR32i32_GPR32i32", "AND_GPR64i64_*", "AND_GPR32i32_GPR32i32",
    "OR_GPR64i64_*", "XOR_GPR64i64_*", "XOR_GPR32i32_GPR32i32", "CMP_GPR64i64_*", "TEST_GPR64i64_*",
    "CMP_GPR32i32_GPR32i32", "ADC_GPR64i64_*", "SBB_GPR64i64_*", "INC_GPR64i64", "DEC_GPR64i64",
    "NEG_GPR64i64", "NOT_GPR64i64", "INC_MEM64i64", "LEA_GPR64i64_*", "LEA_GPR32i32_*",
    "MOV_GPR64i64_GPR64i64", "MOV_GPR32i32_GPR32i32", "MOV_GPR64i64_MEM64i64",
    "MOV_GPR32i32_MEM32i32", "MOV_MEM64i64_GPR64i64", "MOV_MEM32i32_GPR32i32",
    "MOVZX_GPR32i32_*", "MOVZX_GPR64i64_*", "MOVSX_GPR32i32_*", "MOVSX_GPR64i64_*",
    "MOVSXD_GPR64i64_*", "IMUL_GPR64i64_*", "IMUL_GPR32i32_*", "MUL_GPR64i64", "MUL_GPR32i32",
    "DIV_GPR64i64", "DIV_GPR32i32", "IDIV_GPR64i64", "IDIV_GPR32i32", "CMOV?_GPR64i64_GPR64i64",
    "CMOV??_GPR64i64_GPR64i64", "SET?_GPR8i8", "SET??_GPR8i8", "SH?_GPR64i64_*", "SAR_GPR64i64_*",
    "SH?_GPR32i32_IMMi8", "RO?_GPR64i64_*", "SH?D_GPR64i64_*", "BSWAP_GPR*", "BT_GPR64i64_*",
    "BS?_GPR64i64_GPR64i64", "XCHG_GPR64i64_*", "XADD_GPR64i64_GPR64i64", "CDQE", "CQO", "CDQ",
    "CWDE", "NOP", "POPCNT_GPR64i64_*", "LZCNT_GPR64i64_*", "TZCNT_GPR64i64_*", "ANDN_GPR64i64_*",
    "BLS*_GPR64i64_GPR64i64", "BEXTR_GPR64i64_GPR64i64*", "BZHI_GPR64i64_GPR64i64*",
    "PDEP_GPR64i64_*", "PEXT_GPR64i64_*", "MULX_GPR64i64_*", "RORX_GPR64i64_GPR*", "S??X_GPR64i64_GPR*",
    "AD?X_GPR64i64_GPR64i64", "CRC32_*", "MOVBE_GPR64i64_MEM64i64",
    // Scalar floating point.
    "ADDS?_*", "SUBS?_VR*_VR*", "MULS?_*", "DIVS?_VR*_VR*", "SQRTS?_VR*_VR*", "MINS?_VR*_VR*", "MAXS?_VR*_VR*",
    "CVT*SI2S?_*", "CVTTS?2SI_*_VR*", "CVTSS2SD_*_VR*", "CVTSD2SS_*_VR*", "UCOMIS?_VR*_VR*", "MOVS?_VR*_MEM*",
    "MOVS?_MEM*", "VADDS?_*", "VMULS?_*", "VDIVS?_VR*_VR*", "VSQRTS?_VR*_VR*", "VFMADD231S?_*",
    // Vectors.
    "ADDP?_VR*_VR*", "MULP?_VR*_VR*", "DIVP?_VR*_VR*", "ANDP?_VR*_VR*", "XORP?_VR*_VR*", "MOVAP?_VR*", "MOVUPS_*",
    "MOVDQA_*", "MOVDQU_*", "MOVD_*", "MOVQ_*", "PADD?_VR*_VR*", "PSUB?_VR*_VR*", "PAND_VR*_VR*", "PXOR_VR*_VR*",
    "POR_VR*_VR*", "PMULLW_VR*_VR*", "PMULLD_VR*_VR*", "PMULUDQ_VR*_VR*", "PMADDWD_VR*_VR*", "PSHUFD_VR*_VR*", "PSHUFB_VR*_VR*",
    "PUNPCK*_VR*_VR*", "PMOVMSKB_GPR32*_VR*", "SHUFP?_VR*_VR*", "UNPCK?P?_VR*_VR*", "PCMPEQ?_VR*_VR*", "PS?L?_VR*_IMMi8",
    "VADDP?_VR*_VR*_VR*", "VSUBP?_VR*_VR*_VR*", "VMULP?_VR*_VR*_VR*", "VDIVP?_VR*_VR*_VR*", "VSQRTP?_VR*_VR*", "VMAXP?_VR*_VR*_VR*",
    "VFMADD231P?_VR*_VR*_VR*", "VADDP?_VR256*_MEM*", "VANDP?_VR*_VR*_VR*", "VXORP?_VR*_VR*_VR*", "VPADD?_VR*_VR*_VR*",
    "VPAND_VR*", "VPXOR_VR*_VR*_VR*", "VPMULL?_VR*_VR*_VR*", "VPMULUDQ_VR*_VR*_VR*", "VPSHUFB_VR*_VR*_VR*", "VPSHUFD_VR*_VR*_IMMi8", "VPERM?_VR*_VR*_*",
    "VPERM2?128_VR*_VR*_VR*_IMMi8", "VINSERT?128_VR256*_VR*_IMMi8", "VEXTRACT?128_VR*_VR*_IMMi8", "VBROADCASTS?_VR*_VR*", "VPBROADCAST?_VR*_VR*",
    "VPMOVMSKB_*", "VMOVMSKP?_*", "VMOVUPS_VR*_MEM*", "VMOVUPS_MEM*", "VMOVDQU_VR*_MEM*", "VMOVDQU_MEM*", "VPCMPEQ?_VR*_VR*_VR*",
    "VPS?L?_VR256*_IMMi8", "VPSLLV?_VR*_VR*_VR*", "VBLENDP?_VR*_VR*_VR*", "VCVTDQ2P?_VR*_VR*", "VCVTT*2DQ_VR*_VR*", "VCVTPS2PD_VR*_VR*", "VCVTPD2PS_VR*_VR*",
    "VHADDP?_VR*_VR*_VR*", "VROUNDP?_VR*_VR*_IMMi8", "VPTERNLOG?_VR*_VR*_VR*", "KMOV?_*", "KAND?_K_K_K", "KORTEST?_K_K", "VPCMPEQ?_K_*",
    "AESENC_VR*_VR*", "VAESENC_VR*_VR*_VR*", "PCLMULQDQ_VR*_VR*", "VPDPBUSD_VR*_VR*_VR*", "SHA256MSG?_VR*_VR*",
];

/// The usual forms that this processor has, each once, in that order.
pub fn usual() -> Vec<(String, Form)> {
    let mut all: Vec<(String, Form)> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for pattern in USUAL {
        for (name, form) in Catalog::all().spelled_like(pattern) {
            if seen.insert(form) && unavailable(form).is_none() {
                all.push((name, form));
            }
        }
    }
    all
}
