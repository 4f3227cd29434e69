//! How far a long analysis is, as another thread sees it.

use super::unprobed::Unprobed;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// An analysis of functions, each of which is looked at once for its facts, and once for its plan.
#[derive(Debug, Default)]
pub struct Work {
    done: AtomicUsize,
    is_cancelled: AtomicBool,
}

impl Work {
    /// A function is done.
    ///
    /// # Errors
    /// The rest is not wanted any more.
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

    /// The rest is not wanted any more.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }
}
