//! Initial values: what registers and memory hold when a run starts.
//!
//! This file has the sets of values that are tried, and those chosen by hand (`--init`). `snapshot` has registers
//! and memory of a running program, and the path of a loop.

mod snapshot;

pub use snapshot::{LoopPath, NoPath, Snapshot};

use serde::{Deserialize, Serialize};
use tma::{Error, Result};

/// The usual constant: small enough to be a mappable address, also after sums and shifts.
pub const CONSTANT: u64 = 0x1234_5600;

/// The general-purpose registers in encoding order.
pub const REGISTERS: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// One set of initial values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Values {
    /// General-purpose registers in encoding order: rax rcx rdx rbx rsp rbp rsi rdi r8 … r15.
    pub registers: [u64; 16],
    /// Every eight bytes of memory.
    pub memory: u64,
    /// Every eight bytes of the vector registers.
    pub vector: u64,
}

impl Default for Values {
    fn default() -> Self {
        Self { registers: [CONSTANT; 16], memory: CONSTANT, vector: FLOATS }
    }
}

/// 1.0 twice as single precision, a normal number as double precision.
const FLOATS: u64 = 0x3f80_0000_3f80_0000;

const RDX: usize = 2;
const RSP: usize = 4;

/// The sets, in order of use. The first is the paper's.
pub fn sets() -> Vec<Values> {
    let first = Values::default();
    let with = |change: &dyn Fn(&mut Values)| {
        let mut values = first.clone();
        change(&mut values);
        values
    };
    vec![
        // Whole and half words of memory are both addresses.
        with(&|v| v.memory = 0x0000_1240_0000_1240),
        // Distinct registers: a difference of two is no null address.
        with(&|v| (0..16).for_each(|r| v.registers[r] = CONSTANT + 0x10_0040 * r as u64)),
        // Loaded values are 0: an index, a divisor's upper half.
        with(&|v| v.memory = 0),
        // Division: the upper half of the dividend is 0.
        with(&|v| v.registers[RDX] = 0),
        // As a function finds its stack: 8 below a multiple of 16.
        with(&|v| v.registers[RSP] = CONSTANT + 8),
        with(&|v| v.registers = [CONSTANT + 8; 16]),
        // Small loaded values: sums with an address stay near it.
        with(&|v| v.memory = 0x40),
        // Addresses in vectors (gathers).
        with(&|v| v.vector = CONSTANT),
        // Small registers: scaled and multiplied values stay addresses.
        with(&|v| v.registers = [0x1_0000; 16]),
        // Larger ones: what is subtracted from them leaves an address.
        with(&|v| {
            v.registers = [0x1234_5678_0000; 16];
            v.memory = 0x10_0000;
        }),
    ]
    .into_iter()
    .fold(vec![first.clone()], |mut all, v| {
        all.push(v);
        all
    })
}

/// Target of an initial value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Init {
    /// A 64-bit general-purpose register, by its number in encodings.
    Register(u8),
    /// Every eight bytes of memory.
    Memory,
    /// Every eight bytes of the vector registers.
    Vector,
}

impl Init {
    /// Reads `rbx=0x1000`, `mem=64` or `vec=0x3ff0000000000000`.
    ///
    /// # Errors
    /// An unknown name, only part of a register, or not a 64-bit number.
    pub fn parse(text: &str) -> Result<(Self, u64)> {
        let (place, value) = text.split_once('=').ok_or_else(|| {
            Error::usage(format!("`{text}` is not an initial value"))
                .hint("write REG=VALUE, for example rbx=0x1000, mem=64 or vec=0")
        })?;
        Ok((Self::place(place.trim())?, number(value.trim())?))
    }

    fn place(name: &str) -> Result<Self> {
        let lower = name.to_ascii_lowercase();
        if let Some(register) = REGISTERS.iter().position(|r| *r == lower) {
            return Ok(Self::Register(register as u8));
        }
        match lower.as_str() {
            "mem" | "memory" => return Ok(Self::Memory),
            "vec" | "vector" => return Ok(Self::Vector),
            _ => {}
        }
        if let Some(whole) = whole_of(&lower) {
            return Err(Error::usage(format!("`{name}` is part of a register"))
                .hint(format!("write {whole}=VALUE: only whole 64-bit registers can be set")));
        }
        let vector = ["xmm", "ymm", "zmm"].iter().any(|kind| lower.starts_with(kind));
        let hint = match vector {
            true => "vec=VALUE sets every eight bytes of all vector registers".to_owned(),
            false => {
                format!("registers: {}; memory: mem; vector registers: vec", REGISTERS.join(" "))
            }
        };
        Err(Error::usage(format!("`{name}` cannot be given an initial value")).hint(hint))
    }

    /// Puts `value` there.
    pub fn set(self, values: &mut Values, value: u64) {
        match self {
            Self::Register(number) => values.registers[usize::from(number) & 15] = value,
            Self::Memory => values.memory = value,
            Self::Vector => values.vector = value,
        }
    }
}

/// The 64-bit register of which `name` is a part.
fn whole_of(name: &str) -> Option<&'static str> {
    let numbered = name.strip_suffix(['d', 'w', 'b']).filter(|n| n.starts_with('r'));
    if let Some(found) = numbered.and_then(|n| REGISTERS[8..].iter().find(|r| **r == n)) {
        return Some(found);
    }
    REGISTERS[..8].iter().copied().find(|whole| {
        let word = &whole[1..];
        let letter = &word[..1];
        let bytes = match word.ends_with('x') {
            true => [format!("{letter}l"), format!("{letter}h")],
            false => [format!("{word}l"), String::new()],
        };
        name == word || name == format!("e{word}") || bytes.iter().any(|byte| byte == name)
    })
}

/// Decimal, with `-` for two's complement, or hexadecimal after `0x`; `_` may separate digits.
fn number(text: &str) -> Result<u64> {
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    let (negative, digits) = match plain.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, plain.as_str()),
    };
    let lower = digits.to_ascii_lowercase();
    let unsigned = |digits: &str| digits.bytes().all(|b| b.is_ascii_alphanumeric());
    let value = match lower.strip_prefix("0x") {
        Some(hex) if unsigned(hex) => u64::from_str_radix(hex, 16).ok(),
        None if unsigned(&lower) => lower.parse().ok(),
        _ => None,
    };
    let value = match (value, negative) {
        (Some(value), true) if value <= 1 << 63 => Some(value.wrapping_neg()),
        (Some(_), true) => None,
        (value, _) => value,
    };
    value.ok_or_else(|| {
        Error::usage(format!("`{text}` is not a 64-bit value"))
            .hint("use decimal, or hexadecimal with the prefix 0x")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_memory_and_vectors_take_numbers_as_people_write_them() {
        for (text, place, value) in [
            ("rax=1", Init::Register(0), 1),
            ("RSP=0x12345608", Init::Register(4), 0x1234_5608),
            ("r15 = 0xffff_ffff_ffff_ffff", Init::Register(15), u64::MAX),
            ("rcx=-1", Init::Register(1), u64::MAX),
            ("rdi=-0x8000000000000000", Init::Register(7), 1 << 63),
            ("mem=64", Init::Memory, 64),
            ("vec=0x3ff0000000000000", Init::Vector, 1.0f64.to_bits()),
        ] {
            assert_eq!(Init::parse(text).unwrap(), (place, value), "{text}");
        }
    }

    #[test]
    fn part_of_a_register_is_refused_with_the_name_of_the_whole() {
        for (part, whole) in [
            ("eax", "rax"),
            ("ax", "rax"),
            ("al", "rax"),
            ("ah", "rax"),
            ("bh", "rbx"),
            ("sil", "rsi"),
            ("spl", "rsp"),
            ("ebp", "rbp"),
            ("r8d", "r8"),
            ("r15b", "r15"),
            ("r10w", "r10"),
            ("DX", "rdx"),
        ] {
            let error = Init::parse(&format!("{part}=1")).unwrap_err();
            assert!(error.what().contains("part"), "{part}: {error}");
            assert!(error.remedy().unwrap().contains(&format!("{whole}=")), "{part}: {error:?}");
        }
    }

    #[test]
    fn nonsense_is_an_error_with_a_remedy() {
        for text in [
            "",
            "=",
            "rax",
            "rax=",
            "rax=0x",
            "rax=+1",
            "rax=0x-1",
            "rax=--1",
            "rax=1.5",
            "xmm0=1",
            "rip=1",
            "r16=0",
            "rax=18446744073709551616",
            "rax=-9223372036854775809",
            "mem=äö",
            "=1",
        ] {
            let error = Init::parse(text).unwrap_err();
            assert!(error.remedy().is_some(), "{text}: {error}");
        }
    }
}
