//! A region of a program's code, such as a loop of several blocks, moved to another address: jumps within
//! it stay, jumps that leave it go to its end.

use iced_x86::{FlowControl, Instruction};
use isa::code::Block;

/// How far a short jump reaches.
const REACH: usize = 128;
/// Bytes of a jump.
const JUMP: usize = 5;
/// Most bytes from the first to the last instruction.
const LONGEST: u64 = 16 * 1024;
/// Bytes of a cache line.
const LINE: usize = 64;
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
    /// All instructions, in the order of addresses.
    pub block: Block,
}

impl Region {
    /// The code of `ranges` (address and bytes), which is entered at `entry`.
    ///
    /// # Errors
    /// Why it cannot be moved, or must not be run.
    pub fn new(ranges: &[(u64, Vec<u8>)], entry: u64) -> Result<Self, String> {
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
            block: Block { bytes: Vec::new(), instructions: Vec::new() },
        };
        let mut used = vec![false; room];
        for (start, bytes) in ranges {
            let at = place(*start);
            region.bytes[at..at + bytes.len()].copy_from_slice(bytes);
            used[at..at + bytes.len()].fill(true);
        }
        let inside = |target: u64| ranges.iter().any(|r| (r.0..end(r)).contains(&target));
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
        let jump = decoded.is_jcc_short_or_near() || decoded.is_jmp_short_or_near();
        if !jump {
            if decoded.flow_control() != FlowControl::Next {
                return Err(format!("`{}` calls or jumps elsewhere", isa::code::text(decoded)));
            }
            let alone = Block::decode(&self.bytes[at..at + decoded.len()]);
            return match alone.map(|block| block.refusal()) {
                Ok(None) => Ok(()),
                Ok(Some(refusal)) => Err(refusal.reason),
                Err(error) => Err(error.to_string()),
            };
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
        // A short jump reaches no further than the room around the code.
        let distance = i64::from(self.bytes[behind - 1] as i8);
        let stub = behind.wrapping_add_signed(distance as isize);
        let field = stub + 1..stub + JUMP;
        if self.exits.contains(&field.start) {
            return Ok(());
        }
        if used.get(stub..stub + JUMP).is_none_or(|room| room.contains(&true)) {
            return Err("two of its exits are too close together".to_owned());
        }
        used[stub..stub + JUMP].fill(true);
        self.bytes[stub] = 0xe9;
        self.exits.push(field.start);
        Ok(())
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
        assert_eq!(bytes[at..at + code.len()], code);
        // The short jump goes to where the code ends; from there a near jump to the end.
        let stub = at + code.len();
        let distance = i32::from_le_bytes(bytes[stub + 1..stub + 5].try_into().unwrap());
        assert_eq!((bytes[stub], stub + 5 + distance as usize), (0xe9, out));
        assert_eq!(bytes[at - 1], TRAP);
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
