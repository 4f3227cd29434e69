//! The trampoline of a count: `inc`, the displaced instructions, a jump back.
//!
//! Displaced instructions have their bytes with adjusted distances at the new place. No encoder, since a module has a
//! hundred thousand of them.

use super::pieces::{falls_through, jump};
use crate::plan::{Kind, NoTrampoline, Site};
use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind, Register};

/// Before `inc`, to preserve the flags: lea rsp,[rsp-128] (skips the red zone); push rax; lahf (all
/// flags but OF); seto al. A signal may come between any two of them.
const KEEP: [u8; 10] = [0x48, 0x8d, 0x64, 0x24, 0x80, 0x50, 0x9f, 0x0f, 0x90, 0xc0];
/// After it: add al,127; sahf; pop rax; lea rsp,[rsp+128]. 1 + 127 overflows a byte.
const RESTORE: [u8; 13] =
    [0x80, 0xc0, 0x7f, 0x9e, 0x58, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00];
/// ds ds inc qword ptr [rip+…], without the distance.
const INC: [u8; 5] = [0x3e, 0x3e, 0x48, 0xff, 0x05];

/// A probe as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// The trampoline.
    pub trampoline: Vec<u8>,
    /// Offsets in it of the two prefixes of each `inc`: `0x3e`, without effect; `lock` or gs may
    /// replace them.
    pub prefixes: Vec<usize>,
    /// The bytes that replace the first bytes of the code.
    pub jump: Vec<u8>,
}

/// Encodes a probe in code that runs at `bias` + p_vaddr. `code` are the bytes of the displaced
/// instructions; `trampoline` and the result of `counter` for a block are addresses in the process.
///
/// # Errors
/// Something is too far away, or cannot be encoded elsewhere.
pub fn emit(
    site: &Site,
    code: &[u8],
    bias: u64,
    counter: impl Fn(usize) -> u64,
    trampoline: u64,
) -> Result<Patch, NoTrampoline> {
    let at = bias.wrapping_add(site.at);
    let mut copied = Copied::new(trampoline);
    let mut prefixes = Vec::with_capacity(1 + site.then.len());
    let mut count = |copied: &mut Copied, block, keeps_flags| {
        if keeps_flags {
            copied.add(&KEEP);
        }
        prefixes.push(copied.bytes.len());
        copied.add(&INC);
        copied.distance(counter(block), 0)?;
        if keeps_flags {
            copied.add(&RESTORE);
        }
        Ok::<(), NoTrampoline>(())
    };
    count(&mut copied, site.block, site.keeps_flags)?;
    if site.kind == Kind::Retarget {
        let call = Decoder::with_ip(64, code, at, DecoderOptions::NONE).decode();
        copied.jump(call.near_branch_target())?;
    } else {
        // Jumps to a displaced instruction go to the patch, not to its copy.
        let last = copied.copy(code, at, |copied, instruction| {
            let address = instruction.ip().wrapping_sub(bias);
            match site.then.iter().find(|then| then.at == address) {
                Some(then) => count(copied, then.block, then.keeps_flags),
                None => Ok(()),
            }
        })?;
        if falls_through(last.as_slice()) {
            copied.jump(bias.wrapping_add(site.next))?;
        }
    }
    let jump = jump(site.kind, at..bias.wrapping_add(site.next), trampoline)?;
    Ok(Patch { trampoline: copied.bytes, prefixes, jump })
}

/// Code that will run at an address.
pub(super) struct Copied {
    /// Its first address.
    start: u64,
    pub bytes: Vec<u8>,
}

impl Copied {
    /// No code yet.
    pub fn new(start: u64) -> Self {
        Self { start, bytes: Vec::with_capacity(64) }
    }

    /// Adds position-independent bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Adds the distance to `target` in an instruction that ends `more` bytes after it.
    ///
    /// # Errors
    /// It is more than 2 GiB.
    pub fn distance(&mut self, target: u64, more: usize) -> Result<(), NoTrampoline> {
        let end = self.start.wrapping_add((self.bytes.len() + 4 + more) as u64);
        let distance = i32::try_from(target.wrapping_sub(end).cast_signed());
        let distance = distance.map_err(|_| NoTrampoline::TooFar)?;
        self.bytes.extend(distance.to_le_bytes());
        Ok(())
    }

    /// Adds a jump.
    ///
    /// # Errors
    /// Its target is more than 2 GiB away.
    pub fn jump(&mut self, target: u64) -> Result<(), NoTrampoline> {
        self.add(&[0xe9]);
        self.distance(target, 0)
    }

    /// Adds instructions with these bytes, which were at `at`; `before` is called before each of them.
    ///
    /// # Errors
    /// One of them cannot be encoded here, or `before` fails.
    pub fn copy(
        &mut self,
        code: &[u8],
        at: u64,
        mut before: impl FnMut(&mut Self, &Instruction) -> Result<(), NoTrampoline>,
    ) -> Result<Option<Instruction>, NoTrampoline> {
        let mut decoder = Decoder::with_ip(64, code, at, DecoderOptions::NONE);
        let mut last = None;
        while decoder.can_decode() {
            let from = decoder.position();
            let instruction = decoder.decode();
            before(self, &instruction)?;
            let own = &code[from..decoder.position()];
            if instruction.op0_kind() == OpKind::NearBranch64 {
                self.branch(&instruction, own)?;
            } else if instruction.is_ip_rel_memory_operand() {
                let place = decoder.get_constant_offsets(&instruction);
                let is_whole = place.displacement_size() == 4;
                if instruction.memory_base() != Register::RIP || !is_whole {
                    return Err(NoTrampoline::Narrow);
                }
                let (from, to) = (place.displacement_offset(), place.displacement_offset() + 4);
                self.add(&own[..from]);
                self.distance(instruction.ip_rel_memory_address(), own.len() - to)?;
                self.add(&own[to..]);
            } else {
                self.add(own);
            }
            last = Some(instruction);
        }
        Ok(last)
    }

    /// Adds a jump to the same target, in its long form.
    fn branch(&mut self, instruction: &Instruction, own: &[u8]) -> Result<(), NoTrampoline> {
        let target = instruction.near_branch_target();
        if instruction.is_jcc_short_or_near() {
            // Intel SDM vol. 2, Jcc: 70+cc cb or 0F 80+cc cd; prefixes are hints.
            let distance = if instruction.is_jcc_short() { 1 } else { 4 };
            let opcode = own[own.len() - distance - 1];
            self.add(&[0x0f, 0x80 | opcode & 0xf]);
            return self.distance(target, 0);
        }
        if instruction.is_jmp_short_or_near() {
            return self.jump(target);
        }
        let is_short =
            instruction.is_jcx_short() || instruction.is_loop() || instruction.is_loopcc();
        if !is_short {
            return Err(NoTrampoline::Immovable(instruction.mnemonic()));
        }
        // loop and jrcxz have no long form: if not taken, a short jump skips a long one.
        self.add(&own[..own.len() - 1]);
        self.add(&[2, 0xeb, 5]);
        self.jump(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{BlockEncoder, BlockEncoderOptions, InstructionBlock};
    use isa::code::parse_hex;

    #[test]
    fn copies_are_those_of_another_encoder() {
        // je +4; jmp -2; loop +0; jrcxz -5; mov eax,[rip+0x100]; cmp dword ptr [rip-0x20],7;
        // imul ecx,[rip+1],0x12345; vaddps zmm1,zmm2,[rip+0x40]; add rax,rbx; jae far.
        let code = "74 04, eb fe, e2 00, e3 fb, 8b 05 00 01 00 00, 83 3d e0 ff ff ff 07,
            69 0d 01 00 00 00 45 23 01 00, 62 f1 6c 48 58 0d 40 00 00 00, 48 01 d8, 0f 83 00 10 00 00";
        let code = parse_hex(code).unwrap();
        let (from, to) = (0x5555_0000_1000, 0x5555_4000_0000);
        let mut copied = Copied::new(to);
        copied.copy(&code, from, |_, _| Ok(())).unwrap();
        let decoder = Decoder::with_ip(64, &code, from, DecoderOptions::NONE);
        let mut all: Vec<Instruction> = decoder.into_iter().collect();
        all.iter_mut().for_each(|instruction| instruction.set_ip(0));
        let block = InstructionBlock::new(&all, to);
        let expected = BlockEncoder::encode(64, block, BlockEncoderOptions::NONE).unwrap();
        assert_eq!(copied.bytes, expected.code_buffer);
        assert!(Copied::new(from + (3 << 30)).copy(&code, from, |_, _| Ok(())).is_err());
    }

    #[test]
    fn prefixes_of_branches_are_kept_where_they_are_no_hints() {
        let copied = |hex: &str| {
            let mut copied = Copied::new(0x2000);
            copied.copy(&parse_hex(hex).unwrap(), 0x1000, |_, _| Ok(())).map(|_| copied.bytes)
        };
        // jecxz +0x10; bnd je +0x10; je,pt +0x10; bnd jmp +0x10.
        for (own, moved) in [
            ("67 e3 10", "67 e3 02, eb 05, e9 09 f0 ff ff"),
            ("f2 74 10", "0f 84 0d f0 ff ff"),
            ("3e 74 10", "0f 84 0d f0 ff ff"),
            ("f2 eb 10", "e9 0e f0 ff ff"),
        ] {
            assert_eq!(copied(own), Ok(parse_hex(moved).unwrap()), "{own}");
        }
        // mov eax,[eip+0x10]; call; xbegin.
        for own in ["67 8b 05 10 00 00 00", "e8 10 00 00 00", "c7 f8 10 00 00 00"] {
            assert!(copied(own).is_err(), "{own}");
        }
    }
}
