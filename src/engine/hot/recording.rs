//! A recording with samples, from whatever file it is in.

use profile::counts::folder_error;
use profile::recording::{Recording, Stream};
use profile::{perfdata, session};
use std::io::Read as _;
use std::path::Path;
use tma::error::{Error, Result};

/// What a file is, by its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A session of tdtool with samples in it.
    Session,
    /// perf.data.
    PerfData,
    /// Counts only, or something else.
    Other,
}

/// What the file is.
///
/// # Errors
/// It cannot be read.
pub fn kind(path: &Path) -> Result<FileKind> {
    let cannot = |e: std::io::Error| {
        let error = Error::failed(format!("cannot read {}", path.display()));
        match e.kind() {
            std::io::ErrorKind::NotFound => error.because("there is no such file").hint(format!(
                "to measure a command of that name: `tdtool report -- {}`",
                path.display()
            )),
            _ => error.because(e),
        }
    };
    if path.is_dir() {
        // What `perf record --threads` writes; its reader says what to do.
        if path.join("data").is_file() {
            return Ok(FileKind::PerfData);
        }
        return Err(folder_error(path));
    }
    let mut start = [0; 16];
    let mut n = 0;
    let mut file = tma::files::open(path).map_err(cannot)?;
    while n < start.len() {
        match file.read(&mut start[n..]).map_err(cannot)? {
            0 => break,
            more => n += more,
        }
    }
    let start = &start[..n];
    if perfdata::recognise(start) {
        Ok(FileKind::PerfData)
    } else if start.starts_with(&session::MAGIC) && session::has_samples(path)? {
        Ok(FileKind::Session)
    } else {
        Ok(FileKind::Other)
    }
}

/// The samples of a file; `None` where it has none.
///
/// # Errors
/// It cannot be read, or is damaged before its first record.
pub fn open(path: &Path) -> Result<Option<Recording>> {
    open_with(path, true)
}

/// As [`open`]; without `chains`, call chains may be left out.
///
/// # Errors
/// As [`open`].
pub fn open_with(path: &Path, chains: bool) -> Result<Option<Recording>> {
    stream(path, chains)?.map(Stream::whole).transpose()
}

/// As [`open_with`], to read the records one by one.
///
/// # Errors
/// As [`open`].
pub fn stream(path: &Path, chains: bool) -> Result<Option<Stream>> {
    match kind(path)? {
        FileKind::Session => session::open(path).map(Some),
        FileKind::PerfData => perfdata::open(path, chains).map(Some),
        FileKind::Other => Ok(None),
    }
}
