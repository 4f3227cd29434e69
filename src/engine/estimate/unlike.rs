//! Whether the counted run, or window, did what the sampled one did: a command that finds its input read, its port in use
//! or its files gone does something else.

use super::ask::Functions;
use super::further::Counted;
use crate::count::words;
use report::documents::Exit;
use std::fmt;

/// Samples in blocks that were not entered, from which share of all on the work was another.
const IDLE: f64 = 0.9;
/// A run that ends otherwise, and in less than this share of the time, failed before it did the work.
const SHORT: f64 = 0.5;

/// A counted run or window with other work.
#[derive(Debug)]
pub(super) enum Unlike {
    /// How the run ended, and after how many seconds.
    Run(Exit, f64),
    /// A window, or a run whose end is not known.
    Window,
}

impl Unlike {
    /// Compares what was counted in so many seconds with the samples.
    pub fn of(found: &Functions, counted: &Counted, seconds: f64) -> Option<Self> {
        let failed = ends(found, counted).is_some() && seconds < SHORT * found.hot.seconds;
        let is_unlike = failed || idle(found, counted) >= IDLE;
        let run = |exit| Self::Run(exit, seconds);
        is_unlike.then(|| counted.count.exit.map_or(Self::Window, run))
    }
}

/// How the counted and the sampled run ended, if otherwise.
fn ends(found: &Functions, counted: &Counted) -> Option<(Exit, Exit)> {
    let both = counted.count.exit.zip(found.hot.exit.map(Exit::from));
    both.filter(|(now, before)| now != before)
}

/// The note on a run that ended otherwise after much of the work.
pub(super) fn note(found: &Functions, counted: &Counted) -> Option<String> {
    let (now, before) = ends(found, counted)?;
    Some(format!("the counted run {}, the sampled one {}", words(now), words(before)))
}

/// The share of the samples in blocks that were not entered, of those in counted ones.
fn idle(found: &Functions, counted: &Counted) -> f64 {
    let (mut idle, mut all) = (0, 0);
    for hot in &found.hot.functions {
        let module = hot.path.display().to_string();
        for (start, samples) in &hot.blocks {
            let Ok(entries) = counted.entries(&module, *start) else { continue };
            all += samples;
            idle += if entries == 0 { *samples } else { 0 };
        }
    }
    idle as f64 / (all as f64).max(1.0)
}

impl fmt::Display for Unlike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(exit, seconds) => write!(
                f,
                "the counted run did not do the work of the sampled one: it {} after {seconds:.2} s",
                words(*exit)
            ),
            Self::Window => {
                f.write_str("the sampled code did not run in the window that was counted")
            }
        }
    }
}
