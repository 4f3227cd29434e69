//! The dependencies of a region, `tdtool.deps/1`, made from an analysis (text and graphs are views of it), and the
//! unmodelled instructions of a batch of blocks, counted.

use iced_x86::Mnemonic;
use isa::deps::memory::{AliasClass, Origin, Settings};
use isa::deps::recurrence::{Edge, Recurrence};
use isa::deps::{Analysis, Code, Kind, Order, Overlap};
use isa::effects::ArchReg;
use isa::latency::{Forward, Source};
use isa::names::small;
use serde::Serialize;
use std::collections::BTreeMap;

/// Analysed code, and how.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Subject {
    /// Name of the block, if it has one.
    pub name: Option<String>,
    /// Table of the microarchitecture whose processors are meant.
    pub uarch: Option<String>,
    /// Entries of the reorder buffer.
    pub window: u32,
    /// Source of that number.
    pub window_source: String,
    /// Where initial values come from, if any are given.
    pub seeded: Option<String>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
}

/// An instruction.
#[derive(Debug, Clone, Serialize)]
pub struct Instruction {
    /// Address as in the input.
    pub address: String,
    /// Intel syntax.
    pub text: String,
}

/// A dependency; addresses name instructions.
#[derive(Debug, Clone, Serialize)]
pub struct Dependency {
    /// The writer; of a false dependency, the earlier access.
    pub writer: String,
    /// The reader; of a false dependency, the later writer.
    pub reader: String,
    /// Iterations between.
    pub delta: u32,
    /// Kind of the carrier.
    pub kind: Kind,
    /// The place.
    pub through: String,
    /// For memory.
    pub overlap: Option<Overlap>,
    /// True (`raw`) or false (`war`, `waw`).
    pub order: Order,
    /// Positions in `instructions`: on a path an address may come twice.
    pub indices: [usize; 2],
    /// From the writer's result to the reader's; none where the value reaches no result.
    pub latency: Option<Cycles>,
}

/// A latency in core cycles.
#[derive(Debug, Clone, Serialize)]
pub struct Cycles {
    /// Least.
    pub low: f64,
    /// Most: of several results, or where it depends on circumstances.
    pub high: f64,
    /// Where it comes from.
    pub source: String,
}

/// A step of a recurrence.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    /// The instruction that reads a value and computes the next one.
    pub address: String,
    /// Its text.
    pub text: String,
    /// Its position in `instructions`.
    pub index: usize,
    /// Position of the writer.
    pub writer: usize,
    /// Where the value is read from.
    pub through: String,
    /// Kind of the carrier.
    pub kind: Kind,
    /// Iterations since it was written.
    pub delta: u32,
    /// How the store reaches the load, for memory.
    pub forwarding: Option<Forward>,
    /// Least cycles to the next value.
    pub low: f64,
    /// Most cycles.
    pub high: f64,
    /// Source of the latency.
    pub source: String,
}

impl Step {
    /// Whether it goes through this dependency.
    pub fn carries(&self, dependency: &Dependency) -> bool {
        [self.writer, self.index] == dependency.indices
            && self.delta == dependency.delta
            && self.through == dependency.through
    }
}

/// A loop-carried dependency cycle.
#[derive(Debug, Clone, Serialize)]
pub struct Cycle {
    /// Cycles an iteration takes at least; the same as `low`.
    pub cycles: f64,
    /// With the least latencies.
    pub low: f64,
    /// With the middles of the latencies' ranges: no bound.
    pub middle: f64,
    /// With the greatest.
    pub high: f64,
    /// Iterations that once around takes.
    pub iterations: u64,
    /// Once around.
    pub path: Vec<Step>,
}

/// Accesses that may alias: the region does not determine their addresses.
#[derive(Debug, Clone, Serialize)]
pub struct MayAlias {
    /// Accesses that store.
    pub stores: Vec<String>,
    /// Accesses that load or store elsewhere.
    pub others: Vec<String>,
    /// Source of the stores' addresses.
    pub stores_from: String,
    /// Source of the others' addresses.
    pub others_from: String,
    /// Whether one of the two is the stack: code that compilers make keeps the others off it, unless
    /// a local variable's address is passed on.
    pub stack: bool,
}

/// An instruction that is not completely modelled.
#[derive(Debug, Clone, Serialize)]
pub struct Unmodelled {
    /// The instruction.
    pub address: String,
    /// Its text.
    pub text: String,
    /// Why.
    pub reason: String,
}

/// The document.
#[derive(Debug, Clone, Serialize)]
pub struct Document {
    /// `tdtool.deps/1`.
    pub schema: &'static str,
    /// Analysed code.
    #[serde(flatten)]
    pub subject: Subject,
    /// Runs with random values of their own.
    pub runs: u32,
    /// Iterations of each.
    pub iterations: u32,
    /// In order.
    pub instructions: Vec<Instruction>,
    /// In order of reader.
    pub dependencies: Vec<Dependency>,
    /// The slowest first.
    pub recurrences: Vec<Cycle>,
    /// Pairs of groups of accesses.
    pub may_alias: Vec<MayAlias>,
    /// Effects that are incomplete.
    pub unmodelled: Vec<Unmodelled>,
    /// Unknown results: an address computed from one equals no other.
    pub unknown_results: Vec<Unmodelled>,
}

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
            through: self.code.register_name(d.reg, [d.first, d.second]),
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
            (Some(reg), _) => self.code.register_name(reg, [way.writer, way.reader]),
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

/// Why an integer result is unknown whose instruction's effects are complete.
const UNKNOWN: &str = "its integer result is not computed";

/// Instructions with incomplete effects, and those whose integer results are not computed.
#[derive(Debug, Clone, Default)]
pub struct Census {
    instructions: usize,
    counts: BTreeMap<(String, &'static str), usize>,
}

impl Census {
    /// Adds a block.
    pub fn add(&mut self, code: &Code, analysis: &Analysis) {
        self.instructions += code.instructions.len();
        for (number, reason) in analysis.unmodelled(code) {
            self.count(code, number, reason);
        }
        for number in &analysis.memory.opaque {
            if code.effects[*number].unmodelled.is_none() {
                self.count(code, *number, UNKNOWN);
            }
        }
    }

    fn count(&mut self, code: &Code, number: usize, reason: &'static str) {
        let instruction = &code.instructions[number];
        let mut name = match instruction.mnemonic() {
            Mnemonic::INVALID => String::new(),
            mnemonic => small(mnemonic),
        };
        if instruction.has_rep_prefix() || instruction.has_repne_prefix() {
            name.insert_str(0, "rep ");
        }
        *self.counts.entry((name, reason)).or_default() += 1;
    }

    /// Instructions of all blocks.
    pub fn instructions(&self) -> usize {
        self.instructions
    }

    /// Instruction, reason and number, the most frequent first.
    pub fn counts(&self) -> Vec<(&str, &'static str, usize)> {
        let mut all: Vec<_> = self.counts.iter().collect();
        all.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        all.into_iter().map(|((name, reason), count)| (name.as_str(), *reason, *count)).collect()
    }
}
