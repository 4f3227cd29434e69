//! A region of a program's code, such as a loop of several blocks, moved to another address: jumps within
//! it stay, jumps that leave it go to its end.

use iced_x86::{FlowControl, Instruction};
use isa::code::Block;
use std::collections::HashMap;
use std::ops::Range;

/// How far a short jump reaches.
const REACH: usize = 128;
/// Bytes of a jump.
const JUMP: usize = 5;
/// Bytes of a short jump.
const SHORT: usize = 2;
/// Most bytes from the first to the last instruction.
const LONGEST: u64 = 16 * 1024;
/// Bytes of a cache line.
const LINE: usize = 64;
/// The reason where bytes between its parts, or within the reach of its short jumps, do not suffice for jumps
/// to its end.
const NO_ROOM: &str = "there is no room for a jump out of it";
/// `int3`.
const TRAP: u8 = 0xcc;

/// Code with its jumps, not yet at an address.
#[derive(Debug, Clone)]
pub struct Region {
    /// Its bytes, with room for exits before and after; traps where there is no code.
    bytes: Vec<u8>,
    /// Offset of the entry.
    pub entry: usize,
    /// Offset of the first byte of code, and its address in the program.
    code: (usize, u64),
    /// Displacements to set: offset of the field, of the end of the instruction, and the target.
    rip: Vec<(usize, usize, u64)>,
    /// Displacements of jumps that leave.
    exits: Vec<usize>,
    /// Offsets of jumps to the end, which short jumps go to.
    stubs: Vec<usize>,
    /// All instructions, in the order of addresses.
    pub block: Block,
    /// Whether its short jumps were made near ones, which moves the code behind them.
    pub is_relaxed: bool,
}

impl Region {
    /// The code of `ranges` (address and bytes), which is entered at `entry`: at the distances that it has, or
    /// with longer jumps where there is no room for those that leave.
    ///
    /// # Errors
    /// Why it cannot be moved, or must not be run.
    pub fn new(ranges: &[(u64, Vec<u8>)], entry: u64) -> Result<Self, String> {
        match Self::in_place(ranges, entry) {
            Err(why) if why == NO_ROOM => relaxed(ranges, entry),
            other => other,
        }
    }

    fn in_place(ranges: &[(u64, Vec<u8>)], entry: u64) -> Result<Self, String> {
        let end = |range: &(u64, Vec<u8>)| range.0 + range.1.len() as u64;
        let (Some(first), Some(last)) =
            (ranges.iter().map(|r| r.0).min(), ranges.iter().map(end).max())
        else {
            return Err("it has no code".to_owned());
        };
        if last - first > LONGEST {
            return Err(format!("its code extends over {} bytes", last - first));
        }
        let place = |address: u64| REACH + JUMP + (address - first) as usize;
        let room = (last - first) as usize + 2 * (REACH + JUMP);
        let mut region = Self {
            bytes: vec![TRAP; room],
            entry: place(entry.clamp(first, last)),
            code: (place(first), first),
            rip: Vec::new(),
            exits: Vec::new(),
            stubs: Vec::new(),
            block: Block { bytes: Vec::new(), instructions: Vec::new() },
            is_relaxed: false,
        };
        let mut used = vec![false; room];
        for (start, bytes) in ranges {
            let at = place(*start);
            region.bytes[at..at + bytes.len()].copy_from_slice(bytes);
            used[at..at + bytes.len()].fill(true);
        }
        let inside = |target: u64| ranges.iter().any(|r| (r.0..end(r)).contains(&target));
        for range in ranges.iter().filter(|range| !inside(end(range))) {
            region.continues(place(end(range)), &mut used)?;
        }
        for (start, bytes) in ranges {
            let own = Block::decode(bytes).map_err(|e| e.to_string())?;
            for inst in &own.instructions {
                let at = place(*start) + inst.offset;
                region.instruction(&inst.decoded, (*start, at), &inside, &mut used)?;
                if let Some(field) = inst.rip_displacement {
                    let target = start.wrapping_add(inst.decoded.ip_rel_memory_address());
                    region.rip.push((at + field, at + inst.bytes.len(), target));
                }
            }
            region.block.bytes.extend(bytes);
            region.block.instructions.extend(own.instructions);
        }
        Ok(region)
    }

    /// Checks an instruction of the range that starts at `start`, and has it leave to the end if it
    /// jumps outside.
    fn instruction(
        &mut self,
        decoded: &Instruction,
        (start, at): (u64, usize),
        inside: &impl Fn(u64) -> bool,
        used: &mut [bool],
    ) -> Result<(), String> {
        if !is_jump(decoded) {
            return allowed(decoded, &self.bytes[at..at + decoded.len()]);
        }
        let target = start.wrapping_add(decoded.near_branch_target());
        if inside(target) {
            return Ok(());
        }
        let behind = at + decoded.len();
        if decoded.is_jcc_near() || decoded.is_jmp_near() {
            self.exits.push(behind - 4);
            return Ok(());
        }
        let stub = self.stub(behind, used)?;
        self.bytes[behind - 1] = (stub as i64 - behind as i64) as u8;
        Ok(())
    }

    /// Has code that continues at offset `at`, behind the region, leave to the end.
    fn continues(&mut self, at: usize, used: &mut [bool]) -> Result<(), String> {
        let free = |room: Range<usize>| used.get(room).is_some_and(|room| !room.contains(&true));
        if free(at..at + JUMP) {
            self.add_stub(at, used);
            return Ok(());
        }
        if !free(at..at + SHORT) {
            return Err(NO_ROOM.to_owned());
        }
        used[at..at + SHORT].fill(true);
        let stub = self.stub(at + SHORT, used)?;
        self.bytes[at] = 0xeb;
        self.bytes[at + 1] = (stub as i64 - (at + SHORT) as i64) as u8;
        Ok(())
    }

    /// The offset of a jump to the end within the reach of a short jump that ends at `behind`.
    fn stub(&mut self, behind: usize, used: &mut [bool]) -> Result<usize, String> {
        let reach = behind.saturating_sub(REACH)..behind + REACH;
        if let Some(stub) = self.stubs.iter().find(|stub| reach.contains(stub)) {
            return Ok(*stub);
        }
        let is_free = |at: &usize| used.get(*at..at + JUMP).is_some_and(|r| !r.contains(&true));
        let stub = reach.clone().find(is_free).ok_or(NO_ROOM)?;
        self.add_stub(stub, used);
        Ok(stub)
    }

    fn add_stub(&mut self, stub: usize, used: &mut [bool]) {
        used[stub..stub + JUMP].fill(true);
        self.bytes[stub] = 0xe9;
        self.exits.push(stub + 1);
        self.stubs.push(stub);
    }

    /// The first place from `offset` on where its code has the same place in a cache line as in the
    /// program.
    pub fn place_after(&self, offset: usize) -> usize {
        let (code, address) = self.code;
        let wanted = address as usize % LINE;
        let now = (offset + code) % LINE;
        offset + (wanted + LINE - now) % LINE
    }

    /// Its bytes at `start`, and where it leaves to.
    pub fn placed(&self, start: usize, rip: &dyn Fn(u64) -> usize) -> (Vec<u8>, usize) {
        let mut bytes = self.bytes.clone();
        let out = start + bytes.len();
        let mut set = |field: usize, behind: usize, target: usize| {
            let distance = target as i64 - (start + behind) as i64;
            bytes[field..field + 4].copy_from_slice(&(distance as i32).to_le_bytes());
        };
        self.exits.iter().for_each(|field| set(*field, field + 4, out));
        for (field, behind, target) in &self.rip {
            set(*field, *behind, rip(*target));
        }
        (bytes, out)
    }

    /// Addresses in the program that `[rip+x]` operands point to.
    pub fn rip_targets(&self) -> impl Iterator<Item = u64> {
        self.rip.iter().map(|(_, _, target)| *target)
    }
}

fn is_jump(decoded: &Instruction) -> bool {
    decoded.is_jcc_short_or_near() || decoded.is_jmp_short_or_near()
}

/// Whether an instruction that is no jump may be run.
fn allowed(decoded: &Instruction, bytes: &[u8]) -> Result<(), String> {
    if decoded.flow_control() != FlowControl::Next {
        return Err(format!("`{}` calls or jumps elsewhere", isa::code::text(decoded)));
    }
    match Block::decode(bytes).map(|block| block.refusal()) {
        Ok(None) => Ok(()),
        Ok(Some(refusal)) => Err(refusal.reason),
        Err(error) => Err(error.to_string()),
    }
}

/// The code of `ranges`, in the order of addresses, one behind the other and with near jumps only.
fn relaxed(ranges: &[(u64, Vec<u8>)], entry: u64) -> Result<Region, String> {
    let mut sorted = ranges.to_vec();
    sorted.sort();
    let first = sorted.first().map_or(entry, |range| range.0);
    let origin = REACH + JUMP;
    let mut region = Region {
        bytes: vec![TRAP; origin],
        entry: 0,
        code: (origin, first),
        rip: Vec::new(),
        exits: Vec::new(),
        stubs: Vec::new(),
        block: Block { bytes: Vec::new(), instructions: Vec::new() },
        is_relaxed: true,
    };
    let (mut places, mut jumps) = (HashMap::new(), Vec::new());
    for (start, bytes) in &sorted {
        let own = Block::decode(bytes).map_err(|e| e.to_string())?;
        for inst in &own.instructions {
            let at = region.bytes.len();
            places.insert(start + inst.offset as u64, at);
            if is_jump(&inst.decoded) {
                region.bytes.extend(near(&inst.bytes));
                let target = start.wrapping_add(inst.decoded.near_branch_target());
                jumps.push((region.bytes.len(), target));
                continue;
            }
            allowed(&inst.decoded, &inst.bytes)?;
            region.bytes.extend(&inst.bytes);
            if let Some(field) = inst.rip_displacement {
                let target = start.wrapping_add(inst.decoded.ip_rel_memory_address());
                region.rip.push((at + field, region.bytes.len(), target));
            }
        }
        region.bytes.extend([0xe9, 0, 0, 0, 0]);
        jumps.push((region.bytes.len(), start + bytes.len() as u64));
        region.block.bytes.extend(bytes);
        region.block.instructions.extend(own.instructions);
    }
    for (behind, target) in jumps {
        match places.get(&target) {
            Some(place) => {
                let distance = (*place as i64 - behind as i64) as i32;
                region.bytes[behind - 4..behind].copy_from_slice(&distance.to_le_bytes());
            }
            None => region.exits.push(behind - 4),
        }
    }
    region.bytes.extend([TRAP; REACH]);
    region.entry = *places.get(&entry).ok_or("it is entered within an instruction")?;
    Ok(region)
}

/// A jump with a displacement of four bytes, 0: `7x` is `0f 8x` then, and `eb` is `e9` (Intel SDM, Jcc and JMP).
fn near(bytes: &[u8]) -> Vec<u8> {
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

    /// cmp rax,rbx; je +2 → after the loop; inc rax; jmp → start
    #[test]
    fn jumps_that_leave_go_to_the_end_and_others_stay() {
        let code = parse_hex("4839d8 7405 48ffc0 ebf6").unwrap();
        let region = Region::new(&[(0x1000, code.clone())], 0x1000).unwrap();
        let (bytes, out) = region.placed(0, &|_| 0);
        let at = region.entry;
        assert_eq!(bytes[at..at + 4], code[..4]);
        // The short jump goes to a near jump to the end.
        let stub = (at + 5).wrapping_add_signed(isize::from(bytes[at + 4] as i8));
        assert!(stub < at || stub >= at + code.len());
        assert_eq!(bytes[at + 5..at + code.len()], code[5..]);
        let distance = i32::from_le_bytes(bytes[stub + 1..stub + 5].try_into().unwrap());
        assert_eq!((bytes[stub], stub + 5 + distance as usize), (0xe9, out));
        assert_eq!(bytes[at - 1], TRAP);
    }

    /// inc rax; jne → start; after that it goes on with what is not part of the loop.
    #[test]
    fn what_continues_behind_the_loop_leaves_it() {
        let code = parse_hex("48ffc0 75fb").unwrap();
        let region = Region::new(&[(0x1000, code.clone())], 0x1000).unwrap();
        let (bytes, out) = region.placed(0, &|_| 0);
        let stub = region.entry + code.len();
        let distance = i32::from_le_bytes(bytes[stub + 1..stub + 5].try_into().unwrap());
        assert_eq!((bytes[stub], stub + 5 + distance as usize), (0xe9, out));
    }

    /// 0x1000: inc rax; je → 0x1008; 0x1005: jmp → 0x1009, 3 bytes not of the loop, 0x1009: jmp → 0x1000, each with
    /// one byte of other code behind it.
    #[test]
    fn without_room_for_jumps_out_they_are_made_near() {
        let parts = [(0x1000, "48ffc0 7403"), (0x1006, "eb01"), (0x1009, "ebf5")];
        let ranges = parts.map(|(at, hex)| (at, parse_hex(hex).unwrap()));
        let region = Region::new(&ranges, 0x1000).unwrap();
        assert!(region.is_relaxed);
        let (bytes, out) = region.placed(0, &|_| 0);
        let at = region.entry;
        let target = |field: usize| {
            let distance = i32::from_le_bytes(bytes[field..field + 4].try_into().unwrap());
            (field + 4).wrapping_add_signed(distance as isize)
        };
        // inc rax; je near out (0x1008 is not of the loop); jmp out; jmp near 0x1009; jmp out; jmp near 0x1000
        assert_eq!(bytes[at..at + 5], parse_hex("48ffc0 0f84").unwrap());
        assert_eq!((target(at + 5), bytes[at + 9], target(at + 10)), (out, 0xe9, out));
        assert_eq!((bytes[at + 14], target(at + 15)), (0xe9, at + 24));
        assert_eq!((bytes[at + 24], target(at + 25)), (0xe9, at));
    }

    #[test]
    fn the_place_within_a_cache_line_is_kept() {
        let region = Region::new(&[(0x1234, parse_hex("48ffc8 75fb").unwrap())], 0x1234).unwrap();
        for offset in [0, 7, 64, 1000] {
            let start = region.place_after(offset);
            assert!(start >= offset && (start + region.entry) % 64 == 0x34, "{start}");
        }
    }

    #[test]
    fn calls_and_system_calls_are_refused() {
        assert!(Region::new(&[(0, parse_hex("e800000000 75f9").unwrap())], 0).is_err());
        assert!(Region::new(&[(0, parse_hex("0f05 75fc").unwrap())], 0).is_err());
    }
}
