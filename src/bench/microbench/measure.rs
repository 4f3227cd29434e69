//! Running a kernel through the block profiler.

use super::catalog::Catalog;
use super::document::{Cycles, FormCount, Measurement, SCHEMA};
use super::generate::{Kernel, Settings};
use super::independence::check;
use super::multiset::Multiset;
use crate::{
    Code, FormResult, Line, Measurement as BlockMeasurement, Options, Profiler, Status, Values,
};
use isa::code::Block;
use std::sync::Arc;
use tma::{Core, Result};

/// Measures kernels and chains, one after the other, in a sandbox that it keeps.
pub struct Bench {
    profiler: Profiler,
    /// How much is run.
    pub settings: Settings,
    /// The core that is measured on.
    pub core: Arc<Core>,
}

impl Bench {
    /// A bench that measures as `options` say, but for initial values and how much is run.
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
        Self { profiler: Profiler::new(options), settings, core }
    }

    /// Whoever holds `watch` may look on from now, and call the next measurement off.
    pub fn set_progress(&mut self, watch: crate::Progress) {
        self.profiler.set_progress(watch);
    }

    /// How long each measurement may wait from now on for a core that nothing else uses.
    pub fn set_budget(&mut self, budget: std::time::Duration) {
        self.profiler.set_budget(budget);
    }

    /// Measures a block with these initial values.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn block(&mut self, bytes: &[u8], values: &Values) -> Result<BlockMeasurement> {
        self.profiler.set_values(values.clone());
        self.profiler.measure(&Block::decode(bytes)?)
    }
}

/// Measures a multiset.
///
/// # Errors
/// No kernel can be made of it, or the sandbox cannot be started.
pub fn measure(bench: &mut Bench, multiset: &Multiset) -> Result<Measurement> {
    let settings = &bench.settings.clone();
    let kernel = Kernel::of(multiset, settings)?;
    let independence = check(&kernel, &bench.core)?;
    let mut measurement = blank(&kernel, settings)?;
    measurement.dependencies = independence.dependencies;
    measurement.bounded_by = independence.bound;
    if let Some(wrong) = measurement.dependencies.iter().find(|found| !found.unavoidable) {
        measurement.reason =
            Some(format!("not independent: {} through {}", wrong.reader, wrong.through));
        return Ok(measurement);
    }
    let measured = bench.block(&kernel.bytes, &kernel.values)?;
    let sets = kernel.sets as f64;
    measurement.status = measured.status;
    measurement.reason = measured.reason;
    measurement.assumptions = measured.assumptions;
    if let Some(t) = &measured.throughput {
        measurement.clock = Some(t.clock);
        let cycles = Cycles { cycles: t.cycles / sets, low: t.low / sets, high: t.high / sets };
        measurement.ipc = (t.cycles > 0.0).then(|| kernel.forms.len() as f64 / t.cycles);
        if let Some(bound) = &mut measurement.bounded_by {
            bound.binding = cycles.cycles <= 1.1 * bound.high;
        }
        measurement.cycles = Some(cycles);
    }
    if let Some(forms) = &measured.forms {
        measurement.looped = whole(&forms.looped, sets);
        measurement.loop_reason = forms.looped.reason.clone();
    }
    Ok(measurement)
}

fn whole(form: &FormResult, sets: f64) -> Option<Cycles> {
    let (cycles, low, high) = (form.trusted()?, form.low?, form.high?);
    Some(Cycles { cycles: cycles / sets, low: low / sets, high: high / sets })
}

fn blank(kernel: &Kernel, settings: &Settings) -> Result<Measurement> {
    let block = Block::decode(&kernel.bytes)?;
    let count = kernel.multiset.len();
    let lines = block.instructions.iter().take(count).map(|inst| Line {
        offset: format!("{:#x}", inst.offset),
        bytes: inst.bytes.iter().map(|b| format!("{b:02x}")).collect(),
        text: inst.text.clone(),
    });
    let form = |(form, count): &(super::Form, usize)| FormCount {
        form: Catalog::name_of(*form),
        code: format!("{:?}", form.code),
        count: *count,
    };
    Ok(Measurement {
        schema: SCHEMA,
        what: "throughput",
        multiset: kernel.multiset.forms.iter().map(form).collect(),
        instructions: count,
        sets: kernel.sets,
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
        assumptions: Vec::new(),
    })
}
