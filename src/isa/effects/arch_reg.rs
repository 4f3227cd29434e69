//! Architectural registers and flag groups: what carries values between instructions, apart from
//! memory.

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
    pub const SIGN_ZERO: Self = Self(58);
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
    pub const fn stack(number: u8) -> Self {
        Self(64 + (number & 7))
    }

    /// MMX register, 0 to 7.
    pub const fn mmx(number: u8) -> Self {
        Self(72 + (number & 7))
    }

    /// Whether it is an x87 register or the whole stack.
    pub fn is_stack(self) -> bool {
        self == Self::X87 || self.as_stack().is_some()
    }

    /// Its number, if it is an x87 register.
    pub fn as_stack(self) -> Option<u8> {
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
            r if r.is_st() => Some(Self::stack(number)),
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
            (rest, Self::SIGN_ZERO),
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
        (Self::CARRY..=Self::SIGN_ZERO).contains(&self)
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
