//! Processes of this machine: the time that they use, and those that they start.

use crate::topdown::named;
use nix::sys::resource::{UsageWho, getrusage};
use pmu::machine::cpu_time;
use std::time::Duration;

/// Seconds of processor time that a process has used (proc_pid_stat(5), fields 14 and 15).
pub(crate) fn processor_time(pid: i32) -> Option<f64> {
    let [user, kernel] = [stat(pid, 14)?, stat(pid, 15)?];
    // USER_HZ, an ABI constant of Linux on x86.
    Some((user + kernel) as f64 / 100.0)
}

/// Processor seconds of the processes that this one has started and waited for.
pub(crate) fn of_children() -> f64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0.0, |usage| cpu_time(&usage).as_secs_f64())
}

/// Whether a process has ended, reaped or not.
pub(crate) fn has_ended(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    let state = stat.ok().and_then(|stat| stat.rsplit_once(')')?.1.trim_start().chars().next());
    matches!(state, None | Some('Z' | 'X'))
}

/// A number of a process, by its field of proc_pid_stat(5), from 4 on.
fn stat(pid: i32, field: usize) -> Option<i64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(field - 3)?.parse().ok()
}

/// How long processes are watched to see which one works.
const LOOK: Duration = Duration::from_millis(200);

/// Which of the processes that this one has started works, in words: a server's workers, a shell's commands.
pub(crate) fn working_child(pid: i32) -> Option<String> {
    let used = |pids: &[i32]| -> Vec<f64> {
        pids.iter().map(|pid| processor_time(*pid).unwrap_or(0.0)).collect()
    };
    let all = descendants(pid);
    if all.is_empty() {
        return None;
    }
    let before = used(&all);
    std::thread::sleep(LOOK);
    let worked = used(&all).into_iter().zip(before).map(|(after, before)| after - before);
    let (most, child) = worked.zip(all).max_by(|a, b| a.0.total_cmp(&b.0))?;
    let name = named(child).filter(|_| most > 0.0)?;
    Some(format!("its child {name} ({child}) works: -p {child}"))
}

/// The processes that a process has started, and those that these have.
pub(crate) fn descendants(pid: i32) -> Vec<i32> {
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let parents: Vec<(i32, i64)> = pids.filter_map(|pid| Some((pid, stat(pid, 4)?))).collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        let own = parents.iter().filter(|(_, of)| *of == i64::from(parent)).map(|(pid, _)| *pid);
        found.extend(own);
        next += 1;
    }
    found.split_off(1)
}
