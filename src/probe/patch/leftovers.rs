//! Removes probes of an earlier run that was killed before it could do so.
//!
//! They are jumps, not in the file, to anonymous executable memory in which an instruction refers
//! to memory with the name of our counters. They can be removed wherever threads are, since the
//! trampolines stay.

use super::mapped::is_counters;
use crate::facts::Module;
use crate::plan::PREFIX;
use crate::process::{Mapping, Memory};
use iced_x86::{Decoder, DecoderOptions};
use std::io;
use std::ops::Range;

/// Bytes of a jump or a call.
const JUMP: usize = 5;
/// First byte of a call and of a jump.
const CODES: [u8; 2] = [0xe8, 0xe9];
/// Most prefixes before a jump: it replaces an instruction that is shorter than a jump without one.
const MOST_PREFIXES: usize = JUMP - 2;
/// Bytes of a trampoline that are searched for a counter: a trampoline that records may execute a
/// block before.
const TRAMPOLINE: usize = 1024;

/// A jump of an earlier run.
#[derive(Debug, PartialEq, Eq)]
struct Leftover {
    at: u64,
    /// Its bytes, with prefixes.
    now: Vec<u8>,
    file: Vec<u8>,
}

impl Leftover {
    fn end(&self) -> u64 {
        self.at + self.now.len() as u64
    }
}

/// The jumps of an earlier run in the code of a file.
#[derive(Debug, Default)]
pub struct Leftovers {
    /// Jumps in order of address.
    all: Vec<Leftover>,
    /// The process has counters of an earlier run.
    pub are_possible: bool,
}

impl Leftovers {
    /// Number of jumps.
    pub fn number(&self) -> usize {
        self.all.len()
    }

    /// The code from `start` on without these jumps.
    pub fn read(&self, memory: &Memory, start: u64, length: usize) -> Vec<u8> {
        let mut bytes = memory.read(start, length);
        let end = start + length as u64;
        let from = self.all.partition_point(|jump| jump.end() <= start);
        for jump in self.all[from..].iter().take_while(|jump| jump.at < end) {
            // Byte by byte: a jump may extend into the next function.
            for (number, (now, file)) in jump.now.iter().zip(&jump.file).enumerate() {
                let at = (jump.at + number as u64).checked_sub(start).map(|at| at as usize);
                let byte = at.and_then(|at| bytes.get_mut(at));
                if let Some(byte) = byte.filter(|byte| *byte == now) {
                    *byte = *file;
                }
            }
        }
        bytes
    }

    /// Removes the jumps in a stopped process.
    pub fn restore(&self, memory: &Memory) -> io::Result<()> {
        let is_there = |jump: &&Leftover| memory.read(jump.at, jump.now.len()) == jump.now;
        self.all.iter().filter(is_there).try_for_each(|jump| memory.write_all(jump.at, &jump.file))
    }
}

/// Finds jumps of an earlier run in a file that is mapped at `bias`.
pub fn leftovers(memory: &Memory, mappings: &[Mapping], module: &Module, bias: u64) -> Leftovers {
    let range = |m: &Mapping| m.start..m.end;
    let counters: Vec<Range<u64>> = mappings.iter().filter(|m| is_counters(m)).map(range).collect();
    if counters.is_empty() {
        return Leftovers::default();
    }
    let is_code = |m: &&Mapping| m.is_executable() && m.path.is_empty();
    let code: Vec<Range<u64>> = mappings.iter().filter(is_code).map(range).collect();
    let ours = Ours { memory, counters, code };
    let mut all = Vec::new();
    for (start, file) in module.executable() {
        let start = start.wrapping_add(bias);
        let now = memory.read(start, file.len());
        all.extend(differences(start, &now, file, |to| ours.holds(to)));
    }
    Leftovers { all, are_possible: true }
}

/// The jumps in memory, not in the file, that lead to addresses for which `is_ours` holds.
fn differences(
    start: u64,
    now: &[u8],
    file: &[u8],
    is_ours: impl Fn(u64) -> bool,
) -> Vec<Leftover> {
    let mut found: Vec<Leftover> = Vec::new();
    let mut at = 0;
    while let Some(more) = now[at..].iter().zip(&file[at..]).position(|(now, file)| now != file) {
        let differs = at + more;
        let is_prefix = |bytes: &[u8]| bytes.iter().all(|byte| *byte == PREFIX);
        let jump = |first: usize| {
            let jump: [u8; JUMP] = now.get(first..first + JUMP)?.try_into().ok()?;
            let distance = i32::from_le_bytes(jump[1..].try_into().ok()?);
            let end = first + JUMP;
            let to = (start + end as u64).wrapping_add_signed(distance.into());
            // What it does not replace is the same in the file.
            let most = first.saturating_sub(MOST_PREFIXES).max(at);
            let own = (most..=first).find(|own| is_prefix(&now[*own..first]))?;
            let is_whole = own <= differs && CODES.contains(&jump[0]) && is_ours(to);
            let (now, file) = (now[own..end].to_vec(), file.get(own..end)?.to_vec());
            is_whole.then_some(Leftover { at: start + own as u64, now, file })
        };
        // A jump with an unchanged first byte begins before the first difference.
        let first = differs.saturating_sub(JUMP - 1).max(at);
        let jump = (first..=differs + MOST_PREFIXES).find_map(jump);
        at = jump.as_ref().map_or(differs + 1, |jump| (jump.end() - start) as usize);
        found.extend(jump);
    }
    found
}

/// Memory that an earlier run mapped.
struct Ours<'a> {
    memory: &'a Memory,
    counters: Vec<Range<u64>>,
    /// Anonymous executable ranges.
    code: Vec<Range<u64>>,
}

impl Ours<'_> {
    /// Whether a trampoline begins here.
    fn holds(&self, address: u64) -> bool {
        if !self.code.iter().any(|range| range.contains(&address)) {
            return false;
        }
        let bytes = self.memory.read(address, TRAMPOLINE);
        let mut decoder = Decoder::with_ip(64, &bytes, address, DecoderOptions::NONE).into_iter();
        decoder.any(|i| {
            i.is_ip_rel_memory_operand()
                && self.counters.iter().any(|range| range.contains(&i.ip_rel_memory_address()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_into_trampolines_are_found_and_others_are_not() {
        let file: Vec<u8> = (0..40).collect();
        let mut now = file.clone();
        // A jump, a call whose first byte is the same, one elsewhere, and one that is not ours.
        now[3..8].copy_from_slice(&[0xe9, 0, 1, 0, 0]);
        now[20..25].copy_from_slice(&[0xe9, 0, 2, 0, 0]);
        now[30] = 0xcc;
        let ours = |to: u64| to == 0x1000 + 8 + 0x100;
        let found = differences(0x1000, &now, &file, ours);
        let jump =
            |at, now: &[u8], file: &[u8]| Leftover { at, now: now.to_vec(), file: file.to_vec() };
        assert_eq!(found, [jump(0x1003, &[0xe9, 0, 1, 0, 0], &[3, 4, 5, 6, 7])]);
        // With prefixes, of which one is the same in the file.
        for same in 0..3 {
            let mut file = file.clone();
            let mut now = file.clone();
            now[3..10].copy_from_slice(&[PREFIX, PREFIX, 0xe9, 0xfe, 0, 0, 0]);
            if same > 0 {
                file[2 + same] = PREFIX;
            }
            let found = differences(0x1000, &now, &file, ours);
            assert_eq!(found, [jump(0x1003, &now[3..10], &file[3..10])]);
        }
        let call = [0xe8, 1, 0, 0, 0, 0x90];
        let led = [0xe8, 0x10, 0, 0, 0, 0x90];
        let found = differences(0x1000, &led, &call, |to| to == 0x1015);
        assert_eq!((found.len(), found[0].at), (1, 0x1000));
        assert_eq!(differences(0x1000, &led, &call, |_| false), []);
    }
}
