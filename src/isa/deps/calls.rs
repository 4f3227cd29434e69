//! Calls: which ones a region follows into the callee, and the registers that the others change.

use super::code::Code;
use iced_x86::{Instruction, Mnemonic};

/// General-purpose registers that a callee may change: rax, rcx, rdx, rsi, rdi, r8 to r11 (System V
/// ABI for x86-64, 3.2.1), by their encoding numbers.
pub const CALLER_SAVED: u16 = 0b1111_1100_0111;

/// Which calls the region follows into the callee: the next instruction is not the one after the
/// call, or the region contains the return to that one.
pub fn followed(code: &Code) -> Vec<bool> {
    let all = &code.instructions;
    let mut found = vec![false; all.len()];
    let mut open: Vec<usize> = Vec::new();
    for (number, instruction) in all.iter().enumerate() {
        // After the last instruction comes the first one, of the next iteration.
        let next = all.get(number + 1).or(all.first()).map_or(0, Instruction::ip);
        match instruction.mnemonic() {
            Mnemonic::Call => {
                found[number] = number + 1 < all.len() && next != instruction.next_ip();
                open.push(number);
            }
            // A return elsewhere is the region's own, not its last callee's.
            Mnemonic::Ret => {
                let returned = open.iter().rposition(|call| all[*call].next_ip() == next);
                if let Some(at) = returned {
                    found[open[at]] = true;
                    open.truncate(at);
                }
            }
            _ => {}
        }
    }
    found
}
