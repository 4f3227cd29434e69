//! Refuses instructions before a block runs, and finds those by which a block could learn its address. This is an
//! allow-list: every instruction must belong to a feature listed below and not be one of the exceptions, so new or
//! unknown instructions are refused.
//!
//! Refused instructions reveal nothing, since they never run: `call`, `fxsave`, `xsave`, `sgdt`, `rdfsbase`, `rdpmc`
//! and the like.

use super::decode::Block;
use super::inst::Inst;
use iced_x86::{Code, CpuidFeature, FlowControl, Mnemonic};
use serde::Serialize;

/// Why a block is not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Index of the refused instruction.
    pub instruction: usize,
    /// Its offset in the block.
    pub offset: usize,
    /// The instruction and the reason, without a full stop.
    pub reason: String,
}

impl Block {
    /// The first instruction that is refused, if any.
    pub fn refusal(&self) -> Option<Refusal> {
        let last = self.instructions.len() - 1;
        self.instructions.iter().enumerate().find_map(|(i, inst)| {
            let reason = reason(inst, i == last)?;
            Some(Refusal {
                instruction: i,
                offset: inst.offset,
                reason: format!("`{}`: {reason}", inst.text),
            })
        })
    }
}

fn reason(inst: &Inst, last: bool) -> Option<&'static str> {
    let decoded = &inst.decoded;
    named(decoded.mnemonic(), decoded.code())
        .or_else(|| flow(decoded, last))
        .or_else(|| short_target(inst))
        .or_else(|| decoded.is_privileged().then_some("privileged"))
        .or_else(|| decoded.is_save_restore_instruction().then_some(EXTENDED_STATE))
        .or_else(|| decoded.cpuid_features().iter().find_map(|f| feature(*f)))
}

const EXTENDED_STATE: &str = "saves or restores the extended state, including the harness's";
const LEAVES: &str = "leaves the program: the kernel or the hypervisor would handle it";
const SEGMENT: &str = "loads a segment register or base that the harness needs";
const DEVICE: &str = "accesses a device";
const EVICTS: &str = "evicts cache lines, so the data would not stay in the L1 data cache";

/// Exceptions: unsafe instructions of features that are otherwise safe.
fn named(mnemonic: Mnemonic, code: Code) -> Option<&'static str> {
    use Mnemonic as M;
    Some(match mnemonic {
        M::Popf | M::Popfd | M::Popfq => "may leave the trap or alignment-check flag set",
        M::Lds | M::Les | M::Lfs | M::Lgs | M::Lss => SEGMENT,
        M::Mov if writes_segment(code) => SEGMENT,
        M::Pop if matches!(code, Code::Popw_FS | Code::Popw_GS | Code::Popq_FS | Code::Popq_GS) => {
            SEGMENT
        }
        M::In | M::Insb | M::Insw | M::Insd | M::Out | M::Outsb | M::Outsw | M::Outsd => DEVICE,
        M::Cli | M::Sti | M::Hlt => "privileged",
        M::Sgdt | M::Sidt | M::Sldt | M::Smsw | M::Str => "is trapped and emulated by the kernel",
        M::Syscall | M::Sysenter | M::Sysexit | M::Sysret | M::Vmcall | M::Vmmcall => LEAVES,
        M::Int | M::Int1 | M::Int3 | M::Into | M::Iret | M::Iretd | M::Iretq => LEAVES,
        M::Ud0 | M::Ud1 | M::Ud2 => "raises an invalid-opcode exception by design",
        M::Cpuid => "serialises, and traps to the hypervisor in a virtual machine",
        M::Clflush | M::Clflushopt | M::Clwb | M::Cldemote => EVICTS,
        M::Rdpmc => "reads a counter that may not be enabled for user mode",
        M::Xabort | M::Xbegin | M::Xend => "starts or ends a transaction",
        _ => return None,
    })
}

fn writes_segment(code: Code) -> bool {
    matches!(code, Code::Mov_Sreg_rm16 | Code::Mov_Sreg_r32m16 | Code::Mov_Sreg_r64m16)
}

/// A jump with an operand-size prefix: AMD truncates its target to 16 bits, Intel ignores the prefix.
fn short_target(inst: &Inst) -> Option<&'static str> {
    let prefix = |b: &&u8| matches!(**b, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf2 | 0xf3);
    let jump = inst.decoded.flow_control() != FlowControl::Next;
    (jump && inst.bytes.iter().take_while(prefix).any(|b| *b == 0x66))
        .then_some("a jump whose operand-size prefix AMD and Intel interpret differently")
}

/// Control flow: only the last instruction may branch, and only directly.
fn flow(decoded: &iced_x86::Instruction, last: bool) -> Option<&'static str> {
    match decoded.flow_control() {
        FlowControl::Next => None,
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch if last => {
            (!decoded.is_jcc_short_or_near() && !decoded.is_jmp_short_or_near())
                .then_some("a final branch must be a plain conditional or unconditional jump")
        }
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch => {
            Some("a jump inside the block: a basic block may have one only at its end")
        }
        FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return if last => {
            Some("a call or return would leave the block; omit it, as it is the last instruction")
        }
        FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return => {
            Some("a call or return would leave the block")
        }
        FlowControl::IndirectBranch => Some("an indirect jump would leave the block"),
        FlowControl::Interrupt => Some(LEAVES),
        FlowControl::XbeginXabortXend => Some("starts or ends a transaction"),
        FlowControl::Exception => Some("raises an exception by design"),
    }
}

/// Why instructions of `feature` are refused; `None` if they only compute on registers and memory.
fn feature(feature: CpuidFeature) -> Option<&'static str> {
    use CpuidFeature as F;
    match feature {
        F::INTEL8086 | F::INTEL186 | F::INTEL286 | F::INTEL386 | F::INTEL486 | F::X64 => None,
        F::FPU | F::FPU287 | F::FPU387 | F::MMX | F::CMOV | F::CX8 | F::CMPXCHG16B => None,
        F::SSE | F::SSE2 | F::SSE3 | F::SSSE3 | F::SSE4_1 | F::SSE4_2 | F::SSE4A => None,
        F::AVX | F::AVX2 | F::F16C | F::FMA | F::FMA4 | F::XOP | F::TBM => None,
        F::AVX512F | F::AVX512BW | F::AVX512CD | F::AVX512DQ | F::AVX512VL => None,
        F::AVX512_BF16 | F::AVX512_BITALG | F::AVX512_IFMA | F::AVX512_VBMI => None,
        F::AVX512_VBMI2 | F::AVX512_VNNI | F::AVX512_VP2INTERSECT => None,
        F::AVX512_VPOPCNTDQ | F::AVX512_FP16 | F::AVX_VNNI | F::AVX_IFMA => None,
        F::AVX_VNNI_INT8 | F::AVX_VNNI_INT16 | F::AVX_NE_CONVERT | F::CMPCCXADD => None,
        F::AES | F::PCLMULQDQ | F::VAES | F::VPCLMULQDQ | F::GFNI | F::SHA => None,
        F::SHA512 | F::SM3 | F::SM4 | F::RAO_INT | F::MOVDIRI => None,
        F::ADX | F::BMI1 | F::BMI2 | F::LZCNT | F::POPCNT | F::MOVBE => None,
        F::D3NOW | F::D3NOWEXT | F::PREFETCHW | F::PREFETCHITI => None,
        F::MULTIBYTENOP | F::PAUSE | F::CET_IBT | F::TSC | F::RDTSCP | F::HLE => None,
        F::HLE_or_RTM => None,
        F::RDRAND | F::RDSEED => Some("gives different values on every run"),
        F::FSGSBASE | F::LKGS => Some(SEGMENT),
        F::PKU => Some("may deny the harness access to its memory"),
        F::XSAVE | F::XSAVEC | F::XSAVEOPT | F::XSAVES | F::FXSR => Some(EXTENDED_STATE),
        F::MONITOR | F::MONITORX | F::WAITPKG => Some("waits for an event"),
        F::SVM | F::VMX | F::SEV_ES | F::SEV_SNP | F::SKINIT | F::SKINIT_or_SVM => Some(LEAVES),
        F::SMX | F::SGX1 | F::TDX | F::UINTR | F::ENQCMD => Some(LEAVES),
        F::CET_SS => Some("changes the shadow stack"),
        F::AMX_TILE | F::AMX_INT8 | F::AMX_BF16 | F::AMX_FP16 | F::AMX_COMPLEX => {
            Some("needs the tile state, which the harness does not set up")
        }
        F::CLZERO => Some("bypasses the cache"),
        _ => Some("belongs to a feature that is not known to be safe to run in isolation"),
    }
}

impl Block {
    /// Whether it could compute addresses other than its own data's: from an instruction pointer, or by timing
    /// accesses, which also those show that never fault (prefetches, masked loads).
    pub fn can_learn_addresses(&self) -> bool {
        self.instructions.iter().any(reveals)
    }
}

fn reveals(inst: &Inst) -> bool {
    use Mnemonic as M;
    match inst.decoded.mnemonic() {
        // The x87 environment holds the last instruction's address.
        M::Fnstenv | M::Fstenv | M::Fnsave | M::Fsave => true,
        M::Rdtsc | M::Rdtscp => true,
        M::Lea => inst.decoded.is_ip_rel_memory_operand(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::parse_hex;

    #[test]
    fn instruction_pointers_and_clocks_reveal_where_a_block_runs() {
        let reveals =
            |hex: &str| Block::decode(&parse_hex(hex).unwrap()).unwrap().can_learn_addresses();
        // Encodings from the Intel manual's opcode tables.
        for hex in [
            "d933",             // fnstenv [rbx]
            "66d933",           // fnstenv, 16 bits
            "9bd933",           // fstenv
            "dd33",             // fnsave [rbx]
            "9bdd33",           // fsave
            "90 0f31",          // rdtsc, not first
            "0f01f9",           // rdtscp
            "488d0500000000",   // lea rax,[rip]
            "67488d0500000000", // lea rax,[eip]
        ] {
            assert!(reveals(hex), "{hex}");
        }
        for hex in [
            "4801d8",         // add rax,rbx
            "488d4301",       // lea rax,[rbx+1]
            "488b0500000000", // mov rax,[rip]: content, not its address
            "d923",           // fldenv [rbx]
            "d93b",           // fnstcw
            "0f0d0b",         // prefetchw [rbx], without a clock
            "9c58",           // pushf, pop
        ] {
            assert!(!reveals(hex), "{hex}");
        }
    }
}
