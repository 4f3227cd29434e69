//! The sandbox: a worker process with nothing mapped but a shared region, no descriptors, and a
//! system-call filter that allows three calls from six instructions.
//!
//! | file | concern |
//! |---|---|
//! | `layout` | layout of the shared region |
//! | `runtime` | the worker's own code |
//! | `filter` | the system-call filter |
//! | `sys`, `restraints` | from the fork to the runtime; restraints that the worker puts on itself, raw system calls |
//! | `worker` | one worker: commands, results, termination |
//! | `every_call` | test: which calls the running kernel lets pass |
//!
//! A hostile block can at worst lose its own measurement. Data that the runner reads from the region after a block
//! ran there is untrusted.

mod filter;
pub mod layout;
mod restraints;
mod runtime;
mod sys;
mod worker;

#[cfg(test)]
mod every_call;

pub use worker::{Ended, Fault, Worker};

/// Offset of the code where a segment ends, in the region.
pub fn return_offset() -> usize {
    layout::RUNTIME + runtime::offset(runtime::Entry::Return)
}

/// Keeps the calling thread on `cpu`. It stays as it is where the kernel refuses.
pub fn pin_to(cpu: usize) {
    let mut set = nix::sched::CpuSet::new();
    if set.set(cpu).is_ok() {
        let _ = nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set);
    }
}

/// Makes the calling thread a batch thread, unless the user has chosen a policy for it: woken, it does
/// not push a worker aside that has just ended its command and is about to wait. The kernel would
/// count that as an involuntary switch of the worker.
pub fn use_batch_scheduling() {
    change_policy(libc::SCHED_OTHER, libc::SCHED_BATCH);
}

/// The calling thread is as any other again, and so are workers that it starts: they must be run as
/// soon as they are woken.
pub fn use_normal_scheduling() {
    change_policy(libc::SCHED_BATCH, libc::SCHED_OTHER);
}

/// Changes the calling thread's scheduling policy, both without priorities, if it is `from`.
fn change_policy(from: i32, to: i32) {
    // SAFETY: all zero is a valid parameter block; the kernel reads it from a live local.
    unsafe {
        if libc::syscall(libc::SYS_sched_getscheduler, 0) == i64::from(from) {
            let parameters: libc::sched_param = std::mem::zeroed();
            libc::syscall(libc::SYS_sched_setscheduler, 0, to, &raw const parameters);
        }
    }
}

/// Random bits from the kernel; a fixed number where it has none yet.
pub fn random() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: the kernel writes at most 8 bytes to a live array of 8.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), 8, libc::GRND_NONBLOCK) };
    if got == 8 { u64::from_le_bytes(bytes) } else { 0x9e37_79b9_7f4a_7c15 }
}

#[cfg(test)]
mod tests {
    use super::layout::{self as at, mail};
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_worker_starts_answers_and_ends() {
        let mut worker = Worker::start(None, false, random()).unwrap();
        worker.put32(at::MAIL + mail::COUNT, 0);
        for _ in 0..3 {
            assert_eq!(worker.command(mail::RUN, Duration::from_secs(5)), Ended::Done);
        }
    }
}
