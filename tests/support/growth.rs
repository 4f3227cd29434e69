//! How the processor time of a computation grows with its input.

use super::trial::{assert_holds, claim};
use std::time::Duration;

/// Asserts that `work` on four times the input takes less than ten times as long: sixteen times
/// would be quadratic.
pub fn assert_not_quadratic(what: &str, size: usize, mut work: impl FnMut(usize)) {
    assert_holds(&format!("{what}: not quadratic"), || {
        let [once, four_times] = [size, 4 * size].map(|size| {
            let start = processor_time();
            work(size);
            processor_time() - start
        });
        // Less than a millisecond is as good as nothing.
        let holds = four_times < 10 * once.max(Duration::from_millis(1));
        claim(holds, || format!("{four_times:?} after {once:?}")).into()
    });
}

/// Processor time of this thread so far.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one `timespec`.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
