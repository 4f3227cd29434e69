//! A live process that is refused after memory was mapped in it for probes.

use super::attached::{Live, counted_or_not};
use super::large::{FUNCTIONS, source, wanted};
use crate::support::files::Folder;
use crate::support::quiet::busy;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn maps(pid: i32) -> Vec<String> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    // A heap or an arena may grow at any time.
    let ours = maps.lines().filter(|line| line.contains(" r-x") || line.contains("tdtool"));
    ours.map(str::to_owned).collect()
}

/// It is stopped by a signal as soon as something of ours is mapped in it.
#[test]
fn a_process_that_is_refused_late_keeps_no_memory_of_ours() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(live) = Live::start(&folder, &source(), &["-O1"]) else { return };
    let wanted = wanted(&live);
    assert_eq!(wanted.len(), FUNCTIONS);
    let before = maps(live.pid());
    let pid = Pid::from_raw(live.pid());
    let mut late = 0;
    for _ in 0..40 {
        let over = AtomicBool::new(false);
        let found = std::thread::scope(|scope| {
            let stopping = scope.spawn(|| {
                let is_over = || over.load(Ordering::SeqCst);
                while !is_over() && maps(live.pid()).len() == before.len() {}
                kill(pid, Signal::SIGSTOP).unwrap();
                !is_over()
            });
            let found = counted_or_not(live.pid(), &wanted, Duration::from_millis(5));
            over.store(true, Ordering::SeqCst);
            (found, stopping.join().unwrap())
        });
        kill(pid, Signal::SIGCONT).unwrap();
        live.assert_restored(0);
        match found {
            (Err(why), true) => {
                assert!(why.contains("stopped by a signal"), "{why}");
                assert_eq!(maps(live.pid()), before, "{why}");
                late += 1;
                if late > 3 {
                    break;
                }
            }
            // It was patched before the signal came; or tracing is not permitted.
            (Err(why), false) => {
                eprintln!("skipped: {why}");
                return;
            }
            (Ok(counts), _) => {
                let stays = counts.notes.iter().any(|note| note.contains("stay mapped"));
                assert!(stays || maps(live.pid()) == before, "{:?}", counts.notes);
            }
        }
    }
    assert!(late > 0, "it was never refused late");
    live.end();
}
