//! Files written from all documents of a measurement, when they are there: a page, or for other tools.

use super::arguments::ReportArgs;
use crate::message::note;
use engine::phases;
use report::documents::Report;
use report::files::{is_stdout, not_written, write_whole};
use report::render::over_time;
use report::render::page::page;
use std::fs::{FileType, OpenOptions};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use tma::{Error, Result};

/// Kind of a file.
#[derive(Clone, Copy)]
enum Kind {
    Page,
    Firefox,
    Trace,
}

/// The files, and the documents so far; these are kept only if there is a file.
pub struct Collected {
    files: Vec<(Kind, PathBuf)>,
    reports: Vec<Report>,
}

impl Collected {
    /// Refuses files that cannot be written, before anything runs; they keep their content until they are written.
    pub fn open(args: &ReportArgs) -> Result<Self> {
        let all =
            [(Kind::Page, &args.html), (Kind::Firefox, &args.firefox), (Kind::Trace, &args.trace)];
        let wanted = all.into_iter().filter_map(|(kind, path)| Some((kind, path.clone()?)));
        let files: Vec<(Kind, PathBuf)> = wanted.collect();
        files.iter().try_for_each(|(kind, path)| kind.check(path))?;
        Ok(Self { files, reports: Vec::new() })
    }

    /// Takes the next document: of an interval, or the whole.
    pub fn add(&mut self, report: &Report) {
        if !self.files.is_empty() {
            self.reports.push(report.clone());
        }
    }

    /// Whether no document is of the whole.
    pub fn has_intervals_only(&self) -> bool {
        self.reports.len() > 1 && self.reports.iter().all(|report| report.interval.is_some())
    }

    /// Writes the files. The last document is of the whole measurement, unless all are of intervals.
    pub fn write(&mut self) -> Result<()> {
        let is_interval = |report: &Report| report.interval.is_some();
        let Some(mut whole) = self.reports.last().cloned() else { return Ok(()) };
        if !is_interval(&whole) {
            self.reports.pop();
        }
        phases::enter(&mut whole, &self.reports);
        for (kind, path) in &self.files {
            kind.refuse_empty(path, &whole, &self.reports)?;
            write_whole(path, &kind.content(&whole, &self.reports)?, &[], kind.option())?;
        }
        Ok(())
    }

    /// Notes where the files are.
    pub fn note_files(&self) {
        for (kind, path) in self.files.iter().filter(|(_, path)| !is_stdout(path)) {
            note(&format!("the {} is in {}", kind.name(), path.display()));
        }
    }
}

impl Kind {
    fn option(self) -> &'static str {
        match self {
            Kind::Page => "--html",
            Kind::Firefox => "--firefox",
            Kind::Trace => "--trace",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Page => "page",
            Kind::Firefox => "profile for the Firefox Profiler",
            Kind::Trace => "trace",
        }
    }

    fn content(self, whole: &Report, intervals: &[Report]) -> Result<Vec<u8>> {
        match self {
            Kind::Page => Ok(page(whole, intervals).into_bytes()),
            Kind::Firefox => over_time::firefox(whole, intervals),
            Kind::Trace => Ok(over_time::trace(whole, intervals)),
        }
    }

    /// Refuses to write a file in which nothing would be shown over time.
    fn refuse_empty(self, path: &Path, whole: &Report, intervals: &[Report]) -> Result<()> {
        let has_samples = whole.timeline.as_ref().is_some_and(|t| !t.taken.samples.is_empty());
        let is_enough = match self {
            Kind::Page => true,
            Kind::Firefox => has_samples || intervals.len() > 1,
            Kind::Trace => intervals.len() > 1,
        };
        if is_enough {
            return Ok(());
        }
        let what = format!("cannot write the {} to {}", self.name(), path.display());
        let error = Error::failed(what);
        Err(match self {
            Kind::Trace => error
                .because("there are fewer than two intervals")
                .hint("shorter ones: `tdtool report --interval 100 --trace FILE -- COMMAND`"),
            _ => error
                .because("there are no samples with times, and no intervals")
                .hint("give a recording with samples: `tdtool record -g -o FILE -- COMMAND`"),
        })
    }

    fn check(self, path: &Path) -> Result<()> {
        let is_stream = |of: FileType| of.is_fifo() || of.is_char_device();
        if is_stdout(path) || path.metadata().is_ok_and(|found| is_stream(found.file_type())) {
            // A pipe is opened when there is something to write.
            return Ok(());
        }
        let is_new = !path.exists();
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        opened.map_err(|e| {
            let what = format!("cannot write the {} to {}", self.name(), path.display());
            not_written(what, path, &e, self.option())
        })?;
        if is_new {
            // It was only to see whether it can be written.
            let _ = std::fs::remove_file(path);
        }
        Ok(())
    }
}
