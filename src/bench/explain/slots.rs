//! Measures issue slots: nops are added until slots are the bound, and subtracted. Also measures whether code waits
//! for its front end.
//!
//! For the front end the block is measured again with prefixes that have no effect before its short instructions.
//! On some processors the front end delivers fewer of those per cycle (Zen 5: natively 5 to 7 of 2 to 4 bytes, 8 of
//! 5 bytes and more): code that the front end bounds is then faster, code that another unit bounds is not.

use super::cycles::{Cycles, NEAR, Reaches};
use super::evidence::{Independent, bound, known};
use super::explainer::{Explainer, Findings, Subject};
use super::model::Lengthened;
use super::variants::{filling_nops, padded};
use crate::Values;
use crate::harness::skeleton::{Filler, skeleton};
use crate::measurement::bound_names::{SLOTS, WIDTH};
use crate::microbench::{Microbenchmark, Settings};
use isa::code::Block;
use tma::Result;
use tma::text::several;

/// Most nops in a variant: op caches hold 4,000 operations and more (Golden Cove, Zen 3).
const MAX_NOPS: usize = 2400;

/// Fewest copies of the instructions in a microbenchmark that still rotates registers.
const MIN_SETS: usize = 6;

/// Nops added in successive measurements, as a multiple of the number that fills the slots. Contention, or an
/// order that leaves slots empty, only adds, so the minimum counts. Natively on Zen 5, four loads, stores and
/// three others come out as 11.5 to 13.7 slots with 4 to 48 nops.
const AMOUNTS: [f64; 4] = [1.0, 1.0, 1.5, 2.0];

/// Measurements where slots come out as more than `PLAIN` for an instruction, which few instructions need.
const TRIES: usize = 2;
const PLAIN: usize = 2;

/// Two amounts confirm each other up to this share of the time. Contention adds in proportion to the nops.
const CONFIRMED: f64 = 0.05;

/// `ds`, without effect in 64-bit mode.
const PREFIX: u8 = 0x3e;

/// Bytes from which on instructions are not short.
const LONG: usize = 5;

/// More prefixes decode slowly on some cores.
const PREFIXES: usize = 3;

/// Code whose slots are measured, and how many copies of the block it holds.
struct Padded {
    block: Block,
    values: Values,
    copies: usize,
    /// Nops for each copy.
    nops: usize,
    filler: Filler,
}

impl Explainer {
    /// Measures issue slots, however many operations an instruction has.
    pub(super) fn measure_slots(
        &mut self,
        subject: &Subject<'_>,
        independent: Option<&Independent>,
        findings: &mut Findings,
    ) -> Result<Option<Cycles>> {
        let computed = known(subject.explained(), WIDTH);
        let Some(width) = self.core.width() else { return Ok(None) };
        let wide = f64::from(width);
        let instructions = subject.block.instructions.len();
        let time = findings.evidence.time;
        let counted = computed.is_some_and(|c| findings.evidence.leaves_ports_open(c));
        // Slots beyond the number of instructions need a second measurement.
        let surprises = |slots: Cycles| !counted && findings.evidence.leaves_ports_open(slots);
        let mut all: Vec<(Cycles, usize, Filler)> = Vec::new();
        let mut failure = None;
        for (done, amount) in (1..).zip(AMOUNTS) {
            let cycles = amount * independent.map_or(time, |f| f.cycles).best;
            let Some(padded) = self.padded(subject, independent, cycles, width)? else { break };
            let t = match self.trusted(&padded.block.bytes, &padded.values)? {
                Ok(throughput) => throughput,
                Err(untrusted) => {
                    failure = Some(format!("slots: {}", untrusted.why));
                    continue;
                }
            };
            let of = |t: f64| (t / padded.copies as f64 - padded.nops as f64 / wide).max(0.0);
            all.push((Cycles::of(&t, 1.0).map(of), padded.nops, padded.filler));
            all.sort_by(|(a, ..), (b, ..)| a.best.total_cmp(&b.best));
            let is_plain = all[0].0.best * wide <= (PLAIN * instructions) as f64;
            if !surprises(all[0].0) && (is_plain || done >= TRIES) {
                break;
            }
        }
        let Some(&(slots, nops, filler)) = all.first() else {
            let no_filler = Filler::among(subject.block, &self.core).err();
            let failure = failure.or(no_filler.map(|no| format!("slots: {}", no.why())));
            findings.missing.extend(failure);
            return Ok(computed);
        };
        let confirms = |(other, n, _): &(Cycles, usize, Filler)| {
            *n != nops && other.best <= slots.best + CONFIRMED * time.best
        };
        if surprises(slots) && !all.iter().any(confirms) {
            let why = "not the same with more nops".to_owned();
            findings.missing.push(format!("slots: {}", failure.unwrap_or(why)));
            findings.evidence.slots_unconfirmed = true;
            return Ok(computed);
        }
        // The independent instructions need these slots, too.
        let most = independent.map_or(f64::INFINITY, |f| f.cycles.high).min(time.high);
        if slots.low > most * (1.0 + NEAR) {
            let why = format!("with added {}s, slots are not the bound", filler.name());
            findings.missing.push(format!("slots: {why}"));
            return Ok(computed);
        }
        let least = computed.map_or(0.0, |c| c.best).min(most);
        let slots = slots.map(|cycles| cycles.clamp(least, most));
        let how = format!(
            "measured: {} {} slots the bound; without those it takes {:.2} slots of {width} per cycle",
            several(nops, &format!("added {}", filler.name())),
            if nops == 1 { "makes" } else { "make" },
            slots.best * wide
        );
        findings.bounds.push(bound(SLOTS, slots, how));
        Ok(Some(slots))
    }

    /// The independent instructions, or the block, with as many nops as take more than `cycles`.
    fn padded(
        &self,
        subject: &Subject<'_>,
        independent: Option<&Independent>,
        cycles: f64,
        width: u32,
    ) -> Result<Option<Padded>> {
        let instructions = subject.block.instructions.len();
        let Some(nops) = filling_nops(cycles, width, instructions) else { return Ok(None) };
        let (code, copies, values) = match (independent, &subject.measurement.values) {
            (Some(independent), _) => match with_fewer_sets(independent, nops) {
                Some(made) => (Block::decode(&made.bytes)?, made.sets, made.values),
                None => return Ok(None),
            },
            (None, Some(values)) => (subject.block.clone(), 1, values.clone()),
            (None, None) => return Ok(None),
        };
        let Ok(filler) = Filler::among(&code, &self.core) else { return Ok(None) };
        let block = padded(&code, nops * copies, filler);
        Ok(block.map(|block| Padded { block, values, copies, nops, filler }))
    }

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
        let filler = Filler::instead_of(code, &self.core).ok();
        let Some(bare) = filler.and_then(|filler| skeleton(code, filler)) else {
            return Ok(None);
        };
        let time = self.trusted(&bare.bytes, values)?.ok();
        Ok(time.map(|time| Cycles::of(&time, 1.0)))
    }
}

/// The microbenchmark, with fewer sets if so many nops in each would exceed an op cache; `None` if too
/// few would be left to rotate registers.
fn with_fewer_sets(independent: &Independent, nops: usize) -> Option<Microbenchmark> {
    if nops * independent.benchmark.sets <= MAX_NOPS {
        return Some(independent.benchmark.clone());
    }
    // A microbenchmark may have twice the requested sets.
    let sets = MAX_NOPS / nops / 2;
    let unroll_size = sets * independent.multiset.len();
    let settings = Settings { unroll_size, ..Settings::default() };
    let benchmark = Microbenchmark::of(&independent.multiset, &settings).ok()?;
    (sets >= MIN_SETS && nops * benchmark.sets <= MAX_NOPS).then_some(benchmark)
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
