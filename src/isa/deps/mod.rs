//! Data dependencies of a block through registers, flags and memory, and the latency bound of its
//! recurrences. A *recurrence* is a loop-carried dependency: a cycle of dependencies by which a value
//! depends on itself in an earlier iteration.
//!
//! | file | concern |
//! |---|---|
//! | `code` | the instructions of a block or of a path of blocks; kinds of dependencies |
//! | `register_deps` | dependencies through registers and flags |
//! | [`memory`] | dependencies through memory, found by simulation with random values |
//! | [`recurrence`] | loop-carried dependencies and their latency bounds |
//! | `critical_path` | the backward slice of an instruction, and its longest path |
//!
//! Time and memory are bounded by the lengths of the block and of the reorder buffer.

mod code;
mod critical_path;
pub mod memory;
pub mod recurrence;
mod register_deps;

use crate::effects::ArchReg;
use crate::latency::{Latencies, Latency, Output};
use memory::{Finder, MemoryDependencies, Settings};
use recurrence::{Edge, Recurrence};

pub use code::{Code, Kind, Overlap, Window};
pub use critical_path::{CriticalPath, critical_path};
pub use register_deps::{FalseDependency, Order, RegisterDependency};

/// A true dependency (read after write) between two instructions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dependency {
    /// Index of the writing instruction.
    pub writer: usize,
    /// Index of the reading instruction.
    pub reader: usize,
    /// Iterations from the write to the read; 0 within an iteration.
    pub delta: u32,
    /// The carrier.
    pub kind: Kind,
    /// The register, the flag group, or the memory operand as the reader writes it.
    pub through: String,
    /// For memory, how load and store overlap.
    pub overlap: Option<Overlap>,
    /// The register or flag group, if it is one.
    pub reg: Option<ArchReg>,
}

/// The result of the analysis of a region.
#[derive(Debug, Clone, Default)]
pub struct Analysis {
    /// Dependencies through registers and flags.
    pub register_deps: Vec<RegisterDependency>,
    /// Dependencies through memory, and accesses that may alias.
    pub memory: MemoryDependencies,
    /// Loop-carried dependencies, the one with the greatest lower bound first.
    pub recurrences: Vec<Recurrence>,
    /// The paths of values through dependencies, with their latencies.
    pub edges: Vec<Edge>,
}

/// Analyses regions; reuses its buffers between them.
///
/// ```
/// use isa::code::parse_hex;
/// use isa::deps::memory::Settings;
/// use isa::deps::{Analyser, Code, Kind, Window};
/// use isa::latency::Latencies;
/// use tma::Core;
///
/// let core = Core::modelled(&events::library(), "zen3")?;
/// let mut analyser = Analyser::new(Latencies::new(&core)?);
/// let settings =
///     Settings { window: Window::of(&core).entries, runs: 3, initial_values: Vec::new() };
///
/// // imul rax, rbx; add rax, rcx; add rdx, 8
/// let code = Code::of_bytes(&parse_hex("48 0f af c3, 48 01 c8, 48 83 c2 08")?, core.facts())?;
/// let analysis = analyser.analyse(&code, &settings);
/// // rax: 3 cycles of imul and 1 of add in every iteration (uops.info, Zen 3); rdx: 1.
/// let bounds: Vec<f64> = analysis.recurrences.iter().map(|r| r.low).collect();
/// assert_eq!(bounds, [4.0, 1.0]);
///
/// // mov rax, [rsi]; add rax, rcx; mov [rsi], rax: the value passes through memory.
/// let code = Code::of_bytes(&parse_hex("48 8b 06, 48 01 c8, 48 89 06")?, core.facts())?;
/// let all = analyser.analyse(&code, &settings).dependencies(&code);
/// let carried = all.iter().find(|d| d.kind == Kind::Memory).expect("through [rsi]");
/// assert_eq!((carried.writer, carried.reader, carried.delta), (2, 0, 1));
/// # Ok::<(), tma::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Analyser {
    finder: Finder,
    latencies: Latencies,
}

impl Analyser {
    /// An analyser with these latencies.
    pub fn new(latencies: Latencies) -> Self {
        Self { finder: Finder::default(), latencies }
    }

    /// The latencies that it computes with.
    pub fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// Dependencies and recurrences of `code`.
    pub fn analyse(&mut self, code: &Code, settings: &Settings) -> Analysis {
        let register_deps = register_deps::register_dependencies(code);
        let memory = self.finder.find(code, settings);
        let (recurrences, edges) =
            recurrence::recurrences(code, &register_deps, &memory.dependencies, &self.latencies);
        Analysis { register_deps, memory, recurrences, edges }
    }
}

impl Analysis {
    /// Every true dependency once, in order of reader.
    pub fn dependencies(&self, code: &Code) -> Vec<Dependency> {
        let register_deps = self.register_deps.iter().map(|link| Dependency {
            writer: link.writer,
            reader: link.reader,
            delta: link.delta,
            kind: if link.reg.is_flag() { Kind::Flag } else { Kind::Register },
            through: code.register_name(link.reg, [link.writer, link.reader]),
            overlap: None,
            reg: Some(link.reg),
        });
        let memory = self.memory.dependencies.iter().map(|c| Dependency {
            writer: c.writer,
            reader: c.reader,
            delta: c.delta,
            kind: Kind::Memory,
            through: code.memory_text(c.reader, c.access),
            overlap: Some(c.overlap),
            reg: None,
        });
        let mut all: Vec<Dependency> = register_deps.chain(memory).collect();
        all.sort_by(|a, b| (a.reader, a.delta, a.writer, a).cmp(&(b.reader, b.delta, b.writer, b)));
        all.dedup();
        all
    }

    /// The instructions whose effects are incomplete, with the reason. A repeated string instruction is
    /// not one of them if its count is known.
    pub fn unmodelled<'a>(
        &'a self,
        code: &'a Code,
    ) -> impl Iterator<Item = (usize, &'static str)> + 'a {
        let all = code.effects.iter().enumerate();
        let reasons = all.filter_map(|(i, effects)| effects.unmodelled.map(|why| (i, why)));
        reasons.filter(|(i, _)| !self.memory.repeated.contains(i))
    }

    /// The latency of a dependency, from the writer's result to those of the reader, forwarding
    /// included: a range if it has several results, flags aside if there are others. `None` if the value reaches none (the address of
    /// a store).
    pub fn latency(&self, of: &Dependency) -> Option<Latency> {
        let same = |edge: &&Edge| {
            (edge.writer, edge.reader, edge.delta, edge.kind)
                == (of.writer, of.reader, of.delta, of.kind)
                && edge.reg.is_none_or(|reg| Some(reg) == of.reg)
        };
        let into = |flags: bool| {
            let all = self.edges.iter().filter(same);
            let wanted = all.filter(move |edge| (edge.output == Output::Flags) == flags);
            wanted.map(|edge| edge.latency).reduce(Latency::or)
        };
        into(false).or_else(|| into(true))
    }

    /// Write-after-read and write-after-write dependencies.
    pub fn false_dependencies(code: &Code) -> Vec<FalseDependency> {
        register_deps::false_dependencies(code)
    }
}
