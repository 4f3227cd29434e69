//! Writes the session file while a measurement runs (the collector writes counts, the sampler samples), and copies
//! recorded programs that no path leads to afterwards: those of other mount namespaces, and replaced ones.
//!
//! Copies are saved by build-id, in the layout of perf's cache.

use crate::topdown::live::{CountedCore, Observer};
use crate::topdown::software;
use pmu::sampling::ElsewhereFile;
use pmu::{Measurement, Software};
use profile::session::{Chunk, SessionWriter, SoftwareCounts, StoredCounts};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tma::Error;
use tma::counts::Counts;

/// Most bytes of a program that is copied.
const LARGEST: u64 = 512 << 20;
/// Most bytes of all of them; the oldest make room.
const MOST: u64 = 2 << 30;

/// Copies these files into `folder`; notes on what could not be.
pub(super) fn keep(folder: &Path, files: &[ElsewhereFile]) -> Vec<String> {
    let mut notes = Vec::new();
    for one in files {
        make_room(folder);
        if let Err(error) = copy(folder, one) {
            let id: String =
                one.build_id.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
            notes.push(format!(
                "a program that no path leads to (build-id {id}…) was not kept for later reports: {error}"
            ));
        }
    }
    if !files.is_empty() {
        make_room(folder);
    }
    notes
}

fn copy(folder: &Path, one: &ElsewhereFile) -> io::Result<()> {
    let digits: Vec<String> = one.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let Some((first, rest)) = digits.split_first() else { return Ok(()) };
    let own = folder.join(".build-id").join(first).join(rest.concat());
    if own.join("elf").exists() {
        return Ok(());
    }
    let length = one.file.metadata()?.len();
    if length > LARGEST {
        let why = format!("it has {length} bytes; the limit is {LARGEST}");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    let content = tma::files::read_open(&one.file, LARGEST)?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&own)?;
    let part = own.join(format!("elf.{}", std::process::id()));
    let mut options = File::options();
    let mut out = options.write(true).create_new(true).mode(0o600).open(&part)?;
    let written = out.write_all(&content).and_then(|()| fs::rename(&part, own.join("elf")));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

/// Removes the oldest programs beyond the limit.
fn make_room(folder: &Path) {
    let folders = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let mut all: Vec<(SystemTime, u64, PathBuf)> = folders(&folder.join(".build-id"))
        .flat_map(|first| folders(&first.path()))
        .filter_map(|own| {
            // Including remains of a copy that was killed.
            let files: Vec<_> = folders(&own.path()).filter_map(|f| f.metadata().ok()).collect();
            let last = files.iter().filter_map(|found| found.modified().ok()).max()?;
            Some((last, files.iter().map(fs::Metadata::len).sum(), own.path()))
        })
        .collect();
    all.sort();
    let mut total: u64 = all.iter().map(|(_, length, _)| length).sum();
    for (_, length, path) in all {
        if total <= MOST {
            break;
        }
        let _ = fs::remove_dir_all(path);
        total -= length;
    }
}

/// The session that counts and samples are written to. The first failure ends the writing, not the
/// command.
#[derive(Clone)]
pub(super) struct SharedFile(Arc<Mutex<Written>>);

struct Written {
    writer: Option<SessionWriter>,
    failed: Option<Error>,
    /// Something that was measured is in the file.
    has_counts: bool,
    /// Bytes of records that it may still take.
    left: u64,
    /// Whether records were left out, as it may take no more.
    is_at_limit: bool,
}

impl SharedFile {
    /// A session whose header is written, which takes at most so many bytes of records.
    pub(super) fn new(writer: SessionWriter, left: u64) -> Self {
        let (writer, has_counts, is_at_limit) = (Some(writer), false, false);
        let written = Written { writer, failed: None, has_counts, left, is_at_limit };
        Self(Arc::new(Mutex::new(written)))
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a chunk, unless an earlier one could not be written.
    pub(super) fn append(&self, chunk: &Chunk) {
        let written = &mut *self.lock();
        if let Chunk::Records(batch) = chunk {
            let length = batch.bytes.len() as u64;
            written.is_at_limit |= length > written.left;
            if written.is_at_limit {
                return;
            }
            written.left -= length;
        }
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
        let mut written = self.lock();
        let at_limit = || {
            Error::failed("the last samples are missing")
                .because("the recording has as many bytes as it may")
                .hint("a lower -F, or a shorter --for")
        };
        let is_at_limit = written.is_at_limit;
        written.failed.take().or_else(|| is_at_limit.then(at_limit))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_program_is_kept_where_perf_would_look_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::write(&path, "content").unwrap();
        let file = Arc::new(File::open(&path).unwrap());
        fs::remove_file(&path).unwrap();
        let one = ElsewhereFile { build_id: vec![0xab, 0x01, 0x02], file };
        for _ in 0..2 {
            assert_eq!(keep(folder.path(), std::slice::from_ref(&one)), [""; 0]);
        }
        let kept = folder.path().join(".build-id/ab/0102/elf");
        assert_eq!(fs::read_to_string(kept).unwrap(), "content");
    }
}
