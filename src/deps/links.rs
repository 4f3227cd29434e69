//! Dependencies through registers and flags, which the instructions alone decide.

use super::code::Code;
use crate::code::effects::{Place, Role};

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
    pub place: Place,
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
    pub place: Place,
    /// [`Order::War`] or [`Order::Waw`].
    pub order: Order,
}

/// Who wrote a place last: several, where a later one left part of it.
type Writers = Vec<(usize, u32)>;

/// The links of `code`, in order of reader.
pub fn links(code: &Code) -> Vec<Link> {
    let mut last: Vec<Writers> = vec![Writers::new(); 64];
    let mut links = Vec::new();
    for iteration in 0..2u32 {
        for (reader, effects) in code.effects.iter().enumerate() {
            if iteration == 1 {
                for (read, of) in effects.reads.iter().enumerate() {
                    for (writer, when) in &last[of.place.index() & 63] {
                        let (writer, delta) = (*writer, 1 - when);
                        links.push(Link { writer, reader, delta, place: of.place, read });
                    }
                }
            }
            for write in &effects.writes {
                let kept =
                    |r: &crate::code::effects::Read| r.place == write.place && r.role == Role::Kept;
                let all = &mut last[write.place.index() & 63];
                if write.whole || effects.reads.iter().any(kept) {
                    all.clear();
                }
                all.retain(|(writer, _)| *writer != reader);
                // More than a few parts a register does not have.
                if all.len() >= 8 {
                    all.remove(0);
                }
                all.push((reader, iteration));
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
                readers[read.place.index() & 63].push((second, iteration));
            }
            for write in &effects.writes {
                let (place, at) = (write.place, write.place.index() & 63);
                let mut push = |first, when, order| {
                    if iteration == 1 {
                        found.push(False { first, second, delta: 1 - when, place, order });
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
