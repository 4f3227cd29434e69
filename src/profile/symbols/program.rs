//! One ELF file with everything read from it so far, and separate debug files: by build-id, by `.gnu_debuglink`, and
//! those shared by several (dwz).

use super::dwarf::Lines;
use super::elf::{self, DataObject, Objects};
use super::table::Table;
use crate::files::{Files, Part, Place, hexadecimal, same_id};
use crate::unwind;
use isa::elf::Layout;
use isa::flow::{Image, NoImage};
use object::{Object as _, ReadCache};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A program as it is mapped in memory.
pub type ProgramImage = Image<Arc<Vec<u8>>>;

/// An ELF file.
#[derive(Debug)]
pub(super) struct Program {
    data: Arc<Vec<u8>>,
    place: Place,
    layout: Arc<Layout>,
    /// Its separate debug file: `None` not searched yet, `Some(None)` there is none.
    debug: Option<Option<Arc<Vec<u8>>>>,
    lines: Option<Lines>,
    objects: Option<Objects>,
    unwind: Option<Option<unwind::Table>>,
    image: Option<Result<Arc<ProgramImage>, NoImage>>,
}

impl Program {
    /// The ELF file `data`, found at `place`.
    pub fn new(data: Vec<u8>, place: Place, layout: Layout) -> Self {
        let (data, layout) = (Arc::new(data), Arc::new(layout));
        Self {
            data,
            place,
            layout,
            debug: None,
            lines: None,
            objects: None,
            unwind: None,
            image: None,
        }
    }

    /// Its functions.
    pub fn table(&mut self, files: &Files) -> object::Result<Table> {
        let data = Arc::clone(&self.data);
        let file = object::File::parse(&**data)?;
        let debug = if file.symbol_table().is_none() { self.debug(files, &file) } else { None };
        let is_bare = file.symbol_table().is_none() && debug.is_none();
        let debug = debug.as_ref().and_then(|data| object::File::parse(&***data).ok());
        let mini = if is_bare { elf::mini(&file, files) } else { None };
        let mini = mini.as_ref().and_then(|data| object::File::parse(&**data).ok());
        Ok(elf::table(&file, &self.layout, debug.as_ref(), mini.as_ref()))
    }

    /// The static variable at `address`.
    pub fn object(&mut self, files: &Files, address: u64) -> Option<&DataObject> {
        if self.objects.is_none() {
            let data = Arc::clone(&self.data);
            let file = object::File::parse(&**data).ok()?;
            let stripped = file.symbol_table().is_none();
            let debug = if stripped { self.debug(files, &file) } else { None };
            let debug = debug.as_ref().and_then(|data| object::File::parse(&***data).ok());
            self.objects = Some(Objects::new(&file, debug.as_ref()));
        }
        self.objects.as_ref()?.at(address)
    }

    /// Its unwind tables: its own, or else those of its debug file.
    pub fn unwind_table(&mut self, files: &Files) -> Option<&mut unwind::Table> {
        if self.unwind.is_none() {
            let table = self.read_unwind_table(files);
            self.unwind = Some(table);
        }
        self.unwind.as_mut()?.as_mut()
    }

    fn read_unwind_table(&mut self, files: &Files) -> Option<unwind::Table> {
        let data = Arc::clone(&self.data);
        let file = object::File::parse(&**data).ok()?;
        let mut own = unwind::Table::new(&file, None);
        if !own.is_empty() {
            return Some(own);
        }
        let debug = self.debug(files, &file)?;
        let debug = object::File::parse(&**debug).ok()?;
        Some(unwind::Table::new(&file, Some(&debug)))
    }

    /// Its lines, from itself or its debug file.
    pub fn lines(&mut self, files: &Files) -> Option<&mut Lines> {
        if self.lines.is_none() {
            self.lines = Some(self.read_lines(files)?);
            // The needed sections of the debug file have been copied.
            self.debug = Some(None);
        }
        self.lines.as_mut()
    }

    fn read_lines(&mut self, files: &Files) -> Option<Lines> {
        let data = Arc::clone(&self.data);
        let file = object::File::parse(&**data).ok()?;
        let debug = match file.section_by_name(".debug_info") {
            Some(_) => None,
            None => self.debug(files, &file),
        };
        let debug = debug.as_ref().and_then(|data| object::File::parse(&***data).ok());
        let program = &file;
        let file = debug.as_ref().unwrap_or(program);
        let shared = find_shared(files, file, &self.place);
        let shared = shared.as_ref().and_then(|data| object::File::parse(&**data).ok());
        Some(Lines::new(&self.place, program, file, shared.as_ref(), files))
    }

    fn debug(&mut self, files: &Files, file: &object::File<'_>) -> Option<Arc<Vec<u8>>> {
        let (place, build_id) = (&self.place, self.layout.build_id.as_deref());
        self.debug
            .get_or_insert_with(|| find_debug(files, file, place, build_id).map(Arc::new))
            .clone()
    }

    /// Whether it lies at the same addresses in every process.
    pub fn is_fixed(&self) -> bool {
        self.layout
            .segments
            .iter()
            .map(|segment| segment.address)
            .min()
            .is_some_and(|first| first > 0)
    }

    /// The program as it is mapped in memory.
    ///
    /// # Errors
    /// Its code cannot be read: it is for another processor.
    pub fn image(&mut self) -> Result<&Arc<ProgramImage>, NoImage> {
        let data = &self.data;
        let image = self.image.get_or_insert_with(|| Image::new(Arc::clone(data)).map(Arc::new));
        image.as_ref().map_err(Clone::clone)
    }
}

/// Where distributions install debug files.
const USUAL: &str = "/usr/lib/debug";

/// The debug file of `file` at `place` with this build-id.
fn find_debug(
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
fn find_shared(files: &Files, file: &object::File<'_>, place: &Place) -> Option<Vec<u8>> {
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
