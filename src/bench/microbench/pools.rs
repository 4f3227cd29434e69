//! Registers and memory of a microbenchmark: disjoint pools for reading and for writing.

use super::form::Form;
use super::operand::{Class, Family, Operand};
use iced_x86::{EncodingKind, OpAccess, Register};
use tma::Result;

/// Base of the arena; no instruction uses it implicitly.
pub const BASE: Register = Register::R15;
/// Holds 0: the index register of indexed loads and stores.
pub const INDEX: Register = Register::R14;
/// Bytes of each half of the arena, loads and stores. Both together are a page.
pub const HALF: i64 = 2048;
/// Bytes of the alternating pieces of loads and stores: then no store is above a load by a multiple of 0x400, at
/// which loads falsely wait on Zen 4 and Zen 5, nor has the low 12 address bits of one (4K aliasing).
const PIECE: i64 = 512;

/// The registers of one family.
#[derive(Debug, Clone)]
pub struct Pool {
    /// The family.
    pub family: Family,
    /// Numbers of the read-only registers, one for each source of an instruction.
    pub read: Vec<u32>,
    /// Numbers of the written registers, which are rotated.
    pub write: Vec<u32>,
    /// Register writes per multiset.
    pub writes: usize,
    next: usize,
}

/// Registers and memory.
#[derive(Debug, Clone)]
pub struct Pools {
    /// One for each family in use.
    pub all: Vec<Pool>,
    read_at: i64,
    write_at: i64,
}

/// Whether the operand is written, always or sometimes.
pub fn is_written(access: OpAccess) -> bool {
    isa::code::Inst::writes(access)
}

impl Pools {
    /// Pools for `forms`, in the order of one multiset.
    ///
    /// # Errors
    /// One of them cannot be encoded.
    pub fn of(forms: &[Form]) -> Result<Self> {
        let mut reads = [0; 4];
        let mut writes = [0; 4];
        let mut taken: Vec<Register> = vec![Register::RSP, BASE];
        let mut narrow = false;
        for form in forms {
            let usage = form.usage()?;
            taken.extend(usage.implicit.iter().map(|used| used.register().full_register()));
            let mut own = [0; 4];
            for (operand, access) in form.operands().iter().zip(&usage.access) {
                let Operand::Register(class) = operand else { continue };
                let family = class.family();
                match is_written(*access) {
                    true => writes[family as usize] += 1,
                    false => own[family as usize] += 1,
                }
                let evex = form.code.op_code().encoding() == EncodingKind::EVEX;
                narrow |= family == Family::Vector && !evex;
            }
            if form.memory != super::form::Memory::None && super::form::is_address(form.code) {
                own[Family::Gpr as usize] += 2;
            }
            if form.is_indexed() {
                taken.push(INDEX);
            }
            if form.mask != super::form::Mask::None {
                own[Family::Mask as usize] += 1;
            }
            for (most, own) in reads.iter_mut().zip(own) {
                *most = own.max(*most);
            }
        }
        let families = [Family::Gpr, Family::Vector, Family::Mask, Family::Mmx];
        let in_use = families.into_iter().filter(|f| reads[*f as usize] + writes[*f as usize] > 0);
        let pool = |family: Family| {
            let free = free(family, narrow, &taken);
            let reads = usize::min(reads[family as usize], free.len().saturating_sub(1));
            let (read, write) = free.split_at(reads);
            let writes = writes[family as usize];
            Pool { family, read: read.to_vec(), write: write.to_vec(), writes, next: 0 }
        };
        Ok(Self { all: in_use.map(pool).collect(), read_at: 0, write_at: 0 })
    }

    fn pool(&mut self, class: Class) -> Option<&mut Pool> {
        self.all.iter_mut().find(|pool| pool.family == class.family())
    }

    /// The next register that is written.
    pub fn written(&mut self, class: Class) -> Register {
        let number = self.pool(class).map_or(0, |pool| {
            let number = pool.write.get(pool.next % pool.write.len().max(1)).copied();
            pool.next += 1;
            number.unwrap_or(0)
        });
        class.register(number)
    }

    /// The register for the source at `index` among an instruction's sources.
    pub fn read(&mut self, class: Class, index: usize) -> Register {
        let number = self.pool(class).and_then(|pool| {
            let read = &pool.read;
            read.get(index % read.len().max(1)).copied()
        });
        class.register(number.unwrap_or(0))
    }

    /// Offset of the next access of `bytes` from the base.
    pub fn place(&mut self, bytes: usize, written: bool) -> i64 {
        let step = bytes.next_power_of_two().clamp(8, 64) as i64;
        let next = if written { &mut self.write_at } else { &mut self.read_at };
        let mut at = (*next + step - 1) / step * step;
        if at + step > HALF {
            at = 0;
        }
        *next = at + step;
        2 * PIECE * (at / PIECE) + at % PIECE + if written { PIECE } else { 0 }
    }
}

/// Numbers of the registers that are free.
fn free(family: Family, narrow: bool, taken: &[Register]) -> Vec<u32> {
    let (class, numbers) = match family {
        Family::Gpr => (Class::Gpr64, 0..16),
        Family::Vector => (Class::Zmm, 0..if narrow { 16 } else { 32 }),
        Family::Mask => (Class::Mask, 1..8),
        Family::Mmx => (Class::Mmx, 0..8),
    };
    // Registers that some forms use implicitly come last.
    let mut free: Vec<u32> =
        numbers.filter(|n| !taken.contains(&class.register(*n).full_register())).collect();
    free.reverse();
    free
}
