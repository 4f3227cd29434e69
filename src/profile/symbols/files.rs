//! Finding the file of a module, and whether it is still the one that was recorded.

use super::layout::Layout;
use super::{Gap, Search};
use crate::module::Module;
use object::ReadCache;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// A module's file.
#[derive(Debug)]
pub(crate) struct Found {
    pub path: PathBuf,
    pub layout: Layout,
}

/// What the kernel appends to the path of a file that is gone.
const DELETED: &str = " (deleted)";

/// Finds the file of `module`: below the search's roots with its whole path, there by its name
/// alone, then at its path. The first with the recorded build-id is taken.
///
/// # Errors
/// There is no such file, it is no ELF file, or it has another build-id than was recorded.
pub(crate) fn locate(search: &Search, module: &Module) -> Result<Found, Gap> {
    let path = module.path.strip_suffix(DELETED).unwrap_or(&module.path);
    let deleted = path.len() != module.path.len();
    let mut gap = Gap::NoFile(module.path.clone());
    for candidate in candidates(search, path) {
        let Ok(file) = open(&candidate) else { continue };
        match Layout::read(&ReadCache::new(file)) {
            Ok(layout) => match differs(module, &layout, deleted) {
                None => return Ok(Found { path: candidate, layout }),
                Some(difference) => gap = worse(gap, difference),
            },
            Err(reason) => gap = worse(gap, Gap::Unreadable(reason)),
        }
    }
    Err(gap)
}

/// The first trouble with a file that is there says more than that others are not there.
fn worse(known: Gap, new: Gap) -> Gap {
    if matches!(known, Gap::NoFile(_)) { new } else { known }
}

fn candidates(search: &Search, path: &str) -> Vec<PathBuf> {
    let inside = path.trim_start_matches('/');
    let name = inside.rsplit('/').next().unwrap_or(inside);
    let mut all: Vec<PathBuf> = search.roots.iter().map(|root| root.join(inside)).collect();
    all.extend(search.roots.iter().map(|root| root.join(name)));
    all.push(PathBuf::from(path));
    all
}

/// Whether the file is another than the recorded one. What has been deleted and is there again can
/// only be recognised by its build-id.
fn differs(module: &Module, layout: &Layout, deleted: bool) -> Option<Gap> {
    let found = layout.build_id.as_deref();
    let same = match &module.build_id {
        Some(recorded) => found.is_some_and(|found| same_id(recorded, found)),
        None => !deleted,
    };
    let shown = |id: Option<&[u8]>| id.map_or_else(|| "none".to_owned(), hexadecimal);
    (!same).then(|| Gap::Changed(shown(module.build_id.as_deref()), shown(found)))
}

/// Whether two build-ids are the same: older perf pads shorter ones to 20 bytes with zeros.
pub(super) fn same_id(left: &[u8], right: &[u8]) -> bool {
    let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    let (start, padding) = long.split_at(short.len());
    !short.is_empty() && start == short && padding.iter().all(|&byte| byte == 0)
}

/// Build-ids as tools print them.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Opens a plain file; a recording may name pipes and devices, which would block or never end.
fn open(path: &Path) -> io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
    }
    File::open(path)
}

/// The bytes of a plain file, as many as it says it has.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_ids_may_be_padded_but_not_differ() {
        assert!(same_id(&[1, 2, 0, 0], &[1, 2]));
        assert!(same_id(&[1, 2], &[1, 2]));
        assert!(!same_id(&[1, 2, 3], &[1, 2]));
        assert!(!same_id(&[0, 0], &[]));
    }

    #[test]
    fn devices_are_not_read() {
        assert!(read(Path::new("/dev/zero")).is_err());
    }
}
