//! The dependency graph: a node is the value that an instruction writes to a register, flag group or memory. An edge
//! leads from a value to one computed from it, with the latency between the two operands.
//!
//! The length of the arithmetic between a load and the store of its value counts: on Golden Cove, forwarding is slower
//! if it is a single cycle (docs/results/accuracy.md).

use super::forward::{self, ForwardClass};
use crate::deps::Kind;
use crate::deps::code::Code;
use crate::deps::memory::MemoryDependency;
use crate::deps::register_deps::RegisterDependency;
use crate::effects::{ArchReg, Paths, Write};
use crate::latency::{Forward, Input, Latencies, Latency, Output};
use iced_x86::Instruction;

/// The path of a value from its writer through the reader to the reader's result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge {
    /// Node of the value read.
    pub from: usize,
    /// Node of the value computed from it.
    pub to: usize,
    /// Index of the instruction that wrote it.
    pub writer: usize,
    /// Index of the reading instruction.
    pub reader: usize,
    /// Iterations between writer and reader.
    pub delta: u32,
    /// Carrier of the value.
    pub kind: Kind,
    /// The register or flag group, unless it is memory.
    pub reg: Option<crate::effects::ArchReg>,
    /// For memory: index of the reader's access that loads it, and the forwarding class.
    pub forward: Option<(usize, Forward)>,
    /// Where the computed value goes.
    pub output: Output,
    /// Latency from writer's result to reader's result, including forwarding.
    pub latency: Latency,
    /// Cycles of it, by midpoints, that a load takes: from its address to its value, or from the store that it reads.
    pub load: f64,
}

/// Nodes and edges.
#[derive(Debug, Default)]
pub struct Graph {
    /// Instruction of each node.
    pub nodes: Vec<usize>,
    /// Edges.
    pub edges: Vec<Edge>,
    /// First node of each instruction; the node of its stored value follows those of its writes.
    first: Vec<usize>,
}

impl Graph {
    /// The graph of `code`.
    pub fn of(
        code: &Code,
        register_deps: &[RegisterDependency],
        memory_deps: &[MemoryDependency],
        latencies: &Latencies,
    ) -> Self {
        let mut graph = Self::default();
        for (number, effects) in code.effects.iter().enumerate() {
            graph.first.push(graph.nodes.len());
            graph.nodes.resize(graph.nodes.len() + effects.writes.len() + 1, number);
        }
        for dep in register_deps {
            graph.add_register_dep(code, dep, latencies);
        }
        let forwards = graph.classes(code, memory_deps, latencies);
        for (dependency, forward) in memory_deps.iter().zip(forwards) {
            graph.add_memory_dep(code, dependency, forward, latencies);
        }
        graph
    }

    /// The forwarding class of each memory dependency.
    fn classes(
        &self,
        code: &Code,
        memory_deps: &[MemoryDependency],
        latencies: &Latencies,
    ) -> Vec<ForwardClass> {
        let mut store_paths = None;
        forward::classes(code, memory_deps, latencies, |number| {
            let store_paths = store_paths.get_or_insert_with(|| {
                let stored = memory_deps.iter().map(|c| self.stored(code, c.writer));
                StorePaths::of(self.nodes.len(), &self.edges, stored)
            });
            let (reader, outputs) =
                (memory_deps[number].reader, self.loaded(code, &memory_deps[number]));
            let (instruction, effects) = (&code.instructions[reader], &code.effects[reader]);
            let with_latency = |(node, output)| {
                (node, latencies.between(instruction, effects, Input::Memory, output).low)
            };
            store_paths.is_short(outputs.into_iter().map(with_latency).collect())
        })
    }

    /// The node of an instruction's stored value.
    fn stored(&self, code: &Code, instruction: usize) -> usize {
        self.first[instruction] + code.effects[instruction].writes.len()
    }

    /// The nodes that a loaded value flows to.
    fn loaded(&self, code: &Code, dependency: &MemoryDependency) -> Vec<(usize, Output)> {
        let effects = &code.effects[dependency.reader];
        let first = self.first[dependency.reader];
        let written = effects.writes.iter().enumerate();
        let mut nodes: Vec<(usize, Output)> = written
            .filter(|(_, write)| effects.loaded_flows(write))
            .map(|(number, write)| (first + number, Output::of(write)))
            .collect();
        if effects.memory.iter().any(|m| m.store) && effects.paths != Paths::Exchange {
            nodes.push((first + effects.writes.len(), Output::Memory));
        }
        nodes
    }

    fn add_register_dep(&mut self, code: &Code, dep: &RegisterDependency, latencies: &Latencies) {
        let (instruction, effects) = (&code.instructions[dep.reader], &code.effects[dep.reader]);
        let written = code.effects[dep.writer].writes.iter().position(|w| w.reg == dep.reg);
        let (Some(written), Some(read)) = (written, effects.reads.get(dep.read)) else { return };
        // Whether there is such a dependency is not known.
        let sure = |latency: Latency| match dep.reg == ArchReg::X87 {
            true => Latency { low: 0.0, ..latency },
            false => latency,
        };
        let loads =
            Input::of(read) == Some(Input::Address) && effects.memory.iter().any(|m| m.load);
        let load = loads.then(|| latencies.load(instruction, effects).middle());
        let edge = |to, output, latency: Latency| Edge {
            output,
            load: load.map_or(0.0, |cycles| cycles.min(latency.middle())),
            latency: sure(latency),
            from: self.first[dep.writer] + written,
            to,
            writer: dep.writer,
            reader: dep.reader,
            delta: dep.delta,
            kind: if dep.reg.is_flag() { Kind::Flag } else { Kind::Register },
            reg: Some(dep.reg),
            forward: None,
        };
        let mut edges = Vec::new();
        let producer = (&code.instructions[dep.writer], &code.effects[dep.writer]);
        let reader = (instruction, effects);
        for (number, write) in effects.writes.iter().enumerate() {
            if effects.flows(read, write) {
                let latency = latencies.following(producer, reader, read, Output::of(write));
                let latency = defined(instruction, write, latency);
                edges.push(edge(self.first[dep.reader] + number, Output::of(write), latency));
            }
        }
        if Input::of(read).is_some() && effects.flows_to_store(read) {
            let latency = latencies.following(producer, reader, read, Output::Memory);
            edges.push(edge(
                self.first[dep.reader] + effects.writes.len(),
                Output::Memory,
                latency,
            ));
        }
        self.edges.extend(edges);
    }

    fn add_memory_dep(
        &mut self,
        code: &Code,
        dependency: &MemoryDependency,
        forward: ForwardClass,
        latencies: &Latencies,
    ) {
        let reader = dependency.reader;
        let (instruction, effects) = (&code.instructions[reader], &code.effects[reader]);
        let from = self.stored(code, dependency.writer);
        let forwarding = forward.latency(latencies);
        for (to, output) in self.loaded(code, dependency) {
            let own = latencies.between(instruction, effects, Input::Memory, output);
            let source = match own.low == 0.0 && own.high == 0.0 {
                true => forwarding.source,
                false => own.source,
            };
            self.edges.push(Edge {
                from,
                to,
                writer: dependency.writer,
                reader,
                delta: dependency.delta,
                kind: Kind::Memory,
                reg: None,
                forward: Some((dependency.access, forward.least)),
                output,
                load: forwarding.middle(),
                latency: Latency {
                    low: forwarding.low + own.low,
                    high: forwarding.high + own.high,
                    source,
                },
            });
        }
    }
}

/// The latency to a result, but at least none if it is a flag group that the instruction only leaves
/// undefined: Zen 5 does not wait for `mul` in `mul rbx; cmove rbx,rsi`.
fn defined(instruction: &Instruction, write: &Write, latency: Latency) -> Latency {
    let has = |bits| ArchReg::flags(bits).any(|reg| reg == write.reg);
    let sets =
        instruction.rflags_written() | instruction.rflags_cleared() | instruction.rflags_set();
    match has(instruction.rflags_undefined()) && !has(sets) {
        true => Latency { low: 0.0, ..latency },
        false => latency,
    }
}

/// Paths of this many cycles or more are not short.
const LONG: f64 = 2.0;
/// Iterations that a path to the store may touch: it may cross one loop boundary.
const ITERATIONS: usize = 2;

/// The edges through registers and flags, by source node.
pub struct StorePaths {
    edges: Vec<Vec<(usize, f64, u32)>>,
    stored: Vec<bool>,
}

impl StorePaths {
    /// The paths of a graph with this many `nodes`; `stored` are the nodes that loads depend on.
    pub fn of(nodes: usize, edges: &[Edge], stored: impl Iterator<Item = usize>) -> Self {
        let mut paths = Self { edges: vec![Vec::new(); nodes], stored: vec![false; nodes] };
        for edge in edges {
            paths.edges[edge.from].push((edge.to, edge.latency.low, edge.delta));
        }
        for node in stored {
            paths.stored[node] = true;
        }
        paths
    }

    /// Whether the longest path to a store, from these nodes with their cycles after the load, is at
    /// least one and less than [`LONG`] cycles.
    pub fn is_short(&self, loaded: Vec<(usize, f64)>) -> bool {
        let mut most = vec![[None; ITERATIONS]; self.stored.len()];
        let mut ahead: Vec<(usize, f64, usize)> =
            loaded.into_iter().map(|(node, cycles)| (node, cycles, 0)).collect();
        let mut longest = 0.0;
        while let Some((node, cycles, iteration)) = ahead.pop() {
            // Clamping to `LONG` bounds the visits of a node.
            let cycles = f64::min(cycles, LONG);
            if iteration >= ITERATIONS || most[node][iteration].is_some_and(|m| m >= cycles) {
                continue;
            }
            most[node][iteration] = Some(cycles);
            if self.stored[node] {
                longest = f64::max(longest, cycles);
            }
            let next = self.edges[node].iter();
            ahead.extend(next.map(|(to, latency, delta)| {
                (*to, cycles + latency, iteration + usize::try_from(*delta).unwrap_or(ITERATIONS))
            }));
        }
        (1.0..LONG).contains(&longest)
    }
}
