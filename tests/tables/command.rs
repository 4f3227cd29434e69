//! `tdtool tables …` as a person meets it.

use crate::support::files::{Folder, root, text};
use crate::support::run::{Ran, tdtool};
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
    let out = tdtool(["tables", "list"]).stdout;
    for name in ["skl ", "spr ", "adl-e ", "zen1 ", "zen5 ", "paper "] {
        assert!(
            out.lines().any(|l| l.get(2..).is_some_and(|l| l.starts_with(name))),
            "{name} in\n{out}"
        );
    }
    assert!(out.contains("EPYC 9004"));
}

#[test]
fn check_passes_all_that_is_built_in() {
    let output = tdtool(["tables", "check"]);
    let out = &output.stdout;
    assert!(output.status.success(), "{out}");
    assert!(out.contains("skx       ok      102 nodes, 12 bottlenecks, 107 infos"), "{out}");
    assert!(!out.contains("error:") && !out.contains("warning:"), "{out}");
}

#[test]
fn check_names_the_node_the_line_and_the_likely_name_and_fails() {
    let folder = altered("SlotsRetired / TotalSlots", "SlotsRetird / TotalSlots");
    let dir = text(folder.path());
    let output = tdtool(["tables", "check", "paper", "--tables", dir]);
    let out = &output.stdout;
    assert_eq!(output.code(), Some(1), "{out}");
    assert!(out.contains("ERRORS"), "{out}");
    let line = out.lines().find(|l| l.contains("Retiring")).unwrap();
    assert!(line.contains("`SlotsRetird`") && line.contains("did you mean `SlotsRetired`?"));
    assert!(line.contains("line "), "{line}");
}

#[test]
fn show_explains_a_node_with_its_estimate_and_encodings() {
    let output = tdtool(["tables", "show", "zen3", "retiring"]);
    let out = &output.stdout;
    for part in ["meaning", "estimate", "ex_ret_ops / (6 * ls_not_halted_cyc)", "cpu/event=0xc1/"] {
        assert!(out.contains(part), "{part} in\n{out}");
    }
    let output = tdtool(["tables", "show", "zen4", "retirng"]);
    assert_eq!(output.code(), Some(2));
    assert!(output.stderr.contains("did you mean `retiring`"), "{}", output.stderr);
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
    let output = tdtool(["tables", "eval", "paper", "--counts", &path]);
    let Ran { status, stdout: out, stderr: err } = output;
    assert!(status.success(), "{err}");
    for row in [
        "trial,node,value,over",
        "a,Frontend_Bound,0.25,1",
        "b,Frontend_Bound,,",
        "b,Retiring,0.00025,",
        "c,Frontend_Bound,0,0",
    ] {
        assert!(out.lines().any(|l| l == row), "{row} in\n{out}");
    }
    assert!(err.contains("Unheard.Of (line 8)"), "{err}");
    assert!(err.contains("undefined, printed as 0"), "{err}");
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
    for (rows, what) in [
        ("a,Clocks,many\n", "line 1: `many` is not a count"),
        ("a,Clocks,1\na\n", "line 2: `a` does not have 3 cells"),
        ("a,Clocks,1\na,clocks,2\n", "line 2: a second `clocks` in trial a"),
        ("", "no rows"),
    ] {
        let path = folder.write("counts.csv", rows);
        let output = tdtool(["tables", "eval", "paper", "--counts", &path]);
        assert_eq!(output.code(), Some(1));
        assert!(output.stderr.contains(what), "{what} in {}", output.stderr);
    }
}

#[test]
fn an_unknown_microarchitecture_is_refused_with_the_nearest() {
    let output = tdtool(["tables", "show", "zen44"]);
    assert_eq!(output.code(), Some(2));
    assert!(output.stderr.contains("zen4"), "{}", output.stderr);
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
    assert!(tdtool(["tables", "identify", "--help"]).succeeded().stdout.contains("--cpuid <FILE>"));
    for arguments in [
        ["tables", "identify", "--cpuid", "/no/such/dump"],
        ["--cpuid", "/no/such/dump", "tables", "identify"],
    ] {
        let refused = tdtool(arguments);
        assert!(
            refused.stderr.contains("cannot read the dump of CPUID /no/such/dump"),
            "{refused:?}"
        );
    }
}
