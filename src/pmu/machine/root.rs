//! The folder that `/proc` and `/sys` are read from.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

/// Most bytes that are read of a paragraph.
const LONGEST: u64 = 1 << 16;

/// Reads small files below a folder; absent or unreadable ones are `None`.
#[derive(Debug, Clone)]
pub struct Root(PathBuf);

impl Root {
    /// The real system.
    pub fn system() -> Self {
        Self(PathBuf::from("/"))
    }

    /// A copy of `/proc` and `/sys` below `folder`.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Whether this is the running system and not a copy.
    pub fn is_system(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// The text of `path` (relative to the root) without surrounding blanks.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = fs::read(self.0.join(path)).ok()?;
        // Some of these files have megabytes: copy only if needed.
        let mut text = String::from_utf8(bytes)
            .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
        text.truncate(text.trim_end().len());
        let blank = text.len() - text.trim_start().len();
        text.drain(..blank);
        Some(text)
    }

    /// The lines of `path` up to the first empty one. Reads no further: on a machine of many CPUs the
    /// kernel takes milliseconds to write all of `/proc/cpuinfo`.
    pub fn paragraph(&self, path: impl AsRef<Path>) -> Vec<String> {
        let Ok(file) = fs::File::open(self.0.join(path)) else { return Vec::new() };
        let lines = BufReader::with_capacity(4096, file.take(LONGEST)).lines();
        lines.map_while(|l| l.ok().filter(|l| !l.trim().is_empty())).collect()
    }

    /// A number in `path`.
    pub fn number<T: std::str::FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// Names in the folder `path`, sorted; empty if it does not exist.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.0.join(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Whether `path` exists.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.0.join(path).exists()
    }
}
