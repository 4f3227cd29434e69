//! What an instruction does, as data.

use super::place::{Place, Places};
use iced_x86::Register;

pub(super) const RSP: Place = Place::gpr(4);

/// `rsi` or `rdi`.
pub(super) fn is_string_pointer(place: Place) -> bool {
    matches!(place.as_gpr(), Some(6 | 7))
}

/// What a read value is used for. Latencies differ by it: the address of a load takes longer to
/// reach the result than its other operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Part of the address of [`Effects::memory`] at this index. Of a gather or scatter, whose
    /// lanes share their registers, the first lane alone is named.
    Address(u8),
    /// A value computed with.
    Data,
    /// The old value of a place that is written in part, or perhaps not at all: what is not
    /// written is kept. Nothing is computed with it, yet the processor may wait for it.
    Kept,
    /// `rsp`, moved by `push`, `pop`, `call` and `ret`: the stack engine adds it up before
    /// execution, in no cycles. It leads to the new `rsp` and nowhere else; the access itself has
    /// an [`Role::Address`] of its own.
    Stack,
}

/// A place read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// Where.
    pub place: Place,
    /// What for.
    pub role: Role,
}

/// A place written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// Where.
    pub place: Place,
    /// Whether its old value is gone afterwards. Where it is not, there is a [`Read`] of it with
    /// [`Role::Kept`] if this processor waits for it.
    pub whole: bool,
}

/// Memory read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Segment whose base counts ([`Register::FS`] or [`Register::GS`]), else [`Register::None`].
    pub segment: Register,
    /// Base register, full width (`RIP` is resolved into the displacement), or none.
    pub base: Register,
    /// Index register, full width, or none; a vector register for gathers and scatters, whose
    /// elements are expanded into accesses of their own where [`Access::lane`] tells which.
    pub index: Register,
    /// 1, 2, 4 or 8.
    pub scale: u8,
    /// Added to base and index, before the instruction changes any register: for `push` it is
    /// minus the operand's size.
    pub displacement: i64,
    /// Bytes from the address on; 0 where that depends on values (`rep movs`).
    pub bytes: u32,
    /// Whether 64 bits of address count; 32 otherwise (`67` prefix).
    pub wide: bool,
    /// Whether it is read.
    pub load: bool,
    /// Whether it is written.
    pub store: bool,
    /// Whether it may not happen: a masked or `rep` access.
    pub conditional: bool,
    /// The element of a vector index, if it is one of a gather or scatter.
    pub lane: Option<u8>,
}

/// Which inputs lead to which outputs, where it is not each to each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Paths {
    /// Each input to each output.
    #[default]
    Each,
    /// `rsp` moves by a constant; the rest is each to each (`push`, `pop`, `call`, `ret`).
    Stack,
    /// `rsi` and `rdi` move by constants, up or down by the direction flag; the rest is each to each
    /// (`lods`, `movs`).
    String,
    /// Each operand's new value is the other one's old one (`xchg`).
    Exchange,
    /// The sum goes to the first operand, whose old value is the new one of this register (`xadd`).
    ExchangeAdd(Place),
    /// `rsp` from `rbp`, `rbp` from memory (`leave`).
    Leave,
}

/// What one instruction does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effects {
    /// Places read.
    pub reads: Vec<Read>,
    /// Places written.
    pub writes: Vec<Write>,
    /// Memory.
    pub memory: Vec<Access>,
    /// Whether its result does not depend on its operands' values, and this processor knows
    /// (`xor eax,eax`, `pcmpeqd xmm0,xmm0`): [`Effects::reads`] then holds none of them.
    pub breaks_dependency: bool,
    /// Whether this processor may do it by renaming alone, in no cycles (register moves).
    pub may_be_eliminated: bool,
    /// Why the effects are not complete, if they are not (x87, rep strings).
    pub unmodelled: Option<&'static str>,
    /// Which inputs lead to which outputs; [`Effects::flows`] answers from it.
    pub paths: Paths,
}

impl Effects {
    /// Whether the value of `read` has a part in what `write` leaves. Not so for the address
    /// registers of a store, for `rsp` of a `pop` and its result, for flags that are only kept.
    pub fn flows(&self, read: &Read, write: &Write) -> bool {
        if read.role == Role::Stack {
            return write.place == RSP;
        }
        if read.role == Role::Kept && (read.place.is_flag() || write.place.is_flag()) {
            return read.place == write.place;
        }
        if let Role::Address(at) = read.role {
            return self.memory.get(usize::from(at)).is_some_and(|m| m.load)
                && self.loaded_flows(write);
        }
        if read.role == Role::Kept && self.paths != Paths::Each {
            return read.place == write.place;
        }
        match self.paths {
            Paths::Each => true,
            Paths::Stack => write.place != RSP,
            Paths::String if read.place == Place::DIRECTION => is_string_pointer(write.place),
            Paths::String if is_string_pointer(write.place) || is_string_pointer(read.place) => {
                read.place == write.place
            }
            Paths::String => true,
            // What a narrow operand leaves of its register, stays there.
            Paths::Exchange => {
                let alone = self.writes.len() == 1 && self.memory.is_empty();
                read.place != write.place || !write.whole || alone
            }
            Paths::ExchangeAdd(second) => {
                read.place != second || write.place != second || !write.whole
            }
            Paths::Leave => write.place == RSP,
        }
    }

    /// Whether the loaded value has a part in what `write` leaves.
    pub fn loaded_flows(&self, write: &Write) -> bool {
        match self.paths {
            Paths::Stack | Paths::Leave => write.place != RSP,
            Paths::String => !is_string_pointer(write.place),
            Paths::Each | Paths::Exchange | Paths::ExchangeAdd(_) => true,
        }
    }

    /// Whether the value of `read` has a part in what is stored.
    pub fn stored(&self, read: &Read) -> bool {
        let computed = match read.role {
            Role::Data => !(self.paths == Paths::String && is_string_pointer(read.place)),
            Role::Kept => !read.place.is_flag(),
            Role::Address(at) => self
                .memory
                .get(usize::from(at))
                .is_some_and(|m| m.load && (self.paths != Paths::Exchange || !m.store)),
            Role::Stack => false,
        };
        computed && self.memory.iter().any(|m| m.store)
    }

    /// Everything read, as a set.
    pub fn read(&self) -> Places {
        self.reads.iter().map(|r| r.place).collect()
    }

    /// Everything written, as a set.
    pub fn written(&self) -> Places {
        self.writes.iter().map(|w| w.place).collect()
    }
}
