//! Which table describes a processor: dumps of CPUID, as they are and behind other models.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::path::Path;
use tma::cpuid::{Cpuid, Dump, read};
use tma::identity::{Identity, identify};
use tma::tables::Library;

/// Leaves that hypervisors leave out.
const HIDDEN: [(u32, u32); 6] = [(7, 1), (0x1a, 0), (0x1d, 1), (0x1e, 0), (0x23, 0), (0x24, 0)];
const BRAND: [(u32, u32); 3] = [(0x8000_0002, 0), (0x8000_0003, 0), (0x8000_0004, 0)];

/// The tables that are right for a dump, by what InstLatx64 calls it: several where the cores are the
/// same; none where no table exists.
fn right(name: &str) -> &'static [&'static str] {
    let is_small = name.ends_with("/atom");
    let known: [(&str, &[&str]); 30] = [
        ("HaswellE", &["hsx"]),
        ("Haswell", &["hsw"]),
        ("BroadwellE", &["bdx"]),
        ("BroadwellDE", &["bdx"]),
        ("Broadwell", &["bdw"]),
        ("SkylakeX", &["skx"]),
        ("CascadeLake", &["clx"]),
        ("Skylake", &["skl"]),
        ("Kabylake", &["skl"]),
        ("offee", &["skl"]),
        ("CometLake", &["skl"]),
        ("IceLakeY", &["icl"]),
        ("RocketLake", &["rkl"]),
        ("TigerLake", &["tgl"]),
        ("SapphireRapids", &["spr"]),
        ("EmeraldRapids", &["emr"]),
        ("GraniteRapids", &["gnr"]),
        ("masked-granite", &["gnr"]),
        ("AlderLake", if is_small { &["adl-e"] } else { &["adl"] }),
        ("RaptorLake", if is_small { &["adl-e"] } else { &["adl"] }),
        ("LunarLake", if is_small { &["lnl-e"] } else { &["lnl"] }),
        ("ArrowLake", if is_small { &["arl-e"] } else { &["arl"] }),
        ("WildcatLake", if is_small { &["ptl-e"] } else { &["ptl"] }),
        ("K17_Zen2", &["zen1"]),
        ("K17_Zen", &["zen1"]),
        ("Rome", &["zen2"]),
        ("Renoir", &["zen2"]),
        ("K20", &["zen5"]),
        ("K8", &[]),
        ("K19", &[]),
    ];
    let zen3 = ["Milan", "Vermeer", "Rembrandt", "Cezanne"];
    if name.contains("K19") {
        return if zen3.iter().any(|n| name.contains(n)) { &["zen3"] } else { &["zen4"] };
    }
    known.iter().find(|(part, _)| name.contains(part)).map_or(&[], |(_, tables)| tables)
}

/// Leaf 1 with another family and model.
fn as_model(cpuid: &Cpuid, eax: u32) -> Cpuid {
    let mut other = cpuid.clone();
    let mut registers = cpuid.get(1, 0).unwrap();
    registers[0] = eax;
    other.insert(1, 0, registers);
    other
}

/// With the bit that says that a hypervisor is there.
fn as_guest(cpuid: &Cpuid) -> Cpuid {
    let mut other = cpuid.clone();
    let mut registers = cpuid.get(1, 0).unwrap();
    registers[2] |= 1 << 31;
    other.insert(1, 0, registers);
    other
}

/// The false models of a vendor: EAX of leaf 1.
fn models(cpuid: &Cpuid) -> &'static [(&'static str, u32)] {
    match cpuid.cpu().vendor.as_str() {
        "GenuineIntel" => &[
            ("Rocket Lake", 0x000a_0671),
            ("Skylake", 0x0005_06e3),
            ("Icelake-Server", 0x0006_06a0),
            ("kvm64", 0x0000_0f61),
        ],
        _ => &[("Zen 2", 0x0083_0f10), ("Zen 3", 0x00a0_0f11), ("kvm64", 0x0006_0fb1)],
    }
}

/// How a dump can be shown: a name, and the registers.
fn views(cpuid: &Cpuid) -> Vec<(String, Cpuid)> {
    let hidden = |c: &Cpuid| c.without(&[&HIDDEN[..], &BRAND[..]].concat());
    let mut all =
        vec![("as it is".to_owned(), cpuid.clone()), ("hidden leaves".into(), hidden(cpuid))];
    for (name, eax) in models(cpuid) {
        let other = as_model(cpuid, *eax);
        all.push((format!("as {name}"), other.clone()));
        all.push((format!("as {name}, hidden leaves"), hidden(&other)));
        all.push((format!("as {name}, guest"), as_guest(&other)));
        all.push((format!("as {name}, guest, hidden leaves"), hidden(&as_guest(&other))));
    }
    all
}

fn dumps() -> Option<Vec<Dump>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/processors/cpuid.csv");
    if !file.is_file() {
        eprintln!("skipped: no dumps in {}", file.display());
        return None;
    }
    let mut dumps = read(&std::fs::read_to_string(file).unwrap()).unwrap();
    // All CPUs of a kind are one core.
    dumps.dedup_by(|next, first| next.name == first.name);
    assert_eq!(dumps.len(), 81);
    Some(dumps)
}

fn is_right(identity: &Identity, right: &[&str]) -> bool {
    match &identity.table {
        Some(table) => right.contains(&table.as_str()),
        None => right.is_empty(),
    }
}

#[test]
fn processors_are_known_behind_other_models() {
    let Some(dumps) = dumps() else { return };
    let library: Library = events::library();
    let mut shares = std::collections::BTreeMap::<String, [u32; 3]>::new();
    let mut lines = Vec::new();
    for Dump { name, cpuid } in &dumps {
        for (view, shown) in views(cpuid) {
            let identity = identify(&shown, &library).unwrap();
            let class = match &identity.table {
                _ if is_right(&identity, right(name)) => 0,
                None => 1,
                Some(_) => 2,
            };
            shares.entry(view.clone()).or_default()[class] += 1;
            if class > 0 {
                lines.push(format!(
                    "{}\t{name}\t{view}\t{:?}\t{:?}\t{:?}",
                    ["", "unknown", "WRONG"][class],
                    identity.table,
                    identity.candidates,
                    identity
                        .contradicted
                        .iter()
                        .take(4)
                        .map(|c| format!("{}: {}", c.table, c.fact))
                        .collect::<Vec<_>>()
                ));
            }
        }
    }
    for (view, [right, unknown, wrong]) in shares {
        eprintln!("{view:40} right {right:3} unknown {unknown:3} wrong {wrong:3}");
    }
    std::fs::write("/tmp/identify.tsv", lines.join("\n")).unwrap();
}
