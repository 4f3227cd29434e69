//! Moves a region of a program's code, such as a loop of several blocks, to another address: jumps within it stay,
//! jumps that leave it go to its end. Refuses code that can run only in its program.

use iced_x86::{FlowControl, Instruction, Mnemonic};
use isa::code::Block;
use isa::names::small;
use std::fmt;
use std::ops::Range;
use tma::{Cause, Error};

/// Reach of a short jump, in bytes.
pub(super) const REACH: usize = 128;
/// Bytes of a jump.
pub(super) const JUMP: usize = 5;
/// Bytes of a short jump.
const SHORT: usize = 2;
/// Most bytes from the first to the last instruction.
const LONGEST: u64 = 16 * 1024;
/// Bytes of a cache line.
const LINE: usize = 64;
/// `int3`.
pub(super) const TRAP: u8 = 0xcc;

/// Why code cannot be run elsewhere than in its program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Immovable {
    /// Bytes between its parts, or within the reach of its short jumps, do not suffice for jumps to its end.
    NoRoom,
    /// There is none.
    NoCode,
    /// It extends over so many bytes.
    Long(u64),
    /// It cannot be decoded.
    Undecodable(Cause<Error>),
    /// An instruction calls or jumps elsewhere.
    Leaves(Mnemonic),
    /// An instruction must not be run: the reason.
    Refused(String),
    /// Its entry is within an instruction.
    Entry,
    /// Counting its iterations would change a flag that it reads.
    LiveFlag,
}

impl fmt::Display for Immovable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRoom => "there is no room for a jump out of it",
            Self::NoCode => "it has no code",
            Self::Long(bytes) => return write!(f, "its code extends over {bytes} bytes"),
            Self::Undecodable(error) => return error.fmt(f),
            Self::Leaves(name) => {
                return write!(f, "its `{}` calls or jumps elsewhere", small(*name));
            }
            Self::Refused(reason) => reason,
            Self::Entry => "it is entered within an instruction",
            Self::LiveFlag => {
                "a flag is live from one iteration to the next, so that nothing can count them"
            }
        })
    }
}

impl From<Error> for Immovable {
    fn from(error: Error) -> Self {
        Self::Undecodable(error.into())
    }
}

/// Code with its jumps, not yet at an address.
#[derive(Debug, Clone)]
pub struct Region {
    /// Its bytes, with room for exits before and after; traps where there is no code.
    pub(super) bytes: Vec<u8>,
    /// Offset of the entry.
    pub entry: usize,
    /// Offset of the first byte of code, and its address in the program.
    pub(super) code: (usize, u64),
    /// Displacements to set: offset of the field, of the end of the instruction, and the target.
    pub(super) rip: Vec<(usize, usize, u64)>,
    /// Displacements at the end of an instruction, and the offset in the sandbox that they lead to.
    pub(super) own: Vec<(usize, usize)>,
    /// Displacements of jumps that leave.
    pub(super) exits: Vec<usize>,
    /// Offsets of jumps to the end, which short jumps go to.
    stubs: Vec<usize>,
    /// All instructions, in the order of addresses.
    pub block: Block,
    /// Whether its parts or short jumps are not as long and as far apart as in the program.
    pub is_relaxed: bool,
}

impl Region {
    /// A region without code; the program's code begins at `first`.
    pub(super) fn empty(first: u64) -> Self {
        Self {
            bytes: Vec::new(),
            entry: 0,
            code: (0, first),
            rip: Vec::new(),
            own: Vec::new(),
            exits: Vec::new(),
            stubs: Vec::new(),
            block: Block { bytes: Vec::new(), instructions: Vec::new() },
            is_relaxed: false,
        }
    }

    /// The code of `ranges` (address and bytes), which is entered at `entry`, at the distances that it has.
    ///
    /// # Errors
    /// Why it cannot be moved so, or must not be run.
    pub(super) fn new(ranges: &[(u64, Vec<u8>)], entry: u64) -> Result<Self, Immovable> {
        let end = |range: &(u64, Vec<u8>)| range.0 + range.1.len() as u64;
        let (Some(first), Some(last)) =
            (ranges.iter().map(|r| r.0).min(), ranges.iter().map(end).max())
        else {
            return Err(Immovable::NoCode);
        };
        if last - first > LONGEST {
            return Err(Immovable::Long(last - first));
        }
        let place = |address: u64| REACH + JUMP + (address - first) as usize;
        let room = (last - first) as usize + 2 * (REACH + JUMP);
        let mut region = Self {
            bytes: vec![TRAP; room],
            entry: place(entry.clamp(first, last)),
            code: (place(first), first),
            ..Self::empty(first)
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
            let own = Block::decode(bytes)?;
            for inst in &own.instructions {
                let at = place(*start) + inst.offset;
                region.instruction(&inst.decoded, *start, at, &inside, &mut used)?;
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

    /// Checks an instruction of the range that starts at `start`, and makes it leave to the end if it jumps outside.
    fn instruction(
        &mut self,
        decoded: &Instruction,
        start: u64,
        at: usize,
        inside: &impl Fn(u64) -> bool,
        used: &mut [bool],
    ) -> Result<(), Immovable> {
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

    /// Makes code that continues at offset `at`, after the region, leave to the end.
    fn continues(&mut self, at: usize, used: &mut [bool]) -> Result<(), Immovable> {
        let free = |room: Range<usize>| used.get(room).is_some_and(|room| !room.contains(&true));
        if free(at..at + JUMP) {
            self.add_stub(at, used);
            return Ok(());
        }
        if !free(at..at + SHORT) {
            return Err(Immovable::NoRoom);
        }
        used[at..at + SHORT].fill(true);
        let stub = self.stub(at + SHORT, used)?;
        self.bytes[at] = 0xeb;
        self.bytes[at + 1] = (stub as i64 - (at + SHORT) as i64) as u8;
        Ok(())
    }

    /// The offset of a jump to the end within reach of a short jump that ends at `behind`.
    fn stub(&mut self, behind: usize, used: &mut [bool]) -> Result<usize, Immovable> {
        let reach = behind.saturating_sub(REACH)..behind + REACH;
        if let Some(stub) = self.stubs.iter().find(|stub| reach.contains(stub)) {
            return Ok(*stub);
        }
        let is_free = |at: &usize| used.get(*at..at + JUMP).is_some_and(|r| !r.contains(&true));
        let stub = reach.clone().find(is_free).ok_or(Immovable::NoRoom)?;
        self.add_stub(stub, used);
        Ok(stub)
    }

    fn add_stub(&mut self, stub: usize, used: &mut [bool]) {
        used[stub..stub + JUMP].fill(true);
        self.bytes[stub] = 0xe9;
        self.exits.push(stub + 1);
        self.stubs.push(stub);
    }

    /// Sets bytes.
    pub(super) fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Makes the jump with this displacement of four bytes go to an offset, or leave.
    pub(super) fn jump(&mut self, field: usize, to: Option<usize>) {
        match to {
            Some(to) => {
                let distance = (to as i64 - (field + 4) as i64) as i32;
                self.put(field, &distance.to_le_bytes());
            }
            None => self.exits.push(field),
        }
    }

    /// The first place from `offset` on at which its code keeps its offset within a cache line.
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
        self.own.iter().for_each(|(field, target)| set(*field, field + 4, *target));
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

pub(super) fn is_jump(decoded: &Instruction) -> bool {
    decoded.is_jcc_short_or_near() || decoded.is_jmp_short_or_near()
}

/// Whether an instruction that is no jump may be run.
pub(super) fn allowed(decoded: &Instruction, bytes: &[u8]) -> Result<(), Immovable> {
    if decoded.flow_control() != FlowControl::Next {
        return Err(Immovable::Leaves(decoded.mnemonic()));
    }
    match Block::decode(bytes)?.refusal() {
        None => Ok(()),
        Some(refusal) => Err(Immovable::Refused(refusal.reason)),
    }
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
