//! `tdtool tables events`: what it prints is counted by perf, and its counts are imported whole.

use crate::support::files::Folder;
use crate::support::run::{program, run, tdtool};
use crate::support::shown;
use crate::support::tools::available;

/// The groups of `-e` options, each a list of events.
fn groups(text: &str) -> Vec<Vec<String>> {
    let inside = |line: &str| {
        let list = line.trim().strip_prefix("-e '{")?.split_once("}:W'")?.0.to_owned();
        // Commas also lie between the slashes of an event.
        let mut events = vec![String::new()];
        let mut is_inside = false;
        for c in list.chars() {
            is_inside ^= c == '/';
            match c == ',' && !is_inside {
                true => events.push(String::new()),
                false => events.last_mut().expect("one").push(c),
            }
        }
        Some(events)
    };
    text.lines().filter_map(inside).collect()
}

/// As `perf stat -x,` shows an event: by the name it was given.
fn shown(event: &str) -> &str {
    event.split_once("name=").map_or(event, |(_, name)| name.split('/').next().expect("a name"))
}

fn events(uarch: &str, options: &[&str]) -> String {
    tdtool([&["tables", "events", uarch, "--level", "2"], options].concat()).succeeded().stdout
}

#[test]
fn counts_of_the_printed_events_give_every_node() {
    for uarch in ["zen1", "zen4", "hsw", "skl", "spr", "adl"] {
        for options in [&[][..], &["--names"], &["--no-multiplex"]] {
            let text = events(uarch, options);
            let row = |event: &String| format!("1000;;{};1000;100.00;;\n", shown(event));
            let rows: String = groups(&text).iter().flatten().map(row).collect();
            assert!(!rows.is_empty(), "{uarch}: {text}");
            let folder = Folder::new();
            let file = folder.write("counts.csv", &rows);
            let import = ["report", "--uarch", uarch, "--level", "2", "--import", &file];
            let report = tdtool([&import[..], &["--format", "json"]].concat()).succeeded().json();
            let nodes = report["nodes"].as_array().expect("nodes");
            assert!(nodes.len() > 3, "{uarch}: {report}");
            let lost: Vec<_> = nodes
                .iter()
                .filter(|n| n["missing"].as_str().is_some_and(|m| m.contains("was not counted")))
                .collect();
            assert!(lost.is_empty(), "{uarch} {options:?}: {lost:?}\n{rows}");
            assert_eq!(report["unread"].as_array().map(Vec::len), Some(0), "{uarch}: {rows}");
        }
    }
}

#[test]
fn the_groups_are_those_of_the_plan() {
    let plan = tdtool(["tables", "plan", "skl", "--level", "2"]).succeeded().stdout;
    let planned = plan.lines().filter(|line| line.starts_with("group ")).count();
    let text = events("skl", &[]);
    assert_eq!(groups(&text).len(), planned, "{text}");
    assert_eq!(text.matches("perf stat ").count(), 1, "{text}");
    let separate = events("skl", &["--no-multiplex"]);
    assert_eq!(separate.matches("perf stat ").count(), planned, "a run for each: {separate}");
    let hybrid = events("adl", &[]);
    assert!(hybrid.contains("cpu_core/") && hybrid.contains("cpu_atom/"), "{hybrid}");
    let asked = [
        &["tables", "events", "skl", "--level", "1"][..],
        &["tables", "events", "paper", "--level", "1"],
    ];
    assert_shown!("tables_events", shown::each(&asked, &Folder::new()));
}

#[test]
fn perf_parses_what_is_printed() {
    need!(available("perf"), "perf is not installed");
    for uarch in ["zen4", "skl", "adl"] {
        for group in groups(&events(uarch, &[])) {
            let list = format!("{{{}}}:W", group.join(","));
            let ran = run(program("perf").args(["stat", "-e", &list, "true"]));
            // Without a core PMU that is what it stops at, after the syntax.
            let stopped = ["parser error", "syntax error, unexpected", "unknown term"];
            let wrong = stopped.iter().find(|what| ran.stderr.contains(**what));
            let is_foreign = ran.stderr.contains("valid terms");
            assert!(wrong.is_none() || is_foreign, "{list}: {}", ran.stderr);
        }
    }
}
