//! Finds the file of a module, also of a program whose recording does not say where it was mapped; checks that it
//! is the recorded one, or says why it was not found.

use super::place::{Part, Place, hexadecimal, same_id};
use super::search::SearchPaths;
use super::{Gap, Unreadable, shortened};
use crate::module::{Module, ModuleKind};
use crate::record::Mapping;
use isa::elf::Layout;
use object::ReadCache;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use tma::Error;

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
            Err(reason) => gap = worse(gap, Gap::Unreadable(Unreadable::Elf(reason))),
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

/// Why the file of a module is not found in these places, and what would give it; `None` if it is found.
pub fn missing(search: &SearchPaths, module: &Module) -> Option<String> {
    locate(search, module).err()?;
    // Its own path, and what was given in place of that.
    let own = SearchPaths { programs: Vec::new(), ..search.clone() };
    let own = locate(&own, module).err().unwrap_or(Gap::NoCode);
    let here = match (&own, search.roots.is_empty()) {
        (Gap::NoFile(_), true) => "it is not here".to_owned(),
        (Gap::NoFile(_), false) => format!("it is not here, nor below {}", names(&search.roots)),
        _ => own.to_string(),
    };
    let given = match search.programs.as_slice() {
        [] => String::new(),
        [program] => format!(", and {}", another(program, module)),
        several => format!(", and none of {} is it", names(several)),
    };
    Some(format!("{here}{given}; {}", remedy(search)))
}

fn names(all: &[PathBuf]) -> String {
    let names: Vec<String> = all.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}

/// Why a program does not stand for a module.
fn another(program: &Path, module: &Module) -> String {
    let name = program.display();
    let is_called_so = program.file_name().is_some_and(|own| own == module.name());
    if module.build_id.is_none() && !is_called_so {
        return format!("{name} has another name");
    }
    let only = Module { path: name.to_string(), ..module.clone() };
    match locate(&SearchPaths::default(), &only) {
        Err(Gap::Changed(recorded, found)) => {
            let (recorded, found) = (shortened(&recorded), shortened(&found));
            format!("{name} is another program: build-id {found}, {recorded} is recorded")
        }
        Err(Gap::Unreadable(reason)) => format!("{name} cannot be read: {reason}"),
        _ => format!("{name} cannot be opened"),
    }
}

/// Options that give files of modules not found in these places; options given already are no remedy.
fn remedy(search: &SearchPaths) -> &'static str {
    match (search.roots.is_empty(), search.programs.is_empty()) {
        (true, true) => "--binary FILE or --symfs DIR gives it",
        (false, true) => "--binary FILE gives it",
        (_, false) => "--binary with the recorded program gives it",
    }
}

/// A program's addresses.
#[derive(Debug, Clone)]
pub struct Program {
    path: String,
    layout: Layout,
}

impl Program {
    /// Reads the headers of a program.
    ///
    /// # Errors
    /// It cannot be read, or is no ELF file.
    pub fn read(path: &Path) -> tma::Result<Self> {
        let cannot = || Error::failed(format!("cannot read {}", path.display()));
        let file = tma::files::open(path).map_err(|e| tma::error::unreadable(path, &e))?;
        let layout = Layout::read(&ReadCache::new(file)).map_err(|why| cannot().because(why))?;
        Ok(Self { path: path.display().to_string(), layout })
    }

    /// The program of a module, wherever it is found.
    ///
    /// # Errors
    /// It is not found, or is not the recorded one.
    pub fn of(module: &Module, search: &SearchPaths) -> tma::Result<Self> {
        let found = locate(search, module).map_err(|gap| {
            Error::failed(format!("the program {} is not known", module.path))
                .because(gap.to_string())
                .hint("name it with --binary FILE or --symfs DIR")
        })?;
        Ok(Self { path: found.place.path().display().to_string(), layout: found.layout })
    }

    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its build-id.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.layout.build_id.as_deref()
    }

    /// Whether it can be loaded anywhere: its first segment is at address 0.
    pub fn is_relocatable(&self) -> bool {
        self.first_address() == 0
    }

    /// Address (p_vaddr) of its first segment.
    pub fn first_address(&self) -> u64 {
        self.layout.segments.iter().map(|s| s.address).min().unwrap_or(0)
    }

    /// The address (p_vaddr) of an offset in the file.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        self.layout.address_of(offset)
    }

    /// The offset in the file of code at an address (p_vaddr).
    pub fn offset_of(&self, address: u64) -> Option<u64> {
        self.layout.offset_of(address)
    }

    /// Whether there is code at an address (p_vaddr).
    pub fn has_code(&self, address: u64) -> bool {
        self.offset_of(address).is_some()
    }

    /// The mappings of its code in a process, `base` above its own addresses.
    pub fn mappings(&self, pid: u32, base: u64) -> Vec<Mapping> {
        let code = self.layout.segments.iter().filter(|s| s.executable);
        code.map(|segment| Mapping {
            pid,
            tid: pid,
            start: segment.address.wrapping_add(base),
            length: segment.memory_size,
            offset: segment.offset,
            path: self.path.clone(),
            build_id: self.layout.build_id.clone(),
            inode: None,
            executable: Some(true),
            kernel: false,
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module::ModuleKind;

    #[test]
    fn what_was_given_is_no_remedy() {
        let module = |build_id: Option<Vec<u8>>| Module {
            path: "/nowhere/prog".to_owned(),
            kind: ModuleKind::File,
            build_id,
            ..Module::default()
        };
        let why = |search: &SearchPaths, id| missing(search, &module(id)).unwrap();
        let mut search = SearchPaths::default();
        assert_eq!(why(&search, None), "it is not here; --binary FILE or --symfs DIR gives it");
        search.roots.push(PathBuf::from("/some/root"));
        assert_eq!(
            why(&search, None),
            "it is not here, nor below /some/root; --binary FILE gives it"
        );
        // This test is a program, but not the recorded one.
        let own = std::env::current_exe().unwrap();
        search.programs.push(own.clone());
        assert!(why(&search, None).contains("has another name"));
        let found = why(&search, Some(vec![0xab; 20]));
        let here = "it is not here, nor below /some/root, and ";
        let expected = format!("{here}{} is another program: build-id ", own.display());
        assert!(
            found.starts_with(&expected) && found.contains("abababababab… is recorded"),
            "{found}"
        );
        // A program that stands for another module does not hide what is wrong with this one.
        let changed = Module { path: own.display().to_string(), ..module(Some(vec![0xab; 20])) };
        search.programs = vec![PathBuf::from("/bin/sh"), own.clone()];
        let found = why(&search, None);
        assert!(found.starts_with("it is not here, nor below /some/root, and none of "), "{found}");
        let search = SearchPaths::default();
        assert!(missing(&search, &changed).unwrap().starts_with("it has changed since: build-id "));
        assert_eq!(
            missing(&search, &Module { path: own.display().to_string(), ..module(None) }),
            None
        );
    }
}
