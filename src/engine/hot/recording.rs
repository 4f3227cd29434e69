//! A recording with samples, from whatever file it is in.

use pmu::machine::describing;
use profile::counts::folder_error;
use profile::recording::Stream;
use profile::{kept, perfdata, session};
use report::documents::{evidence_file, report_file};
use std::io::{BufRead as _, Read as _};
use std::path::Path;
use tma::Cpu;
use tma::tables::Library;
use tma::{Error, Result};

/// The kind of a file, by its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A session of tdtool with samples in it.
    Session,
    /// perf.data.
    PerfData,
    /// The evidence of an estimate.
    Evidence,
    /// A document of tdtool.
    Document,
    /// Counts only, or something else.
    Other,
}

/// The kind of the file.
///
/// # Errors
/// It cannot be read.
pub fn kind(path: &Path) -> Result<FileKind> {
    if path == Path::new("-") {
        return kind_of_input(path);
    }
    let cannot = |e: std::io::Error| {
        let error = Error::failed(format!("cannot read {}", path.display()));
        match e.kind() {
            // Commands have no `.csv`.
            std::io::ErrorKind::NotFound if path.extension().is_some() => {
                error.because("there is no such file")
            }
            std::io::ErrorKind::NotFound => error.because("there is no such file").hint(format!(
                "to measure a command of that name: `tdtool report -- {}`",
                tma::shell::quoted(&[path])
            )),
            _ => error.because(e),
        }
    };
    if path.is_dir() {
        // A folder of `perf record --threads`.
        if path.join("data").is_file() {
            return Ok(FileKind::PerfData);
        }
        return Err(folder_error(path));
    }
    let mut start = Vec::new();
    let file = kept::open(path).map_err(cannot)?;
    file.take(START).read_to_end(&mut start).map_err(cannot)?;
    kind_of(path, &start)
}

/// Bytes by which a file is known.
const START: u64 = 64;

/// The kind of a file that begins in this way.
fn kind_of(path: &Path, start: &[u8]) -> Result<FileKind> {
    Ok(if perfdata::recognise(start) {
        match perfdata::holds_counts(path) {
            true => FileKind::Other,
            false => FileKind::PerfData,
        }
    } else if start.starts_with(&session::MAGIC) && session::has_samples(path)? {
        FileKind::Session
    } else if evidence_file::recognise(start) {
        FileKind::Evidence
    } else if report_file::recognise(start) {
        FileKind::Document
    } else {
        FileKind::Other
    })
}

/// The kind of standard input. A text is read from its begin later; the parts of a recording are read in an order of
/// their own, so it is saved in a file.
fn kind_of_input(path: &Path) -> Result<FileKind> {
    let cannot = |e| Error::failed("cannot read standard input").because(e);
    let mut input = std::io::stdin().lock();
    let start = input.fill_buf().map_err(cannot)?;
    let is_recording = perfdata::recognise(start) || start.starts_with(&session::MAGIC);
    if !is_recording && kept::Packing::of(start).is_none() && kept::kept(path).is_none() {
        return kind_of(path, start);
    }
    drop(input);
    let mut start = Vec::new();
    let file = kept::open(path).map_err(cannot)?;
    file.take(START).read_to_end(&mut start).map_err(cannot)?;
    kind_of(path, &start)
}

/// The samples of a session that is still written, without call chains; `None` where it has none yet.
///
/// # Errors
/// As [`stream`].
pub fn growing(path: &Path) -> Result<Option<Stream>> {
    match kind(path)? {
        FileKind::Session => session::open_growing(path).map(Some),
        _ => Ok(None),
    }
}

/// The samples of a file, to be read one by one; `None` where it has none. Without `chains`, call chains
/// may be left out.
///
/// # Errors
/// It cannot be read, or is damaged before its first record.
pub fn stream(path: &Path, chains: bool) -> Result<Option<Stream>> {
    match kind(path)? {
        FileKind::Session => session::open(path, chains).map(Some),
        FileKind::PerfData => perfdata::open(path, chains).map(Some),
        FileKind::Evidence | FileKind::Document | FileKind::Other => Ok(None),
    }
}

/// The tables of the processor that perf identified: `GenuineIntel,6,140,1`.
pub(crate) fn described(library: &Library, cpuid: &str) -> Vec<String> {
    let mut parts = cpuid.split(',');
    let vendor = parts.next().unwrap_or_default().to_owned();
    let mut number = || parts.next().and_then(|text| text.trim().parse().ok());
    let (Some(family), Some(model)) = (number(), number()) else { return Vec::new() };
    let stepping = number().unwrap_or(0);
    let cpu = Cpu { vendor, family, model, stepping, ..Cpu::default() };
    describing(&cpu, library).unwrap_or_default().into_iter().map(|(name, _)| name).collect()
}
