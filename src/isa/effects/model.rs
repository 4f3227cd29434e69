//! Architectural registers and flag groups, which carry values between instructions apart from memory, and the effects
//! of an instruction, as data.

use iced_x86::{Register, RflagsBits};

/// A register or a flag group, numbered below [`ArchReg::COUNT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArchReg(u8);

impl ArchReg {
    /// The carry flag.
    pub const CARRY: Self = Self(56);
    /// The overflow flag.
    pub const OVERFLOW: Self = Self(57);
    /// Sign, zero, parity and auxiliary-carry flags, which are renamed as one group.
    pub const SZAP: Self = Self(58);
    /// The direction flag.
    pub const DIRECTION: Self = Self(59);
    /// The whole x87 register stack, where its registers cannot be distinguished.
    pub const X87: Self = Self(60);
    /// MXCSR.
    pub const MXCSR: Self = Self(61);
    /// x87 status and control words.
    pub const X87_CONTROL: Self = Self(62);
    /// All others: segment bases, system registers.
    pub const OTHER: Self = Self(63);

    /// Number of registers.
    pub const COUNT: usize = 80;

    /// x87 register, counted from the top of the stack before the instruction or, in a region, from that
    /// before its first instruction.
    pub const fn x87(number: u8) -> Self {
        Self(64 + (number & 7))
    }

    /// MMX register, 0 to 7.
    pub const fn mmx(number: u8) -> Self {
        Self(72 + (number & 7))
    }

    /// Whether it is an x87 register or the whole stack.
    pub fn is_x87(self) -> bool {
        self == Self::X87 || self.as_x87().is_some()
    }

    /// Its number, if it is an x87 register.
    pub fn as_x87(self) -> Option<u8> {
        (64..72).contains(&self.0).then(|| self.0 - 64)
    }

    /// General-purpose register by its encoding number (rax 0, rcx 1, … r15 15).
    pub const fn gpr(number: u8) -> Self {
        Self(number & 15)
    }

    /// Vector register of any width, 0 to 31.
    pub fn vector(number: u8) -> Self {
        Self(16 + (number & 31))
    }

    /// Mask register, 0 to 7.
    pub fn mask(number: u8) -> Self {
        Self(48 + (number & 7))
    }

    /// The full register that contains `register`; `None` for `rip` and [`Register::None`].
    pub fn of(register: Register) -> Option<Self> {
        let full = register.full_register();
        let number = u8::try_from(full.number()).ok()?;
        match full {
            Register::None | Register::RIP => None,
            r if r.is_gpr64() => Some(Self::gpr(number)),
            r if r.is_vector_register() => Some(Self::vector(number)),
            r if r.is_k() => Some(Self::mask(number)),
            r if r.is_st() => Some(Self::x87(number)),
            r if r.is_mm() => Some(Self::mmx(number)),
            _ => Some(Self::OTHER),
        }
    }

    /// The flag groups that `bits` of [`RflagsBits`] belong to.
    pub fn flags(bits: u32) -> impl Iterator<Item = Self> {
        let rest = RflagsBits::SF | RflagsBits::ZF | RflagsBits::PF | RflagsBits::AF;
        [
            (RflagsBits::CF, Self::CARRY),
            (RflagsBits::OF, Self::OVERFLOW),
            (rest, Self::SZAP),
            (RflagsBits::DF, Self::DIRECTION),
        ]
        .into_iter()
        .filter(move |(group, _)| bits & group != 0)
        .map(|(_, reg)| reg)
    }

    /// Its number, below [`ArchReg::COUNT`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Whether it is one of the flag groups.
    pub fn is_flag(self) -> bool {
        (Self::CARRY..=Self::SZAP).contains(&self)
    }

    /// Whether it is a vector register.
    pub fn is_vector(self) -> bool {
        (16..48).contains(&self.0)
    }

    /// Its encoding number, if it is a general-purpose register.
    pub fn as_gpr(self) -> Option<u8> {
        (self.0 < 16).then_some(self.0)
    }

    /// The name to display: `rax`, `zmm3`, `k1`, `CF`, `SZAP`.
    pub fn name(self) -> String {
        const GPR: [&str; 16] = [
            "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11",
            "r12", "r13", "r14", "r15",
        ];
        match self.0 {
            n @ 0..16 => GPR[usize::from(n)].to_owned(),
            n @ 16..48 => format!("zmm{}", n - 16),
            n @ 48..56 => format!("k{}", n - 48),
            56 => "CF".to_owned(),
            57 => "OF".to_owned(),
            58 => "SZAP".to_owned(),
            59 => "DF".to_owned(),
            60 => "x87".to_owned(),
            61 => "mxcsr".to_owned(),
            62 => "x87 status".to_owned(),
            n @ 64..72 => format!("st{}", n - 64),
            n @ 72..80 => format!("mm{}", n - 72),
            _ => "other".to_owned(),
        }
    }
}

/// A set of [`ArchReg`]s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArchRegSet(u128);

impl ArchRegSet {
    /// [`ArchReg::COUNT`] as a register's number.
    const COUNT: u8 = ArchReg::COUNT as u8;

    /// Whether it contains `reg`.
    pub fn has(self, reg: ArchReg) -> bool {
        self.0 & 1 << reg.index() != 0
    }

    /// The intersection.
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The union.
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether it is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its members, ascending.
    pub fn iter(self) -> impl Iterator<Item = ArchReg> {
        (0..Self::COUNT).filter(move |bit| self.0 & 1 << bit != 0).map(ArchReg)
    }
}

impl FromIterator<ArchReg> for ArchRegSet {
    fn from_iter<I: IntoIterator<Item = ArchReg>>(regs: I) -> Self {
        Self(regs.into_iter().fold(0, |set, reg| set | 1 << reg.index()))
    }
}

pub(super) const RSP: ArchReg = ArchReg::gpr(4);

/// `rsi` or `rdi`.
fn is_string_pointer(reg: ArchReg) -> bool {
    matches!(reg.as_gpr(), Some(6 | 7))
}

/// Use of a read value. Latency depends on it: the path from a load's address to the result is longer than that
/// from its other operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Part of the address of the access at this index of [`Effects::memory`]. For a gather or
    /// scatter, whose lanes share their registers, the index is that of the first lane.
    Address(u8),
    /// An operand of the computation.
    Data,
    /// The old value of a register that is written partially or conditionally and merged with the
    /// result. It is not an operand of the computation, but may still be a dependency.
    Merged,
    /// `rsp` as updated by `push`, `pop`, `call` and `ret`: the stack engine does this before
    /// execution, in 0 cycles. It flows only to the new `rsp`; the access itself has its own
    /// [`Role::Address`].
    Stack,
}

/// A read of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// The register or flag group.
    pub reg: ArchReg,
    /// Use of the value.
    pub role: Role,
}

/// A write to a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// The register or flag group.
    pub reg: ArchReg,
    /// Whether it replaces the whole old value. Otherwise there is a [`Read`] of the register with
    /// [`Role::Merged`] if that is a dependency on this processor.
    pub whole: bool,
}

/// A memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// [`Register::FS`] or [`Register::GS`] if that segment's base is added, else
    /// [`Register::None`].
    pub segment: Register,
    /// Base register at full width, or none (`RIP` is resolved into the displacement).
    pub base: Register,
    /// Index register at full width, or none. For gathers and scatters it is a vector register, with
    /// one access per element ([`Access::lane`]).
    pub index: Register,
    /// Scale of the index: 1, 2, 4 or 8.
    pub scale: u8,
    /// Added to base and index as they are before the instruction: for `push` it is the negative
    /// operand size.
    pub displacement: i64,
    /// Size in bytes; 0 if it depends on values (`rep movs`).
    pub bytes: u32,
    /// Whether the address has 64 bits; 32 with a `67` prefix.
    pub wide: bool,
    /// Whether it is read.
    pub load: bool,
    /// Whether it is written.
    pub store: bool,
    /// Whether the access is conditional: masked or `rep`.
    pub conditional: bool,
    /// The element number, for a gather or scatter.
    pub lane: Option<u8>,
}

/// Which inputs flow to which outputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Paths {
    /// Every input flows to every output.
    #[default]
    AllToAll,
    /// `rsp` changes by a constant; every other input flows to every other output (`push`, `pop`,
    /// `call`, `ret`).
    Stack,
    /// `rsi` and `rdi` change by constants, with the sign of the direction flag; every other input
    /// flows to every other output (`lods`, `movs`).
    String,
    /// The operands swap their values (`xchg`).
    Exchange,
    /// The sum goes to the first operand, whose old value goes to this register (`xadd`).
    ExchangeAdd(ArchReg),
    /// `rbp` flows to `rsp`, and the loaded value to `rbp` (`leave`).
    Leave,
}

/// The effects of one instruction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effects {
    /// Registers and flag groups read.
    pub reads: Vec<Read>,
    /// Registers and flag groups written.
    pub writes: Vec<Write>,
    /// Memory accesses.
    pub memory: Vec<Access>,
    /// Whether this processor recognises it as a dependency-breaking idiom (`xor eax,eax`, `pcmpeqd
    /// xmm0,xmm0`). [`Effects::reads`] then omits its operands.
    pub breaks_dependency: bool,
    /// Whether this processor may eliminate it at renaming, with 0 cycles of latency (register moves).
    pub may_be_eliminated: bool,
    /// Why the effects are incomplete, if they are (x87, rep strings).
    pub unmodelled: Option<&'static str>,
    /// Which inputs flow to which outputs; see [`Effects::flows`].
    pub paths: Paths,
}

impl Effects {
    /// Whether the value of `read` flows into the result `write`. Counterexamples: the address
    /// registers of a store, `rsp` and the result of a `pop`, flags that are only merged.
    pub fn flows(&self, read: &Read, write: &Write) -> bool {
        if read.role == Role::Stack {
            return write.reg == RSP;
        }
        if read.role == Role::Merged && (read.reg.is_flag() || write.reg.is_flag()) {
            return read.reg == write.reg;
        }
        if let Role::Address(at) = read.role {
            return self.memory.get(usize::from(at)).is_some_and(|m| m.load)
                && self.loaded_flows(write);
        }
        if read.role == Role::Merged && self.paths != Paths::AllToAll {
            return read.reg == write.reg;
        }
        match self.paths {
            Paths::AllToAll => true,
            Paths::Stack => write.reg != RSP,
            Paths::String if read.reg == ArchReg::DIRECTION => is_string_pointer(write.reg),
            Paths::String if is_string_pointer(write.reg) || is_string_pointer(read.reg) => {
                read.reg == write.reg
            }
            Paths::String => true,
            // The rest of a register with a narrow operand stays in that register.
            Paths::Exchange => {
                let alone = self.writes.len() == 1 && self.memory.is_empty();
                read.reg != write.reg || !write.whole || alone
            }
            Paths::ExchangeAdd(second) => read.reg != second || write.reg != second || !write.whole,
            Paths::Leave => write.reg == RSP,
        }
    }

    /// Whether the loaded value flows into the result `write`.
    pub fn loaded_flows(&self, write: &Write) -> bool {
        match self.paths {
            Paths::Stack | Paths::Leave => write.reg != RSP,
            Paths::String => !is_string_pointer(write.reg),
            Paths::AllToAll | Paths::Exchange | Paths::ExchangeAdd(_) => true,
        }
    }

    /// Whether the value of `read` flows into the stored value.
    pub fn flows_to_store(&self, read: &Read) -> bool {
        let computed = match read.role {
            Role::Data => !(self.paths == Paths::String && is_string_pointer(read.reg)),
            Role::Merged => !read.reg.is_flag(),
            Role::Address(at) => self
                .memory
                .get(usize::from(at))
                .is_some_and(|m| m.load && (self.paths != Paths::Exchange || !m.store)),
            Role::Stack => false,
        };
        computed && self.memory.iter().any(|m| m.store)
    }

    /// All registers and flag groups read.
    pub fn read(&self) -> ArchRegSet {
        self.reads.iter().map(|r| r.reg).collect()
    }

    /// All registers and flag groups written.
    pub fn written(&self) -> ArchRegSet {
        self.writes.iter().map(|w| w.reg).collect()
    }
}
