//! The session file while a measurement runs: the collector writes counts, the sampler samples.

use crate::topdown::live::{CountedCore, Observer};
use crate::topdown::software;
use pmu::{Measurement, Software};
use profile::session::{Chunk, SessionWriter, SoftwareCounts, StoredCounts};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tma::Error;
use tma::counts::Counts;

/// The session that counts and samples are written to. The first failure ends the writing, not the
/// command.
#[derive(Clone)]
pub(super) struct SharedFile(Arc<Mutex<Written>>);

struct Written {
    writer: Option<SessionWriter>,
    failed: Option<Error>,
    /// Something that was measured is in the file.
    has_counts: bool,
}

impl SharedFile {
    /// A session whose header is written.
    pub(super) fn new(writer: SessionWriter) -> Self {
        let written = Written { writer: Some(writer), failed: None, has_counts: false };
        Self(Arc::new(Mutex::new(written)))
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a chunk, unless an earlier one could not be written.
    pub(super) fn append(&self, chunk: &Chunk) {
        let written = &mut *self.lock();
        if let (None, Some(writer)) = (&written.failed, &mut written.writer) {
            let measured =
                matches!(chunk, Chunk::Counts(_) | Chunk::Records(_) | Chunk::Software(_));
            written.failed = writer.append(chunk).err().map(|error| match written.has_counts {
                true => error.hint("what was recorded before is readable"),
                false => error.hint(
                    "free some space, or choose another place with --output: the file has no samples \
                     and no counts",
                ),
            });
            written.has_counts |= measured && written.failed.is_none();
        }
    }

    /// Closes the file.
    pub(super) fn finish(&self) {
        let written = &mut *self.lock();
        if let (None, Some(writer)) = (&written.failed, written.writer.take()) {
            written.failed = writer.finish().err();
        }
    }

    /// Why the session is incomplete, if it is.
    pub(super) fn failed(&self) -> Option<Error> {
        self.lock().failed.take()
    }
}

/// Writes the counts that the collector hands over.
pub(super) struct CountsWriter<'a> {
    pub(super) file: SharedFile,
    pub(super) cores: &'a [CountedCore],
}

impl CountsWriter<'_> {
    fn counts(&mut self, all: &[Counts]) {
        for counts in all {
            let name = match (&counts.core, self.cores) {
                (Some(name), _) => name.clone(),
                (None, [only, ..]) => only.table.name.clone(),
                (None, []) => continue,
            };
            let stored = StoredCounts { table: name, counts: counts.clone() };
            self.file.append(&Chunk::Counts(Box::new(stored)));
        }
    }

    fn software(&mut self, counted: &Software, interval: Option<(Duration, Duration)>) {
        let values = software::to_perf(counted);
        self.file.append(&Chunk::Software(SoftwareCounts { scope: None, interval, values }));
    }
}

impl Observer for CountsWriter<'_> {
    fn interval(&mut self, interval: &pmu::Interval) {
        self.counts(&interval.counts);
        self.software(&interval.software, Some(interval.span));
    }

    fn whole(&mut self, measured: &Measurement) {
        self.counts(&measured.counts);
        self.software(&measured.software, None);
    }
}
