//! Finds the file of a module, and checks that it is the recorded one.

use super::build_id::{hexadecimal, same_id};
use super::gap::Gap;
use super::layout::Layout;
use super::part::Part;
use super::place::Place;
use super::search::SearchPaths;
use crate::module::{Module, ModuleKind};
use object::ReadCache;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// A module's file.
#[derive(Debug)]
pub(crate) struct Located {
    pub place: Place,
    pub file: File,
    pub layout: Layout,
}

/// Appended by the kernel to the path of a deleted file.
const DELETED: &str = " (deleted)";

/// Finds the file of `module`: its whole path below the roots, its name alone there, its path, then in
/// caches, then from servers.
/// Takes the first with the recorded build-id.
///
/// # Errors
/// There is no such file, it is no ELF file, or its build-id differs from the recorded one.
pub(crate) fn locate(search: &SearchPaths, module: &Module) -> Result<Located, Gap> {
    let path = module.path.strip_suffix(DELETED).unwrap_or(&module.path);
    let deleted = path.len() != module.path.len();
    let mut gap = Gap::NoFile(module.path.clone());
    let id = module.build_id.as_deref().filter(|_| module.kind == ModuleKind::File);
    let fetched = || search.fetched(id?, Part::Program);
    let fetched = std::iter::once_with(fetched).flatten();
    for candidate in candidates(search, module, path).into_iter().chain(fetched) {
        let file = match candidate.open() {
            Ok(file) => file,
            Err(error) => {
                if error.kind() == io::ErrorKind::InvalidInput {
                    gap = worse(gap, Gap::Unreadable(error.into()));
                }
                continue;
            }
        };
        if is_another_inode(module, &candidate, path, &file) {
            gap = worse(gap, Gap::OtherFile);
            continue;
        }
        match Layout::read(&ReadCache::new(&file)) {
            Ok(layout) => match differs(module, &layout, deleted && !search.is_named(&candidate)) {
                None => return Ok(Located { place: candidate, file, layout }),
                Some(difference) => gap = worse(gap, difference),
            },
            Err(reason) => gap = worse(gap, Gap::Unreadable(reason)),
        }
    }
    Err(gap)
}

/// Whether a module of two files with one path is not the one that is there now.
fn is_another_inode(module: &Module, candidate: &Place, path: &str, file: &File) -> bool {
    let is_here = *candidate == Place::here(path);
    let inode = module.inode.filter(|_| is_here);
    inode.is_some_and(|inode| file.metadata().is_ok_and(|found| found.ino() != inode))
}

/// The defect of an existing file is more informative than that other files do not exist.
fn worse(known: Gap, new: Gap) -> Gap {
    if matches!(known, Gap::NoFile(_)) { new } else { known }
}

fn candidates(search: &SearchPaths, module: &Module, path: &str) -> Vec<Place> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stands_for = |program: &&PathBuf| {
        module.build_id.is_some() || program.file_name().is_some_and(|own| own == name)
    };
    let programs = search.programs.iter().filter(stands_for);
    let mut all: Vec<Place> = programs.map(Place::here).collect();
    let inside = path.trim_start_matches('/');
    all.extend(search.roots.iter().map(|root| Place::below(root, inside)));
    all.extend(search.roots.iter().map(|root| Place::below(root, name)));
    all.push(Place::here(path));
    let id = module.build_id.as_deref().unwrap_or_default();
    all.extend(search.cached(id, Part::Program));
    all
}

/// Whether the file differs from the recorded one. A file that was deleted and exists again can only be identified by its
/// build-id; where none was recorded, what the user names is taken, since nothing contradicts it.
fn differs(module: &Module, layout: &Layout, unknown: bool) -> Option<Gap> {
    let found = layout.build_id.as_deref();
    let same = match &module.build_id {
        Some(recorded) => found.is_some_and(|found| same_id(recorded, found)),
        None => !unknown,
    };
    let shown = |id: Option<&[u8]>| id.map_or_else(|| "none".to_owned(), hexadecimal);
    (!same).then(|| Gap::Changed(shown(module.build_id.as_deref()), shown(found)))
}
