//! A type as data.

use std::fmt;

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
