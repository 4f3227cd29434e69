//! Measures microbenchmarks with the block measurer.

use super::catalog::Catalog;
use super::generator::{Microbenchmark, Settings};
use super::independence::check;
use super::multiset::{MAX_INSTRUCTIONS, Multiset};
use super::{AfterMoves, Cycles, FormCount, Measurement, SCHEMA};
use crate::{
    BlockMeasurer, Code, FormResult, Line, Measurement as BlockMeasurement, Options, Status, Values,
};
use iced_x86::Register;
use isa::code::Block;
use isa::names::{name, small};
use std::sync::Arc;
use tma::{Core, Result};

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
