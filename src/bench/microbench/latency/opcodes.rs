//! Instructions that chains need besides the form: multiplications, conditional moves, loads.

use super::connectors::{encoded, two};
use crate::microbench::form::Form;
use crate::microbench::operand::Class;
use iced_x86::{Code, EncodingKind, Instruction, RflagsBits};
use tma::Result;

/// Multiplies vector register `b` by itself into `a`, in the type and encoding of `form`.
pub fn product(form: Form, class: Class, a: u32, b: u32) -> Result<Vec<u8>> {
    let name = form.name();
    let legacy = form.code.op_code().encoding() == EncodingKind::Legacy;
    let kinds = [("f64x", 64), ("f32x", 32), ("f16x", 16)];
    let kind = kinds.into_iter().find(|(part, _)| name.contains(part)).map_or(0, |(_, k)| k);
    let code = match (class, kind, legacy) {
        (Class::Zmm, 64, _) => Code::EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er,
        (Class::Zmm, 32, _) => Code::EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er,
        (Class::Zmm, 16, _) => Code::EVEX_Vmulph_zmm_k1z_zmm_zmmm512b16_er,
        (Class::Ymm, 16, _) => Code::EVEX_Vmulph_ymm_k1z_ymm_ymmm256b16,
        (Class::Xmm, 16, _) => Code::EVEX_Vmulph_xmm_k1z_xmm_xmmm128b16,
        (Class::Zmm, ..) => Code::EVEX_Vpmuludq_zmm_k1z_zmm_zmmm512b64,
        (Class::Ymm, 64, _) => Code::VEX_Vmulpd_ymm_ymm_ymmm256,
        (Class::Ymm, 32, _) => Code::VEX_Vmulps_ymm_ymm_ymmm256,
        (Class::Ymm, ..) => Code::VEX_Vpmuludq_ymm_ymm_ymmm256,
        (_, 64, false) => Code::VEX_Vmulpd_xmm_xmm_xmmm128,
        (_, 32, false) => Code::VEX_Vmulps_xmm_xmm_xmmm128,
        (_, _, false) => Code::VEX_Vpmuludq_xmm_xmm_xmmm128,
        (_, 64, true) => Code::Mulpd_xmm_xmmm128,
        (_, 32, true) => Code::Mulps_xmm_xmmm128,
        (_, _, true) => Code::Pmuludq_xmm_xmmm128,
    };
    let (a, b) = (class.register(a), class.register(b));
    if legacy {
        return two(code, a, b);
    }
    let failed = |e: iced_x86::IcedError| {
        tma::Error::failed("the multiplication cannot be encoded").because(e)
    };
    encoded(&Instruction::with3(code, a, b, b).map_err(failed)?)
}

/// A conditional move that depends on one of these flags.
pub fn move_if(bits: u32) -> Code {
    [
        (RflagsBits::CF, Code::Cmovb_r64_rm64),
        (RflagsBits::ZF, Code::Cmove_r64_rm64),
        (RflagsBits::SF, Code::Cmovs_r64_rm64),
        (RflagsBits::OF, Code::Cmovo_r64_rm64),
    ]
    .into_iter()
    .find(|(flag, _)| bits & flag != 0)
    .map_or(Code::Cmovp_r64_rm64, |(_, code)| code)
}

/// A load of `bytes` into a register of `class`, in the same kind of encoding as the form.
pub fn load(class: Class, bytes: usize, encoding: EncodingKind) -> Option<Code> {
    let legacy = encoding == EncodingKind::Legacy;
    Some(match (class, bytes) {
        (Class::Gpr8, 1) => Code::Movzx_r32_rm8,
        (Class::Gpr16, 2) => Code::Movzx_r32_rm16,
        (Class::Gpr32, 4) => Code::Mov_r32_rm32,
        (Class::Gpr64, 8) => Code::Mov_r64_rm64,
        (Class::Mmx, 8) => Code::Movq_mm_mmm64,
        (Class::Xmm, 4) if legacy => Code::Movss_xmm_xmmm32,
        (Class::Xmm, 4) => Code::VEX_Vmovd_xmm_rm32,
        (Class::Xmm, 8) if legacy => Code::Movq_xmm_xmmm64,
        (Class::Xmm, 8) => Code::VEX_Vmovq_xmm_xmmm64,
        (Class::Xmm, 16) if legacy => Code::Movups_xmm_xmmm128,
        (Class::Xmm, 16) => Code::VEX_Vmovups_xmm_xmmm128,
        (Class::Ymm, 32) => Code::VEX_Vmovups_ymm_ymmm256,
        (Class::Zmm, 64) => Code::EVEX_Vmovups_zmm_k1z_zmmm512,
        (Class::Mask, 8) => Code::VEX_Kmovq_kr_km64,
        _ => return None,
    })
}
