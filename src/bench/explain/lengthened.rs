//! The block with prefixes that have no effect before its short instructions. On some processors the
//! front end delivers fewer of those per cycle (Zen 5: natively 5 to 7 of 2 to 4 bytes, 8 of 5 bytes and
//! more): a block that the front end bounds is then faster, one that another unit bounds is not.

use super::evidence::known;
use super::explainer::{Explainer, Subject};
use super::findings::Findings;
use super::model::{Cycles, Lengthened, Reaches};
use crate::Status;
use isa::code::Block;
use tma::Result;

/// `ds`, without effect in 64-bit mode.
const PREFIX: u8 = 0x3e;
/// Bytes from which on instructions are not short.
const LONG: usize = 5;
/// More prefixes decode slowly on some cores.
const PREFIXES: usize = 3;
/// How often it is measured until it is `ok`.
const TRIES: usize = 3;

impl Explainer {
    /// Measures the variant where front end and slots say that the front end is the bound. A loop is not
    /// measured: the place of its jump matters as well.
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
        for _ in 0..TRIES {
            if self.progress.is_cancelled() {
                break;
            }
            let measurement = self.bench.block(&block.bytes, values)?;
            let front_end = known(&measurement, super::bound_names::FRONT_END);
            if let (Status::Ok, Some(front_end)) = (measurement.status, front_end) {
                let time = Cycles::of_headline(&measurement);
                return Ok(Some(Lengthened { time, front_end }));
            }
        }
        Ok(None)
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
