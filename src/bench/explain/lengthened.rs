//! Whether code waits for its front end: measured again with prefixes that have no effect before its
//! short instructions. On some processors the front end delivers fewer of those per cycle (Zen 5:
//! natively 5 to 7 of 2 to 4 bytes, 8 of 5 bytes and more): code that the front end bounds is then
//! faster, code that another unit bounds is not.

use super::cycles::{Cycles, Reaches};
use super::evidence::Independent;
use super::explainer::{Explainer, Subject};
use super::findings::Findings;
use super::model::Lengthened;
use crate::Values;
use crate::filler::Filler;
use crate::harness::skeleton::skeleton;
use isa::code::Block;
use tma::Result;

/// `ds`, without effect in 64-bit mode.
const PREFIX: u8 = 0x3e;
/// Bytes from which on instructions are not short.
const LONG: usize = 5;
/// More prefixes decode slowly on some cores.
const PREFIXES: usize = 3;

impl Explainer {
    /// Measures the block with longer instructions where front end and slots say that the front end is the
    /// bound. A loop is not measured: the place of its jump matters as well.
    pub(super) fn measure_lengthened(
        &mut self,
        subject: &Subject<'_>,
        findings: &Findings,
    ) -> Result<Option<Lengthened>> {
        let evidence = &findings.evidence;
        let reached = |bound: Option<Cycles>| bound.map_or(Reaches::No, |b| evidence.reached(b));
        let is_candidate =
            reached(evidence.front_end) == Reaches::Yes && reached(evidence.slots) == Reaches::No;
        let Some(values) = subject.measurement.values.as_ref().filter(|_| is_candidate) else {
            return Ok(None);
        };
        let Some(block) = lengthened(subject.block).filter(|_| subject.looped.is_none()) else {
            return Ok(None);
        };
        let Ok(time) = self.trusted(&block.bytes, values)? else { return Ok(None) };
        let front_end = self.front_end_of(&block, values)?;
        Ok(front_end.map(|front_end| Lengthened { time: Cycles::of(&time, 1.0), front_end }))
    }

    /// Time of the independent instructions with longer encodings; `None` if that is impossible or their time does
    /// not reach the block's.
    pub(super) fn measure_lengthened_independent(
        &mut self,
        independent: &Independent,
        findings: &Findings,
    ) -> Result<Option<Cycles>> {
        let evidence = &findings.evidence;
        if evidence.reached(independent.cycles) == Reaches::No {
            return Ok(None);
        }
        let own = Block::decode(&independent.benchmark.bytes)?;
        let Some(longer) = lengthened(&own) else { return Ok(None) };
        let time = self.trusted(&longer.bytes, &independent.benchmark.values)?.ok();
        Ok(time.map(|time| Cycles::of(&time, independent.benchmark.sets as f64)))
    }

    /// The front end of the independent instructions with the longest encodings, in isolation.
    pub(super) fn front_end_of_independent(
        &mut self,
        independent: &Independent,
    ) -> Result<Option<Cycles>> {
        let own = Block::decode(&independent.benchmark.bytes)?;
        let code = lengthened(&own).unwrap_or(own);
        let all = self.front_end_of(&code, &independent.benchmark.values)?;
        Ok(all.map(|all| all.per(independent.benchmark.sets as f64)))
    }

    /// The front end of straight code in isolation.
    fn front_end_of(&mut self, code: &Block, values: &Values) -> Result<Option<Cycles>> {
        let Some(bare) = skeleton(code, Filler::instead_of(code, &self.core)) else {
            return Ok(None);
        };
        let time = self.trusted(&bare.bytes, values)?.ok();
        Ok(time.map(|time| Cycles::of(&time, 1.0)))
    }
}

/// The block with longer instructions; `None` if all are long.
fn lengthened(block: &Block) -> Option<Block> {
    let mut bytes = Vec::with_capacity(LONG * block.instructions.len());
    for inst in &block.instructions {
        let missing = LONG.saturating_sub(inst.bytes.len()).min(PREFIXES);
        bytes.extend(std::iter::repeat_n(PREFIX, missing));
        bytes.extend(&inst.bytes);
    }
    let longer = Block::decode(&bytes).ok()?;
    let is_same = longer.instructions.len() == block.instructions.len();
    (is_same && longer.bytes.len() > block.bytes.len()).then_some(longer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(hex: &str) -> Block {
        Block::decode(&isa::code::parse_hex(hex).unwrap()).unwrap()
    }

    #[test]
    fn short_instructions_get_prefixes_and_do_the_same() {
        // mov rax,[rsi]; xor eax,eax; vpaddd xmm1,xmm2,xmm3; mov eax,1
        let own = block("488b06 31c0 c5e9fecb b801000000");
        let longer = lengthened(&own).unwrap();
        let lengths: Vec<_> = longer.instructions.iter().map(|i| i.bytes.len()).collect();
        assert_eq!(lengths, [5, 5, 5, 5]);
        for (a, b) in own.instructions.iter().zip(&longer.instructions) {
            assert_eq!(a.decoded.code(), b.decoded.code());
        }
        assert!(lengthened(&block("b801000000")).is_none());
    }
}
