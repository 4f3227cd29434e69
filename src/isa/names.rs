//! Names of instructions, registers and architectures, as the crates iced-x86 and object have them.
//!
//! Both print them by `Debug` alone, so this is the one place that makes text of it; tables and documents use these
//! names.

use iced_x86::{Code, CpuidFeature, EncodingKind, Mnemonic, OpCodeOperandKind, Register};
use object::Architecture;
use std::fmt::Debug;

/// A type named by `Debug`.
pub trait Named: Debug {}

impl Named for Architecture {}
impl Named for Code {}
impl Named for CpuidFeature {}
impl Named for EncodingKind {}
impl Named for Mnemonic {}
impl Named for OpCodeOperandKind {}
impl Named for Register {}

/// As it is spelt there: `VEX_Vaddpd_ymm_ymm_ymmm256`, `Vaddpd`, `RAX`, `AVX2`.
pub fn name(of: impl Named) -> String {
    format!("{of:?}")
}

/// The name in lower case, as in listings: `vaddpd`, `rax`.
pub fn small(of: impl Named) -> String {
    name(of).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in uops.info, in the tables of latencies and ports, and in listings.
    #[test]
    fn names_are_fixed() {
        assert_eq!(name(Code::VEX_Vaddpd_ymm_ymm_ymmm256), "VEX_Vaddpd_ymm_ymm_ymmm256");
        assert_eq!(name(Code::Add_rm64_imm8), "Add_rm64_imm8");
        assert_eq!(
            (name(Mnemonic::Vaddpd), small(Mnemonic::Vaddpd)),
            ("Vaddpd".into(), "vaddpd".into())
        );
        assert_eq!((name(Register::RAX), small(Register::XMM7)), ("RAX".into(), "xmm7".into()));
        assert_eq!(
            (name(CpuidFeature::AVX2), name(EncodingKind::EVEX)),
            ("AVX2".into(), "EVEX".into())
        );
        assert_eq!(name(OpCodeOperandKind::r64_or_mem), "r64_or_mem");
        assert_eq!(name(Architecture::Aarch64), "Aarch64");
    }
}
