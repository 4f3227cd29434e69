//! Registers by leaf and subleaf, and what they say.

use super::features::Feature;
use crate::{Cache, Cpu};
use std::collections::BTreeMap;

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
