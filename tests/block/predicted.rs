//! Predictions beside measurements, two blocks compared, and a cost model judged.

use super::{block, json, sandbox};
use crate::support::files::Folder;
use crate::support::trial::{Trial, assert_holds};
use serde_json::Value;

/// imul rax,rbx; add rcx,[rdx]; jne: uops.info, Ice Lake: p1; p0156 and p23; p06.
const BLOCK: &str = "480fafc3 48030a 75f7";

fn predictions(document: &Value) -> &Vec<Value> {
    document["predictions"].as_array().unwrap()
}

#[test]
fn a_prediction_for_another_core_is_labelled_and_apart_from_the_measurement() {
    let Some(_busy) = sandbox() else { return };
    let document = json(&[BLOCK, "--predict", "icx"]);
    let icx = predictions(&document).iter().find(|p| p["uarch"] == "icx").unwrap();
    assert_eq!((&icx["kind"], &icx["measured_core"]), (&"predicted".into(), &false.into()));
    // The multiplication chain. Two slots: add, its load and the branch are one (Intel's manual).
    assert_eq!(icx["bound"], "recurrence");
    assert_eq!(icx["issue_width"]["slots"], 2.0);
    assert_eq!(icx["ports"]["cycles"], 1.0);
    assert!(icx["unknown"].as_array().unwrap().is_empty());
    assert_eq!((&icx["cycles"], &icx["recurrence"]["assumed"]), (&3.0.into(), &false.into()));
    let bounds = document["bounds"].to_string() + &document["hierarchy"].to_string();
    assert!(!bounds.contains("icx") && !bounds.contains("predicted"), "{bounds}");
}

/// AMD's guides: six ALUs on Zen 5 and four on Zen 4, both with two pipes for products: five additions
/// and one product of vectors. `--ports` shows the pressure of the table of this core or of another.
#[test]
fn the_ports_of_zen_cores_bound_a_block() {
    let Some(_busy) = sandbox() else { return };
    let block = "4801d8 4801d9 4801da 4801de 4801df c5f459c2";
    let document = json(&[block, "--ports", "--predict", "zen5", "--predict", "zen4"]);
    for (name, cycles) in [("zen5", 5.0 / 6.0), ("zen4", 5.0 / 4.0)] {
        let found = predictions(&document).iter().find(|p| p["uarch"] == name).expect(name);
        assert!(found["unknown"].as_array().unwrap().is_empty(), "{found}");
        let ports = found["ports"]["cycles"].as_f64().unwrap();
        assert!((ports - cycles).abs() < 1e-3, "{name}: {ports}");
    }
}

/// A named table holds for what is measured, too, with a warning where it is another processor's.
#[test]
fn what_uarch_names_is_believed_with_a_warning() {
    let Some(_busy) = sandbox() else { return };
    let other = if processor().contains("GenuineIntel") { "zen3" } else { "icl" };
    let document = json(&[BLOCK, "--uarch", other]);
    let found = predictions(&document).iter().find(|p| p["uarch"] == other).expect("a prediction");
    assert_eq!((&found["kind"], &found["measured_core"]), (&"predicted".into(), &false.into()));
    assert!(document["notes"].to_string().contains(other), "{document}");
}

/// What `/proc/cpuinfo` says of the processor.
fn processor() -> String {
    std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()
}

#[test]
fn the_pressure_table_has_a_row_for_each_instruction_and_its_total() {
    let Some(_busy) = sandbox() else { return };
    let shown = block([BLOCK, "--quick", "--budget", "50", "--predict", "icx", "--ascii"]).stdout;
    let table = shown.split("predicted for icx").nth(1).expect("a prediction");
    let row = |name: &str| table.lines().find(|l| l.ends_with(name)).unwrap_or_default().to_owned();
    assert!(row("imul rax,rbx").contains("1.00"), "{table}");
    assert!(row("total").contains("0.50"), "{table}");
    // x87: unknown, never free.
    let document = json(&["d9c1", "--predict", "icx"]);
    let icx = predictions(&document).iter().find(|p| p["uarch"] == "icx").unwrap();
    assert_eq!(icx["unknown"].as_array().unwrap().len(), 1);
    assert!(icx["ports"]["instructions"][0]["uops"].is_null());
}

/// A chain of multiplications of 3 cycles (uops.info) against one addition.
#[test]
fn two_blocks_are_compared_with_an_interval() {
    let Some(_busy) = sandbox() else { return };
    assert_holds("a chain of imul is slower than one of add", || {
        let arguments =
            ["480fafc0", "--against", "4801c0", "--format", "json", "--quick", "--budget", "200"];
        let pair: Value = block(arguments).json();
        assert_eq!(pair["schema"], "tdtool.block-pair/1");
        let difference = &pair["difference"];
        let number = |key: &str| difference[key].as_f64().unwrap_or(f64::NAN);
        if difference.is_null() {
            return Trial::Unsettled(pair["reason"].to_string());
        }
        let ordered = number("low") <= number("cycles") && number("cycles") <= number("high");
        match difference["faster"] == "b" && ordered && number("ratio") < 0.6 {
            true => Trial::Holds,
            false => Trial::Fails(difference.to_string()),
        }
    });
    assert_eq!(block(["90", "--against", "zz"]).code(), Some(1));
}

#[test]
fn a_batch_judges_predictions() {
    let Some(_busy) = sandbox() else { return };
    let folder = Folder::new();
    let blocks = folder.write("blocks.txt", "480fafc0\n4801c0\n");
    // Written by an earlier run, so that nothing is measured.
    let header = "hex,status,reason,cycles,low,high,unrolled,loop,pages";
    let out = folder
        .write("out.csv", format!("{header}\n480fafc0,ok,,3,3,3,3,3,0\n4801c0,ok,,1,1,1,1,1,0\n"));
    let model = folder.write("model.csv", "hex,cycles\n480fafc0,3.3\n4801c0,1\n");
    let arguments =
        ["--batch", &blocks, "-o", &out, "--resume", "--against", &model, "--format", "json"];
    let found: Value = block(arguments).json();
    assert_eq!(found["overall"]["blocks"], 2);
    assert!((found["overall"]["mean_error"].as_f64().unwrap() - 0.05).abs() < 1e-9);
    assert_eq!(found["overall"]["kendall_tau"], 1.0);
    assert_eq!(found["classes"][0]["class"], "scalar");
}
