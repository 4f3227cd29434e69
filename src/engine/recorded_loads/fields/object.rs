//! The components of an instruction's memory operand, and the object that it is in → its member.

use iced_x86::{Instruction, OpKind, Register};
use profile::code::Code;
use profile::symbols::{Pointee, TypeRef, Untyped};

/// A memory operand: base + index + displacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operand {
    /// Full registers.
    pub base: Option<Register>,
    pub index: Option<Register>,
    /// The factor of the index; an index with 1 may be the pointer.
    pub scale: u64,
    /// Whether it is relative to the instruction pointer.
    pub is_relative: bool,
    /// Displacement; the address itself where there is no register, or the instruction pointer is the base.
    pub displacement: i64,
}

impl Operand {
    /// That of an instruction; `None` if it has none, several, or one in another segment (thread-local data).
    pub fn of(instruction: &Instruction) -> Option<Self> {
        let kinds = (0..instruction.op_count()).map(|number| instruction.op_kind(number));
        if kinds.filter(|kind| *kind == OpKind::Memory).count() != 1 {
            return None;
        }
        if matches!(instruction.segment_prefix(), Register::FS | Register::GS) {
            return None;
        }
        let full = |register: Register| {
            (register != Register::None && !register.is_ip()).then(|| register.full_register())
        };
        Some(Self {
            base: full(instruction.memory_base()),
            index: full(instruction.memory_index()).filter(|register| register.is_gpr()),
            scale: u64::from(instruction.memory_index_scale()),
            is_relative: instruction.is_ip_rel_memory_operand(),
            displacement: instruction.memory_displacement64() as i64,
        })
    }

    /// The factor of its index, if it has one.
    pub fn step(&self) -> Option<u64> {
        self.index.map(|_| self.scale)
    }

    /// Whether it is in the frame of its function, by the stack pointer.
    pub fn is_stack(&self) -> bool {
        self.base == Some(Register::RSP)
    }
}

/// The object that an address is in.
#[derive(Debug, Clone)]
pub(super) struct Object {
    /// A variable (`table`), or an expression of a pointer or reference (`node->next`).
    pub text: String,
    pub by: By,
    /// Type of the object.
    pub ty: TypeRef,
    /// Offset of the address from its beginning.
    pub offset: i64,
    /// Bytes that an index, which is not known, is multiplied by, if one is added.
    pub index: Option<u64>,
}

/// How an expression stands for an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// It is its name.
    Name,
    /// It is a pointer to it.
    Pointer,
    /// It is a reference to it.
    Reference,
}

impl By {
    /// That of a pointer or reference.
    pub fn of(to: Pointee) -> Self {
        if to.is_reference { Self::Reference } else { Self::Pointer }
    }
}

/// A member in the source.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Field {
    /// As the source could write it: `node->next`, `table.buckets[].key`.
    pub text: String,
    /// The innermost structure that has it: `struct node`; empty: none.
    pub of: String,
    /// Its path there: `next`.
    pub name: String,
    /// Its offset there.
    pub offset: u64,
}

impl Object {
    /// The member at its offset, and the member's type.
    ///
    /// # Errors
    /// Why its type or the member there is not known.
    pub fn field(
        &self,
        module: usize,
        code: &mut Code,
    ) -> Result<(Field, Option<TypeRef>), Untyped> {
        let module = code.modules.get(module).cloned().ok_or(Untyped::NoType)?;
        let size = code.symbols.size_of(&module, self.ty).filter(|size| *size > 0);
        let known = || size.and_then(|size| i64::try_from(size).ok());
        let whole = |size: i64| (self.offset.div_euclid(size), self.offset.rem_euclid(size));
        let (element, offset) = match (self.by, self.index) {
            (By::Pointer | By::Reference, _) | (By::Name, Some(_)) => {
                known().map(whole).ok_or(Untyped::NoType)?
            }
            // An array without a length has no end.
            (By::Name, None) => (0, self.offset),
        };
        let offset = u64::try_from(offset).map_err(|_| Untyped::NoMember)?;
        let member = code.symbols.member(&module, self.ty, offset, self.index.is_none())?;
        // The index is one of an array in the structure, unless it counts whole structures.
        let is_inside = element == 0 && size != self.index && member.path.contains("[]");
        let is_first = element == 0 && (self.index.is_none() || is_inside);
        let text = match self.by {
            By::Name => format!("{}{}", self.text, member.path),
            By::Reference if is_first => format!("{}{}", self.text, member.path),
            _ => self.through_pointer(&member.path, element, is_inside),
        };
        let (of, name, offset) = (member.of, member.name, member.offset);
        Ok((Field { text, of, name, offset }, member.ty))
    }

    /// `pointer->path`, `pointer[].path` or `*pointer`.
    fn through_pointer(&self, path: &str, element: i64, is_inside: bool) -> String {
        let pointer = match self.text.starts_with('*') {
            true => format!("({})", self.text),
            false => self.text.clone(),
        };
        match (self.index.is_some() && !is_inside, element, path.strip_prefix('.')) {
            (true, ..) => format!("{pointer}[]{path}"),
            (false, 0, Some(member)) => format!("{pointer}->{member}"),
            (false, 0, None) if path.is_empty() => format!("*{pointer}"),
            (false, 0, None) => format!("(*{pointer}){path}"),
            (false, element, _) => format!("{pointer}[{element}]{path}"),
        }
    }
}
