//! The files of one day and host: rows of new windows, and those of windows that were there.

use super::file::{Finished, Writer, unwritable};
use super::read::batches;
use crate::tables::Table;
use crate::window::Window;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use tma::Result;

/// The name of a part: always the same, so that it is replaced.
const PART: &str = "part-0.parquet";
/// Begin and end of the name of one that is not whole.
const TEMPORARY: (&str, &str) = (".part-0.", ".tmp");

/// The files of a day and host that are being written.
pub(super) struct Partition {
    /// `date=…/host=…`.
    pub place: String,
    files: Vec<(Table, Writer)>,
    starts: HashSet<i64>,
}

/// A file that will be at `path`.
#[derive(Debug)]
pub(super) struct Part {
    pub path: PathBuf,
    pub file: Finished,
}

impl Partition {
    /// Begins the files; `number` makes their names differ from those of other partitions of this export.
    pub fn new(folder: &Path, place: String, number: u64) -> Result<Self> {
        let (begin, end) = TEMPORARY;
        let begun = Table::ALL.map(|table| {
            let of = folder.join(table.name()).join(&place);
            std::fs::create_dir_all(&of).map_err(|e| unwritable(&of, &e))?;
            Ok((table, Writer::new(table, of.join(format!("{begin}{number}{end}")))?))
        });
        let files = begun.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(Self { place, files, starts: HashSet::new() })
    }

    /// Adds a window.
    pub fn add(&mut self, window: &Window) -> Result<()> {
        self.starts.insert(window.start_ms);
        self.files.iter_mut().try_for_each(|(_, file)| file.add(|batch| batch.add(window)))
    }

    /// Adds what `before` holds of other windows, and ends the files. `before` names the file that is there, or will be.
    pub fn finish(self, folder: &Path, before: impl Fn(&Path) -> PathBuf) -> Result<Vec<Part>> {
        let Self { place, files, starts } = self;
        let parts = files.into_iter().map(|(table, mut file)| {
            let path = folder.join(table.name()).join(&place).join(PART);
            let old = before(&path);
            if old.exists() {
                batches(&old, table, &mut |mut batch| {
                    batch.retain(|start| !starts.contains(&start));
                    file.group(&batch)
                })?;
            }
            Ok(Part { path, file: file.finish()? })
        });
        parts.collect()
    }
}

/// Removes files that an export left that was killed; none is running.
pub(super) fn clean(folder: &Path, place: &str) {
    for table in Table::ALL {
        let Ok(all) = std::fs::read_dir(folder.join(table.name()).join(place)) else { continue };
        for entry in all.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(TEMPORARY.0) && name.ends_with(TEMPORARY.1) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}
