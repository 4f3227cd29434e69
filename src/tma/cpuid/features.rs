//! The features that distinguish cores: each a bit of CPUID.
//!
//! Bits: Intel 64 and IA-32 Architectures Software Developer's Manual, vol. 2 (CPUID); Intel
//! Architecture Instruction Set Extensions Programming Reference; AMD64 Architecture Programmer's
//! Manual, vol. 3, appendix E. Names are those of the kernel where it has one. What hypervisors set
//! without the processor (UMIP, the x2APIC, the TSC deadline) is not among them.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Features that firmware, kernels and hypervisors switch off together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// AVX, AVX2 and what needs their registers.
    Avx,
    /// All of AVX-512 and AVX10.
    Avx512,
    /// The tile registers.
    Amx,
    /// On its own.
    Single,
    /// On its own; hypervisors do not show it to guests, so its absence there means nothing.
    Host,
}

struct Bit {
    name: &'static str,
    leaf: (u32, u32),
    /// Number of the register (`EAX` to `EDX`) and of its bit.
    at: (u8, u8),
    group: Group,
}

const fn bit(name: &'static str, leaf: (u32, u32), register: u8, number: u8, group: Group) -> Bit {
    Bit { name, leaf, at: (register, number), group }
}

const A: u8 = 0;
const B: u8 = 1;
const C: u8 = 2;
const D: u8 = 3;
const REGISTERS: [&str; 4] = ["EAX", "EBX", "ECX", "EDX"];
const L1: (u32, u32) = (1, 0);
const L7: (u32, u32) = (7, 0);
const L71: (u32, u32) = (7, 1);
const E1: (u32, u32) = (0x8000_0001, 0);

use Group::{Amx, Avx, Avx512, Host, Single};

static FEATURES: [Bit; 86] = [
    bit("fma", L1, C, 12, Avx),
    bit("dca", L1, C, 18, Host),
    bit("movbe", L1, C, 22, Single),
    bit("avx", L1, C, 28, Avx),
    bit("f16c", L1, C, 29, Avx),
    bit("rdrand", L1, C, 30, Single),
    bit("bmi1", L7, B, 3, Avx),
    bit("hle", L7, B, 4, Host),
    bit("avx2", L7, B, 5, Avx),
    bit("bmi2", L7, B, 8, Avx),
    bit("erms", L7, B, 9, Single),
    bit("invpcid", L7, B, 10, Single),
    bit("rtm", L7, B, 11, Host),
    bit("cqm", L7, B, 12, Host),
    bit("mpx", L7, B, 14, Host),
    bit("rdt_a", L7, B, 15, Host),
    bit("avx512f", L7, B, 16, Avx512),
    bit("avx512dq", L7, B, 17, Avx512),
    bit("rdseed", L7, B, 18, Single),
    bit("adx", L7, B, 19, Single),
    bit("smap", L7, B, 20, Single),
    bit("avx512ifma", L7, B, 21, Avx512),
    bit("clflushopt", L7, B, 23, Single),
    bit("clwb", L7, B, 24, Single),
    bit("intel_pt", L7, B, 25, Host),
    bit("avx512pf", L7, B, 26, Avx512),
    bit("avx512er", L7, B, 27, Avx512),
    bit("avx512cd", L7, B, 28, Avx512),
    bit("sha_ni", L7, B, 29, Single),
    bit("avx512bw", L7, B, 30, Avx512),
    bit("avx512vl", L7, B, 31, Avx512),
    bit("avx512vbmi", L7, C, 1, Avx512),
    bit("pku", L7, C, 3, Single),
    bit("waitpkg", L7, C, 5, Single),
    bit("avx512_vbmi2", L7, C, 6, Avx512),
    bit("shstk", L7, C, 7, Host),
    bit("gfni", L7, C, 8, Single),
    bit("vaes", L7, C, 9, Avx),
    bit("vpclmulqdq", L7, C, 10, Avx),
    bit("avx512_vnni", L7, C, 11, Avx512),
    bit("avx512_bitalg", L7, C, 12, Avx512),
    bit("avx512_vpopcntdq", L7, C, 14, Avx512),
    bit("la57", L7, C, 16, Host),
    bit("rdpid", L7, C, 22, Single),
    bit("key_locker", L7, C, 23, Host),
    bit("cldemote", L7, C, 25, Single),
    bit("movdiri", L7, C, 27, Single),
    bit("movdir64b", L7, C, 28, Single),
    bit("enqcmd", L7, C, 29, Host),
    bit("avx512_4vnniw", L7, D, 2, Avx512),
    bit("avx512_4fmaps", L7, D, 3, Avx512),
    bit("fsrm", L7, D, 4, Single),
    bit("uintr", L7, D, 5, Host),
    bit("avx512_vp2intersect", L7, D, 8, Avx512),
    bit("serialize", L7, D, 14, Single),
    bit("tsxldtrk", L7, D, 16, Single),
    bit("pconfig", L7, D, 18, Host),
    bit("arch_lbr", L7, D, 19, Host),
    bit("ibt", L7, D, 20, Host),
    bit("amx_bf16", L7, D, 22, Amx),
    bit("avx512_fp16", L7, D, 23, Avx512),
    bit("amx_tile", L7, D, 24, Amx),
    bit("amx_int8", L7, D, 25, Amx),
    bit("sha512", L71, A, 0, Avx),
    bit("sm3", L71, A, 1, Avx),
    bit("sm4", L71, A, 2, Avx),
    bit("avx_vnni", L71, A, 4, Avx),
    bit("avx512_bf16", L71, A, 5, Avx512),
    bit("cmpccxadd", L71, A, 7, Single),
    bit("fred", L71, A, 17, Host),
    bit("lkgs", L71, A, 18, Host),
    bit("amx_fp16", L71, A, 21, Amx),
    bit("hreset", L71, A, 22, Host),
    bit("avx_ifma", L71, A, 23, Avx),
    bit("avx_vnni_int8", L71, D, 4, Avx),
    bit("avx_ne_convert", L71, D, 5, Avx),
    bit("amx_complex", L71, D, 8, Amx),
    bit("avx_vnni_int16", L71, D, 10, Avx),
    bit("prefetchi", L71, D, 14, Single),
    bit("user_msr", L71, D, 15, Host),
    bit("cet_sss", L71, D, 18, Host),
    bit("avx10", L71, D, 19, Avx512),
    bit("apx_f", L71, D, 21, Single),
    bit("lzcnt", E1, C, 5, Single),
    bit("xop", E1, C, 11, Avx),
    bit("fma4", E1, C, 16, Avx),
];

/// A feature that CPUID names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Feature(u8);

impl Feature {
    /// The feature of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|feature| feature.name() == name)
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..).take(FEATURES.len()).map(Self)
    }

    fn bit(self) -> &'static Bit {
        &FEATURES[usize::from(self.0)]
    }

    /// Its name, the kernel's where it has one: `avx512_fp16`.
    pub fn name(self) -> &'static str {
        self.bit().name
    }

    /// Leaf and subleaf.
    pub fn leaf(self) -> (u32, u32) {
        self.bit().leaf
    }

    /// Register (0: EAX to 3: EDX) and number of the bit.
    pub fn at(self) -> (usize, u32) {
        let (register, number) = self.bit().at;
        (usize::from(register), u32::from(number))
    }

    /// Features that are switched off together with it.
    pub fn group(self) -> Group {
        self.bit().group
    }

    /// Where CPUID names it: `7.1 EDX 14`.
    pub fn place(self) -> String {
        let (leaf, subleaf) = self.leaf();
        let (register, number) = self.at();
        let subleaf = if leaf == 7 { format!(".{subleaf}") } else { String::new() };
        format!("{leaf:x}{subleaf} {} {number}", REGISTERS[register])
    }
}

impl fmt::Debug for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Feature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Feature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| {
            let near = crate::error::nearest(&name, FEATURES.iter().map(|bit| bit.name));
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            D::Error::custom(format!("no feature is called `{name}`{hint}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_feature_has_a_name_and_a_bit_of_its_own() {
        let names: BTreeSet<_> = Feature::all().map(Feature::name).collect();
        let bits: BTreeSet<_> = Feature::all().map(|f| (f.leaf(), f.at())).collect();
        assert_eq!((names.len(), bits.len()), (FEATURES.len(), FEATURES.len()));
    }

    #[test]
    fn places_are_those_of_intels_manual() {
        let place = |name: &str| Feature::named(name).map(Feature::place);
        // SDM vol. 2, CPUID, leaf 7 subleaf 1: EDX bit 14 is PREFETCHI.
        assert_eq!(place("prefetchi").as_deref(), Some("7.1 EDX 14"));
        assert_eq!(place("lzcnt").as_deref(), Some("80000001 ECX 5"));
        assert_eq!(place("nothing"), None);
    }
}
