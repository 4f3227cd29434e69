//! Files that are no recordings, or broken ones: one clear error with the place, or a listed line;
//! never a panic, a hang or a file read by half in silence.

use super::of_bytes;
use crate::support::files::{Folder, fixture, text};
use crate::support::growth::assert_not_quadratic;
use crate::support::quiet::busy;
use crate::support::shown;
use profile::counts::{Options, Over, aggregate, counts, read};
use proptest::prelude::*;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use tma::Error;
use tma::tables::Table;

fn error(bytes: &[u8]) -> Error {
    of_bytes(bytes).expect_err("must be refused")
}

#[test]
fn unreadable_empty_and_foreign_files_say_what_they_are() {
    let folder = Folder::new();
    let refused =
        |path: &str| shown::error(&read(&[Path::new(path)]).expect_err("must be refused"), &folder);
    let mut all = vec![refused("/no/such/file.csv"), refused(text(folder.path()))];
    for bytes in [
        &b""[..],
        b"PERFILE2\x68\0\0\0",
        b"\x7fELF\x02\x01",
        b"\x1f\x8b\x08\0",
        b"abc\0def\n",
        b"1,,cycles,1,100.00,,\n1,,cyc\0les,1,100.00,,\n",
        b"\n  \n\n",
        b"hello\nworld\n",
        b" Performance counter stats for 'true':\n\n 12 cycles\n",
        b"Timestamp,CPUs,Area,Node,Value,Unit\n",
        b"event,value\n",
        b"event,value\na,b\n",
        b"\x89TDS\r\n\x1a\n",
        b"\x89TDS\r\n\x1a\n\x01\0\0\0\0\0\0\0",
    ] {
        all.push(format!("{}\n{}", bytes.escape_ascii(), refused(&folder.write("file", bytes))));
    }
    assert_shown!("files_that_hold_no_counts", all.join("\n"));
}

#[test]
fn a_cut_off_file_is_read_and_says_so() {
    let r = of_bytes(b"5,,cycles,9,100.00,,\n7,,instructions,9,10").unwrap();
    assert_eq!(r.skipped.len(), 1);
    assert_eq!(r.skipped[0].line, 2);
    assert!(r.notes[0].contains(":2:"), "{:?}", r.notes);
    // A number cut in its middle still is a number: the note is all that can be said.
    let r = of_bytes(b"event,value\ncycles,100\nex_ret_ops,55").unwrap();
    assert!(r.notes[0].contains(":3:"), "{:?}", r.notes);
}

#[test]
fn bytes_that_are_not_utf8_are_reported() {
    let r = of_bytes(b"caf\xe9-7,5,,cycles,9,100.00,,\n").unwrap();
    assert!(r.notes[0].contains(":1:"), "{:?}", r.notes);
    assert_eq!(r.blocks.len(), 1);
}

#[test]
fn a_line_of_ten_megabytes_is_refused_with_its_place() {
    let _busy = busy();
    for byte in [b'a', b',', b'/', b'"', b'{', b'1', b'\\'] {
        assert_not_quadratic("a long line", 10 << 18, |length| {
            let mut bytes = b"5,,cycles,9,100.00,,\n".to_vec();
            bytes.extend(std::iter::repeat_n(byte, length));
            assert!(error(&bytes).what().contains(":2:"));
        });
    }
}

#[test]
fn long_lines_within_the_limit_take_no_quadratic_time() {
    let _busy = busy();
    for piece in ["a,", "/,", "cpu/a,", "\"", "1,", ",", "{\"a\":", "::", "S0-D0,", "<not ", ";|"] {
        assert_not_quadratic(piece, 1 << 18, |length| {
            let line = piece.repeat(length / piece.len() - 1);
            let bytes = format!("{line}\n5,,cycles,9,100.00,,\n{line}\n");
            let _ = of_bytes(bytes.as_bytes());
        });
    }
}

#[test]
fn a_hundred_megabytes_are_read_line_by_line() {
    let _busy = busy();
    // Without optimisation a fifth of it, so that the test stays quick.
    let megabytes = if cfg!(debug_assertions) { 20 } else { 100 };
    let line = "     1.000000000,CPU12,123456789,,cpu/event=0x9c,umask=0x1/,1000000,25.00,,\n";
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let block = line.repeat(1000);
    let blocks = megabytes * 1_000_000 / block.len() + 1;
    for _ in 0..blocks {
        file.write_all(block.as_bytes()).unwrap();
    }
    let r = read(&[file.path()]).unwrap();
    assert_eq!(r.blocks.iter().map(|b| b.rows.len()).sum::<usize>(), blocks * 1000);
    let table = events::library().load("skx").unwrap();
    assert_eq!(counts(&r, &table, Options::default()).unwrap().counts.len(), 1);
}

#[test]
fn many_lines_of_nonsense_are_counted_when_they_are_no_longer_listed() {
    let mut text = "nonsense\n".repeat(1000);
    text += "5,,cycles,9,100.00,,\n";
    let r = of_bytes(text.as_bytes()).unwrap();
    assert_eq!(r.skipped.len() as u64 + r.skipped_more, 1000);
}

/// Reads and imports; only panics and hangs are failures.
fn survive(bytes: &[u8]) {
    thread_local! {
        static TABLE: std::sync::Arc<Table> = events::library().load("zen4").unwrap();
    }
    if let Ok(recording) = of_bytes(bytes) {
        TABLE.with(|table| {
            let imported = counts(&recording, table, Options { library: None, forced: true });
            if let Ok(imported) = imported {
                for over in [Over::Scopes, Over::Intervals, Over::All] {
                    aggregate(&imported.counts, over);
                }
            }
        });
    }
}

fn good_files() -> Vec<Vec<u8>> {
    let entries = fs::read_dir(fixture("import")).unwrap().map(|e| e.unwrap().path());
    let mut files: Vec<_> = entries.filter(|p| p.extension().is_some_and(|e| e != "md")).collect();
    files.sort();
    files.iter().map(|p| fs::read(p).unwrap()).collect()
}

/// Pieces that mean something to some format.
fn pieces() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        ",",
        ";",
        "\n",
        "\n",
        "5",
        "100.00",
        "9",
        "<not counted>",
        "cycles",
        "cpu/",
        "/",
        "event=0xc0",
        "1.000000000",
        "summary",
        "S0-D0-C1",
        "CPU3",
        "a-7",
        "0.15%",
        "msec",
        "{\"event\" : ",
        "}",
        "\"counter-value\" : \"5\"",
        "event,value",
        "trial",
        "Timestamp,CPU,Group,Event,Value",
        "#SMT_ON",
        "ex_ret_ops",
        ":u",
        ":c6",
        "r00c0",
        "-1",
        "nan",
        "1e999",
        "\"",
        "\t",
        "|",
        "18446744073709551616",
        "ls_not_halted_cyc",
        "# started on",
        "é",
        "\u{0}",
        "  ",
    ]);
    prop::collection::vec(known, 0..120).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        survive(&bytes);
    }

    #[test]
    fn meaningful_pieces_in_any_order_do_not_panic(text in pieces()) {
        survive(text.as_bytes());
    }

    #[test]
    fn good_files_with_changed_bytes_do_not_panic(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in any::<prop::sample::Index>(),
        cuts in any::<bool>(),
    ) {
        let files = good_files();
        let mut bytes = which.get(&files).clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cuts {
            bytes.truncate(cut.index(bytes.len()));
        }
        survive(&bytes);
    }
}
