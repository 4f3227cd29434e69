//! Finds the variables that are in scope at an instruction and where they are, also by the canonical frame address.

use super::read::string;
use super::shape::{TypeRef, referred};
use crate::symbols::reader::{Entry, Reader, contains};
use crate::unwind::{Cfa, Table};
use gimli::{AttributeValue, EntriesTreeNode, Expression, Operation, UnitOffset, UnitRef};
use std::fmt;

/// Nesting of scopes: only damaged files are deeper.
const DEEPEST: usize = 128;
/// Entries between that of a variable and its declaration.
const LONGEST: usize = 4;

/// A variable at an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: TypeRef,
    /// Where it is there.
    pub place: Place,
}

/// The functions of a unit.
#[derive(Debug, Default)]
pub(super) struct Functions {
    /// First address, end, entry; in order.
    all: Vec<(u64, u64, UnitOffset)>,
}

impl Functions {
    pub fn of(unit: UnitRef<'_, Reader>) -> Self {
        let mut all = Vec::new();
        if let Ok(mut tree) = unit.header.entries_tree(&unit.abbreviations, None)
            && let Ok(root) = tree.root()
        {
            functions(unit, root, 0, &mut all);
        }
        all.sort_by_key(|(start, ..)| *start);
        Self { all }
    }

    /// The entry of the function at an address.
    pub fn at(&self, address: u64) -> Option<UnitOffset> {
        let after = self.all.partition_point(|(start, ..)| *start <= address);
        let (_, end, entry) = self.all.get(after.checked_sub(1)?)?;
        (address < *end).then_some(*entry)
    }
}

/// Adds the functions of a unit or name space.
fn functions(
    unit: UnitRef<'_, Reader>,
    scope: EntriesTreeNode<'_, '_, Reader>,
    depth: usize,
    found: &mut Vec<(u64, u64, UnitOffset)>,
) {
    let mut children = scope.children();
    while let Ok(Some(child)) = children.next() {
        let entry = child.entry();
        match entry.tag() {
            gimli::DW_TAG_namespace | gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type
                if depth < DEEPEST =>
            {
                functions(unit, child, depth + 1, found);
            }
            gimli::DW_TAG_subprogram => {
                let Ok(mut ranges) = unit.die_ranges(entry) else { continue };
                while let Ok(Some(range)) = ranges.next() {
                    found.push((range.begin, range.end, entry.offset()));
                }
            }
            _ => {}
        }
    }
}

/// The variables of the function with this entry at `address`, those of the innermost scope first; `cfa` is the
/// canonical frame address there.
pub(super) fn variables(
    unit: UnitRef<'_, Reader>,
    function: UnitOffset,
    address: u64,
    cfa: Base,
) -> Vec<Variable> {
    let mut found = Vec::new();
    let at = At { unit, address };
    if let Ok(mut tree) = unit.header.entries_tree(&unit.abbreviations, Some(function))
        && let Ok(root) = tree.root()
    {
        let base = frame_base(unit, root.entry().attr_value(gimli::DW_AT_frame_base), cfa);
        at.walk(root, base, 0, &mut found);
    }
    found.reverse();
    found
}

struct At<'a> {
    unit: UnitRef<'a, Reader>,
    address: u64,
}

impl At<'_> {
    /// Adds the variables of a scope; `base` is the frame base of the function that it is in.
    fn walk(
        &self,
        scope: EntriesTreeNode<'_, '_, Reader>,
        base: Base,
        depth: usize,
        found: &mut Vec<Variable>,
    ) {
        let mut children = scope.children();
        while let Ok(Some(child)) = children.next() {
            let entry = child.entry();
            match entry.tag() {
                gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                    found.extend(self.variable(entry, base));
                }
                gimli::DW_TAG_lexical_block | gimli::DW_TAG_inlined_subroutine
                    if depth < DEEPEST && contains(self.unit, entry, self.address) =>
                {
                    self.walk(child, base, depth + 1, found);
                }
                _ => {}
            }
        }
    }

    fn variable(&self, entry: &Entry, base: Base) -> Option<Variable> {
        let location = entry.attr_value(gimli::DW_AT_location)?;
        let place = place(self.unit, location, self.address, base)?;
        let (mut name, mut ty) = (None, None);
        let mut next = Some(entry.clone());
        // An inlined or separated variable refers to what declares it.
        for _ in 0..LONGEST {
            let Some(own) = next.take() else { break };
            name = name.or_else(|| string(self.unit, own.attr_value(gimli::DW_AT_name)?));
            ty = ty.or_else(|| referred(self.unit, false, own.attr_value(gimli::DW_AT_type)?));
            let origin = own
                .attr_value(gimli::DW_AT_abstract_origin)
                .or_else(|| own.attr_value(gimli::DW_AT_specification));
            if let Some(AttributeValue::UnitRef(at)) = origin {
                next = self.unit.entry(at).ok();
            }
        }
        Some(Variable { name: name?, ty: ty?, place })
    }
}

/// Where a variable is. Registers have DWARF's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The register's value is that of the variable + `offset`.
    Value {
        /// The register.
        register: u16,
        /// Offset to subtract from its value.
        offset: i64,
    },
    /// It is in memory at the register's value + `offset`.
    Memory {
        /// The register.
        register: u16,
        /// Offset of its first byte.
        offset: i64,
    },
}

/// Base of frame offsets.
pub(super) type Base = Option<(u16, i64)>;

/// Where `DW_AT_location` puts a variable at `address`.
fn place(
    unit: UnitRef<'_, Reader>,
    location: AttributeValue<Reader>,
    address: u64,
    base: Base,
) -> Option<Place> {
    if let AttributeValue::Exprloc(expression) = location {
        return of(unit, expression, base);
    }
    let mut all = unit.attr_locations(location).ok()??;
    while let Ok(Some(one)) = all.next() {
        if (one.range.begin..one.range.end).contains(&address) {
            return of(unit, one.data, base);
        }
    }
    None
}

/// Expressions that are a register, a constant distance from one, or such a place in memory.
fn of(unit: UnitRef<'_, Reader>, expression: Expression<Reader>, base: Base) -> Option<Place> {
    let mut operations = expression.operations(unit.encoding());
    let first = operations.next().ok()??;
    let second = operations.next().ok()?;
    if second.is_some() && operations.next().ok()?.is_some() {
        return None;
    }
    match (first, second) {
        (Operation::Register { register }, None) => {
            Some(Place::Value { register: register.0, offset: 0 })
        }
        (Operation::RegisterOffset { register, offset, .. }, None) => {
            Some(Place::Memory { register: register.0, offset })
        }
        // The variable is the register + offset: the register is the variable - offset.
        (Operation::RegisterOffset { register, offset, .. }, Some(Operation::StackValue)) => {
            Some(Place::Value { register: register.0, offset: offset.checked_neg()? })
        }
        (Operation::FrameOffset { offset }, None) => {
            let (register, distance) = base?;
            Some(Place::Memory { register, offset: distance.checked_add(offset)? })
        }
        _ => None,
    }
}

/// Base of a function's frame offsets; `cfa` is the canonical frame address.
fn frame_base(
    unit: UnitRef<'_, Reader>,
    attribute: Option<AttributeValue<Reader>>,
    cfa: Base,
) -> Base {
    let AttributeValue::Exprloc(expression) = attribute? else { return None };
    let mut operations = expression.operations(unit.encoding());
    match operations.next().ok()?? {
        Operation::CallFrameCFA => cfa,
        Operation::Register { register } => Some((register.0, 0)),
        Operation::RegisterOffset { register, offset, .. } => Some((register.0, offset)),
        _ => None,
    }
}

/// The unwind tables of a program.
pub(super) struct Frames {
    table: Table,
}

impl Frames {
    pub fn new(program: &object::File<'_>) -> Self {
        Self { table: Table::new(program, None) }
    }

    /// Register and offset of the canonical frame address at `address`.
    pub fn at(&mut self, address: u64) -> Base {
        match self.table.row(address)?.cfa {
            Cfa::Offset(register, offset) => Some((register, offset)),
            Cfa::Expression(_) => None,
        }
    }
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames").finish_non_exhaustive()
    }
}
