//! Instructions that need no port of their own: zero idioms, eliminated moves, fused pairs.

use crate::effects::Effects;
use crate::names::small;
use iced_x86::{ConditionCode, FlowControl, Instruction, Mnemonic, OpKind};

/// Why renaming completes the instruction, if it does.
pub(super) fn without_port(instruction: &Instruction, effects: &Effects) -> Option<&'static str> {
    if effects.may_be_eliminated {
        return Some("eliminated at renaming");
    }
    // All-ones idioms, `sbb` and `cmp` break the dependency but execute.
    (effects.breaks_dependency && gives_zero(instruction.mnemonic())).then_some("zero idiom")
}

fn gives_zero(mnemonic: Mnemonic) -> bool {
    const ZERO: [&str; 8] = ["xor", "sub", "pxor", "xorp", "psub", "pcmpgt", "pandn", "andnp"];
    let name = small(mnemonic);
    let plain = name.strip_prefix('v').unwrap_or(&name);
    ZERO.iter().any(|zero| plain.starts_with(zero))
}

/// Whether decoding fuses `instruction`, whose mnemonic the core can fuse, with the conditional
/// branch `next`. Intel's optimization manual, "Macro-fusion": no memory destination, no memory
/// operand together with an immediate; after `cmp`, `add` and `sub` no branch on sign, overflow or
/// parity; after `inc` and `dec` no branch on the carry either. AMD's cores fuse more branches, which
/// compilers do not emit.
pub(super) fn fuses(instruction: &Instruction, next: &Instruction) -> bool {
    use ConditionCode as C;
    if next.flow_control() != FlowControl::ConditionalBranch || !next.is_jcc_short_or_near() {
        return false;
    }
    let kind = |at| instruction.op_kind(at);
    let compares = matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
    let memory = (0..instruction.op_count()).any(|at| kind(at) == OpKind::Memory);
    let immediate = (0..instruction.op_count())
        .any(|at| !matches!(kind(at), OpKind::Memory | OpKind::Register));
    if memory && (immediate || !compares && kind(0) == OpKind::Memory) {
        return false;
    }
    let condition = next.condition_code();
    let signs = matches!(condition, C::o | C::no | C::s | C::ns | C::p | C::np);
    let carry = matches!(condition, C::b | C::ae | C::be | C::a);
    match instruction.mnemonic() {
        Mnemonic::Cmp | Mnemonic::Add | Mnemonic::Sub => !signs,
        Mnemonic::Inc | Mnemonic::Dec => !signs && !carry,
        _ => true,
    }
}
