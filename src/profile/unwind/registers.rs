//! Registers and the copied stack of a sample, by DWARF's numbers.

use crate::sample::Sample;

/// Most registers that unwind tables name: those of AArch64, x0 to sp.
pub(crate) const MOST: usize = 32;

/// A processor's numbers of registers in DWARF, and what tables leave unsaid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Processor {
    /// System V ABI for AMD64, 3.6.2: the return address is register 16.
    X86,
    /// DWARF for the Arm 64-bit architecture: the return address is in x30.
    Arm,
}

/// `enum perf_event_x86_regs` (asm/perf_regs.h): perf's number of each of DWARF's registers, rax, rdx, rcx, rbx,
/// rsi, rdi, rbp, rsp, r8 to r15, and rip.
const X86: [u8; 17] = [0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8];
/// perf's number of AArch64's program counter; the other registers have DWARF's numbers.
const ARM_PC: u8 = 32;
/// Bits of an address in user mode; those above may authenticate a pointer.
const ARM_ADDRESS: u64 = (1 << 48) - 1;

impl Processor {
    /// By the architecture of the recorded machine (`uname -m`).
    pub fn of(architecture: Option<&str>) -> Option<Self> {
        match architecture {
            Some("x86_64") => Some(Self::X86),
            Some("aarch64" | "arm64") => Some(Self::Arm),
            Some(_) => None,
            None if cfg!(target_arch = "aarch64") => Some(Self::Arm),
            None => Some(Self::X86),
        }
    }

    pub fn stack(self) -> usize {
        if self == Self::X86 { 7 } else { 31 }
    }

    pub fn frame(self) -> usize {
        if self == Self::X86 { 6 } else { 29 }
    }

    /// The register that a return address is in, where tables do not say where it is saved.
    pub fn link(self) -> Option<usize> {
        (self == Self::Arm).then_some(30)
    }

    /// A return address without what authenticates it.
    pub fn address(self, pointer: u64) -> u64 {
        if self == Self::X86 { pointer } else { pointer & ARM_ADDRESS }
    }
}

/// The registers of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Registers {
    pub processor: Processor,
    /// Instruction pointer.
    pub ip: u64,
    /// By DWARF's numbers; `None`: not known.
    pub values: [Option<u64>; MOST],
}

impl Registers {
    /// Registers of a sample; `None` if it has none of 64 bits.
    pub fn of(sample: &Sample, processor: Processor) -> Option<Self> {
        let recorded = sample.registers.as_ref().filter(|recorded| recorded.wide)?;
        let value = |number: u8| {
            let found = recorded.values.binary_search_by_key(&number, |(number, _)| *number);
            found.ok().map(|at| recorded.values[at].1)
        };
        let mut values = [None; MOST];
        let ip = match processor {
            Processor::X86 => {
                for (dwarf, perf) in X86.iter().enumerate() {
                    values[dwarf] = value(*perf);
                }
                value(X86[16])?
            }
            Processor::Arm => {
                for (number, slot) in (0..).zip(values.iter_mut()) {
                    *slot = value(number);
                }
                value(ARM_PC)?
            }
        };
        values[processor.stack()]?;
        Some(Self { processor, ip, values })
    }

    /// The value of a register, by DWARF's number.
    pub fn get(&self, number: u16) -> Option<u64> {
        *self.values.get(usize::from(number))?
    }

    pub fn stack(&self) -> u64 {
        self.values[self.processor.stack()].unwrap_or(0)
    }
}

/// A copy of the top of the stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stack<'a> {
    /// Address of the first byte.
    pub start: u64,
    pub bytes: &'a [u8],
}

impl Stack<'_> {
    /// The word at an address; `None` outside of the copy.
    pub fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        Some(u64::from_le_bytes(*self.bytes.get(at..)?.first_chunk()?))
    }

    /// A value of some bytes, at most 8; `None` outside of the copy.
    pub fn value(&self, address: u64, size: u8) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let bytes = self.bytes.get(at..at.checked_add(usize::from(size))?)?;
        let mut word = [0; 8];
        word.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(word))
    }
}
