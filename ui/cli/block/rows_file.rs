//! The file that a batch writes: only complete rows, whatever happens.

use crate::cli::code::read;
use bench::batch::rows::Row;
use nix::sys::resource::{Resource, getrlimit};
use report::files::{check_output, is_stdout};
use report::render::block::HEADER;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use tma::{Error, Result};

/// The file of results.
pub struct RowsFile {
    path: PathBuf,
    file: File,
    /// Bytes of complete rows.
    length: u64,
    /// Largest permitted file size (RLIMIT_FSIZE).
    limit: u64,
}

/// Treatment of a file that has rows already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    Refuse,
    Continue,
    Replace,
}

impl Existing {
    pub fn asked(resume: bool, force: bool) -> Self {
        match (resume, force) {
            (true, _) => Self::Continue,
            (_, true) => Self::Replace,
            _ => Self::Refuse,
        }
    }
}

impl RowsFile {
    /// Creates the file for the rows of `batch`, or continues after the complete rows of an earlier run; also returns how many
    /// these are.
    pub fn open(
        path: &Path,
        batch: &Path,
        existing: Existing,
        rows: &[Row],
    ) -> Result<(Self, usize)> {
        if is_stdout(path) {
            return Err(Error::usage("the rows of a batch go to a file")
                .because("a batch that is interrupted continues after the rows that are there")
                .hint("--output FILE"));
        }
        check_output(path, &[batch.to_owned()], "--output")?;
        let has_rows =
            std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0);
        if existing == Existing::Refuse && has_rows {
            return Err(Error::usage(format!("{} is there already", path.display()))
                .hint("--resume continues it, --force replaces it"));
        }
        let failed = |e: std::io::Error| {
            Error::failed(format!("cannot write {}", path.display())).because(e)
        };
        let limit = getrlimit(Resource::RLIMIT_FSIZE).map_or(u64::MAX, |(soft, _)| soft);
        let resume = existing == Existing::Continue;
        let (done, length) = if resume { complete(path, rows)? } else { (0, 0) };
        let file = if length > 0 {
            let file = File::options().append(true).open(path).map_err(failed)?;
            file.set_len(length).map_err(failed)?;
            file
        } else if path.metadata().is_ok_and(|found| !found.is_file()) {
            tma::files::open_stream(path).map_err(failed)?
        } else {
            File::create(path).map_err(failed)?
        };
        let mut output = Self { path: path.to_owned(), file, length, limit };
        if length == 0 {
            output.line(HEADER)?;
        }
        Ok((output, done))
    }

    /// Appends a row, completely or not at all.
    pub fn line(&mut self, line: &str) -> Result<()> {
        let line = format!("{line}\n");
        let after = self.length + line.len() as u64;
        if after > self.limit {
            // Writing would end this process with SIGXFSZ.
            return Err(self.full(std::io::Error::from(ErrorKind::FileTooLarge)));
        }
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            // A pipe or device has no length to restore.
            let _ = self.file.set_len(self.length);
            return Err(self.full(error));
        }
        self.length = after;
        Ok(())
    }

    fn full(&self, error: std::io::Error) -> Error {
        let what = format!("cannot write {}", self.path.display());
        let hint = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some("make room on the disk"),
            ErrorKind::FileTooLarge => Some("raise the limit on file sizes (ulimit -f)"),
            _ => None,
        };
        let error = Error::failed(what).because(error);
        match hint {
            Some(hint) => error.hint(format!("{hint}, then rerun with --resume to continue")),
            None => error,
        }
    }
}

/// Complete rows of an earlier run, and their bytes.
fn complete(path: &Path, rows: &[Row]) -> Result<(usize, u64)> {
    match std::fs::metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok((0, 0)),
        Ok(meta) if !meta.is_file() => {
            return Err(Error::usage(format!("cannot resume {}", path.display()))
                .because("it is not a regular file")
                .hint("leave out --resume"));
        }
        _ => {}
    }
    report::render::block::finished(&read::file(path)?, rows)
}
