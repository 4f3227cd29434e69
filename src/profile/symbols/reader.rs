//! Reads DWARF from copies of the sections. The units of split DWARF are in files of their own (`.dwo`), or all in
//! one (`.dwp`).

use crate::files::{Files, Place};
use crate::unwind;
use addr2line::{LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{DebuggingInformationEntry, Dwarf, DwarfPackage, Reader as _, UnitRef};
use isa::elf;
use object::CompressedData;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) use isa::elf::Reader;

/// An entry of debug information.
pub(super) type Entry = DebuggingInformationEntry<Reader>;

/// Largest ratio by which a compressed section may claim to expand: zlib's maximum is 1032, that of
/// debug information some dozen.
const MOST_SHRUNK: u64 = 1100;

/// A section, decompressed; empty where it is missing or cannot be read.
pub(super) fn section(file: &object::File<'_>, name: &str, files: &Files) -> Reader {
    let is_fine = |compressed: &CompressedData<'_>| {
        let most = (compressed.data.len() as u64).saturating_mul(MOST_SHRUNK);
        let size = compressed.uncompressed_size;
        size <= most && files.take(size).is_ok()
    };
    unwind::section(file, name, is_fine).unwrap_or_else(|| elf::reader(file, &[]))
}

/// Whether the code of an entry is at an address.
pub(super) fn contains(unit: UnitRef<'_, Reader>, entry: &Entry, address: u64) -> bool {
    let Ok(mut ranges) = unit.die_ranges(entry) else { return false };
    while let Ok(Some(range)) = ranges.next() {
        if (range.begin..range.end).contains(&address) {
            return true;
        }
    }
    false
}

/// Where the units of a program are.
pub(super) struct Split {
    program: Place,
    files: Files,
    /// `PROGRAM.dwp`: `None` not looked for yet, `Some(None)` there is none.
    package: Option<Option<DwarfPackage<Reader>>>,
}

impl Split {
    /// Units of the program at this place.
    pub fn new(program: Place, files: Files) -> Self {
        Self { program, files, package: None }
    }

    /// Completes a lookup with all units that it needs.
    pub fn resolve<L: LookupContinuation<Buf = Reader>>(
        &mut self,
        mut lookup: LookupResult<L>,
    ) -> L::Output {
        loop {
            lookup = match lookup {
                LookupResult::Output(found) => return found,
                LookupResult::Load { load, continuation } => continuation.resume(self.unit(&load)),
            };
        }
    }

    /// The unit that is asked for: of the package, else the file that the program names, else one of its name
    /// beside the program.
    fn unit(&mut self, load: &SplitDwarfLoad<Reader>) -> Option<Arc<Dwarf<Reader>>> {
        let (program, files) = (&self.program, &self.files);
        let package = self.package.get_or_insert_with(|| package(program, files)).as_ref();
        let packed = package.and_then(|all| all.find_cu(load.dwo_id, &load.parent).ok().flatten());
        if let Some(found) = packed {
            return Some(Arc::new(found));
        }
        let name = path(load.path.as_ref()?)?;
        let folder = load.comp_dir.as_ref().and_then(path).unwrap_or_default();
        let named = self.program.linked(&folder.join(&name));
        let beside = self.program.linked(Path::new(name.file_name()?));
        [named, beside].iter().find_map(|place| self.file(place, load)).map(Arc::new)
    }

    /// The unit in the file at a place, if it is the one that is asked for.
    fn file(&self, place: &Place, load: &SplitDwarfLoad<Reader>) -> Option<Dwarf<Reader>> {
        let data = self.files.read(&place.open().ok()?).ok()?;
        let file = object::File::parse(&*data).ok()?;
        let mut dwarf =
            Dwarf::load(|id| Ok::<_, gimli::Error>(dwo_section(&file, id, &self.files))).ok()?;
        let unit = dwarf.units().next().ok()??;
        if dwarf.unit(unit).ok()?.dwo_id != Some(load.dwo_id) {
            return None;
        }
        dwarf.make_dwo(&load.parent);
        Some(dwarf)
    }
}

/// The package beside a program.
fn package(program: &Place, files: &Files) -> Option<DwarfPackage<Reader>> {
    let mut name = OsString::from(program.path().file_name()?);
    name.push(".dwp");
    let place = program.linked(Path::new(&name));
    let data = files.read(&place.open().ok()?).ok()?;
    let file = object::File::parse(&*data).ok()?;
    let section = |id| Ok::<_, gimli::Error>(dwo_section(&file, id, files));
    DwarfPackage::load(section, elf::reader(&file, &[])).ok()
}

fn dwo_section(file: &object::File<'_>, id: gimli::SectionId, files: &Files) -> Reader {
    section(file, id.dwo_name().unwrap_or_default(), files)
}

fn path(text: &Reader) -> Option<PathBuf> {
    let text = text.to_string_lossy().ok()?;
    (!text.is_empty()).then(|| PathBuf::from(text.as_ref()))
}

impl fmt::Debug for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Split").field("program", &self.program).finish_non_exhaustive()
    }
}
