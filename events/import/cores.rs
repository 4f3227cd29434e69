//! Properties of each core beyond the vendors' event files (`[facts]` of a table), and its CPUID signature
//! (`[signature]`, from `signatures.toml`, which names the sources).

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use tma::Cache;
use tma::cpuid::Feature;
use tma::tables::Signature;
use tma::tables::facts::{
    DataTlb, Facts, FalseDependence, FalseDependences, FusedWith, NopFusion, OpCache, Renamed,
    RenamedMoves, StoreAliasing, SustainedWidth, ZeroIdiom, ZeroIdioms,
};

/// Intel's optimization reference manual.
pub const INTEL: &str = "Intel 64 and IA-32 Architectures Optimization Reference Manual";
/// AMD's guide for each family.
pub const AMD: &str = "AMD Software Optimization Guide for the family";
/// Where vendors say nothing.
pub const CHIPS_AND_CHEESE: &str = "Chips and Cheese, measured";
const UOPS: &str = "uops.info";
const EMERALD_RAPIDS: &str = "measured on Emerald Rapids (tests/figures/corrections.py)";
const FOG: &str = "Agner Fog, The microarchitecture of Intel, AMD and VIA CPUs";
const ZEN_IDIOMS: &str = "AMD Software Optimization Guide for family 19h; Agner Fog";
const ON_ZEN3: &str = "measured on a Zen 3";
const ON_ZEN4: &str = "measured natively on a Zen 4";

fn idioms(also: &[ZeroIdiom], source: &str) -> Option<ZeroIdioms> {
    Some(ZeroIdioms { also: also.to_vec(), source: source.into() })
}

fn renamed(kinds: &[Renamed], source: &str) -> Option<RenamedMoves> {
    Some(RenamedMoves { kinds: kinds.to_vec(), source: source.into() })
}

fn waits(on: &[FalseDependence], source: &str) -> Option<FalseDependences> {
    Some(FalseDependences { on: on.to_vec(), source: source.into() })
}

fn op_cache(ops: u32, per_32_bytes: Option<u32>, source: &str) -> Option<OpCache> {
    Some(OpCache { ops, per_32_bytes, source: source.into() })
}

fn data_tlb(loads: u32, stores: Option<u32>, source: &str) -> Option<DataTlb> {
    Some(DataTlb { loads, stores, source: source.into() })
}

/// Haswell and Broadwell.
pub fn haswell() -> Facts {
    use {FalseDependence as F, Renamed as R};
    Facts {
        // Three lines of six for each 32 bytes.
        op_cache: op_cache(1536, Some(18), INTEL),
        data_tlb: data_tlb(64, None, INTEL),
        zero_idioms: idioms(&[ZeroIdiom::SaturatingSubtract], UOPS),
        renamed: renamed(&[R::Mov, R::Movzx, R::VectorMov], UOPS),
        false_dependences: waits(&[F::Popcnt, F::Lzcnt, F::ShiftFlags], UOPS),
        ..Facts::default()
    }
}

/// Skylake to Cascade Lake.
pub fn skylake() -> Facts {
    use FalseDependence as F;
    Facts { false_dependences: waits(&[F::Popcnt, F::ShiftFlags], UOPS), ..haswell() }
}

/// Sunny Cove, Cypress Cove, Willow Cove: moves of general-purpose registers are executed (switched
/// off by microcode).
pub fn sunny_cove() -> Facts {
    Facts {
        op_cache: op_cache(2304, None, INTEL),
        data_tlb: data_tlb(64, Some(16), INTEL),
        latencies: Some("sunny_cove".into()),
        ports: Some("icl".into()),
        renamed: renamed(&[Renamed::VectorMov], UOPS),
        false_dependences: waits(&[FalseDependence::ShiftFlags], UOPS),
        ..haswell()
    }
}

/// Sunny Cove of servers, with a second 512-bit FMA unit.
pub fn sunny_cove_server() -> Facts {
    Facts { ports: Some("icx".into()), ..sunny_cove() }
}

/// Golden Cove, Raptor Cove, Redwood Cove.
pub fn golden_cove() -> Facts {
    use Renamed as R;
    Facts {
        latencies: Some("golden_cove".into()),
        ports: Some("golden_cove".into()),
        op_cache: op_cache(4096, None, INTEL),
        data_tlb: data_tlb(96, Some(16), INTEL),
        zero_idioms: idioms(&[ZeroIdiom::SaturatingSubtract, ZeroIdiom::MaskXor], EMERALD_RAPIDS),
        renamed: renamed(&[R::Mov, R::Movzx, R::VectorMov, R::AddConstant], EMERALD_RAPIDS),
        false_dependences: waits(&[FalseDependence::ShiftFlags], EMERALD_RAPIDS),
        sustained_width: Some(SustainedWidth {
            with_two_loads: 6,
            source: "measured on Emerald Rapids".into(),
        }),
        ..Facts::default()
    }
}

/// Lion Cove and Cougar Cove.
pub fn lion_cove() -> Facts {
    use Renamed as R;
    Facts {
        zero_idioms: idioms(&[ZeroIdiom::SaturatingSubtract], UOPS),
        renamed: renamed(&[R::Mov, R::Movzx, R::VectorMov], UOPS),
        false_dependences: waits(&[FalseDependence::ShiftFlags], UOPS),
        ..Facts::default()
    }
}

/// Intel's small cores.
pub fn atom() -> Facts {
    Facts { false_dependences: waits(&[FalseDependence::ShiftFlags], FOG), ..Facts::default() }
}

/// Facts of all Zen cores.
fn zen() -> Facts {
    use ZeroIdiom as Z;
    Facts {
        data_tlb: data_tlb(64, None, AMD),
        zero_idioms: idioms(&[Z::Sbb, Z::Cmp, Z::SaturatingSubtract, Z::AndNot], ZEN_IDIOMS),
        renamed: renamed(&[Renamed::Mov, Renamed::VectorMov], FOG),
        false_dependences: waits(&[], ON_ZEN3),
        ..Facts::default()
    }
}

/// Zen and Zen+.
pub fn zen1() -> Facts {
    Facts { op_cache: op_cache(2048, None, AMD), ..zen() }
}

/// Zen 2.
pub fn zen2() -> Facts {
    Facts { op_cache: op_cache(4096, None, AMD), ..zen() }
}

/// Zen 3.
pub fn zen3() -> Facts {
    Facts {
        latencies: Some("zen3".into()),
        ports: Some("zen3".into()),
        op_cache: op_cache(4096, None, AMD),
        false_dependences: waits(&[], ON_ZEN3),
        ..zen()
    }
}

/// Zen 4.
pub fn zen4() -> Facts {
    Facts {
        latencies: Some("zen4".into()),
        ports: Some("zen4".into()),
        op_cache: op_cache(6912, None, AMD),
        data_tlb: data_tlb(72, None, AMD),
        nop_fusion: Some(NopFusion { with: FusedWith::Previous, source: ON_ZEN4.into() }),
        store_aliasing: Some(StoreAliasing {
            distances: vec![0x400, 0x800, 0x1000],
            source: ON_ZEN4.into(),
        }),
        ..zen()
    }
}

/// Zen 5.
pub fn zen5() -> Facts {
    Facts {
        latencies: Some("zen5".into()),
        ports: Some("zen5".into()),
        op_cache: op_cache(6144, None, AMD),
        data_tlb: data_tlb(96, None, AMD),
        ..zen()
    }
}

const SIGNATURE_SOURCE: [&str; 3] = [
    "GCC config/i386/i386.h, QEMU target/i386/cpu.c: features",
    "InstLatx64, CPUID dumps: caches, highest leaf, further features",
    "Intel SDM vol. 2 and AMD APM vol. 3, CPUID: bits",
];

static CORES: LazyLock<BTreeMap<String, Core>> =
    LazyLock::new(|| toml::from_str(include_str!("signatures.toml")).expect("embedded, tested"));

/// Ways and sets.
type Shape = (usize, usize);

/// A core, as a step from an earlier one.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Core {
    from: Option<String>,
    has: String,
    may: String,
    not: String,
    l1_data: Option<Vec<Shape>>,
    l1_code: Option<Vec<Shape>>,
    l2: Option<Vec<Shape>>,
    highest_leaf: Option<u32>,
    kind: Option<Kind>,
    native: Option<u32>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Atom,
    Core,
}

/// The signature of a table.
pub fn signature(table: &str) -> Option<Signature> {
    let line = line(table);
    let shows = |feature: &Feature| line.iter().find_map(|core| core.shows(feature.name()));
    let of =
        |wanted| Feature::all().filter(|f| shows(f).unwrap_or(Shows::Never) == wanted).collect();
    let shapes = |get: fn(&Core) -> &Option<Vec<Shape>>| {
        let stated = line.iter().find_map(|core| get(core).as_ref());
        stated.into_iter().flatten().map(|&(ways, sets)| Cache { ways, sets }).collect()
    };
    (!line.is_empty()).then(|| Signature {
        has: of(Shows::Always),
        never: of(Shows::Never),
        l1_data: shapes(|core| &core.l1_data),
        l1_code: shapes(|core| &core.l1_code),
        l2: shapes(|core| &core.l2),
        highest_leaf: line.iter().find_map(|core| core.highest_leaf).filter(|leaf| *leaf > 0),
        core_type: line.iter().find_map(|core| core.kind).map(Kind::number),
        native_model: line.iter().find_map(|core| core.native),
        source: SIGNATURE_SOURCE.iter().map(|line| (*line).to_owned()).collect(),
    })
}

/// The core and those that it is a step from.
fn line(name: &str) -> Vec<&'static Core> {
    let first = CORES.get(name);
    std::iter::successors(first, |core| core.from.as_ref().map(|from| &CORES[from])).collect()
}

/// How surely a core shows a feature.
#[derive(Clone, Copy, PartialEq)]
enum Shows {
    Always,
    Sometimes,
    Never,
}

impl Core {
    /// Its own entry on a feature.
    fn shows(&self, name: &str) -> Option<Shows> {
        let all =
            [(&self.has, Shows::Always), (&self.may, Shows::Sometimes), (&self.not, Shows::Never)];
        let found = all.into_iter().find(|(names, _)| names.split_whitespace().any(|n| n == name));
        found.map(|(_, shows)| shows)
    }
}

impl Kind {
    /// As leaf 1A has it.
    const fn number(self) -> u32 {
        match self {
            Self::Atom => 0x20,
            Self::Core => 0x40,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_feature_and_every_step_is_from_a_core() {
        for (name, core) in CORES.iter() {
            for feature in
                [&core.has, &core.may, &core.not].into_iter().flat_map(|n| n.split_whitespace())
            {
                assert!(Feature::named(feature).is_some(), "{name}: {feature}");
            }
            assert!(line(name).len() < CORES.len(), "{name}");
        }
    }
}
