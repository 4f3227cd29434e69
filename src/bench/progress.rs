//! Progress of a measurement and its cancellation, from another thread.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Shared by the measuring thread and the one that waits for it.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    cancelled: AtomicBool,
    passes: AtomicU32,
    step: Mutex<String>,
}

impl Progress {
    /// Cancels the measurement: it fails at its next pass or pause.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }

    /// Timed passes so far, over all forms of the block and all loops that calibrate the clock.
    pub fn passes(&self) -> u32 {
        self.0.passes.load(Ordering::Relaxed)
    }

    /// Sets the text of the current step.
    pub fn begin(&self, step: String) {
        *self.0.step.lock().unwrap_or_else(PoisonError::into_inner) = step;
    }

    /// The current step; empty if none was set.
    pub fn step(&self) -> String {
        self.0.step.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "nothing is timed there"))]
    pub(super) fn count_pass(&self) {
        self.0.passes.fetch_add(1, Ordering::Relaxed);
    }
}
