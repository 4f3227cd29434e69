//! Separate debug files: by build-id, by `.gnu_debuglink`, and those shared by several (dwz).

use crate::files::{Files, Layout, Part, Place, hexadecimal, same_id};
use object::{Object as _, ReadCache};
use std::path::{Path, PathBuf};

/// Where distributions install debug files.
const USUAL: &str = "/usr/lib/debug";

/// The debug file of `file` at `place` with this build-id.
pub(super) fn find(
    files: &Files,
    file: &object::File<'_>,
    place: &Place,
    build_id: Option<&[u8]>,
) -> Option<Vec<u8>> {
    let found = build_id.and_then(|id| by_build_id(files, id));
    found.or_else(|| by_link(files, file, place)).or_else(|| {
        let fetched = files.search.fetched(build_id?, Part::Debug)?;
        with_build_id(files, &fetched, build_id?)
    })
}

/// The file that the debug file at `place` shares with others (`.gnu_debugaltlink`).
pub(super) fn find_shared(
    files: &Files,
    file: &object::File<'_>,
    place: &Place,
) -> Option<Vec<u8>> {
    let (name, build_id) = file.gnu_debugaltlink().ok().flatten()?;
    let name = PathBuf::from(String::from_utf8_lossy(name).into_owned());
    let linked = with_build_id(files, &place.linked(&name), build_id);
    linked.or_else(|| by_build_id(files, build_id))
}

/// A file in the folders with debug files.
fn below_folders<'a>(files: &'a Files, inside: &'a Path) -> impl Iterator<Item = Place> + 'a {
    let search = &files.search;
    let usual = search.debug.is_empty();
    let own = search.debug.iter().map(move |folder| Place::here(folder.join(inside)));
    let roots = search.roots.iter().filter(move |_| usual);
    let below = roots.map(move |root| Place::below(root, Path::new(USUAL).join(inside)));
    let here = usual.then(|| Place::here(Path::new(USUAL).join(inside)));
    own.chain(below).chain(here)
}

/// `FOLDER/.build-id/xx/yyyy.debug`, or in a cache.
fn by_build_id(files: &Files, build_id: &[u8]) -> Option<Vec<u8>> {
    let (first, rest) = build_id.split_first()?;
    let inside = PathBuf::from(format!(".build-id/{first:02x}/{}.debug", hexadecimal(rest)));
    let cached = files.search.cached(build_id, Part::Debug);
    below_folders(files, &inside)
        .chain(cached)
        .find_map(|place| with_build_id(files, &place, build_id))
}

/// The file at a place, if it has this build-id.
fn with_build_id(files: &Files, place: &Place, build_id: &[u8]) -> Option<Vec<u8>> {
    let file = place.open().ok()?;
    let found = Layout::read(&ReadCache::new(&file)).ok()?.build_id?;
    same_id(&found, build_id).then(|| files.read(&file).ok())?
}

/// By name: in the folder of `file`, in `.debug` there, or below the debug folders with its whole
/// path. The link has the file's CRC-32. It is the name of a file: no path is followed.
fn by_link(files: &Files, file: &object::File<'_>, place: &Place) -> Option<Vec<u8>> {
    let (name, checksum) = file.gnu_debuglink().ok().flatten()?;
    let name = PathBuf::from(String::from_utf8_lossy(name).into_owned());
    if name.file_name() != Some(name.as_os_str()) {
        return None;
    }
    let inside = place.folder().join(&name);
    let beside = [place.linked(&name), place.linked(&Path::new(".debug").join(&name))];
    let mut places = beside.into_iter().chain(below_folders(files, &inside));
    places.find_map(|place| files.with_checksum(&place, checksum))
}
