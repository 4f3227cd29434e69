//! Bytes of a function → instructions: first whatever is reached from its entry and from the other
//! roots, then, in order, what no branch leads to. So data between the code cannot put the decoder
//! out of step with code that a branch leads to.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind};

/// The instructions of a function and the bytes that are none.
pub(super) struct Sweep {
    /// In order of address, without overlap.
    pub instructions: Vec<Instruction>,
    /// Whether the entry or a root leads to each of the bytes.
    reached: Vec<bool>,
    start: u64,
    /// First address of what could not be decoded, and the one behind it.
    pub undecoded: Vec<(u64, u64)>,
}

impl Sweep {
    /// Decodes `code`, which lies at `start`; `roots` are addresses known to be instructions, the
    /// surest first. The end of `code` is no more than the end of the address space.
    pub fn new(code: &[u8], start: u64, roots: impl IntoIterator<Item = u64>) -> Self {
        let mut work = Work {
            decoder: Decoder::with_ip(64, code, start, DecoderOptions::NONE),
            start,
            covered: vec![false; code.len()],
            instructions: Vec::with_capacity(code.len() / 4),
            pending: Vec::new(),
        };
        work.follow(start);
        for root in roots {
            work.follow(root);
        }
        let reached = work.covered.clone();
        work.fill();
        let undecoded = work.undecoded();
        let mut instructions = work.instructions;
        instructions.sort_unstable_by_key(Instruction::ip);
        Self { instructions, reached, start, undecoded }
    }

    /// Whether `address` belongs to an instruction that the entry or a root leads to.
    pub fn is_certain(&self, address: u64) -> bool {
        let offset = address.checked_sub(self.start).and_then(|o| usize::try_from(o).ok());
        offset.and_then(|offset| self.reached.get(offset)) == Some(&true)
    }

    /// Index of the instruction at `address`. Also of one that begins a byte earlier with a LOCK
    /// prefix, which a branch to `address` skips, as the C library's single-threaded ways do.
    pub fn index_of(&self, address: u64) -> Option<usize> {
        match self.instructions.binary_search_by_key(&address, Instruction::ip) {
            Ok(index) => Some(index),
            Err(after) => {
                let index = after.checked_sub(1)?;
                let before = &self.instructions[index];
                let skips = before.has_lock_prefix() && before.ip() + 1 == address;
                skips.then_some(index)
            }
        }
    }
}

/// The target of a direct jump, conditional or not, or of `xbegin`.
pub(super) fn direct_target(instruction: &Instruction) -> Option<u64> {
    let jumps = match instruction.flow_control() {
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch => true,
        FlowControl::XbeginXabortXend => instruction.op0_kind() == OpKind::NearBranch64,
        _ => false,
    };
    jumps.then(|| instruction.near_branch_target())
}

/// Whether control may go on to the next instruction.
pub(super) fn falls_through(instruction: &Instruction) -> bool {
    instruction.code() != Code::Hlt
        && !matches!(
            instruction.flow_control(),
            FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch
                | FlowControl::Return
                | FlowControl::Exception
        )
}

struct Work<'a> {
    decoder: Decoder<'a>,
    start: u64,
    /// Which bytes belong to an instruction.
    covered: Vec<bool>,
    instructions: Vec<Instruction>,
    /// Offsets still to be followed.
    pending: Vec<usize>,
}

impl Work<'_> {
    fn offset(&self, address: u64) -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        (offset < self.covered.len()).then_some(offset)
    }

    /// Decodes whatever is reached from `address` and is not decoded yet.
    fn follow(&mut self, address: u64) {
        self.pending.extend(self.offset(address));
        while let Some(offset) = self.pending.pop() {
            let mut at = Some(offset);
            while let Some(instruction) = at.and_then(|at| self.decode(at)) {
                let target = direct_target(&instruction).and_then(|t| self.offset(t));
                self.pending.extend(target.filter(|&t| !self.covered[t]));
                at = falls_through(&instruction)
                    .then(|| self.offset(instruction.next_ip()))
                    .flatten();
            }
        }
    }

    /// Decodes what nothing leads to.
    fn fill(&mut self) {
        let mut offset = 0;
        while offset < self.covered.len() {
            if !self.covered[offset] {
                self.follow(self.start + offset as u64);
            }
            // What is no instruction lasts up to the next that is known.
            let skipped = self.covered[offset..].iter().take_while(|&&c| !c).count();
            offset += skipped.max(1);
        }
    }

    /// What belongs to no instruction.
    fn undecoded(&self) -> Vec<(u64, u64)> {
        let mut undecoded = Vec::new();
        let mut offset = 0;
        for part in self.covered.chunk_by(|a, b| a == b) {
            let from = self.start + offset as u64;
            offset += part.len();
            if !part[0] {
                undecoded.push((from, self.start + offset as u64));
            }
        }
        undecoded
    }

    /// Decodes one instruction; `None` if there is none or a part of it belongs to another.
    fn decode(&mut self, offset: usize) -> Option<Instruction> {
        if self.covered[offset] {
            return None;
        }
        self.decoder.set_position(offset).ok()?;
        self.decoder.set_ip(self.start + offset as u64);
        let instruction = self.decoder.decode();
        let bytes = self.covered.get_mut(offset..offset + instruction.len())?;
        if instruction.is_invalid() || bytes.contains(&true) {
            return None;
        }
        bytes.fill(true);
        self.instructions.push(instruction);
        Some(instruction)
    }
}
