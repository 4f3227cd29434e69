//! Rows of hot functions and blocks: bars, the hottest line, inlined functions, the terminal's width.

use super::{compiled, json, report};
use crate::support::child::Limited as _;
use crate::support::files::{Folder, zen4_intervals};
use crate::support::pty::on_terminal_of;
use crate::support::quiet::busy;
use crate::support::run::{command, tdtool};
use crate::support::shown;

/// The time is spent in line 4, of a function that is inlined into `the_only_function_with_a_long_name…`.
const PROGRAM: &str = r#"#include <stdio.h>
#include <stdlib.h>
static inline __attribute__((always_inline)) unsigned mix(unsigned n, unsigned x) {
    for (unsigned i = 0; i < n; i++) x = (x ^ i) * 1664525u % 977u;
    return x;
}
__attribute__((noinline)) unsigned the_only_function_with_a_long_name_that_a_terminal_cannot_show(unsigned n) {
    unsigned x = n;
    return mix(n, x);
}
int main(int argc, char **argv) {
    unsigned x = 0;
    for (int i = 0; i < atoi(argv[1]); i++)
        x += the_only_function_with_a_long_name_that_a_terminal_cannot_show(1000000);
    printf("%u\n", x);
}
"#;

const LONG: &str = "the_only_function_with_a_long_name_that_a_terminal_cannot_show";

/// A recording; `None`, with a message, where that cannot be.
fn recorded(folder: &Folder) -> Option<String> {
    let program = compiled(folder, PROGRAM, &["-O1", "-g"])?;
    let session = folder.file("run.tds");
    let recorded = tdtool(["record", "-o", &session, "--", &program, "60"]);
    if recorded.stderr.contains("cannot sample") {
        eprintln!("skipped: {}", recorded.stderr);
        return None;
    }
    recorded.succeeded();
    Some(session)
}

#[test]
fn the_line_is_the_hottest_and_names_what_was_inlined() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(session) = recorded(&folder) else { return };
    let document = json(&[&session]);
    let row = &document["functions"][0];
    assert_eq!(row["name"], LONG, "{row}");
    assert_eq!((&row["hottest"]["line"], &row["hottest"]["inlined"]), (&4.into(), &"mix".into()));
    let own = row["line"].as_u64();
    assert!(matches!(own, Some(7..=9)), "the function's own first line stays: {row}");

    let text = report(&[&session]).stdout;
    let mut rows = text.lines().filter(|line| line.contains('█'));
    let row = rows.find(|line| line.contains("the_only")).expect("a row");
    assert!(row.contains("█████") && row.contains(".c:4 (inlined mix)"), "{row}");
    // One long name does not widen the rows of others.
    let all = report(&[&session, "--verbose"]).stdout;
    let rows = all.lines().skip_while(|line| !line.contains("hottest line"));
    let rows: Vec<&str> = rows.take_while(|line| !line.is_empty()).collect();
    assert!(rows.iter().any(|row| row.contains(LONG)), "{all}");
    let others = rows.iter().filter(|row| row.contains("kernel"));
    assert!(others.into_iter().all(|row| row.chars().count() < 106), "{all}");
}

#[test]
fn a_terminal_s_width_is_kept() {
    let _busy = busy();
    let folder = Folder::new();
    let mut files = vec![zen4_intervals()];
    files.extend(recorded(&folder));
    for file in &files {
        for columns in [40, 80, 120] {
            for option in ["--ascii", "--verbose"] {
                let (status, text) =
                    on_terminal_of(columns, command(["report", option, file.as_str()]));
                assert!(status.success(), "{text}");
                let mut screen = vt100::Parser::new(4000, 400, 0);
                screen.process(text.as_bytes());
                // Commands to type are whole.
                let is_text = |line: &&str| !line.trim_start().starts_with("tdtool ");
                for line in screen.screen().contents().lines().filter(is_text) {
                    let width = line.trim_end().chars().count();
                    assert!(width <= usize::from(columns), "{columns} {option}: {width}: {line}");
                }
            }
        }
    }
    let plain = report(&[&files[0]]).stdout;
    let long =
        "  SMT Contention   not measured: de_no_dispatch_per_slot.smt_contention was not counted";
    assert!(
        plain.lines().any(|line| line == long),
        "no line is cut where none has to fit: {plain}"
    );
}

/// What perf could not count is no processor's, and has its reason.
#[test]
fn software_counts_alone_have_no_microarchitecture() {
    let folder = Folder::new();
    let counts = "<not supported>,,cycles,0,100.00,,\n<not supported>,,instructions,0,100.00,,\n\
                  0.70,msec,task-clock,702562,100.00,0.263,CPUs utilized\n";
    let file = folder.write("sw.csv", counts);
    let document = json(&[&file]);
    assert_eq!(document["uarch"], "", "{document}");
    assert_eq!(document["nodes"].as_array().map(Vec::len), Some(0));
    let software = shown::of(&["report", "sw.csv"], &folder);
    // A table's own events name it, counted or not.
    folder.write("zen.csv", "<not supported>,,ls_not_halted_cyc,0,100.00,,\n\
                                        <not supported>,,de_no_dispatch_per_slot.no_ops_from_frontend,0,100.00,,\n");
    let of_zen4 = shown::of(&["report", "zen.csv", "--uarch", "zen4"], &folder);
    assert_shown!("counts_that_perf_could_not_make", [software, of_zen4].join("\n"));
}

#[test]
fn long_work_shows_the_time_left_on_a_terminal() {
    let folder = Folder::new();
    let session = folder.file("run.tds");
    let mut other =
        std::process::Command::new("sleep").arg("60").start_limited().expect("a process");
    let pid = other.id().to_string();
    let record = ["record", "-o", &session, "-p", &pid, "--duration", "2.5"];
    let (status, shown) = on_terminal_of(100, command(record));
    other.kill().expect("it runs");
    let _ = other.wait();
    assert!(status.success(), "{shown}");
    assert!(shown.contains("recording: ") && shown.contains(" s left"), "{shown}");
}
