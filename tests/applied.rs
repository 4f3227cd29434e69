//! `tdtool prefetch --apply`: the prefetch is in the program that is measured, and the source is as it was unless that
//! gained. Whether it gains is of the machine.

use crate::support::files::{Folder, text};
use crate::support::quiet::alone;
use crate::support::run::{Ran, command, ended, run, send, start};
use crate::support::shown;
use crate::support::tools::available;
use crate::support::wait::until;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::path::Path;

/// A sum over a list of indices, in 128 MiB; it prints `WORD`, too.
pub const SOURCE: &str = r#"#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#ifndef WORD
#define WORD 0
#endif
#ifndef MORE
#define MORE 0
#endif
__attribute__((noipa)) uint64_t kernel(const uint32_t *index, const uint32_t *data, long n) {
    uint64_t sum = 0;
    for (long i = 0; i < n; i++) sum += data[index[i]];
    return sum;
}
int main(void) {
    long n = 1 << 20, m = 1 << 25;
    uint32_t *index = malloc(4 * n), *data = malloc(4 * m), x = 1;
    uint64_t sum = 0;
    for (long i = 0; i < n; i++) x = x * 1664525 + 1013904223, index[i] = x >> 7;
    for (long i = 0; i < m; i++) data[i] = i;
    for (int k = 0; k < 8; k++) sum += kernel(index, data, n);
    for (int k = 0; k < MORE; k++) kernel(index, data, n);
    printf("%lu %d\n", sum, WORD);
}
"#;

const GCC: &str = "gcc -O2 -g -fno-tree-vectorize program.c -o program";

/// A folder with the source, if it can be compiled here.
fn source() -> Option<Folder> {
    let folder = (available("gcc") && available("objdump")).then(Folder::new)?;
    folder.write("program.c", SOURCE);
    Some(folder)
}

/// Applies the advice at a distance of 8, in six runs; `None` where there is no advice here and now.
fn applied(folder: &Folder, build: &str, more: &[&str]) -> Option<(Ran, Value)> {
    let options = ["prefetch", "--format", "json", "--apply", "--build", build];
    let run_options = ["--rounds", "6", "--distances", "8", "--", "./program"];
    let all = [&options[..], more, &run_options[..]].concat();
    let done = run(command(all).current_dir(folder.path())).succeeded();
    let document = done.json();
    let row = document["applied"].as_array().and_then(|rows| rows.first().cloned());
    match row.filter(|row| row["function"] == "kernel") {
        Some(row) => Some((done, row)),
        None => {
            eprintln!("skipped: no advice on the kernel here and now: {document}");
            None
        }
    }
}

/// Neither copies nor programs of other sources are left.
fn assert_clean(folder: &Path) {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut left: Vec<_> = names.filter(|name| text(Path::new(name)).contains("tdtool")).collect();
    left.sort();
    assert!(left.is_empty(), "{left:?}");
}

const STATEMENT: &str = "if ((i + 8) < n) __builtin_prefetch((const void *)&data[index[i + 8]]);";

/// The source with the prefetch.
fn changed() -> String {
    let before = SOURCE.replace(") sum += data", &format!(") {{ {STATEMENT} sum += data"));
    before.replace("data[index[i]];\n", "data[index[i]]; }\n")
}

#[test]
fn the_measured_program_prefetches_and_the_source_has_what_gains() {
    let _alone = alone();
    let Some(folder) = source() else { return eprintln!("skipped: no gcc or objdump") };
    let build = format!("{GCC} && objdump -d program | grep -c prefetcht0 >>built; true");
    let Some((_, row)) = applied(&folder, &build, &[]) else { return };
    assert_eq!(folder.read("built").lines().collect::<Vec<_>>(), ["0", "1"]);
    assert_eq!((&row["statement"], &row["tried"][0]["failed"]), (&json!(STATEMENT), &Value::Null));
    let tried = &row["tried"][0];
    assert_eq!((&tried["distance"], &tried["runs"]), (&json!(8), &json!(6)));
    assert!(tried["time"]["ratio"].is_number(), "{row}");
    let is_kept = row["kept"] == true;
    assert_eq!(row["reason"].is_null(), is_kept, "{row}");
    assert_eq!(folder.read("program.c"), if is_kept { changed() } else { SOURCE.to_owned() });
    let disassembly =
        run(crate::support::run::program("objdump").args(["-d", &folder.file("program")]))
            .succeeded();
    assert_eq!(disassembly.stdout.contains("prefetcht0"), is_kept);
    assert_clean(folder.path());
}

/// The program without a prefetch does everything three times, so that the other gains wherever this runs.
#[test]
fn what_gains_is_kept_in_the_source_or_in_a_patch() {
    let _alone = alone();
    let build = format!("{GCC} $(grep -q __builtin_prefetch program.c || echo -DMORE=16)");
    for patch in [None, Some("gains.patch")] {
        let Some(folder) = source() else { return eprintln!("skipped: no gcc or objdump") };
        let path = patch.map(|name| folder.file(name));
        let more: Vec<&str> = path.iter().flat_map(|path| ["--patch", path]).collect();
        let Some((_, row)) = applied(&folder, &build, &more) else { return };
        assert_eq!(row["kept"], true, "{row}");
        assert!(
            row["confirmed"]["time"]["ratio"].as_f64().is_some_and(|ratio| ratio < 0.8),
            "{row}"
        );
        if let Some(patch) = patch {
            assert_eq!(folder.read("program.c"), SOURCE);
            if !available("patch") {
                return eprintln!("skipped: no patch");
            }
            let mut command = crate::support::run::program("patch");
            run(command.args(["-p1", "-i", patch]).current_dir(folder.path())).succeeded();
        }
        assert_eq!(folder.read("program.c"), changed());
        assert_clean(folder.path());
    }
}

#[test]
fn a_failed_build_and_another_output_restore_the_source() {
    let _alone = alone();
    let Some(folder) = source() else { return eprintln!("skipped: no gcc or objdump") };
    let fails = format!("! grep -q __builtin_prefetch program.c && {GCC}");
    let differs = format!("{GCC} -DWORD=$(grep -c __builtin_prefetch program.c)");
    for (build, tried) in [(fails, 0), (differs, 1)] {
        let Some((_, row)) = applied(&folder, &build, &[]) else { return };
        assert_eq!(row["kept"], false, "{row}");
        assert!(row["reason"].is_string(), "{row}");
        assert_eq!(row["tried"].as_array().unwrap().len(), tried, "{row}");
        assert!(tried == 0 || row["tried"][0]["failed"].is_string(), "{row}");
        assert_eq!(folder.read("program.c"), SOURCE);
        assert_clean(folder.path());
    }
}

#[test]
fn a_program_without_advice_is_left_and_a_broken_one_not_run() {
    let _alone = alone();
    let Some(folder) = source() else { return eprintln!("skipped: no gcc or objdump") };
    let apply = |build: &str| {
        let options = ["prefetch", "--apply", "--build", build, "--", "./program"];
        run(command(options).current_dir(folder.path()))
    };
    let idle = "int main(void) { for (volatile long i = 0; i < 200000000; i++); }";
    folder.write("program.c", idle);
    let done = apply(GCC);
    if done.code() != Some(0) {
        eprintln!("skipped: not known here: {}", done.stderr);
    }
    assert_eq!(folder.read("program.c"), idle);
    let done = apply("touch program; false");
    assert_eq!(done.code(), Some(1), "{}", done.stderr);
    assert_shown!("a_build_that_fails", shown::outputs(&done, &folder));
}

#[test]
fn an_interrupted_build_restores_the_source() {
    let _alone = alone();
    let Some(folder) = source() else { return eprintln!("skipped: no gcc or objdump") };
    let waits = "grep -q __builtin_prefetch program.c && touch begun && exec sleep 100";
    let build = format!("{waits}; {GCC}");
    let options = ["prefetch", "--format", "json", "--apply", "--build", &build, "--", "./program"];
    let mut child = start(command(options).current_dir(folder.path()));
    let begun = folder.path().join("begun");
    until(
        || begun.exists() || child.try_wait().unwrap().is_some(),
        || "neither a build nor an end".to_owned(),
    );
    if !begun.exists() {
        return eprintln!("skipped: no advice here and now: {}", ended(child).stderr);
    }
    assert!(folder.read("program.c").contains("__builtin_prefetch"));
    for signal in [Signal::SIGQUIT, Signal::SIGQUIT, Signal::SIGINT, Signal::SIGINT] {
        send(&child, signal);
    }
    let done = ended(child);
    assert_eq!(done.code(), Some(130), "{}", done.stderr);
    let row = &done.json()["applied"][0];
    assert_eq!((&row["kept"], &row["reason"]), (&json!(false), &json!("interrupted")));
    assert_eq!(folder.read("program.c"), SOURCE);
    assert_clean(folder.path());
}

#[test]
fn what_a_killed_run_left_is_refused_before_anything_is_built() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    folder.write("src/program.c.tdtool-original", "");
    let options = ["prefetch", "--apply", "--build", "touch built", "--", "./program"];
    let done = run(command(options).current_dir(folder.path()));
    assert_eq!(done.code(), Some(1), "{}", done.stderr);
    assert_shown!("what_a_killed_run_left", shown::outputs(&done, &folder));
    assert!(!folder.path().join("built").exists());
}

/// What is edited while a build runs stays.
#[test]
fn an_edit_of_the_source_meanwhile_is_left() {
    let _alone = alone();
    let Some(folder) = source() else { return eprintln!("skipped: no gcc or objdump") };
    let edits = "if grep -q __builtin_prefetch program.c; then echo edited >program.c; fi";
    let options = ["prefetch", "--apply", "--build", &format!("{GCC}; {edits}"), "--", "./program"];
    let done = run(command(options).current_dir(folder.path()));
    if folder.read("program.c") == SOURCE {
        return eprintln!("skipped: no advice here and now: {}", done.stderr);
    }
    assert_eq!(done.code(), Some(1), "{}", done.stderr);
    assert_eq!(folder.read("program.c"), "edited\n");
    assert_eq!(folder.read("program.c.tdtool-original"), SOURCE);
}
