//! Commands that read recordings for long, and end at once after a signal.

use crate::message;
use pmu::perf::Signals;
use report::files::between_writes;
use std::path::PathBuf;
use tma::Result;

/// Does `work`, which reads `files`. After Ctrl-C, SIGTERM or SIGHUP the process ends with 128 + the signal, and leaves
/// no half-written file.
pub fn reading<T>(files: &[PathBuf], work: impl FnOnce() -> Result<T>) -> Result<T> {
    let signals = Signals::catch()?;
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    let stop = || {
        let signal = signals.next().map_or(0, |(signal, _)| signal);
        let _complete = between_writes();
        message::plain(if crate::terminal::shows_progress() { "\r\x1b[K" } else { "" });
        let cause = format!("signal {signal} came while {} was read", names.join(", "));
        message::print("error", "interrupted: there is no report", Some(&cause), None);
        std::process::exit(128 + signal)
    };
    signals.during(stop, work)
}
