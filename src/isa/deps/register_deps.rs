//! Dependencies through registers and flags, which follow from the instructions alone.

use super::code::{CALLER_SAVED, Code, followed};
use crate::effects::{ArchReg, Effects, Role, Write};
use iced_x86::{Instruction, Mnemonic, OpKind};

/// A true dependency through a register or flag group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegisterDependency {
    /// Index of the writing instruction.
    pub writer: usize,
    /// Index of the reading instruction.
    pub reader: usize,
    /// Iterations between: 0 or 1.
    pub delta: u32,
    /// The register or flag group.
    pub reg: ArchReg,
    /// Index in the reader's [`Effects::reads`].
    pub read: usize,
}

/// The kind of ordering between two instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Read after write: a true dependency.
    Raw,
    /// Write after read: a false dependency.
    War,
    /// Write after write: a false dependency.
    Waw,
}

/// A false dependency, which renaming removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FalseDependency {
    /// Index of the earlier instruction.
    pub first: usize,
    /// Index of the instruction that writes later.
    pub second: usize,
    /// Iterations between: 0 or 1.
    pub delta: u32,
    /// The register or flag group.
    pub reg: ArchReg,
    /// [`Order::War`] or [`Order::Waw`].
    pub order: Order,
}

/// The last writers of a register with their iterations: several, if later writes were partial.
type Writers = Vec<(usize, u32)>;

/// Most writers stored per register; no register has more parts that are written separately.
const MAX_WRITERS: usize = 8;

/// The last writers of each register. The low 16 bytes of a vector register and its upper part are
/// distinguished, as legacy SSE instructions read and write only the former.
struct LastWriters {
    low: Vec<Writers>,
    high: Vec<Writers>,
}

impl LastWriters {
    fn note(&mut self, write: &Write, effects: &Effects, writer: usize, iteration: u32) {
        let at = write.reg.index();
        let merged = effects.reads.iter().any(|r| r.reg == write.reg && r.role == Role::Merged);
        let vector = write.reg.is_vector();
        add(&mut self.low[at], (writer, iteration), write.whole || merged || vector);
        if vector {
            // An instruction that leaves the upper part unchanged is not its writer.
            if write.whole {
                add(&mut self.high[at], (writer, iteration), true);
            }
        }
    }

    /// Forgets the writers of what a callee may change: vector, mask and caller-saved general-purpose
    /// registers and flags; with `all`, of everything but the stack pointer.
    fn call(&mut self, all: bool) {
        for (at, (low, high)) in self.low.iter_mut().zip(&mut self.high).enumerate() {
            let is_preserved = match at {
                4 => true,
                0..16 => !all && CALLER_SAVED >> at & 1 == 0,
                _ => false,
            };
            if !is_preserved {
                low.clear();
                high.clear();
            }
        }
    }

    /// The writers of the part of `reg` that `instruction` reads.
    fn of(&self, reg: ArchReg, instruction: &Instruction) -> impl Iterator<Item = (usize, u32)> {
        let at = reg.index();
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
    if writers.len() >= MAX_WRITERS {
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

/// The register dependencies of `code`, in order of reader.
pub fn register_dependencies(code: &Code) -> Vec<RegisterDependency> {
    let mut last = LastWriters {
        low: vec![Writers::new(); ArchReg::COUNT],
        high: vec![Writers::new(); ArchReg::COUNT],
    };
    let mut dependencies = Vec::new();
    let followed = followed(code);
    for iteration in 0..2u32 {
        for (reader, effects) in code.effects.iter().enumerate() {
            if iteration == 1 {
                let instruction = &code.instructions[reader];
                for (read, of) in effects.reads.iter().enumerate() {
                    for (writer, when) in last.of(of.reg, instruction) {
                        let delta = 1 - when;
                        dependencies.push(RegisterDependency {
                            writer,
                            reader,
                            delta,
                            reg: of.reg,
                            read,
                        });
                    }
                }
            }
            for write in &effects.writes {
                last.note(write, effects, reader, iteration);
            }
            if code.instructions[reader].mnemonic() == Mnemonic::Call && !followed[reader] {
                // After a call at its end, code outside the region runs before the next iteration.
                last.call(reader + 1 == code.instructions.len());
            }
        }
    }
    dependencies
}

/// The false dependencies of `code`: for each write, the nearest earlier reads (WAR) and write (WAW).
pub fn false_dependencies(code: &Code) -> Vec<FalseDependency> {
    let mut found = Vec::new();
    let mut readers: Vec<Writers> = vec![Writers::new(); ArchReg::COUNT];
    let mut writer: Vec<Option<(usize, u32)>> = vec![None; ArchReg::COUNT];
    for iteration in 0..2u32 {
        for (second, effects) in code.effects.iter().enumerate() {
            for read in &effects.reads {
                readers[read.reg.index()].push((second, iteration));
            }
            for write in &effects.writes {
                let (reg, at) = (write.reg, write.reg.index());
                let mut push = |first, when, order| {
                    if iteration == 1 {
                        found.push(FalseDependency { first, second, delta: 1 - when, reg, order });
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
