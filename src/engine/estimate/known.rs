//! Inputs of an estimate: facts of the run, counts, measurements in isolation and recordings. Makes the document
//! before all of them are complete, and the document of evidence with everything that an estimate is computed from.

use super::ask::{EstimateAsk, Functions, Shared};
use super::few::without;
use super::further::{Counted, Wanted};
use super::isolated::{Found, Unmeasured};
use super::pieces::Function;
use super::tail::Pooled;
use crate::steps::{Callback, Places};
use isa::flow::{BasicBlock, Edge};
use profile::hot::Annotated;
use report::documents::Report;
use report::documents::estimate::{Estimate, Values};
use report::documents::evidence::{
    Alone, Around, Block, Code, CoreUsed, Evidence, HotCode, Line, Pinned, Records, SCHEMA,
    Sampled, Tail, To, Why,
};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};
use tma::Core;

/// Measurements in isolation, by function and piece.
pub(super) type Isolations = HashMap<(usize, usize), Result<Found, Unmeasured>>;

/// Everything measured.
#[derive(Clone, Copy)]
pub(super) struct Measured<'a, 'b> {
    pub counted: &'a Counted<'a>,
    pub isolated: &'b Isolations,
    pub recorded: &'b Recorded,
}

/// Recordings that were wanted beside counts, those that were made, and the code of which loads were.
#[derive(Clone, Default)]
pub(super) struct Recorded {
    pub wanted: Wanted,
    pub recorded: Wanted,
    pub places: Places,
    /// Nothing was left that loads could explain.
    pub is_explained: bool,
    /// A run on one CPU.
    pub pinned: Option<Pinned>,
    /// Functions with few samples each.
    pub tail: Option<Tail>,
}

/// The note on what an interrupted estimate lacks: `left` of all hot loops and blocks were not measured in isolation.
pub(super) fn missing(of: &Recorded, left: usize, all: usize) -> String {
    let Recorded { wanted, recorded, .. } = of;
    let lacks = [
        (left > 0, format!("{left} of {all} hot loops and blocks in isolation")),
        (wanted.branches && !recorded.branches, "mispredictions".to_owned()),
        (wanted.loads && !recorded.loads, "latencies of loads".to_owned()),
    ];
    let lacks: Vec<String> =
        lacks.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect();
    match lacks.is_empty() {
        true => "interrupted: whether two runs do the same is not known".to_owned(),
        false => format!(
            "interrupted: not known are {}; what they would explain is unexplained",
            lacks.join(", ")
        ),
    }
}

/// Inputs of the document, beside counts and measurements.
pub(super) struct Known<'a> {
    pub shared: &'a Shared<'a>,
    pub found: &'a Functions,
    pub functions: &'a [Function],
    /// Functions with few samples each, unless evidence is read again.
    pub pooled: Option<&'a Pooled>,
    pub command: &'a [String],
    /// The program's name.
    pub name: &'a str,
    pub ask: &'a EstimateAsk,
}

/// Time between two documents at least, as a multiple of the time that one takes: the estimate waits for it.
const REST: u32 = 10;

/// Shows documents, not too often.
pub(super) struct Shown {
    to: Option<Callback<Estimate>>,
    next: Instant,
}

impl Shown {
    /// None was shown.
    pub fn new(to: Option<Callback<Estimate>>) -> Self {
        Self { to, next: Instant::now() }
    }

    /// Shows the document that `make` gives; one that comes too soon only if the step is over.
    pub fn show(&mut self, is_over: bool, make: impl FnOnce() -> Estimate) {
        let begin = Instant::now();
        let Some(to) = self.to.as_ref().filter(|_| is_over || begin >= self.next) else { return };
        to.call(make());
        self.next = Instant::now() + (begin.elapsed() * REST).max(Duration::from_millis(200));
    }
}

/// All pieces: measured, or waiting to be.
pub(super) fn waiting(functions: &[Function], measured: &Isolations) -> Isolations {
    let pieces = |(at, of): (usize, &Function)| (0..of.pieces.len()).map(move |piece| (at, piece));
    let wait = |of| (of, Err(Unmeasured::Waits));
    let mut all: Isolations = functions.iter().enumerate().flat_map(pieces).map(wait).collect();
    all.extend(measured.iter().map(|(of, found)| (*of, found.clone())));
    all
}

/// Says of what was not recorded that it may be.
pub(super) fn not_yet(document: &mut Estimate, recorded: Wanted) {
    for row in document.loops.iter_mut().chain(&mut document.blocks) {
        for (name, is_known) in [("mispredicted", recorded.branches), ("loads", recorded.loads)] {
            if let Some(why) = row.reasons.get_mut(name).filter(|_| !is_known) {
                "not recorded yet".clone_into(why);
            }
        }
    }
}

/// The evidence that `known` is of; `document` has runs and notes so far, and `listed` gives the instructions of a
/// function of a file with their samples.
pub(super) fn kept(
    known: &Known,
    report: &Report,
    document: &Estimate,
    of: Measured,
    listed: &mut dyn FnMut(&str, u64) -> Option<Annotated>,
) -> Evidence {
    let shared = known.shared;
    let hot = &known.found.hot;
    let clock = shared.clock.clone();
    let functions = known.functions.iter().map(|function| {
        let hot = &hot.functions[function.number];
        code(function, lines(listed(&function.module, hot.range.start)))
    });
    let functions = functions.collect();
    Evidence {
        schema: SCHEMA.to_owned(),
        tool: report.tool.clone(),
        core: CoreUsed {
            width: shared.width.value,
            widths: (shared.width.error() > 0.0).then_some((shared.width.low, shared.width.high)),
            clock: (clock.ghz, clock.error, clock.reason),
            misprediction: shared.penalty,
            ..core(shared.core)
        },
        report: Some(Box::new(Report { estimate: None, ..report.clone() })),
        command: known.command.to_vec(),
        name: known.name.to_owned(),
        process: known.ask.process.is_some(),
        cycles: shared.cycles,
        samples: Sampled {
            event: hot.event.clone(),
            samples: hot.samples,
            seconds: hot.seconds,
            kernel: known.found.kernel,
            functions: hot.functions.iter().map(hot_code).collect(),
        },
        functions,
        count: match &of.recorded.tail {
            Some(_) => without(of.counted.count, hot),
            None => of.counted.count.clone(),
        },
        tail: of.recorded.tail.clone(),
        pinned: of.recorded.pinned.clone(),
        isolated: alone(known.functions, of.isolated),
        recorded: records(of.recorded),
        runs: document.runs.clone(),
        deterministic: document.deterministic,
        differs: document.differs,
        work: document.work,
        notes: (document.notes.clone(), Vec::new()),
        ..Evidence::default()
    }
}

fn core(of: &Core) -> CoreUsed {
    let shape = |cache: tma::Cache| (cache.ways, cache.sets);
    CoreUsed {
        processor: of.cpu.signature(),
        table: of.uarch().map(str::to_owned),
        alike: match (&of.shared, &of.identity) {
            (Some(_), Some(identity)) => identity.candidates.clone(),
            _ => Vec::new(),
        },
        l1_code: of.l1_code.map(shape),
        l1_data: of.l1_data.map(shape),
        answers: of.answers().and_then(|answers| serde_json::to_value(answers).ok()),
        ..CoreUsed::default()
    }
}

fn hot_code(of: &crate::hot::hottest::Hot) -> HotCode {
    HotCode {
        module: of.path.display().to_string(),
        name: of.name.clone(),
        range: (of.range.start, of.range.end),
        share: of.share,
        gap: of.gap.clone(),
    }
}

/// Samples and source lines of a function's instructions.
fn lines(code: Option<Annotated>) -> BTreeMap<u64, Line> {
    let all = code.into_iter().flat_map(|code| code.blocks).flat_map(|block| block.lines);
    all.map(|line| (line.address, Line { samples: line.samples, source: line.source }))
        .filter(|(_, line)| *line != Line::default())
        .collect()
}

fn code(of: &Function, lines: BTreeMap<u64, Line>) -> Code {
    let block = |(number, block): (usize, &BasicBlock)| Block {
        range: (block.start, block.end),
        to: block.edges.iter().map(to).collect(),
        innermost: block.innermost,
        unresolved: block.unresolved,
        samples: of.samples[number],
        entries: of.entries[number].clone().map_err(|why| Why(why.to_string())),
        latency: of.latency.get(number).copied().unwrap_or(0.0),
    };
    let around = |one: &isa::flow::Loop| Around {
        head: one.head,
        back: one.back_edges.clone(),
        blocks: one.blocks.clone(),
    };
    let mut runs: Vec<(u64, u64, String)> = Vec::new();
    for (at, inst) in &of.flow.instructions {
        let bytes: String = inst.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let after = at + inst.bytes.len() as u64;
        match runs.last_mut().filter(|(_, end, _)| end == at) {
            Some((_, end, text)) => {
                *end = after;
                text.push_str(&bytes);
            }
            None => runs.push((*at, after, bytes)),
        }
    }
    Code {
        number: of.number,
        stub: of.is_stub,
        blocks: of.flow.blocks.iter().enumerate().map(block).collect(),
        loops: of.flow.loops.iter().map(around).collect(),
        code: runs.into_iter().map(|(at, _, bytes)| (at, bytes)).collect(),
        lines,
    }
}

fn to(edge: &Edge) -> To {
    match edge {
        Edge::Block(number) => To::Block(*number),
        Edge::Outside(outside) => To::Outside { outside: *outside },
    }
}

fn alone(functions: &[Function], isolated: &Isolations) -> Vec<Alone> {
    let mut all: Vec<_> = isolated.iter().collect();
    all.sort_by_key(|(of, _)| **of);
    let row = |((function, piece), found): (&(usize, usize), &Result<Found, Unmeasured>)| {
        let blocks = functions[*function].pieces[*piece].blocks.clone();
        let known = found.as_ref().ok();
        let cycles = found.as_ref().map(|found| {
            let cycles = found.evidence.cycles;
            (cycles.value, cycles.low, cycles.high)
        });
        Alone {
            function: *function,
            blocks,
            cycles: cycles.map_err(|why| Why(why.to_string())),
            kind: known.map(|found| found.evidence.bound),
            bound: known.and_then(|found| found.bound),
            loads: known.map(|found| found.evidence.loads),
            own_values: known.is_some_and(|found| found.values == Values::Own),
            made_up: known.and_then(|found| match &found.values {
                Values::MadeUp(why) => why.clone(),
                Values::Own => None,
            }),
        }
    };
    all.into_iter().map(row).collect()
}

fn records(of: &Recorded) -> Records {
    let ranges =
        |all: &Vec<std::ops::Range<u64>>| all.iter().map(|one| (one.start, one.end)).collect();
    Records {
        branches: (of.wanted.branches, of.recorded.branches),
        loads: (of.wanted.loads, of.recorded.loads),
        is_explained: of.is_explained,
        places: of
            .places
            .iter()
            .map(|(path, all)| (path.display().to_string(), ranges(all)))
            .collect(),
    }
}
