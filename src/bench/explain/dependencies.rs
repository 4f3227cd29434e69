//! Measures a block with its loop-carried dependencies broken (through memory, through registers, and both), and
//! finds dependencies through memory that only the initial values make.

use super::cycles::Cycles;
use super::disjoint_memory::{Disjoint, disjoint_memory};
use super::evidence::{self, search};
use super::explainer::{Explainer, Findings, Subject};
use super::model::{Broken, Evidence};
use super::one_line::{OneLine, one_line};
use super::variants::{Variant, breakers, preceded};
use crate::Values;
use crate::measurement::Assumed;
use isa::code::Block;
use isa::deps::memory::Settings;
use isa::deps::recurrence::{Edge, Recurrence};
use isa::deps::{Analysis, Code};
use isa::effects::{ArchReg, Role};
use isa::latency::Source;
use tma::Result;

/// Costs of accesses that go where all are in one line, too.
const OTHER_COSTS: [Assumed; 6] = [
    Assumed::LineCrossing,
    Assumed::PageCrossing,
    Assumed::DataTlb,
    Assumed::L1Data,
    Assumed::PageAliasing,
    Assumed::StoreAliasing,
];
/// Most copies of the block per set of breakers.
const MAX_COPIES: usize = 8;

/// Instructions that can wait in the scheduler, roughly: Golden Cove has 97 entries for integer and
/// vector ports, Zen 3 has 96 for integers (chipsandcheese.com, 2021 and 2022), and some are taken.
const SCHEDULER: f64 = 80.0;

/// Several copies per set of breakers are tried only if the result can fall below this share of the
/// block's time; otherwise it would be inconclusive too.
const CONCLUSIVE: f64 = 0.85;

/// Dependency-breaking instructions for a block.
struct Breakers {
    bytes: Vec<u8>,
    instructions: usize,
}

impl Explainer {
    /// Measures the variants with broken dependencies into the evidence.
    pub(super) fn break_dependencies(
        &mut self,
        subject: &Subject<'_>,
        findings: &mut Findings,
    ) -> Result<()> {
        let Some(values) = subject.explained().values.clone() else { return Ok(()) };
        let breakers =
            breakers(&findings.analysis, &values, subject.block, &[]).and_then(Breakers::of);
        let effects = &findings.code.effects;
        let disjoint = disjoint_memory(subject.block, effects, &values, &[]);
        let before = breakers.as_ref().map(|breakers| &breakers.bytes);
        let both = before.and_then(|b| disjoint_memory(subject.block, effects, &values, b).ok());
        if let Ok(Disjoint { variant, control }) = disjoint {
            let name = "memory dependencies broken";
            let broken = self.variant(&variant, subject, name, findings)?;
            findings.evidence.memory_broken = broken;
            if broken.is_some_and(|broken| findings.evidence.is_faster(broken)) {
                let control = Variant { block: control, copies: variant.copies };
                let name = "the same copies with memory dependencies";
                findings.evidence.memory_control =
                    self.variant(&control, subject, name, findings)?;
                findings.drop_copies_that_are_not_the_loop(subject.forwards());
            }
        }
        if let Some(breakers) = self.without_new_aliasing(subject, &values, breakers, findings) {
            self.break_registers(subject, &breakers, findings)?;
        }
        if let Some(both) = both {
            let name = "memory and register dependencies broken";
            findings.evidence.both_broken = self.variant(&both.variant, subject, name, findings)?;
        }
        self.measure_in_one_line(subject, &values, findings)
    }

    /// Measures the block with its accesses side by side, unless values pass through memory, or its accesses have another
    /// cost that this takes away, too.
    fn measure_in_one_line(
        &mut self,
        subject: &Subject<'_>,
        values: &Values,
        findings: &mut Findings,
    ) -> Result<()> {
        let evidence = &findings.evidence;
        let broken = [evidence.registers_broken.map(|b| b.remaining), evidence.memory_broken];
        let is_explained = broken.into_iter().flatten().any(|broken| evidence.is_faster(broken));
        let passes_values = !findings.analysis.memory.dependencies.is_empty();
        let violated = subject.explained().violated();
        let costs_otherwise = OTHER_COSTS.iter().any(|cost| violated.contains(cost));
        if is_explained || passes_values || costs_otherwise || subject.looped.is_some() {
            return Ok(());
        }
        let effects = &findings.code.effects;
        let Some(OneLine { variant, control }) = one_line(subject.block, effects, values) else {
            return Ok(());
        };
        let variant = Variant { block: variant, copies: 1 };
        let name = "accesses in one cache line";
        findings.evidence.one_line = self.variant(&variant, subject, name, findings)?;
        if findings.evidence.one_line.is_some_and(|v| findings.evidence.is_faster(v)) {
            let control = Variant { block: control, copies: 1 };
            let name = "the same encodings with its own addresses";
            findings.evidence.one_line_control = self.variant(&control, subject, name, findings)?;
        }
        Ok(())
    }

    /// The breakers, without those of address registers if they would add memory dependencies: with an
    /// index reset in every iteration, all iterations access the same address.
    fn without_new_aliasing(
        &mut self,
        subject: &Subject<'_>,
        values: &Values,
        breakers: Option<Breakers>,
        findings: &Findings,
    ) -> Option<Breakers> {
        let breakers = breakers?;
        let variant = preceded(&breakers.bytes, subject.block)?;
        let own = &findings.analysis.memory.dependencies;
        let known = |writer: usize, reader: usize| {
            own.iter().any(|c| c.writer == writer && c.reader == reader)
        };
        let in_block = |i: usize| i.checked_sub(breakers.instructions);
        let all_known =
            self.analysed(&variant, subject)?.memory.dependencies.iter().all(|c| {
                in_block(c.writer).zip(in_block(c.reader)).is_some_and(|(w, r)| known(w, r))
            });
        if all_known {
            return Some(breakers);
        }
        let reads = findings.code.effects.iter().flat_map(|effects| &effects.reads);
        let addresses = reads.filter(|read| matches!(read.role, Role::Address(_)));
        let keep: Vec<ArchReg> = addresses.map(|read| read.reg).collect();
        super::variants::breakers(&findings.analysis, values, subject.block, &keep)
            .and_then(Breakers::of)
    }

    /// Dependencies of a variant.
    fn analysed(&mut self, variant: &Block, subject: &Subject<'_>) -> Option<Analysis> {
        let code = Code::of_bytes(&variant.bytes, self.core.facts()).ok()?;
        Some(self.analyser.analyse(&code, &search(subject.explained(), self.window())))
    }

    /// Breaks register dependencies in every iteration and, if that is inconclusive because of the
    /// added instructions, only in every few.
    fn break_registers(
        &mut self,
        subject: &Subject<'_>,
        breakers: &Breakers,
        findings: &mut Findings,
    ) -> Result<()> {
        findings.evidence.registers_broken = self.break_every(1, subject, breakers, findings)?;
        let Some(first) = findings.evidence.registers_broken else { return Ok(()) };
        if findings.evidence.is_conclusive(&first) {
            return Ok(());
        }
        let instructions = subject.block.instructions.len();
        if let Some(copies) = copies_per_breakers(&findings.evidence, &first, instructions)
            && let Some(second) = self.break_every(copies, subject, breakers, findings)?
        {
            findings.evidence.registers_broken = Some(second);
        }
        Ok(())
    }

    /// Measures `copies` of the block after one set of breakers.
    fn break_every(
        &mut self,
        copies: usize,
        subject: &Subject<'_>,
        breakers: &Breakers,
        findings: &mut Findings,
    ) -> Result<Option<Broken>> {
        let Some(variant) =
            repeated(subject.block, copies).and_then(|b| preceded(&breakers.bytes, &b))
        else {
            return Ok(None);
        };
        let recurrences =
            self.analysed(&variant, subject).map(|a| a.recurrences).unwrap_or_default();
        let latencies = recurrences.iter().map(|recurrence| recurrence.low);
        let residual_latency = latencies.fold(0.0, f64::max) / copies as f64;
        let variant = Variant { block: variant, copies };
        let name = "register dependencies broken";
        let remaining = self.variant(&variant, subject, name, findings)?;
        let instructions = breakers.instructions as f64 / copies as f64;
        let cost = self.core.width().map_or(0.0, |width| instructions / f64::from(width));
        Ok(remaining.map(|remaining| Broken { remaining, instructions, cost, residual_latency }))
    }

    /// Measured cycles per iteration of the block in a variant of several; of a loop, whose jump the
    /// variant lacks, at least what its front end takes with the jump.
    fn variant(
        &mut self,
        variant: &Variant,
        subject: &Subject<'_>,
        name: &str,
        findings: &mut Findings,
    ) -> Result<Option<Cycles>> {
        // Values other than those it was made for may make its accesses overlap.
        let Some(values) = subject.explained().values.as_ref() else { return Ok(None) };
        Ok(match self.trusted(&variant.block.bytes, values)? {
            Ok(t) => {
                let cycles = Cycles::of(&t, variant.copies as f64);
                let jump = findings.evidence.front_end.filter(|_| subject.looped.is_some());
                Some(jump.map_or(cycles, |jump| cycles.max(jump)))
            }
            Err(untrusted) => {
                findings.missing.push(format!("{name}: {}", untrusted.why));
                None
            }
        })
    }

    /// Minimum latency of a memory-carried chain without its passes through memory.
    pub(super) fn arithmetic(&self, chain: &Recurrence) -> f64 {
        let forwarding = |step: &Edge| {
            let (_, class) = step.forward?;
            Some(self.analyser.latencies().forwarding(class).low)
        };
        let all = chain.path.iter().map(|s| s.latency.low - forwarding(s).unwrap_or_default());
        all.sum::<f64>() / chain.iterations.max(1) as f64
    }

    /// Whether iterations overlap for certain: all loop-carried latencies are known and far below the
    /// time, no load can wait for a store, and the window holds twice what an iteration takes.
    pub(super) fn overlaps(&self, subject: &Subject<'_>, findings: &Findings) -> bool {
        let Findings { evidence, analysis, code, .. } = findings;
        let accesses = || code.effects.iter().flat_map(|effects| &effects.memory);
        let short = analysis.recurrences.iter().all(|chain| {
            let assumed = |step: &Edge| matches!(step.latency.source, Source::Assumed(_));
            evidence.is_far_below(chain.high) && !chain.path.iter().any(assumed)
        });
        let instructions = subject.block.instructions.len() as f64;
        let longest = evidence.residual_latency.unwrap_or_default() * instructions;
        let held = f64::from(self.window()) / instructions;
        let stores = accesses().any(|a| a.store) && accesses().any(|a| a.load);
        short && !stores && longest < held * evidence.time.low / 2.0
    }

    /// Stores and loads that alias in the sandbox only because of its initial values, one sentence each; none without
    /// values.
    ///
    /// Memory dependencies are analysed twice: with the values that the block was measured with, and with
    /// those that the user set and random ones otherwise. Pairs that only the first analysis finds depend
    /// on the initial values.
    pub(super) fn alias_pairs(
        &mut self,
        subject: &Subject<'_>,
        findings: &Findings,
    ) -> Vec<String> {
        let carried = &findings.analysis.memory.dependencies;
        if carried.is_empty() || subject.measurement.values.is_none() {
            return Vec::new();
        }
        let code = &findings.code;
        let unknown = Settings {
            window: self.window(),
            runs: evidence::RUNS,
            initial_values: vec![self.user_values.clone()],
        };
        let independent = self.analyser.analyse(code, &unknown).memory.dependencies;
        let mut pairs: Vec<(usize, usize)> = carried.iter().map(|c| (c.writer, c.reader)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs.retain(|(w, r)| !independent.iter().any(|c| (c.writer, c.reader) == (*w, *r)));
        let words = |(writer, reader): (usize, usize)| {
            let (store, load) = (code.text(writer), code.text(reader));
            format!(
                "`{load}` aliases `{store}` because of the sandbox's initial values; if it does not in \
                 the program, set others with --init or --registers"
            )
        };
        pairs.into_iter().map(words).collect()
    }
}

impl Breakers {
    fn of(bytes: Vec<u8>) -> Option<Self> {
        let instructions = Block::decode(&bytes).ok()?.instructions.len();
        Some(Self { bytes, instructions })
    }
}

/// `copies` of the block.
fn repeated(block: &Block, copies: usize) -> Option<Block> {
    Block::decode(&block.bytes.repeat(copies)).ok()
}

/// Copies of the block per set of breakers such that latency of loop-carried dependencies would show; `None` if
/// that cannot be conclusive. The dependency runs through all copies of a group, and the scheduler must hold as
/// many groups at once as would hide it.
fn copies_per_breakers(evidence: &Evidence, first: &Broken, instructions: usize) -> Option<usize> {
    let bound = evidence.lower_bound_broken(&Broken { cost: 0.0, ..*first });
    let held = SCHEDULER * bound / (evidence.time.best * instructions.max(1) as f64);
    let copies = if held.is_finite() { held as usize } else { return None };
    let copies = copies.min(MAX_COPIES);
    let cost = first.cost / copies.max(1) as f64;
    let bound = evidence.lower_bound_broken(&Broken { cost, ..*first });
    (copies > 1 && bound < CONCLUSIVE * evidence.time.low).then_some(copies)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockMeasurer, Init, Options};
    use isa::code::Block;
    use isa::deps::{Analyser, Code};
    use isa::latency::Latencies;

    fn evidence(time: f64, slots: f64) -> Evidence {
        Evidence {
            time: Cycles::exact(time),
            slots: Some(Cycles::exact(slots)),
            independent: Some(Cycles::exact(slots)),
            ..Evidence::default()
        }
    }

    fn broken(remaining: f64, cost: f64) -> Broken {
        let remaining = Cycles::exact(remaining);
        Broken { remaining, instructions: 6.0 * cost, cost, residual_latency: 0.0 }
    }

    #[test]
    fn several_copies_share_breakers_where_their_cost_hides_the_gain() {
        // Four additions, four breakers: 80 scheduler entries hold more than 12 blocks.
        assert_eq!(
            copies_per_breakers(&evidence(1.05, 0.67), &broken(1.4, 0.67), 4),
            Some(MAX_COPIES)
        );
        // Twenty instructions: three blocks fill the scheduler.
        assert_eq!(copies_per_breakers(&evidence(4.0, 3.1), &broken(4.1, 0.67), 20), Some(3));
        // The bound without dependencies is as high; or one block fills the scheduler.
        assert_eq!(copies_per_breakers(&evidence(1.05, 1.0), &broken(1.4, 0.67), 4), None);
        assert_eq!(copies_per_breakers(&evidence(20.0, 15.0), &broken(21.0, 2.0), 90), None);
    }

    fn alias_pairs(hex: &str, init: &[(Init, u64)]) -> Vec<String> {
        let bytes = isa::code::parse_hex(hex).unwrap();
        let block = Block::decode(&bytes).unwrap();
        let options = Options { init: init.to_vec(), ..Options::quick() };
        let measurement = BlockMeasurer::new(options.clone()).measure(&block).unwrap();
        if measurement.values.is_none() {
            return vec!["not measured".to_owned()];
        }
        let code = Code::of_bytes(&bytes, tma::Core::default().facts()).unwrap();
        let search = evidence::search(&measurement, 64);
        let analysis = Analyser::default().analyse(&code, &search);
        let findings = Findings::without_evidence(analysis, code);
        let subject = Subject { block: &block, measurement: &measurement, looped: None };
        Explainer::new(&options, Latencies::default()).alias_pairs(&subject, &findings)
    }

    #[test]
    fn only_pairs_that_depend_on_the_initial_values_are_named() {
        // mov [rdi],rax; mov rcx,[rsi]: two registers with the same initial value
        let findings = alias_pairs("488907 488b0e", &[]);
        if findings == ["not measured"] {
            return;
        }
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].starts_with("`mov rcx,[rsi]` aliases `mov [rdi],rax`"), "{findings:?}");
        // Both registers set by the user: the aliasing is intended.
        let asked = [(Init::Register(7), 0x2_0000), (Init::Register(6), 0x2_0000)];
        assert!(alias_pairs("488907 488b0e", &asked).is_empty());
        // mov [rdi],rax; mov rcx,[rdi]: one register
        assert!(alias_pairs("488907 488b0f", &[]).is_empty());
        // mov rax,[rdi]; mov rcx,[rsi]: nothing is stored
        assert!(alias_pairs("488b07 488b0e", &[]).is_empty());
    }
}
