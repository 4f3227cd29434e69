//! Recordings that lack what is asked for: what is missing, why, and what to do; never an empty file in its place.

use crate::support::files::{Folder, zen4_intervals};
use crate::support::perf_data::{Event, PerfData, SAMPLE_ID_ALL, padded, record, words};
use crate::support::run::tdtool;
use crate::support::shown;
use std::collections::BTreeMap;
use std::path::Path;

/// A perf.data file of two samples without call chains, at 1 s and 3 s: IP, TID, TIME, IDENTIFIER.
fn two_samples(folder: &Folder) -> String {
    let event = Event {
        name: "cycles",
        id: 101,
        config: 0x3c,
        period: 1000,
        sample_type: 1 | 2 | 4 | 1 << 16,
        flags: SAMPLE_ID_ALL,
        ..Event::default()
    };
    let file = PerfData { events: vec![event], sections: BTreeMap::new() };
    let thread = 12 << 32 | 11;
    let name = [words(&[thread]), padded("sort"), words(&[thread, 1, 101])].concat();
    let sample = |time| record(9, 2, &words(&[101, 0x40_1000, thread, time]));
    let seconds = 1_000_000_000;
    let records = [record(3, 1 << 13, &name), sample(seconds), sample(3 * seconds)].concat();
    folder.write("two.data", file.file(&records))
}

/// What commands that tdtool refuses show; each says what, why, and what to do.
fn refusals(asked: &[&[&str]], folder: &Folder) -> String {
    let shown = shown::each(asked, folder);
    for head in ["error: ", "cause: ", "try: "] {
        let count = shown.lines().filter(|line| line.starts_with(head)).count();
        assert_eq!(count, asked.len(), "{head}{shown}");
    }
    shown
}

#[test]
fn counts_without_samples_are_refused_where_only_samples_answer() {
    let folder = Folder::new();
    let session = folder.file("counts.tds");
    tdtool(["record", "--no-samples", "-o", &session, "--", "true"]).succeeded();
    let out = folder.file("out.svg");
    for counts in [&session, &zen4_intervals()] {
        let asked = [
            &["report", counts, "--folded", &out][..],
            &["report", counts, "--flamegraph", &out],
            &["report", counts, "--pprof", &out],
            &["report", counts, "--callgrind", &out],
            &["report", counts, "--firefox", &out],
            &["report", counts, "--annotate", "main"],
            &["report", counts, "--callers", "main"],
            &["report", counts, "--thread", "sh"],
            &["report", counts, "--time", "0..1"],
        ];
        let shown = refusals(&asked, &folder);
        if counts != &session {
            assert_shown!("counts_without_samples", shown);
        }
        assert!(!Path::new(&out).exists(), "of {counts}");
        // A page of counts is a page.
        tdtool(["report", counts, "--html", &folder.file("page.html")]).succeeded();
    }
}

#[test]
fn stacks_of_samples_without_call_chains_are_written_with_a_note() {
    let folder = Folder::new();
    let file = two_samples(&folder);
    let outputs = ["f", "f.svg", "p", "c"].map(|name| folder.file(name));
    let asked = [
        &["report", &file, "--folded", &outputs[0]][..],
        &["report", &file, "--flamegraph", &outputs[1]],
        &["report", &file, "--pprof", &outputs[2]],
        &["report", &file, "--callgrind", &outputs[3]],
    ];
    assert_shown!("stacks_without_call_chains", shown::each(&asked, &folder));
}

#[test]
fn what_a_recording_lacks_is_named_with_what_it_has() {
    let folder = Folder::new();
    let (file, missing) = (two_samples(&folder), folder.file("none"));
    let asked = [
        // The second sample is two seconds after the first.
        &["report", &file, "--time", "5..6"][..],
        &["report", &file, "--time", "5.."],
        &["report", &file, "--annotate", "quite_another"],
        &["branches", &file],
        &["loads", &file],
        &["prefetch", &file],
        // Options that name what is not there.
        &["report", &file, "--symfs", &missing],
        &["report", &file, "--binary", &missing],
        &["report", &file, "--tables", &missing],
    ];
    assert_shown!("not_in_a_recording", refusals(&asked, &folder));
    let second = tdtool(["report", &file, "--time", "1.5..", "--format", "json"]).succeeded();
    assert_eq!(second.json()["sampled"]["samples"], 1);
}

#[test]
fn files_that_are_something_else_are_named_with_what_they_are() {
    let folder = Folder::new();
    let other = folder.write("other.json", "{\"schema\": \"other/1\"}\n");
    let text = folder.write("notes.txt", "hello\n");
    let (missing, pipe) = (folder.file("nots.txt"), folder.write("pipe", ""));
    let asked = [
        &["prefetch", &other][..],
        &["prefetch", &text],
        &["loads", &text],
        &["diff", &missing, &text],
        &["report", "--control", &pipe, "--", "true"],
    ];
    assert_shown!("files_of_another_kind", refusals(&asked, &folder));
}

#[test]
fn samples_and_counts_are_compared_without_talk_of_tables() {
    let folder = Folder::new();
    let (samples, counts) = (two_samples(&folder), zen4_intervals());
    assert_shown!("samples_compared_with_counts", shown::of(&["diff", &samples, &counts], &folder));
}
