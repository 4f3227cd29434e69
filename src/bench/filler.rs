//! Instructions that take an issue slot each and nothing else.
//!
//! Nops do, except on cores where a nop shares the slot of the instruction before it (Zen 4). There it
//! is moves between registers, which renaming carries out.

use iced_x86::Register;
use isa::code::Block;
use tma::Core;
use tma::tables::facts::Renamed;

/// Bytes of the longest nop without a prefix.
pub const LONGEST: usize = 8;
/// Encoding number of the stack pointer, which is never written.
const STACK_POINTER: u8 = 4;

/// An instruction that fills slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filler {
    /// Nops.
    Nop,
    /// Moves of the stack pointer to this register.
    Move(u8),
}

impl Filler {
    /// The filler among the instructions of `block`, whose registers stay unchanged; `None` if nops share slots
    /// and no register is free.
    pub fn among(block: &Block, core: &Core) -> Option<Self> {
        Self::of(core, |number| !uses(block, number))
    }

    /// The filler that replaces the instructions of `block`. It may write a register of the block, which is not
    /// the loop counter.
    pub fn instead_of(block: &Block, core: &Core) -> Self {
        let own = |number| uses(block, number);
        // A block without registers leaves the highest for the counter.
        Self::of(core, own).or_else(|| Self::of(core, |_| true)).unwrap_or(Self::Nop)
    }

    fn of(core: &Core, may_write: impl Fn(u8) -> bool) -> Option<Self> {
        let shared = core.fuses_nops() == Some(true) && core.facts().renames(Renamed::Mov);
        if !shared {
            return Some(Self::Nop);
        }
        let free = (0..16).filter(|number| *number != STACK_POINTER && may_write(*number));
        free.map(Self::Move).next()
    }

    /// An instruction of 1 to 15 bytes. One byte is a nop in any case, and so are two where the register
    /// needs a prefix.
    pub fn bytes(self, length: usize) -> Vec<u8> {
        match self {
            // ds mov r32, esp: the segment has no effect here in 64-bit mode.
            Self::Move(to @ 0..8) if length >= 2 => {
                [vec![0x3e; length - 2], vec![0x89, 0xe0 | to]].concat()
            }
            Self::Move(to) if length >= 3 => {
                [vec![0x3e; length - 3], vec![0x41, 0x89, 0xe0 | (to & 7)]].concat()
            }
            _ => nop(length),
        }
    }

    /// Its name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nop => "nop",
            Self::Move(_) => "move",
        }
    }
}

fn uses(block: &Block, number: u8) -> bool {
    block.uses(|register| {
        let full = register.full_register();
        full.is_gpr64() && full != Register::RIP && full.number() == usize::from(number)
    })
}

/// A nop of 1 to 15 bytes: the forms both vendors recommend, then more prefixes.
fn nop(length: usize) -> Vec<u8> {
    const FORMS: [&[u8]; LONGEST] = [
        &[0x90],
        &[0x66, 0x90],
        &[0x0f, 0x1f, 0x00],
        &[0x0f, 0x1f, 0x40, 0],
        &[0x0f, 0x1f, 0x44, 0, 0],
        &[0x66, 0x0f, 0x1f, 0x44, 0, 0],
        &[0x0f, 0x1f, 0x80, 0, 0, 0, 0],
        &[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
    ];
    let form = FORMS[length.clamp(1, FORMS.len()) - 1];
    let mut bytes = vec![0x66; length.saturating_sub(form.len())];
    bytes.extend(form);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::Mnemonic;
    use tma::Core;

    fn block(hex: &str) -> Block {
        Block::decode(&isa::code::parse_hex(hex).unwrap()).unwrap()
    }

    #[test]
    fn every_length_is_one_instruction() {
        for (filler, least, mnemonic) in [
            (Filler::Nop, 1, Mnemonic::Nop),
            (Filler::Move(1), 2, Mnemonic::Mov),
            (Filler::Move(11), 3, Mnemonic::Mov),
        ] {
            for length in 1..=15 {
                let one = block(&hex(&filler.bytes(length)));
                assert_eq!((one.instructions.len(), one.bytes.len()), (1, length), "{filler:?}");
                let expected = if length < least { Mnemonic::Nop } else { mnemonic };
                assert_eq!(one.instructions[0].decoded.mnemonic(), expected, "{length}");
            }
        }
        let moved = block(&hex(&Filler::Move(11).bytes(5)));
        assert_eq!(moved.instructions[0].text, "mov r11d,esp");
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// Zen 4 fuses nops and carries moves out at renaming (measured natively; Agner Fog); Zen 3's
    /// table says nothing of nops.
    #[test]
    fn nops_fill_slots_unless_they_share_them() {
        let of = |name| Core::modelled(&events::library(), name).unwrap();
        // add rax,rbx
        let add = block("4801d8");
        assert_eq!(Filler::among(&add, &of("zen3")), Some(Filler::Nop));
        assert_eq!(Filler::among(&add, &of("zen4")), Some(Filler::Move(1)));
        assert_eq!(Filler::instead_of(&add, &of("zen4")), Filler::Move(0));
        assert_eq!(Filler::instead_of(&block("90"), &of("zen4")), Filler::Move(0));
        // A self-test's answer overrides the table.
        let measured = of("zen4");
        let answers = tma::self_test::Answers { nops_fused: Some(false), ..Default::default() };
        measured.self_test.answers_or(|| answers);
        assert_eq!(Filler::among(&add, &measured), Some(Filler::Nop));
    }
}
