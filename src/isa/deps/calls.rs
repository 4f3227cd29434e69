//! Calls: which ones a region follows into the callee, and the registers that the others change.

use super::code::Code;
use iced_x86::Mnemonic;

/// General-purpose registers that a callee may change: rax, rcx, rdx, rsi, rdi, r8 to r11 (System V
/// ABI for x86-64, 3.2.1), by their encoding numbers.
pub const CALLER_SAVED: u16 = 0b1111_1100_0111;

/// Which calls the region follows into the callee: the next instruction is not the one after the
/// call, or the region contains the matching return.
pub fn followed(code: &Code) -> Vec<bool> {
    let mut found = vec![false; code.instructions.len()];
    let mut open = Vec::new();
    for (number, pair) in code.instructions.windows(2).enumerate() {
        match pair[0].mnemonic() {
            Mnemonic::Call => {
                found[number] = pair[1].ip() != pair[0].next_ip();
                open.push(number);
            }
            Mnemonic::Ret => returned(&mut open, &mut found),
            _ => {}
        }
    }
    if code.instructions.last().is_some_and(|last| last.mnemonic() == Mnemonic::Ret) {
        returned(&mut open, &mut found);
    }
    found
}

fn returned(open: &mut Vec<usize>, found: &mut [bool]) {
    if let Some(call) = open.pop() {
        found[call] = true;
    }
}
