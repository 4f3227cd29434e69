//! Instructions to be tried: those of the catalog of forms, of random bytes, and of real code.

use crate::support::random::Random;
use bench::microbench::{Address, Catalog};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};
use isa::code::{Block, parse_hex};
use std::collections::HashMap;

/// Most instructions that differ in nothing but registers and immediates.
const OF_A_KIND: usize = 1;

/// Distinct instructions.
#[derive(Default)]
pub struct Forms {
    seen: HashMap<String, usize>,
    pub all: Vec<Vec<u8>>,
}

impl Forms {
    /// Adds the instruction at the beginning of `bytes`, if it is one to run, of a new kind.
    fn add(&mut self, bytes: &[u8]) {
        let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
        let bytes = &bytes[..instruction.len()];
        let runs = !instruction.is_invalid()
            && matches!(instruction.flow_control(), FlowControl::Next)
            && instruction.segment_prefix() != Register::FS
            && Block::decode(bytes).is_ok_and(|block| block.refusal().is_none());
        if !runs {
            return;
        }
        let count = self.seen.entry(kind(&instruction)).or_default();
        *count += 1;
        if *count <= OF_A_KIND {
            self.all.push(bytes.to_vec());
        }
    }

    /// All forms of the catalog, of different registers and of one.
    pub fn catalog(&mut self) {
        for (_, form) in Catalog::all().forms() {
            let address = Address { base: Register::R14, index: Register::R13, displacement: 8 };
            let alike = |number: u32| form.instruction(|_, class| class.register(number), address);
            for made in [form.sample(), alike(2), alike(9)].into_iter().flatten() {
                if let Ok(bytes) = form.encode(&made) {
                    self.add(&bytes);
                }
            }
        }
    }

    /// Instructions of random bytes after the prefixes that lead to the maps of opcodes.
    pub fn random(&mut self, count: usize) {
        let mut random = Random(7);
        for _ in 0..count {
            let mut bytes = Vec::new();
            let choice = random.next();
            let some = |bytes: &mut Vec<u8>, list: &[u8], at: u64| {
                if let Some(byte) = list.get(at as usize) {
                    bytes.push(*byte);
                }
            };
            some(&mut bytes, &[0x67, 0xf0, 0x65], choice & 15);
            some(&mut bytes, &[0x66, 0xf2, 0xf3], choice >> 4 & 7);
            match choice >> 8 & 3 {
                0 => {}
                1 => bytes.push(0x40 | (choice >> 10 & 15) as u8),
                _ => bytes.push(0x48 | (choice >> 10 & 7) as u8),
            }
            let maps: [&[u8]; 8] =
                [&[], &[], &[0x0f], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a], &[0xc4], &[0x62]];
            let map = maps[(choice >> 16 & 7) as usize];
            if map.first().is_some_and(|first| *first >= 0x60) {
                bytes.clear();
            }
            bytes.extend(map);
            let start = bytes.len();
            bytes.extend(random.next().to_le_bytes());
            bytes.extend(random.next().to_le_bytes());
            bytes.truncate(15);
            // Bits that are fixed after the prefixes of VEX and EVEX.
            let of = |list: &[u8]| list[(choice >> 24) as usize % list.len()];
            match map {
                [0xc4] => bytes[start] = bytes[start] & 0xe0 | of(&[1, 2, 3]),
                [0x62] => {
                    bytes[start] = bytes[start] & 0xf0 | of(&[1, 2, 3, 5, 6]);
                    bytes[start + 1] |= 4;
                }
                _ => {}
            }
            self.add(&bytes);
        }
    }

    /// Those of blocks in hexadecimal.
    pub fn blocks<'a>(&mut self, all: impl Iterator<Item = &'a str>) {
        for bytes in all.filter_map(|hex| parse_hex(hex).ok()) {
            let mut decoder = Decoder::new(64, &bytes, DecoderOptions::NONE);
            while decoder.can_decode() {
                let at = decoder.position();
                let length = decoder.decode().len();
                self.add(&bytes[at..at + length]);
            }
        }
    }
}

/// What two instructions that differ in registers alone have in common.
fn kind(instruction: &Instruction) -> String {
    let registers: Vec<Register> = (0..instruction.op_count())
        .filter(|i| instruction.op_kind(*i) == OpKind::Register)
        .map(|i| instruction.op_register(i))
        .collect();
    let high = registers
        .iter()
        .any(|r| matches!(r, Register::AH | Register::BH | Register::CH | Register::DH));
    let alike = registers.windows(2).any(|pair| pair[0].full_register() == pair[1].full_register());
    let based = instruction.memory_base() != Register::None;
    format!(
        "{:?} {high} {alike} {} {} {} {} {based} {} {} {}",
        instruction.code(),
        instruction.op_mask() != Register::None,
        instruction.zeroing_masking(),
        (0..instruction.op_count()).any(|i| instruction.op_kind(i) == OpKind::Memory),
        instruction.is_broadcast(),
        instruction.memory_base().size() == 4 || instruction.memory_index().size() == 4,
        instruction.has_lock_prefix(),
        instruction.memory_index() != Register::None,
    )
}
