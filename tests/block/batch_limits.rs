//! Batches where the system sets limits: full disks, file sizes, processors, terminals.

use super::batch_files::{Batch, many};
use super::{block, command, sandbox};
use crate::support::pty::on_terminal;
use crate::support::run::{TDTOOL, program, run};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

#[test]
fn a_full_disk_is_an_error_that_says_what_to_do() {
    let batch = Batch::new(b"zz01\n");
    let args = ["--batch", &batch.file("in.csv"), "-o", "/dev/full"];
    let output = block(args);
    let stderr = &output.stderr;
    assert_eq!(output.code(), Some(1), "{stderr}");
    assert!(stderr.contains("/dev/full"), "{stderr}");
    let resumed = block([&args[..], &["--resume"]].concat());
    assert_ne!(resumed.code(), Some(0), "{}", resumed.stderr);
}

#[test]
fn a_file_that_may_grow_no_further_ends_in_a_whole_line() {
    // Rows that are no code need no sandbox, which has a file of its own.
    let input: String = (0..200).map(|i| format!("zz{i:0100}\n")).collect();
    let batch = Batch::new(input);
    let script = "ulimit -f 4; exec \"$0\" block \"$@\"";
    let limited =
        |arguments: Vec<String>| run(program("sh").args(["-c", script, TDTOOL]).args(arguments));
    let batched = limited(batch.arguments(&[]));
    assert_eq!(batched.code(), Some(1), "{batched:?}");
    let stderr = &batched.stderr;
    assert!(stderr.contains("--resume"), "{stderr}");
    let written = batch.written();
    assert!(written.ends_with('\n') && written.lines().count() > 2, "{written}");
    let resumed = batch.output(&["--resume"]);
    assert!(resumed.starts_with(&written));
    assert_eq!(resumed.lines().count(), 201);
    // The sandbox's shared memory is such a file: once the process died of it without a word.
    let block = limited(vec!["90".to_owned()]);
    assert_eq!(block.code(), Some(3), "{}", block.stderr);
}

#[test]
fn jobs_stay_on_the_processors_that_the_process_may_use() {
    let all = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let (mine, other) = (0..CpuSet::count()).fold((None, None), |(mine, other), cpu| {
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
            let mut one = CpuSet::new();
            one.set(mine.unwrap()).unwrap();
            sched_setaffinity(Pid::from_raw(0), &one).unwrap();
            let done = batch.run(&["--jobs", "2"]);
            assert!(done.status.success());
            assert!(done.stderr.contains("jobs"), "{}", done.stderr);
            if let Some(other) = other {
                let refused = block(["90", "--cpu", &other.to_string()]);
                assert_eq!(refused.code(), Some(2), "{}", refused.stderr);
            }
        });
    });
    let both = batch.run(&["--jobs", "2", "--cpu", "0"]);
    assert_eq!(both.code(), Some(2), "{}", both.stderr);
}

#[test]
fn a_terminal_shows_the_progress_of_a_batch() {
    let Some(_busy) = sandbox() else { return };
    let batch = Batch::new(many(300));
    let arguments = batch.arguments(&["--ascii", "--jobs", "1"]);
    let (status, shown) = on_terminal(command(arguments));
    assert!(status.success());
    assert!(shown.is_ascii(), "{shown:?}");
    assert!(shown.contains("/300 "), "{shown:?}");
}
