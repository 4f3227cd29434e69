//! Progress of an analysis, visible to other threads.

use super::unprobed::Unprobed;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// An analysis of functions, with two steps each: facts and plan.
#[derive(Debug, Default)]
pub struct Work {
    done: AtomicUsize,
    is_cancelled: AtomicBool,
}

impl Work {
    /// Adds a step.
    ///
    /// # Errors
    /// The analysis was cancelled.
    pub fn step(&self) -> Result<(), Unprobed> {
        self.done.fetch_add(1, Ordering::Relaxed);
        match self.is_cancelled.load(Ordering::Relaxed) {
            true => Err(Unprobed::Cancelled),
            false => Ok(()),
        }
    }

    /// Steps done.
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Cancels the analysis.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }
}
