//! Assists: single instructions that take tens or hundreds of cycles because of their operands or state. Each
//! cause is confirmed by a measurement without it, so that it is reported only on cores that have it.

use super::cycles::Cycles;
use super::evidence::bound;
use super::explainer::{Explainer, Subject};
use crate::measurement::{Assumed, Cause, Class, Verdict};
use crate::{Bound, Outcome, Values};
use iced_x86::{EncodingKind, InstructionInfoFactory, Mnemonic, Register};
use isa::code::{Block, Inst};
use tma::Result;

/// Shorter blocks have no assist: the cheapest known, of subnormal operands, takes more.
const LEAST: f64 = 8.0;
/// Without its cause a block takes at most this share of the time.
const WITHOUT: f64 = 0.5;
/// Registers of the x87 stack.
const X87_REGISTERS: i32 = 8;
/// `vzeroupper`, `fld1`, `fstp st(0)`.
const VZEROUPPER: [u8; 3] = [0xc5, 0xf8, 0x77];
const FLD1: [u8; 2] = [0xd9, 0xe8];
const FSTP: [u8; 2] = [0xdd, 0xd8];

/// The block without the cause of its assists.
pub(super) struct Assist {
    cause: Cause,
    time: Cycles,
    without: Cycles,
}

impl Assist {
    /// The assist, if the block is that much faster without it.
    fn shown(cause: Cause, time: Cycles, without: Cycles) -> Option<Self> {
        (without.high < WITHOUT * time.low).then_some(Self { cause, time, without })
    }

    /// The verdict that it makes.
    pub(super) fn verdict(&self) -> Verdict {
        let (without, time) = (self.without.best, self.time.best);
        let why = format!("{without:.2} of {time:.2} cycles remain with {}", self.cause.avoided());
        Verdict { class: Class::Assist(self.cause), why }
    }

    /// The time that it takes, as a bound.
    pub(super) fn bound(&self) -> Bound {
        let (time, without) = (self.time, self.without);
        let cycles = Cycles {
            best: time.best - without.best,
            low: time.low - without.high,
            high: time.high - without.low,
        };
        let how = format!("measured: what is saved with {}", self.cause.avoided());
        bound(self.cause.name(), cycles, how)
    }
}

impl Explainer {
    /// The assist that takes most of the block's `time`, if one does.
    pub(super) fn assist(&mut self, subject: &Subject<'_>, time: Cycles) -> Result<Option<Assist>> {
        let Some(values) = subject.measurement.values.clone() else { return Ok(None) };
        if time.low < LEAST {
            return Ok(None);
        }
        let block = subject.block;
        let is_violated = |name: Assumed| {
            let own = subject.measurement.assumptions.iter();
            own.filter(|a| a.name == name).any(|a| a.outcome == Outcome::Violated)
        };
        let mut found = None;
        // First, as it removes no other cause: `vzeroupper` also zeroes elements that may be subnormal.
        if self.gradual_underflow && block.uses(Register::is_vector_register) {
            self.bench.set_gradual_underflow(false);
            let flushed = self.without(Cause::Subnormals, &block.bytes, &values, time);
            self.bench.set_gradual_underflow(true);
            found = flushed?;
        }
        if let Some(bytes) = with_vzeroupper(block).filter(|_| found.is_none()) {
            found = self.without(Cause::Transition, &bytes, &values, time)?;
        }
        if let Some(bytes) = with_balanced_stack(block).filter(|_| found.is_none()) {
            found = self.without(Cause::X87Stack, &bytes, &values, time)?;
        }
        if found.is_none() && is_violated(Assumed::Subnormals) {
            let normal = Values { memory: normal(block), ..values.clone() };
            found = self.without(Cause::Subnormals, &block.bytes, &normal, time)?;
        }
        let is_masked = subject.measurement.assumptions.iter().any(|a| a.name == Assumed::Masks);
        let lacks_pages = is_masked && is_violated(Assumed::MappedPages);
        if found.is_none() && (is_violated(Assumed::Masks) || lacks_pages) {
            let selected = Values { vector: u64::MAX, ..values };
            found = self.without(Cause::SuppressedFaults, &block.bytes, &selected, time)?;
        }
        Ok(found)
    }

    fn without(
        &mut self,
        cause: Cause,
        bytes: &[u8],
        values: &Values,
        time: Cycles,
    ) -> Result<Option<Assist>> {
        let measured = self.trusted(bytes, values)?.ok();
        Ok(measured.and_then(|t| Assist::shown(cause, time, Cycles::of(&t, 1.0))))
    }
}

/// The block with `vzeroupper` before each SSE instruction that finds an upper half which its own AVX instructions
/// wrote; `None` if there is none.
fn with_vzeroupper(block: &Block) -> Option<Vec<u8>> {
    let encoding = |inst: &Inst| inst.decoded.op_code().encoding();
    let is_sse = |inst: &Inst| {
        let uses = |used: &iced_x86::UsedRegister| used.register().is_vector_register();
        encoding(inst) == EncodingKind::Legacy && inst.registers.iter().any(uses)
    };
    let writes_upper = |inst: &Inst| {
        let register = inst.decoded.op0_register();
        let access = InstructionInfoFactory::new().info(&inst.decoded).op0_access();
        (register.is_ymm() || register.is_zmm()) && Inst::writes(access)
    };
    let is_dirty = |inst: &Inst, before: bool| match inst.decoded.mnemonic() {
        Mnemonic::Vzeroupper | Mnemonic::Vzeroall => false,
        _ => before || writes_upper(inst),
    };
    // Left by the previous iteration.
    let mut dirty = block.instructions.iter().fold(false, |dirty, inst| is_dirty(inst, dirty));
    let (mut bytes, mut added) = (Vec::new(), false);
    for inst in &block.instructions {
        if dirty && is_sse(inst) {
            bytes.extend(VZEROUPPER);
            (dirty, added) = (false, true);
        }
        dirty = is_dirty(inst, dirty);
        bytes.extend(&inst.bytes);
    }
    added.then_some(bytes)
}

/// The block after loads of all x87 registers that it reads without having loaded them, with the values left on
/// the stack popped; `None` if it needs neither, or cannot be balanced.
fn with_balanced_stack(block: &Block) -> Option<Vec<u8>> {
    let (mut depth, mut needed, mut highest) = (0, 0, 0);
    for inst in &block.instructions {
        let info = inst.decoded.fpu_stack_increment_info();
        if info.conditional() || (info.writes_top() && info.increment() == 0) {
            return None;
        }
        for used in inst.registers.iter().filter(|used| used.register().is_st()) {
            if Inst::reads(used.access()) {
                needed = needed.max(used.register().number() as i32 + 1 - depth);
            }
        }
        depth -= info.increment();
        highest = highest.max(depth);
    }
    let left = needed + depth;
    if (needed == 0 && left == 0) || left < 0 || needed + highest > X87_REGISTERS {
        return None;
    }
    let before = FLD1.repeat(needed as usize);
    Some([before, block.bytes.clone(), FSTP.repeat(left as usize)].concat())
}

/// A word of memory that reads as 1.0 in the precision that the block loads.
fn normal(block: &Block) -> u64 {
    let is_single = |inst: &Inst| inst.decoded.memory_size().element_size() == 4;
    match block.instructions.iter().filter(|inst| inst.touches_memory()).any(is_single) {
        true => u64::from(1f32.to_bits()) << 32 | u64::from(1f32.to_bits()),
        false => 1f64.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(hex: &str) -> Block {
        Block::decode(&isa::code::parse_hex(hex).unwrap()).unwrap()
    }

    #[test]
    fn vzeroupper_comes_before_sse_code_that_finds_dirty_halves() {
        // vaddps ymm0,ymm0,ymm1; addps xmm2,xmm3
        let mixed = with_vzeroupper(&block("c5fc58c1 0f58d3")).unwrap();
        assert_eq!(mixed, [0xc5, 0xfc, 0x58, 0xc1, 0xc5, 0xf8, 0x77, 0x0f, 0x58, 0xd3]);
        // The other order: the iteration before has written them.
        assert!(with_vzeroupper(&block("0f58d3 c5fc58c1")).unwrap().starts_with(&VZEROUPPER));
        // vaddps xmm0,xmm0,xmm1; addps xmm2,xmm3, and with vzeroupper.
        assert_eq!(with_vzeroupper(&block("c5f858c1 0f58d3")), None);
        assert_eq!(with_vzeroupper(&block("c5fc58c1 c5f877 0f58d3")), None);
        // vptest ymm0,ymm1; addps xmm2,xmm3: the former only reads.
        assert_eq!(with_vzeroupper(&block("c4e27d17c1 0f58d3")), None);
    }

    #[test]
    fn an_x87_stack_is_filled_and_emptied() {
        assert_eq!(with_balanced_stack(&block("d9e8")).unwrap(), [FLD1, FSTP].concat());
        // fstp st(0); fadd st(0),st(1)
        assert_eq!(with_balanced_stack(&block("ddd8")).unwrap(), [FLD1, FSTP].concat());
        let add = with_balanced_stack(&block("d8c1")).unwrap();
        assert_eq!(add, [&FLD1[..], &FLD1, &[0xd8, 0xc1], &FSTP, &FSTP].concat());
        // fld1; fstp st(0), and code without x87.
        assert_eq!(with_balanced_stack(&block("d9e8 ddd8")), None);
        assert_eq!(with_balanced_stack(&block("4801d8")), None);
    }

    // The field's figure for a core with the penalty: 393 cycles, and 3 with vzeroupper; none on Zen 4 (2.99 and 3.1).
    #[test]
    fn a_cause_is_named_only_where_the_block_is_faster_without_it() {
        let of = |time, without| {
            Assist::shown(Cause::Transition, Cycles::exact(time), Cycles::exact(without))
        };
        let found = of(393.0, 3.0).unwrap();
        assert_eq!(found.verdict().class.name(), "sse-avx-transition");
        assert!(found.verdict().why.contains("3.00 of 393.00 cycles remain with vzeroupper"));
        assert_eq!(found.bound().cycles, 390.0);
        assert!(of(12.0, 11.0).is_none());
    }
}
