//! The member at an offset of a type: `.buckets[].next`.

use super::read::Types;
use super::shape::{GroupMember, Shape, TypeRef, Untyped};

/// Nesting of types: only damaged files are deeper.
const DEEPEST: usize = 64;

/// A member of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
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
pub(super) fn member(
    types: &mut Types,
    ty: TypeRef,
    offset: u64,
    exact: bool,
) -> Result<Member, Untyped> {
    let mut found = Member {
        path: String::new(),
        ty: Some(ty),
        of: String::new(),
        offset: 0,
        name: String::new(),
    };
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
