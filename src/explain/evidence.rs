//! Measuring what the verdict is found from.

use super::model::{Chain, Cycles, Evidence};
use super::variants::{filling, padded};
use super::{Explainer, Subject};
use crate::Result;
use crate::block::{Bound, Report, Status};
use crate::code::Block;
use crate::deps::memory::{Given, Settings as Search};
use crate::deps::{Analysis, Code, Kind, Overlap};
use crate::kernel::{Kernel, Multiset, Settings, measure};

/// Names of the bounds that are found here.
pub const PORTS: &str = "ports";
pub const SLOTS: &str = "slots";
pub const DEPENDENCY: &str = "dependency";
pub const FORWARDING: &str = "store-forwarding";
/// The front end's bound, which comes with the block's report.
pub const FRONT_END: &str = "front-end";

/// Random runs of the search for dependencies.
const RUNS: u32 = 3;

/// Everything that was found out.
pub struct Found {
    /// For the verdict.
    pub evidence: Evidence,
    /// The bounds that were measured here.
    pub bounds: Vec<Bound>,
    /// Dependencies and recurrences of the block as it was measured.
    pub analysis: Analysis,
    /// Its instructions.
    pub code: Code,
    /// Which form's time is explained.
    pub form: &'static str,
}

/// The block's instructions without dependencies, and what is left of them.
struct Free {
    cycles: Cycles,
    floor: Option<f64>,
    kernel: Kernel,
}

impl Explainer {
    /// The evidence about a block without a jump.
    pub(super) fn evidence(&mut self, subject: &Subject<'_>) -> Result<Found> {
        let code = Code::of_bytes(&subject.block.bytes, self.uarch.as_deref())?;
        let analysis = self.analyser.analyse(&code, &search(subject.report, self.window()));
        let chain = chain(&analysis);
        let (time, form) = time(subject.report, chain.is_some_and(|c| c.through_memory));
        let mut bounds = Vec::new();
        let free = self.free(subject.block, &mut bounds)?;
        let slots = self.slots(subject, free.as_ref(), time, &mut bounds)?;
        bounds.extend(chain.map(|c| dependency(c, &analysis, &code)));
        let front_end = subject.report.bounds.iter().find(|b| b.name == FRONT_END);
        let evidence = Evidence {
            time,
            front_end: front_end.map(|b| Cycles { best: b.cycles, low: b.low, high: b.high }),
            slots,
            free: free.as_ref().map(|f| f.cycles),
            floor: free.and_then(|f| f.floor),
            chain,
            blocked: analysis.memory.carried.iter().any(|c| c.overlap != Overlap::Full),
        };
        Ok(Found { evidence, bounds, analysis, code, form })
    }

    /// Its instruction forms with registers and memory of their own.
    fn free(&mut self, block: &Block, bounds: &mut Vec<Bound>) -> Result<Option<Free>> {
        let made =
            Multiset::of(block).and_then(|m| Ok((Kernel::of(&m, &self.settings(block))?, m)));
        let Ok((kernel, multiset)) = made else { return Ok(None) };
        self.bench.settings = self.settings(block);
        let report = measure(&mut self.bench, &multiset)?;
        let (Some(cycles), Status::Ok) = (report.cycles, report.status) else { return Ok(None) };
        let cycles = Cycles { best: cycles.cycles, low: cycles.low, high: cycles.high };
        let floor = report.bounded_by.as_ref().filter(|b| b.binding).map(|b| b.high);
        let mut how =
            "measured: the same instructions with registers and memory of their own".to_owned();
        if let Some(bounded) = &report.bounded_by {
            how += &format!(
                "; {} leave a chain of {:.2} cycles",
                bounded.through.join(", "),
                bounded.high
            );
        }
        bounds.push(bound(PORTS, cycles, how));
        Ok(Some(Free { cycles, floor, kernel }))
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
        time: Cycles,
        bounds: &mut Vec<Bound>,
    ) -> Result<Option<Cycles>> {
        let Some(width) = self.width else { return Ok(None) };
        let instructions = subject.block.instructions.len();
        let cycles = free.map_or(time, |f| f.cycles).best;
        let Some(nops) = filling(cycles, width, instructions) else {
            return Ok(computed(subject.report));
        };
        let (code, sets, values) = match (free, &subject.report.values) {
            (Some(free), _) => {
                (Block::decode(&free.kernel.bytes)?, free.kernel.sets, free.kernel.values.clone())
            }
            (None, Some(values)) => (subject.block.clone(), 1, values.clone()),
            (None, None) => return Ok(computed(subject.report)),
        };
        let Some(padded) = padded(&code, nops * sets) else {
            return Ok(computed(subject.report));
        };
        let report = self.bench.block(&padded.bytes, &values)?;
        let (Some(t), Status::Ok) = (&report.throughput, report.status) else {
            return Ok(computed(subject.report));
        };
        let wide = f64::from(width);
        let of = |cycles: f64| ((cycles / sets as f64 * wide - nops as f64) / wide).max(0.0);
        let slots = Cycles { best: of(t.cycles), low: of(t.low), high: of(t.high) };
        let how = format!(
            "measured: with {nops} nops more it waits for slots alone; less those, it takes {:.2} slots \
             of {width} a cycle",
            slots.best * wide
        );
        bounds.push(bound(SLOTS, slots, how));
        Ok(Some(slots))
    }
}

fn bound(name: &'static str, cycles: Cycles, how: String) -> Bound {
    Bound { name, cycles: cycles.best, low: cycles.low, high: cycles.high, how }
}

/// The bound of the pipeline's width as it was computed.
fn computed(report: &Report) -> Option<Cycles> {
    let width = report.bounds.iter().find(|b| b.name == "issue-width")?;
    Some(Cycles::exact(width.cycles))
}

/// The search for dependencies in the block as it was measured.
fn search(report: &Report, window: u32) -> Search {
    let mut given = Given::default();
    if let Some(values) = &report.values {
        given.registers = values.registers.map(Some);
        given.fill = Some(values.memory);
    }
    Search { window, runs: RUNS, given: vec![given] }
}

/// Its slowest recurrence.
fn chain(analysis: &Analysis) -> Option<Chain> {
    let slowest = analysis.recurrences.first()?;
    Some(Chain {
        cycles: Cycles { best: slowest.cycles, low: slowest.low, high: slowest.high },
        through_memory: slowest.path.iter().any(|way| way.kind == Kind::Memory),
    })
}

/// The time to be explained: of the loop form where values go through memory, since store
/// forwarding depends on how many pairs of store and load there are.
fn time(report: &Report, through_memory: bool) -> (Cycles, &'static str) {
    let looped = report.forms.as_ref().map(|f| &f.looped);
    if let Some((form, cycles)) = looped.and_then(|f| Some((f, f.trusted()?)))
        && through_memory
    {
        let (low, high) = (form.low.unwrap_or(cycles), form.high.unwrap_or(cycles));
        return (Cycles { best: cycles, low, high }, "loop");
    }
    let of = |t: &crate::block::Throughput| Cycles { best: t.cycles, low: t.low, high: t.high };
    (report.throughput.as_ref().map_or(Cycles::exact(0.0), of), "unrolled")
}

/// The slowest recurrence as a bound.
fn dependency(chain: Chain, analysis: &Analysis, code: &Code) -> Bound {
    let slowest = analysis.recurrences.first();
    let steps: Vec<String> = slowest
        .map(|r| {
            let step = |way: &crate::deps::recurrence::Way| code.text(way.reader);
            r.path.iter().map(step).collect()
        })
        .unwrap_or_default();
    let iterations = slowest.map_or(1, |r| r.iterations);
    let per = if iterations > 1 { format!(" in {iterations} iterations") } else { String::new() };
    let how = format!("computed from latencies: {} → again{per}", steps.join(" → "));
    let name = if chain.through_memory { FORWARDING } else { DEPENDENCY };
    bound(name, chain.cycles, how)
}
