//! Batches: rows in, rows out, in order, whole lines, whatever happens in between.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod block_support;

use block_support::{command, run, sandbox, stderr};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::Read as _;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const HEADER: &str = "hex,status,reason,cycles,low,high,unrolled,loop,pages\n";

/// A folder with an input and a place for the output.
struct Batch(tempfile::TempDir);

impl Batch {
    fn new(input: &[u8]) -> Self {
        let batch = Self(tempfile::tempdir().unwrap());
        fs::write(batch.path("in.csv"), input).unwrap();
        batch
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Arguments of a batch that is not held up by neighbours.
    fn args(&self, more: &[&str]) -> Vec<String> {
        let quick = ["--quick", "--budget", "1", "--batch"];
        let mut args: Vec<String> = quick.iter().map(|a| (*a).to_owned()).collect();
        args.extend([self.path("in.csv"), "-o".to_owned(), self.path("out.csv")]);
        args.extend(more.iter().map(|a| (*a).to_owned()));
        args
    }

    fn run(&self, more: &[&str]) -> Output {
        let args = self.args(more);
        run(&args.iter().map(String::as_str).collect::<Vec<_>>(), b"")
    }

    /// The output of a run that succeeds.
    fn output(&self, more: &[&str]) -> String {
        let done = self.run(more);
        assert!(done.status.success(), "{}", stderr(&done));
        self.written()
    }

    fn written(&self) -> String {
        fs::read_to_string(self.path("out.csv")).unwrap_or_default()
    }

    /// Starts one that takes its time, so that a signal finds it at work.
    fn start(&self) -> Child {
        let args = self.args(&["--jobs", "1", "--rounds", "200"]);
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        command(&args).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Starts a batch and sends `signal` once it has written `rows` rows.
    fn cut_short(&self, signal: Signal, rows: usize) -> Output {
        let child = self.start();
        let start = Instant::now();
        while self.written().lines().count() <= rows {
            assert!(start.elapsed() < Duration::from_secs(60), "no {rows} rows in a minute");
            std::thread::sleep(Duration::from_millis(2));
        }
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        child.wait_with_output().unwrap()
    }
}

/// Whether this process ignores `signal`, which the programs that it starts inherit and keep to.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal as i32 - 1) & 1 == 1
}

/// The column `n` of all rows; only the first may hold a comma, quoted.
fn column(text: &str, n: usize) -> Vec<String> {
    text.lines().skip(1).map(|l| l.split(',').nth(n).unwrap().to_owned()).collect()
}

/// `add rax,imm` with many different constants, and every seventh row malformed.
fn many(rows: usize) -> String {
    let row = |i: usize| match i % 7 {
        3 => format!("zz{i:04x},bad\n"),
        _ => format!("4805{:08x},good\n", i as u32),
    };
    (0..rows).map(row).collect()
}

#[test]
fn a_batch_keeps_the_order_rejects_bad_rows_and_resumes_behind_a_torn_line() {
    if !sandbox() {
        return;
    }
    let batch = Batch::new(b"hex,sources\n4801d8,a\nzz,b\n480fafc3,c\n0f05,d\n488b03,e\n");
    let whole = batch.output(&["--jobs", "2"]);
    assert!(whole.starts_with(HEADER));
    assert_eq!(column(&whole, 0), ["4801d8", "zz", "480fafc3", "0f05", "488b03"]);
    let statuses = column(&whole, 1);
    assert_eq!((statuses[1].as_str(), statuses[3].as_str()), ("rejected", "rejected"));
    // Cut in the middle of the third row: the first two stay, the rest is measured again.
    let third = whole.match_indices('\n').nth(2).unwrap().0;
    fs::write(batch.path("out.csv"), &whole[..third + 5]).unwrap();
    let resumed = batch.output(&["--resume"]);
    assert_eq!(column(&resumed, 0), column(&whole, 0));
    assert_eq!(resumed[..third], whole[..third]);
}

#[test]
fn rows_are_read_as_spreadsheets_write_them() {
    if !sandbox() {
        return;
    }
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
fn a_killed_batch_goes_on_to_the_rows_of_one_that_was_not() {
    if !sandbox() {
        return;
    }
    let batch = Batch::new(many(400).as_bytes());
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
fn an_interrupted_batch_ends_behind_a_whole_row_and_says_how_to_go_on() {
    if !sandbox() {
        return;
    }
    for (signal, status) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        if is_ignored(signal) {
            eprintln!(
                "skipped: {signal} is ignored here, as a shell has it for jobs in the background"
            );
            continue;
        }
        let batch = Batch::new(many(400).as_bytes());
        let ended = batch.cut_short(signal, 20);
        let told = stderr(&ended);
        assert_eq!(ended.status.code(), Some(status), "{told}");
        assert!(told.contains("--resume") && told.contains("blocks measured"), "{told}");
        let written = batch.written();
        let rows = written.lines().count() - 1;
        assert!(written.ends_with('\n') && rows < 400);
        assert!(told.contains(&format!("{rows} of 400 rows")), "{told}");
        assert!(batch.output(&["--resume"]).starts_with(&written));
    }
}

#[test]
fn the_output_of_another_input_is_left_alone() {
    let batch = Batch::new(b"zz01\nzz02\nzz03\n");
    let first = batch.output(&[]);
    fs::write(batch.path("in.csv"), "zz01\nzz04\nzz03\n").unwrap();
    let refused = batch.run(&["--resume"]);
    assert_eq!(refused.status.code(), Some(1));
    let told = stderr(&refused);
    assert!(told.contains("row 2") && told.contains("zz04"), "{told}");
    assert_eq!(batch.written(), first);
    fs::write(batch.path("out.csv"), "my own notes\n").unwrap();
    assert_eq!(batch.run(&["--resume"]).status.code(), Some(1));
    assert_eq!(batch.written(), "my own notes\n");
}

#[test]
fn a_full_disk_is_an_error_that_says_what_to_do() {
    let batch = Batch::new(b"zz01\n");
    let args = ["--batch", &batch.path("in.csv"), "-o", "/dev/full"];
    let output = run(&args, b"");
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("/dev/full") && told.contains("make room"), "{told}");
    let resumed = run(&[&args[..], &["--resume"]].concat(), b"");
    assert!(stderr(&resumed).contains("no file"), "{}", stderr(&resumed));
}

#[test]
fn a_file_that_may_grow_no_further_ends_in_a_whole_line() {
    // Rows that are no code need no sandbox, which has a file of its own.
    let input: String = (0..200).map(|i| format!("zz{i:0100}\n")).collect();
    let batch = Batch::new(input.as_bytes());
    let script = "ulimit -f 4; exec \"$0\" block \"$@\"";
    let limited = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_tdtool")])
        .args(batch.args(&[]))
        .output()
        .unwrap();
    let told = stderr(&limited);
    assert_eq!(limited.status.code(), Some(1), "{:?} {told}", limited.status);
    assert!(told.contains("ulimit -f") && told.contains("--resume"), "{told}");
    let written = batch.written();
    assert!(written.ends_with('\n') && written.lines().count() > 2, "{written}");
    let resumed = batch.output(&["--resume"]);
    assert!(resumed.starts_with(&written));
    assert_eq!(resumed.lines().count(), 201);
    // The sandbox's shared memory is such a file: once the process died of it without a word.
    let block = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_tdtool"), "90"])
        .output()
        .unwrap();
    assert_eq!(block.status.code(), Some(3), "{}", stderr(&block));
    assert!(stderr(&block).contains("ulimit -f"), "{}", stderr(&block));
}

#[test]
fn jobs_stay_on_the_processors_that_the_process_may_use() {
    let all = nix::sched::sched_getaffinity(Pid::from_raw(0)).unwrap();
    let (mine, other) =
        (0..nix::sched::CpuSet::count()).fold((None, None), |(mine, other), cpu| {
            match all.is_set(cpu).unwrap() {
                true if mine.is_none() => (Some(cpu), other),
                true => (mine, Some(cpu)),
                false => (mine, other),
            }
        });
    let batch = Batch::new(b"zz01\nzz02\n");
    std::thread::scope(|scope| {
        // A child has the affinity mask of the thread that starts it.
        scope.spawn(|| {
            let mut one = nix::sched::CpuSet::new();
            one.set(mine.unwrap()).unwrap();
            nix::sched::sched_setaffinity(Pid::from_raw(0), &one).unwrap();
            let done = batch.run(&["--jobs", "2"]);
            assert!(done.status.success());
            assert!(stderr(&done).contains("1 jobs instead of 2"), "{}", stderr(&done));
            if let Some(other) = other {
                let refused = run(&["90", "--cpu", &other.to_string()], b"");
                assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
            }
        });
    });
    let both = batch.run(&["--jobs", "2", "--cpu", "0"]);
    assert_eq!(both.status.code(), Some(2), "{}", stderr(&both));
}

#[test]
fn a_terminal_sees_how_far_it_is() {
    if !sandbox() {
        return;
    }
    let batch = Batch::new(many(300).as_bytes());
    let terminal = nix::pty::openpty(None, None).unwrap();
    let args = batch.args(&["--ascii", "--jobs", "1"]);
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let mut child = command(&args).stderr(terminal.slave).spawn().unwrap();
    let mut shown = Vec::new();
    // Reading a terminal whose other end is closed is an error, not an end.
    let _ = fs::File::from(terminal.master).read_to_end(&mut shown);
    assert!(child.wait().unwrap().success());
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.is_ascii(), "{shown:?}");
    assert!(shown.contains("/300 blocks, ") && shown.contains("300 blocks measured"), "{shown:?}");
}
