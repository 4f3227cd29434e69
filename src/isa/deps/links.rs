//! Dependencies through registers and flags, which the instructions alone decide.

use super::code::Code;
use crate::effects::{ArchReg, Effects, Role, Write};
use iced_x86::{Instruction, OpKind};

/// A value in a register or a group of flags, from the instruction that writes it to one that
/// reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Link {
    /// Instruction that writes.
    pub writer: usize,
    /// Instruction that reads.
    pub reader: usize,
    /// Iterations between: 0 or 1.
    pub delta: u32,
    /// Where the value is meanwhile.
    pub reg: ArchReg,
    /// Which of the reader's reads.
    pub read: usize,
}

/// An order that must be kept, without a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Read after write: a value goes from one to the other.
    Raw,
    /// Write after read.
    War,
    /// Write after write.
    Waw,
}

/// A false dependency, which renaming removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct False {
    /// Instruction that comes first.
    pub first: usize,
    /// Instruction that writes later.
    pub second: usize,
    /// Iterations between: 0 or 1.
    pub delta: u32,
    /// What both use.
    pub reg: ArchReg,
    /// [`Order::War`] or [`Order::Waw`].
    pub order: Order,
}

/// Who wrote a place last: several, where a later one left part of it.
type Writers = Vec<(usize, u32)>;

/// More parts than a few no register has.
const PARTS: usize = 8;

/// Who wrote each place last. The low 16 bytes of a vector register and the rest of it are told
/// apart: instructions of SSE write and read the former alone, and leave the latter.
struct Last {
    low: Vec<Writers>,
    high: Vec<Writers>,
}

impl Last {
    fn note(&mut self, write: &Write, effects: &Effects, writer: usize, iteration: u32) {
        let at = write.reg.index() & 63;
        let kept = effects.reads.iter().any(|r| r.reg == write.reg && r.role == Role::Merged);
        let vector = write.reg.is_vector();
        add(&mut self.low[at], (writer, iteration), write.whole || kept || vector);
        if vector {
            // What keeps the rest does not make it; nobody waits for it on its account.
            if write.whole {
                add(&mut self.high[at], (writer, iteration), true);
            }
        }
    }

    /// The writers of what `instruction` reads of `place`.
    fn of(&self, reg: ArchReg, instruction: &Instruction) -> impl Iterator<Item = (usize, u32)> {
        let at = reg.index() & 63;
        let low = &self.low[at];
        let high: &[(usize, u32)] = match reg.is_vector() && is_wide(instruction) {
            true => &self.high[at],
            false => &[],
        };
        let more = high.iter().filter(move |w| !low.contains(w));
        low.iter().chain(more).copied()
    }
}

fn add(writers: &mut Writers, new: (usize, u32), whole: bool) {
    if whole {
        writers.clear();
    }
    writers.retain(|(writer, _)| *writer != new.0);
    if writers.len() >= PARTS {
        writers.remove(0);
    }
    writers.push(new);
}

/// Whether it has a vector operand of more than 16 bytes.
fn is_wide(instruction: &Instruction) -> bool {
    (0..instruction.op_count()).any(|i| {
        instruction.op_kind(i) == OpKind::Register
            && instruction.op_register(i).is_vector_register()
            && instruction.op_register(i).size() > 16
    })
}

/// The links of `code`, in order of reader.
pub fn links(code: &Code) -> Vec<Link> {
    let mut last = Last { low: vec![Writers::new(); 64], high: vec![Writers::new(); 64] };
    let mut links = Vec::new();
    for iteration in 0..2u32 {
        for (reader, effects) in code.effects.iter().enumerate() {
            if iteration == 1 {
                let instruction = &code.instructions[reader];
                for (read, of) in effects.reads.iter().enumerate() {
                    for (writer, when) in last.of(of.reg, instruction) {
                        let delta = 1 - when;
                        links.push(Link { writer, reader, delta, reg: of.reg, read });
                    }
                }
            }
            for write in &effects.writes {
                last.note(write, effects, reader, iteration);
            }
        }
    }
    links
}

/// Where values are overwritten that were read (WAR) or written (WAW) before; the nearest of each.
pub fn overwritten(code: &Code) -> Vec<False> {
    let mut found = Vec::new();
    let mut readers: Vec<Writers> = vec![Writers::new(); 64];
    let mut writer: Vec<Option<(usize, u32)>> = vec![None; 64];
    for iteration in 0..2u32 {
        for (second, effects) in code.effects.iter().enumerate() {
            for read in &effects.reads {
                readers[read.reg.index() & 63].push((second, iteration));
            }
            for write in &effects.writes {
                let (reg, at) = (write.reg, write.reg.index() & 63);
                let mut push = |first, when, order| {
                    if iteration == 1 {
                        found.push(False { first, second, delta: 1 - when, reg, order });
                    }
                };
                for (first, when) in readers[at].drain(..).filter(|r| *r != (second, iteration)) {
                    push(first, when, Order::War);
                }
                if let Some((first, when)) = writer[at].replace((second, iteration)) {
                    push(first, when, Order::Waw);
                }
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
