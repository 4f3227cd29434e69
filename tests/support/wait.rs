//! Waiting for something that a program does.

use std::time::{Duration, Instant};

/// So long anything may take on a busy machine before a test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until it is done, asking every now and then.
///
/// # Panics
/// It is not in a minute: with the reason.
pub fn until(mut done: impl FnMut() -> bool, reason: impl FnOnce() -> String) {
    let start = Instant::now();
    while !done() {
        if start.elapsed() > PATIENCE {
            panic!("{}", reason());
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
}
