//! Measures the evidence for the verdict: ports, slots, and variants with broken dependencies.

use super::cycles::{Cycles, span};
use super::explainer::{Explainer, Findings, Subject, WaitBudget};
use super::model::{Evidence, latency_hides_ports};
use crate::harness::skeleton::Filler;
use crate::measurement::bound_names::{DEPENDENCY, FORWARDING, FRONT_END, L1_ACCESS, PORTS};
use crate::microbench::{Microbenchmark, Multiset, Settings, measure};
use crate::{Bound, Found, Measurement, Status, Throughput, Values};
use isa::code::Block;
use isa::deps::memory::{InitialValues, Settings as Search};
use isa::deps::recurrence::Recurrence;
use isa::deps::{Analysis, Code, Kind};
use isa::latency::Source;
use std::time::Instant;
use tma::Result;

/// Random runs of the analysis of memory dependencies.
pub(super) const RUNS: u32 = 3;

/// Minimum share of a placement's rounds: there are at most six placements.
const PLACEMENT: f64 = 0.16;

/// Attempts to measure a variant until it is `ok`.
const TRIES: usize = 3;

/// Why a measurement was rejected.
#[derive(Debug, Default)]
pub(super) struct Untrusted {
    /// The reason.
    pub(super) why: String,
    /// Whether the reason is contention on the core.
    pub(super) disturbed: bool,
}

impl From<String> for Untrusted {
    fn from(why: String) -> Self {
        Self { why, disturbed: false }
    }
}

impl From<&str> for Untrusted {
    fn from(why: &str) -> Self {
        why.to_owned().into()
    }
}

/// The block's instructions with independent operands, and the loop-carried latency that is left.
pub(super) struct Independent {
    pub(super) cycles: Cycles,
    residual_latency: Option<f64>,
    pub(super) multiset: Multiset,
    pub(super) benchmark: Microbenchmark,
}

impl Explainer {
    /// Measures a block without a jump.
    pub(super) fn findings(&mut self, subject: &Subject<'_>) -> Result<Findings> {
        let code = Code::of_block(subject.block, self.core.facts());
        let explained = subject.explained();
        let analysis = self.analyser.analyse(&code, &search(explained, self.window()));
        let (time, form) = match subject.looped {
            Some(looped) => (Cycles::of_headline(looped), "loop"),
            None => time(subject.measurement, !analysis.memory.dependencies.is_empty()),
        };
        let through_memory = subject.through_memory(&analysis);
        let evidence = Evidence {
            time,
            fastest_state: subject.fastest_state(form),
            front_end: known(explained, FRONT_END),
            register_latency: slowest(&analysis, false).map(latency),
            memory_latency: through_memory.map(latency),
            memory_chain_arithmetic: through_memory.map(|r| self.arithmetic(r)),
            ..Evidence::default()
        };
        let no_filler = Filler::instead_of(subject.block, &self.core).err();
        let missing = no_filler.map(|no| format!("front-end: {}", no.why())).into_iter().collect();
        let bounds = Vec::new();
        let mut findings = Findings { evidence, bounds, analysis, code, form, missing };
        let mut independent = self.measure_independent(subject, &mut findings)?;
        if let Some(own) = &mut independent {
            self.retime_lengthened(own, &mut findings)?;
        }
        findings.evidence.independent = independent.as_ref().map(|f| f.cycles);
        findings.evidence.residual_latency = independent.as_ref().and_then(|f| f.residual_latency);
        findings.evidence.overlaps = self.overlaps(subject, &findings);
        findings.evidence.slots =
            self.measure_slots(subject, independent.as_ref(), &mut findings)?;
        findings.evidence.lengthened = self.measure_lengthened(subject, &findings)?;
        if let Some(own) = independent.filter(|_| findings.evidence.names_ports_or_front_end()) {
            findings.evidence.independent_front_end = self.front_end_of_independent(&own)?;
        }
        if findings.evidence.is_unexplained_by_resources() {
            self.break_dependencies(subject, &mut findings)?;
        }
        findings
            .bounds
            .extend(slowest(&findings.analysis, false).map(|r| dependency(r, false, &findings)));
        let memory = subject.through_memory(&findings.analysis);
        let memory = memory.map(|r| dependency(r, true, &findings));
        findings.bounds.extend(memory.or_else(|| forwarding(&findings)));
        findings.bounds.extend(l1_access(&findings));
        Ok(findings)
    }

    /// A variant's throughput, or why it is not `ok` after several tries.
    pub(super) fn trusted(
        &mut self,
        bytes: &[u8],
        values: &Values,
    ) -> Result<std::result::Result<Throughput, Untrusted>> {
        self.trusted_within(bytes, values, None)
    }

    /// Like [`Self::trusted`], but stops retrying when the budget is spent.
    pub(super) fn trusted_within(
        &mut self,
        bytes: &[u8],
        values: &Values,
        mut wait_budget: Option<&mut WaitBudget>,
    ) -> Result<std::result::Result<Throughput, Untrusted>> {
        let mut untrusted = None;
        for _ in 0..TRIES {
            if self.progress.is_cancelled() {
                return Ok(Err("interrupted".into()));
            }
            if let Some(wait_budget) = &wait_budget {
                if untrusted.is_some() && wait_budget.left().is_zero() {
                    break;
                }
                self.bench.set_budget(wait_budget.left());
            }
            let start = Instant::now();
            let measurement = self.bench.block(bytes, values)?;
            if let Some(wait_budget) = &mut wait_budget {
                wait_budget.spend(start, measurement.status == Status::Ok);
            }
            match (measurement.throughput, measurement.status) {
                (Some(throughput), Status::Ok) => return Ok(Ok(throughput)),
                (_, status) => {
                    let why = measurement.reason.unwrap_or_default();
                    let why = format!("{}: {why}", status.word());
                    untrusted = Some(Untrusted { why, disturbed: measurement.disturbed });
                }
            }
        }
        Ok(Err(untrusted.unwrap_or_default()))
    }

    /// Measures the block's instructions with independent operands, and with its own vector values: the time of roots and
    /// divisions depends on them.
    fn measure_independent(
        &mut self,
        subject: &Subject<'_>,
        findings: &mut Findings,
    ) -> Result<Option<Independent>> {
        // Values of a program's loop are known one by one only.
        let values = subject.measurement.values.as_ref().filter(|_| subject.looped.is_none());
        let vector = values.map(|values| values.vector);
        let settings = Settings { vector, ..self.settings(subject.block) };
        let built =
            Multiset::of(subject.block).and_then(|m| Ok((Microbenchmark::of(&m, &settings)?, m)));
        let (benchmark, multiset) = match built {
            Ok(built) => built,
            Err(error) => {
                findings.missing.push(format!("ports: {error}"));
                return Ok(None);
            }
        };
        self.bench.settings = settings;
        let mut measurement = measure(&mut self.bench, &multiset)?;
        for _ in 1..TRIES {
            if measurement.status == Status::Ok || self.progress.is_cancelled() {
                break;
            }
            measurement = measure(&mut self.bench, &multiset)?;
        }
        let (Some(cycles), Status::Ok) = (measurement.cycles, measurement.status) else {
            let why = measurement.reason.unwrap_or_default();
            findings.missing.push(format!("ports: {}: {why}", measurement.status.word()));
            return Ok(None);
        };
        let cycles = Cycles { best: cycles.cycles, low: cycles.low, high: cycles.high };
        let residual_latency = measurement.bounded_by.as_ref().map(|b| b.high);
        let left = measurement.bounded_by.as_ref().map_or(String::new(), |bounded| {
            let through = bounded.through.join(", ");
            let cycles = span(bounded.low, bounded.high);
            format!("{cycles} cycles of loop-carried latency remain through {through}")
        });
        if latency_hides_ports(residual_latency, cycles) {
            // The block itself may not have that dependency.
            findings.missing.push(format!("ports: {left}, which hide what the ports take"));
        } else {
            let mut how =
                "measured: the same instructions and immediates with independent operands"
                    .to_owned();
            if !left.is_empty() {
                how += &format!("; {left}");
            }
            findings.bounds.push(bound(PORTS, cycles, how));
        }
        Ok(Some(Independent { cycles, residual_latency, multiset, benchmark }))
    }

    /// Re-times with longer encodings (fewer decode limits); keeps the faster.
    fn retime_lengthened(
        &mut self,
        independent: &mut Independent,
        findings: &mut Findings,
    ) -> Result<()> {
        let Some(longer) = self.measure_lengthened_independent(independent, findings)? else {
            return Ok(());
        };
        if longer.best >= independent.cycles.best {
            return Ok(());
        }
        independent.cycles = longer;
        if let Some(ports) = findings.bounds.iter_mut().find(|bound| bound.name == PORTS) {
            (ports.cycles, ports.low, ports.high) = (longer.best, longer.low, longer.high);
            ports.how += ", and prefixes without effect before short ones";
        }
        Ok(())
    }

    fn settings(&self, block: &Block) -> Settings {
        // Enough copies to rotate through all registers of the pools.
        let unroll_size = (16 * block.instructions.len()).clamp(64, 240);
        Settings { unroll_size, ..self.bench.settings }
    }
}

pub(super) fn bound(name: &'static str, cycles: Cycles, how: String) -> Bound {
    Bound { name, cycles: cycles.best, low: cycles.low, high: cycles.high, how, ..Bound::default() }
}

/// A bound of the block's measurement, unless refuted.
pub(super) fn known(measurement: &Measurement, name: &str) -> Option<Cycles> {
    measurement.bounds.iter().find(|b| b.name == name && !b.refuted).map(Cycles::of_bound)
}

/// Settings that analyse the block with the initial values it was measured with.
pub(super) fn search(measurement: &Measurement, window: u32) -> Search {
    let mut initial = InitialValues::default();
    if let Some(values) = &measurement.values {
        initial.registers = values.registers.map(Some);
        initial.fill = Some(values.memory);
    }
    Search { window, runs: RUNS, initial_values: vec![initial] }
}

impl Subject<'_> {
    /// The measurement whose time is explained.
    pub(super) fn explained(&self) -> &Measurement {
        self.looped.unwrap_or(self.measurement)
    }

    /// The fastest state that a placement was in, of the form whose time is explained.
    fn fastest_state(&self, form: &str) -> Option<f64> {
        let is_headline = self.looped.is_some() || form == "unrolled";
        let throughput = self.explained().throughput.as_ref().filter(|_| is_headline)?;
        let common = throughput.modes.iter().filter(|mode| mode.share >= PLACEMENT);
        common.map(|mode| mode.cycles).min_by(f64::total_cmp)
    }

    /// The slowest memory-carried loop dependency, unless the loop was seen to have none: initial registers are
    /// known, memory contents are not.
    fn through_memory<'a>(&self, analysis: &'a Analysis) -> Option<&'a Recurrence> {
        slowest(analysis, true).filter(|_| self.forwards() != Some(false))
    }

    /// Whether the loop was seen to load what it stored in an earlier iteration.
    pub(super) fn forwards(&self) -> Option<bool> {
        self.looped?.closed.as_ref()?.forwards
    }
}

/// The slowest loop-carried dependency through memory, or the slowest that is not.
fn slowest(analysis: &Analysis, through_memory: bool) -> Option<&Recurrence> {
    let through = |r: &Recurrence| r.path.iter().any(|step| step.kind == Kind::Memory);
    analysis.recurrences.iter().find(|r| through(r) == through_memory)
}

fn latency(recurrence: &Recurrence) -> Cycles {
    let Recurrence { low, middle, high, .. } = *recurrence;
    Cycles { best: middle, low, high }
}

/// The time to explain. Store forwarding is slower with many pairs of store and load, as in unrolled
/// code: with memory dependencies it is the loop form's time if that is lower.
fn time(measurement: &Measurement, through_memory: bool) -> (Cycles, &'static str) {
    let unrolled = Cycles::of_headline(measurement);
    let looped = measurement.forms.as_ref().map(|f| &f.looped);
    match looped.and_then(|f| Some((f, f.trusted()?))) {
        Some((form, best)) if through_memory && best < unrolled.best => {
            let (low, high) = (form.low.unwrap_or(best), form.high.unwrap_or(best));
            (Cycles { best, low, high }, "loop")
        }
        _ => (unrolled, "unrolled"),
    }
}

/// A loop-carried dependency as a bound, with the time measured without it.
fn dependency(recurrence: &Recurrence, through_memory: bool, findings: &Findings) -> Bound {
    let steps: Vec<String> =
        recurrence.path.iter().map(|step| findings.code.text(step.reader)).collect();
    let per = match recurrence.iterations {
        0 | 1 => String::new(),
        n => format!(" in {n} iterations"),
    };
    let mut how = format!("computed from latencies: {} → again{per}", steps.join(" → "));
    let (name, remaining, how_broken) = match through_memory {
        true => (FORWARDING, findings.evidence.memory_broken, "memory dependencies broken"),
        false => {
            let broken = findings.evidence.registers_broken;
            (DEPENDENCY, broken.map(|b| b.remaining), "register dependencies broken")
        }
    };
    if let Some(remaining) = remaining {
        how += &format!("; measured: {}", findings.evidence.left(remaining, how_broken));
    }
    let assumed =
        recurrence.path.iter().any(|step| matches!(step.latency.source, Source::Assumed(_)));
    let (found, loads) = (Found::Latencies, recurrence.loads());
    let code = &findings.code.instructions;
    let divides =
        recurrence.path.iter().any(|step| isa::code::divides(code[step.reader].mnemonic()));
    Bound { path: steps, loads, divides, assumed, found, ..bound(name, latency(recurrence), how) }
}

/// Loads that wait for stores as a bound, if they do without a known loop-carried dependency.
fn forwarding(findings: &Findings) -> Option<Bound> {
    let (broken, time) = (findings.evidence.memory_broken?, findings.evidence.time);
    findings.evidence.is_faster(broken).then(|| {
        let how = format!(
            "measured: {:.2} cycles remain with memory dependencies broken; its loads wait for its \
             stores",
            broken.best
        );
        bound(FORWARDING, time, how)
    })
}

/// Banks or lines of the L1 data cache as a bound, if the block is faster with its accesses side by side.
fn l1_access(findings: &Findings) -> Option<Bound> {
    let (evidence, remaining) = (&findings.evidence, findings.evidence.one_line?);
    evidence.is_l1_access().then(|| {
        let how = format!(
            "measured: {:.2} cycles remain with its loads in one cache line and its stores in another",
            remaining.best
        );
        bound(L1_ACCESS, evidence.time, how)
    })
}
