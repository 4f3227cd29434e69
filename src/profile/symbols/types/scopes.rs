//! The variables that are in scope at an instruction, and where they are.

use super::location::{Base, Place, frame_base, place};
use super::read::string;
use super::shape::TypeRef;
use super::units::referred;
use crate::symbols::dwarf::Reader;
use gimli::{AttributeValue, DebuggingInformationEntry, EntriesTreeNode, UnitRef};

type Entry = DebuggingInformationEntry<Reader>;

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

/// The variables at `address`, those of the innermost scope first; `cfa` is the canonical frame address there.
pub(super) fn variables(unit: UnitRef<'_, Reader>, address: u64, cfa: Base) -> Vec<Variable> {
    let mut found = Vec::new();
    let at = At { unit, address, cfa };
    if let Ok(mut tree) = unit.header.entries_tree(&unit.abbreviations, None)
        && let Ok(root) = tree.root()
    {
        at.walk(root, None, 0, &mut found);
    }
    found.reverse();
    found
}

struct At<'a> {
    unit: UnitRef<'a, Reader>,
    address: u64,
    cfa: Base,
}

impl At<'_> {
    /// Adds the variables of a scope; `base` is the frame base of the function that it is in.
    fn walk(
        &self,
        scope: EntriesTreeNode<'_, '_, Reader>,
        base: Option<Base>,
        depth: usize,
        found: &mut Vec<Variable>,
    ) {
        let mut children = scope.children();
        while let Ok(Some(child)) = children.next() {
            let entry = child.entry();
            let inner = match entry.tag() {
                gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                    found.extend(base.and_then(|base| self.variable(entry, base)));
                    continue;
                }
                gimli::DW_TAG_namespace
                | gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                    if base.is_none() =>
                {
                    None
                }
                gimli::DW_TAG_subprogram if self.is_in(entry) => {
                    Some(frame_base(self.unit, entry.attr_value(gimli::DW_AT_frame_base), self.cfa))
                }
                gimli::DW_TAG_lexical_block | gimli::DW_TAG_inlined_subroutine
                    if base.is_some() && self.is_in(entry) =>
                {
                    base
                }
                _ => continue,
            };
            if depth < DEEPEST {
                self.walk(child, inner, depth + 1, found);
            }
        }
    }

    fn is_in(&self, entry: &Entry) -> bool {
        let Ok(mut ranges) = self.unit.die_ranges(entry) else { return false };
        while let Ok(Some(range)) = ranges.next() {
            if (range.begin..range.end).contains(&self.address) {
                return true;
            }
        }
        false
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
