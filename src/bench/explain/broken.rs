//! Measuring a block with its chains broken.

use super::apart::{Apart, apart};
use super::cut::cuts;
use super::evidence::search;
use super::explainer::{Explainer, Subject};
use super::found::Found;
use super::model::{Cut, Cycles, Evidence};
use super::variants::preceded;
use crate::Values;
use isa::code::Block;
use isa::deps::{Analysis, Code};
use isa::effects::{ArchReg, Role};
use tma::Result;

/// Times that the block is there behind one cut, at most.
const TIMES: usize = 8;
/// Instructions that wait at once, about: the scheduler of Golden Cove's integer and vector ports has 97
/// entries, those of Zen 3 96 for integers (chipsandcheese.com, 2021 and 2022), and some are taken.
const WAITING: f64 = 80.0;
/// A cut is made cheaper only where the block with it can come below this share of its time: less
/// would show nothing either.
const CLEAR: f64 = 0.85;

/// The cuts of a block, and how many instructions they are.
struct Cuts {
    bytes: Vec<u8>,
    instructions: usize,
}

impl Explainer {
    /// Measures the block with its chains broken: through memory, through registers, and both.
    pub(super) fn broken(&mut self, subject: &Subject<'_>, found: &mut Found) -> Result<()> {
        let Some(values) = subject.measurement.values.clone() else { return Ok(()) };
        let cuts = cuts(&found.analysis, &values, subject.block, &[]).and_then(Cuts::of);
        let effects = &found.code.effects;
        let kept = apart(subject.block, effects, &values, &[]);
        let before = cuts.as_ref().map(|cuts| &cuts.bytes);
        let both = before.and_then(|c| apart(subject.block, effects, &values, c).ok());
        if let Ok(apart) = kept {
            found.evidence.apart = self.variant(&apart, &values, "memory apart", found)?;
        }
        if let Some(cuts) = self.apart_still(subject, &values, cuts, found) {
            self.cut(subject, &values, &cuts, found)?;
        }
        if let Some(both) = both {
            let name = "memory apart and registers cut";
            found.evidence.loose = self.variant(&both, &values, name, found)?;
        }
        Ok(())
    }

    /// The cuts, without those of addresses where a load would find what it does not in the block: a
    /// counter that is cut has all iterations meet at one place.
    fn apart_still(
        &mut self,
        subject: &Subject<'_>,
        values: &Values,
        cuts: Option<Cuts>,
        found: &Found,
    ) -> Option<Cuts> {
        let cuts = cuts?;
        let variant = preceded(&cuts.bytes, subject.block)?;
        let own = &found.analysis.memory.dependencies;
        let known = |writer: usize, reader: usize| {
            own.iter().any(|c| c.writer == writer && c.reader == reader)
        };
        let behind = |i: usize| i.checked_sub(cuts.instructions);
        let all_known = self
            .analysed(&variant, subject)?
            .memory
            .dependencies
            .iter()
            .all(|c| behind(c.writer).zip(behind(c.reader)).is_some_and(|(w, r)| known(w, r)));
        if all_known {
            return Some(cuts);
        }
        let reads = found.code.effects.iter().flat_map(|effects| &effects.reads);
        let addresses = reads.filter(|read| matches!(read.role, Role::Address(_)));
        let keep: Vec<ArchReg> = addresses.map(|read| read.reg).collect();
        self::cuts(&found.analysis, values, subject.block, &keep).and_then(Cuts::of)
    }

    /// Dependencies of a variant.
    fn analysed(&mut self, variant: &Block, subject: &Subject<'_>) -> Option<Analysis> {
        let code = Code::of_bytes(&variant.bytes, self.core.facts()).ok()?;
        Some(self.analyser.analyse(&code, &search(subject.measurement, self.window())))
    }

    /// Cuts the chains in each iteration and, where the cuts take as long as they gain, in each few.
    fn cut(
        &mut self,
        subject: &Subject<'_>,
        values: &Values,
        cuts: &Cuts,
        found: &mut Found,
    ) -> Result<()> {
        found.evidence.cut = self.cut_each(1, subject, values, cuts, found)?;
        let Some(first) = found.evidence.cut else { return Ok(()) };
        if found.evidence.tells(&first) {
            return Ok(());
        }
        let instructions = subject.block.instructions.len();
        if let Some(times) = times(&found.evidence, &first, instructions)
            && let Some(second) = self.cut_each(times, subject, values, cuts, found)?
        {
            found.evidence.cut = Some(second);
        }
        Ok(())
    }

    /// The block so many times over behind its cuts.
    fn cut_each(
        &mut self,
        times: usize,
        subject: &Subject<'_>,
        values: &Values,
        cuts: &Cuts,
        found: &mut Found,
    ) -> Result<Option<Cut>> {
        let Some(variant) = repeated(subject.block, times).and_then(|b| preceded(&cuts.bytes, &b))
        else {
            return Ok(None);
        };
        let chains = self.analysed(&variant, subject).map(|a| a.recurrences).unwrap_or_default();
        let rest = chains.iter().map(|chain| chain.low).fold(0.0, f64::max) / times as f64;
        let variant = Apart { block: variant, copies: times };
        let left = self.variant(&variant, values, "registers cut", found)?;
        let instructions = cuts.instructions as f64 / times as f64;
        let cost = self.core.width().map_or(0.0, |width| instructions / f64::from(width));
        Ok(left.map(|left| Cut { left, instructions, cost, rest }))
    }

    /// Cycles for the block once, in a variant that holds it several times.
    fn variant(
        &mut self,
        variant: &Apart,
        values: &Values,
        name: &str,
        found: &mut Found,
    ) -> Result<Option<Cycles>> {
        let measured = self.trusted(&variant.block.bytes, values)?;
        let measured = measured.map_err(|why| found.missing.push(format!("{name}: {why}")));
        Ok(measured.ok().map(|t| Cycles::of(&t, variant.copies as f64)))
    }
}

impl Cuts {
    fn of(bytes: Vec<u8>) -> Option<Self> {
        let instructions = Block::decode(&bytes).ok()?.instructions.len();
        Some(Self { bytes, instructions })
    }
}

/// The block so many times over.
fn repeated(block: &Block, times: usize) -> Option<Block> {
    Block::decode(&block.bytes.repeat(times)).ok()
}

/// How often the block can be there behind one cut, so that it would show if the block waits for a
/// chain; `None` where that is not often enough. The chain through these blocks is as long as they
/// are many, and as many such groups have to wait at once as hide it: the scheduler must hold them.
fn times(evidence: &Evidence, first: &Cut, instructions: usize) -> Option<usize> {
    let free = evidence.least(&Cut { cost: 0.0, ..*first });
    let held = WAITING * free / (evidence.time.best * instructions.max(1) as f64);
    let times = if held.is_finite() { held as usize } else { return None };
    let times = times.min(TIMES);
    let least = evidence.least(&Cut { cost: first.cost / times.max(1) as f64, ..*first });
    (times > 1 && least < CLEAR * evidence.time.low).then_some(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(time: f64, slots: f64) -> Evidence {
        Evidence {
            time: Cycles::exact(time),
            slots: Some(Cycles::exact(slots)),
            free: Some(Cycles::exact(slots)),
            ..Evidence::default()
        }
    }

    fn cut(left: f64, cost: f64) -> Cut {
        Cut { left: Cycles::exact(left), instructions: 6.0 * cost, cost, rest: 0.0 }
    }

    #[test]
    fn what_one_cut_for_each_hides_one_for_several_shows() {
        // Four additions, four cuts: 80 waiting instructions are 12 blocks and more.
        assert_eq!(times(&evidence(1.05, 0.67), &cut(1.4, 0.67), 4), Some(TIMES));
        // Twenty instructions: three blocks fill the scheduler.
        assert_eq!(times(&evidence(4.0, 3.1), &cut(4.1, 0.67), 20), Some(3));
        // Without chains it would take as long; or fills the scheduler by itself.
        assert_eq!(times(&evidence(1.05, 1.0), &cut(1.4, 0.67), 4), None);
        assert_eq!(times(&evidence(20.0, 15.0), &cut(21.0, 2.0), 90), None);
    }
}
