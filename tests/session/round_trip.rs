//! Everything that is written to a session is read back.

use super::{bytes_of, chunks, read_all, sampled_chunks, some_counts, write};
use crate::support::files::Folder;
use crate::support::run::tdtool;
use crate::support::shown;
use profile::counts::{CountFormat, Options, counts, read};
use profile::record::Record;
use profile::session::{Chunk, has_samples, load_recording, recording_from};
use serde_json::{Value, json};

#[test]
fn what_is_written_comes_back() {
    let (read, error, ignored) = read_all(&bytes_of(&chunks()));
    assert!(error.is_none());
    assert_eq!((read, ignored), (chunks(), 0));
}

#[test]
fn samples_of_all_rings_come_back_in_order_of_time() {
    let bytes = bytes_of(&sampled_chunks());
    assert_eq!(read_all(&bytes).0, sampled_chunks());
    let recording = recording_from(&bytes[..], "s").unwrap();
    let ips = recording.records.iter().filter_map(|r| match r {
        Record::Sample { sample, event: 0 } => sample.ip,
        _ => None,
    });
    assert_eq!(ips.collect::<Vec<_>>(), [0x10, 0x20, 0x30, 0x40, 0x50]);
    assert_eq!(recording.lost, 5);
    assert_eq!(recording.build_ids, [("/bin/true".to_owned(), vec![1, 2, 0xfe])]);
    assert_eq!(recording.architecture.as_deref(), Some("x86_64"));
    assert_eq!(recording.command, Some(vec!["busy".to_owned()]));
    assert_eq!(recording.events[0].name, "cpu-clock:u");
    assert_eq!(recording.notes, ["why"]);
}

#[test]
fn a_session_without_samples_says_so() {
    let folder = Folder::new();
    let path = folder.path().join("s");
    write(&path, &chunks());
    assert!(!has_samples(&path).unwrap());
    assert!(load_recording(&path).is_err());
    write(&path, &sampled_chunks());
    assert!(has_samples(&path).unwrap());
}

#[test]
fn an_import_takes_a_session_like_any_recording() {
    let folder = Folder::new();
    let path = folder.path().join("run.tdtool");
    write(&path, &chunks());
    let recording = read(&[&path]).unwrap();
    assert_eq!(recording.sources[0].format, CountFormat::Session);
    let table = events::library().load("zen4").unwrap();
    let imported = counts(&recording, &table, Options::default()).unwrap();
    assert_eq!(imported.counts, [some_counts(0), some_counts(1)]);
    assert_eq!(imported.software[0].values["task-clock"], Ok(0.82));
    assert!(imported.software[0].values["cs"].is_err());
    let other = events::library().load("skx").unwrap();
    let error = counts(&recording, &other, Options::default()).unwrap_err();
    assert_shown!("session_of_another_table", shown::error(&error, &folder));
}

/// Older sessions do not say what was measured, and later ones may say what this version does not know.
#[test]
fn a_report_names_what_was_measured_where_the_session_does() {
    let folder = Folder::new();
    let path = folder.file("s");
    for (target, measured, named) in [
        (Value::Null, Value::Null, None),
        (json!("command"), json!("command"), None),
        (json!("system"), json!("system"), Some("all CPUs")),
        (json!({ "process": 7 }), json!({ "process": 7 }), Some("process 7")),
        (json!({ "cgroup": "a b" }), json!({ "cgroup": "a b" }), Some("cgroup a b")),
        (json!({ "guest": 7 }), Value::Null, None),
    ] {
        let mut all = chunks();
        all[0] = Chunk::Header(json!({ "command": ["sleep", "1"], "target": target }));
        write(path.as_ref(), &all);
        let report = tdtool(["report", "--format", "json", &path]).succeeded().json();
        assert_eq!((&report["target"], &report["command"][1]), (&measured, &json!("1")));
        let subject: Vec<&str> = [&*path].into_iter().chain(named).collect();
        assert_eq!(report["subject"], json!(subject));
    }
}
