//! `tdtool tables …` as a person meets it.

use crate::support::files::{Folder, root, text};
use crate::support::run::tdtool;
use crate::support::shown;
use std::fs;

/// A folder with one table, the paper's with `old` replaced.
fn altered(old: &str, new: &str) -> Folder {
    let text = fs::read_to_string(root().join("events/abstract/paper.toml")).unwrap();
    assert!(text.contains(old));
    let folder = Folder::new();
    folder.write("paper.toml", text.replacen(old, new, 1));
    folder
}

#[test]
fn list_names_every_table_with_its_processors() {
    let listed = tdtool(["tables", "list"]).succeeded().stdout;
    // Before its name a table has whether it is this processor's; a last line says so.
    let lines = listed.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.get(2..));
    assert_shown!("tables_list", lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn check_passes_all_that_is_built_in() {
    let checked = tdtool(["tables", "check"]).succeeded().stdout;
    assert!(!checked.contains("error:") && !checked.contains("warning:"), "{checked}");
    assert_shown!("tables_check", shown::of(&["tables", "check", "skx"], &Folder::new()));
}

#[test]
fn check_names_the_node_the_line_and_the_likely_name_and_fails() {
    let folder = altered("SlotsRetired / TotalSlots", "SlotsRetird / TotalSlots");
    let dir = text(folder.path());
    let asked = ["tables", "check", "paper", "--tables", dir];
    assert_shown!("tables_check_of_a_mistyped_name", shown::of(&asked, &folder));
}

#[test]
fn show_explains_a_node_with_its_estimate_and_encodings() {
    let asked = [
        &["tables", "show", "zen3", "retiring"][..],
        &["tables", "show", "zen4", "retirng"],
        &["tables", "show", "zen44"],
    ];
    assert_shown!("tables_show", shown::each(&asked, &Folder::new()));
}

#[test]
fn eval_gives_values_thresholds_and_what_is_missing() {
    let folder = Folder::new();
    // Frontend 25 % of the slots; trial b has no such count; trial c divides by zero.
    let rows = "trial,event,value\n\
                a,FetchBubbles,1000\na,totalslots,4000\n\
                b,TotalSlots,4000\nb,\"SlotsRetired\",1\n\
                c,FetchBubbles,0\nc,TotalSlots,0\nc,Unheard.Of,1\n";
    let path = folder.write("counts.csv", rows);
    let asked = ["tables", "eval", "paper", "--counts", &path];
    assert_shown!("tables_eval", shown::of(&asked, &folder));
}

#[test]
fn eval_knows_events_as_perf_writes_them_and_by_their_encoding() {
    let folder = Folder::new();
    let rows = "a,cycles,100\n\
                a,\"cpu/de_no_dispatch_per_slot.no_ops_from_frontend,cmask=0x6/\",20\n\
                a,\"cpu/event=0x1a0,umask=0x1/\",150\n";
    let path = folder.write("counts.csv", rows);
    let output = tdtool(["tables", "eval", "zen4", "--counts", &path]);
    let out = &output.stdout;
    for row in ["a,frontend_bound,0.25,1", "a,frontend_bound_latency,0.2,1"] {
        assert!(out.lines().any(|l| l == row), "{row} in\n{out}{}", output.stderr);
    }
}

#[test]
fn eval_refuses_what_it_does_not_understand_with_the_line() {
    let folder = Folder::new();
    let rows = ["a,Clocks,many\n", "a,Clocks,1\na\n", "a,Clocks,1\na,clocks,2\n", ""];
    let shown = rows.map(|rows| {
        let path = folder.write("counts.csv", rows);
        let asked = ["tables", "eval", "paper", "--counts", &path];
        format!("{rows:?}\n{}", shown::of(&asked, &folder))
    });
    assert_shown!("tables_eval_refused", shown.join("\n"));
}

#[test]
fn a_file_is_checked_by_its_table_s_name_and_says_so() {
    let folder = altered("SlotsRetired / TotalSlots", "SlotsRetired / TotalSlots");
    let file = folder.file("paper.toml");
    let refused = tdtool(["tables", "check", &file]);
    let command = refused.stderr.split("`tdtool ").nth(1).expect("a command");
    let command = command.split('`').next().expect("its end");
    assert!(command.starts_with("tables check paper --tables "), "{}", refused.stderr);
    tdtool(command.split_whitespace()).succeeded();
}

#[test]
fn identify_has_its_option_in_its_help_and_takes_it() {
    assert!(tdtool(["tables", "identify", "--help"]).succeeded().stdout.contains("--cpuid"));
    let asked = [
        &["tables", "identify", "--cpuid", "/no/such/dump"][..],
        &["--cpuid", "/no/such/dump", "tables", "identify"],
    ];
    assert_shown!("no_dump_to_identify", shown::each(&asked, &Folder::new()));
}
