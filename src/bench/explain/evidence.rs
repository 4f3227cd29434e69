//! Measuring what the verdict is found from.

use super::budget::Waiting;
use super::explainer::{Explainer, Subject};
use super::found::Found;
use super::model::{Chain, Cycles, Evidence, hides};
use super::names::WIDTH;
use super::names::{COMPUTED, DEPENDENCY, FORWARDING, FRONT_END, PORTS, SLOTS};
use super::variants::{filling, padded};
use crate::microbench::{Kernel, Multiset, Settings, measure};
use crate::{Bound, Measurement, Status, Throughput, Values};
use isa::code::Block;
use isa::deps::memory::{InitialValues, Settings as Search};
use isa::deps::recurrence::Recurrence;
use isa::deps::{Analysis, Code, Kind};
use std::time::Instant;
use tma::Result;

/// Random runs of the search for dependencies.
pub(super) const RUNS: u32 = 3;

/// Nops in a variant, at most: op caches hold 4,000 operations and more (Golden Cove, Zen 3).
const NOPS: usize = 2400;
/// Sets that a kernel has to have for registers to be used in turn.
const SETS: usize = 6;

/// How often a variant is measured that is not `ok`.
const TRIES: usize = 3;

/// The block's instructions without dependencies, and what is left of them.
struct Free {
    cycles: Cycles,
    floor: Option<f64>,
    multiset: Multiset,
    kernel: Kernel,
}

impl Explainer {
    /// The evidence about a block without a jump.
    pub(super) fn evidence(&mut self, subject: &Subject<'_>) -> Result<Found> {
        let code = Code::of_bytes(&subject.block.bytes, self.core.facts())?;
        let analysis = self.analyser.analyse(&code, &search(subject.measurement, self.window()));
        let (time, form) = time(subject.measurement, !analysis.memory.dependencies.is_empty());
        let evidence = Evidence {
            time,
            front_end: known(subject.measurement, FRONT_END),
            registers: chain(&analysis, false).map(Chain::of),
            memory: chain(&analysis, true).map(Chain::of),
            ..Evidence::default()
        };
        let (bounds, missing) = (Vec::new(), Vec::new());
        let mut found = Found { evidence, bounds, analysis, code, form, missing };
        let free = self.free(subject.block, &mut found)?;
        found.evidence.free = free.as_ref().map(|f| f.cycles);
        found.evidence.floor = free.as_ref().and_then(|f| f.floor);
        found.evidence.slots = self.slots(subject, free.as_ref(), &mut found)?;
        if found.evidence.waits() {
            self.broken(subject, &mut found)?;
        }
        found.bounds.extend(chain(&found.analysis, false).map(|r| dependency(r, false, &found)));
        let memory = chain(&found.analysis, true).map(|r| dependency(r, true, &found));
        found.bounds.extend(memory.or_else(|| forwarding(&found)));
        Ok(found)
    }

    /// A variant's throughput, or why it is not trusted however often it is measured.
    pub(super) fn trusted(
        &mut self,
        bytes: &[u8],
        values: &Values,
    ) -> Result<std::result::Result<Throughput, String>> {
        self.trusted_within(bytes, values, None)
    }

    /// The same, waiting no longer than is left.
    pub(super) fn trusted_within(
        &mut self,
        bytes: &[u8],
        values: &Values,
        mut waiting: Option<&mut Waiting>,
    ) -> Result<std::result::Result<Throughput, String>> {
        let mut why = String::new();
        for _ in 0..TRIES {
            if self.watch.is_cancelled() {
                return Ok(Err("cancelled".to_owned()));
            }
            if let Some(waiting) = &waiting {
                if !why.is_empty() && waiting.left().is_zero() {
                    break;
                }
                self.bench.set_budget(waiting.left());
            }
            let start = Instant::now();
            let measurement = self.bench.block(bytes, values)?;
            if let Some(waiting) = &mut waiting {
                waiting.spend(start, measurement.status == Status::Ok);
            }
            match (measurement.throughput, measurement.status) {
                (Some(throughput), Status::Ok) => return Ok(Ok(throughput)),
                (_, status) => {
                    why = format!("{}: {}", status.word(), measurement.reason.unwrap_or_default());
                }
            }
        }
        Ok(Err(why))
    }

    /// Its instruction forms with registers and memory of their own.
    fn free(&mut self, block: &Block, found: &mut Found) -> Result<Option<Free>> {
        let settings = self.settings(block);
        let made = Multiset::of(block).and_then(|m| Ok((Kernel::of(&m, &settings)?, m)));
        let (kernel, multiset) = match made {
            Ok(made) => made,
            Err(error) => {
                found.missing.push(format!("ports: {error}"));
                return Ok(None);
            }
        };
        self.bench.settings = settings;
        let mut measurement = measure(&mut self.bench, &multiset)?;
        for _ in 1..TRIES {
            if measurement.status == Status::Ok || self.watch.is_cancelled() {
                break;
            }
            measurement = measure(&mut self.bench, &multiset)?;
        }
        let (Some(cycles), Status::Ok) = (measurement.cycles, measurement.status) else {
            let why = measurement.reason.unwrap_or_default();
            found.missing.push(format!("ports: {}: {why}", measurement.status.word()));
            return Ok(None);
        };
        let cycles = Cycles { best: cycles.cycles, low: cycles.low, high: cycles.high };
        let floor = measurement.bounded_by.as_ref().map(|b| b.high);
        let left = measurement.bounded_by.as_ref().map_or(String::new(), |bounded| {
            format!("{} leave a chain of {:.2} cycles", bounded.through.join(", "), bounded.high)
        });
        if hides(floor, cycles) {
            // The block may be without that chain.
            found.missing.push(format!("ports: {left}, which hides what they need by themselves"));
        } else {
            let mut how =
                "measured: the same instructions, immediates included, with registers and \
                           memory of their own"
                    .to_owned();
            if !left.is_empty() {
                how += &format!("; {left}");
            }
            found.bounds.push(bound(PORTS, cycles, how));
        }
        Ok(Some(Free { cycles, floor, multiset, kernel }))
    }

    fn settings(&self, block: &Block) -> Settings {
        // Enough copies for every register of the pools to have its turn.
        let unroll_size = (16 * block.instructions.len()).clamp(64, 240);
        Settings { unroll_size, ..self.bench.settings }
    }

    /// Slots that it takes, however many operations an instruction is: nops are added until slots
    /// are all that it waits for, and taken off again.
    fn slots(
        &mut self,
        subject: &Subject<'_>,
        free: Option<&Free>,
        found: &mut Found,
    ) -> Result<Option<Cycles>> {
        let computed = known(subject.measurement, WIDTH);
        let Some(width) = self.core.width() else { return Ok(None) };
        let instructions = subject.block.instructions.len();
        let cycles = free.map_or(found.evidence.time, |f| f.cycles).best;
        let Some(nops) = filling(cycles, width, instructions) else { return Ok(computed) };
        let (code, sets, values) = match (free, &subject.measurement.values) {
            (Some(free), _) => {
                let Some(kernel) = shortened(free, nops) else { return Ok(computed) };
                (Block::decode(&kernel.bytes)?, kernel.sets, kernel.values)
            }
            (None, Some(values)) => (subject.block.clone(), 1, values.clone()),
            (None, None) => return Ok(computed),
        };
        let Some(padded) = padded(&code, nops * sets) else { return Ok(computed) };
        let t = match self.trusted(&padded.bytes, &values)? {
            Ok(throughput) => throughput,
            Err(why) => {
                found.missing.push(format!("slots: {why}"));
                return Ok(computed);
            }
        };
        let wide = f64::from(width);
        let of = |cycles: f64| ((cycles / sets as f64 * wide - nops as f64) / wide).max(0.0);
        let slots = Cycles { best: of(t.cycles), low: of(t.low), high: of(t.high) };
        if slots.low > found.evidence.time.high.max(cycles) {
            let why = "with nops it waits for something else than slots";
            found.missing.push(format!("slots: {why}"));
            return Ok(computed);
        }
        let how = format!(
            "measured: with {nops} nops more it waits for slots alone; less those, it takes {:.2} slots \
             of {width} a cycle",
            slots.best * wide
        );
        found.bounds.push(bound(SLOTS, slots, how));
        Ok(Some(slots))
    }
}

/// The kernel, with fewer sets where so many nops in each would not fit an op cache; none where too
/// few sets would be left for registers to be used in turn.
fn shortened(free: &Free, nops: usize) -> Option<Kernel> {
    if nops * free.kernel.sets <= NOPS {
        return Some(free.kernel.clone());
    }
    // A kernel may have twice the sets asked for.
    let sets = NOPS / nops / 2;
    let unroll_size = sets * free.multiset.len();
    let settings = Settings { unroll_size, ..Settings::default() };
    let kernel = Kernel::of(&free.multiset, &settings).ok()?;
    (sets >= SETS && nops * kernel.sets <= NOPS).then_some(kernel)
}

fn bound(name: &'static str, cycles: Cycles, how: String) -> Bound {
    Bound { name, cycles: cycles.best, low: cycles.low, high: cycles.high, how, refuted: false }
}

/// A bound that came with the block's report, unless the block takes less.
fn known(measurement: &Measurement, name: &str) -> Option<Cycles> {
    let bound = measurement.bounds.iter().find(|b| b.name == name && !b.refuted)?;
    Some(Cycles { best: bound.cycles, low: bound.low, high: bound.high })
}

/// The search for dependencies in the block as it was measured.
pub(super) fn search(measurement: &Measurement, window: u32) -> Search {
    let mut given = InitialValues::default();
    if let Some(values) = &measurement.values {
        given.registers = values.registers.map(Some);
        given.fill = Some(values.memory);
    }
    Search { window, runs: RUNS, initial_values: vec![given] }
}

/// Its slowest recurrence that goes through memory, or the slowest that does not.
fn chain(analysis: &Analysis, through_memory: bool) -> Option<&Recurrence> {
    let passes = |r: &Recurrence| r.path.iter().any(|way| way.kind == Kind::Memory);
    analysis.recurrences.iter().find(|r| passes(r) == through_memory)
}

impl Chain {
    fn of(recurrence: &Recurrence) -> Self {
        let Recurrence { cycles, low, high, .. } = *recurrence;
        Self { cycles: Cycles { best: cycles, low, high } }
    }
}

/// The time to be explained. Store forwarding takes longer where there are many pairs of store and
/// load, as in unrolled code: with values that go through memory it is the loop's time, if that is
/// the lower one.
fn time(measurement: &Measurement, through_memory: bool) -> (Cycles, &'static str) {
    let unrolled = measurement.throughput.as_ref().map(|t| Cycles::of(t, 1.0)).unwrap_or_default();
    let looped = measurement.forms.as_ref().map(|f| &f.looped);
    match looped.and_then(|f| Some((f, f.trusted()?))) {
        Some((form, best)) if through_memory && best < unrolled.best => {
            let (low, high) = (form.low.unwrap_or(best), form.high.unwrap_or(best));
            (Cycles { best, low, high }, "loop")
        }
        _ => (unrolled, "unrolled"),
    }
}

/// A recurrence as a bound, and what is left if it is broken.
fn dependency(recurrence: &Recurrence, through_memory: bool, found: &Found) -> Bound {
    let steps: Vec<String> =
        recurrence.path.iter().map(|way| found.code.text(way.reader)).collect();
    let per = match recurrence.iterations {
        0 | 1 => String::new(),
        n => format!(" in {n} iterations"),
    };
    let mut how = format!("{COMPUTED}: {} → again{per}", steps.join(" → "));
    let (name, broken, what) = match through_memory {
        true => (FORWARDING, found.evidence.apart, "memory kept apart"),
        false => {
            (DEPENDENCY, found.evidence.cut.map(|cut| cut.left), "chains through registers cut")
        }
    };
    if let Some(left) = broken {
        how += &format!("; measured with {what}: {:.2}", left.best);
    }
    bound(name, Chain::of(recurrence).cycles, how)
}

/// What loads take that wait for stores, where they do and no recurrence says so.
fn forwarding(found: &Found) -> Option<Bound> {
    let (apart, time) = (found.evidence.apart?, found.evidence.time);
    found.evidence.falls(apart).then(|| {
        let how = format!(
            "measured: with memory kept apart {:.2} cycles are left; its loads wait for its stores",
            apart.best
        );
        bound(FORWARDING, time, how)
    })
}
