//! Measurements in isolation end soon after a signal, whatever they are at.

use bench::Progress;
use pmu::perf::Signals;
use probe::capture::Stop;

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
    signals.during(|| interrupt.set(), || work(&interrupt))
}
