//! Lays a region of code out anew: its ranges at their places within a cache line, jumps longer where they have to
//! be, and optionally a counter at its entry that ends it after a number of iterations.

use super::loop_counter::Counter;
use super::region::{Immovable, JUMP, REACH, Region, TRAP, allowed, is_jump};
use crate::sandbox::layout as at;
use crate::sandbox::layout::context;
use iced_x86::Instruction;
use isa::code::{Block, Inst};
use std::collections::{HashMap, HashSet};

/// Bytes of a cache line.
const LINE: usize = 64;

/// An instruction at its address in the program.
struct Placed {
    at: u64,
    inst: Inst,
    /// Where it jumps to.
    target: Option<u64>,
}

/// Contiguous code.
struct Part {
    start: u64,
    end: u64,
    code: Vec<Placed>,
}

/// Offsets in the layout.
#[derive(Default)]
struct Layout {
    /// Offset of each instruction, by address.
    places: HashMap<u64, usize>,
    /// Jump after each part: where it continues, and to the end.
    behind: Vec<(usize, usize)>,
    /// Offset of the counter, if any.
    counter: usize,
    end: usize,
}

/// The code of `ranges` (address and bytes), entered at `entry`: at the distances that it has, or laid out anew where
/// there is no room for jumps that leave.
///
/// # Errors
/// Why it cannot be moved, or must not be run.
pub fn moved(ranges: &[(u64, Vec<u8>)], entry: u64) -> Result<Region, Immovable> {
    match Region::new(ranges, entry) {
        Err(Immovable::NoRoom) => {
            relaid(ranges, Ends { entry, counter: None, only_to: None, once: false })
        }
        other => other,
    }
}

/// Like [`moved`], left when a counter that each further arrival at the entry decrements is zero.
///
/// # Errors
/// As [`moved`].
pub fn counted(
    ranges: &[(u64, Vec<u8>)],
    entry: u64,
    counter: Counter,
) -> Result<Region, Immovable> {
    relaid(ranges, Ends { entry, counter: Some(counter), only_to: None, once: false })
}

/// Like [`moved`], left only to the address `only_to`; it traps elsewhere, and at its entry too if it must run
/// only `once`.
///
/// # Errors
/// As [`moved`].
pub fn left_only_to(
    ranges: &[(u64, Vec<u8>)],
    entry: u64,
    only_to: u64,
    once: bool,
) -> Result<Region, Immovable> {
    relaid(ranges, Ends { entry, counter: None, only_to: Some(only_to), once })
}

/// Where the region is entered, and how it ends.
#[derive(Clone, Copy)]
struct Ends {
    entry: u64,
    counter: Option<Counter>,
    only_to: Option<u64>,
    /// Whether it traps on reaching its entry again.
    once: bool,
}

/// The code of `ranges`, entered and ended as `ends` says.
fn relaid(ranges: &[(u64, Vec<u8>)], ends: Ends) -> Result<Region, Immovable> {
    let Ends { entry, .. } = ends;
    let mut region = Region::empty(ranges.iter().map(|range| range.0).min().unwrap_or(entry));
    let parts = parts(ranges, &mut region)?;
    if !parts.iter().flat_map(|part| &part.code).any(|placed| placed.at == entry) {
        return Err(Immovable::Entry);
    }
    // Jumps become longer until all reach their targets.
    let mut near = HashSet::new();
    let layout = loop {
        let layout = laid_out(&parts, &near, ends);
        let before = near.len();
        for (number, part) in parts.iter().enumerate() {
            for placed in part.code.iter().filter(|placed| is_short(&placed.inst)) {
                let Some(target) = placed.target else { continue };
                let behind = layout.places[&placed.at] + placed.inst.bytes.len();
                let behind_part = layout.behind[number].1;
                let to = layout.target(target, ends, behind_part).unwrap_or(behind_part);
                if i8::try_from(to as i64 - behind as i64).is_err() {
                    near.insert(placed.at);
                }
            }
        }
        if near.len() == before {
            break layout;
        }
    };
    region.is_relaxed = !near.is_empty() || parts.len() > 1;
    region.entry = layout.places[&entry];
    emit(&parts, &layout, &near, ends, &mut region);
    Ok(region)
}

impl Layout {
    /// Target of a jump in a part whose jump to the end is at `leaves`; `None`: to the end.
    fn target(&self, address: u64, ends: Ends, leaves: usize) -> Option<usize> {
        if address == ends.entry && ends.counter.is_some() {
            return Some(self.counter);
        }
        if address == ends.entry && ends.once {
            return Some(leaves + JUMP);
        }
        let elsewhere = ends.only_to.is_some_and(|only| only != address);
        // A trap follows.
        self.places.get(&address).copied().or(elsewhere.then_some(leaves + JUMP))
    }
}

/// Instructions of the ranges, neighbouring ranges as one; checked, and entered into the region.
fn parts(ranges: &[(u64, Vec<u8>)], region: &mut Region) -> Result<Vec<Part>, Immovable> {
    let mut sorted = ranges.to_vec();
    sorted.sort();
    let mut all: Vec<Part> = Vec::new();
    for (start, bytes) in sorted {
        let own = Block::decode(&bytes)?;
        let mut code = Vec::new();
        for inst in &own.instructions {
            let is_jump = is_jump(&inst.decoded);
            if !is_jump {
                allowed(&inst.decoded, &inst.bytes)?;
            }
            let target = is_jump.then(|| start.wrapping_add(inst.decoded.near_branch_target()));
            code.push(Placed { at: start + inst.offset as u64, inst: inst.clone(), target });
        }
        region.block.bytes.extend(&bytes);
        region.block.instructions.extend(own.instructions);
        let end = start + bytes.len() as u64;
        match all.last_mut().filter(|last| last.end == start) {
            Some(last) => {
                last.code.extend(code);
                last.end = end;
            }
            None => all.push(Part { start, end, code }),
        }
    }
    Ok(all)
}

fn laid_out(parts: &[Part], near: &HashSet<u64>, ends: Ends) -> Layout {
    let Ends { entry, counter, .. } = ends;
    let counting = counter.map_or(0, |counter| counter.code().0.len());
    let first = parts.first().map_or(0, |part| part.start);
    let mut layout = Layout { end: ORIGIN, ..Layout::default() };
    for part in parts {
        // The counter before the part that it starts moves nothing.
        let before = if part.start == entry { counting } else { 0 };
        let wanted = (ORIGIN + (part.start - first) as usize) % LINE;
        let now = (layout.end + before) % LINE;
        let mut here = layout.end + (wanted + LINE - now) % LINE;
        for placed in &part.code {
            if placed.at == entry && counter.is_some() {
                layout.counter = here;
                here += counting;
            }
            layout.places.insert(placed.at, here);
            here += placed.length(near);
        }
        layout.behind.push((here, here + JUMP));
        // With a trap.
        layout.end = here + 2 * JUMP + 1;
    }
    layout
}

impl Placed {
    fn length(&self, near: &HashSet<u64>) -> usize {
        match near.contains(&self.at) {
            true => long(&self.inst.bytes).len(),
            false => self.inst.bytes.len(),
        }
    }
}

/// Offset of the first code: room as in [`Region::in_place`], at the start of a line.
const ORIGIN: usize = (REACH + JUMP).next_multiple_of(LINE);

fn emit(parts: &[Part], layout: &Layout, near: &HashSet<u64>, ends: Ends, region: &mut Region) {
    region.code.0 = ORIGIN;
    region.bytes = vec![TRAP; layout.end + REACH];
    if let Some((bytes, memory, jump)) = ends.counter.map(Counter::code) {
        let here = layout.counter;
        region.put(here, &bytes);
        region.exits.push(here + jump);
        // The distance counts from the end of the instruction, which is that of its field.
        region.own.extend(memory.map(|field| (here + field, COUNT)));
    }
    for (number, part) in parts.iter().enumerate() {
        let (goes_on, leaves) = layout.behind[number];
        for placed in &part.code {
            let here = layout.places[&placed.at];
            let is_near = near.contains(&placed.at);
            let bytes = if is_near { long(&placed.inst.bytes) } else { placed.inst.bytes.to_vec() };
            region.put(here, &bytes);
            let behind = here + bytes.len();
            if let Some(field) = placed.inst.rip_displacement {
                let from = placed.at - placed.inst.offset as u64;
                let target = from.wrapping_add(placed.inst.decoded.ip_rel_memory_address());
                region.rip.push((here + field, behind, target));
            }
            let Some(target) = placed.target else { continue };
            let to = layout.target(target, ends, leaves);
            if is_short(&placed.inst) && !is_near {
                let distance = to.unwrap_or(leaves) as i64 - behind as i64;
                region.bytes[behind - 1] = distance as u8;
            } else {
                region.jump(behind - 4, to);
            }
        }
        region.put(goes_on, &[0xe9, 0, 0, 0, 0]);
        region.jump(goes_on + 1, layout.target(part.end, ends, leaves));
        region.put(leaves, &[0xe9, 0, 0, 0, 0]);
        region.jump(leaves + 1, None);
    }
}

/// Where the counter in memory is.
const COUNT: usize = at::CONTEXT + context::COUNT;

fn is_short(inst: &Inst) -> bool {
    let decoded: &Instruction = &inst.decoded;
    is_jump(decoded) && (decoded.is_jcc_short() || decoded.is_jmp_short())
}

/// A jump with a displacement of four bytes, 0: `7x` is `0f 8x` then, and `eb` is `e9` (Intel SDM, Jcc and JMP).
fn long(bytes: &[u8]) -> Vec<u8> {
    let (prefixes, opcode) = match bytes {
        [prefixes @ .., jcc @ 0x70..=0x7f, _] => (prefixes, vec![0x0f, jcc + 0x10]),
        [prefixes @ .., 0xeb, _] => (prefixes, vec![0xe9]),
        [long @ .., _, _, _, _] => (long, Vec::new()),
        _ => (bytes, Vec::new()),
    };
    [prefixes, &opcode, &[0; 4]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::code::parse_hex;

    /// Where the displacement of four bytes at `field` leads to.
    fn target(bytes: &[u8], field: usize) -> usize {
        let distance = i32::from_le_bytes(bytes[field..field + 4].try_into().unwrap());
        (field + 4).wrapping_add_signed(distance as isize)
    }

    /// 0x1000: inc rax; je → 0x1008; 0x1005: jmp → 0x1009, 3 bytes not of the loop, 0x1009: jmp → 0x1000, each
    /// followed by one byte of other code.
    #[test]
    fn without_room_for_jumps_out_they_are_made_near() {
        let parts = [(0x1000, "48ffc0 7403"), (0x1006, "eb01"), (0x1009, "ebf5")];
        let ranges = parts.map(|(at, hex)| (at, parse_hex(hex).unwrap()));
        let region = moved(&ranges, 0x1000).unwrap();
        assert!(region.is_relaxed);
        let (bytes, out) = region.placed(0, &|_| 0);
        let at = region.entry;
        let target = |field| target(&bytes, field);
        // inc rax; je → a jump out after it (0x1008 is not of the loop); jmp out.
        assert_eq!(bytes[at..at + 5], parse_hex("48ffc0 7405").unwrap());
        assert_eq!((bytes[at + 5], target(at + 6)), (0xe9, out));
        assert_eq!((bytes[at + 10], target(at + 11)), (0xe9, out));
        // Each part at its place in a line: 0x1006, 0x1009, from which a short jump to 0x1000 is 128 too far.
        let (second, third) = (at + 0x46, at + 0x89);
        assert_eq!((bytes[second], second + 2 + usize::from(bytes[second + 1])), (0xeb, third));
        assert_eq!((bytes[third], target(third + 1)), (0xe9, at));
    }

    /// 0x1000: cmp rax,rbx; je +2 → out; inc rax; jmp → 0x1000, which keeps its offset within a cache line.
    #[test]
    fn a_counter_stands_before_the_entry_and_back_edges_go_to_it() {
        let code = parse_hex("4839d8 7405 48ffc0 ebf6").unwrap();
        let region = counted(&[(0x1000, code.clone())], 0x1000, Counter::Register(9)).unwrap();
        let (bytes, out) = region.placed(0, &|_| 0);
        let at = region.entry;
        assert_eq!(at % 64, 0);
        // dec r9d; jz out
        assert_eq!(bytes[at - 9..at - 4], parse_hex("41ffc9 0f84").unwrap());
        assert_eq!(target(&bytes, at - 4), out);
        // je → the jump out, placed after the jump to the next instruction
        assert_eq!((&bytes[at..at + 4], bytes[at + 4]), (&code[..4], 10));
        assert_eq!(bytes[at + 5..at + 9], code[5..9]);
        // jmp, 9 bytes before the entry
        assert_eq!(bytes[at + 9], 0xf6 - 9);
        // dec dword [the sandbox's]; jz out
        let region = counted(&[(0x1000, code)], 0x1000, Counter::Memory).unwrap();
        let (bytes, out) = region.placed(0, &|_| 0);
        let at = region.entry;
        assert_eq!(bytes[at - 12..at - 10], [0xff, 0x0d]);
        assert_eq!((target(&bytes, at - 10), target(&bytes, at - 4)), (COUNT, out));
    }

    /// Without a counter, seen to leave to 0x1010 only: `je` to 0x100a traps.
    #[test]
    fn what_the_program_did_not_do_traps() {
        let code = parse_hex("4839d8 7405 48ffc0 7408").unwrap();
        let region = left_only_to(&[(0x1000, code)], 0x1000, 0x1012, false).unwrap();
        let (bytes, out) = region.placed(0, &|_| 0);
        let at = region.entry;
        let short = |behind: usize| behind + usize::from(bytes[behind - 1]);
        assert_eq!(bytes[short(at + 5)], TRAP);
        let leaves = short(at + 10);
        assert_eq!((bytes[leaves], target(&bytes, leaves + 1)), (0xe9, out));
    }
}
