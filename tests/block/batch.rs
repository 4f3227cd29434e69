//! Batches: rows in, rows out, in order, whole lines, and resumed where they ended.

use super::batch_files::{Batch, HEADER, column, many};
use super::sandbox;
use nix::sys::signal::Signal;

#[test]
fn a_batch_keeps_the_order_rejects_bad_rows_and_resumes_after_a_torn_line() {
    let Some(_busy) = sandbox() else { return };
    let batch = Batch::new(b"hex,sources\n4801d8,a\nzz,b\n480fafc3,c\n0f05,d\n488b03,e\n");
    let whole = batch.output(&["--jobs", "2"]);
    assert!(whole.starts_with(HEADER));
    assert_eq!(column(&whole, 0), ["4801d8", "zz", "480fafc3", "0f05", "488b03"]);
    let statuses = column(&whole, 1);
    assert_eq!((statuses[1].as_str(), statuses[3].as_str()), ("rejected", "rejected"));
    // Cut in the middle of the third row: the first two stay, the rest is measured again.
    let third = whole.match_indices('\n').nth(2).unwrap().0;
    batch.write("out.csv", &whole[..third + 5]);
    let resumed = batch.output(&["--resume"]);
    assert_eq!(column(&resumed, 0), column(&whole, 0));
    assert_eq!(resumed[..third], whole[..third]);
}

#[test]
fn rows_are_read_as_spreadsheets_write_them() {
    let Some(_busy) = sandbox() else { return };
    let input = b"\xef\xbb\xbfhex,note\r\n\"0x48,0x01,0xd8\",\"two\r\nlines\"\r\n\r\n48 01 d8,\r\n\
                  f4\xff,\r\n,nothing\r\n\"48\"01,\r\n\"4801d8\r\n";
    let written = Batch::new(input).output(&[]);
    let rows: Vec<&str> = written.lines().skip(1).collect();
    assert_eq!(rows.len(), 6, "{written}");
    assert!(rows[0].starts_with("4801d8,") && rows[1].starts_with("4801d8,"), "{written}");
    for row in &rows[2..] {
        assert!(row.contains(",rejected,"), "{row}");
    }
    assert!(rows[5].starts_with("\"\"\"4801d8\",rejected,malformed row: a quote"), "{written}");
}

#[test]
fn a_killed_batch_resumes_to_the_same_rows() {
    let Some(_busy) = sandbox() else { return };
    let batch = Batch::new(many(400));
    batch.cut_short(Signal::SIGKILL, 40);
    let before = batch.written();
    let whole = &before[..before.rfind('\n').unwrap() + 1];
    assert!(column(whole, 0).len() < 400, "the batch was done before it was killed");
    let resumed = batch.output(&["--resume"]);
    assert!(resumed.starts_with(whole), "rows that were there are as they were");
    let expected: Vec<String> =
        many(400).lines().map(|l| l.split(',').next().unwrap().to_owned()).collect();
    assert_eq!(column(&resumed, 0), expected);
    for (hex, status) in expected.iter().zip(column(&resumed, 1)) {
        assert_eq!(hex.starts_with("zz"), status == "rejected", "{hex}: {status}");
    }
}

#[test]
fn an_interrupted_batch_ends_after_a_whole_row_and_says_how_to_resume() {
    let Some(_busy) = sandbox() else { return };
    for (signal, status) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let batch = Batch::new(many(400));
        let ended = batch.cut_short(signal, 20);
        let stderr = &ended.stderr;
        assert_eq!(ended.code(), Some(status), "{stderr}");
        assert!(stderr.contains("--resume"), "{stderr}");
        let written = batch.written();
        let rows = written.lines().count() - 1;
        assert!(written.ends_with('\n') && rows < 400);
        assert!(stderr.contains(&format!("{rows} of 400")), "{stderr}");
        assert!(batch.output(&["--resume"]).starts_with(&written));
    }
}

#[test]
fn the_output_of_another_input_is_left_alone() {
    let batch = Batch::new(b"zz01\nzz02\nzz03\n");
    let first = batch.output(&[]);
    batch.write("in.csv", "zz01\nzz04\nzz03\n");
    let refused = batch.run(&["--resume"]);
    assert_eq!(refused.code(), Some(1));
    let stderr = &refused.stderr;
    assert!(stderr.contains("zz04"), "{stderr}");
    assert_eq!(batch.written(), first);
    batch.write("out.csv", "my own notes\n");
    assert_eq!(batch.run(&["--resume"]).code(), Some(1));
    assert_eq!(batch.written(), "my own notes\n");
}
