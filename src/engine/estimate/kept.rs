//! Everything that an estimate was computed from, as a document.

use super::isolated::Found;
use super::known::{Isolated, Known, Measured, Recorded};
use super::pieces::Function;
use super::reasons::Unmeasured;
use isa::flow::{BasicBlock, Edge};
use profile::hot::Profile;
use report::documents::Report;
use report::documents::estimate::{Estimate, Values};
use report::documents::evidence::{
    Alone, Around, Block, Code, CoreUsed, Evidence, HotCode, Line, Records, SCHEMA, Sampled, To,
    Why,
};
use std::collections::BTreeMap;
use tma::Core;

/// The evidence that `known` is of; `document` has runs and notes so far.
pub(super) fn kept(
    known: &Known,
    report: &Report,
    document: &Estimate,
    of: Measured,
    profile: &mut Profile,
) -> Evidence {
    let shared = known.shared;
    let hot = &known.found.hot;
    let clock = shared.clock.clone();
    let functions = known.functions.iter().map(|function| {
        let hot = &hot.functions[function.number];
        code(function, lines(profile, &function.module, hot.range.start))
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
        count: of.counted.count.clone(),
        isolated: alone(known.functions, of.isolated),
        recorded: records(of.recorded),
        runs: document.runs.clone(),
        deterministic: document.deterministic,
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
fn lines(profile: &mut Profile, module: &str, start: u64) -> BTreeMap<u64, Line> {
    let is_it = |f: &profile::hot::HotFunction| f.path == module && f.start == start;
    let Some(index) = profile.functions.iter().position(is_it) else { return BTreeMap::new() };
    let code = profile.annotate(index);
    let all = code.blocks.into_iter().flat_map(|block| block.lines);
    all.map(|line| (line.address, Line { samples: line.samples, source: line.source }))
        .filter(|(_, line)| *line != Line::default())
        .collect()
}

fn code(of: &Function, lines: BTreeMap<u64, Line>) -> Code {
    let block = |(number, block): (usize, &BasicBlock)| Block {
        range: (block.start, block.end),
        to: block.edges.iter().map(to).collect(),
        innermost: block.innermost,
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

fn alone(functions: &[Function], isolated: &Isolated) -> Vec<Alone> {
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
