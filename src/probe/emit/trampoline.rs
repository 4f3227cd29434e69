//! The trampoline of a count: `inc`, the displaced instructions, a jump back.

use super::copied::Copied;
use super::pieces::{falls_through, jump};
use crate::plan::NoTrampoline;
use crate::plan::{Kind, Site};
use iced_x86::{Decoder, DecoderOptions};

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
