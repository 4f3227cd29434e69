//! CPUID signature of each core: the `[signature]` of a table, from `signatures.toml`, which has the sources.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use tma::Cache;
use tma::cpuid::Feature;
use tma::tables::Signature;

const SOURCE: [&str; 3] = [
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
pub fn of(table: &str) -> Option<Signature> {
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
        source: SOURCE.iter().map(|line| (*line).to_owned()).collect(),
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
