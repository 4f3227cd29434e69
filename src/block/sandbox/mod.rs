//! The sandbox: a worker process with nothing mapped but a shared region, no descriptors, and a
//! system-call filter that knows four calls from four instructions.
//!
//! | file | concern |
//! |---|---|
//! | `layout` | where everything lies in the shared region |
//! | `runtime` | the worker's own code |
//! | `filter` | the system-call filter |
//! | `sys` | from the fork to the runtime |
//! | `worker` | one worker: commands, results, end |
//!
//! A hostile block can at worst lose its own measurement. What the engine reads from the region
//! after a block ran there is data from outside and is never trusted.

mod filter;
pub mod layout;
mod runtime;
mod sys;
mod worker;

pub use worker::{Ended, Fault, Layers, Worker};

/// Offset of the code where a segment ends, in the region.
pub fn return_offset() -> usize {
    layout::RUNTIME + runtime::offset(runtime::Entry::Return)
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
        assert_eq!(worker.layers().left_mapped, 0, "{:?}", worker.layers());
    }
}
