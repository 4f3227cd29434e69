//! An analysis → the document.

use super::rows::{
    Cycle, Cycles, Dependency, Document, Instruction, MayAlias, Step, Subject, Unmodelled,
};
use isa::deps::memory::{AliasClass, Origin, Settings};
use isa::deps::recurrence::{Edge, Recurrence};
use isa::deps::{Analysis, Code, Kind, Order};
use isa::effects::ArchReg;
use isa::latency::Source;

/// Most pairs of groups that are listed.
const MOST_PAIRS: usize = 4096;
/// Recurrences that are listed.
const MOST_RECURRENCES: usize = 8;

/// The document of an analysis; `all`: includes false dependencies.
pub fn document(
    code: &Code,
    analysis: &Analysis,
    settings: &Settings,
    subject: Subject,
    all: bool,
) -> Document {
    let writer = Writer { code };
    let instructions = (0..code.instructions.len())
        .map(|i| Instruction { address: writer.address(i), text: code.text(i) })
        .collect();
    let incomplete = analysis.unmodelled(code).map(|(i, why)| writer.unmodelled(i, why));
    let unknown =
        "its result is not computed: what depends on it counts as another value each time";
    let unknown_results =
        analysis.memory.opaque.iter().map(|i| writer.unmodelled(*i, unknown)).collect();
    Document {
        schema: "tdtool.deps/1",
        subject,
        runs: settings.runs,
        iterations: analysis.memory.iterations,
        instructions,
        dependencies: writer.dependencies(analysis, all),
        recurrences: (analysis.recurrences.iter())
            .take(MOST_RECURRENCES)
            .map(|r| writer.recurrence(r))
            .collect(),
        may_alias: writer.may_alias(&analysis.memory.classes),
        unmodelled: incomplete.collect(),
        unknown_results,
    }
}

fn source(of: Source) -> String {
    match of {
        Source::Measured => "measured on this machine".to_owned(),
        Source::Table(name) => name.to_owned(),
        Source::Assumed(why) => format!("assumed: {why}"),
    }
}

struct Writer<'a> {
    code: &'a Code,
}

impl Writer<'_> {
    fn address(&self, index: usize) -> String {
        format!("{:#x}", self.code.address(index))
    }

    fn unmodelled(&self, index: usize, reason: &str) -> Unmodelled {
        let (address, text) = (self.address(index), self.code.text(index));
        Unmodelled { address, text, reason: reason.to_owned() }
    }

    fn dependencies(&self, analysis: &Analysis, all: bool) -> Vec<Dependency> {
        let found = analysis.dependencies(self.code).into_iter().map(|d| Dependency {
            latency: analysis.latency(&d).map(|latency| Cycles {
                low: latency.low,
                high: latency.high,
                source: source(latency.source),
            }),
            writer: self.address(d.writer),
            reader: self.address(d.reader),
            delta: d.delta,
            kind: d.kind,
            through: d.through,
            overlap: d.overlap,
            order: Order::Raw,
            indices: [d.writer, d.reader],
        });
        let overwritten = if all { Analysis::false_dependencies(self.code) } else { Vec::new() };
        let kind = |reg: ArchReg| if reg.is_flag() { Kind::Flag } else { Kind::Register };
        let others = overwritten.into_iter().map(|d| Dependency {
            writer: self.address(d.first),
            reader: self.address(d.second),
            delta: d.delta,
            kind: kind(d.reg),
            through: d.reg.name(),
            overlap: None,
            order: d.order,
            indices: [d.first, d.second],
            latency: None,
        });
        found.chain(others).collect()
    }

    fn recurrence(&self, found: &Recurrence) -> Cycle {
        Cycle {
            cycles: found.low,
            low: found.low,
            middle: found.middle,
            high: found.high,
            iterations: found.iterations,
            path: found.path.iter().map(|way| self.step(way)).collect(),
        }
    }

    fn step(&self, way: &Edge) -> Step {
        let through = match (way.reg, way.forward) {
            (Some(reg), _) => reg.name(),
            (None, Some((access, _))) => self.code.memory_text(way.reader, access),
            (None, None) => String::new(),
        };
        Step {
            address: self.address(way.reader),
            text: self.code.text(way.reader),
            index: way.reader,
            writer: way.writer,
            through,
            kind: way.kind,
            delta: way.delta,
            forwarding: way.forward.map(|(_, forward)| forward),
            low: way.latency.low,
            high: way.latency.high,
            source: source(way.latency.source),
        }
    }

    fn may_alias(&self, classes: &[AliasClass]) -> Vec<MayAlias> {
        let addresses = |all: &[usize]| all.iter().map(|i| self.address(*i)).collect();
        let pairs = isa::deps::memory::may_alias_pairs(classes).take(MOST_PAIRS);
        pairs
            .map(|pair| {
                let (a, b) = (pair.stores, pair.others);
                let mut others: Vec<usize> = b.loads.clone();
                if pair.with_stores {
                    others.extend(&b.stores);
                }
                others.sort_unstable();
                others.dedup();
                MayAlias {
                    stores: addresses(&a.stores),
                    others: addresses(&others),
                    stores_from: self.origins(a),
                    others_from: self.origins(b),
                    stack: a.is_stack() != b.is_stack(),
                }
            })
            .collect()
    }

    fn origins(&self, class: &AliasClass) -> String {
        let name = |origin: &Origin| match origin {
            Origin::Register(number) => ArchReg::gpr(*number).name(),
            Origin::Load(index) => format!("what {} loads", self.address(*index)),
            Origin::SomeLoad => "a load".to_owned(),
            Origin::Opaque => "a result that is not computed".to_owned(),
        };
        match class.origins.len() {
            0 => "a constant".to_owned(),
            _ => class.origins.iter().map(name).collect::<Vec<_>>().join(", "),
        }
    }
}
