//! A type as data; the units of a file, and the entries that others refer to.

use crate::symbols::reader::Reader;
use gimli::{AttributeValue, Dwarf, Unit, UnitRef};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A type: where DWARF describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeRef {
    /// In the file that dwz moved common parts to.
    pub(super) shared: bool,
    /// Offset in `.debug_info`.
    pub(super) offset: usize,
}

/// Target of a pointer or reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pointee {
    /// Its type.
    pub ty: TypeRef,
    /// Whether it goes by the name of the reference.
    pub is_reference: bool,
}

/// Why the type of data is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Untyped {
    /// The module has no DWARF, or none for this code.
    NoDwarf,
    /// DWARF names no variable there.
    NoVariable,
    /// The variable is no pointer.
    NoPointer,
    /// The type is only declared, or described in a way that is not read.
    NoType,
    /// The type has no member at the offset.
    NoMember,
}

impl fmt::Display for Untyped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoDwarf => "no debug information (compile with -g)",
            Self::NoVariable => "DWARF names no variable that its address is made from",
            Self::NoPointer => "the variable that its address is made from is no pointer",
            Self::NoType => "the type is not described by DWARF",
            Self::NoMember => "the type has no member at this offset",
        })
    }
}

/// A type without its qualifiers and other names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Type {
    /// Its name as C writes it: `struct node`; empty: it has none.
    pub name: String,
    /// Bytes, if it says.
    pub size: Option<u64>,
    pub shape: Shape,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shape {
    /// A number or the like.
    Scalar,
    /// A pointer; `None`: to void.
    Pointer(Option<TypeRef>),
    /// A reference of C++.
    Reference(Option<TypeRef>),
    /// An array: type of its elements, their number per dimension where known.
    Array(Option<TypeRef>, Vec<Option<u64>>),
    /// A structure, class or union.
    Group { members: Vec<GroupMember>, is_union: bool },
    /// A type that is described elsewhere.
    Declared,
}

/// A member of a structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupMember {
    /// `None`: an anonymous structure, or a base class.
    pub name: Option<String>,
    pub offset: u64,
    pub ty: TypeRef,
}

impl Type {
    /// Its target.
    pub fn pointee(&self) -> Result<Pointee, Untyped> {
        let (to, is_reference) = match &self.shape {
            Shape::Pointer(to) => (to, false),
            Shape::Reference(to) => (to, true),
            _ => return Err(Untyped::NoPointer),
        };
        let ty = to.ok_or(Untyped::NoType)?;
        Ok(Pointee { ty, is_reference })
    }
}

type Header = gimli::UnitHeader<Reader>;

/// The units of a file and of the one that it shares parts with.
#[derive(Debug)]
pub(super) struct Units {
    dwarf: Arc<Dwarf<Reader>>,
    /// Their headers by offset: own ones, shared ones.
    headers: [Vec<(usize, Header)>; 2],
    read: HashMap<(bool, usize), Option<Arc<Unit<Reader>>>>,
}

impl Units {
    pub fn new(dwarf: Arc<Dwarf<Reader>>) -> Self {
        let headers = [headers(Some(&dwarf)), headers(dwarf.sup())];
        Self { dwarf, headers, read: HashMap::new() }
    }

    /// The own units, in order.
    pub fn each(&self, visit: &mut dyn FnMut(UnitRef<'_, Reader>)) {
        for (_, header) in &self.headers[0] {
            if let Ok(unit) = self.dwarf.unit(header.clone()) {
                visit(unit.unit_ref(&self.dwarf));
            }
        }
    }

    /// Calls `read` with the unit that has an entry, and the entry's offset in it.
    pub fn with<T>(
        &mut self,
        at: TypeRef,
        read: impl FnOnce(UnitRef<'_, Reader>, gimli::UnitOffset) -> Option<T>,
    ) -> Option<T> {
        let dwarf = Arc::clone(&self.dwarf);
        let dwarf: &Dwarf<Reader> = if at.shared { dwarf.sup()? } else { &dwarf };
        let headers = &self.headers[usize::from(at.shared)];
        let after = headers.partition_point(|(start, _)| *start <= at.offset);
        let (start, header) = headers.get(after.checked_sub(1)?)?;
        let key = (at.shared, *start);
        let unit = self
            .read
            .entry(key)
            .or_insert_with(|| dwarf.unit(header.clone()).ok().map(Arc::new))
            .clone()?;
        let offset = gimli::DebugInfoOffset(at.offset).to_unit_offset(&unit.header)?;
        read(unit.unit_ref(dwarf), offset)
    }
}

fn headers(dwarf: Option<&Dwarf<Reader>>) -> Vec<(usize, Header)> {
    let mut all = Vec::new();
    let Some(dwarf) = dwarf else { return all };
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        if let Some(offset) = header.debug_info_offset() {
            all.push((offset.0, header));
        }
    }
    all
}

/// Target of a reference in an attribute of an entry of `unit`.
pub(super) fn referred(
    unit: UnitRef<'_, Reader>,
    shared: bool,
    value: AttributeValue<Reader>,
) -> Option<TypeRef> {
    match value {
        AttributeValue::UnitRef(at) => {
            let offset = at.to_debug_info_offset(&unit.header)?.0;
            Some(TypeRef { shared, offset })
        }
        AttributeValue::DebugInfoRef(at) => Some(TypeRef { shared, offset: at.0 }),
        AttributeValue::DebugInfoRefSup(at) => Some(TypeRef { shared: true, offset: at.0 }),
        // Types in units of their own (`-fdebug-types-section`) are not read.
        _ => None,
    }
}
