//! CPUID registers, from the processor or from a file. `features` has the bits that distinguish cores, `read` the
//! dumps.

mod features;
mod read;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use features::{Feature, Group};
pub use read::{Dump, read};

/// The processor's own identification. On a hybrid all kinds of core share it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cpu {
    /// CPUID vendor string: `GenuineIntel`, `AuthenticAMD`; empty where unknown.
    pub vendor: String,
    /// Display family, extended family added.
    pub family: u32,
    /// Display model, extended model included.
    pub model: u32,
    /// Stepping.
    pub stepping: u32,
    /// Brand string.
    pub name: String,
    /// Feature flags as the kernel names them.
    pub flags: Vec<String>,
}

impl Cpu {
    /// Whether the kernel lists this feature flag.
    pub fn has_flag(&self, flag: &str) -> bool {
        self.flags.iter().any(|f| f == flag)
    }

    /// Vendor, family, model and stepping in one line, hexadecimal model as vendors write it.
    pub fn signature(&self) -> String {
        if self.vendor.is_empty() {
            return "unknown processor".into();
        }
        format!(
            "{} family {} model {} ({:#x}) stepping {}",
            self.vendor, self.family, self.model, self.model, self.stepping
        )
    }
}

/// Shape of a cache with lines of 64 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Lines of a set.
    pub ways: usize,
    /// Sets.
    pub sets: usize,
}

impl Cache {
    /// Its size in bytes.
    pub fn bytes(self) -> usize {
        64 * self.ways * self.sets
    }
}

/// EAX, EBX, ECX, EDX.
pub type Leaf = [u32; 4];

/// Registers that CPUID returns on one core. A leaf that is not there is not known: it may not exist, or a hypervisor
/// or the tool that wrote it down may have left it out.
///
/// ```
/// use tma::cpuid::{CacheLevel, Cpuid, Feature};
///
/// // Leaves 0, 1 and 4.0 of a Xeon of Granite Rapids (InstLatx64, A06D1).
/// let mut cpuid = Cpuid::default();
/// cpuid.insert(0, 0, [0x24, 0x756e_6547, 0x6c65_746e, 0x4965_6e69]);
/// cpuid.insert(1, 0, [0x000a_06d1, 0, 1 << 28, 0]);
/// cpuid.insert(4, 0, [0x0000_4121, 0x02c0_003f, 0x3f, 0]);
/// let cpu = cpuid.cpu();
/// assert_eq!((cpu.vendor.as_str(), cpu.family, cpu.model), ("GenuineIntel", 6, 0xad));
/// assert_eq!(cpuid.has(Feature::named("avx").unwrap()), Some(true));
/// assert_eq!(cpuid.has(Feature::named("prefetchi").unwrap()), None, "leaf 7.1 is not there");
/// assert_eq!(cpuid.cache(CacheLevel::L1Data).map(|l1| l1.bytes()), Some(48 * 1024));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cpuid {
    leaves: BTreeMap<(u32, u32), Leaf>,
}

/// A cache of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheLevel {
    /// The first-level data cache.
    L1Data,
    /// The first-level instruction cache.
    L1Code,
    /// The second level.
    L2,
}

impl CacheLevel {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::L1Data, Self::L1Code, Self::L2];

    /// The name that the field uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::L1Data => "L1D",
            Self::L1Code => "L1I",
            Self::L2 => "L2",
        }
    }
}

/// Kind and native model of a core of a hybrid (leaf 1A).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreType {
    /// 0x20 for Atom, 0x40 for Core.
    pub kind: u32,
    /// Microarchitecture within the kind.
    pub native: u32,
}

/// Intel's leaf of caches, and AMD's.
const CACHES: [u32; 2] = [4, 0x8000_001d];
/// More caches than any processor lists.
const MOST_CACHES: u32 = 16;

impl Cpuid {
    /// Adds what a leaf answers.
    pub fn insert(&mut self, leaf: u32, subleaf: u32, registers: Leaf) {
        self.leaves.insert((leaf, subleaf), registers);
    }

    /// Registers of a leaf, if it is there.
    pub fn get(&self, leaf: u32, subleaf: u32) -> Option<Leaf> {
        self.leaves.get(&(leaf, subleaf)).copied()
    }

    /// All leaves and subleaves, in order.
    pub fn leaves(&self) -> impl Iterator<Item = ((u32, u32), Leaf)> {
        self.leaves.iter().map(|(at, registers)| (*at, *registers))
    }

    /// Without the leaves of these numbers: what a hypervisor that hides them shows.
    pub fn without(&self, hidden: &[(u32, u32)]) -> Self {
        let mut rest = self.clone();
        rest.leaves.retain(|at, _| !hidden.contains(at));
        rest
    }

    /// Whether nothing is there.
    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    /// Vendor, family, model, stepping and brand: what the processor claims to be.
    pub fn cpu(&self) -> Cpu {
        let words = self.get(0, 0).unwrap_or_default();
        let text = |words: &[u32]| {
            let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            text.trim_matches(['\0', ' ']).to_owned()
        };
        let id = self.get(1, 0).unwrap_or_default()[0];
        let (short, extended) = (id >> 8 & 0xf, id >> 20 & 0xff);
        let family = if short == 0xf { short + extended } else { short };
        let high = if matches!(short, 6 | 0xf) { (id >> 16 & 0xf) << 4 } else { 0 };
        let brand: Vec<u32> =
            (0x8000_0002..=0x8000_0004).filter_map(|leaf| self.get(leaf, 0)).flatten().collect();
        Cpu {
            vendor: text(&[words[1], words[3], words[2]]),
            family,
            model: (id >> 4 & 0xf) | high,
            stepping: id & 0xf,
            name: text(&brand),
            flags: Vec::new(),
        }
    }

    /// The highest basic leaf; none where only the vendor is known.
    pub fn highest_leaf(&self) -> Option<u32> {
        self.get(0, 0).map(|registers| registers[0]).filter(|highest| *highest > 0)
    }

    /// Whether a hypervisor says that it is there (leaf 1, ECX 31).
    pub fn is_virtual(&self) -> bool {
        self.get(1, 0).is_some_and(|registers| registers[2] >> 31 == 1)
    }

    /// Whether the processor says that it has cores of several kinds (leaf 7, EDX 15).
    pub fn is_hybrid(&self) -> bool {
        self.get(7, 0).is_some_and(|registers| registers[3] >> 15 & 1 == 1)
    }

    /// Whether a feature is there; `None` where its leaf is not known.
    pub fn has(&self, feature: Feature) -> Option<bool> {
        let (leaf, subleaf) = feature.leaf();
        let (register, number) = feature.at();
        self.get(leaf, subleaf).map(|registers| registers[register] >> number & 1 == 1)
    }

    /// The shape of a cache, if it has lines of 64 bytes.
    pub fn cache(&self, level: CacheLevel) -> Option<Cache> {
        // Type 1: data, 2: code, 3: both.
        let wanted = match level {
            CacheLevel::L1Data => (1, 1),
            CacheLevel::L1Code => (1, 2),
            CacheLevel::L2 => (2, 3),
        };
        let subleaves = CACHES.iter().flat_map(|leaf| (0..MOST_CACHES).map(move |s| (*leaf, s)));
        let mut listed = subleaves.filter_map(|(leaf, subleaf)| self.get(leaf, subleaf));
        let [_, b, c, _] = listed.find(|[a, ..]| (a >> 5 & 7, a & 31) == wanted)?;
        let line = ((b >> 12 & 0x3ff) + 1) * ((b & 0xfff) + 1);
        let shape = Cache { ways: (b >> 22) as usize + 1, sets: c as usize + 1 };
        (line == 64 && shape.sets < 1 << 24).then_some(shape)
    }

    /// Kind and native model of this core; only processors with leaf 1A say them.
    pub fn core_type(&self) -> Option<CoreType> {
        let [a, ..] = self.get(0x1a, 0).filter(|registers| registers[0] != 0)?;
        Some(CoreType { kind: a >> 24, native: a & 0xff_ffff })
    }
}

/// A core as CPUID shows it, in a form that is stored with measurements.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// A hash of the other parts and of family, model and stepping, in 16 hexadecimal digits.
    pub hash: String,
    /// Names of its features, of those that distinguish cores.
    pub features: Vec<String>,
    /// `L1D 48 KiB 12-way` and so on, as far as they are known.
    pub caches: Vec<String>,
    /// The brand string.
    pub brand: String,
}

impl Fingerprint {
    /// The fingerprint of a core; `None` where nothing is known of it.
    pub fn of(cpuid: &Cpuid) -> Option<Self> {
        if cpuid.is_empty() {
            return None;
        }
        let cpu = cpuid.cpu();
        let has = Feature::all().filter(|feature| cpuid.has(*feature) == Some(true));
        let features: Vec<String> = has.map(|feature| feature.name().to_owned()).collect();
        let cache = |level: CacheLevel| {
            let shape = cpuid.cache(level)?;
            Some(format!("{} {} KiB {}-way", level.name(), shape.bytes() / 1024, shape.ways))
        };
        let caches: Vec<String> = CacheLevel::ALL.into_iter().filter_map(cache).collect();
        let core = cpuid.core_type().map(|core| format!("{:x}.{:x}", core.kind, core.native));
        let parts = [
            cpu.signature(),
            features.join(" "),
            caches.join(", "),
            core.unwrap_or_default(),
            cpu.name.clone(),
        ];
        let hash = format!("{:016x}", fnv1a(parts.join("\n").as_bytes()));
        Some(Self { hash, features, caches, brand: cpu.name })
    }
}

/// FNV-1a, 64 bits (draft-eastlake-fnv): the same in every build, unlike the standard library's.
fn fnv1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv() {
        // Test vectors of the draft, section 8.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn one_model_with_other_caches_or_features_is_another_core() {
        let mut one = Cpuid::default();
        one.insert(1, 0, [0xa0671, 0, 1 << 12, 0]);
        one.insert(4, 1, [0x22, 0x01c0_003f, 63, 0]);
        let (mut other, mut third) = (one.clone(), one.clone());
        other.insert(4, 1, [0x22, 0x03c0_003f, 63, 0]);
        third.insert(7, 1, [0, 0, 0, 1 << 14]);
        let of = |cpuid: &Cpuid| Fingerprint::of(cpuid).unwrap();
        assert_eq!(of(&one).caches, ["L1I 32 KiB 8-way"]);
        assert_eq!(of(&third).features, ["fma", "prefetchi"]);
        assert_eq!(of(&one), of(&one.clone()));
        assert!(of(&one).hash != of(&other).hash && of(&one).hash != of(&third).hash);
        assert_eq!(Fingerprint::of(&Cpuid::default()), None);
    }
}
