//! Windows → files. Memory is bounded by a row group of each table: files of one day and host are open at a time.
//! Nothing is seen of an export that fails: files get their names at its end.

use super::file::unwritable;
use super::partition::{Part, Partition, clean};
use super::{Exported, place};
use crate::window::Window;
use nix::fcntl::{Flock, FlockArg};
use nix::libc::O_NOFOLLOW;
use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hasher as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use tma::{Error, Result};

/// Held while a folder is exported to.
const LOCK: &str = ".tdtool.lock";

/// An export to a folder. Windows of one day and host are best added one after the other.
pub struct Export {
    folder: PathBuf,
    open: Option<Partition>,
    /// Files that are whole, by the names that they will have.
    parts: BTreeMap<PathBuf, Part>,
    /// By day and host: the begins of its windows, with a hash of each.
    seen: HashMap<String, HashMap<i64, u64>>,
    windows: u64,
    number: u64,
    _lock: Flock<File>,
}

impl std::fmt::Debug for Export {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Export").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Export {
    /// Begins an export to `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// It cannot be written to, or another export does so.
    pub fn new(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(|e| unwritable(folder, &e))?;
        let path = folder.join(LOCK);
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).write(true).custom_flags(O_NOFOLLOW);
        let file = options.open(&path);
        let file = file.map_err(|e| unwritable(&path, &e))?;
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, e)| {
            Error::failed(format!("cannot export to {}", folder.display()))
                .because(match e {
                    nix::errno::Errno::EAGAIN => "another tdtool exports to it".to_owned(),
                    e => e.desc().to_owned(),
                })
                .hint("wait for it, or give each a folder of its own")
        })?;
        Ok(Self {
            folder: folder.to_owned(),
            open: None,
            parts: BTreeMap::new(),
            seen: HashMap::new(),
            windows: 0,
            number: 0,
            _lock: lock,
        })
    }

    /// Adds a window; the same one again changes nothing.
    ///
    /// # Errors
    /// It has no host or date, or is another one of the same host and begin; the files cannot be written, or those that
    /// are there not be read.
    pub fn add(&mut self, window: &Window) -> Result<()> {
        let place = place::of(window)?;
        if !self.seen.contains_key(&place) {
            clean(&self.folder, &place);
        }
        let seen = self.seen.entry(place.clone()).or_default();
        let hash = hash(window);
        match seen.insert(window.start_ms, hash) {
            Some(before) if before == hash => return Ok(()),
            Some(_) => return Err(twice(window)),
            None => {}
        }
        if self.open.as_ref().is_none_or(|open| open.place != place) {
            self.close()?;
            self.number += 1;
            self.open = Some(Partition::new(&self.folder, place, self.number)?);
        }
        if let Some(open) = &mut self.open {
            open.add(window)?;
            self.windows += 1;
        }
        Ok(())
    }

    /// Ends the files of the day and host that are open.
    fn close(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let before = |path: &Path| {
            let part = self.parts.get(path).map(|part| part.file.temporary.0.clone());
            part.unwrap_or_else(|| path.to_owned())
        };
        for part in open.finish(&self.folder, before)? {
            self.parts.insert(part.path.clone(), part);
        }
        Ok(())
    }

    /// Ends the export: every file gets its name.
    ///
    /// # Errors
    /// A file cannot be written or renamed. Those that were are whole; to export again completes the rest.
    pub fn finish(mut self) -> Result<Exported> {
        self.close()?;
        let mut done = Exported { windows: self.windows, ..Exported::default() };
        for (path, part) in std::mem::take(&mut self.parts) {
            std::fs::rename(&part.file.temporary.0, &path).map_err(|e| unwritable(&path, &e))?;
            done.files += 1;
            done.rows += part.file.rows;
            done.bytes += part.file.bytes;
        }
        Ok(done)
    }
}

/// A hash of all that a window holds.
fn hash(window: &Window) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(&serde_json::to_vec(window).unwrap_or_default());
    hasher.finish()
}

fn twice(window: &Window) -> Error {
    let Window { host, start_ms, .. } = window;
    Error::failed(format!("two windows of {} begin at {start_ms} ms", host.name))
        .because("a window is known by its host and begin, and these are not alike")
        .hint("export them one after the other, each report with a `--start MS` of its own")
}
