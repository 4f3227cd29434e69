//! Counts of an interval → rows of metrics. Values are those of the report's rows: the same evaluation.

use super::sockets::together;
use crate::topdown::live::CountedCore;
use fleet::metrics::{
    Count, Counted, Interval, NotMeasured, Ratio, RatioOf, Reason, Share, Subject,
};
use fleet::window::{Owner, Source};
use pmu::Software;
use smol_str::SmolStr;
use tma::counts::{Counts, GroupCounts};
use tma::quantity::Measured;
use tma::tables::{EventId, NodeId, Table};
use tma::tree::{Evaluation, Evaluator};

/// Deepest level of the metrics.
pub const DEEPEST: u32 = 2;
/// Infos of the tables with the number of slots.
const SLOTS: [&str; 2] = ["Info_Thread_SLOTS", "total_dispatch_slots"];
/// … with the instructions per cycle.
const IPC: [&str; 3] = ["Info_Thread_IPC", "Info_Core_IPC", "IPC"];
/// … with the frequency in GHz.
const FREQUENCY: [&str; 2] = ["Info_System_Core_Frequency", "GHz"];

/// Makes the rows of one measurement.
pub struct Rows<'a> {
    cores: &'a [CountedCore],
    evaluators: Vec<Evaluator<'a>>,
    owner: Owner,
}

impl<'a> Rows<'a> {
    /// Of the nodes of `cores`; `owner` is what is measured.
    pub fn new(cores: &'a [CountedCore], owner: Owner) -> Self {
        let evaluators = cores.iter().map(|core| Evaluator::new(&core.table)).collect();
        Self { cores, evaluators, owner }
    }

    /// The rows of an interval.
    pub fn of(&mut self, interval: &pmu::Interval) -> Interval {
        let seconds = (interval.span.1 - interval.span.0).as_secs_f64();
        let mut rows = Interval { seconds: Some(seconds), ..Interval::default() };
        if interval.counts.iter().any(|counts| counts.scope.is_some()) {
            let whole = together(&interval.counts);
            whole.iter().for_each(|counts| self.add(&mut rows, counts));
        }
        interval.counts.iter().for_each(|counts| self.add(&mut rows, counts));
        let subject = Subject { owner: self.owner.clone(), core: None };
        software(&mut rows, &subject, &interval.software);
        rows
    }

    fn add(&mut self, rows: &mut Interval, counts: &Counts) {
        let of = |core: &CountedCore| {
            self.cores.len() == 1 || counts.core.as_deref() == Some(&core.table.name)
        };
        let Some(at) = self.cores.iter().position(of) else { return };
        let core = &self.cores[at];
        let evaluation = self.evaluators[at].evaluate(counts);
        let part = Part { table: &core.table, counts, evaluation, subject: self.subject(counts) };
        part.slots(rows);
        let nodes = core.chosen.selection.tree.iter();
        nodes.for_each(|node| part.share(rows, *node));
        part.ratio(rows, &IPC, RatioOf::Ipc, 1.0);
        part.ratio(rows, &FREQUENCY, RatioOf::Frequency, 1e9);
        part.events(rows);
    }

    /// Whose counts they are: of a socket if its number is their scope.
    fn subject(&self, counts: &Counts) -> Subject {
        let scope = counts.scope.as_deref().and_then(|scope| scope.strip_prefix("socket"));
        let socket = scope.and_then(|number| number.parse().ok());
        let owner = Owner { socket, ..self.owner.clone() };
        Subject { owner, core: counts.core.as_deref().map(SmolStr::new) }
    }
}

/// The counts of one subject.
struct Part<'a> {
    table: &'a Table,
    counts: &'a Counts,
    evaluation: Evaluation,
    subject: Subject,
}

impl Part<'_> {
    fn value(&self, node: NodeId) -> &Measured {
        &self.evaluation.nodes[usize::from(node)].quantity.value
    }

    /// The first of these infos that the table has.
    fn info(&self, ids: &[&str]) -> Option<NodeId> {
        ids.iter().find_map(|id| self.table.node(id))
    }

    /// Slots: those of the table's info, else cycles times width.
    fn number_of_slots(&self) -> Option<f64> {
        if let Some(info) = self.info(&SLOTS) {
            return self.value(info).as_ref().ok().copied();
        }
        let cycles = self.scaled().find(|(event, _)| *event == self.table.clocks)?.1;
        Some(cycles * f64::from(self.table.pipeline.width))
    }

    /// Counted events, scaled, in every group that has them.
    fn scaled(&self) -> impl Iterator<Item = (EventId, f64)> {
        let of = |group: &GroupCounts| -> Vec<(EventId, f64)> {
            let events = group.events().enumerate();
            events.filter_map(|(at, event)| Some((event, group.total(at).ok()?))).collect()
        };
        self.counts.groups.iter().flat_map(of)
    }

    fn slots(&self, rows: &mut Interval) {
        let has_tree = self.table.depth() > 0;
        let Some(count) = self.number_of_slots().filter(|_| has_tree) else { return };
        let (subject, of) = (self.subject.clone(), Counted::Slots);
        rows.counts.push(Count { subject, of, count, source: Source::Counted });
    }

    fn share(&self, rows: &mut Interval, id: NodeId) {
        let node = &self.table.nodes[usize::from(id)];
        if node.level > DEEPEST {
            return;
        }
        let share = match self.value(id) {
            Ok(share) => *share,
            Err(why) => return self.missing(rows, node.id.clone(), why.into()),
        };
        let error = self.evaluation.nodes[usize::from(id)].quantity.error.as_ref().ok();
        let of_slots = |domain: &SmolStr| domain.starts_with("Slots");
        rows.shares.push(Share {
            subject: self.subject.clone(),
            node: node.id.clone(),
            level: node.level,
            share: Some(share),
            interval: error.map(|error| ((share - error).max(0.0), (share + error).min(1.0))),
            slots: self
                .number_of_slots()
                .filter(|_| node.spec.domain.as_ref().is_some_and(of_slots)),
            source: Source::Counted,
        });
    }

    fn ratio(&self, rows: &mut Interval, ids: &[&str], of: RatioOf, unit: f64) {
        let Some(id) = self.info(ids) else { return };
        let value = match self.value(id) {
            Ok(value) => value * unit,
            Err(why) => {
                let id = self.table.nodes[usize::from(id)].id.clone();
                return self.missing(rows, id, why.into());
            }
        };
        let subject = self.subject.clone();
        rows.ratios.push(Ratio { subject, of, value, source: Source::Counted });
    }

    fn events(&self, rows: &mut Interval) {
        let mut seen = Vec::new();
        for (event, count) in self.scaled() {
            if seen.contains(&event) {
                continue;
            }
            seen.push(event);
            let name = SmolStr::new(&self.table.events[usize::from(event)].name);
            let (subject, of) = (self.subject.clone(), Counted::Event(name));
            rows.counts.push(Count { subject, of, count, source: Source::Counted });
        }
    }

    fn missing(&self, rows: &mut Interval, what: SmolStr, reason: Reason) {
        rows.not_measured.push(NotMeasured { subject: self.subject.clone(), what, reason });
    }
}

/// Adds the counts that the kernel has without a PMU.
fn software(rows: &mut Interval, subject: &Subject, counted: &Software) {
    let all = [
        ("task_clock", &counted.task_clock),
        ("context_switches", &counted.context_switches),
        ("migrations", &counted.migrations),
        ("page_faults", &counted.page_faults),
        ("major_faults", &counted.major_faults),
    ];
    for (name, value) in all {
        let (subject, what) = (subject.clone(), SmolStr::new_static(name));
        let of = match name {
            "task_clock" => Counted::TaskClock,
            _ => Counted::Event(what.clone()),
        };
        match value {
            Ok(count) => {
                rows.counts.push(Count { subject, of, count: *count, source: Source::Counted });
            }
            Err(why) => rows.not_measured.push(NotMeasured { subject, what, reason: why.into() }),
        }
    }
}
