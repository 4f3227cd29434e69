//! A block predicted from tables: the largest of issue width, ports and loop-carried latency.

use crate::core_model::CoreModel;
use isa::code::Block;
use isa::deps::memory::Settings;
use isa::deps::recurrence::Recurrence;
use isa::deps::{Analyser, Code, Window};
use isa::latency::Source;
use isa::ports::{Ports, Uops, spread};
use report::documents::block::{
    CarriedLatency, IssueWidth, PortRow, PredictedBound, Prediction, Pressure,
};
use tma::Result;

/// Random runs of the analysis of memory dependencies that must agree.
const RUNS: u32 = 3;

/// Predicts blocks on one core, one after the other.
///
/// ```
/// use engine::core_model::CoreModel;
/// use engine::predict::Predictor;
/// use isa::code::{Block, parse_hex};
/// use report::documents::block::PredictedBound;
/// use std::sync::Arc;
/// use tma::Core;
///
/// let core = Arc::new(Core::modelled(&engine::library(), "zen3")?);
/// let mut predictor = Predictor::new(CoreModel::new(core, None)?, false)?;
/// // imul rax, rbx; add rax, rcx: a latency of 3 + 1 (uops.info, Zen 3), far above two µops.
/// let prediction = predictor.predict(&Block::decode(&parse_hex("48 0f af c3, 48 01 c8")?)?);
/// assert_eq!((prediction.cycles, prediction.bound), (Some(4.0), Some(PredictedBound::Recurrence)));
/// // imul needs the one multiplier in every iteration.
/// assert_eq!(prediction.ports.map(|ports| ports.cycles), Some(1.0));
/// # Ok::<(), tma::Error>(())
/// ```
pub struct Predictor {
    model: CoreModel,
    ports: Option<Ports>,
    analyser: Analyser,
    measured_core: bool,
}

impl Predictor {
    /// A predictor for the core of `model`; `measured_core` says whether measurements beside it are
    /// of that core.
    ///
    /// # Errors
    /// The table of ports cannot be read.
    pub fn new(model: CoreModel, measured_core: bool) -> Result<Self> {
        let ports = Ports::of(&model.core)?;
        let analyser = Analyser::new(model.latencies.clone());
        Ok(Self { model, ports, analyser, measured_core })
    }

    /// Whether the core has a table of ports.
    pub fn has_ports(&self) -> bool {
        self.ports.is_some()
    }

    /// The prediction for a block that runs as a loop.
    pub fn predict(&mut self, block: &Block) -> Prediction {
        let core = &self.model.core;
        let code = Code::of_block(block, core.facts());
        let uops = self.ports.as_ref().map(|ports| ports.uops(&code.instructions, &code.effects));
        let pressure = self.ports.as_ref().zip(uops.as_ref()).map(|(p, u)| pressure(&code, p, u));
        let issue_width = core.width().zip(uops.as_ref()).map(|(width, uops)| {
            let slots = uops.iter().flatten().map(|u| u.slots).sum::<f64>();
            IssueWidth { cycles: slots / f64::from(width), slots, width }
        });
        let recurrence = self.recurrence(&code);
        let is_unknown = |(at, uops): (usize, &Option<Uops>)| uops.is_none().then(|| code.text(at));
        let unknown = uops.iter().flatten().enumerate().filter_map(is_unknown).collect();
        let parts = [
            (PredictedBound::IssueWidth, issue_width.as_ref().map(|w| w.cycles)),
            (PredictedBound::Ports, pressure.as_ref().map(|p| p.cycles)),
            (PredictedBound::Recurrence, recurrence.as_ref().map(|r| r.cycles)),
        ];
        let known = parts.iter().filter_map(|(bound, cycles)| Some((*bound, (*cycles)?)));
        let largest = known.reduce(|a, b| if b.1 > a.1 { b } else { a });
        let core = &self.model.core;
        Prediction {
            kind: "predicted",
            uarch: core.uarch().unwrap_or("unknown").to_owned(),
            title: core.table.as_ref().map(|t| t.title.clone()).unwrap_or_default(),
            measured_core: self.measured_core && !core.foreign,
            cycles: largest.map(|(_, cycles)| cycles),
            bound: largest.map(|(bound, _)| bound),
            issue_width,
            ports: pressure,
            recurrence,
            unknown,
            missing: self.missing(),
        }
    }

    fn recurrence(&mut self, code: &Code) -> Option<CarriedLatency> {
        let window = Window::of(&self.model.core).entries;
        let settings = Settings { window, runs: RUNS, initial_values: Vec::new() };
        let found = self.analyser.analyse(code, &settings).recurrences;
        let slowest = found.iter().max_by(|a, b| a.low.total_cmp(&b.low));
        slowest.map(|r: &Recurrence| CarriedLatency {
            cycles: r.low,
            high: r.high,
            path: r.path.iter().map(|step| code.text(step.reader)).collect(),
            assumed: r.path.iter().any(|step| matches!(step.latency.source, Source::Assumed(_))),
        })
    }

    fn missing(&self) -> Vec<String> {
        let core = &self.model.core;
        let name = core.uarch().map_or("no table".to_owned(), |name| format!("table {name}"));
        let mut missing = Vec::new();
        if self.ports.is_none() {
            missing
                .push(format!("{name} has no ports: issue slots and port pressure are not known"));
        }
        if core.latencies.is_none() {
            missing.push(format!("{name} has no latencies: assumed ranges are used"));
        }
        missing
    }
}

fn pressure(code: &Code, ports: &Ports, uops: &[Option<Uops>]) -> Pressure {
    let spread = spread(uops, ports.names().len());
    let rows = uops.iter().zip(spread.rows).enumerate();
    let row = |(at, (uops, cycles)): (usize, (&Option<Uops>, Vec<f64>))| PortRow {
        text: code.text(at),
        slots: uops.as_ref().map(|u| u.slots),
        uops: uops.as_ref().map(|u| ports.text(u)),
        without: uops.as_ref().and_then(|u| u.without),
        source: uops.as_ref().map(|u| u.source.clone()),
        cycles: if uops.is_some() { cycles } else { Vec::new() },
    };
    let mut sources: Vec<String> = Vec::new();
    for uops in uops.iter().flatten().filter(|u| u.without.is_none()) {
        if !sources.contains(&uops.source) {
            sources.push(uops.source.clone());
        }
    }
    Pressure {
        cycles: spread.bound,
        names: ports.names().to_vec(),
        instructions: rows.map(row).collect(),
        total: spread.total,
        sources,
    }
}
