//! An entry of DWARF → a type, and the member at an offset of one: `.buckets[].next`.

use super::shape::{GroupMember, Shape, Type, TypeRef, Units, Untyped, referred};
use crate::symbols::reader::{Entry, Reader};
use gimli::{AttributeValue, Dwarf, EntriesTreeNode, UnitRef};
use std::collections::HashMap;
use std::sync::Arc;

/// Longest chain of qualifiers and other names.
const LONGEST: usize = 32;
/// Members of a structure, and elements of its nesting: only damaged files have more.
const MOST_MEMBERS: usize = 1 << 14;

/// The types of a file, read when asked for.
#[derive(Debug)]
pub(super) struct Types {
    pub units: Units,
    known: HashMap<TypeRef, Result<Arc<Type>, Untyped>>,
}

/// A type, or an alias of one.
enum Definition {
    Type(Type),
    /// Another name or a qualifier of a type, with its own name.
    Alias(Option<String>, Option<TypeRef>),
}

impl Types {
    pub fn new(dwarf: Arc<Dwarf<Reader>>) -> Self {
        Self { units: Units::new(dwarf), known: HashMap::new() }
    }

    /// A type, without its qualifiers.
    pub fn get(&mut self, at: TypeRef) -> Result<Arc<Type>, Untyped> {
        if let Some(known) = self.known.get(&at) {
            return known.clone();
        }
        let found = self.find(at).map(Arc::new).ok_or(Untyped::NoType);
        self.known.insert(at, found.clone());
        found
    }

    fn find(&mut self, at: TypeRef) -> Option<Type> {
        let (mut next, mut alias) = (at, None);
        for _ in 0..LONGEST {
            let shared = next.shared;
            match self.units.with(next, |unit, offset| read(unit, shared, offset))? {
                Definition::Type(mut found) => {
                    if found.name.is_empty() {
                        found.name = alias.unwrap_or_default();
                    }
                    return Some(found);
                }
                Definition::Alias(name, to) => {
                    alias = alias.or(name);
                    next = to?;
                }
            }
        }
        None
    }

    /// Bytes of a type.
    pub fn size(&mut self, at: TypeRef) -> Option<u64> {
        let mut factor = 1_u64;
        let mut next = at;
        for _ in 0..LONGEST {
            let own = self.get(next).ok()?;
            if let Some(size) = own.size {
                return factor.checked_mul(size);
            }
            let Shape::Array(Some(element), counts) = &own.shape else { return None };
            for count in counts {
                factor = factor.checked_mul((*count)?)?;
            }
            next = *element;
        }
        None
    }
}

fn read(unit: UnitRef<'_, Reader>, shared: bool, offset: gimli::UnitOffset) -> Option<Definition> {
    let mut tree = unit.header.entries_tree(&unit.abbreviations, Some(offset)).ok()?;
    let root = tree.root().ok()?;
    let entry = root.entry().clone();
    let to = entry.attr_value(gimli::DW_AT_type).and_then(|value| referred(unit, shared, value));
    let name = || string(unit, entry.attr_value(gimli::DW_AT_name)?);
    let size = entry.attr_value(gimli::DW_AT_byte_size).and_then(|value| value.udata_value());
    let of = |kind: &str, shape: Shape| {
        let name = name().unwrap_or_default();
        let name = if kind.is_empty() || name.is_empty() { name } else { format!("{kind} {name}") };
        Some(Definition::Type(Type { name, size, shape }))
    };
    // C names structures by tags; other languages do not.
    let is_c = is_c(unit);
    let tag = |kind: &'static str| if is_c { kind } else { "" };
    match entry.tag() {
        gimli::DW_TAG_typedef => Some(Definition::Alias(name(), to)),
        gimli::DW_TAG_const_type
        | gimli::DW_TAG_volatile_type
        | gimli::DW_TAG_restrict_type
        | gimli::DW_TAG_atomic_type => Some(Definition::Alias(None, to)),
        gimli::DW_TAG_pointer_type => of("", Shape::Pointer(to)),
        gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type => {
            of("", Shape::Reference(to))
        }
        gimli::DW_TAG_array_type => {
            let shape = Shape::Array(to, counts(root));
            of("", shape)
        }
        _ if entry.attr(gimli::DW_AT_declaration).is_some() => of("", Shape::Declared),
        gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => {
            let members = members(unit, shared, root);
            of(tag("struct"), Shape::Group { members, is_union: false })
        }
        gimli::DW_TAG_union_type => {
            let members = members(unit, shared, root);
            of(tag("union"), Shape::Group { members, is_union: true })
        }
        gimli::DW_TAG_enumeration_type => of(tag("enum"), Shape::Scalar),
        gimli::DW_TAG_base_type => of("", Shape::Scalar),
        _ => None,
    }
}

fn is_c(unit: UnitRef<'_, Reader>) -> bool {
    let Ok(root) =
        unit.header.entry(&unit.abbreviations, gimli::UnitOffset(unit.header.size_of_header()))
    else {
        return false;
    };
    matches!(
        root.attr_value(gimli::DW_AT_language),
        Some(AttributeValue::Language(
            gimli::DW_LANG_C | gimli::DW_LANG_C89 | gimli::DW_LANG_C99 | gimli::DW_LANG_C11
        ))
    )
}

/// The text of an attribute.
pub(super) fn string(unit: UnitRef<'_, Reader>, value: AttributeValue<Reader>) -> Option<String> {
    use gimli::Reader as _;
    let text = unit.attr_string(value).ok()?;
    text.to_string_lossy().ok().map(std::borrow::Cow::into_owned)
}

/// Elements of each dimension of an array.
fn counts(root: EntriesTreeNode<'_, '_, Reader>) -> Vec<Option<u64>> {
    let mut all = Vec::new();
    let mut children = root.children();
    while let Ok(Some(child)) = children.next() {
        let entry = child.entry();
        if entry.tag() == gimli::DW_TAG_subrange_type {
            let value = |name| entry.attr_value(name).and_then(|value| value.udata_value());
            let count = value(gimli::DW_AT_count);
            all.push(count.or_else(|| value(gimli::DW_AT_upper_bound)?.checked_add(1)));
        }
    }
    if all.is_empty() {
        all.push(None);
    }
    all
}

fn members(
    unit: UnitRef<'_, Reader>,
    shared: bool,
    root: EntriesTreeNode<'_, '_, Reader>,
) -> Vec<GroupMember> {
    let mut all = Vec::new();
    let mut children = root.children();
    while let Ok(Some(child)) = children.next() {
        if all.len() < MOST_MEMBERS {
            all.extend(member(unit, shared, child.entry()));
        }
    }
    all
}

fn member(unit: UnitRef<'_, Reader>, shared: bool, entry: &Entry) -> Option<GroupMember> {
    let is_base = entry.tag() == gimli::DW_TAG_inheritance;
    if !is_base && entry.tag() != gimli::DW_TAG_member {
        return None;
    }
    // Static members are declared there, too.
    if entry.attr(gimli::DW_AT_external).is_some() || entry.attr(gimli::DW_AT_declaration).is_some()
    {
        return None;
    }
    let number = |name| entry.attr_value(name).and_then(|value| value.udata_value());
    let offset = number(gimli::DW_AT_data_member_location)
        .or_else(|| number(gimli::DW_AT_data_bit_offset).map(|bits| bits / 8))
        .or_else(|| entry.attr(gimli::DW_AT_data_member_location).is_none().then_some(0))?;
    let ty = referred(unit, shared, entry.attr_value(gimli::DW_AT_type)?)?;
    let name = entry.attr_value(gimli::DW_AT_name).and_then(|value| string(unit, value));
    Some(GroupMember { name: name.filter(|_| !is_base), offset, ty })
}

/// Nesting of types: only damaged files are deeper.
const DEEPEST: usize = 64;

/// A member of a type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Member {
    /// How it is reached from the type: `.buckets[].next`; empty: the type itself.
    pub path: String,
    /// Its own type; `None`: not known.
    pub ty: Option<TypeRef>,
    /// The innermost structure that it is in (`struct node`); empty: none.
    pub of: String,
    /// Its offset there.
    pub offset: u64,
    /// Its path in that structure: `next`.
    pub name: String,
}

/// The member at `offset`; `exact`: elements of arrays have their numbers. A part of a union that several members
/// may be is the union.
pub(super) fn member_at(
    types: &mut Types,
    ty: TypeRef,
    offset: u64,
    exact: bool,
) -> Result<Member, Untyped> {
    let mut found = Member { ty: Some(ty), ..Member::default() };
    let (mut next, mut rest) = (ty, offset);
    for _ in 0..DEEPEST {
        found.ty = Some(next);
        let own = types.get(next)?;
        match &own.shape {
            Shape::Scalar | Shape::Pointer(_) | Shape::Reference(_) => {
                let size = own.size.unwrap_or(1).max(1);
                return if rest < size { Ok(found) } else { Err(Untyped::NoMember) };
            }
            Shape::Declared => return Err(Untyped::NoType),
            Shape::Array(element, counts) => {
                let element = element.ok_or(Untyped::NoType)?;
                let size = types.size(element).filter(|size| *size > 0).ok_or(Untyped::NoType)?;
                let brackets = match counts.len() {
                    1 if exact => format!("[{}]", rest / size),
                    dimensions => "[]".repeat(dimensions),
                };
                found.path += &brackets;
                found.name += &brackets;
                (next, rest) = (element, rest % size);
            }
            Shape::Group { members, is_union } => {
                if own.size.is_some_and(|size| rest >= size) {
                    return Err(Untyped::NoMember);
                }
                if !own.name.is_empty() {
                    (found.of, found.offset, found.name) = (own.name.clone(), rest, String::new());
                }
                let fitting = fitting(types, members, rest);
                let one = match fitting.as_slice() {
                    [one] => *one,
                    [_, ..] if *is_union => return Ok(found),
                    // Bit fields share bytes.
                    [one, ..] => *one,
                    [] => return Err(Untyped::NoMember),
                };
                if let Some(name) = &one.name {
                    found.path += &format!(".{name}");
                    let dot = if found.name.is_empty() { "" } else { "." };
                    found.name += &format!("{dot}{name}");
                }
                (next, rest) = (one.ty, rest - one.offset);
            }
        }
    }
    Err(Untyped::NoType)
}

/// The members that have the byte at `offset`.
fn fitting<'a>(types: &mut Types, members: &'a [GroupMember], offset: u64) -> Vec<&'a GroupMember> {
    let mut has = |one: &GroupMember| {
        let inside = offset.checked_sub(one.offset);
        // The last member of a structure may be an array without a length.
        inside.is_some_and(|inside| types.size(one.ty).is_none_or(|size| inside < size))
    };
    let all: Vec<&GroupMember> = members.iter().filter(|one| has(one)).collect();
    // One of unknown length does not hide one that is known.
    let sized: Vec<&GroupMember> =
        all.iter().filter(|one| types.size(one.ty).is_some()).copied().collect();
    if sized.is_empty() { all } else { sized }
}
