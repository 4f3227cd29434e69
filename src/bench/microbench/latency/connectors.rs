//! Instructions that chains need besides the form: connectors of known latency between a result and an operand,
//! multiplications, conditional moves, loads.

use crate::microbench::form::Form;
use crate::microbench::measure::Bench;
use crate::microbench::operand::{Class, Family};
use iced_x86::{Code, Encoder, EncodingKind, Instruction, Register, RflagsBits};
use std::collections::HashMap;
use tma::{Error, Result};

/// A kind of connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Connector {
    /// An integer ALU operation: 1 cycle, as the clock assumes.
    Alu,
    /// A move between a general-purpose register and another family: half of the round trip.
    Transfer(Family),
}

impl Connector {
    /// Whether it moves between register files.
    pub fn is_transfer(&self) -> bool {
        matches!(self, Self::Transfer(_))
    }
}

/// Latencies of connectors measured so far.
#[derive(Debug, Clone, Default)]
pub struct Connectors {
    /// Cycles of a round trip.
    round_trips: HashMap<Family, f64>,
}

impl Connectors {
    /// Least, best and most cycles of `connectors` in total; `None` if a round trip does not reproduce.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn cost(
        &mut self,
        bench: &mut Bench,
        connectors: &[Connector],
    ) -> Result<Option<(f64, f64, f64)>> {
        let mut sum = (0.0, 0.0, 0.0);
        for connector in connectors {
            let one = match connector {
                Connector::Alu => (1.0, 1.0, 1.0),
                Connector::Transfer(family) => {
                    let Some(both) = self.round_trip(bench, *family)? else { return Ok(None) };
                    // Each direction takes at least one cycle.
                    (1.0, both / 2.0, (both - 1.0).max(1.0))
                }
            };
            sum = (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2);
        }
        Ok(Some(sum))
    }

    fn round_trip(&mut self, bench: &mut Bench, family: Family) -> Result<Option<f64>> {
        if let Some(known) = self.round_trips.get(&family) {
            return Ok(Some(*known));
        }
        const COPIES: usize = 24;
        let number = if family == Family::Vector { 8 } else { 1 };
        let there = to(family, number, SCRATCH)?;
        let code = [from(family, number, SCRATCH)?, there].concat().repeat(COPIES);
        for _ in 0..3 {
            let measurement = bench.block(&code, &crate::Values::default())?;
            if let (crate::Status::Ok, Some(t)) = (measurement.status, &measurement.throughput) {
                let both = t.cycles / COPIES as f64;
                self.round_trips.insert(family, both);
                return Ok(Some(both));
            }
        }
        Ok(None)
    }
}

/// Passes values between register families.
pub const SCRATCH: Register = Register::R14;

/// Bytes of one instruction with two registers.
pub fn two(code: Code, a: Register, b: Register) -> Result<Vec<u8>> {
    let failed = |e: iced_x86::IcedError| Error::failed("no such connector").because(e);
    let built = Instruction::with2(code, a, b).map_err(failed)?;
    encoded(&built)
}

/// Bytes of an instruction.
pub fn encoded(instruction: &Instruction) -> Result<Vec<u8>> {
    let mut encoder = Encoder::new(64);
    let failed = |e: iced_x86::IcedError| Error::failed("no such connector").because(e);
    encoder.encode(instruction, 0).map_err(failed)?;
    Ok(encoder.take_buffer())
}

/// A move from a register of `family` to a general-purpose one.
pub fn from(family: Family, number: u32, to: Register) -> Result<Vec<u8>> {
    match family {
        Family::Gpr => Ok(Vec::new()),
        Family::Vector => two(vector(true), to, Class::Xmm.register(number)),
        Family::Mask => two(Code::VEX_Kmovq_r64_kr, to, Class::Mask.register(number)),
        Family::Mmx => two(Code::Movq_rm64_mm, to, Class::Mmx.register(number)),
    }
}

/// A move in the other direction.
pub fn to(family: Family, number: u32, from: Register) -> Result<Vec<u8>> {
    match family {
        Family::Gpr => Ok(Vec::new()),
        Family::Vector => two(vector(false), Class::Xmm.register(number), from),
        Family::Mask => two(Code::VEX_Kmovq_kr_r64, Class::Mask.register(number), from),
        Family::Mmx => two(Code::Movq_mm_rm64, Class::Mmx.register(number), from),
    }
}

/// `movq`, VEX-encoded where the processor has it: mixing both has penalties.
fn vector(out: bool) -> Code {
    let vex = crate::microbench::unsupported::lacks(Code::VEX_Vmovq_xmm_rm64).is_none();
    match (vex, out) {
        (true, true) => Code::VEX_Vmovq_rm64_xmm,
        (true, false) => Code::VEX_Vmovq_xmm_rm64,
        (false, true) => Code::Movq_rm64_xmm,
        (false, false) => Code::Movq_xmm_rm64,
    }
}

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
