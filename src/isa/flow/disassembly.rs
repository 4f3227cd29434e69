//! Bytes of a function → instructions: recursive traversal from the entry and other roots, then a
//! linear sweep over the remaining bytes, so that data between code does not misalign the decoding of
//! branch targets.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind};

/// The instructions of a function and the bytes that do not decode.
pub(super) struct Disassembly {
    /// In order of address, without overlap.
    pub instructions: Vec<Instruction>,
    /// For each byte, whether it is reachable from the entry or a root.
    reached: Vec<bool>,
    start: u64,
    /// Ranges that do not decode: start and end (exclusive).
    pub undecoded: Vec<(u64, u64)>,
}

impl Disassembly {
    /// Decodes `code` at `start`. `roots` are known instruction addresses, the most certain first. The
    /// code must not wrap around the end of the address space.
    pub fn new(code: &[u8], start: u64, roots: impl IntoIterator<Item = u64>) -> Self {
        let mut traversal = Traversal {
            decoder: Decoder::with_ip(64, code, start, DecoderOptions::NONE),
            start,
            covered: vec![false; code.len()],
            instructions: Vec::with_capacity(code.len() / 4),
            pending: Vec::new(),
        };
        traversal.follow(start);
        for root in roots {
            traversal.follow(root);
        }
        let reached = traversal.covered.clone();
        traversal.sweep();
        let undecoded = traversal.undecoded();
        let mut instructions = traversal.instructions;
        instructions.sort_unstable_by_key(Instruction::ip);
        Self { instructions, reached, start, undecoded }
    }

    /// Whether `address` belongs to an instruction that is reachable from the entry or a root.
    pub fn is_certain(&self, address: u64) -> bool {
        let offset = address.checked_sub(self.start).and_then(|o| usize::try_from(o).ok());
        offset.and_then(|offset| self.reached.get(offset)) == Some(&true)
    }

    /// Index of the instruction at `address`, or of one that begins a byte earlier with a LOCK prefix:
    /// single-threaded paths of the C library jump over the prefix.
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

/// Whether control may continue at the next instruction.
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

struct Traversal<'a> {
    decoder: Decoder<'a>,
    start: u64,
    /// Which bytes belong to an instruction.
    covered: Vec<bool>,
    instructions: Vec<Instruction>,
    /// Offsets still to be visited.
    pending: Vec<usize>,
}

impl Traversal<'_> {
    fn offset(&self, address: u64) -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        (offset < self.covered.len()).then_some(offset)
    }

    /// Decodes all instructions reachable from `address` that are not yet decoded.
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

    /// Decodes the bytes that the traversal did not reach.
    fn sweep(&mut self) {
        let mut offset = 0;
        while offset < self.covered.len() {
            if !self.covered[offset] {
                self.follow(self.start + offset as u64);
            }
            // Undecodable bytes extend to the next known instruction.
            let skipped = self.covered[offset..].iter().take_while(|&&c| !c).count();
            offset += skipped.max(1);
        }
    }

    /// The bytes that belong to no instruction.
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

    /// Decodes one instruction; `None` if it is invalid or overlaps another.
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
