//! Lines as the tools write them: perf 6.1's output of the recordings of `../shared`, and the forms of other
//! versions by perf's sources.
#![allow(clippy::unwrap_used)]

use super::lines::Text;
use super::script::{Line, read};
use super::*;
use crate::record::Record;
use crate::sample::{Recorded, Sample};

fn samples(text: &str, kind: Kind) -> (Vec<Sample>, Stream, Vec<String>) {
    let stream = stream(Input::of(text.as_bytes()), "text".into(), kind, None).unwrap();
    let mut all = Vec::new();
    let notes = stream
        .records
        .each(&mut |record| {
            if let Record::Sample { sample, .. } = record {
                all.push(sample);
            }
        })
        .unwrap();
    (all, stream, notes)
}

#[test]
fn entries_of_all_versions_of_perf_are_read() {
    let old = "  40062f 0x40062f/0x4005b0/P/-/-/9 0x400645/0x4005ff/M/-/-/1";
    let typed = "  40062f 0x40062f/0x4005b0/P/-/-/9/ 0x400645/0x4005ff/M/-/-/1/COND";
    let new = "  40062f 0x40062f/0x4005b0/P/-/-/9//- 0x400645/0x4005ff/M/-/-/1/COND/-";
    let files = "  40062f 0x40062f(/a b/c)/0x4005b0(/x)/P/-/-/9/ 0x400645/0x4005ff/M/-/-/1/";
    let of = |line: &str| match read(line).unwrap() {
        Line::Sample(head, branches) => (head.ip, branches),
        other => panic!("{other:?}"),
    };
    let (ip, branches) = of(old);
    assert_eq!(ip, Some(0x40_062f));
    let seen: Vec<_> = branches.iter().map(|b| (b.from, b.to, b.mispredicted, b.cycles)).collect();
    assert_eq!(
        seen,
        [(0x40_062f, 0x40_05b0, Some(false), Some(9)), (0x40_0645, 0x40_05ff, Some(true), Some(1))]
    );
    assert_eq!((of(typed), of(new)), (of(old), of(old)));
    assert_eq!(of(&files.replace("a b", "ab")), of(old));
    assert!(read(files).is_none(), "a space in a path separates words");
    let amd = of(" 1 0x10/0x20/-/-/-/0//SPEC_WRONG_PATH 0x30/0x40/P/-/-/0//SPEC_CORRECT_PATH");
    assert_eq!(amd.1.iter().map(|b| b.wrong_path).collect::<Vec<_>>(), [true, false]);
    assert!(amd.1.iter().all(|b| b.cycles.is_none()), "all are 0: not recorded");
    assert_eq!(of(" 1 0x10/0x20/PN/-/-/3//- 0x30/0x40/P/-/-/3//-").1.len(), 1, "N: not taken");
}

#[test]
fn a_line_that_is_cut_is_counted_and_named() {
    let text = "// Invalid perf line\n 40062f 0x40062f/0x4005b0/P/-/-/9\n 40062f 0x40062f/0x40";
    let (samples, _, notes) = samples(text, Kind::PerfScript);
    assert_eq!(samples.len(), 1);
    assert_eq!(notes, ["2 lines could not be read and are left out; the first is line 1"]);
}

#[test]
fn thread_time_event_and_mappings_are_read() {
    let text = "\
kernels  4711     0.999999: PERF_RECORD_MMAP2 4711/4711: [0x401000(0x79000) @ 0x1000 00:00 0 0]: r-xp /k
kernels  4711/4712 [002]    1.000000:        211 br:u:            401550 main+0x60 (/k) 0x40157f/0x401550/P/-/-/4/COND
kernels  4711     1.000001:        211 cycles:            401550 main+0x60 (/k) 0x40157f/0x401550/P/-/-/4/COND";
    assert_eq!(recognise(text.as_bytes()), Some(Kind::PerfScript));
    let (samples, stream, notes) = samples(text, Kind::PerfScript);
    assert_eq!(notes, [""; 0]);
    let names: Vec<_> = stream.about.events.iter().map(|e| &e.name[..]).collect();
    assert_eq!(names, ["br:u", "cycles"]);
    assert_eq!((samples[0].pid, samples[0].tid), (Some(4711), Some(4712)));
    assert_eq!((samples[0].time, samples[0].ip), (Some(1_000_000_000), Some(0x40_1550)));
    let Some(Line::Map(mapping)) = read(text.lines().next().unwrap()) else { panic!() };
    assert_eq!((mapping.start, mapping.length, mapping.offset), (0x40_1000, 0x7_9000, 0x1000));
    assert_eq!((&mapping.path[..], mapping.executable), ("/k", Some(true)));
}

/// `perf script -F +brstackinsn` and `-F ip,sym,brstack` with call chains.
#[test]
fn branches_on_lines_of_their_own_belong_to_their_sample() {
    let text = "\
 kernels  4711     1.000000:        211 br:u:            401550 main+0x60 (/k)
\tmain+143:
\t000000000040157f\tinsn: 75 cf                   \t# PRED 3 cycles [3]
\t0000000000401550\tinsn: 48 89 da
\t000000000040157f\tinsn: 75 cf                   \t# MISPRED 4 cycles [7] 3.75 IPC
\t0000000000401550\tinsn: 48 89 da

 kernels  4711     1.000002:        211 br:u:
\t          401550 main
\t          401e1e start
 0x40157f/0x401550/P/-/-/4 0x40157f/0x401550/P/-/-/4";
    assert_eq!(recognise(text.as_bytes()), Some(Kind::PerfScript));
    let (samples, ..) = samples(text, Kind::PerfScript);
    let first: Vec<_> = samples[0].branches.iter().map(|b| (b.mispredicted, b.cycles)).collect();
    assert_eq!(first, [(Some(true), Some(4)), (Some(false), Some(3))], "newest first");
    assert!(samples[0].branches.iter().all(|b| (b.from, b.to) == (0x40_157f, 0x40_1550)));
    assert_eq!((samples[1].ip, samples[1].branches.len()), (Some(0x40_1550), 2));
}

/// A text cut at its beginning: instructions of which the sample's head is missing.
#[test]
fn instructions_without_a_sample_are_of_an_event_that_is_not_named() {
    let text = "\
\t000000000040157f\tinsn: 75 cf                   \t# PRED 3 cycles [3]
\t0000000000401550\tinsn: 48 89 da
";
    let (_, stream, _) = samples(text, Kind::PerfScript);
    let names: Vec<_> = stream.about.events.iter().map(|event| &event.name[..]).collect();
    assert_eq!(names, ["event not recorded"]);
    let (samples, ..) = samples(text, Kind::PerfScript);
    assert_eq!(samples[0].branches.len(), 1);
}

/// `perf script --itrace=b` (Documentation/perf-intel-pt.txt), by hand.
#[test]
fn branches_of_a_hardware_trace_are_one_trace_until_it_stops() {
    let text = "\
 ls 21199 [2] 5.000001:  1  branches:uH:  401000 a+0x0 (/ls) =>   401100 b+0x0 (/ls)
 ls 21199 [2] 5.000002:  1  branches:uH:  401110 b+0x10 (/ls) =>   401005 a+0x5 (/ls)
 ls 21199 [2] 5.000003:  1  branches:uH:  401010 a+0x10 (/ls) =>        0 [unknown] ([unknown])
 ls 21199 [2] 5.000004:  1  branches:uH:       0 [unknown] ([unknown]) =>   401012 a+0x12 (/ls)
 ls 21199 [2] 5.000005:  1  branches:uH:  401020 a+0x20 (/ls) =>   401000 a+0x0 (/ls)";
    assert_eq!(recognise(text.as_bytes()), Some(Kind::PerfScript));
    let (samples, ..) = samples(text, Kind::PerfScript);
    let numbers: Vec<_> = samples.iter().map(|s| (s.branches.len(), s.recorded)).collect();
    assert_eq!(numbers, [(2, Recorded::TraceBegins), (1, Recorded::TraceBegins)]);
    assert_eq!(samples[0].branches[0].from, 0x40_1110, "newest first");
    assert_eq!((samples[0].ip, samples[0].branches[0].cycles), (None, None));
}

/// Valgrind's output, by hand: two instructions, a branch back, a repeated string instruction.
#[test]
fn a_trace_of_instructions_has_a_branch_where_the_next_one_does_not_follow() {
    let mut text =
        "==1== Lackey\nI  0401000,3\n L 1fff0,8\nI  0401003,2\nI  0401000,3\n".to_owned();
    text += "I  0401003,2\nI  0401005,3\nI  0401005,3\nI  0401008,1\n";
    assert_eq!(recognise(text.as_bytes()), Some(Kind::Lackey));
    let (first, _, notes) = samples(&text, Kind::Lackey);
    assert_eq!((first[0].branches.len(), notes.len()), (1, 0));
    assert_eq!((first[0].branches[0].from, first[0].branches[0].to), (0x40_1003, 0x40_1000));
    let long = "I  0401000,3\nI  0401003,2\n".repeat(10_000);
    let pieces: Vec<_> =
        samples(&long, Kind::Lackey).0.iter().map(|s| (s.branches.len(), s.recorded)).collect();
    let (begins, continues) = (Recorded::TraceBegins, Recorded::TraceContinues);
    assert_eq!(pieces, [(4096, begins), (4096, continues), (1807, continues)]);
}

/// The line between may have been the jump or any other instruction.
#[test]
fn no_branch_is_made_of_a_line_that_cannot_be_read() {
    let text = "I  0401000,3\nI  0401003,2\nI  0401000,3\nI  0XX1003,2\nI  0401100,3\nI  0401103,2\nI  0401100,3\n";
    let (pieces, _, notes) = samples(text, Kind::Lackey);
    let seen: Vec<_> = pieces.iter().map(|s| (s.branches[0].from, s.recorded)).collect();
    let begins = Recorded::TraceBegins;
    assert_eq!((seen, notes.len()), (vec![(0x40_1003, begins), (0x40_1103, begins)], 1));
    assert!(pieces.iter().all(|s| s.branches.len() == 1));
}

#[test]
fn a_text_of_too_many_events_is_refused() {
    let text = |n: usize| {
        let line = |i| format!("a 1 1.{i:06}: 1 ev{i}: 401146 0x401155/0x40113a/P/-/-/3\n");
        (0..n).map(line).collect::<String>()
    };
    let open = |n| stream(Input::of(text(n).as_bytes()), "t".into(), Kind::PerfScript, None);
    assert_eq!(open(1000).unwrap().about.events.len(), 1000);
    assert!(open(1001).unwrap_err().to_string().contains("t"));
}

/// The formats of AutoFDO's sample_reader.cc and of llvm-profgen 14.
#[test]
fn counts_are_read_by_their_parts_and_a_damage_has_its_line() {
    let program = Program::read(&std::env::current_exe().unwrap()).unwrap();
    let parse = |text: &str| {
        assert_eq!(recognise(text.as_bytes()), Some(Kind::Counts), "{text}");
        Counts::parse(Text { input: Input::of(text.as_bytes()), source: "t".into() }, &program)
    };
    let profgen = parse("1\n10-20:7\n2\n20->10:6\n20->30:1\n").unwrap();
    assert_eq!((profgen.ranges[&(0x10, 0x20)], profgen.branches[&(0x20, 0x30)]), (7, 1));
    assert!(!profgen.is_autofdo);
    assert!(parse("1\n10-20:7\n0\n1\n20->10:6\n").unwrap().is_autofdo);
    for (text, line) in [("1\n10-20:7\n2\n20->10:6\n", 4), ("1\n10-20:7\n1\n20>10:6\n", 4)] {
        let error = parse(text).unwrap_err();
        assert!(error.what().contains(&format!("at line {line}")), "{error}");
    }
    assert_eq!(recognise(b"12\nhello\n"), None);
    let most = 1_u64 << 53;
    assert!(parse(&format!("1\n10-20:{most}\n0\n")).is_ok());
    let error = parse(&format!("1\n10-20:7\n1\n20->10:{}\n", most + 1)).unwrap_err();
    assert!(error.what().contains("at line 4"), "{error}");
}
