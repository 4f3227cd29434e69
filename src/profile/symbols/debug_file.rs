//! Separate debug files: by build-id, by `.gnu_debuglink`, and those shared by several (dwz).

use crate::files::{SearchPaths, hexadecimal, read, same_id};
use object::Object as _;
use std::path::{Component, Path, PathBuf};

/// Where distributions install debug files.
const USUAL: &str = "/usr/lib/debug";

/// The debug file of `file` at `path` with this build-id.
pub(super) fn find(
    search: &SearchPaths,
    file: &object::File<'_>,
    path: &Path,
    build_id: Option<&[u8]>,
) -> Option<Vec<u8>> {
    let found = build_id.and_then(|id| by_build_id(search, id));
    found.or_else(|| by_link(search, file, path))
}

/// The file that the debug file at `path` shares with others (`.gnu_debugaltlink`).
pub(super) fn find_shared(
    search: &SearchPaths,
    file: &object::File<'_>,
    path: &Path,
) -> Option<Vec<u8>> {
    let (name, build_id) = file.gnu_debugaltlink().ok().flatten()?;
    let name = PathBuf::from(String::from_utf8_lossy(name).into_owned());
    let linked = path.parent().unwrap_or(Path::new("/")).join(name);
    with_build_id(&linked, build_id).or_else(|| by_build_id(search, build_id))
}

/// Folders with debug files.
fn folders(search: &SearchPaths) -> Vec<PathBuf> {
    if !search.debug.is_empty() {
        return search.debug.clone();
    }
    let below = search.roots.iter().map(|root| root.join(&USUAL[1..]));
    below.chain([PathBuf::from(USUAL)]).collect()
}

/// `FOLDER/.build-id/xx/yyyy.debug`.
fn by_build_id(search: &SearchPaths, build_id: &[u8]) -> Option<Vec<u8>> {
    let (first, rest) = build_id.split_first()?;
    let inside = format!(".build-id/{first:02x}/{}.debug", hexadecimal(rest));
    folders(search).iter().find_map(|folder| with_build_id(&folder.join(&inside), build_id))
}

/// The file at `path`, if it has this build-id.
fn with_build_id(path: &Path, build_id: &[u8]) -> Option<Vec<u8>> {
    let data = read(path).ok()?;
    let found = object::File::parse(&*data).ok()?.build_id().ok().flatten()?;
    same_id(found, build_id).then_some(data)
}

/// By name: in the folder of `file`, in `.debug` there, or below the debug folders with its whole
/// path. The link has the file's CRC-32.
fn by_link(search: &SearchPaths, file: &object::File<'_>, path: &Path) -> Option<Vec<u8>> {
    let (name, crc) = file.gnu_debuglink().ok().flatten()?;
    let name = String::from_utf8_lossy(name).into_owned();
    let folder = path.parent().unwrap_or(Path::new("/"));
    let inside: PathBuf =
        folder.components().filter(|c| matches!(c, Component::Normal(_))).collect();
    let mut places = vec![folder.join(&name), folder.join(".debug").join(&name)];
    places.extend(folders(search).iter().map(|debug| debug.join(&inside).join(&name)));
    places.into_iter().find_map(|place| read(&place).ok().filter(|d| crc32fast::hash(d) == crc))
}
