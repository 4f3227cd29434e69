//! The current step of a measurement on standard error, if that is a terminal.

use crate::terminal;
use bench::Progress;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Nothing is shown before: most measurements end sooner.
const DELAY: Duration = Duration::from_secs(1);
/// Time between updates.
const INTERVAL: Duration = Duration::from_millis(200);

/// Shows the step until it is dropped, then clears the line.
pub struct CurrentStep {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Shows the step that `watch` reports.
pub fn show(watch: &Progress) -> CurrentStep {
    let ended = Arc::new(AtomicBool::new(false));
    let thread = terminal::shows_progress().then(|| {
        let (watch, ended) = (watch.clone(), ended.clone());
        std::thread::spawn(move || draw(&watch, &ended))
    });
    CurrentStep { ended, thread }
}

fn draw(watch: &Progress, ended: &AtomicBool) {
    let start = Instant::now();
    let mut drawn = false;
    while !ended.load(Ordering::Relaxed) {
        std::thread::park_timeout(INTERVAL);
        if start.elapsed() < DELAY || ended.load(Ordering::Relaxed) {
            continue;
        }
        let room = terminal::columns(&std::io::stderr()).unwrap_or(80) - 1;
        let line = line(&watch.step(), start.elapsed().as_secs(), watch.passes());
        let line: String = line.chars().take(room).collect();
        let mut err = std::io::stderr().lock();
        // A failure to show the step does not end the measurement.
        let _ = write!(err, "\r{line}\x1b[K").and_then(|()| err.flush());
        drawn = true;
    }
    if drawn {
        let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
    }
}

fn line(step: &str, seconds: u64, passes: u32) -> String {
    let step = if step.is_empty() { "measuring" } else { step };
    format!("{seconds} s, {passes} passes; {step}")
}

impl Drop for CurrentStep {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic in it costs nothing but the display.
            let _ = thread.join();
        }
    }
}
