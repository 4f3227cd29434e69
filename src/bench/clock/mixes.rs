//! Unfused single-µop instructions that together fill every issue slot.
//!
//! No port is needed too often: of four instructions at most two are loads, at most one is a shuffle,
//! and no chain is longer than an addition a cycle. Five bytes and more each: shorter ones do
//! not leave the op cache of Zen 5 at eight a cycle. Which mix a core sustains best is measured: on
//! Golden Cove the ports of additions are assigned unevenly, on Zen 5 nops of one byte are slow.

/// Instructions of a mix; a multiple of 3, 4, 5, 6 and 8.
pub const LENGTH: usize = 240;

/// Kinds of instructions in a mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `add`, one of two chains of a cycle.
    Add,
    /// A load of a known address.
    Load,
    /// `mov` of a constant, which needs a port and no input.
    Constant,
    /// `pshufd`, which has one input that nothing writes.
    Shuffle,
}

use Kind::{Add, Constant, Load, Shuffle};

/// A mix: its name, and the kinds that repeat.
#[derive(Debug, Clone, Copy)]
pub struct Mix {
    /// As documents have it.
    pub name: &'static str,
    kinds: &'static [Kind],
}

/// The mixes, the most sensitive to contention first.
pub const MIXES: &[Mix] = &[
    Mix {
        name: "add-load-constant-shuffle",
        kinds: &[Add, Load, Constant, Shuffle, Add, Load, Constant, Shuffle],
    },
    Mix {
        name: "add-load-constant",
        kinds: &[Add, Load, Add, Load, Constant, Constant, Constant, Constant],
    },
    Mix { name: "load-constant", kinds: &[Load, Constant, Constant] },
    Mix { name: "load-constant-shuffle", kinds: &[Load, Constant, Load, Shuffle, Constant, Add] },
    Mix { name: "add-constant", kinds: &[Add, Constant, Add, Constant] },
];

/// The mix of that name.
pub fn named(name: &str) -> Option<Mix> {
    MIXES.iter().copied().find(|mix| mix.name == name)
}

impl Mix {
    /// Its instruction `i`. It keeps rcx, rbx, rdi and rsp.
    pub fn instruction(&self, i: usize) -> Vec<u8> {
        let kind = self.kinds[i % self.kinds.len()];
        // Its number among instructions of its kind.
        let same = |all: &[Kind]| all.iter().filter(|k| **k == kind).count();
        let (whole, part) = (i / self.kinds.len(), i % self.kinds.len());
        let turn = (whole * same(self.kinds) + same(&self.kinds[..part])) as u8;
        match kind {
            // ds add r12..r13, rbx: the prefixes mean nothing in 64-bit mode.
            Add => vec![0x3e, 0x3e, 0x49, 0x01, 0xdc + turn % 2],
            // mov r8..r9, [rsp + 0x40]
            Load => vec![0x4c, 0x8b, 0x44 | (turn % 2) << 3, 0x24, 0x40],
            // mov eax, 1; mov ebp, 1; mov edx, 1; mov esi, 1
            Constant => vec![[0xb8, 0xbd, 0xba, 0xbe][usize::from(turn % 4)], 1, 0, 0, 0],
            // pshufd xmm0..xmm3, xmm4, 0
            Shuffle => vec![0x66, 0x0f, 0x70, 0xc4 | (turn % 4) << 3, 0],
        }
    }

    /// The code of the mix.
    pub fn bytes(&self) -> Vec<u8> {
        (0..LENGTH).flat_map(|i| self.instruction(i)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::Mnemonic as M;
    use isa::code::Block;

    /// Decoded by a decoder that shares no code with the encodings above.
    #[test]
    fn mixes_are_what_they_say_and_keep_the_harness_s_registers() {
        for mix in MIXES {
            let block = Block::decode(&mix.bytes()).unwrap();
            assert_eq!(block.instructions.len(), LENGTH, "{}", mix.name);
            for (i, inst) in block.instructions.iter().enumerate() {
                let expected = match mix.kinds[i % mix.kinds.len()] {
                    Add => M::Add,
                    Load | Constant => M::Mov,
                    Shuffle => M::Pshufd,
                };
                assert_eq!(inst.decoded.mnemonic(), expected, "{}", inst.text);
                assert!(inst.bytes.len() >= 5, "{}", inst.text);
                let written = inst.decoded.op0_register().full_register();
                use iced_x86::Register::{RBX, RCX, RDI, RSP};
                assert!(![RCX, RBX, RDI, RSP].contains(&written), "{}", inst.text);
                assert!(!inst.writes_memory());
            }
        }
        let texts: Vec<String> =
            (0..8).map(|i| Block::decode(&MIXES[0].instruction(i)).unwrap()).map(text).collect();
        assert_eq!(texts[0], "add r12,rbx");
        assert_eq!(texts[1], "mov r8,[rsp+0x40]");
        assert_eq!(texts[4], "add r13,rbx");
        assert_eq!(texts[5], "mov r9,[rsp+0x40]");
        assert_eq!(texts[3], "pshufd xmm0,xmm4,0");
    }

    fn text(block: Block) -> String {
        block.instructions[0].text.clone()
    }

    #[test]
    fn a_mix_is_found_by_its_name() {
        assert_eq!(named("load-constant").map(|m| m.kinds.len()), Some(3));
        assert!(named("nops").is_none());
    }
}
