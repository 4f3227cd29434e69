//! Reads source lines and inlined functions from DWARF, through addr2line and gimli, and names instructions as
//! compilers' sample profiles do.

use super::demangle::demangle;
use super::reader::{Entry, Reader, Split, contains, section};
use super::table::Line;
use super::types::{DataTypes, Untyped, Variable};
use crate::files::{Files, Place};
use gimli::{AttributeValue, Reader as _, UnitRef};
use object::Object as _;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The source lines of a module.
pub(super) struct Lines {
    /// `None`: the file has no DWARF, or none that can be read.
    context: Option<addr2line::Context<Reader>>,
    known: HashMap<u64, Vec<Line>>,
    split: Split,
    types: Option<DataTypes>,
}

/// Largest number of addresses whose lines are cached; then the cache is cleared.
const MOST_KNOWN: usize = 1 << 20;
/// Largest number of inlined frames at one address; compilers inline dozens deep.
const DEEPEST: usize = 256;

impl Lines {
    /// The lines of `file`, the debug file of `program` or itself; `shared` is the file that dwz moved common
    /// parts to; units may be in files of their own near `place`. Only the list of units is parsed now.
    pub fn new(
        place: &Place,
        program: &object::File<'_>,
        file: &object::File<'_>,
        shared: Option<&object::File<'_>>,
        files: &Files,
    ) -> Self {
        let dwarf = gimli::Dwarf::load(|id| Ok::<_, gimli::Error>(section(file, id.name(), files)));
        let context = dwarf.and_then(|mut dwarf| {
            if let Some(shared) = shared {
                dwarf.load_sup(|id| Ok::<_, gimli::Error>(section(shared, id.name(), files)))?;
            }
            let dwarf = Arc::new(dwarf);
            let has_types = file.section_by_name(".debug_info").is_some();
            let types = has_types.then(|| DataTypes::new(Arc::clone(&dwarf), program));
            addr2line::Context::from_arc_dwarf(dwarf).map(|context| (context, types))
        });
        let (context, types) = context.ok().unzip();
        let split = Split::new(place.clone(), files.clone());
        Self { context, known: HashMap::new(), split, types: types.flatten() }
    }

    /// The lines at `address` (p_vaddr), the innermost inlined function first.
    pub fn at(&mut self, address: u64) -> &[Line] {
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        let (context, split) = (self.context.as_ref(), &mut self.split);
        self.known
            .entry(address)
            .or_insert_with(|| context.map(|c| frames(c, split, address)).unwrap_or_default())
    }

    /// Where code of a source line begins (p_vaddr), in order; `file` is the end of its path.
    pub fn addresses(&mut self, file: &str, line: u32) -> Vec<u64> {
        let Some(context) = &self.context else { return Vec::new() };
        let Ok(rows) = context.find_location_range(0, u64::MAX) else { return Vec::new() };
        let is_file = |path: &str| std::path::Path::new(path).ends_with(file);
        let (mut all, mut end) = (Vec::new(), None);
        for (start, length, place) in rows {
            if place.line != Some(line) || !place.file.is_some_and(is_file) {
                continue;
            }
            // Rows of one line that follow one another are one piece of code.
            if end != Some(start) {
                all.push(start);
            }
            end = start.checked_add(length);
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The instruction at `address` as sample profiles name it; `None` if it is inlined or not in DWARF.
    pub fn source_point(&mut self, address: u64) -> Option<SourcePoint> {
        if address == u64::MAX || self.at(address).len() != 1 {
            return None;
        }
        let unit = self.context.as_ref()?.find_dwarf_and_unit(address).skip_all_loads()?;
        find(unit, address)
    }

    /// The types of data; `None` without DWARF.
    pub fn types(&mut self) -> Option<&mut DataTypes> {
        self.types.as_mut()
    }

    /// The variables in scope at an instruction, the innermost first.
    pub fn variables(&mut self, address: u64) -> Result<Arc<Vec<Variable>>, Untyped> {
        let (context, types) =
            self.context.as_ref().zip(self.types.as_mut()).ok_or(Untyped::NoDwarf)?;
        let unit = context.find_dwarf_and_unit(address).skip_all_loads();
        Ok(types.variables(unit.ok_or(Untyped::NoDwarf)?, address))
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let readable = self.context.is_some();
        f.debug_struct("Lines").field("readable", &readable).finish_non_exhaustive()
    }
}

/// Inlined frames, as far as they can be read.
fn frames(context: &addr2line::Context<Reader>, split: &mut Split, address: u64) -> Vec<Line> {
    // addr2line computes `address + 1`.
    if address == u64::MAX {
        return Vec::new();
    }
    let Ok(mut frames) = split.resolve(context.find_frames(address)) else { return Vec::new() };
    let mut lines: Vec<Line> = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        let place = frame.location;
        lines.push(Line {
            file: place
                .as_ref()
                .and_then(|place| place.file)
                .map(|file| tma::text::name(file).into_owned()),
            column: place.as_ref().and_then(|place| place.column).filter(|&column| column > 0),
            line: place.and_then(|place| place.line).filter(|&line| line > 0),
            inlined: frame.function.and_then(|function| name(&function)),
        });
        if lines.len() == DEEPEST {
            break;
        }
    }
    // The outermost frame is the function itself.
    if let Some(outermost) = lines.last_mut() {
        outermost.inlined = None;
    }
    lines
}

/// A function's name; C names are not mangled.
fn name(function: &addr2line::FunctionName<Reader>) -> Option<String> {
    let raw = function.raw_name().ok()?;
    let raw = tma::text::name(&raw);
    let plain = matches!(
        function.language,
        Some(gimli::DW_LANG_C | gimli::DW_LANG_C89 | gimli::DW_LANG_C99 | gimli::DW_LANG_C11)
    );
    Some(if plain { raw.into_owned() } else { demangle(&raw) })
}

/// An instruction in the source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourcePoint {
    /// Linkage name of its function.
    pub function: String,
    /// Lines after the one that declares the function.
    pub offset: u32,
    /// DWARF discriminator, as it is encoded.
    pub discriminator: u64,
}

/// The point of the instruction at `address`, of a function that is not inlined there; `None` if it is not in DWARF.
fn find(unit: UnitRef<'_, Reader>, address: u64) -> Option<SourcePoint> {
    let (line, discriminator) = row(unit, address)?;
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs().ok()? {
        if entry.tag() == gimli::DW_TAG_subprogram && contains(unit, entry, address) {
            let (function, first) = declared(unit, entry)?;
            // Sample profiles have 16 bits for it.
            let offset = u32::try_from(line.wrapping_sub(first) & 0xffff).ok()?;
            return Some(SourcePoint { function, offset, discriminator });
        }
    }
    None
}

/// Line and discriminator of an address.
fn row(unit: UnitRef<'_, Reader>, address: u64) -> Option<(u64, u64)> {
    let mut rows = unit.line_program.clone()?.rows();
    let mut before: Option<(u64, u64, u64)> = None;
    while let Some((_, row)) = rows.next_row().ok()? {
        if let Some((start, line, discriminator)) = before
            && (start..row.address()).contains(&address)
        {
            return Some((line, discriminator));
        }
        let line = row.line().map(std::num::NonZero::get);
        before =
            line.filter(|_| !row.end_sequence()).map(|l| (row.address(), l, row.discriminator()));
    }
    None
}

/// Name and line of a function; both may be where it is declared.
fn declared(unit: UnitRef<'_, Reader>, entry: &Entry) -> Option<(String, u64)> {
    let mut name = None;
    let mut line = None;
    let mut next = Some(entry.clone());
    for _ in 0..4 {
        let Some(own) = next.take() else { break };
        let linkage = own.attr_value(gimli::DW_AT_linkage_name);
        let plain = own.attr_value(gimli::DW_AT_name);
        name = name.or_else(|| {
            let text = unit.attr_string(linkage.or(plain)?).ok()?;
            text.to_string_lossy().ok().map(std::borrow::Cow::into_owned)
        });
        line = line.or_else(|| own.attr_value(gimli::DW_AT_decl_line)?.udata_value());
        let origin = own
            .attr_value(gimli::DW_AT_abstract_origin)
            .or_else(|| own.attr_value(gimli::DW_AT_specification));
        if let Some(AttributeValue::UnitRef(at)) = origin {
            next = unit.entry(at).ok();
        }
    }
    name.zip(line)
}
