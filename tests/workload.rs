//! `tdtool workload`, as a user runs it; and the one thing a workload is for: it is slower than its
//! control.

use crate::support::files::Folder;
use crate::support::quiet::{alone, busy};
use crate::support::run::{Ran, command, ended, start, tdtool};
use crate::support::shown;
use serde_json::Value;
use tma::tables::NodeKind;
use workload::{self, Options};

/// `tdtool workload` with these arguments.
fn tdtool_workload(arguments: &[&str]) -> Ran {
    tdtool([&["workload"], arguments].concat())
}

/// Its document.
fn json(arguments: &[&str]) -> Value {
    tdtool_workload(arguments).succeeded().json()
}

#[test]
fn the_list_names_every_program_in_both_formats() {
    let text = tdtool_workload(&["list"]).stdout;
    let document = json(&["list", "--format", "json"]);
    assert_eq!(document["schema"], "tdtool.workloads/1");
    let listed = document["workloads"].as_array().expect("workloads");
    assert_eq!(listed.len(), workload::list().len());
    for (w, entry) in workload::list().iter().zip(listed) {
        assert_eq!(entry["name"], w.name);
        assert!(text.lines().any(|l| l.starts_with(w.name)), "{} in the text", w.name);
    }
    let one = tdtool_workload(&["list", "stream"]).stdout;
    for key in ["stream:", "Intel", "AMD", "--control", "--size", "--repeats", "--seconds"] {
        assert!(one.contains(key), "{key} in {one}");
    }
}

#[test]
fn each_program_and_its_control_runs_for_a_fraction_of_a_second() {
    let _busy = busy();
    for w in workload::list().iter().filter(|w| w.available) {
        for control in [None, Some("--control")] {
            let mut args = vec!["run", w.name, "--seconds", "0.001"];
            args.extend(control);
            let output = tdtool_workload(&args);
            let text = &output.stdout;
            assert!(output.status.success(), "{args:?}");
            assert!(text.starts_with(w.name) && text.contains("checksum 0x"), "{text}");
            assert_eq!(text.lines().count(), 1, "{text}");
        }
    }
}

#[test]
fn repeats_are_exact_and_repeatable() {
    let run = |name, repeats| {
        let d = json(&["run", name, "--repeats", repeats, "--size", "8192", "--format", "json"]);
        assert_eq!(d["schema"], "tdtool.workload/1");
        d
    };
    for name in ["pointer-chase", "stream", "tlb-walk"] {
        let (one, again, three) = (run(name, "1"), run(name, "1"), run(name, "3"));
        assert_eq!(one["checksum"], again["checksum"], "{name}");
        assert_eq!((&one["repeats"], &three["repeats"]), (&1.0.into(), &3.0.into()), "{name}");
        assert_eq!(
            one["iterations"].as_u64().map(|n| 3 * n),
            three["iterations"].as_u64(),
            "{name}"
        );
    }
}

/// Three copies do three times the work, with the same result each.
#[test]
fn copies_run_at_the_same_time_with_data_of_their_own() {
    let _busy = busy();
    let run = |copies: &[&str]| {
        let one = ["run", "matmul-copied", "--size", "40", "--repeats", "2", "--format", "json"];
        json(&[&one[..], copies].concat())
    };
    let (one, three) = (run(&[]), run(&["--copies", "3"]));
    let number = |document: &Value, key: &str| document[key].as_u64().expect("a number");
    assert_eq!((number(&one, "copies"), number(&three, "copies")), (1, 3));
    assert_eq!(3 * number(&one, "iterations"), number(&three, "iterations"));
    assert_eq!((&one["repeats"], &three["repeats"]), (&2.0.into(), &2.0.into()));
    let sum = |document: &Value| {
        let text = document["checksum"].as_str().expect("a checksum");
        u64::from_str_radix(&text[2..], 16).expect("digits")
    };
    assert_eq!(sum(&one).wrapping_mul(3), sum(&three));
}

/// A = [-3 -1; -2 0], B = [-2 -1; 1 2], so C = [5 1; 4 2]; the checksum weighs the elements 1 to 4.
#[test]
fn the_matrix_products_agree_with_each_other_and_with_paper() {
    let _busy = busy();
    let checksum = |name: &str, size: &str| {
        json(&["run", name, "--size", size, "--repeats", "1", "--format", "json"])["checksum"]
            .as_str()
            .expect("a checksum")
            .to_owned()
    };
    let names = ["matmul-naive", "matmul-blocked", "matmul-interchanged", "matmul-copied"];
    let larger = checksum(names[0], "61");
    for name in names {
        assert_eq!(checksum(name, "2"), format!("{:#018x}", 5 + 2 + 3 * 4 + 4 * 2), "{name}");
        assert_eq!(checksum(name, "61"), larger, "{name}");
    }
}

#[test]
fn nonsense_is_wrong_usage_and_says_what_to_do() {
    let asked = [
        &["workload", "run", "steam"][..],
        &["workload", "run", "matmul"],
        &["workload", "run", "idle", "--seconds", "0"],
        &["workload", "run", "idle", "--seconds", "-1"],
        &["workload", "run", "idle", "--seconds", "nan"],
        &["workload", "run", "idle", "--seconds", "inf"],
        &["workload", "run", "idle", "--repeats", "0"],
        &["workload", "run", "idle", "--copies", "0"],
        &["workload", "run", "idle", "--size", "4096"],
        &["workload", "run", "stream", "--size", "0"],
        &["workload", "run", "stream", "--size", "-5"],
        &["workload", "run", "stream", "--size", "big"],
        &["workload", "list", "nothing"],
    ];
    assert_shown!("workload_refused", shown::each(&asked, &Folder::new()));
    // How much memory there is differs.
    for (name, size) in [("stream", "4000000T"), ("matmul-naive", "4000000000")] {
        let refused = tdtool_workload(&["run", name, "--size", size]);
        assert_eq!(refused.code(), Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains("--size"), "{}", refused.stderr);
    }
}

/// A reader that stops early (`| head`) is no failure.
#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = start(&mut command(["workload", "run", "idle", "--repeats", "5"]));
    drop(child.stdout.take());
    ended(child).succeeded();
}

/// Only those whose bottleneck every x86-64 processor has, by a factor far below what they show
/// (4 and more on Zen 4, see docs/results/accuracy.md); processor time, so other load matters little.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_bottleneck_costs_time() {
    let _quiet = alone();
    let measure = |name: &str, control: bool| -> f64 {
        let size = matches!(name, "pointer-chase" | "tlb-walk").then_some(32 << 20);
        let options = Options { seconds: Some(0.02), size, control, ..Options::default() };
        workload::run(name, &options).expect("it runs").ns_per_iteration
    };
    for name in [
        "pointer-chase",
        "dependent-adds",
        "divider",
        "random-branches",
        "large-code",
        "store-forward-block",
        "tlb-walk",
        "microcoded",
    ] {
        let ratios: Vec<f64> = (0..5).map(|_| measure(name, false) / measure(name, true)).collect();
        assert!(ratios.iter().any(|r| *r >= 1.3), "{name}: {ratios:?} times its control");
    }
}

/// Every program that names a vendor's node finds one in each of that vendor's tables: the leaf it
/// names first where the table is that detailed.
#[test]
fn the_expected_node_is_in_every_table() {
    let library = events::library();
    for name in library.names() {
        let table = library.load(name).expect(name);
        for w in workload::list() {
            let named = match table.vendor.as_str() {
                "GenuineIntel" => w.expected.intel,
                "AuthenticAMD" => w.expected.amd,
                _ => &[],
            };
            let found = w.expected.in_table(&table).map(|n| &table.nodes[usize::from(n)]);
            assert_eq!(found.is_some(), !named.is_empty(), "{} in {name}", w.name);
            let Some(node) = found else { continue };
            assert_eq!(node.kind, NodeKind::Tree);
            match name {
                "skx" | "icx" | "zen4" => assert_eq!(node.id, named[0], "{} in {name}", w.name),
                "zen5" if named.len() > 1 => assert_eq!(node.level, 2, "{}", w.name),
                _ => {}
            }
        }
    }
}
