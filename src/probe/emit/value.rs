//! The recorded value of an instruction, computed before it executes.

use super::pieces::{RED_ZONE, memory};
use crate::plan::NoTrampoline;
use crate::plan::What;
use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, OpKind, Register};

/// Distance of the stack pointer below its value in the program when a value is read.
const BELOW: i64 = RED_ZONE + 16;

/// The instructions that load the observed value into rax. They find and leave the program's other
/// registers and flags, except for the stack pointer.
pub(super) fn value(
    what: What,
    instruction: &Instruction,
) -> Result<Vec<Instruction>, NoTrampoline> {
    Ok(match what {
        What::Outcome => {
            let set = condition(instruction).ok_or(NoTrampoline::Unconditional)?;
            let wide = Code::Movzx_r32_rm8;
            vec![
                Instruction::with1(set, Register::AL)?,
                Instruction::with2(wide, Register::EAX, Register::AL)?,
            ]
        }
        What::Target => {
            let is_plain = matches!(instruction.code(), Code::Jmp_rm64 | Code::Call_rm64);
            if !is_plain {
                return Err(NoTrampoline::Direct);
            }
            vec![match instruction.op0_kind() {
                OpKind::Memory => {
                    let memory = memory(instruction, BELOW)?;
                    Instruction::with2(Code::Mov_r64_rm64, Register::RAX, memory)?
                }
                _ if instruction.op0_register() == Register::RSP => {
                    return Err(NoTrampoline::ToStack);
                }
                _ => {
                    let from = instruction.op0_register();
                    Instruction::with2(Code::Mov_r64_rm64, Register::RAX, from)?
                }
            }]
        }
        What::Address => {
            let memory = memory(instruction, BELOW)?;
            vec![Instruction::with2(Code::Lea_r64_m, Register::RAX, memory)?]
        }
        What::Value { width } => {
            let memory = memory(instruction, BELOW)?;
            let (code, to) = match width {
                1 => (Code::Movzx_r32_rm8, Register::EAX),
                2 => (Code::Movzx_r32_rm16, Register::EAX),
                4 => (Code::Mov_r32_rm32, Register::EAX),
                _ => (Code::Mov_r64_rm64, Register::RAX),
            };
            vec![Instruction::with2(code, to, memory)?]
        }
        What::Entered => {
            let at = |displacement| MemoryOperand::with_base_displ(Register::RSP, displacement);
            vec![
                Instruction::with2(Code::Lea_r64_m, Register::RAX, at(BELOW))?,
                Instruction::with1(Code::Bswap_r64, Register::RAX)?,
                Instruction::with2(Code::Mov_r16_rm16, Register::AX, at(BELOW))?,
            ]
        }
        What::Latency { .. }
        | What::Registers { .. }
        | What::Allocated { .. }
        | What::Marked { .. } => return Err(NoTrampoline::NoValue),
    })
}

/// The `setcc` of the condition of a jump.
fn condition(jump: &Instruction) -> Option<Code> {
    Some(match jump.condition_code() {
        ConditionCode::None => return None,
        ConditionCode::o => Code::Seto_rm8,
        ConditionCode::no => Code::Setno_rm8,
        ConditionCode::b => Code::Setb_rm8,
        ConditionCode::ae => Code::Setae_rm8,
        ConditionCode::e => Code::Sete_rm8,
        ConditionCode::ne => Code::Setne_rm8,
        ConditionCode::be => Code::Setbe_rm8,
        ConditionCode::a => Code::Seta_rm8,
        ConditionCode::s => Code::Sets_rm8,
        ConditionCode::ns => Code::Setns_rm8,
        ConditionCode::p => Code::Setp_rm8,
        ConditionCode::np => Code::Setnp_rm8,
        ConditionCode::l => Code::Setl_rm8,
        ConditionCode::ge => Code::Setge_rm8,
        ConditionCode::le => Code::Setle_rm8,
        ConditionCode::g => Code::Setg_rm8,
    })
}
