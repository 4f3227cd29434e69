//! perf.data files made here: of other machines, as streams, cut off and damaged.

use super::{by_event, made, samples};
use crate::support::files::Folder;
use crate::support::shown;
use profile::perfdata::parse;
use profile::recording::Recording;

/// What is read of the made recording, whole.
fn assert_made(recording: &Recording) {
    let times: Vec<_> = samples(recording).iter().map(|s| s.time.unwrap()).collect();
    assert_eq!(times, [10, 20, 30, 40], "in order of time, though recorded in another");
    assert_eq!((by_event(recording), recording.lost), (vec![2, 2], 3));
    let names: Vec<_> = recording.events.iter().map(|e| &e.name[..]).collect();
    assert_eq!(names, ["loads:pp", "stores"]);
    let first = samples(recording)[0];
    assert_eq!((first.pid, first.tid, first.addr), (Some(11), Some(12), Some(0xdead)));
    assert_eq!((first.branches[0].cycles, first.data_source), (Some(7), Some(5)));
    assert_eq!(recording.notes, [""; 0]);
}

#[test]
fn files_of_other_machines_and_streams_are_read_alike() {
    let records = made::records();
    let file = parse(&made::file("aarch64", &records), "made").unwrap();
    assert_made(&file);
    assert_eq!(
        (file.architecture.as_deref(), file.host.as_deref()),
        (Some("aarch64"), Some("host"))
    );
    let stream = parse(&made::stream(&records), "made").unwrap();
    assert_made(&stream);
    assert_eq!(stream.records, file.records);
}

#[test]
fn a_recording_whose_perf_was_killed_is_read_to_its_end() {
    let records = made::records();
    let mut file = made::file("x86_64", &records);
    file.truncate(104 + 16 + 2 * 144 + records.len());
    file[48..56].fill(0); // the size of the data, which perf fills in at the end
    let recording = parse(&file, "made").unwrap();
    assert_eq!(by_event(&recording), [2, 2]);
    assert_eq!(recording.notes.len(), 1, "{:?}", recording.notes);
    assert_eq!(recording.events[0].name, "r1cd");
}

#[test]
fn records_before_the_damage_are_kept_and_the_damage_is_reported() {
    let records = made::records();
    let damaged = [&records[..], &[9, 0, 0, 0, 0, 0, 0, 0], &records].concat();
    for bytes in [made::file("x86_64", &damaged), made::stream(&damaged)] {
        let recording = parse(&bytes, "made").unwrap();
        assert_eq!(by_event(&recording), [2, 2]);
        let much = format!(" {} bytes", records.len() + 8);
        assert!(recording.notes[0].contains(&much), "{:?}", recording.notes);
    }
    // A sample of an event that is not in the file, and one that is too short.
    let strange = [made::sample(77, 50), made::record(9, 2, &made::words(&[101, 1]))].concat();
    let recording = parse(&made::stream(&[records, strange].concat()), "made").unwrap();
    assert_eq!(by_event(&recording), [2, 2]);
    assert!(recording.notes[0].starts_with("2 "));
    // Nothing but damage.
    let error = parse(&made::stream(&[9, 0, 0, 0, 0, 0, 0, 0]), "made").unwrap_err();
    assert_shown!("recording_of_nothing_but_damage", shown::error(&error, &Folder::new()));
}

#[test]
fn a_file_cut_off_anywhere_gives_what_is_there_or_an_error() {
    let records = made::records();
    for whole in [made::file("x86_64", &records), made::stream(&records)] {
        let mut most = 0;
        for end in 0..whole.len() {
            let Ok(recording) = parse(&whole[..end], "made") else { continue };
            let count = samples(&recording).len();
            assert!(count >= most, "a longer file gives no less");
            most = count;
            let untold = recording.notes.is_empty() && count < 4 && end < whole.len() - 60;
            assert!(!untold || whole[8] == 16, "at {end}: {:?}", recording.notes);
        }
        assert_eq!(most, 4);
    }
}
