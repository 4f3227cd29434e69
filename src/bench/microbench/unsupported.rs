//! Encodings that cannot be measured: those without a form, since an operand cannot be chosen freely; forms whose
//! registers are not free; and extensions that this processor or the operating system lacks.

use super::form::{Form, Memory};
use iced_x86::{
    Code, CpuidFeature, EncodingKind, InstructionInfoFactory, OpAccess, OpCodeOperandKind, OpKind,
    Register, UsedRegister,
};
use isa::code::Block;
use isa::names::name;
use serde::Serialize;
use tma::Result;

/// A form in the list, or an encoding without one.
#[derive(Debug, Clone, Serialize)]
pub struct Listed {
    /// Its name.
    pub form: String,
    /// iced-x86's name of its encoding, with the choice of its operand.
    pub code: String,
    /// Extensions that it needs.
    pub extensions: Vec<String>,
    /// Why it cannot be measured here, if it cannot.
    pub reason: Option<String>,
}

/// Encodings of 64-bit code without a form whose name or mnemonic `hit` accepts, with the reason.
pub fn unsupported(hit: impl Fn(&str) -> bool) -> Vec<Listed> {
    let known = |code: &Code| {
        let op = code.op_code();
        op.is_instruction() && op.mode64() && op.encoding() != EncodingKind::MVEX
    };
    let listed = |code: Code| {
        let encoding = name(code);
        let mnemonic = name(code.mnemonic());
        (hit(&encoding) || hit(&mnemonic)).then(|| Listed {
            form: mnemonic.to_uppercase(),
            code: encoding,
            extensions: code.cpuid_features().iter().map(|f| name(*f)).collect(),
            reason: Some(reason(code).to_owned()),
        })
    };
    let all = Code::values().filter(known).filter(|code| Form::all_of(*code).is_empty());
    let mut all: Vec<Listed> = all.filter_map(listed).collect();
    all.sort_by(|a, b| (&a.form, &a.code).cmp(&(&b.form, &b.code)));
    all
}

fn reason(code: Code) -> &'static str {
    let kinds = code.op_code().op_kinds();
    let any = |is: fn(OpCodeOperandKind) -> bool| kinds.iter().any(|kind| is(*kind));
    use OpCodeOperandKind as K;
    if any(|k| {
        let vector_addresses = [
            K::mem_vsib32x,
            K::mem_vsib64x,
            K::mem_vsib32y,
            K::mem_vsib64y,
            K::mem_vsib32z,
            K::mem_vsib64z,
        ];
        vector_addresses.contains(&k)
    }) {
        "gather or scatter: its addresses come from a vector register"
    } else if any(|k| [K::seg_rSI, K::es_rDI, K::seg_rDI, K::seg_rBX_al].contains(&k)) {
        "string instruction: its address registers are fixed"
    } else if code.is_jcc_short_or_near() || code.is_jmp_short_or_near() || any(is_target) {
        "branch: control would leave the microbenchmark"
    } else if any(|k| [K::st0, K::sti_opcode].contains(&k)) {
        "operates on the x87 stack"
    } else if any(|k| [K::cr_reg, K::dr_reg, K::tr_reg].contains(&k)) {
        "system register: privileged"
    } else if any(|k| [K::seg_reg, K::es, K::cs, K::ss, K::ds, K::fs, K::gs].contains(&k)) {
        "segment register"
    } else if any(|k| [K::tmm_reg, K::tmm_rm, K::tmm_vvvv, K::sibmem].contains(&k)) {
        "operates on tiles (AMX)"
    } else if any(|k| k == K::mem_offs) {
        "constant address"
    } else {
        "an operand cannot be chosen freely"
    }
}

fn is_target(kind: OpCodeOperandKind) -> bool {
    use OpCodeOperandKind as K;
    let targets = [
        K::br16_1,
        K::br32_1,
        K::br64_1,
        K::br16_2,
        K::br32_4,
        K::br64_4,
        K::xbegin_2,
        K::xbegin_4,
        K::brdisp_2,
        K::brdisp_4,
        K::farbr2_2,
        K::farbr4_2,
    ];
    targets.contains(&kind)
}

impl Form {
    /// Its use of operands and implicit registers.
    ///
    /// # Errors
    /// It cannot be encoded.
    pub fn usage(&self) -> Result<Usage> {
        let sample = self.sample()?;
        let mut facts = InstructionInfoFactory::new();
        let info = facts.info(&sample);
        let explicit: Vec<Register> = (0..sample.op_count())
            .filter(|i| sample.op_kind(*i) == OpKind::Register)
            .map(|i| sample.op_register(i))
            .filter(|r| r.full_register().number() >= 8 || r.is_mm() || r.is_k())
            .chain([sample.memory_base(), sample.memory_index(), sample.op_mask()])
            .map(Register::full_register)
            .collect();
        let implicit = |used: &&UsedRegister| !explicit.contains(&used.register().full_register());
        Ok(Usage {
            access: (0..sample.op_count()).map(|i| info.op_access(i)).collect(),
            implicit: info.used_registers().iter().filter(implicit).copied().collect(),
        })
    }

    /// Why it is not measured although its operands are supported: it must not run, it changes its own
    /// address registers, or it cannot be encoded.
    pub fn refusal(&self) -> Option<String> {
        let bytes = match self.sample().and_then(|sample| self.encode(&sample)) {
            Ok(bytes) => bytes,
            Err(error) => return Some(error.to_string()),
        };
        let block = match Block::decode(&bytes) {
            Ok(block) => block,
            Err(error) => return Some(error.to_string()),
        };
        let [inst] = block.instructions.as_slice() else {
            return Some("its encoding decodes to several instructions".to_owned());
        };
        if inst.decoded.code() != self.code {
            return Some(format!("its encoding decodes to {}", name(inst.decoded.code())));
        }
        if let Some(refusal) = block.refusal() {
            return Some(refusal.reason);
        }
        if inst.decoded.is_stack_instruction() && !self.is_push_or_pop() {
            return Some("changes the stack pointer".to_owned());
        }
        if inst.decoded.is_string_instruction() {
            return Some("changes its address registers".to_owned());
        }
        if self.code.op_code().require_op_mask_register() {
            return Some("clears the mask register that it needs".to_owned());
        }
        let implicit = self.usage().map(|usage| usage.implicit).unwrap_or_default();
        let stack = |r: &UsedRegister| r.register().is_st();
        if implicit.iter().any(stack) {
            return Some("operates on the x87 stack".to_owned());
        }
        (!inst.memory.is_empty() && self.memory == Memory::None && !self.is_push_or_pop())
            .then(|| "accesses memory implicitly".to_owned())
    }
}

/// An instruction's use of operands.
#[derive(Debug, Clone)]
pub struct Usage {
    /// One for each operand.
    pub access: Vec<OpAccess>,
    /// Implicit and fixed registers.
    pub implicit: Vec<UsedRegister>,
}

/// Names the first extension that `code` needs and this processor lacks or cannot be checked for.
pub fn lacks(code: Code) -> Option<String> {
    let missing = code.cpuid_features().iter().find(|feature| !has(**feature))?;
    Some(format!("needs {}, which this processor lacks or which is not detected", name(*missing)))
}

/// Whether this processor has it. Extensions that are not listed count as absent.
#[cfg(target_arch = "x86_64")]
fn has(feature: CpuidFeature) -> bool {
    use CpuidFeature as F;
    use std::is_x86_feature_detected as detected;
    match feature {
        F::INTEL8086 | F::INTEL186 | F::INTEL286 | F::INTEL386 | F::INTEL486 | F::X64 => true,
        F::FPU | F::FPU287 | F::FPU387 | F::MMX | F::CMOV | F::CX8 | F::SSE | F::SSE2 => true,
        F::MULTIBYTENOP | F::PAUSE | F::TSC => true,
        F::CMPXCHG16B => detected!("cmpxchg16b"),
        F::SSE3 => detected!("sse3"),
        F::SSSE3 => detected!("ssse3"),
        F::SSE4_1 => detected!("sse4.1"),
        F::SSE4_2 => detected!("sse4.2"),
        F::SSE4A => detected!("sse4a"),
        F::AVX => detected!("avx"),
        F::AVX2 => detected!("avx2"),
        F::F16C => detected!("f16c"),
        F::FMA => detected!("fma"),
        F::TBM => detected!("tbm"),
        F::AES => detected!("aes"),
        F::PCLMULQDQ => detected!("pclmulqdq"),
        F::SHA => detected!("sha"),
        F::ADX => detected!("adx"),
        F::BMI1 => detected!("bmi1"),
        F::BMI2 => detected!("bmi2"),
        F::LZCNT => detected!("lzcnt"),
        F::POPCNT => detected!("popcnt"),
        F::MOVBE => detected!("movbe"),
        F::PREFETCHW => named(0x8000_0001, 2, 8),
        F::MOVDIRI => named(7, 2, 27),
        _ => wide(feature),
    }
}

/// AVX-512 and what goes with vectors.
#[cfg(target_arch = "x86_64")]
fn wide(feature: CpuidFeature) -> bool {
    use CpuidFeature as F;
    use std::is_x86_feature_detected as detected;
    match feature {
        F::GFNI => detected!("gfni"),
        F::VAES => detected!("vaes"),
        F::VPCLMULQDQ => detected!("vpclmulqdq"),
        F::AVX512F => detected!("avx512f"),
        F::AVX512BW => detected!("avx512bw"),
        F::AVX512CD => detected!("avx512cd"),
        F::AVX512DQ => detected!("avx512dq"),
        F::AVX512VL => detected!("avx512vl"),
        F::AVX512_IFMA => detected!("avx512ifma"),
        F::AVX512_VBMI => detected!("avx512vbmi"),
        F::AVX512_VBMI2 => detected!("avx512vbmi2"),
        F::AVX512_VNNI => detected!("avx512vnni"),
        F::AVX512_BITALG => detected!("avx512bitalg"),
        F::AVX512_VPOPCNTDQ => detected!("avx512vpopcntdq"),
        F::AVX512_VP2INTERSECT => detected!("avx512vp2intersect"),
        F::AVX512_BF16 => detected!("avx512bf16"),
        F::AVX512_FP16 => named(7, 3, 23) && detected!("avx512f"),
        F::AVX_VNNI => named_in(7, 1, 0, 4) && detected!("avx2"),
        F::AVX_IFMA => named_in(7, 1, 0, 23) && detected!("avx2"),
        _ => false,
    }
}

/// A bit of a leaf of CPUID; registers eax 0, ebx 1, ecx 2, edx 3.
#[cfg(target_arch = "x86_64")]
fn named(leaf: u32, register: usize, bit: u32) -> bool {
    named_in(leaf, 0, register, bit)
}

#[cfg(target_arch = "x86_64")]
fn named_in(leaf: u32, subleaf: u32, register: usize, bit: u32) -> bool {
    use raw_cpuid::{CpuIdReader as _, CpuIdReaderNative};
    let reader = CpuIdReaderNative;
    if reader.cpuid1(leaf & 0x8000_0000).eax < leaf {
        return false;
    }
    let found = reader.cpuid2(leaf, subleaf);
    let word = [found.eax, found.ebx, found.ecx, found.edx][register & 3];
    word & 1 << bit != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn has(_: CpuidFeature) -> bool {
    false
}
