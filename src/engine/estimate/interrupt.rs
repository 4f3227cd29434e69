//! Measurements in isolation end soon after a signal, whatever they are at.

use bench::Progress;
use pmu::perf::Signals;
use probe::capture::Stop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time until the end of the work is noticed.
const NOTICE: Duration = Duration::from_millis(20);

/// Ends measurements and captures that are under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Interrupt {
    pub measurement: Progress,
    pub capture: Stop,
}

impl Interrupt {
    /// Whether a signal has come.
    pub fn is_set(&self) -> bool {
        self.capture.is_set()
    }

    fn set(&self) {
        self.measurement.cancel();
        self.capture.set();
    }
}

/// Does `work`, which is interrupted once a signal comes.
pub(super) fn interruptible<T>(signals: &Signals, work: impl FnOnce(&Interrupt) -> T) -> T {
    let interrupt = Interrupt::default();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Also after a panic, as the scope waits for its thread.
        let _done = Done(&done);
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if signals.wait(NOTICE) {
                    return interrupt.set();
                }
            }
        });
        work(&interrupt)
    })
}

struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
