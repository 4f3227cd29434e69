//! An estimate from its evidence, by the same code as the live one: no processor and no program are needed. A file may
//! hold anything, so it is checked first.

use super::ask::{Clock, EstimateAsk, Functions, Shared};
use super::further::{Counted, Uncounted, Wanted};
use super::isolated::{Found, Unmeasured, loads};
use super::known::{Isolations, Known, Measured, Recorded};
use super::pieces::{Function, Seen};
use super::rows::{self, evaluate};
use super::stubs;
use crate::core_model::CoreModel;
use crate::hot::hottest::{Hot, Hottest};
use crate::steps::Callback;
use estimate::{BoundBy, Interval, Isolated, Reason};
use isa::flow::{BasicBlock, Edge, Loop, stored};
use isa::ports::Ports;
use profile::hot::{Annotated, AnnotatedBlock, AnnotatedLine, HotBlock};
use report::documents::estimate::{Estimate, Values};
use report::documents::evidence::{
    Alone, Around, Block, Code, CoreUsed, Drawn, Evidence, Pinned, Records, SCHEMA, Sampled, To,
    Why,
};
use report::documents::{Report, Source};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tma::tables::Library;
use tma::{Cache, Core, Error, Result};

/// The report of `evidence`, with its estimate.
///
/// # Errors
/// Its parts do not belong together, or there is no table of its core.
pub fn replay(evidence: Evidence, library: &Library) -> Result<Report> {
    check(&evidence)?;
    let model = model(&evidence.core, library)?;
    let found = hot(&evidence.samples);
    let counted = Counted::new(&evidence.count);
    let functions = evidence.functions.iter().map(|code| function(code, &found, &counted));
    let mut functions: Vec<Function> = functions.collect::<Option<_>>().ok_or_else(unsound)?;
    stubs::enter(&mut functions, &counted);
    let isolated = isolated(&evidence.isolated, &functions);
    let (ghz, error, reason) = evidence.core.clock.clone();
    let shared = Shared {
        core: &model.core,
        ports: Ports::of(&model.core)?,
        latencies: model.latencies.clone(),
        width: {
            let CoreUsed { width, widths, .. } = evidence.core;
            let (low, high) = widths.unwrap_or((width, width));
            Interval::new(width, low, high)
        },
        cycles: evidence.cycles,
        samples: evidence.samples.samples,
        clock: Clock { ghz, error, reason },
        penalty: evidence.core.misprediction,
    };
    let process = evidence.process.then_some((0, Duration::ZERO));
    let ask = EstimateAsk {
        command: pmu::Command::default(),
        process,
        model: model.clone(),
        progress: Callback::new(|_| ()),
        so_far: None,
        keep: None,
        budget: None,
        since: None,
    };
    let mut document = Estimate {
        runs: evidence.runs.clone(),
        deterministic: evidence.deterministic,
        differs: evidence.differs,
        work: evidence.work,
        notes: evidence.notes.0.clone(),
        ..Estimate::default()
    };
    if let Some(why) = &evidence.failed {
        rows::unknown(&mut document, &found, why);
        return Ok(Report { estimate: Some(document), ..report(evidence.report) });
    }
    let (command, name) = (evidence.command.as_slice(), evidence.name.as_str());
    let functions = functions.as_slice();
    let known =
        Known { shared: &shared, found: &found, functions, pooled: None, command, name, ask: &ask };
    let of = Recorded {
        tail: evidence.tail.clone(),
        pinned: evidence.pinned.clone(),
        ..recorded(&evidence.recorded)
    };
    let samples = evidence.samples.samples;
    let mut listed = |module: &str, start: u64| {
        let is_it = |one: &&Function| {
            let hot = &found.hot.functions[one.number];
            one.module == module && hot.range.start == start
        };
        let at = functions.iter().position(|one| is_it(&one))?;
        Some(annotated(&functions[at], &evidence.functions[at], samples))
    };
    let measured = Measured { counted: &counted, isolated: &isolated, recorded: &of };
    evaluate(&known, &mut document, measured, &mut listed);
    document.notes.extend(evidence.notes.1.clone());
    Ok(Report { estimate: Some(document), ..report(evidence.report) })
}

fn report(kept: Option<Box<Report>>) -> Report {
    kept.map_or_else(|| Report::new(Source::Imported), |report| *report)
}

fn unsound() -> Error {
    Error::failed("cannot evaluate the evidence").because("its code and control flow disagree")
}

fn model(of: &CoreUsed, library: &Library) -> Result<CoreModel> {
    let core = match &of.table {
        Some(name) => Core::modelled(library, name)?,
        None => Core::in_common(library, &of.alike)?,
    };
    let shape = |(ways, sets)| Cache { ways, sets };
    let (l1_code, l1_data) = (of.l1_code.map(shape), of.l1_data.map(shape));
    CoreModel::new(Arc::new(Core { l1_code, l1_data, ..core }), None)
}

fn hot(of: &Sampled) -> Functions {
    let functions = of.functions.iter().map(|one| Hot {
        path: PathBuf::from(&one.module),
        name: one.name.clone(),
        range: one.range.0..one.range.1,
        share: one.share,
        gap: one.gap.clone(),
        blocks: Vec::new(),
    });
    let hot = Hottest {
        functions: functions.collect(),
        event: of.event.clone(),
        samples: of.samples,
        seconds: of.seconds,
        ..Hottest::default()
    };
    Functions { hot, flows: Vec::new(), parallel: None, task: None, kernel: of.kernel, few: None }
}

fn function(of: &Code, found: &Functions, counted: &Counted) -> Option<Function> {
    let block = |block: &Block| BasicBlock {
        start: block.range.0,
        end: block.range.1,
        edges: block.to.iter().map(edge).collect(),
        innermost: block.innermost,
        unresolved: block.unresolved,
        ..BasicBlock::default()
    };
    let around = |one: &Around| Loop {
        head: one.head,
        back_edges: one.back.clone(),
        blocks: one.blocks.clone(),
        ..Loop::default()
    };
    let code: Option<Vec<(u64, Vec<u8>)>> =
        of.code.iter().map(|(at, text)| Some((*at, bytes(text)?))).collect();
    let blocks = of.blocks.iter().map(block).collect();
    let flow = stored(blocks, of.loops.iter().map(around).collect(), &code?)?;
    let module = found.hot.functions.get(of.number)?.path.display().to_string();
    let samples = of.blocks.iter().map(|block| block.samples).collect();
    let entries = |block: &Block| block.entries.clone().map_err(|why| Uncounted::Told(why.0));
    let entries = of.blocks.iter().map(entries).collect();
    let latency = of.blocks.iter().map(|block| block.latency).collect();
    let seen = Seen { samples, entries, latency };
    let name = &found.hot.functions.get(of.number)?.name;
    let mut function = Function::of_flow(of.number, module, Arc::new(flow), seen, counted);
    function.is_stub = of.stub || stubs::is_stub(name, &function);
    Some(function)
}

fn edge(to: &To) -> Edge {
    match to {
        To::Block(number) => Edge::Block(*number),
        To::Outside { outside } => Edge::Outside(*outside),
    }
}

/// The bytes of a text in hex.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(|pair| (pair.len() == 2).then(|| byte(pair))?).collect()
}

/// Measurements of the pieces with the same blocks; other pieces were not measured.
fn isolated(all: &[Alone], functions: &[Function]) -> Isolations {
    let place = |one: &Alone| {
        let function = functions.get(one.function)?;
        // Older evidence has blocks that never run, too.
        let blocks = one.blocks.iter().copied().filter(|block| function.may_run(*block));
        let blocks: Vec<usize> = blocks.collect();
        let piece = function.pieces.iter().position(|piece| piece.blocks == blocks)?;
        Some(((one.function, piece), found(one)))
    };
    all.iter().filter_map(place).collect()
}

fn found(of: &Alone) -> std::result::Result<Found, Unmeasured> {
    let told = |why: &Why| Unmeasured::NoResult(Some(Reason::given(why.clone())));
    let (value, low, high) = *of.cycles.as_ref().map_err(told)?;
    let bound = of.kind.unwrap_or(BoundBy::Unknown);
    Ok(Found {
        evidence: Isolated {
            cycles: Interval::new(value, low, high),
            bound,
            loads: of.loads.unwrap_or_else(|| loads(of.bound, 0.0)),
            among: 0.0,
        },
        bound: of.bound,
        values: match of.own_values {
            true => Values::Own,
            false => Values::MadeUp(of.made_up.clone()),
        },
    })
}

fn recorded(of: &Records) -> Recorded {
    let ranges = |all: &Vec<(u64, u64)>| all.iter().map(|(from, to)| *from..*to).collect();
    let places = of.places.iter().map(|(path, all)| (PathBuf::from(path), ranges(all)));
    Recorded {
        wanted: Wanted { branches: of.branches.0, loads: of.loads.0 },
        recorded: Wanted { branches: of.branches.1, loads: of.loads.1 },
        places: Arc::new(places.collect()),
        is_explained: of.is_explained,
        pinned: None,
        tail: None,
    }
}

/// The code with its samples, as a profile lists it.
fn annotated(of: &Function, kept: &Code, samples: u64) -> Annotated {
    let block = |(number, block): (usize, &BasicBlock)| {
        let closed = of.flow.loops.iter().rev().find(|one| one.back_edges.contains(&number));
        let line = |(at, inst): &(u64, isa::code::Inst)| {
            let own = kept.lines.get(at).cloned().unwrap_or_default();
            AnnotatedLine {
                address: *at,
                bytes: inst.bytes.clone(),
                text: inst.text.clone(),
                samples: own.samples,
                share: own.samples as f64 / samples.max(1) as f64,
                source: own.source,
            }
        };
        AnnotatedBlock {
            block: HotBlock { start: block.start, end: block.end, ..HotBlock::default() },
            back_to: closed.map(|one| of.flow.blocks[one.head].start),
            lines: of.instructions(number).iter().map(line).collect(),
            ..AnnotatedBlock::default()
        }
    };
    let blocks = of.flow.blocks.iter().enumerate().map(block).collect();
    Annotated { blocks, ..Annotated::default() }
}

/// Most of a count: sums of these are exact.
const MOST: f64 = (1u64 << 53) as f64;
/// Members with addresses and code, which are checked where they are used.
const ADDRESSES: [&str; 4] = ["range", "code", "places", "outside"];
/// Ways and sets of a cache.
const SHAPES: std::ops::RangeInclusive<usize> = 1..=1 << 24;
/// Slots a cycle of any core.
const WIDTHS: std::ops::RangeInclusive<f64> = 1.0..=64.0;

/// Refuses what no estimate keeps.
///
/// # Errors
/// It is another document; numbers are out of range, or of things that are not there.
fn check(of: &Evidence) -> Result<()> {
    let refused = |why: String| {
        Err(Error::failed("cannot evaluate the evidence")
            .because(why)
            .hint("`tdtool report --estimate --evidence FILE -- COMMAND` writes it"))
    };
    if of.schema != SCHEMA {
        return refused(format!("its schema is `{}`, not `{SCHEMA}`", of.schema));
    }
    let value = serde_json::to_value(of).unwrap_or_default();
    if let Some(number) = out_of_range(&value) {
        return refused(format!("{number} is more than anything that is counted"));
    }
    let (ghz, error, _) = &of.core.clock;
    let numbers = [of.cycles, *ghz, *error, of.samples.seconds];
    let (least, most) = of.core.widths.unwrap_or((of.core.width, of.core.width));
    let widths = [of.core.width, least, most];
    if !widths.iter().all(|width| WIDTHS.contains(width))
        || numbers.iter().any(|number| *number < 0.0)
    {
        return refused("its width, clock or time is none".to_owned());
    }
    let is_whole = |run: &Pinned| {
        let samples = run.places.values().flatten().map(|(_, samples)| *samples as f64);
        run.task >= 0.0
            && (0.0..=1.0).contains(&run.kernel)
            && samples.sum::<f64>() <= run.samples as f64
    };
    if !of.pinned.iter().all(is_whole) {
        return refused(
            "its run on one CPU has more samples than were taken, or no time".to_owned(),
        );
    }
    let shapes = [of.core.l1_code, of.core.l1_data].into_iter().flatten();
    if shapes.into_iter().any(|(ways, sets)| !SHAPES.contains(&ways) || !SHAPES.contains(&sets)) {
        return refused("its first-level caches are of no size".to_owned());
    }
    let waits = of.isolated.iter().filter_map(|one| one.loads);
    let drawn = of.tail.iter().flat_map(|tail| &tail.blocks);
    let mut shares = waits.chain(drawn.clone().map(|one| one.waits));
    if !shares.all(|share| (0.0..=1.0).contains(&share)) {
        return refused("a share in it is not between 0 and 1".to_owned());
    }
    let is_half = |one: &Drawn| one.isolated.is_ok() != one.kind.is_some() || one.retired < 0.0;
    if drawn.clone().any(is_half) || of.tail.as_ref().is_some_and(|tail| tail.samples < 0.0) {
        return refused("its other code is not whole".to_owned());
    }
    if of.functions.iter().any(|one| one.number >= of.samples.functions.len()) {
        return refused("it has code of a function that is not there".to_owned());
    }
    Ok(())
}

/// A number that is too large.
fn out_of_range(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => {
            let is_large = number.as_f64().is_none_or(|number| number.abs() > MOST);
            is_large.then(|| number.to_string())
        }
        Value::Array(all) => all.iter().find_map(out_of_range),
        Value::Object(all) => {
            let checked = all.iter().filter(|(name, _)| !ADDRESSES.contains(&name.as_str()));
            checked.into_iter().find_map(|(_, one)| out_of_range(one))
        }
        _ => None,
    }
}
