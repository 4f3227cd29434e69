//! Addresses of a function that may be reached from elsewhere, over-approximated: what could be a
//! relative jump or call, an address in data, a label that code takes, a relocation, a symbol, a
//! landing pad.

use super::module::{Module, Segment};
use iced_x86::{Decoder, DecoderOptions, OpKind};
use std::collections::BTreeSet;
use std::ops::Range;

/// Distance of a short jump, with its own two bytes.
const SHORT: u64 = 130;
/// Longest instruction.
const LONGEST: u64 = 15;

impl Module {
    /// The addresses inside `ranges` (ascending, disjoint) that code or data outside of the same range
    /// may lead to. Some of them are none: bytes that look alike.
    pub fn entered(&self, ranges: &[Range<u64>]) -> BTreeSet<u64> {
        let mut found = BTreeSet::new();
        for range in ranges {
            found.extend(self.named.range(range.clone()).copied());
        }
        for segment in &self.segments {
            let bytes = self.of(segment);
            words(segment, bytes, ranges, &mut found);
            if segment.executable {
                relative(segment, bytes, ranges, &mut found);
                if self.is_fixed {
                    absolute(bytes, ranges, &mut found);
                }
                ranges.iter().for_each(|range| short(self, segment, bytes, range, &mut found));
            }
        }
        found
    }
}

/// The range that contains `address`.
fn within(ranges: &[Range<u64>], address: u64) -> Option<usize> {
    let after = ranges.partition_point(|range| range.start <= address);
    let index = after.checked_sub(1)?;
    (address < ranges[index].end).then_some(index)
}

/// Words that are such an address.
fn words(segment: &Segment, bytes: &[u8], ranges: &[Range<u64>], found: &mut BTreeSet<u64>) {
    let skip = segment.memory.start.wrapping_neg() as usize & 3;
    for word in bytes.get(skip..).unwrap_or_default().windows(8).step_by(4) {
        let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
        if within(ranges, word).is_some() {
            found.insert(word);
        }
    }
}

/// Displacements of 32 bits at the end of an instruction: jumps, calls, `lea`.
fn relative(segment: &Segment, bytes: &[u8], ranges: &[Range<u64>], found: &mut BTreeSet<u64>) {
    for (at, word) in bytes.windows(4).enumerate() {
        let place = segment.memory.start + at as u64;
        let distance = i32::from_le_bytes(word.try_into().unwrap_or_default());
        let target = place.wrapping_add(4).wrapping_add_signed(distance.into());
        if let Some(index) = within(ranges, target)
            && within(ranges, place) != Some(index)
        {
            found.insert(target);
        }
    }
}

/// Immediates of 32 bits in code that is not position-independent.
fn absolute(bytes: &[u8], ranges: &[Range<u64>], found: &mut BTreeSet<u64>) {
    for word in bytes.windows(4) {
        let target = u64::from(u32::from_le_bytes(word.try_into().unwrap_or_default()));
        if within(ranges, target).is_some() {
            found.insert(target);
        }
    }
}

/// Short jumps from the code around a function: jcc, jmp, loop and jrcxz.
///
/// Before it, instructions are decoded from each of the bytes of the first one that could reach it,
/// so that the true ones are among them; after it, from its end; and from every symbol.
fn short(
    module: &Module,
    segment: &Segment,
    bytes: &[u8],
    range: &Range<u64>,
    found: &mut BTreeSet<u64>,
) {
    let low = range.start.saturating_sub(SHORT + 2 * LONGEST).max(segment.memory.start);
    let high = range.end.saturating_add(SHORT).min(segment.memory.end);
    let symbols = module.named.range(low..high).copied();
    let starts = (low..(low + LONGEST).min(range.start)).chain([range.end]).chain(symbols);
    for start in starts.filter(|start| (low..high).contains(start) && !range.contains(start)) {
        let end = if start < range.start { range.start } else { high };
        let inside = |address: u64| (address - segment.memory.start) as usize;
        let code = bytes.get(inside(start)..inside(end)).unwrap_or_default();
        let decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
        let jumps = decoder.into_iter().filter(|i| i.op0_kind() == OpKind::NearBranch64);
        found.extend(jumps.map(|i| i.near_branch_target()).filter(|t| range.contains(t)));
    }
}
