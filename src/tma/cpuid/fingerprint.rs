//! Features, caches and brand, which may differ between two cores with one model number.

use super::features::Feature;
use super::registers::{CacheLevel, Cpuid};
use serde::{Deserialize, Serialize};

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
