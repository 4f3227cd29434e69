//! What earlier runs left: documents of counts, and recordings.

use report::documents::count::Count;
use std::io::Read as _;
use std::path::PathBuf;
use tma::{Error, Result};

/// Bytes of a file by which its kind is known.
const START: u64 = 64;

/// Earlier runs.
#[derive(Default)]
pub struct Inputs {
    /// Their counts.
    pub counts: Vec<Count>,
    /// Files with recorded branches.
    pub recordings: Vec<PathBuf>,
}

impl Inputs {
    /// These files, each by its content. Counts are read.
    ///
    /// # Errors
    /// One cannot be read; there are both counts and recordings.
    pub fn of(files: &[PathBuf]) -> Result<Self> {
        let mut found = Self::default();
        for path in files {
            let mut start = Vec::new();
            profile::kept::open(path)
                .and_then(|file| file.take(START).read_to_end(&mut start))
                .map_err(|e| tma::error::unreadable(path, &e))?;
            match start.trim_ascii_start().first() {
                Some(b'{') => found.counts.push(Count::read(path)?),
                _ => found.recordings.push(path.clone()),
            }
        }
        if !found.counts.is_empty() {
            found.only_counts()?;
        }
        Ok(found)
    }

    /// Refuses recordings beside counts.
    ///
    /// # Errors
    /// There are some.
    pub fn only_counts(&self) -> Result<()> {
        let Some(path) = self.recordings.first() else { return Ok(()) };
        Err(Error::failed(format!("{} cannot be added to counts", tma::files::name(path)))
            .because("a recording has samples of branches, counts have all of them")
            .hint("make a profile of either"))
    }
}
