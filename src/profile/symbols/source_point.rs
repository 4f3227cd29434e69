//! Instructions as sample profiles of compilers name them: function, lines after its first, discriminator.

use gimli::{AttributeValue, DebuggingInformationEntry, Reader, UnitRef};

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
pub(super) fn find<R: Reader>(unit: UnitRef<'_, R>, address: u64) -> Option<SourcePoint> {
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
fn row<R: Reader>(unit: UnitRef<'_, R>, address: u64) -> Option<(u64, u64)> {
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

fn contains<R: Reader>(
    unit: UnitRef<'_, R>,
    entry: &DebuggingInformationEntry<R>,
    address: u64,
) -> bool {
    let Ok(mut ranges) = unit.die_ranges(entry) else { return false };
    while let Ok(Some(range)) = ranges.next() {
        if (range.begin..range.end).contains(&address) {
            return true;
        }
    }
    false
}

/// Name and line of a function; both may be where it is declared.
fn declared<R: Reader>(
    unit: UnitRef<'_, R>,
    entry: &DebuggingInformationEntry<R>,
) -> Option<(String, u64)> {
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
