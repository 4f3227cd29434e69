//! Shares of saved estimates, `tdtool report --estimate --format json`: read again when their file changes.

use super::rows::DEEPEST;
use fleet::metrics::{Interval, NotMeasured, Reason, Share, Subject};
use fleet::window::{Owner, Source};
use report::documents::Report;
use report::documents::estimate::ShareSource;
use report::documents::report_file::read;
use smol_str::SmolStr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What a file is known by: when it was written, and its length.
type Version = (SystemTime, u64);

/// Estimates in files.
#[derive(Debug, Default)]
pub struct Estimates(Vec<Kept>);

/// One of them.
#[derive(Debug)]
struct Kept {
    path: PathBuf,
    version: Option<Version>,
    rows: Interval,
}

impl Estimates {
    /// Of these files.
    pub fn new(paths: &[PathBuf]) -> Self {
        let kept = |path: &PathBuf| {
            let (version, rows) = (None, missing(path, Reason::Absent));
            Kept { path: path.clone(), version, rows }
        };
        Self(paths.iter().map(kept).collect())
    }

    /// Adds what they say.
    pub fn add(&mut self, rows: &mut Interval) {
        for kept in &mut self.0 {
            kept.refresh();
            rows.shares.extend(kept.rows.shares.iter().cloned());
            rows.not_measured.extend(kept.rows.not_measured.iter().cloned());
        }
    }
}

impl Kept {
    fn refresh(&mut self) {
        let version = version(&self.path);
        if version == self.version && version.is_some() {
            return;
        }
        self.version = version;
        self.rows = match (version, read(&self.path)) {
            (None, _) => missing(&self.path, Reason::Absent),
            (_, Ok(report)) => rows(&self.path, &report),
            (_, Err(_)) => missing(&self.path, Reason::Failed),
        };
    }
}

fn version(path: &Path) -> Option<Version> {
    let of = std::fs::metadata(path).ok()?;
    Some((of.modified().ok()?, of.len()))
}

/// The whole file has none, by its name.
fn missing(path: &Path, reason: Reason) -> Interval {
    let what = SmolStr::new_static("estimate");
    let subject = subject(&path.file_stem().unwrap_or_default().to_string_lossy());
    let not_measured = vec![NotMeasured { subject, what, reason }];
    Interval { not_measured, ..Interval::default() }
}

fn subject(command: &str) -> Subject {
    let command = Some(SmolStr::new(command));
    Subject { owner: Owner { command, ..Owner::default() }, core: None }
}

/// The estimated shares of the command, by its program's name.
fn rows(path: &Path, report: &Report) -> Interval {
    let Some(estimate) = &report.estimate else { return missing(path, Reason::NotAmongCounts) };
    let program = report.measured_program().first().map(Path::new);
    let name = program.and_then(Path::file_name).or(path.file_stem()).unwrap_or_default();
    let subject = subject(&name.to_string_lossy());
    let mut rows = Interval::default();
    for node in estimate.program.parts.tree() {
        let level = u32::try_from(node.depth + 1).unwrap_or(u32::MAX);
        if level > DEEPEST {
            continue;
        }
        // As the tables of counted nodes have it.
        let name = SmolStr::new(node.label.replace(' ', "_"));
        let (of, share) = (subject.clone(), node.share);
        // Its value says nothing then; the ends do.
        let is_known = share.source != ShareSource::Bounded;
        if !is_known {
            let (what, reason) = (name.clone(), Reason::NotAmongCounts);
            rows.not_measured.push(NotMeasured { subject: of.clone(), what, reason });
        }
        rows.shares.push(Share {
            subject: of,
            node: name,
            level,
            share: is_known.then_some(share.value),
            interval: Some((share.low, share.high)),
            slots: None,
            source: Source::Estimated,
        });
    }
    rows
}
