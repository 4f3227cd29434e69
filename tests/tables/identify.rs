//! `tdtool tables identify`, and what other commands take from the identity.

use crate::support::files::Folder;
use crate::support::processor::{cpuid_dump, cpuid_dumps};
use crate::support::run::{command, run, tdtool};
use crate::support::shown;
use serde_json::Value;

/// A dump as a hypervisor shows it that states this family, model and stepping.
fn guest(folder: &Folder, processor: &str, model: &str) -> String {
    let all = std::fs::read_to_string(cpuid_dump(folder, processor)).unwrap();
    let rows = all.lines().map(|row| {
        let words: Vec<&str> = row.split(',').collect();
        let [leaf, subleaf, _, ebx, ecx, edx] = words[..] else { panic!("{row}") };
        match u32::from_str_radix(leaf, 16) {
            // Leaf 1, with the hypervisor's bit.
            Ok(1) => {
                let ecx = u32::from_str_radix(ecx, 16).unwrap() | 1 << 31;
                format!("{leaf},{subleaf},{model},{ebx},{ecx:x},{edx}")
            }
            _ => row.to_owned(),
        }
    });
    folder.write("guest.csv", rows.collect::<Vec<String>>().join("\n"))
}

fn identify(file: &str) -> Value {
    tdtool(["tables", "identify", "--cpuid", file, "--format", "json"]).json()
}

#[test]
fn a_masked_processor_is_found_by_its_features() {
    let folder = Folder::new();
    let file = cpuid_dump(&folder, "masked-granite");
    let document = identify(&file);
    assert_eq!((&document["table"], &document["by"]), (&"gnr".into(), &"features".into()));
    assert_eq!(document["claimed"]["tables"][0], "rkl");
    // Intel's manuals: PREFETCHI came with Granite Rapids, AMX after Rocket Lake.
    assert!(document["evidence"].to_string().contains("prefetchi"), "{document}");
    assert!(document["contradicted"].to_string().contains("amx_tile"), "{document}");
    let asked = ["tables", "identify", "--cpuid", &file];
    assert_shown!("identified_by_features", shown::of(&asked, &folder));
}

/// Nothing that a guest shows tells an Ice Lake from the Rocket Lake that it claims to be; their cores are alike. One that shows
/// a feature that Rocket Lake never had is identified.
#[test]
fn a_guest_s_claim_that_nothing_excludes_is_not_the_only_one() {
    let folder = Folder::new();
    // Rocket Lake's family, model and stepping.
    let file = guest(&folder, "IceLakeY", "a0671");
    let document = identify(&file);
    assert_eq!(document["table"], "rkl", "{document}");
    assert!(document["others"].to_string().contains("icl"), "{document}");
    let asked = ["tables", "identify", "--cpuid", &file];
    assert_shown!("identified_by_a_claim", shown::of(&asked, &folder));
    // Without a hypervisor the model is believed.
    let document = identify(&cpuid_dump(&folder, "RocketLake"));
    assert_eq!((&document["table"], &document["others"]), (&"rkl".into(), &serde_json::json!([])));
}

/// Of a dump nothing is measured: the self-test here says nothing of the processor there.
#[test]
fn several_tables_fit_a_dump_and_nothing_is_measured_to_choose() {
    let folder = Folder::new();
    let file = guest(&folder, "306C3_Haswell", "f61");
    let mut command = command(["tables", "identify", "--cpuid", &file, "--format", "json"]);
    let document = run(command.env("XDG_CACHE_HOME", folder.file("cache"))).json();
    assert_eq!(document["table"], Value::Null, "{document}");
    assert!(document["candidates"].as_array().unwrap().len() > 1, "{document}");
    assert!(!folder.path().join("cache").exists(), "a self-test was made and kept");
}

#[test]
fn nothing_fits_a_processor_without_a_table() {
    let folder = Folder::new();
    let document = identify(&cpuid_dump(&folder, "K8_Venice"));
    assert_eq!((&document["table"], &document["by"]), (&Value::Null, &"none".into()));
    assert_eq!(document["candidates"], serde_json::json!([]));
}

#[test]
fn each_kind_of_core_of_a_hybrid_is_identified() {
    let folder = Folder::new();
    let rows = |kind: &str, number: u32| {
        let all = std::fs::read_to_string(cpuid_dumps()).unwrap();
        let mut text = format!("CPU {number}:\n");
        for line in all.lines().filter(|line| line.contains(&format!("AlderLakeP_00_CPUID/{kind}")))
        {
            let words: Vec<&str> = line.split(',').collect();
            let [_, leaf, subleaf, eax, ebx, ecx, edx] = words[..] else { panic!("{line}") };
            text += &format!(
                "   0x{leaf:0>8} 0x{subleaf:0>2}: eax=0x{eax} ebx=0x{ebx} ecx=0x{ecx} edx=0x{edx}\n"
            );
        }
        text
    };
    let file = folder.write("cpuid.txt", rows("core", 0) + &rows("core", 1) + &rows("atom", 2));
    let document = identify(&file);
    let cores = document["cores"].as_array().unwrap();
    let found: Vec<_> =
        cores.iter().map(|c| (c["table"].as_str(), c["cpus"].to_string())).collect();
    assert_eq!(found, [(Some("adl"), "[0,1]".into()), (Some("adl-e"), "[2]".into())]);
    assert_eq!(document["table"], "adl");
}

#[test]
fn what_is_no_dump_is_refused_with_its_line() {
    let folder = Folder::new();
    let file = folder.write("dump.txt", "1,0,a0671,0,0,0\nhello\n");
    let asked = ["tables", "identify", "--cpuid", &file];
    assert_shown!("no_dump_of_cpuid", shown::of(&asked, &folder));
}

/// A table of the user's own takes part like a built-in one, and goes before it.
#[test]
fn a_table_of_ones_own_takes_part() {
    let folder = Folder::new();
    let shown =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/events/intel/gnr.toml"));
    let own =
        shown.unwrap().replace("name = \"gnr\"", "name = \"mine\"").replace("0xad, 0xae", "0xa7");
    folder.write("tables/mine.toml", &own);
    let file = cpuid_dump(&folder, "masked-granite");
    let tables = folder.path().join("tables").display().to_string();
    let arguments =
        ["tables", "identify", "--cpuid", &file, "--tables", &tables, "--format", "json"];
    let document = tdtool(arguments).json();
    assert_eq!((&document["table"], &document["by"]), (&"mine".into(), &"model".into()));
}

/// Other commands believe the dump, too, and say what contradicts the model.
#[test]
fn deps_of_a_masked_processor_uses_the_core_that_it_is() {
    let folder = Folder::new();
    let file = cpuid_dump(&folder, "masked-granite");
    let document = tdtool(["deps", "4801d8", "--cpuid", &file, "--format", "json"]).json();
    assert_eq!(document["uarch"], "gnr", "{document}");
}
