//! The cost of one breakpoint hit on this machine.

use crate::perf::Breakpoint;
use nix::errno::Errno;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Calls that are timed.
const CALLS: u32 = 2_000;

/// The function with the breakpoint.
#[inline(never)]
extern "C" fn reached(value: u64) -> u64 {
    black_box(value.wrapping_mul(3) ^ 0x5eed)
}

fn call() -> Duration {
    let begin = Instant::now();
    for value in 0..CALLS {
        black_box(reached(black_box(value.into())));
    }
    begin.elapsed()
}

/// Mean time of one hit, measured on a function of this program; the minimum of three runs.
///
/// # Errors
/// The kernel's answer if breakpoints cannot be opened.
pub fn cost() -> Result<Duration, Errno> {
    let mut breakpoint = Breakpoint::open(0, reached as *const () as u64)?;
    let with = (0..3).map(|_| call()).min().unwrap_or_default();
    breakpoint.disable();
    let hits = breakpoint.count();
    drop(breakpoint);
    if hits == 0 {
        // A hypervisor that hides the debug registers.
        return Err(Errno::ENOTSUP);
    }
    Ok(with.saturating_sub(call()) / CALLS)
}
