//! Instruction-set extensions that this processor has and the operating system enables.

use iced_x86::{Code, CpuidFeature};
use isa::names::name;

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
