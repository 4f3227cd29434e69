//! Recordings made here by the system's perf, against what that perf says of them.
//!
//! Skipped, with a message, where there is no perf or it may not sample.

use crate::support::child::Limited as _;
use crate::support::files::Folder;
use crate::support::quiet::busy;
use crate::support::run::{ended, program, run};
use profile::perfdata::{parse, read};
use profile::record::Record;
use profile::recording::Recording;
use profile::sample::Sample;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Something to sample for a moment, with calls in it.
const WORK: &str = "for i in $(seq 20000); do x=$(($i * $i)); done; seq 300000 | sort >/dev/null";

/// A recording made with these options; `None`, with a message, if that is not possible here.
fn recorded(folder: &Path, name: &str, options: &[&str]) -> Option<PathBuf> {
    let path = folder.join(name);
    let mut perf = program("perf");
    perf.args(["record", "-F", "5000", "-g"]).args(options).stderr(Stdio::piped());
    if options.contains(&"-") {
        perf.stdout(fs::File::create(&path).unwrap());
    } else {
        perf.arg("-o").arg(&path).stdout(Stdio::null());
    }
    match perf.args(["--", "sh", "-c", WORK]).start_limited().map(ended) {
        Ok(output) if output.status.success() => Some(path),
        Ok(output) => {
            let said = &output.stderr;
            eprintln!("skipped: perf record {options:?} is not possible here: {said}");
            None
        }
        Err(error) => {
            eprintln!("skipped: there is no perf here: {error}");
            None
        }
    }
}

/// What perf prints of the fields.
fn script(path: &Path, arguments: &[&str]) -> String {
    let ask = || run(program("perf").args(["script", "--ns", "-i"]).arg(path).args(arguments));
    // Beside other work perf once printed nothing of a file that it reads.
    let ran = (0..3).map(|_| ask()).find(|ran| !ran.stdout.is_empty()).unwrap_or_else(ask);
    assert!(!ran.stdout.is_empty(), "perf script prints nothing: {}", ran.stderr);
    ran.stdout
}

/// Every frame of every call chain, from perf's dump of the raw records: `perf script` leaves out
/// chains that it cannot resolve.
fn frames(path: &Path) -> Vec<u64> {
    let dump = run(program("perf").args(["report", "-D", "-i"]).arg(path)).stdout;
    let frame = |line: &str| {
        let (number, ip) = line.strip_prefix(".....")?.split_once(':')?;
        number.trim().parse::<u32>().ok()?;
        u64::from_str_radix(ip.trim(), 16).ok()
    };
    // `enum perf_callchain_context` ends at -4095.
    dump.lines().filter_map(frame).filter(|ip| *ip < 4095_u64.wrapping_neg()).collect()
}

/// All samples with their events' names.
fn named_samples(recording: &Recording) -> impl Iterator<Item = (&str, &Sample)> {
    recording.records.iter().filter_map(|record| match record {
        Record::Sample { event, sample } => Some((&recording.events[*event].name[..], sample)),
        _ => None,
    })
}

/// Every sample's thread, time, event and address, and every frame, as perf prints them.
fn assert_same(path: &Path, fewest: usize) -> Recording {
    let recording = read(path).unwrap();
    assert_eq!(recording.notes, [""; 0], "{path:?}");
    let printed = script(path, &["-G", "-F", "tid,time,event,ip"]);
    let theirs: Vec<Vec<&str>> = printed.lines().map(|l| l.split_whitespace().collect()).collect();
    let ours: Vec<Vec<String>> = named_samples(&recording)
        .map(|(event, s)| {
            let time = s.time.unwrap();
            vec![
                s.tid.unwrap().to_string(),
                format!("{}.{:09}:", time / 1_000_000_000, time % 1_000_000_000),
                format!("{event}:"),
                format!("{:x}", s.ip.unwrap()),
            ]
        })
        .collect();
    assert!(ours.len() >= fewest, "{} samples", ours.len());
    assert_eq!(ours, theirs, "{path:?}");
    let theirs = frames(path);
    let ours: Vec<u64> =
        named_samples(&recording).flat_map(|(_, s)| &s.chain).map(|f| f.ip).collect();
    assert!(ours == theirs, "{path:?}: {} and {} frames", ours.len(), theirs.len());
    recording
}

#[test]
fn files_streams_and_compressed_files_have_the_samples_that_perf_prints() {
    let _busy = busy();
    let folder = Folder::new();
    for (name, options) in [
        ("file", &["-e", "cpu-clock"][..]),
        ("stream", &["-e", "cpu-clock", "-o", "-"]),
        ("compressed", &["-e", "cpu-clock", "-z"]),
        ("folder", &["-e", "cpu-clock", "--threads"]),
        ("folder compressed", &["-e", "cpu-clock", "--threads", "-z"]),
        ("two events", &["-e", "cpu-clock,page-faults"]),
        ("kernel left out", &["-e", "cpu-clock:u"]),
    ] {
        let Some(path) = recorded(folder.path(), name, options) else { continue };
        let recording = assert_same(&path, 50);
        let mapped = |end: &str| {
            recording.records.iter().any(|record| match record {
                Record::Map { mapping, .. } => mapping.path.ends_with(end),
                _ => false,
            })
        };
        assert!(mapped("/sort"), "{name}");
        if name != "stream" {
            assert_eq!(recording.architecture.as_deref(), Some("x86_64"), "{name}");
            let sort = recording.build_ids.iter().find(|(path, _)| path.ends_with("/sort"));
            assert!(sort.is_none_or(|(_, id)| id.len() == 20), "{name}: {sort:?}");
        }
    }
}

#[test]
fn user_registers_are_those_that_perf_prints() {
    let _busy = busy();
    let folder = Folder::new();
    let options = ["-e", "cpu-clock", "--user-regs=ip,sp", "-o", "-"];
    let Some(path) = recorded(folder.path(), "registers", &options) else { return };
    let recording = assert_same(&path, 50);
    let printed = script(&path, &["-G", "-F", "time,uregs"]);
    // `enum perf_event_x86_regs`: SP is 7, IP is 8.
    let text = |s: &Sample| {
        let time = s.time.unwrap();
        let mut words = vec![format!("{}.{:09}:", time / 1_000_000_000, time % 1_000_000_000)];
        if let Some(registers) = &s.registers {
            words.push(format!("ABI:{}", if registers.wide { 2 } else { 1 }));
            let name = |number| if number == 7 { "SP" } else { "IP" };
            words.extend(registers.values.iter().map(|(n, v)| format!("{}:0x{v:x}", name(*n))));
        }
        words.join(" ")
    };
    let ours: Vec<String> = named_samples(&recording).map(|(_, s)| text(s)).collect();
    let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let theirs: Vec<String> = printed.lines().map(squeeze).collect();
    assert_eq!(ours, theirs);
}

#[test]
fn a_compressed_file_with_a_wrong_byte_gives_what_is_before_it_or_an_error() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(path) = recorded(folder.path(), "damaged", &["-e", "cpu-clock", "-z"]) else { return };
    let whole = fs::read(&path).unwrap();
    let all = named_samples(&parse(&whole, "whole").unwrap()).count();
    let mut noticed = 0;
    for place in 1..40 {
        let mut bytes = whole.clone();
        let at = bytes.len() / 40 * place;
        bytes[at] ^= 0x5a;
        match parse(&bytes, "damaged") {
            Ok(recording) => {
                assert!(named_samples(&recording).count() <= all);
                noticed += usize::from(!recording.notes.is_empty());
            }
            // Most files of few samples are little but headers and one compressed record.
            Err(error) => {
                assert!(error.cause().is_some_and(|c| c.contains("damaged")), "{error}");
                noticed += 1;
            }
        }
    }
    assert!(noticed > 0, "a wrong byte inside compressed data does not pass unseen");
}
