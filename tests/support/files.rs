//! Files of the project, files beside the project, and folders that go when a test ends.

use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The project's folder.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A file below tests/fixtures.
pub fn fixture(name: &str) -> PathBuf {
    root().join("tests/fixtures").join(name)
}

/// Two intervals of one second that `perf stat` recorded on a Zen 4, memory bound by perf's own
/// metrics (zen4-two-blocks.csv beside it names the source).
pub fn zen4_intervals() -> String {
    text(&fixture("import/zen4-two-intervals.csv")).to_owned()
}

/// A file or folder of `../shared`, which is not part of the project; `None`, with a message, where
/// it is absent.
pub fn shared(name: &str) -> Option<PathBuf> {
    let path = root().join("../shared").join(name);
    if !path.exists() {
        eprintln!("skipped: ../shared/{name} is absent");
        return None;
    }
    Some(path)
}

/// The path as text.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// A folder of its own for a test.
pub struct Folder(TempDir);

impl Folder {
    /// An empty one.
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of a file in it, whether or not that exists.
    pub fn file(&self, name: &str) -> String {
        text(&self.path().join(name)).to_owned()
    }

    /// Writes a file, and the folders above it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(&path, content).expect("written");
        self.file(name)
    }

    /// What a file holds.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }
}
