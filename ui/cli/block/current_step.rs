//! What a single block's measurement is at, on standard error, where that is a terminal.

use bench::Watch;
use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Most measurements are over by then: nothing flickers.
const SILENT: Duration = Duration::from_secs(1);
/// Time between two pictures.
const PICTURE: Duration = Duration::from_millis(200);

/// Shows until it is dropped, and then leaves no trace.
pub struct Steps {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Shows what `watch` tells.
pub fn show(watch: &Watch) -> Steps {
    let over = Arc::new(AtomicBool::new(false));
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let shown = std::io::stderr().is_terminal() && !dumb;
    let thread = shown.then(|| {
        let (watch, over) = (watch.clone(), over.clone());
        std::thread::spawn(move || draw(&watch, &over))
    });
    Steps { over, thread }
}

fn draw(watch: &Watch, over: &AtomicBool) {
    let start = Instant::now();
    let mut drawn = false;
    while !over.load(Ordering::Relaxed) {
        std::thread::park_timeout(PICTURE);
        if start.elapsed() < SILENT || over.load(Ordering::Relaxed) {
            continue;
        }
        let width = crate::width::columns(&std::io::stderr());
        let room = width.unwrap_or(80) - 1;
        let line = line(&watch.step(), start.elapsed().as_secs(), watch.passes());
        let line: String = line.chars().take(room).collect();
        let mut err = std::io::stderr().lock();
        // Progress that cannot be shown is no reason to stop.
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

impl Drop for Steps {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It draws and does nothing else.
            let _ = thread.join();
        }
    }
}
