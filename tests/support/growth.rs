//! How the processor time of a computation grows with its input.

use super::run::{command, program, run};
use super::trial::{assert_holds, claim};
use std::time::Duration;

/// Asserts that `work` on four times the input takes less than ten times as long: sixteen times
/// would be quadratic.
pub fn assert_not_quadratic(what: &str, size: usize, mut work: impl FnMut(usize)) {
    assert_growth(what, size, |size| {
        let start = processor_time();
        work(size);
        processor_time() - start
    });
}

/// The same of tdtool with the arguments that go with a size, and of what it runs.
pub fn assert_program_not_quadratic(
    what: &str,
    size: usize,
    arguments: impl Fn(usize) -> Vec<String>,
) {
    assert_growth(what, size, |size| {
        let own = command(arguments(size));
        let mut timed = program("bash");
        timed.args(["-c", r#"TIMEFORMAT=%U; time "$0" "$@" >/dev/null 2>&1"#]);
        timed.arg(own.get_program()).args(own.get_args());
        timed.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let seconds = run(&mut timed).succeeded().stderr;
        Duration::from_secs_f64(seconds.trim().parse().expect("seconds"))
    });
}

fn assert_growth(what: &str, size: usize, mut time: impl FnMut(usize) -> Duration) {
    assert_holds(&format!("{what}: not quadratic"), || {
        let [once, four_times] = [size, 4 * size].map(&mut time);
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
