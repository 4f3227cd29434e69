//! Encodes the instructions of the harness at known offsets of the region.

use crate::sandbox::layout::{self as at, context};
use isa::code::Inst;

/// Code under construction; every address is an offset in the sandbox's region.
pub struct Emitter {
    start: usize,
    bytes: Vec<u8>,
}

/// `int3`.
const TRAP: u8 = 0xcc;
/// Bytes of a line of code.
const LINE: usize = 64;

/// Encoding number of `rax`.
pub const RAX: u8 = 0;
/// Encoding number of `rcx`.
pub const RCX: u8 = 1;
/// Encoding number of `r8`.
pub const R8: u8 = 8;

impl Emitter {
    /// Starts at an offset in the region.
    pub fn at(start: usize) -> Self {
        Self { start, bytes: Vec::new() }
    }

    /// Starts at an offset in the region, with capacity for `bytes`.
    pub fn with_room(start: usize, bytes: usize) -> Self {
        Self { start, bytes: Vec::with_capacity(bytes) }
    }

    /// Where the next byte goes.
    pub fn here(&self) -> usize {
        self.start + self.bytes.len()
    }

    /// The finished bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Plain bytes.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The last `length` bytes again.
    pub fn repeat(&mut self, length: usize) {
        self.bytes.extend_from_within(self.bytes.len() - length..);
    }

    /// `opcode` with a memory operand at an offset of the region; `register` in ModRM.
    fn relative(&mut self, opcode: &[u8], register: u8, target: usize) {
        self.raw(opcode);
        self.raw(&[(register & 7) << 3 | 5]);
        self.distance(target);
    }

    /// The signed distance from the end of these four bytes to `target`.
    fn distance(&mut self, target: usize) {
        let distance = target as i64 - (self.here() as i64 + 4);
        self.raw(&(distance as i32).to_le_bytes());
    }

    /// `mov r64, [target]`.
    pub fn load(&mut self, register: u8, target: usize) {
        self.relative(&[0x48 | (register >> 3) << 2, 0x8b], register, target);
    }

    /// `mov r32, [target]`.
    pub fn load32(&mut self, register: u8, target: usize) {
        self.relative(&[0x40 | (register >> 3) << 2, 0x8b], register, target);
    }

    /// `mov [target], r64`; changes no flag.
    pub fn store(&mut self, register: u8, target: usize) {
        self.relative(&[0x48 | (register >> 3) << 2, 0x89], register, target);
    }

    /// `lea r64, [target]`.
    pub fn address(&mut self, register: u8, target: usize) {
        self.relative(&[0x48 | (register >> 3) << 2, 0x8d], register, target);
    }

    /// `setcc [target]`; changes no flag.
    pub fn set_condition(&mut self, condition: u8, target: usize) {
        self.relative(&[0x0f, 0x90 | condition], 0, target);
    }

    /// `dec dword [target]`.
    pub fn decrement(&mut self, target: usize) {
        self.relative(&[0xff], 1, target);
    }

    /// `dec r32`.
    pub fn decrement_register(&mut self, register: u8) {
        self.raw(&[0x40 | register >> 3, 0xff, 0xc8 | register & 7]);
    }

    /// `mov dword [target], value`.
    pub fn set32(&mut self, target: usize, value: u32) {
        // The distance counts from the end of the constant.
        self.raw(&[0xc7, 0x05]);
        self.raw(&((target as i64 - (self.here() as i64 + 8)) as i32).to_le_bytes());
        self.raw(&value.to_le_bytes());
    }

    /// Zeroes upper halves of vectors, if there are any: dirty ones slow legacy SSE down on some processors, those of 512
    /// bits on Zen 4, too.
    pub fn clean_upper_halves(&mut self) {
        if std::arch::is_x86_feature_detected!("avx") {
            self.raw(&[0xc5, 0xf8, 0x77]); // vzeroupper
        }
    }

    /// Before a segment's body: `repeats` repetitions of it will warm up.
    pub fn warm_up(&mut self, repeats: u32) {
        self.set32(at::CONTEXT + context::LEFT, repeats);
        self.set32(at::CONTEXT + context::PHASE, 1);
    }

    /// After a segment's body: repeats it from `head` with the clock running, as often as the schedule
    /// says, once the warm-up is done. Without warm-up the first repetition would come from the legacy
    /// decoders, which costs the long run more than the short one.
    pub fn timed_again(&mut self, head: usize) {
        self.decrement(at::CONTEXT + context::PHASE);
        let mut again = Self::at(self.here() + 6);
        again.load32(RAX, at::CONTEXT + context::REPEAT);
        again.relative(&[0x40, 0x89], RAX, at::CONTEXT + context::LEFT);
        again.stamp(context::START);
        again.jump(head);
        self.raw(&[0x0f, 0x88]); // js, over it
        self.raw(&(again.bytes.len() as i32).to_le_bytes());
        self.raw(&again.into_bytes());
        self.stamp(context::END);
    }

    /// `jmp target`.
    pub fn jump(&mut self, target: usize) {
        self.raw(&[0xe9]);
        self.distance(target);
    }

    /// A jump to the next address that is a multiple of 64: what follows starts a line and, unlike
    /// code directly after a fence, comes from the op cache.
    pub fn jump_to_line(&mut self) {
        self.jump_into_line(0);
    }

    /// A jump to the next address that is `offset` bytes after a multiple of 64.
    pub fn jump_into_line(&mut self, offset: usize) {
        const SHORT_JUMP: usize = 2;
        let free = (self.here() + SHORT_JUMP).wrapping_sub(offset).wrapping_neg() % LINE;
        self.raw(&[0xeb, free as u8]); // jmp
        self.raw(&[TRAP; LINE][..free]);
    }

    /// A fence before code that is measured, and a jump, so that the fence does not keep that code out of the op
    /// cache: on Zen 4, code directly after `mfence` or `lfence` runs at 16 bytes a cycle. The code starts at
    /// `self`'s offset within a cache line.
    pub fn fence_and_align(&mut self) {
        self.fence();
        self.jump_into_line(self.start % LINE);
    }

    /// `jnz target`.
    pub fn jump_if_not_zero(&mut self, target: usize) {
        self.raw(&[0x0f, 0x85]);
        self.distance(target);
    }

    /// `ldmxcsr [target]`.
    pub fn load_mxcsr(&mut self, target: usize) {
        self.relative(&[0x0f, 0xae], 2, target);
    }

    /// `movups xmm, [target]`.
    pub fn load_xmm(&mut self, register: u8, target: usize) {
        self.relative(&[0x40 | (register >> 3) << 2, 0x0f, 0x10], register, target);
    }

    /// `vmovups ymm, [target]`.
    pub fn load_ymm(&mut self, register: u8, target: usize) {
        let r = if register < 8 { 0x80 } else { 0 };
        self.relative(&[0xc5, r | 0x7c, 0x10], register, target);
    }

    /// `vmovups zmm, [target]`.
    pub fn load_zmm(&mut self, register: u8, target: usize) {
        let r = if register & 8 == 0 { 0x80 } else { 0 };
        let r2 = if register & 16 == 0 { 0x10 } else { 0 };
        self.relative(&[0x62, r | r2 | 0x61, 0x7c, 0x48, 0x10], register, target);
    }

    /// `vmovups [target], ymm`.
    pub fn store_ymm(&mut self, register: u8, target: usize) {
        let r = if register < 8 { 0x80 } else { 0 };
        self.relative(&[0xc5, r | 0x7c, 0x11], register, target);
    }

    /// `vmovups [target], zmm`.
    pub fn store_zmm(&mut self, register: u8, target: usize) {
        let r = if register & 8 == 0 { 0x80 } else { 0 };
        let r2 = if register & 16 == 0 { 0x10 } else { 0 };
        self.relative(&[0x62, r | r2 | 0x61, 0x7c, 0x48, 0x11], register, target);
    }

    /// `kmovw [target], k`.
    pub fn store_mask(&mut self, register: u8, target: usize) {
        self.relative(&[0xc5, 0xf8, 0x91], register, target);
    }

    /// `movq mm, [target]`.
    pub fn load_mm(&mut self, register: u8, target: usize) {
        self.relative(&[0x0f, 0x6f], register, target);
    }

    /// `lea r64, [r64 - 1]`; changes no flag.
    pub fn step_down(&mut self, register: u8) {
        let high = register >> 3;
        self.raw(&[0x48 | high << 2 | high, 0x8d, 0x40 | (register & 7) << 3 | register & 7]);
        if register & 7 == 4 {
            self.raw(&[0x24]);
        }
        self.raw(&[0xff]);
    }

    /// `mov r64, r64`.
    pub fn copy(&mut self, to: u8, from: u8) {
        self.raw(&[0x48 | (from >> 3) << 2 | to >> 3, 0x89, 0xc0 | (from & 7) << 3 | to & 7]);
    }

    /// `jrcxz` over the next `bytes` bytes.
    pub fn skip_if_rcx_is_zero(&mut self, bytes: u8) {
        self.raw(&[0xe3, bytes]);
    }

    /// `kxnorw k, k, k`: all ones.
    pub fn set_mask(&mut self, register: u8) {
        let others = (!register & 15) << 3;
        self.raw(&[0xc5, 0x84 | others, 0x46, 0xc0 | register << 3 | register]);
    }

    /// A delay of as many iterations as the schedule says.
    pub fn dither(&mut self) {
        self.load32(RCX, at::CONTEXT + context::DITHER);
        let head = self.here();
        self.decrement_register(RCX);
        self.jump_if_not_zero(head);
    }

    /// Stores the time stamp, with everything before it finished and nothing after it begun.
    pub fn stamp(&mut self, field: usize) {
        self.raw(&[0x0f, 0xae, 0xe8]); // lfence
        self.raw(&[0x0f, 0x31]); // rdtsc
        self.raw(&[0x48, 0xc1, 0xe2, 0x20]); // shl rdx, 32
        self.raw(&[0x48, 0x09, 0xd0]); // or rax, rdx
        self.store(RAX, at::CONTEXT + field);
        self.raw(&[0x0f, 0xae, 0xe8]);
    }

    /// `lfence`.
    pub fn fence(&mut self) {
        self.raw(&[0x0f, 0xae, 0xe8]);
    }

    /// Instructions that trap, up to an offset.
    pub fn trap_until(&mut self, offset: usize) {
        self.raw(&[TRAP].repeat(offset.saturating_sub(self.here())));
    }

    /// `mov r64, value`.
    pub fn constant(&mut self, register: u8, value: u64) {
        self.raw(&[0x48 | register >> 3, 0xb8 | register & 7]);
        self.raw(&value.to_le_bytes());
    }

    /// The final conditional jump of a block, taken to the next place `align` bytes after a multiple of 64,
    /// over instructions that trap. Same length as in the block.
    pub fn back_edge(&mut self, inst: &Inst, inverted: bool, align: usize) {
        let behind = self.here() + inst.bytes.len();
        // One byte at least, so that leaving traps.
        let pad = (align + 63 - behind % 64) % 64 + 1;
        self.final_jump(inst, inverted);
        let field = self.bytes.len() - if inst.decoded.is_jcc_short() { 1 } else { 4 };
        self.bytes[field] = pad as u8;
        self.raw(&[TRAP].repeat(pad));
    }

    /// An instruction of the block, its `rip`-relative operand pointed at `rip_area` and its
    /// `lock` prefix replaced by one that means nothing, if `unlocked`.
    pub fn instruction(&mut self, inst: &Inst, unlocked: bool, rip_area: usize) {
        let (start, first) = (self.here(), self.bytes.len());
        self.raw(&inst.bytes);
        let bytes = &mut self.bytes[first..];
        if unlocked && let Some(lock) = lock_prefix(inst) {
            bytes[lock] = 0x3e;
        }
        if let Some(field) = inst.rip_displacement {
            let low = inst.decoded.ip_rel_memory_address() as i64 & at::RIP_MASK;
            let distance = rip_area as i64 + low - (start + bytes.len()) as i64;
            bytes[field..field + 4].copy_from_slice(&(distance as i32).to_le_bytes());
        }
    }

    /// The final jump of a block, always to the next byte; conditional ones with the condition
    /// inverted if `inverted`. Same length as in the block.
    pub fn final_jump(&mut self, inst: &Inst, inverted: bool) {
        let decoded = &inst.decoded;
        let mut bytes = inst.bytes.clone();
        let size = if decoded.is_jcc_short() || decoded.is_jmp_short() { 1 } else { 4 };
        let field = bytes.len() - size;
        bytes[field..].fill(0);
        if inverted && (decoded.is_jcc_short() || decoded.is_jcc_near()) {
            bytes[field - 1] ^= 1;
        }
        self.raw(&bytes);
    }
}

/// Position of the `lock` prefix.
fn lock_prefix(inst: &Inst) -> Option<usize> {
    inst.decoded.has_lock_prefix().then(|| inst.bytes.iter().position(|b| *b == 0xf0)).flatten()
}

/// The condition of a final conditional jump, as encoded in its opcode.
pub fn condition(inst: &Inst) -> Option<u8> {
    let decoded = &inst.decoded;
    let size = if decoded.is_jcc_short() { 1 } else { 4 };
    (decoded.is_jcc_short() || decoded.is_jcc_near())
        .then(|| inst.bytes[inst.bytes.len() - size - 1] & 15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

    /// The emitted code, read back by a decoder that shares no code with the emitter.
    fn text(emit: impl FnOnce(&mut Emitter)) -> String {
        let mut emitter = Emitter::at(0x1000);
        emit(&mut emitter);
        let bytes = emitter.into_bytes();
        let mut out = String::new();
        let mut formatter = IntelFormatter::new();
        formatter.options_mut().set_rip_relative_addresses(false);
        for inst in Decoder::with_ip(64, &bytes, 0x1000, DecoderOptions::NONE) {
            let mut line = String::new();
            formatter.format(&inst, &mut line);
            out += &line;
        }
        out
    }

    #[test]
    fn encodings_read_back_as_meant() {
        assert_eq!(text(|e| e.load(12, 0x2000)), "mov r12,[2000h]");
        assert_eq!(text(|e| e.load32(1, 0x2000)), "mov ecx,[2000h]");
        assert_eq!(text(|e| e.store(4, 0x2000)), "mov [2000h],rsp");
        assert_eq!(text(|e| e.address(8, 0x2000)), "lea r8,[2000h]");
        assert_eq!(text(|e| e.set_condition(4, 0x2000)), "sete [2000h]");
        assert_eq!(text(|e| e.decrement(0x2000)), "dec dword ptr [2000h]");
        assert_eq!(text(|e| e.decrement_register(9)), "dec r9d");
        assert_eq!(text(|e| e.set32(0x2000, 7)), "mov dword ptr [2000h],7");
        assert_eq!(text(|e| e.load_xmm(9, 0x2000)), "movups xmm9,[2000h]");
        assert_eq!(text(|e| e.load_ymm(9, 0x2000)), "vmovups ymm9,[2000h]");
        assert_eq!(text(|e| e.load_ymm(1, 0x2000)), "vmovups ymm1,[2000h]");
        assert_eq!(text(|e| e.load_zmm(25, 0x2000)), "vmovups zmm25,[2000h]");
        assert_eq!(text(|e| e.load_zmm(6, 0x2000)), "vmovups zmm6,[2000h]");
        assert_eq!(text(|e| e.set_mask(3)), "kxnorw k3,k3,k3");
        // From 0x1000, a multiple of 64: two bytes of jump, 62 that are skipped.
        assert!(text(Emitter::jump_to_line).starts_with("jmp short 0000000000001040hint3"));
        assert!(text(|e| e.jump_into_line(2)).starts_with("jmp short 0000000000001002h"));
        assert!(text(|e| e.jump_into_line(1)).starts_with("jmp short 0000000000001041h"));
        assert!(text(Emitter::fence_and_align).starts_with("lfencejmp short 0000000000001040h"));
        assert_eq!(text(|e| e.load_mxcsr(0x2000)), "ldmxcsr [2000h]");
        assert_eq!(text(|e| e.store_ymm(12, 0x2000)), "vmovups [2000h],ymm12");
        assert_eq!(text(|e| e.store_zmm(25, 0x2000)), "vmovups [2000h],zmm25");
        assert_eq!(text(|e| e.store_mask(5, 0x2000)), "kmovw [2000h],k5");
        assert_eq!(text(|e| e.load_mm(5, 0x2000)), "movq mm5,[2000h]");
        assert_eq!(text(|e| e.constant(9, 0x1234)), "mov r9,1234h");
        assert_eq!(text(|e| e.step_down(1)), "lea rcx,[rcx-1]");
        assert_eq!(text(|e| e.step_down(12)), "lea r12,[r12-1]");
        assert_eq!(text(|e| e.copy(13, 1)), "mov r13,rcx");
        assert_eq!(text(|e| e.copy(1, 9)), "mov rcx,r9");
        assert_eq!(text(|e| e.skip_if_rcx_is_zero(5)), "jrcxz 0000000000001007h");
    }
}
