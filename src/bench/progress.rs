//! Looking on while a block is measured, and calling it off, from another thread.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Shared by whoever measures and whoever waits for it.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    cancelled: AtomicBool,
    passes: AtomicU32,
    step: Mutex<String>,
}

impl Progress {
    /// Calls the measurement off: it fails at its next pass or pause.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether it was called off.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }

    /// Timed passes so far, over all forms of the block and all loops that calibrate the clock.
    pub fn passes(&self) -> u32 {
        self.0.passes.load(Ordering::Relaxed)
    }

    /// Tells what is measured from now on, in words.
    pub fn begin(&self, step: String) {
        *self.0.step.lock().unwrap_or_else(PoisonError::into_inner) = step;
    }

    /// What is being measured; nothing where nobody told.
    pub fn step(&self) -> String {
        self.0.step.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "nothing is timed there"))]
    pub(super) fn count_pass(&self) {
        self.0.passes.fetch_add(1, Ordering::Relaxed);
    }
}
