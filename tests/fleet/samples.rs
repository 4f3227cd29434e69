//! What windows make of samples: trees of binaries, against the script of a scripted kernel; idle time.

use crate::report::per_function::{MIXED, NODES, mixed};
use crate::support::files::{Folder, text};
use crate::support::run::tdtool;
use engine::windows::{Time, binaries};
use profile::files::SearchPaths;
use profile::hot::by_thread;
use profile::{perfdata, session};
use report::documents::{Report, Source};

#[test]
fn a_binary_has_the_tree_of_the_script() {
    let folder = Folder::new();
    let Some(file) = mixed(&folder) else { return };
    let recording = perfdata::open(file.as_ref(), false).expect("readable");
    let by = by_thread(&recording, SearchPaths::default()).expect("readable");
    let mut report = Report::new(Source::Pmu);
    report.uarch = "icx".to_owned();
    let time = Time { event: "cycles".to_owned(), busy: Some(2.0) };
    let rows = binaries(&by, &report, &engine::library(), &time);
    let program = |row: &&fleet::window::Node| {
        row.owner.binary.as_ref().is_some_and(|binary| !binary.module.starts_with('['))
    };
    for (id, truth) in NODES.iter().zip(MIXED) {
        let row = rows.iter().filter(program).find(|row| row.node == *id).expect("the node");
        let (low, high) = row.interval.expect("an error");
        let share = row.share.expect("counted");
        assert!((share - truth).abs() < 0.02, "{id}: {share} for {truth}");
        assert!(low <= share && share <= high);
        assert_eq!(row.cpu_seconds, Some(2.0), "all samples are of this program");
    }
    // The same samples without what level 1 needs.
    report.uarch = String::new();
    assert!(binaries(&by, &report, &engine::library(), &time).is_empty(), "no table, no nodes");
}

#[test]
fn idle_samples_are_no_work() {
    need!(pmu::sampling::ability().is_ok(), "no perf events here");
    let folder = Folder::new();
    let file = folder.path().join("s.tds");
    let options = ["-a", "-e", "cpu-clock", "-F", "99", "--duration", "0.5", "-o", text(&file)];
    let ran = tdtool([&["record"], &options[..]].concat());
    need!(ran.status.success(), ran.stderr);
    let recording = session::open(&file, false).expect("samples");
    let by = by_thread(&recording, SearchPaths::default()).expect("readable");
    assert!(by.sums.keys().all(|of| of.pid != Some(0)), "{:?}", by.sums.keys());
    let busy: u64 = by.sums.values().map(|tally| tally.samples).sum();
    assert_eq!(busy + by.idle.samples, recording.about.samples.iter().sum::<u64>());
}
