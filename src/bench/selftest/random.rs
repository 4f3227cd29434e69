//! The code of random branches and jumps, and of nested calls.

use crate::harness::emitter::{Emitter, RAX};

/// `rdx` from the next number of a linear congruential generator modulo 2⁶⁴, whose multiplier is 5
/// modulo 8 and whose increment is odd (Knuth, The Art of Computer Programming 2, 3.2.1).
pub(super) fn random(code: &mut Emitter) {
    code.raw(&[0x48, 0x8b, 0x47, 0x40]); // mov rax, [rdi + 0x40]
    code.raw(&[0x48, 0x69, 0xc0, 0x2d, 0xf4, 0x51, 0x58]); // imul rax, rax, 0x5851f42d
    code.raw(&[0x48, 0x05, 0xb7, 0x57, 0x40, 0x01]); // add rax, 0x14057b7
    code.raw(&[0x48, 0x89, 0x47, 0x40]); // mov [rdi + 0x40], rax
    code.raw(&[0x48, 0x89, 0xc2]); // mov rdx, rax
    code.raw(&[0x48, 0xc1, 0xea, 0x28]); // shr rdx, 40
}

/// `rdx` from the number in `r8`, of which `mask` is left, and the next number: products of an index and an exclusive or,
/// as hash functions have them, so that a sequence is random and begins anew where its index does.
pub(super) fn repeating(code: &mut Emitter, mask: Option<u32>) {
    code.raw(&[0x4c, 0x89, 0xc0]); // mov rax, r8
    if let Some(mask) = mask {
        code.raw(&[0x25]); // and eax, mask
        code.raw(&mask.to_le_bytes());
    }
    code.raw(&[0x48, 0x69, 0xc0, 0x95, 0xe9, 0xd1, 0x5b]); // imul rax, rax, 0x5bd1e995
    code.raw(&[0x48, 0x89, 0xc2]); // mov rdx, rax
    code.raw(&[0x48, 0xc1, 0xea, 15]); // shr rdx, 15
    code.raw(&[0x48, 0x31, 0xd0]); // xor rax, rdx
    code.raw(&[0x48, 0x69, 0xd0, 0x2d, 0xf4, 0x51, 0x58]); // imul rdx, rax, 0x5851f42d
    code.raw(&[0x48, 0xc1, 0xea, 40]); // shr rdx, 40
    code.raw(&[0x49, 0xff, 0xc0]); // inc r8
}

/// A branch on `bits` of the number; if `always`, it is taken regardless.
pub(super) fn branch(code: &mut Emitter, bits: u8, always: bool) {
    // jnz, or jz of no bits
    let (mask, jump) = if always { (0, 0x74) } else { (bits, 0x75) };
    code.raw(&[0xf6, 0xc2, mask]); // test dl, mask
    code.raw(&[jump, 0x04]); // over the next
    code.raw(&[0x48, 0x83, 0xc6, 0x01]); // add rsi, 1
}

/// Branches that always are taken, to the next instruction: on processors whose history has taken branches only, they
/// are in it, too.
const OTHERS: usize = 16;

pub(super) fn among(code: &mut Emitter) {
    // test rsp, rsp; jnz, over no instruction
    (0..OTHERS).for_each(|_| code.raw(&[0x48, 0x85, 0xe4, 0x75, 0x00]));
}

/// A jump to one of two targets, by `bits` of a random number. The first goes on into the second: one taken
/// jump less, which limits some cores.
pub(super) fn jump(code: &mut Emitter, bits: u8) {
    random(code);
    code.raw(&[0x48, 0x8d, 0x05, 0x10, 0, 0, 0]); // lea rax, the first target
    code.raw(&[0x4c, 0x8d, 0x40, 0x04]); // lea r8, the second
    code.raw(&[0xf6, 0xc2, bits]); // test dl, bits
    // With no bits it is always the first.
    code.raw(&[0x49, 0x0f, 0x45, 0xc0]); // cmovnz rax, r8
    code.raw(&[0xff, 0xe0]); // jmp rax
    code.raw(&[0xcc; 3]); // int3
    code.raw(&[0x48, 0x83, 0xc6, 0x01]); // first: add rsi, 1
    code.raw(&[0x48, 0x83, 0xc6, 0x02]); // second: add rsi, 2
}

/// The order of several targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// So many at random.
    Random(u8),
    /// So many in turn.
    InTurn(u8),
}

impl Order {
    /// How many, and whether in turn.
    fn parts(self) -> (u8, bool) {
        match self {
            Self::Random(of) => (of, false),
            Self::InTurn(of) => (of, true),
        }
    }

    /// In words.
    pub fn name(self) -> String {
        let (of, in_turn) = self.parts();
        format!(
            "{} {}",
            ["two", "four", "eight"][of.ilog2() as usize - 1],
            if in_turn { "in turn" } else { "at random" }
        )
    }
}

/// Bytes between functions, and between targets of a jump, as compilers align them.
const APART: usize = 16;
/// Functions, and targets of a jump at most.
const MOST: usize = 8;
/// `add rsi, 1`, by which functions differ in nothing but their addresses.
const STEP: [u8; 4] = [0x48, 0x83, 0xc6, 1];

/// Eight functions, 16 bytes apart; tables of each with nothing else from `rdi + 0x140` on, and from `rdi + 0x100` the addresses of
/// the tables, as objects have them. If `apart`, every other one returns 4 bytes later.
pub(super) fn objects(code: &mut Emitter, apart: bool) {
    code.raw(&[0xe9]); // jmp, over all functions
    code.raw(&((MOST * APART) as u32).to_le_bytes());
    let first = code.here();
    for number in 0..MOST {
        let more = if apart { number % 2 } else { 0 };
        (0..=more).for_each(|_| code.raw(&STEP));
        code.raw(&[0xc3]); // ret
        (code.here()..first + (number + 1) * APART).for_each(|_| code.raw(&[0xcc])); // int3
    }
    for number in 0..MOST {
        let (table, object) = (0x140 + 0x40 * number as u32, 0x100 + 8 * number as u32);
        code.address(RAX, first + number * APART);
        code.raw(&[0x48, 0x89, 0x87]); // mov [rdi + table], rax
        code.raw(&table.to_le_bytes());
        code.raw(&[0x48, 0x8d, 0x87]); // lea rax, [rdi + table]
        code.raw(&table.to_le_bytes());
        code.raw(&[0x48, 0x89, 0x87]); // mov [rdi + object], rax
        code.raw(&object.to_le_bytes());
    }
}

/// A call of one of the two functions, by `bits` of a random number.
pub(super) fn call(code: &mut Emitter, bits: u8) {
    random(code);
    code.raw(&[0x45, 0x31, 0xc0]); // xor r8d, r8d
    code.raw(&[0xf6, 0xc2, bits]); // test dl, bits
    code.raw(&[0x41, 0x0f, 0x95, 0xc0]); // setnz r8b
    code.raw(&[0x4a, 0x8b, 0x84, 0xc7, 0, 1, 0, 0]); // mov rax, [rdi + r8 * 8 + 0x100]
    code.raw(&[0xff, 0x10]); // call [rax]
}

/// `edx` is one of so many numbers (a power of two): at random, or in turn, which waits for the random number, too.
fn number(code: &mut Emitter, order: Order) {
    let (of, in_turn) = order.parts();
    random(code);
    code.raw(&[0x83, 0xe2, if in_turn { 0 } else { of - 1 }]); // and edx, of - 1
    if in_turn {
        code.raw(&[0x41, 0xff, 0xc1]); // inc r9d
        code.raw(&[0x41, 0x83, 0xe1, of - 1]); // and r9d, of - 1
        code.raw(&[0x44, 0x01, 0xca]); // add edx, r9d
    }
}

/// A call of one of so many functions.
pub(super) fn call_of(code: &mut Emitter, order: Order) {
    number(code, order);
    code.raw(&[0x48, 0x8b, 0x84, 0xd7, 0, 1, 0, 0]); // mov rax, [rdi + rdx * 8 + 0x100]
    code.raw(&[0xff, 0x10]); // call [rax]
}

/// A jump to one of so many targets, each of which goes on into the next.
pub(super) fn jump_to(code: &mut Emitter, order: Order) {
    number(code, order);
    code.raw(&[0xc1, 0xe2, 4]); // shl edx, 4
    code.raw(&[0x48, 0x8d, 0x05, 5, 0, 0, 0]); // lea rax, the first target
    code.raw(&[0x48, 0x01, 0xd0]); // add rax, rdx
    code.raw(&[0xff, 0xe0]); // jmp rax
    // Two nops of eight bytes each.
    (0..2 * order.parts().0).for_each(|_| code.raw(&[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]));
}

/// Calls nested 64 deep, each from one of two places, by the bit of `places` with the call's number.
pub(super) fn nested(code: &mut Emitter, places: u64) {
    code.raw(&[0x49, 0xb8]); // mov r8, places
    code.raw(&places.to_le_bytes());
    code.raw(&[0xba, 64, 0, 0, 0]); // mov edx, 64
    code.raw(&[0xe8, 2, 0, 0, 0]); // call the function
    code.raw(&[0xeb, 23]); // jmp, over it
    code.raw(&[0xff, 0xca]); // dec edx
    code.raw(&[0x74, 18]); // jz, to the last ret
    code.raw(&[0x49, 0x0f, 0xa3, 0xd0]); // bt r8, rdx
    code.raw(&[0x72, 6]); // jc, to the other place
    code.raw(&[0xe8, 0xf1, 0xff, 0xff, 0xff, 0xc3]); // call the function; ret
    code.raw(&[0xe8, 0xeb, 0xff, 0xff, 0xff, 0xc3]); // call the function; ret
    code.raw(&[0xc3]); // ret
}
