//! Windows for the tables of a fleet: of files that hold windows or reports, one JSON document after the other, and of
//! recordings, whose report is made first.
//!
//! | file | concern |
//! |---|---|
//! | `documents` | the JSON documents of a file |
//! | `report` | a report → a window |

mod documents;
mod report;

use crate::reports;
use crate::sampled::code::CodeAsk;
use crate::topdown::ImportAsk;
use ::report::documents::Report;
use documents::Document;
use fleet::window::Window;
use std::collections::BTreeMap;
use std::path::Path;
use tma::tables::Library;
use tma::{Error, Result};

pub use report::About;

/// What a report and a recording do not say.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// The host of reports and recordings.
    pub host: Option<String>,
    /// Their begin, in milliseconds since 1970; `None`: the time of the file.
    pub start_ms: Option<i64>,
    /// Labels of hosts, over those that windows have.
    pub labels: BTreeMap<String, String>,
    /// The table of recorded counts.
    pub uarch: Option<String>,
}

/// The windows in a file, all of them or an error.
///
/// # Errors
/// It cannot be read, is damaged or empty, or is a report and there is no host for it.
pub fn of_file(library: &Library, ask: &Ask, path: &Path) -> Result<Vec<Window>> {
    let found = match documents::read(path)? {
        Some(all) => all,
        None => {
            recording(library, ask, path)?.into_iter().map(Box::new).map(Document::Report).collect()
        }
    };
    if found.is_empty() {
        return Err(Error::failed(format!("{} holds no window", tma::files::name(path)))
            .hint("give windows, reports (`tdtool report --format json`) or recordings"));
    }
    let end = found.iter().map(end).fold(0.0, f64::max);
    let windows = found.into_iter().map(|of| {
        let window = match of {
            Document::Window(window) => *window,
            Document::Report(of) => report::window(&of, about(ask, path, end)?),
        };
        Ok(labelled(window, ask))
    });
    windows.collect()
}

/// The window with the labels that were asked for, too.
pub fn labelled(mut window: Window, ask: &Ask) -> Window {
    window.host.labels.extend(ask.labels.clone());
    window
}

/// The reports of a recording, with all functions and blocks.
fn recording(library: &Library, ask: &Ask, path: &Path) -> Result<Vec<Report>> {
    let import = ImportAsk {
        files: vec![path.to_owned()],
        uarch: ask.uarch.clone(),
        ..ImportAsk::default()
    };
    let code = CodeAsk { functions: usize::MAX, blocks: 1000, ..CodeAsk::default() };
    let mut reports = reports::of_files(library, &import, Some(&code), &mut |_, _| {})?;
    // Of several parts of a run the last has the samples.
    Ok(reports.pop().into_iter().collect())
}

/// Seconds from the begin of a measurement to the end of a report of it, or of a part of it.
fn end(of: &Document) -> f64 {
    match of {
        Document::Window(_) => 0.0,
        Document::Report(of) => of.interval.map_or(of.duration.unwrap_or(0.0), |(_, end)| end),
    }
}

/// Host and begin of the reports in `path`, which was written when the last of them ended, after so many seconds.
fn about(ask: &Ask, path: &Path, end: f64) -> Result<About> {
    let name = || tma::files::name(path);
    let host = ask.host.clone().ok_or_else(|| {
        Error::usage(format!("{} does not say which host it is of", name()))
            .because("only windows have a host")
            .hint("add `--host NAME`")
    })?;
    let written = || {
        let time = std::fs::metadata(path).and_then(|found| found.modified()).ok()?;
        let ms =
            i64::try_from(time.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis()).ok()?;
        Some(ms.saturating_sub((end * 1e3) as i64))
    };
    let start_ms = ask.start_ms.or_else(written).ok_or_else(|| {
        Error::usage(format!("{} does not say when it was", name()))
            .hint("add `--start MS`, in milliseconds since 1970")
    })?;
    Ok(About { host, start_ms, is_file_time: ask.start_ms.is_none() })
}
