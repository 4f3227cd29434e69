//! Recordings that lack what is asked for: what is missing, why, and what to do; never an empty file in its place.

use crate::support::files::{Folder, zen4_intervals};
use crate::support::perf_data::{Event, PerfData, SAMPLE_ID_ALL, padded, record, words};
use crate::support::run::{Ran, tdtool};
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

/// What tdtool said; it must have refused, and said why and what to do.
fn refused(args: &[&str]) -> String {
    let output: Ran = tdtool(args);
    assert!(matches!(output.code(), Some(1 | 2)), "{args:?}: {}{}", output.stdout, output.stderr);
    for part in ["error: ", "cause: ", "try: "] {
        assert!(output.stderr.contains(part), "{args:?}: {}", output.stderr);
    }
    output.stderr
}

#[test]
fn counts_without_samples_are_refused_where_only_samples_answer() {
    let folder = Folder::new();
    let session = folder.file("counts.tds");
    tdtool(["record", "--no-samples", "-o", &session, "--", "true"]).succeeded();
    let out = folder.file("out.svg");
    for counts in [&session, &zen4_intervals()] {
        for option in ["--folded", "--flamegraph", "--pprof", "--callgrind", "--firefox"] {
            let text = refused(&["report", counts, option, &out]);
            assert!(text.contains("samples"), "{option}: {text}");
            assert!(text.contains("tdtool record"), "{option}: {text}");
            assert!(!Path::new(&out).exists(), "{option} of {counts}");
        }
        for (option, value) in
            [("--annotate", "main"), ("--callers", "main"), ("--thread", "sh"), ("--time", "0..1")]
        {
            assert!(refused(&["report", counts, option, value]).contains(option), "{option}");
        }
        // A page of counts is a page.
        tdtool(["report", counts, "--html", &folder.file("page.html")]).succeeded();
    }
}

#[test]
fn stacks_of_samples_without_call_chains_are_written_with_a_note() {
    let folder = Folder::new();
    let file = two_samples(&folder);
    for (option, name) in
        [("--folded", "f"), ("--flamegraph", "f.svg"), ("--pprof", "p"), ("--callgrind", "c")]
    {
        let text = tdtool(["report", &file, option, &folder.file(name)]).succeeded().stderr;
        assert!(text.contains("no call chains"), "{option}: {text}");
        assert!(text.contains("record with -g"), "{option}: {text}");
    }
}

#[test]
fn a_time_without_samples_is_refused_with_the_time_of_those_there_are() {
    let folder = Folder::new();
    let file = two_samples(&folder);
    // The second sample is two seconds after the first.
    assert!(refused(&["report", &file, "--time", "5..6"]).contains("0 s to 2.000 s"));
    assert!(refused(&["report", &file, "--time", "5.."]).contains("from 5 s on"));
    // Options that name what is not there.
    for option in ["--symfs", "--binary", "--tables"] {
        let missing = folder.file("none");
        assert!(refused(&["report", &file, option, &missing]).contains(&missing), "{option}");
    }
    let second = tdtool(["report", &file, "--time", "1.5..", "--format", "json"]).succeeded();
    assert_eq!(second.json()["sampled"]["samples"], 1);
}

#[test]
fn a_function_without_samples_is_refused_with_those_that_have_some() {
    let folder = Folder::new();
    let file = two_samples(&folder);
    let text = refused(&["report", &file, "--annotate", "quite_another"]);
    assert!(text.contains("quite_another") && text.contains("--functions N"), "{text}");
}

#[test]
fn files_that_are_something_else_are_named_with_what_they_are() {
    let folder = Folder::new();
    let other = folder.write("other.json", "{\"schema\": \"other/1\"}\n");
    let text = folder.write("notes.txt", "hello\n");
    let missing = folder.file("nots.txt");
    let pipe = folder.write("pipe", "");
    for (args, expected) in [
        (&["prefetch", &other][..], "its schema is `other/1`, not `tdtool.count/1`"),
        (&["prefetch", &text], "neither perf.data nor a session"),
        (&["loads", &text], "neither perf.data nor a session"),
        (&["diff", &missing, &text], "did you mean"),
        (&["report", "--control", &pipe, "--", "true"], "give a path where nothing is yet"),
    ] {
        let found = refused(args);
        assert!(found.contains(expected), "{args:?}: {found}");
    }
}

#[test]
fn samples_and_counts_are_compared_without_talk_of_tables() {
    let folder = Folder::new();
    let (samples, counts) = (two_samples(&folder), zen4_intervals());
    let text = tdtool(["diff", &samples, &counts]).succeeded().stdout;
    assert!(!text.contains("different tables"), "{text}");
}
