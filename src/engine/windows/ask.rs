//! A request for windows, and what comes of it.

use crate::record::SampleAsk;
use crate::topdown::LiveAsk;
use fleet::ring::Dropped;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tma::Error;

/// Windows to record.
#[derive(Debug, Clone)]
pub struct WindowsAsk {
    /// What is measured: its duration is that of a window.
    pub live: LiveAsk,
    /// What is sampled; `None`: counts only.
    pub sample: Option<SampleAsk>,
    /// Time from the begin of a window to that of the next one.
    pub every: Duration,
    /// Length of a window.
    pub length: Duration,
    /// The folder of the windows.
    pub ring: PathBuf,
    /// Most bytes that they take.
    pub most: u64,
    /// Share of one core that recording may take.
    pub budget: f64,
    /// Labels of the host.
    pub labels: BTreeMap<String, String>,
}

/// What a user is told while windows are recorded.
#[derive(Debug, Clone)]
pub enum Event {
    /// The first window that would exceed the budget: what was spent so far, in how much time.
    Thinned {
        /// CPU time.
        spent: Duration,
        /// Wall time.
        wall: Duration,
    },
    /// A window is not in the ring; told once for each run of them.
    Lost(Lost),
}

/// Why there is no window.
#[derive(Debug, Clone)]
pub enum Lost {
    /// It was not measured.
    Unmeasured(Error),
    /// It was not written.
    Dropped(Dropped),
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unmeasured(error) => error.fmt(f),
            Self::Dropped(dropped) => dropped.fmt(f),
        }
    }
}

/// What was recorded.
#[derive(Debug, Clone, Default)]
pub struct Ended {
    /// Windows in the ring, those included that made room since.
    pub written: u64,
    /// Windows left out: the budget, or the one before took too long.
    pub skipped: u64,
    /// Windows that were not measured or not written.
    pub lost: u64,
    /// CPU time that recording took.
    pub spent: Duration,
    /// Wall time.
    pub wall: Duration,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// How the command ended.
    pub exit: Option<pmu::Exit>,
}
