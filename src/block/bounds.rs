//! Bounds on the throughput that need no PMU: the front end by itself, and the width of the
//! pipeline.

use super::Options;
use super::discover::{Found, discover};
use super::document::{Bound, Holds, Invariant, Report, Throughput};
use super::measure::{self, Form, Timed};
use super::processor::Processor;
use super::profile::Profiler;
use super::program::Needs;
use crate::Result;
use crate::code::{Block, Inst};
use iced_x86::Mnemonic;

/// Cycles that a long run should take.
const CYCLES: f64 = 2000.0;
/// Prefixes beyond this many decode slowly on some cores.
const PREFIXES: usize = 3;
/// How close a bound must come to the throughput to explain it.
const EXPLAINS: f64 = 0.95;

impl Profiler {
    /// Everything that explains a block beyond its number: subnormals, bounds, and what they say.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub(super) fn explain(
        &mut self,
        block: &Block,
        found: &Found,
        form: &Form,
        report: &mut Report,
    ) -> Result<()> {
        let measured = self.options.explain && report.throughput.is_some();
        let subnormals = self.subnormals(block, found, form, measured)?;
        report.invariants.push(subnormals);
        if let (true, Some(throughput)) = (measured, report.throughput.clone()) {
            let mut bounds: Vec<Bound> = self.front_end(block, found)?.into_iter().collect();
            let missing = bounds.is_empty();
            bounds.extend(width(block, Processor::here()));
            report.invariants.push(plausible(&bounds, &throughput));
            if !report.hierarchy.is_measured() {
                report.hierarchy.verdict += &verdict(&bounds, &throughput, missing);
            }
            report.bounds.append(&mut bounds);
        }
        Ok(())
    }

    /// What the front end needs: the block's skeleton, measured as the block was.
    fn front_end(&mut self, block: &Block, found: &Found) -> Result<Option<Bound>> {
        let Some(skeleton) = skeleton(block) else { return Ok(None) };
        let needs = Needs::of(&skeleton);
        let options = Options { values: Some(found.values.clone()), ..self.options.clone() };
        let ready = discover(&mut self.engine, &skeleton, &needs, found.copies, &options)?;
        let Ok(ready) = ready else { return Ok(None) };
        let wide = f64::from(Processor::here().width.unwrap_or(4));
        let run = (found.copies * skeleton.instructions.len()) as f64 / wide;
        let repeat = (CYCLES / run).ceil().clamp(1.0, 16.0) as u32;
        let form = measure::unrolled(&skeleton, &needs, &ready, self.options.placements, repeat);
        let mut timed = Timed::default();
        self.engine.lines(&[])?;
        let (passes, rounds) = (self.options.passes, self.options.rounds);
        if self.timed(&form, passes, rounds, &mut timed)?.is_some() {
            return Ok(None);
        }
        let (Some(cycles), Some((low, high))) = (timed.cycles(), timed.range()) else {
            return Ok(None);
        };
        Ok(Some(Bound { name: "front-end", cycles, low, high, how: how(block) }))
    }
}

/// How the front-end bound was found, and what is known to bias it for this block.
fn how(block: &Block) -> String {
    let mut how = "measured: each instruction replaced by a nop of the same length".to_owned();
    if block.final_branch().is_some() {
        how += ", the final jump kept";
    }
    if fuses(block) {
        how += " and what may fuse with it replaced by a `test` that does";
    }
    how += "; an instruction of several operations counts as one";
    let long = block.instructions.iter().filter(|i| i.bytes.len() > 9 + PREFIXES).count();
    if long > 0 {
        how += &format!(
            "; {long} nops need more than {PREFIXES} prefixes, which some cores decode slowly"
        );
    }
    let wide = block.instructions.iter().filter(|i| has_wide_immediate(i)).count();
    if wide > 0 {
        how += &format!("; {wide} 64-bit immediates take more room in an op cache than a nop does");
    }
    how
}

/// Whether it carries an immediate of 64 bits.
pub(super) fn has_wide_immediate(inst: &Inst) -> bool {
    let decoded = &inst.decoded;
    (0..decoded.op_count()).any(|i| decoded.op_kind(i) == iced_x86::OpKind::Immediate64)
}

/// Whether the last two instructions may be one operation: an arithmetic instruction and the
/// conditional jump that reads its flags.
fn fuses(block: &Block) -> bool {
    let [.., first, last] = block.instructions.as_slice() else { return false };
    last.decoded.is_jcc_short_or_near() && may_fuse(first)
}

/// Those that fuse with a conditional jump on some processor (Intel's optimization reference
/// manual; AMD's guides for Zen 1 to 5).
fn may_fuse(inst: &Inst) -> bool {
    use Mnemonic::{Add, And, Cmp, Dec, Inc, Or, Sub, Test, Xor};
    matches!(inst.decoded.mnemonic(), Cmp | Test | Add | Sub | And | Or | Xor | Inc | Dec)
}

/// The block with nops of the same lengths in place of its instructions. The final jump stays; a
/// pair that may fuse stays one: else the skeleton could be slower than the block.
fn skeleton(block: &Block) -> Option<Block> {
    let last = block.instructions.len() - 1;
    let mut bytes = Vec::with_capacity(block.bytes.len());
    for (i, inst) in block.instructions.iter().enumerate() {
        match i {
            _ if i == last && block.final_branch().is_some() => bytes.extend(&inst.bytes),
            _ if i + 1 == last && fuses(block) => bytes.extend(test(inst.bytes.len())),
            _ => bytes.extend(nop(inst.bytes.len())),
        }
    }
    Block::decode(&bytes).ok().filter(|s| s.instructions.len() == block.instructions.len())
}

/// A nop of 1 to 15 bytes: the forms both vendors recommend, then more prefixes.
fn nop(length: usize) -> Vec<u8> {
    const FORMS: [&[u8]; 8] = [
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

/// A `test` of 2 to 15 bytes on registers that nothing changes.
fn test(length: usize) -> Vec<u8> {
    let form: &[u8] = match length {
        2 => &[0x85, 0xc9],
        3..=5 => &[0x48, 0x85, 0xc9],
        6 => &[0xf7, 0xc1, 0xff, 0, 0, 0],
        _ => &[0x48, 0xf7, 0xc1, 0xff, 0, 0, 0],
    };
    // A segment override in 64-bit mode means nothing here.
    let mut bytes = vec![0x3e; length.saturating_sub(form.len())];
    bytes.extend(form);
    bytes
}

/// The pipeline's width. Nops are left out: some processors fuse them with what stands before.
fn width(block: &Block, processor: &Processor) -> Option<Bound> {
    let wide = processor.width?;
    let nops = block.instructions.iter().filter(|i| i.decoded.mnemonic() == Mnemonic::Nop).count();
    let pair = usize::from(fuses(block));
    let slots = block.instructions.len() - nops - pair;
    let cycles = slots as f64 / f64::from(wide);
    let mut how = format!("computed: {slots} instructions by {wide} slots a cycle");
    if let Some(table) = &processor.table {
        how += &format!(" (table {table})");
    }
    how += ", one slot each, though some take more";
    if pair > 0 {
        how += "; the pair at the end counts as one";
    }
    if nops > 0 {
        how += &format!("; {nops} nops not counted");
    }
    Some(Bound { name: "issue-width", cycles, low: cycles, high: cycles, how })
}

/// Whether the throughput keeps to the bounds: if it does not, one of them is wrong.
fn plausible(bounds: &[Bound], throughput: &Throughput) -> Invariant {
    let limit = (throughput.high * 1.03).max(throughput.high + 0.03);
    let broken: Vec<_> = bounds
        .iter()
        .filter(|bound| bound.low > limit)
        .map(|b| {
            format!(
                "{} needs {:.3} cycles ({:.3} to {:.3}), more than the {:.3} measured",
                b.name, b.cycles, b.low, b.high, throughput.cycles
            )
        })
        .collect();
    let (verdict, how) = match (broken.is_empty(), bounds.is_empty()) {
        (_, true) => (Holds::Unchecked, "no bound was found".to_owned()),
        (true, _) => {
            let names: Vec<_> = bounds.iter().map(|bound| bound.name).collect();
            (Holds::Held, format!("the throughput is not below {}", names.join(" or ")))
        }
        _ => (Holds::Violated, broken.join("; ")),
    };
    Invariant { name: "bounds", verdict, how }
}

/// What the front-end bound says about the block, to go on behind `not measured: …`.
fn verdict(bounds: &[Bound], throughput: &Throughput, missing: bool) -> String {
    let Some(bound) = bounds.iter().find(|b| b.name == "front-end") else {
        return if missing { "; nor could the front end's bound be measured" } else { "" }
            .to_owned();
    };
    let share = bound.cycles / throughput.cycles;
    let says = if share >= EXPLAINS {
        "the front end alone explains it"
    } else {
        "the limit is behind the front end: latency, ports or memory"
    };
    format!("; the front-end bound is {:.0} % of the throughput: {says}", 100.0 * share.min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(hex: &str) -> Block {
        Block::decode(&crate::code::parse_hex(hex).unwrap()).unwrap()
    }

    #[test]
    fn every_length_has_a_nop_and_a_test_that_decode_as_one() {
        for length in 1..=15 {
            let one = Block::decode(&nop(length)).unwrap();
            assert_eq!(one.instructions.len(), 1, "{length}");
            assert_eq!(one.instructions[0].decoded.mnemonic(), Mnemonic::Nop, "{length}");
        }
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
        let bones = skeleton(&updcrc).unwrap();
        let lengths = |b: &Block| b.instructions.iter().map(|i| i.bytes.len()).collect::<Vec<_>>();
        assert_eq!(lengths(&bones), lengths(&updcrc));
        let names: Vec<_> = bones.instructions.iter().map(|i| i.decoded.mnemonic()).collect();
        assert_eq!(names[..6], [Mnemonic::Nop; 6]);
        assert_eq!(names[6..], [Mnemonic::Test, Mnemonic::Jb]);
        assert!(how(&updcrc).contains("`test`"), "{}", how(&updcrc));
        assert!(how(&block("48b80102030405060708")).contains("64-bit"));
    }

    fn processor(width: u32) -> Processor {
        Processor { width: Some(width), table: Some("t".into()), ..Processor::here().clone() }
    }

    #[test]
    fn the_width_counts_a_fused_pair_once_and_no_nops() {
        let bound = |hex| width(&block(hex), &processor(4)).unwrap().cycles;
        assert_eq!(bound("4801d8 4801d9 4801da 4801dd"), 1.0);
        assert_eq!(bound("4801d8 4801d9 4839cf 72f8"), 0.75);
        assert_eq!(bound("90 90 4801d8"), 0.25);
    }

    fn throughput(cycles: f64) -> Throughput {
        Throughput { cycles, low: cycles, high: cycles, modes: Vec::new(), clock: "tsc" }
    }

    #[test]
    fn a_throughput_below_a_bound_is_a_sign_of_trouble() {
        let bound = |cycles| {
            let how = String::new();
            vec![Bound { name: "front-end", cycles, low: cycles, high: cycles, how }]
        };
        assert_eq!(plausible(&bound(1.0), &throughput(1.01)).verdict, Holds::Held);
        assert_eq!(plausible(&bound(1.02), &throughput(1.0)).verdict, Holds::Held);
        let broken = plausible(&bound(1.5), &throughput(1.0));
        assert_eq!(broken.verdict, Holds::Violated);
        assert!(broken.how.contains("front-end needs 1.500"), "{}", broken.how);
        assert!(verdict(&bound(1.0), &throughput(1.0), false).contains("front end alone"));
        assert!(verdict(&bound(1.0), &throughput(4.0), false).contains("25 %"));
    }
}
