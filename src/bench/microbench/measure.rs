//! Measures microbenchmarks with the block measurer, checks them for dependencies, and computes the latency bound
//! of those that remain.

use super::catalog::Catalog;
use super::generator::{Microbenchmark, Settings};
use super::multiset::{MAX_INSTRUCTIONS, Multiset};
use super::operand::Operand;
use super::{AfterMoves, Cycles, Dependency, FormCount, LatencyBound, Measurement, SCHEMA};
use crate::{
    BlockMeasurer, Code, FormResult, Line, Measurement as BlockMeasurement, Options, Status, Values,
};
use iced_x86::Register;
use isa::code::Block;
use isa::deps::memory::Settings as Search;
use isa::deps::recurrence::Recurrence;
use isa::deps::{Analyser, Analysis, Code as Analysed, RegisterDependency, Window};
use isa::effects::ArchReg;
use isa::latency::{Input, Latencies, Source};
use isa::names::{name, small};
use std::collections::BTreeSet;
use std::sync::Arc;
use tma::{Core, Result};

/// Random runs of the analysis; addresses are one base plus displacements, so any values will do.
const RUNS: u32 = 3;

/// Measures microbenchmarks and dependency chains, one after the other, in one sandbox.
pub struct Bench {
    measurer: BlockMeasurer,
    /// Size of each measurement.
    pub settings: Settings,
    /// The core measured on.
    pub core: Arc<Core>,
}

impl Bench {
    /// A bench that measures with `options`, except for initial values and size.
    pub fn new(options: Options, settings: Settings) -> Self {
        let each = options.passes.max(1) * options.placements.max(1);
        let options = Options {
            preset: None,
            init: Vec::new(),
            rounds: settings.measures.div_ceil(each).clamp(4, 254),
            min_instructions: settings.total_insn,
            reseed: false,
            ..options
        };
        let core = options.core.clone();
        Self { measurer: BlockMeasurer::new(options), settings, core }
    }

    /// Reports to `progress` from now on, which can also cancel the next measurement.
    pub fn set_progress(&mut self, progress: crate::Progress) {
        self.measurer.set_progress(progress);
    }

    /// Limits how long each measurement may wait for an uncontended core.
    pub fn set_budget(&mut self, budget: std::time::Duration) {
        self.measurer.set_budget(budget);
    }

    /// Whether subnormals are computed exactly from now on.
    pub fn set_gradual_underflow(&mut self, exact: bool) {
        self.measurer.set_gradual_underflow(exact);
    }

    /// Ends later measurements at `end` at the latest.
    pub fn set_end(&mut self, end: Option<std::time::Instant>) {
        self.measurer.set_end(end);
    }

    /// Measures a block with these initial values.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn block(&mut self, bytes: &[u8], values: &Values) -> Result<BlockMeasurement> {
        self.measurer.set_values(values.clone());
        self.measurer.measure(&Block::decode(bytes)?)
    }
}

/// Measures a multiset.
///
/// # Errors
/// The forms cannot be measured together, or the sandbox cannot be started.
pub fn measure(bench: &mut Bench, multiset: &Multiset) -> Result<Measurement> {
    let settings = &bench.settings.clone();
    let benchmark = Microbenchmark::of(multiset, settings)?;
    let independence = check(&benchmark, &bench.core)?;
    let mut measurement = blank(&benchmark, settings)?;
    measurement.dependencies = independence.dependencies;
    measurement.bounded_by = independence.bound;
    if let Some(wrong) = measurement.dependencies.iter().find(|found| !found.unavoidable) {
        measurement.reason =
            Some(format!("not independent: {} through {}", wrong.reader, wrong.through));
        return Ok(measurement);
    }
    let measured = bench.block(&benchmark.bytes, &benchmark.values)?;
    let sets = benchmark.sets as f64;
    measurement.status = measured.status;
    measurement.reason = measured.reason;
    measurement.assumptions = measured.assumptions;
    if let Some(t) = &measured.throughput {
        measurement.clock = Some(t.clock);
        let cycles = Cycles { cycles: t.cycles / sets, low: t.low / sets, high: t.high / sets };
        measurement.ipc = (t.cycles > 0.0).then(|| benchmark.forms.len() as f64 / t.cycles);
        if let Some(bound) = &mut measurement.bounded_by {
            bound.binding = cycles.cycles <= 1.1 * bound.high;
        }
        measurement.cycles = Some(cycles);
    }
    if let Some(forms) = &measured.forms {
        measurement.looped = per_multiset(&forms.looped, sets);
        measurement.loop_reason = forms.looped.reason.clone();
    }
    if measurement.bounded_by.as_ref().is_some_and(|bound| bound.binding) {
        measurement.after_moves = after_moves(bench, multiset, &independence.implicit)?;
    }
    Ok(measurement)
}

/// Measures with these registers set ahead of each instance; `None` without registers, with too much code, or if
/// the result is not reproduced.
fn after_moves(
    bench: &mut Bench,
    multiset: &Multiset,
    registers: &[Register],
) -> Result<Option<AfterMoves>> {
    if registers.is_empty() || multiset.len() * (1 + registers.len()) > MAX_INSTRUCTIONS {
        return Ok(None);
    }
    let unroll_size = bench.settings.unroll_size / (1 + registers.len());
    let settings = Settings { unroll_size, ..bench.settings };
    let benchmark = Microbenchmark::after_moves(multiset, &settings, registers)?;
    let measured = bench.block(&benchmark.bytes, &benchmark.values)?;
    let sets = benchmark.sets as f64;
    let cycles = measured.throughput.filter(|_| measured.status == Status::Ok);
    Ok(cycles.map(|t| AfterMoves {
        registers: registers.iter().map(|r| small(*r)).collect(),
        cycles: Cycles { cycles: t.cycles / sets, low: t.low / sets, high: t.high / sets },
    }))
}

fn per_multiset(form: &FormResult, sets: f64) -> Option<Cycles> {
    let (cycles, low, high) = (form.trusted()?, form.low?, form.high?);
    Some(Cycles { cycles: cycles / sets, low: low / sets, high: high / sets })
}

fn blank(benchmark: &Microbenchmark, settings: &Settings) -> Result<Measurement> {
    let block = Block::decode(&benchmark.bytes)?;
    let count = benchmark.multiset.len();
    let lines = block.instructions.iter().take(count).map(|inst| Line::of(inst, None));
    let form = |(form, count): &(super::Form, usize)| FormCount {
        form: Catalog::name_of(*form),
        code: name(form.code),
        count: *count,
    };
    Ok(Measurement {
        schema: SCHEMA,
        what: "throughput",
        multiset: benchmark.multiset.forms.iter().map(form).collect(),
        instructions: count,
        sets: benchmark.sets,
        settings: *settings,
        code: Code { name: None, hex: block.hex(), instructions: lines.collect() },
        status: Status::Failed,
        reason: None,
        cycles: None,
        ipc: None,
        looped: None,
        loop_reason: None,
        clock: None,
        dependencies: Vec::new(),
        bounded_by: None,
        after_moves: None,
        assumptions: Vec::new(),
    })
}

/// A dependency between two instructions, within or across iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    writer: usize,
    reader: usize,
    /// `None` for memory.
    reg: Option<ArchReg>,
}

/// Result of the check.
#[derive(Debug, Clone)]
pub struct Independence {
    /// Dependencies, one for each pair of forms and carrier.
    pub dependencies: Vec<Dependency>,
    /// Their latency bound per multiset; none if none is loop-carried.
    pub bound: Option<LatencyBound>,
    /// General-purpose registers that forms use implicitly and that carry such dependencies.
    pub implicit: Vec<Register>,
}

/// Finds all dependencies of `benchmark` on `core`.
///
/// # Errors
/// Its code cannot be decoded.
pub fn check(benchmark: &Microbenchmark, core: &Core) -> Result<Independence> {
    let code = Analysed::of_bytes(&benchmark.bytes, core.facts())?;
    let settings =
        Search { window: Window::of(core).entries, runs: RUNS, initial_values: Vec::new() };
    let analysis = Analyser::new(Latencies::new(core)?).analyse(&code, &settings);
    let mut distinct: Vec<Dependency> = Vec::new();
    let mut implicit = Vec::new();
    let own = |edge: &Edge| {
        // The instruction that restores the stack pointer is not part of the multiset.
        let forms = benchmark.forms.len();
        edge.writer < forms && edge.reader < forms && edge.reg != Some(ArchReg::gpr(4))
    };
    for edge in edges(&code, &analysis).into_iter().filter(own) {
        let found = dependency(&edge, benchmark)?;
        let register = edge.reg.filter(|reg| is_implicit(benchmark, *reg));
        implicit.extend(register.and_then(|reg| Some(Register::RAX + u32::from(reg.as_gpr()?))));
        if !distinct.contains(&found) {
            distinct.push(found);
        }
    }
    let mut bound = bound(&analysis, benchmark.sets as f64).filter(|_| !distinct.is_empty());
    if let Some(bound) = &mut bound {
        let mut through: Vec<String> = distinct.iter().map(|found| found.through.clone()).collect();
        through.sort();
        through.dedup();
        bound.through = through;
    }
    implicit.sort();
    implicit.dedup();
    Ok(Independence { dependencies: distinct, bound, implicit })
}

/// Whether no pool has the register.
fn is_implicit(benchmark: &Microbenchmark, reg: ArchReg) -> bool {
    let pooled = |pool: &super::pools::Pool| {
        pool.read.iter().chain(&pool.write).any(|number| register_of(pool, *number) == Some(reg))
    };
    !benchmark.pools.all.iter().any(pooled)
}

/// Writer and reader pairs, whichever iteration writes.
fn edges(code: &Analysed, analysis: &Analysis) -> BTreeSet<Edge> {
    // Stack-engine updates have no latency.
    let is_timed = |dep: &&RegisterDependency| {
        let read = code.effects[dep.reader].reads.get(dep.read);
        read.is_some_and(|read| Input::of(read).is_some())
    };
    let links = analysis.register_deps.iter().filter(is_timed).map(|dep| Edge {
        writer: dep.writer,
        reader: dep.reader,
        reg: Some(dep.reg),
    });
    let memory = analysis.memory.dependencies.iter().map(|dep| Edge {
        writer: dep.writer,
        reader: dep.reader,
        reg: None,
    });
    links.chain(memory).collect()
}

/// An edge as the document reports it.
fn dependency(edge: &Edge, benchmark: &Microbenchmark) -> Result<Dependency> {
    let (writer, reader) = (benchmark.forms[edge.writer], benchmark.forms[edge.reader]);
    let name = |form| Catalog::name_of(form);
    let built = |through: String, rotation, unavoidable| Dependency {
        writer: name(writer),
        reader: name(reader),
        through,
        rotation,
        unavoidable,
    };
    let Some(reg) = edge.reg else {
        let slots = benchmark.forms.iter().filter(|form| **form == reader).count();
        return Ok(built("memory".to_owned(), slots, true));
    };
    if reg.is_flag() {
        return Ok(built(format!("flags {}", reg.name()), 1, true));
    }
    let class = |pool: &&super::pools::Pool, numbers: fn(&super::pools::Pool) -> &Vec<u32>| {
        numbers(pool).iter().any(|number| register_of(pool, *number) == Some(reg))
    };
    let written = benchmark.pools.all.iter().find(|pool| class(pool, |pool| &pool.write));
    let read_only = benchmark.pools.all.iter().any(|pool| class(&pool, |pool| &pool.read));
    Ok(match written {
        Some(pool) => {
            // Only forms that write such a register may read it, as a source or for a partial write.
            let usage = reader.usage()?;
            let operands = reader.operands();
            let own = operands.iter().zip(&usage.access).any(|(operand, access)| {
                matches!(operand, Operand::Register(class) if class.family() == pool.family)
                    && super::pools::is_written(*access)
            });
            built("destination".to_owned(), pool.write.len(), own)
        }
        None if read_only => built(format!("register {}", reg.name()), 1, false),
        None => built(format!("implicit {}", reg.name()), 1, true),
    })
}

fn register_of(pool: &super::pools::Pool, number: u32) -> Option<ArchReg> {
    use super::operand::{Class, Family};
    let class = match pool.family {
        Family::Gpr => Class::Gpr64,
        Family::Vector => Class::Zmm,
        Family::Mask => Class::Mask,
        Family::Mmx => Class::Mmx,
    };
    ArchReg::of(class.register(number))
}

/// The latency bound of the slowest loop-carried dependency per multiset.
fn bound(analysis: &Analysis, sets: f64) -> Option<LatencyBound> {
    let slowest = analysis.recurrences.first()?;
    let most = |value: fn(&Recurrence) -> f64| {
        analysis.recurrences.iter().map(value).fold(0.0, f64::max) / sets
    };
    let sources: BTreeSet<String> = slowest
        .path
        .iter()
        .map(|step| match step.latency.source {
            Source::Measured => "measured here".to_owned(),
            Source::Table(name) => name.to_owned(),
            Source::Assumed(why) => format!("assumed: {why}"),
        })
        .collect();
    Some(LatencyBound {
        low: most(|r| r.low),
        high: most(|r| r.high),
        through: Vec::new(),
        sources: sources.into_iter().collect(),
        binding: false,
    })
}
