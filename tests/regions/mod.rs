//! Regions that programs mark: entries, nesting and threads are what their source says.

mod attached;
mod functions;
mod trees;

use crate::support::files::{Folder, root, text};
use crate::support::run::{Ran, tdtool};
use crate::support::tools::gcc;
use serde_json::Value;
use std::path::PathBuf;

/// A program that ends with status 5; argument 1 says what it does.
const PROGRAM: &str = r#"
#include "tdtool.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
static int fib(int n) { TDTOOL_REGION("fib"); return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static void *tasks(void *n) {
    for (long i = 0; i < 3 + (long)n; i++) {
        TDTOOL_REGION("task");
        for (int j = 0; j < 2; j++) { tdtool_begin("inner"); tdtool_end("inner"); }
    }
    return 0;
}
int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    if (!strcmp(what, "nested")) {
        TDTOOL_REGION("outer");
        for (int i = 0; i < 7; i++) {
            TDTOOL_REGION("middle");
            if (i % 2) { tdtool_begin("odd"); tdtool_end("odd"); }
        }
        tdtool_begin("odd");
        tdtool_end("odd");
    } else if (!strcmp(what, "recursive")) {
        fib(10);
    } else if (!strcmp(what, "threads")) {
        pthread_t threads[4];
        for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, tasks, (void *)i);
        for (long i = 0; i < 4; i++) pthread_join(threads[i], 0);
        /* One after the other: on the same stack, mostly. */
        for (long i = 0; i < 4; i++) {
            pthread_create(&threads[i], 0, tasks, (void *)i);
            pthread_join(threads[i], 0);
        }
    } else if (!strcmp(what, "open")) {
        tdtool_begin("outer");
        tdtool_begin("never");
        tdtool_end("outer");
        tdtool_end("nobody");
        tdtool_begin("last");
    } else if (!strcmp(what, "fork")) {
        for (int i = 0; i < 3; i++) {
            if (!fork()) {
                for (int j = 0; j < 5; j++) { TDTOOL_REGION("child"); }
                _exit(0);
            }
            TDTOOL_REGION("parent");
        }
        while (wait(0) > 0) {}
    } else if (!strcmp(what, "timed")) {
        double before = now();
        tdtool_begin("busy");
        double begin = now();
        while (now() - begin < 0.05) {}
        double end = now();
        tdtool_end("busy");
        printf("%.9f %.9f\n", end - begin, now() - before);
    } else if (!strcmp(what, "many")) {
        for (int i = 0; i < 20000; i++) { tdtool_begin("tiny"); tdtool_end("tiny"); }
    } else if (!strcmp(what, "flood")) {
        for (int i = 0; i < 700000; i++) { tdtool_begin("tiny"); tdtool_end("tiny"); }
    } else if (!strcmp(what, "name")) {
        tdtool_begin("a\x1b[31m\nb");
        tdtool_end("a\x1b[31m\nb");
    }
    return 5;
}
"#;

/// The program of a source with markers; `None`, with a message, without a compiler.
fn marked(folder: &Folder, source: &str, options: &[&str]) -> Option<PathBuf> {
    let header = format!("-I{}", text(&root().join("src/markers")));
    let all = [&["-pthread", "-Wall", "-Werror", &header], options].concat();
    gcc(folder.path(), source, &all, "program")
}

/// What tdtool gives; `None`, with a message, where tracing is not permitted.
fn permitted(ran: Ran) -> Option<Ran> {
    if ran.code() == Some(3) {
        eprintln!("skipped: {}", ran.stderr);
        return None;
    }
    Some(ran)
}

/// The document of a run that ends with status 5.
fn regions(program: &std::path::Path, more: &[&str], what: &str) -> Option<Value> {
    let own = ["--output", "-", "--format", "json", "--", text(program), what];
    let ran = tdtool([&["report", "--regions"], more, &own].concat());
    let ran = permitted(ran)?;
    assert_eq!(ran.code(), Some(5), "{}", ran.stderr);
    let document = ran.json();
    assert_eq!(document["schema"], "tdtool.regions/1");
    Some(document)
}

/// Path, entries, of them recursive, never ended: of every region.
fn rows(document: &Value) -> Vec<(String, u64, u64, u64)> {
    let rows = document["regions"].as_array().unwrap().iter().map(|row| {
        let mut path: Vec<&str> =
            row["inside"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        path.push(row["name"].as_str().unwrap());
        let number = |key: &str| row[key].as_u64().unwrap();
        let of_threads: u64 =
            row["threads"].as_array().unwrap().iter().map(|t| t["entries"].as_u64().unwrap()).sum();
        assert_eq!(of_threads, number("entries"), "{row}");
        (path.join(">"), number("entries"), number("recursive"), number("unfinished"))
    });
    rows.collect()
}

fn row(path: &str, numbers: [u64; 3]) -> (String, u64, u64, u64) {
    (path.to_owned(), numbers[0], numbers[1], numbers[2])
}

#[test]
fn entries_and_nesting_are_those_of_the_source_at_any_optimization() {
    let folder = Folder::new();
    for options in [&["-O0"][..], &["-O2"], &["-O2", "-no-pie", "-fno-pie"], &["-O2", "-static"]] {
        let Some(program) = marked(&folder, PROGRAM, options) else { return };
        let Some(nested) = regions(&program, &[], "nested") else { return };
        let expected = [
            row("outer", [1, 0, 0]),
            row("outer>middle", [7, 0, 0]),
            row("outer>middle>odd", [3, 0, 0]),
            row("outer>odd", [1, 0, 0]),
        ];
        assert_eq!(rows(&nested), expected, "{options:?} {nested}");
        assert_eq!(nested["markers"], 24);
        assert_eq!(nested["not_probed"], serde_json::json!([]));
        // Calls for fib(10): 2 fib(11) - 1 (OEIS A001595); all but the first are inside it.
        let Some(recursive) = regions(&program, &[], "recursive") else { return };
        assert_eq!(rows(&recursive), [row("fib", [177, 176, 0])]);
    }
}

#[test]
fn threads_and_processes_have_their_own_regions() {
    let folder = Folder::new();
    let Some(program) = marked(&folder, PROGRAM, &["-O1"]) else { return };
    let Some(threads) = regions(&program, &[], "threads") else { return };
    // 3 + 4 + 5 + 6, twice.
    assert_eq!(rows(&threads), [row("task", [36, 0, 0]), row("task>inner", [72, 0, 0])]);
    let of = |row: &Value| -> Vec<(u64, u64)> {
        let own = row["threads"].as_array().unwrap().iter();
        let mut all: Vec<_> =
            own.map(|t| (t["entries"].as_u64().unwrap(), t["thread"].as_u64().unwrap())).collect();
        all.sort_unstable();
        all
    };
    let (tasks, inner) = (of(&threads["regions"][0]), of(&threads["regions"][1]));
    let entries = |all: &[(u64, u64)]| all.iter().map(|(n, _)| *n).collect::<Vec<_>>();
    assert_eq!(entries(&tasks), [3, 3, 4, 4, 5, 5, 6, 6]);
    assert_eq!(inner, tasks.iter().map(|(n, t)| (2 * n, *t)).collect::<Vec<_>>());

    let Some(forked) = regions(&program, &[], "fork") else { return };
    let mut all = rows(&forked);
    all.sort();
    assert_eq!(all, [row("child", [15, 0, 0]), row("parent", [3, 0, 0])]);
    let child = forked["regions"].as_array().unwrap().iter().find(|r| r["name"] == "child");
    let threads = child.unwrap()["threads"].as_array().unwrap();
    let processes: std::collections::BTreeSet<_> =
        threads.iter().map(|t| t["process"].as_u64().unwrap()).collect();
    assert_eq!(processes.len(), 3, "{forked}");
}

#[test]
fn what_never_ends_is_counted_and_has_no_time() {
    let folder = Folder::new();
    let Some(program) = marked(&folder, PROGRAM, &["-O1"]) else { return };
    let Some(open) = regions(&program, &[], "open") else { return };
    let expected = [row("outer", [1, 0, 0]), row("outer>never", [1, 0, 1]), row("last", [1, 0, 1])];
    assert_eq!(rows(&open), expected);
    assert_eq!(open["regions"][1]["time"], Value::Null);
    assert_eq!(open["regions"][1]["reason"], "it never ended");
    let notes = open["notes"].to_string();
    assert!(notes.contains("`nobody` ended 1 times"), "{notes}");
}

#[test]
fn times_are_between_those_that_the_program_takes_itself_and_short_ones_are_refused() {
    let folder = Folder::new();
    let Some(program) = marked(&folder, PROGRAM, &["-O1"]) else { return };
    let document = folder.file("regions.json");
    let ran = tdtool([
        "report",
        "--regions",
        "--format",
        "json",
        "--output",
        &document,
        "--",
        text(&program),
        "timed",
    ]);
    let Some(ran) = permitted(ran) else { return };
    let own: Vec<f64> = ran.stdout.split_whitespace().map(|n| n.parse().unwrap()).collect();
    let found: Value = serde_json::from_str(&folder.read("regions.json")).unwrap();
    let time = found["regions"][0]["time"].as_f64().unwrap();
    // The frequency of the counter may be measured while others run: within a factor of two.
    assert!(time > own[0] / 2.0 && time < own[1] * 2.0, "{time} {own:?}");

    let Some(many) = regions(&program, &[], "many") else { return };
    assert_eq!(rows(&many), [row("tiny", [20_000, 0, 0])]);
    assert_eq!(many["regions"][0]["time"], Value::Null);
    let why = many["regions"][0]["reason"].as_str().unwrap();
    assert!(why.starts_with("too short to time"), "{why}");
}

/// More than the log has room for: markers wait until it was read. A reader that does not run for a second loses some.
#[test]
fn markers_wait_for_room_in_the_log() {
    let folder = Folder::new();
    let Some(program) = marked(&folder, PROGRAM, &["-O1"]) else { return };
    let Some(flood) = regions(&program, &[], "flood") else { return };
    assert_eq!(flood["markers"], 1_400_000);
    match flood["lost"].as_u64().unwrap() {
        0 => assert_eq!(rows(&flood), [row("tiny", [700_000, 0, 0])]),
        lost => assert!(flood["notes"].to_string().contains("were not logged"), "{lost} {flood}"),
    }
}

#[test]
fn text_escapes_names_and_leaves_the_output_to_the_command() {
    let folder = Folder::new();
    let Some(program) = marked(&folder, PROGRAM, &["-O1"]) else { return };
    let ran = tdtool(["report", "--regions", "--", text(&program), "name"]);
    let Some(ran) = permitted(ran) else { return };
    assert_eq!((ran.code(), &*ran.stdout), (Some(5), ""));
    assert!(ran.stderr.contains("a\\u001b[31m\\u000ab"), "{}", ran.stderr);
    assert!(!ran.stderr.contains('\x1b'));
}

#[test]
fn a_program_without_markers_is_an_error_that_says_what_to_do() {
    let ran = tdtool(["report", "--regions", "--", "true"]);
    assert_eq!(ran.code(), Some(1));
    for part in ["has no markers", "tdtool.h", "tdtool-markers", "--module"] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    let ran = tdtool(["report", "--regions", "-a"]);
    assert_eq!(ran.code(), Some(2), "{}", ran.stderr);
}

/// Markers in a library, of a program that a shell starts.
#[test]
fn markers_of_other_files_are_found_by_name() {
    let folder = Folder::new();
    let source = "#include \"tdtool.h\"\nvoid work(void) { TDTOOL_REGION(\"work\"); }\n";
    let header = format!("-I{}", text(&root().join("src/markers")));
    let library = gcc(folder.path(), source, &["-shared", "-fPIC", &header], "libwork.so");
    let Some(library) = library else { return };
    let source = "void work(void); int main(void) { work(); work(); return 5; }";
    let Some(program) = gcc(folder.path(), source, &["-Wl,--no-as-needed", text(&library)], "user")
    else {
        return;
    };
    let command = [
        "report",
        "--regions",
        "--module",
        text(&library),
        "--output",
        "-",
        "--format",
        "json",
        "--",
        "sh",
        "-c",
        &format!("{0}; {0}", text(&program)),
    ];
    let Some(ran) = permitted(tdtool(command)) else { return };
    assert_eq!(rows(&ran.json()), [row("work", [4, 0, 0])]);
    // The libraries of the command's own program need not be named.
    let Some(own) = regions(&program, &[], "") else { return };
    assert_eq!(rows(&own), [row("work", [2, 0, 0])]);
}

#[test]
fn the_crate_leaves_the_same_notes_as_the_header() {
    let _region = markers::Region::new(c"test");
    let program = std::env::current_exe().unwrap();
    let found = probe::facts::static_probes(&program).unwrap();
    for name in ["begin", "end"] {
        let own = found.iter().filter(|p| p.provider == "tdtool" && p.name == name);
        assert!(
            own.clone().count() > 0 && own.clone().all(|p| p.register().is_some()),
            "{found:?}"
        );
    }
}
