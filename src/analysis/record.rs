//! A live measurement whose counts go to a session file while it runs.

use super::live::{Core, LiveAsk, Observer, Outcome, Update, measure, prepare};
use super::software;
use crate::collect::{Measurement, Software};
use crate::counts::Counts;
use crate::error::{Error, ErrorKind, Result};
use crate::machine::{Finding, Machine};
use crate::session::{Chunk, SessionWriter, SoftwareCounts, StoredCounts, StoredTable};
use crate::tables::Library;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A measurement that was to be kept.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// What it found.
    pub outcome: Outcome,
    /// Why the session is not complete, if it is not.
    pub failed: Option<Error>,
}

/// Measures as [`super::live()`] does and keeps everything in the session file `path`: the counts
/// of every interval as soon as it is over, and those of the whole run at the end. A file that is
/// there already is kept as `FILE.old`.
///
/// # Errors
/// As [`super::live()`]; the file cannot be created. One that cannot be written any more while the
/// command runs ends the writing, not the measurement: see [`Recorded::failed`].
pub fn record(
    machine: &Machine,
    library: &Library,
    ask: &LiveAsk,
    path: &Path,
    update: &mut dyn FnMut(Update),
) -> Result<Recorded> {
    let (cores, blocked) = prepare(machine, library, ask)?;
    let old = put_aside(path)?;
    let outcome = into(machine, library, ask, path, (&cores, blocked), update);
    if let (Err(error), Some(old)) = (&outcome, &old)
        && matches!(error.kind(), ErrorKind::CommandNotFound | ErrorKind::CommandNotExecutable)
    {
        // Nothing ran, so nothing takes the old session's place.
        let _ = fs::rename(old, path);
    }
    outcome
}

/// Renames a file that is there already to `FILE.old`, as perf does.
fn put_aside(path: &Path) -> Result<Option<PathBuf>> {
    if !path.is_file() {
        return Ok(None);
    }
    let mut old = path.as_os_str().to_owned();
    old.push(".old");
    let old = PathBuf::from(old);
    match fs::rename(path, &old) {
        Ok(()) => Ok(Some(old)),
        Err(e) => {
            let what = format!("cannot put {} aside as {}", path.display(), old.display());
            Err(Error::failed(what).because(e).hint("choose another place with --output"))
        }
    }
}

fn into(
    machine: &Machine,
    library: &Library,
    ask: &LiveAsk,
    path: &Path,
    (cores, blocked): (&[Core], Option<Finding>),
    update: &mut dyn FnMut(Update),
) -> Result<Recorded> {
    let mut writer = SessionWriter::create(path)?;
    writer.append(&Chunk::Header(json!({
        "tool": env!("CARGO_PKG_VERSION"),
        "processor": machine.cpu.signature(),
        "command": ask.typed,
        "interval_ms": ask.interval.map(|i| i.as_millis() as u64),
    })))?;
    for core in cores {
        let (text, _) = library.text(&core.table.name)?;
        let table = StoredTable { name: core.table.name.clone(), text: text.into_owned() };
        writer.append(&Chunk::Table(table))?;
    }
    let mut keeper = Keeper { writer, cores, failed: None };
    let outcome = measure(machine, cores, ask, blocked, update, &mut keeper)?;
    if let Some(error) = keeper.failed.take() {
        // What was measured is still here: it goes to the caller together with the error.
        return Ok(Recorded { outcome, failed: Some(error) });
    }
    let end =
        json!({ "status": outcome.exit.map(|e| e.code()), "interrupted": outcome.interrupted });
    let ended = keeper.writer.append(&Chunk::End(end)).and_then(|()| keeper.writer.finish());
    Ok(Recorded { outcome, failed: ended.err() })
}

/// Writes what the collector hands over; the first failure is kept and ends the writing, not the
/// command.
struct Keeper<'a> {
    writer: SessionWriter,
    cores: &'a [Core],
    failed: Option<Error>,
}

impl Keeper<'_> {
    fn keep(&mut self, chunk: &Chunk) {
        if self.failed.is_none() {
            self.failed = self.writer.append(chunk).err();
        }
    }

    fn counts(&mut self, all: &[Counts]) {
        for counts in all {
            let name = match (&counts.core, self.cores) {
                (Some(name), _) => name.clone(),
                (None, [only, ..]) => only.table.name.clone(),
                (None, []) => continue,
            };
            let stored = StoredCounts { table: name, counts: counts.clone() };
            self.keep(&Chunk::Counts(Box::new(stored)));
        }
    }

    fn software(&mut self, counted: &Software, interval: Option<(Duration, Duration)>) {
        let values = software::to_perf(counted);
        self.keep(&Chunk::Software(SoftwareCounts { scope: None, interval, values }));
    }
}

impl Observer for Keeper<'_> {
    fn interval(&mut self, interval: &crate::collect::Interval) {
        self.counts(&interval.counts);
        self.software(&interval.software, Some(interval.span));
    }

    fn whole(&mut self, measured: &Measurement) {
        self.counts(&measured.counts);
        self.software(&measured.software, None);
    }
}
