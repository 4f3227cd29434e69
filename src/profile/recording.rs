//! A recording, whatever file it is in: read record by record ([`Stream`]), or whole ([`Recording`]). Both are a
//! [`Source`] of samples.

use crate::event::Event;
use crate::record::{Bounds, Decoder, Pass, Record};
use pmu::records::raw::Header;
use std::ops::{Deref, DerefMut};
use tma::Result;

/// Properties of a recording besides its records.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// Where it comes from, for messages.
    pub source: String,
    /// The sampled events.
    pub events: Vec<Event>,
    /// Events that samples read without being sampled: names, and ids in READ fields.
    pub counted: Vec<(String, Vec<u64>)>,
    /// Build-ids of files by path, from the recording's own list.
    pub build_ids: Vec<(String, Vec<u8>)>,
    /// Architecture (`uname -m`) of the recorded machine, if known.
    pub architecture: Option<String>,
    /// Kernel release (`uname -r`).
    pub kernel: Option<String>,
    /// Boot id of the kernel that ran (`/proc/sys/kernel/random/boot_id`).
    pub boot: Option<String>,
    /// Processor name.
    pub processor: Option<String>,
    /// Vendor, family, model and stepping, as perf writes them: `GenuineIntel,6,140,1`.
    pub cpuid: Option<String>,
    /// Host name.
    pub host: Option<String>,
    /// Command line of the recorder.
    pub command: Option<Vec<String>>,
    /// Records that the kernel had no room for.
    pub lost: u64,
    /// Samples of each event; empty if they were not counted.
    pub samples: Vec<u64>,
    /// Limits of the recording that a report must state: cut off, records not decoded, ….
    pub notes: Vec<String>,
}

impl About {
    /// Whether times are those of `CLOCK_MONOTONIC`, which just-in-time compilers note.
    pub fn is_monotonic(&self) -> bool {
        self.events.first().is_some_and(|event| event.monotonic)
    }

    /// The event that is shown unless another is asked for: the first that has samples, as a trace (Intel PT,
    /// CoreSight) has none of its own; of a hybrid's kinds of core that were sampled alike, the one that has more.
    pub fn main_event(&self) -> usize {
        let samples = |number: usize| self.samples.get(number).copied().unwrap_or(0);
        let Some(first) = (0..self.events.len()).find(|number| samples(*number) > 0) else {
            return 0;
        };
        let alike = (0..self.events.len()).filter(|number| self.are_alike(first, *number));
        alike.rev().max_by_key(|number| samples(*number)).unwrap_or(first)
    }

    /// Whether two numbers are of one event, or of the same event on two kinds of core of a hybrid.
    fn are_alike(&self, one: usize, other: usize) -> bool {
        let on_core = |number: usize| {
            let name = self.events.get(number)?.name.strip_prefix("cpu_")?;
            name.split_once('/').map(|(_, name)| name)
        };
        one == other || on_core(one).is_some_and(|name| on_core(other) == Some(name))
    }

    /// Whether what is shown by default leaves out samples that a reader may look for: another event comes first, or the
    /// same one was sampled on another kind of core.
    pub fn is_partial(&self) -> bool {
        let shown = self.main_event();
        shown > 0 || (1..self.events.len()).any(|other| self.are_alike(shown, other))
    }

    /// Note on which of several events is shown; `None` for a single event, or where samples were not counted.
    pub fn other_events(&self, shown: usize) -> Option<String> {
        let all = self.events.iter().zip(&self.samples).enumerate();
        let others: Vec<String> = all
            .filter(|(number, _)| *number != shown)
            .map(|(number, (event, samples))| {
                format!("{samples} of {} (--event-number {number})", event.name)
            })
            .collect();
        let (event, samples) = (self.events.get(shown)?, self.samples.get(shown)?);
        (!others.is_empty()).then(|| {
            format!("shown: {samples} samples of {}; not shown: {}", event.name, others.join(", "))
        })
    }
}

/// The records of a recording, which can be read several times.
pub trait Records: std::fmt::Debug + Send + Sync {
    /// Calls `visit` with samples, mappings, thread names, starts and ends, in order of time. Returns the
    /// limits of the records that a report must state.
    ///
    /// # Errors
    /// They cannot be read (any more).
    fn each(&self, visit: &mut dyn FnMut(Record)) -> Result<Vec<String>>;
}

/// Source of samples: a file, reread each time, or memory.
pub trait Source {
    /// Properties besides the records.
    fn about(&self) -> &About;

    /// Calls `visit` with samples, mappings, thread names, starts and ends, in order of time. Returns the
    /// limits of the records that a report must state, unless [`About`] has them.
    ///
    /// # Errors
    /// They cannot be read (any more).
    fn each(&self, visit: &mut dyn FnMut(&Record)) -> Result<Vec<String>>;
}

/// A recording whose records are read one by one.
#[derive(Debug)]
pub struct Stream {
    /// All but the records, as known before they are decoded.
    pub about: About,
    /// The records.
    pub records: Box<dyn Records>,
}

impl Stream {
    /// All of it in memory.
    pub fn whole(self) -> Result<Recording> {
        let mut records = Vec::new();
        let notes = self.records.each(&mut |record| records.push(record))?;
        let mut about = self.about;
        about.notes.extend(notes);
        Ok(Recording { about, records })
    }
}

impl Source for Stream {
    fn about(&self) -> &About {
        &self.about
    }

    fn each(&self, visit: &mut dyn FnMut(&Record)) -> Result<Vec<String>> {
        self.records.each(&mut |record| visit(&record))
    }
}

/// A whole recording in memory, which a large one does not fit into. It dereferences to what is known of it besides its records.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// All but the records.
    pub about: About,
    /// Samples, mappings, thread names, starts and ends, in order of time.
    pub records: Vec<Record>,
}

impl Source for Recording {
    fn about(&self) -> &About {
        &self.about
    }

    fn each(&self, visit: &mut dyn FnMut(&Record)) -> Result<Vec<String>> {
        self.records.iter().for_each(visit);
        Ok(Vec::new())
    }
}

impl Deref for Recording {
    type Target = About;

    fn deref(&self) -> &About {
        &self.about
    }
}

impl DerefMut for Recording {
    fn deref_mut(&mut self) -> &mut About {
        &mut self.about
    }
}

/// Called with each record of the kernel and the time of one that has none; returns the time that it is
/// ordered by.
pub(crate) type Take<'a> = &'a mut dyn FnMut(&Header<'_>, u64) -> u64;

/// A file of the kernel's records.
pub(crate) trait Replay: std::fmt::Debug + Send + Sync {
    /// Calls `take` with each of its records, as they are in the file.
    fn replay(&self, take: Take<'_>) -> Result<()>;
}

/// The kernel's records of a file that was read once for their times.
#[derive(Debug)]
pub(crate) struct Raw<R> {
    pub replay: R,
    pub decoder: Decoder,
    pub bounds: Bounds,
}

impl<R: Replay> Records for Raw<R> {
    fn each(&self, visit: &mut dyn FnMut(Record)) -> Result<Vec<String>> {
        let mut pass = Pass::new(&self.decoder, &self.bounds, visit);
        self.replay.replay(&mut |header, otherwise| pass.take(header, otherwise))?;
        Ok(pass.finish())
    }
}
