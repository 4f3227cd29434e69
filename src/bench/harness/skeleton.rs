//! The front-end skeleton of a block: instructions of the same lengths, which only need fetching, decoding and
//! issuing; and fillers, which take an issue slot each and nothing else. A `mov` of a 64-bit immediate stays: it
//! takes two op-cache slots, unlike a nop, and has no input.
//!
//! Fillers are nops, except on cores where a nop shares the slot of the instruction before it (Zen 4). There they
//! are moves between registers, which renaming carries out. The self-test measures how many a cycle a core delivers:
//! slower ones would take the time of an execution unit for that of the front end, and are not used.

use iced_x86::{Mnemonic, Register};
use isa::code::{Block, Inst};
use tma::Core;
use tma::tables::facts::Renamed;

/// Prefixes beyond this many decode slowly on some cores.
const PREFIXES: usize = 3;

/// Bytes of the longest nop without a prefix.
pub const LONGEST: usize = 8;
/// Encoding number of the stack pointer, which is never written; nor is it read: a Zen 4 does four `mov r32,esp` a
/// cycle, and six of any other register (measured natively, 2 to 10 bytes each).
const STACK_POINTER: u8 = 4;
/// Registers that need no prefix.
const LOW: std::ops::Range<u8> = 0..8;
/// Share of the width that fillers reach at least, if nothing but slots limits them.
const FILLS: f64 = 0.93;

/// Evidence of the front-end bound, with known biases for this block.
pub fn how(block: &Block, filler: Filler) -> String {
    let mut how =
        format!("measured: each instruction replaced by a {} of the same length", filler.name());
    if filler != Filler::Nop {
        how += ", because nops share slots here";
    }
    let filler = filler.name();
    if block.final_branch().is_some() {
        how += ", the final jump kept";
    }
    if fuses(block) {
        how += " with a `test` that may fuse with it";
    } else if flags(block).is_some() {
        how += " with a `test` for its flags";
    }
    how += "; an instruction of several operations counts as one";
    let long = block.instructions.iter().filter(|i| i.bytes.len() > LONGEST + PREFIXES).count();
    if long > 0 {
        how += &format!(
            "; {long} {filler}s need more than {PREFIXES} prefixes, which some cores decode slowly"
        );
    }
    let wide = block.instructions.iter().filter(|i| has_wide_immediate(i)).count();
    if wide > 0 {
        how += &format!(
            "; {wide} `mov` of a 64-bit immediate kept, which takes more op-cache slots than a {filler} and \
             has no input"
        );
    }
    how
}

/// Whether it moves a 64-bit immediate to a register.
pub fn has_wide_immediate(inst: &Inst) -> bool {
    inst.decoded.code() == iced_x86::Code::Mov_r64_imm64
}

/// Whether the last two instructions may be macro-fused.
pub fn fuses(block: &Block) -> bool {
    let [.., first, last] = block.instructions.as_slice() else { return false };
    last.decoded.is_jcc_short_or_near() && may_fuse(first)
}

/// Whether it fuses with a conditional jump on some processor (Intel's optimization reference manual;
/// AMD's guides for Zen 1 to 5).
fn may_fuse(inst: &Inst) -> bool {
    use Mnemonic::{Add, And, Cmp, Dec, Inc, Or, Sub, Test, Xor};
    matches!(inst.decoded.mnemonic(), Cmp | Test | Add | Sub | And | Or | Xor | Inc | Dec)
}

/// The block with its instructions replaced by fillers of the same lengths. The final jump stays, and a
/// pair that may fuse still may: otherwise the skeleton could be slower than the block.
pub fn skeleton(block: &Block, filler: Filler) -> Option<Block> {
    let last = block.instructions.len() - 1;
    let flags = flags(block);
    let mut bytes = Vec::with_capacity(block.bytes.len());
    for (i, inst) in block.instructions.iter().enumerate() {
        match i {
            _ if i == last && block.final_branch().is_some() => bytes.extend(&inst.bytes),
            _ if has_wide_immediate(inst) => bytes.extend(&inst.bytes),
            _ if flags == Some(i) => bytes.extend(test(inst.bytes.len())),
            _ => bytes.extend(filler.bytes(inst.bytes.len())),
        }
    }
    Block::decode(&bytes).ok().filter(|s| s.instructions.len() == block.instructions.len())
}

/// The instruction that sets the final jump's flags in a skeleton: the one that may fuse with it, else
/// one that is not adjacent. The loop counter's flags must not reach it.
fn flags(block: &Block) -> Option<usize> {
    let last = block.instructions.len() - 1;
    if !block.instructions[last].decoded.is_jcc_short_or_near() {
        return None;
    }
    if fuses(block) {
        return Some(last - 1);
    }
    let could = |i: &usize| {
        let inst = &block.instructions[*i];
        inst.bytes.len() > 1 && !has_wide_immediate(inst)
    };
    (0..last.saturating_sub(1)).rev().find(could)
}

/// A `test` of 2 to 15 bytes on the stack pointer, which no loop counter uses.
fn test(length: usize) -> Vec<u8> {
    let form: &[u8] = match length {
        2 => &[0x85, 0xe4],
        3..=5 => &[0x48, 0x85, 0xe4],
        6 => &[0xf7, 0xc4, 0xff, 0, 0, 0],
        _ => &[0x48, 0xf7, 0xc4, 0xff, 0, 0, 0],
    };
    // A segment override has no effect here in 64-bit mode.
    let mut bytes = vec![0x3e; length.saturating_sub(form.len())];
    bytes.extend(form);
    bytes
}

/// An instruction that fills slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filler {
    /// Nops.
    Nop,
    /// Moves to one register from another, which no filler writes and is below 8.
    Move {
        /// The register that is written.
        to: u8,
        /// The register that is read.
        from: u8,
    },
}

/// Why nothing can fill slots.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoFiller {
    /// It is delivered at this rate, which is below the width; instructions a cycle.
    Slow { rate: f64, width: f64 },
    /// Nops share slots, and whether renaming carries out moves is not known.
    Unknown,
    /// Nops share slots, and the block uses all registers.
    NoRegister,
}

impl NoFiller {
    /// As text.
    pub fn why(self) -> String {
        match self {
            Self::Slow { rate, width } => format!(
                "what replaces instructions is delivered at {rate:.1} of {width:.1} a cycle, so that it waits for more \
                 than slots"
            ),
            Self::Unknown => {
                "nops share slots here, and whether moves take only a slot is not known".to_owned()
            }
            Self::NoRegister => {
                "nops share slots here, and the block leaves no register for moves".to_owned()
            }
        }
    }
}

impl Filler {
    /// The filler among the instructions of `block`, whose registers stay unchanged.
    ///
    /// # Errors
    /// There is none, and why.
    pub fn among(block: &Block, core: &Core) -> Result<Self, NoFiller> {
        Self::of(core, |number| !uses(block, number))
    }

    /// The filler that replaces the instructions of `block`. It may write a register of the block, which is not
    /// the loop counter.
    ///
    /// # Errors
    /// There is none, and why.
    pub fn instead_of(block: &Block, core: &Core) -> Result<Self, NoFiller> {
        match Self::of(core, |number| uses(block, number)) {
            // A block without registers leaves the highest for the counter.
            Err(NoFiller::NoRegister) => Self::of(core, |_| true),
            found => found,
        }
    }

    fn of(core: &Core, may_write: impl Fn(u8) -> bool) -> Result<Self, NoFiller> {
        let measured = core.answers().and_then(|answers| answers.fillers.zip(answers.width));
        if let Some((rate, width)) = measured.filter(|(rate, width)| *rate < FILLS * width) {
            return Err(NoFiller::Slow { rate, width });
        }
        if core.fuses_nops() != Some(true) {
            return Ok(Self::Nop);
        }
        if measured.is_none() && !core.facts().renames(Renamed::Mov) {
            return Err(NoFiller::Unknown);
        }
        let mut free = (0..16).filter(|number| *number != STACK_POINTER && may_write(*number));
        let to = free.next().ok_or(NoFiller::NoRegister)?;
        // Another that the block leaves free, if there is one: no instruction is waited for.
        let others = || LOW.filter(|number| ![STACK_POINTER, to].contains(number));
        let from = others().find(|number| may_write(*number)).or_else(|| others().next());
        from.map(|from| Self::Move { to, from }).ok_or(NoFiller::NoRegister)
    }

    /// An instruction of 1 to 15 bytes. One byte is a nop in any case, and so are two where the register
    /// needs a prefix.
    pub fn bytes(self, length: usize) -> Vec<u8> {
        // ds mov r32, r32: the segment has no effect here in 64-bit mode.
        let after = |prefixes: usize, form: &[u8]| [&vec![0x3e; prefixes][..], form].concat();
        match self {
            Self::Move { to: to @ 0..8, from } if length >= 2 => {
                after(length - 2, &[0x89, 0xc0 | from << 3 | to])
            }
            Self::Move { to, from } if length >= 3 => {
                after(length - 3, &[0x41, 0x89, 0xc0 | from << 3 | (to & 7)])
            }
            _ => nop(length),
        }
    }

    /// Its name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nop => "nop",
            Self::Move { .. } => "move",
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
    fn every_length_has_a_test_that_decodes_as_one() {
        for length in 2..=15 {
            let one = Block::decode(&test(length)).unwrap();
            assert_eq!(one.instructions.len(), 1, "{length}");
            assert_eq!(one.instructions[0].decoded.mnemonic(), Mnemonic::Test, "{length}");
            assert!(!one.instructions[0].touches_memory());
        }
    }

    #[test]
    fn a_skeleton_keeps_lengths_and_the_fused_pair_at_the_end() {
        // gzip's updcrc, which ends in cmp rdi,rcx; jb
        let updcrc = block("4883c701 89d0 48c1ea08 3247ff 0fb6c0 483314c50a110400 4839cf 72f8");
        let bones = skeleton(&updcrc, Filler::Nop).unwrap();
        let lengths = |b: &Block| b.instructions.iter().map(|i| i.bytes.len()).collect::<Vec<_>>();
        assert_eq!(lengths(&bones), lengths(&updcrc));
        let names: Vec<_> = bones.instructions.iter().map(|i| i.decoded.mnemonic()).collect();
        assert_eq!(names[..6], [Mnemonic::Nop; 6]);
        assert_eq!(names[6..], [Mnemonic::Test, Mnemonic::Jb]);
        // add rax,rbx; mov rcx,rdx; jb: the flags come from where nothing fuses
        let apart = skeleton(&block("4801d8 4889d1 7200"), Filler::Nop).unwrap();
        let names: Vec<_> = apart.instructions.iter().map(|i| i.decoded.mnemonic()).collect();
        assert_eq!(names, [Mnemonic::Test, Mnemonic::Nop, Mnemonic::Jb]);
        assert!(how(&updcrc, Filler::Nop).contains("`test`"), "{}", how(&updcrc, Filler::Nop));
    }

    #[test]
    fn a_wide_immediate_is_kept() {
        // mov rax, imm64; add rbx,[rax]
        let wide = block("48b80102030405060708 480318");
        let bones = skeleton(&wide, Filler::Nop).unwrap();
        assert_eq!(bones.instructions[0].bytes, wide.instructions[0].bytes);
        assert_eq!(bones.instructions[1].decoded.mnemonic(), Mnemonic::Nop);
        assert!(how(&wide, Filler::Nop).contains("64-bit"), "{}", how(&wide, Filler::Nop));
    }

    #[test]
    fn every_length_is_one_instruction() {
        for (filler, least, mnemonic) in [
            (Filler::Nop, 1, Mnemonic::Nop),
            (Filler::Move { to: 1, from: 3 }, 2, Mnemonic::Mov),
            (Filler::Move { to: 11, from: 3 }, 3, Mnemonic::Mov),
        ] {
            for length in 1..=15 {
                let one = block(&hex(&filler.bytes(length)));
                assert_eq!((one.instructions.len(), one.bytes.len()), (1, length), "{filler:?}");
                let expected = if length < least { Mnemonic::Nop } else { mnemonic };
                assert_eq!(one.instructions[0].decoded.mnemonic(), expected, "{length}");
            }
        }
        let moved = block(&hex(&Filler::Move { to: 11, from: 3 }.bytes(5)));
        assert_eq!(moved.instructions[0].text, "mov r11d,ebx");
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
        let moves = |to, from| Ok(Filler::Move { to, from });
        assert_eq!(Filler::among(&add, &of("zen3")), Ok(Filler::Nop));
        assert_eq!(Filler::among(&add, &of("zen4")), moves(1, 2));
        assert_eq!(Filler::instead_of(&add, &of("zen4")), moves(0, 3));
        assert_eq!(Filler::instead_of(&block("90"), &of("zen4")), moves(0, 1));
        // mov r8,r9: the one written is the block's.
        assert_eq!(Filler::instead_of(&block("4d89c8"), &of("zen4")), moves(8, 0));
        // A self-test's answer overrides the table.
        let measured = of("zen4");
        let answers = tma::self_test::Answers { nops_fused: Some(false), ..Default::default() };
        measured.self_test.answers_or(|| answers);
        assert_eq!(Filler::among(&add, &measured), Ok(Filler::Nop));
    }

    /// Natively on a Zen 4 of 6 a cycle, moves from the stack pointer, which take an execution unit: 4.
    #[test]
    fn fillers_slower_than_the_width_fill_nothing() {
        let add = block("4801d8");
        let of = |rate: f64, fused: bool| {
            let core = Core::modelled(&events::library(), "zen4").unwrap();
            let (fillers, width, nops_fused) = (Some(rate), Some(6.0), Some(fused));
            let answers =
                tma::self_test::Answers { fillers, width, nops_fused, ..Default::default() };
            core.self_test.answers_or(|| answers);
            [Filler::among(&add, &core), Filler::instead_of(&add, &core)]
        };
        for fused in [true, false] {
            assert_eq!(of(4.0, fused), [Err(NoFiller::Slow { rate: 4.0, width: 6.0 }); 2]);
            assert!(of(5.9, fused).iter().all(Result::is_ok));
        }
    }
}
