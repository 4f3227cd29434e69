//! Why a block costs what it costs: its bounds, each measured by running a variant of it, and the
//! verdict which of them explains its time.
//!
//! | file | concern |
//! |---|---|
//! | `variants` | the block changed in one thing |
//! | `apart` | the block with its memory kept apart |
//! | `cut` | instructions that cut chains through registers |
//! | `evidence`, `broken` | measuring the variants; those with chains broken |
//! | `meetings` | stores and loads that meet by their initial values alone |
//! | `model` | which bound explains the time |
//! | `refuted` | bounds above the time |
//! | `nodes` | bounds under the names of the top-down tree |
//! | `what_if`, `budget` | chains broken and instructions left out, measured again; how long that may wait |
//!
//! docs/block-profiler.md, "Why it takes so long", has the method and its figures.

mod apart;
mod broken;
mod budget;
mod cut;
mod evidence;
mod meetings;
mod model;
mod nodes;
mod refuted;
mod variants;
mod what_if;

use model::with_jump;
pub use model::{Chain, Class, Cut, Cycles, Evidence, Judgement, judge};

use crate::microbench::{Bench, Settings};
use crate::{Init, Options, Profiler, Report, Status, Watch};
use isa::code::Block;
use isa::deps::memory::Given;
use isa::deps::{Analyser, Window};
use isa::latency::Latencies;
use std::sync::Arc;
use std::time::Duration;
use tma::{Core, Result};

/// How often a block that is unstable is measured again.
const AGAIN: usize = 2;

/// Explains blocks, one after the other; keeps a sandbox for the variants.
pub struct Explainer {
    bench: Bench,
    analyser: Analyser,
    core: Arc<Core>,
    watch: Watch,
    /// What a measurement may wait for a calm core, and all of a list of changes together.
    budget: Duration,
    /// Initial values that were asked for.
    known: Given,
}

/// What an explanation is made of besides the block.
struct Subject<'a> {
    block: &'a Block,
    report: &'a Report,
}

impl Explainer {
    /// Measures variants as `options` say on their core, whose latencies these are.
    pub fn new(options: &Options, latencies: Latencies) -> Self {
        // What is compared differs by 5 % and more: half the samples do, and whether the block keeps the
        // assumptions was judged when it was measured.
        let options = Options {
            explain: false,
            loop_form: false,
            counts: false,
            assumptions: false,
            ..options.clone()
        };
        let measures = options.passes * options.placements * options.rounds / 2;
        let settings = Settings { measures, total_insn: 0, ..Settings::default() };
        Self {
            bench: Bench::new(options.clone(), settings),
            analyser: Analyser::new(latencies),
            core: options.core.clone(),
            budget: options.budget,
            known: known(&options),
            watch: options.watch,
        }
    }

    /// Whoever holds `watch` may look on from now, and call the next explanation off: what was not
    /// measured by then is missing.
    pub fn watched(&mut self, watch: Watch) {
        self.bench.watched(watch.clone());
        self.watch = watch;
    }

    /// Adds bounds, verdict and nodes to `report`, the report of `block` by `profiler`; with
    /// `what_if`, the list of what lowers its time, too. Nothing is said of a block without a
    /// trusted number.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn explain(
        &mut self,
        profiler: &mut Profiler,
        block: &Block,
        report: &mut Report,
        what_if: bool,
    ) -> Result<()> {
        let unstable = self.again(profiler, block, report)?;
        match (report.status, &report.throughput) {
            (Status::Ok, Some(_)) => {}
            (_, Some(_)) => {
                nodes::not_explained(report, "there is no single number to explain");
                return Ok(());
            }
            _ => return Ok(()),
        }
        // The jump at the end is measured with the block; its bounds are those of the rest.
        let body = variants::body(block);
        let own = match &body {
            Some(body) => Some(profiler.measure(body)?),
            None => None,
        };
        let subject = Subject {
            block: body.as_ref().unwrap_or(block),
            report: own.as_ref().unwrap_or(report),
        };
        if subject.report.status != Status::Ok {
            let why = subject.report.reason.as_deref().unwrap_or("no reason").to_owned();
            nodes::not_explained(report, &format!("without its jump it is not `ok`: {why}"));
            return Ok(());
        }
        self.watch.begin("bounds".to_owned());
        let mut found = self.evidence(&subject)?;
        let meetings = self.meetings(&subject, &found);
        let mut judgement = judge(&found.evidence);
        if let (Some(_), Some(whole), Some(rest)) = (&body, cycles(report), cycles(subject.report))
        {
            judgement = with_jump(judgement, whole, rest);
        }
        if what_if {
            report.what_if = self.what_if(&subject, &found)?;
        }
        report.meetings = meetings;
        refuted::mark(&mut found.bounds, found.evidence.time);
        refuted::enter(report, &found.bounds, found.evidence.time);
        nodes::enter(report, &found, &judgement, body.is_some());
        if let Some(why) = unstable {
            report.hierarchy.verdict += &format!("; measured again, since at first {why}");
        }
        Ok(())
    }

    /// Measures a block again that is unstable, which neighbours do, too; if that helps, why it was.
    fn again(
        &mut self,
        profiler: &mut Profiler,
        block: &Block,
        report: &mut Report,
    ) -> Result<Option<String>> {
        for _ in 0..AGAIN {
            if report.status != Status::Unstable || self.watch.is_cancelled() {
                break;
            }
            let next = profiler.measure(block)?;
            if next.status == Status::Ok {
                let first = std::mem::replace(report, next);
                return Ok(Some(first.reason.unwrap_or_default()));
            }
        }
        Ok(None)
    }

    fn window(&self) -> u32 {
        Window::of(&self.core).entries
    }
}

/// What was asked for of initial values.
fn known(options: &Options) -> Given {
    let mut known = Given::default();
    for (place, value) in &options.init {
        match place {
            Init::Register(number) => known.registers[usize::from(*number) & 15] = Some(*value),
            Init::Memory => known.fill = Some(*value),
            Init::Vector => {}
        }
    }
    known
}

/// The headline of a report.
fn cycles(report: &Report) -> Option<Cycles> {
    report.throughput.as_ref().map(|t| Cycles { best: t.cycles, low: t.low, high: t.high })
}
