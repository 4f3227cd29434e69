//! Addresses of a function that may be reached from elsewhere, over-approximated: targets of
//! possible relative jumps and calls, addresses in data or code, relocations, symbols, landing
//! pads.

use super::module::{Addresses, Module};
use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind};
use isa::elf::Segment;
use std::ops::Range;

/// Distance of a short jump, including its own two bytes.
const SHORT: u64 = 130;
/// Longest instruction.
const LONGEST: u64 = 15;

impl Module {
    /// Addresses inside `ranges` (ascending, disjoint) that code or data outside of the same range
    /// may refer to. Some are bytes that only look like addresses.
    pub fn entered(&self, ranges: &[Range<u64>]) -> Addresses {
        let mut found = Vec::new();
        for range in ranges {
            found.extend(self.named.within(range));
            found.extend(self.pads.within(range));
        }
        for segment in &self.image.layout.segments {
            let bytes = self.image.of(segment);
            // Otherwise an address in data has a relocation.
            if self.is_fixed || segment.writable {
                words(segment, bytes, ranges, &mut found);
            }
            if segment.executable {
                let other = self.decoded(segment, bytes, ranges, &mut found);
                other.iter().for_each(|gap| relative(segment, bytes, gap, ranges, &mut found));
                if self.is_fixed {
                    absolute(bytes, ranges, &mut found);
                }
                for range in ranges {
                    short(self, segment, bytes, range, &other, &mut found);
                }
            }
        }
        found.into_iter().collect()
    }

    /// Adds the addresses that instructions of known functions refer to. Returns the rest of the
    /// segment: code between functions other than padding, and functions that do not decode.
    fn decoded(
        &self,
        segment: &Segment,
        bytes: &[u8],
        ranges: &[Range<u64>],
        found: &mut Vec<u64>,
    ) -> Vec<Range<u64>> {
        let mut other = Vec::new();
        let all = segment.in_file();
        let mut end = all.start;
        let inside = |f: &&Range<u64>| all.contains(&f.start) && f.end <= all.end;
        let last = all.end..all.end;
        for function in self.functions.iter().filter(inside).chain([&last]) {
            let gap = end..function.start;
            if !is_padding(segment, bytes, &gap) {
                other.push(gap);
            }
            let own = within(ranges, function.start);
            let targets = targets(segment, bytes, function);
            if targets.is_none() {
                other.push(function.clone());
            }
            let elsewhere =
                |target: &u64| within(ranges, *target).is_some_and(|index| own != Some(index));
            found.extend(targets.unwrap_or_default().into_iter().filter(elsewhere));
            end = function.end;
        }
        other
    }
}

/// The bytes at a range of addresses.
fn part<'b>(segment: &Segment, bytes: &'b [u8], range: &Range<u64>) -> &'b [u8] {
    let inside = |address: u64| address.saturating_sub(segment.address) as usize;
    bytes.get(inside(range.start)..inside(range.end)).unwrap_or_default()
}

/// Whether a gap has zeros or instructions without effect only.
fn is_padding(segment: &Segment, bytes: &[u8], gap: &Range<u64>) -> bool {
    let code = part(segment, bytes, gap);
    let decoder = Decoder::with_ip(64, code, gap.start, DecoderOptions::NONE);
    code.iter().all(|byte| *byte == 0)
        || decoder.into_iter().all(|i| matches!(i.mnemonic(), Mnemonic::Nop | Mnemonic::Int3))
}

/// Addresses that the instructions of a function refer or jump to; `None` if some bytes do not
/// decode.
fn targets(segment: &Segment, bytes: &[u8], function: &Range<u64>) -> Option<Vec<u64>> {
    let mut found = Vec::new();
    let code = part(segment, bytes, function);
    for instruction in Decoder::with_ip(64, code, function.start, DecoderOptions::NONE) {
        if instruction.is_invalid() {
            return None;
        }
        if instruction.op0_kind() == OpKind::NearBranch64 {
            found.push(instruction.near_branch_target());
        } else if instruction.is_ip_rel_memory_operand() {
            found.push(instruction.ip_rel_memory_address());
        }
    }
    Some(found)
}

/// The range that contains `address`.
fn within(ranges: &[Range<u64>], address: u64) -> Option<usize> {
    // Fast path: most words are far from all ranges.
    let (first, last) = ranges.first().zip(ranges.last())?;
    if address < first.start || last.end <= address {
        return None;
    }
    let after = ranges.partition_point(|range| range.start <= address);
    let index = after.checked_sub(1)?;
    (address < ranges[index].end).then_some(index)
}

/// Adds words that are addresses in `ranges`.
fn words(segment: &Segment, bytes: &[u8], ranges: &[Range<u64>], found: &mut Vec<u64>) {
    let skip = segment.address.wrapping_neg() as usize & 3;
    for word in bytes.get(skip..).unwrap_or_default().windows(8).step_by(4) {
        let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
        if within(ranges, word).is_some() {
            found.push(word);
        }
    }
}

/// Adds targets of 32-bit displacements at the end of an instruction: jumps, calls, `lea`.
fn relative(
    segment: &Segment,
    bytes: &[u8],
    gap: &Range<u64>,
    ranges: &[Range<u64>],
    found: &mut Vec<u64>,
) {
    for (at, word) in part(segment, bytes, gap).windows(4).enumerate() {
        let place = gap.start + at as u64;
        let distance = i32::from_le_bytes(word.try_into().unwrap_or_default());
        let target = place.wrapping_add(4).wrapping_add_signed(distance.into());
        if let Some(index) = within(ranges, target)
            && within(ranges, place) != Some(index)
        {
            found.push(target);
        }
    }
}

/// Adds 32-bit immediates that are addresses, in code that is not position-independent.
fn absolute(bytes: &[u8], ranges: &[Range<u64>], found: &mut Vec<u64>) {
    for word in bytes.windows(4) {
        let target = u64::from(u32::from_le_bytes(word.try_into().unwrap_or_default()));
        if within(ranges, target).is_some() {
            found.push(target);
        }
    }
}

/// Adds targets of short jumps (jcc, jmp, loop, jrcxz) from code around a function that is in no
/// known function.
///
/// Before the function, code is decoded from each byte of the first instruction that could reach
/// it, so that the true instructions are among the results; after it, from its end; and from every
/// symbol.
fn short(
    module: &Module,
    segment: &Segment,
    bytes: &[u8],
    range: &Range<u64>,
    other: &[Range<u64>],
    found: &mut Vec<u64>,
) {
    let low = range.start.saturating_sub(SHORT + 2 * LONGEST).max(segment.address);
    let high = range.end.saturating_add(SHORT).min(segment.in_file().end);
    let near = &other[other.partition_point(|gap| gap.end <= low)..];
    let mut near = near.iter().take_while(|gap| gap.start < high);
    if !near.any(|gap| gap.start != range.start) {
        return;
    }
    let symbols = module.named.within(&(low..high)).iter().copied();
    let starts = (low..(low + LONGEST).min(range.start)).chain([range.end]).chain(symbols);
    for start in starts.filter(|start| (low..high).contains(start) && !range.contains(start)) {
        let end = if start < range.start { range.start } else { high };
        let inside = |address: u64| (address - segment.address) as usize;
        let code = bytes.get(inside(start)..inside(end)).unwrap_or_default();
        let decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
        let jumps = decoder.into_iter().filter(|i| i.op0_kind() == OpKind::NearBranch64);
        found.extend(jumps.map(|i| i.near_branch_target()).filter(|t| range.contains(t)));
    }
}
