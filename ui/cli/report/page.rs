//! The page of `--html`, collected from the documents of a measurement.

use engine::documents::Report;
use engine::files::{not_written, write_whole};
use engine::render::page::page;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use tma::Result;

/// The option, for messages.
const OPTION: &str = "--html";

/// A page to be written when all documents are there.
pub struct Page {
    path: PathBuf,
    reports: Vec<Report>,
}

impl Page {
    /// Refuses a file that cannot be written, before anything runs; it keeps its content until the page is written.
    pub fn open(path: &Path) -> Result<Self> {
        let is_new = !path.exists();
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        opened.map_err(|e| {
            not_written(format!("cannot write the page to {}", path.display()), path, &e, OPTION)
        })?;
        if is_new {
            // It was only to see whether it can be written.
            let _ = std::fs::remove_file(path);
        }
        Ok(Self { path: path.to_owned(), reports: Vec::new() })
    }

    /// Where it goes.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the next document: of an interval, or the whole.
    pub fn add(&mut self, report: &Report) {
        self.reports.push(report.clone());
    }

    /// Whether no document is of the whole.
    pub fn has_intervals_only(&self) -> bool {
        self.reports.len() > 1 && self.reports.iter().all(|report| report.interval.is_some())
    }

    /// Writes the page. The last document is of the whole measurement, unless all are of intervals.
    pub fn write(&self) -> Result<()> {
        let Some((whole, before)) = self.reports.split_last() else { return Ok(()) };
        let intervals = if whole.interval.is_some() { &self.reports[..] } else { before };
        write_whole(&self.path, page(whole, intervals).as_bytes(), &[], OPTION)
    }
}
