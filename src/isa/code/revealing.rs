//! Instructions by which a block could learn its address, and so where its harness is.
//!
//! Refused instructions ([`refusal`](super::refusal)) reveal nothing, since they never run: `call`, `fxsave`,
//! `xsave`, `sgdt`, `rdfsbase`, `rdpmc` and the like.

use super::decode::Block;
use super::inst::Inst;
use iced_x86::Mnemonic;

impl Block {
    /// Whether it could compute addresses other than its own data's: from an instruction pointer, or by timing
    /// accesses, which also those show that never fault (prefetches, masked loads).
    pub fn can_learn_addresses(&self) -> bool {
        self.instructions.iter().any(reveals)
    }
}

fn reveals(inst: &Inst) -> bool {
    use Mnemonic as M;
    match inst.decoded.mnemonic() {
        // The x87 environment holds the last instruction's address.
        M::Fnstenv | M::Fstenv | M::Fnsave | M::Fsave => true,
        M::Rdtsc | M::Rdtscp => true,
        M::Lea => inst.decoded.is_ip_rel_memory_operand(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::parse_hex;

    #[test]
    fn instruction_pointers_and_clocks_reveal_where_a_block_runs() {
        let reveals =
            |hex: &str| Block::decode(&parse_hex(hex).unwrap()).unwrap().can_learn_addresses();
        // Encodings from the Intel manual's opcode tables.
        for hex in [
            "d933",             // fnstenv [rbx]
            "66d933",           // fnstenv, 16 bits
            "9bd933",           // fstenv
            "dd33",             // fnsave [rbx]
            "9bdd33",           // fsave
            "90 0f31",          // rdtsc, not first
            "0f01f9",           // rdtscp
            "488d0500000000",   // lea rax,[rip]
            "67488d0500000000", // lea rax,[eip]
        ] {
            assert!(reveals(hex), "{hex}");
        }
        for hex in [
            "4801d8",         // add rax,rbx
            "488d4301",       // lea rax,[rbx+1]
            "488b0500000000", // mov rax,[rip]: content, not its address
            "d923",           // fldenv [rbx]
            "d93b",           // fnstcw
            "0f0d0b",         // prefetchw [rbx], without a clock
            "9c58",           // pushf, pop
        ] {
            assert!(!reveals(hex), "{hex}");
        }
    }
}
