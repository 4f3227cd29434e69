//! Running a kernel through the block profiler.

use super::catalog::Catalog;
use super::document::{Cycles, FormCount, Report, SCHEMA};
use super::generate::{Kernel, Settings};
use super::independence::check;
use super::multiset::Multiset;
use crate::{Code, FormResult, Line, Options, Profiler, Report as Measured, Status, Values};
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
            least_instructions: settings.total_insn,
            reseed: false,
            ..options
        };
        let core = options.core.clone();
        Self { profiler: Profiler::new(options), settings, core }
    }

    /// Whoever holds `watch` may look on from now, and call the next measurement off.
    pub fn watched(&mut self, watch: crate::Watch) {
        self.profiler.watched(watch);
    }

    /// How long each measurement may wait from now on for a core that nothing else uses.
    pub fn allow(&mut self, budget: std::time::Duration) {
        self.profiler.allow(budget);
    }

    /// Measures a block with these initial values.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn block(&mut self, bytes: &[u8], values: &Values) -> Result<Measured> {
        self.profiler.start_with(values.clone());
        self.profiler.measure(&Block::decode(bytes)?)
    }
}

/// Measures a multiset.
///
/// # Errors
/// No kernel can be made of it, or the sandbox cannot be started.
pub fn measure(bench: &mut Bench, multiset: &Multiset) -> Result<Report> {
    let settings = &bench.settings.clone();
    let kernel = Kernel::of(multiset, settings)?;
    let independence = check(&kernel, &bench.core)?;
    let mut report = blank(&kernel, settings)?;
    report.dependencies = independence.dependencies;
    report.bounded_by = independence.bound;
    if let Some(wrong) = report.dependencies.iter().find(|found| !found.unavoidable) {
        report.reason =
            Some(format!("not independent: {} through {}", wrong.reader, wrong.through));
        return Ok(report);
    }
    let measured = bench.block(&kernel.bytes, &kernel.values)?;
    let sets = kernel.sets as f64;
    report.status = measured.status;
    report.reason = measured.reason;
    report.invariants = measured.invariants;
    if let Some(t) = &measured.throughput {
        report.clock = Some(t.clock);
        let cycles = Cycles { cycles: t.cycles / sets, low: t.low / sets, high: t.high / sets };
        report.ipc = (t.cycles > 0.0).then(|| kernel.forms.len() as f64 / t.cycles);
        if let Some(bound) = &mut report.bounded_by {
            bound.binding = cycles.cycles <= 1.1 * bound.high;
        }
        report.cycles = Some(cycles);
    }
    if let Some(forms) = &measured.forms {
        report.looped = whole(&forms.looped, sets);
        report.loop_reason = forms.looped.reason.clone();
    }
    Ok(report)
}

fn whole(form: &FormResult, sets: f64) -> Option<Cycles> {
    let (cycles, low, high) = (form.trusted()?, form.low?, form.high?);
    Some(Cycles { cycles: cycles / sets, low: low / sets, high: high / sets })
}

fn blank(kernel: &Kernel, settings: &Settings) -> Result<Report> {
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
    Ok(Report {
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
        invariants: Vec::new(),
    })
}
