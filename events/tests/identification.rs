//! Tests which table describes a processor, on dumps of CPUID, as they are and under other models.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use tma::cpuid::{CacheLevel, Cpuid, Dump, read};
use tma::identity::{By, Fact, Identity, Measured, identify, settle};
use tma::tables::Library;

/// Leaves that hypervisors leave out, and the brand.
const HIDDEN: [(u32, u32); 9] = [
    (7, 1),
    (0x1a, 0),
    (0x1d, 1),
    (0x1e, 0),
    (0x23, 0),
    (0x24, 0),
    (0x8000_0002, 0),
    (0x8000_0003, 0),
    (0x8000_0004, 0),
];

/// The table that is right for a dump, by what InstLatx64 calls it; none where no table exists.
fn right(name: &str) -> Option<&'static str> {
    let is_small = name.ends_with("/atom");
    let of = |large: &'static str, small: &'static str| if is_small { small } else { large };
    // The first part that a name has.
    let known = [
        ("HaswellE", "hsx"),
        ("Haswell", "hsw"),
        // Broadwell's server core; no table has its model.
        ("BroadwellDE", "bdx"),
        ("BroadwellE", "bdx"),
        ("Broadwell", "bdw"),
        ("SkylakeX", "skx"),
        ("CascadeLake", "clx"),
        ("Skylake", "skl"),
        ("Kabylake", "skl"),
        ("offee", "skl"),
        ("CometLake", "skl"),
        ("IceLakeY", "icl"),
        ("RocketLake", "rkl"),
        ("TigerLake", "tgl"),
        ("SapphireRapids", "spr"),
        ("EmeraldRapids", "emr"),
        ("GraniteRapids", "gnr"),
        ("masked-granite", "gnr"),
        ("AlderLake", of("adl", "adl-e")),
        ("RaptorLake", of("adl", "adl-e")),
        ("LunarLake", of("lnl", "lnl-e")),
        ("ArrowLake", of("arl", "arl-e")),
        ("WildcatLake", of("ptl", "ptl-e")),
        ("K17_Zen", "zen1"),
        ("Rome", "zen2"),
        ("Renoir", "zen2"),
        ("Milan", "zen3"),
        ("Vermeer", "zen3"),
        ("Rembrandt", "zen3"),
        ("Cezanne", "zen3"),
        ("K19", "zen4"),
        ("K20", "zen5"),
    ];
    known.iter().find(|(part, _)| name.contains(part)).map(|(_, table)| *table)
}

/// With another EAX in leaf 1: family, model, stepping.
fn as_model(cpuid: &Cpuid, eax: u32) -> Cpuid {
    changed(cpuid, |registers| registers[0] = eax)
}

/// With the bit that says that a hypervisor is there.
fn as_guest(cpuid: &Cpuid) -> Cpuid {
    changed(cpuid, |registers| registers[2] |= 1 << 31)
}

fn changed(cpuid: &Cpuid, change: impl Fn(&mut [u32; 4])) -> Cpuid {
    let (mut other, mut registers) = (cpuid.clone(), cpuid.get(1, 0).unwrap());
    change(&mut registers);
    other.insert(1, 0, registers);
    other
}

/// Models that hypervisors show, by EAX of leaf 1: Rocket Lake, Skylake, QEMU's Icelake-Server and
/// kvm64; for AMD Zen 2, Zen 3 and kvm64.
fn models(cpuid: &Cpuid) -> &'static [u32] {
    match cpuid.cpu().vendor.as_str() {
        "GenuineIntel" => &[0x000a_0671, 0x0005_06e3, 0x0006_06a0, 0x0000_0f61],
        _ => &[0x0083_0f10, 0x00a0_0f11, 0x0006_0fb1],
    }
}

/// Variants of a dump: as it is, with leaves hidden, under other models, and both.
fn views(cpuid: &Cpuid) -> Vec<Cpuid> {
    let shown = models(cpuid).iter().map(|eax| as_model(cpuid, *eax));
    let all: Vec<Cpuid> = std::iter::once(cpuid.clone()).chain(shown).collect();
    let hidden: Vec<Cpuid> = all.iter().map(|view| view.without(&HIDDEN)).collect();
    all.into_iter().chain(hidden).collect()
}

/// One dump of each core in a file of the project, or beside it (skipped where that is not there).
fn dumps(file: &str) -> Vec<Dump> {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    if !Path::is_file(&file) {
        eprintln!("skipped: no dumps in {}", file.display());
        return Vec::new();
    }
    let mut dumps = read(&std::fs::read_to_string(file).unwrap()).unwrap();
    dumps.dedup_by(|next, first| next.name == first.name);
    dumps
}

const OURS: &str = "tests/processors/cpuid/dumps.csv";
const ALL: &str = "../shared/processors/cpuid.csv";

fn of(name: &str) -> Cpuid {
    dumps(OURS).into_iter().find(|dump| dump.name.contains(name)).unwrap().cpuid
}

fn identified(cpuid: &Cpuid) -> Identity {
    identify(cpuid, &library()).unwrap()
}

fn library() -> Library {
    events::library()
}

#[test]
fn every_dump_is_identified_or_has_no_table() {
    let library = library();
    for Dump { name, cpuid } in dumps(OURS).into_iter().chain(dumps(ALL)) {
        let identity = identify(&cpuid, &library).unwrap();
        assert_eq!(identity.table.as_deref(), right(&name), "{name}: {identity:?}");
    }
}

#[test]
fn false_models_and_hidden_leaves_mislead_nobody() {
    let library = library();
    for (file, least) in [(OURS, 0.9), (ALL, 0.9)] {
        let (mut all, mut known) = (0, 0);
        for Dump { name, cpuid } in dumps(file) {
            for (index, view) in views(&cpuid).iter().enumerate() {
                let identity = identify(view, &library).unwrap();
                let is_right = identity.table.as_deref() == right(&name);
                assert!(is_right || identity.table.is_none(), "{name}, view {index}: {identity:?}");
                all += 1;
                known += u32::from(is_right);
            }
        }
        assert!(f64::from(known) >= least * f64::from(all), "{file}: {known} of {all}");
    }
}

/// Intel's manuals: PREFETCHI and leaf 24 came with Granite Rapids; Rocket Lake has neither AMX nor
/// AVX512-FP16 nor AVX-VNNI.
#[test]
fn a_granite_rapids_behind_rocket_lakes_model_says_what_contradicts() {
    let identity = identified(&of("masked-granite"));
    assert_eq!((identity.table.as_deref(), identity.by), (Some("gnr"), By::Features));
    assert_eq!(identity.claimed.tables, ["rkl"]);
    let evidence: Vec<String> = identity.evidence.iter().map(Fact::to_string).collect();
    assert!(evidence.iter().any(|fact| fact.starts_with("prefetchi")), "{evidence:?}");
    let against: Vec<String> = identity.against("rkl").map(Fact::to_string).collect();
    for name in ["amx_tile", "avx512_fp16", "avx_vnni", "L1I 64 KiB"] {
        assert!(against.iter().any(|fact| fact.starts_with(name)), "{name}: {against:?}");
    }
}

/// Features hidden by a hypervisor do not contradict the model that it shows.
#[test]
fn a_guest_with_hidden_features_is_believed_its_model() {
    let mut cpuid = as_guest(&of("SapphireRapids"));
    let [a, b, c, d] = cpuid.get(7, 0).unwrap();
    // Without AMX (EDX 22, 24, 25), WAITPKG (ECX 5) and ENQCMD (ECX 29).
    cpuid.insert(7, 0, [a, b, c & !(1 << 5 | 1 << 29), d & !(1 << 22 | 3 << 24)]);
    let identity = identified(&cpuid);
    assert_eq!((identity.table.as_deref(), identity.by), (Some("spr"), By::Model));
    assert!(identity.contradicted.is_empty(), "{identity:?}");
    assert!(!identity.hidden.is_empty());
}

/// QEMU shows made-up caches unless it is configured otherwise: they are no evidence.
#[test]
fn caches_of_an_emulator_contradict_nothing() {
    let mut cpuid = as_guest(&of("Genoa"));
    for (subleaf, registers) in [
        (0, [0x121, 0x0040_003f, 511, 0]),
        (1, [0x122, 0x0040_003f, 511, 0]),
        (2, [0x143, 0x03c0_003f, 511, 0]),
    ] {
        cpuid.insert(0x8000_001d, subleaf, registers);
    }
    assert_eq!(cpuid.cache(CacheLevel::L1Data).map(|l1| l1.bytes()), Some(64 * 1024));
    assert_eq!(identified(&cpuid).table.as_deref(), Some("zen4"));
}

/// A processor of another vendor, and one with an instruction set that no table's core has.
#[test]
fn what_no_table_describes_has_none() {
    let mut apx = of("GraniteRapids");
    let [a, b, c, d] = apx.get(7, 1).unwrap();
    apx.insert(7, 1, [a, b, c, d | 1 << 21]);
    let mut apx = as_model(&apx, 0x0010_0f30);
    assert_eq!(identified(&apx).table, None);
    let [a, ..] = apx.get(0, 0).unwrap();
    apx.insert(0, 0, [a, 0x6f67_7948, 0x656e_6975, 0x6e65_476e]);
    let identity = identified(&apx);
    assert_eq!((apx.cpu().vendor.as_str(), identity.table), ("HygonGenuine", None));
}

/// Sapphire and Emerald Rapids differ in nothing that a hypervisor leaves: what both tables state is
/// used, and a width that one of two candidates states decides.
#[test]
fn candidates_are_named_and_measurement_chooses_among_them() {
    let library = library();
    let two = identified(&as_model(&of("SapphireRapids"), 0xf61).without(&HIDDEN));
    assert_eq!(
        (two.table.as_deref(), &two.candidates[..]),
        (None, &["emr".to_owned(), "spr".to_owned()][..])
    );
    let core = tma::Core::in_common(&library, &two.candidates).unwrap();
    assert_eq!((core.width(), core.uarch()), (Some(6), None));
    assert!(core.facts().op_cache.is_some());

    let candidates = vec!["skx".to_owned(), "spr".to_owned()];
    let open = Identity { candidates: candidates.clone(), ..Identity::default() };
    let core = tma::Core::in_common(&library, &candidates).unwrap();
    assert_eq!((core.width(), core.facts().op_cache.is_some()), (None, false));
    // Intel's optimization manual: Skylake issues 4 a cycle, Golden Cove 6.
    let measured = Measured { width: Some(5.9), ..Measured::default() };
    let settled = settle(open.clone(), measured, &library).unwrap();
    assert_eq!((settled.table.as_deref(), settled.by), (Some("spr"), By::Measurement));
    let unfit = Measured { width: Some(8.0), ..Measured::default() };
    assert_eq!(settle(open, unfit, &library).unwrap().possible(), [""; 0]);
}
