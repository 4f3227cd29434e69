//! The graph of values: a node is what an instruction leaves in one register, in one group of
//! flags, or in memory; an edge leads from a value to those computed from it and takes the latency
//! between these two operands.

use super::between::Between;
use super::edge::Edge;
use super::forward::{self, Class};
use crate::deps::Kind;
use crate::deps::code::Code;
use crate::deps::links::Link;
use crate::deps::memory::Carried;
use crate::effects::Paths;
use crate::latency::{Input, Latencies, Latency, Output};

/// Nodes and edges.
#[derive(Debug, Default)]
pub struct Graph {
    /// Instruction of each node.
    pub nodes: Vec<usize>,
    /// Edges.
    pub ways: Vec<Edge>,
    /// First node of each instruction; what it stores comes behind what it writes.
    first: Vec<usize>,
}

impl Graph {
    /// The graph of `code`.
    pub fn of(code: &Code, links: &[Link], carried: &[Carried], latencies: &Latencies) -> Self {
        let mut graph = Self::default();
        for (number, effects) in code.effects.iter().enumerate() {
            graph.first.push(graph.nodes.len());
            graph.nodes.resize(graph.nodes.len() + effects.writes.len() + 1, number);
        }
        for link in links {
            graph.add_link(code, link, latencies);
        }
        let forwards = graph.classes(code, carried, latencies);
        for (dependency, forward) in carried.iter().zip(forwards) {
            graph.add_carried(code, dependency, forward, latencies);
        }
        graph
    }

    /// How each stored value reaches its load.
    fn classes(&self, code: &Code, carried: &[Carried], latencies: &Latencies) -> Vec<Class> {
        let mut between = None;
        forward::classes(code, carried, latencies, |number| {
            let between = between.get_or_insert_with(|| {
                let stored = carried.iter().map(|c| self.stored(code, c.writer));
                Between::of(self.nodes.len(), &self.ways, stored)
            });
            let (reader, outputs) = (carried[number].reader, self.loaded(code, &carried[number]));
            let (instruction, effects) = (&code.instructions[reader], &code.effects[reader]);
            let behind = |(node, output)| {
                (node, latencies.between(instruction, effects, Input::Memory, output).low)
            };
            between.is_short(outputs.into_iter().map(behind).collect())
        })
    }

    /// The node of what an instruction stores.
    fn stored(&self, code: &Code, instruction: usize) -> usize {
        self.first[instruction] + code.effects[instruction].writes.len()
    }

    /// The nodes that a loaded value leads to.
    fn loaded(&self, code: &Code, dependency: &Carried) -> Vec<(usize, Output)> {
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

    fn add_link(&mut self, code: &Code, link: &Link, latencies: &Latencies) {
        let (instruction, effects) = (&code.instructions[link.reader], &code.effects[link.reader]);
        let written = code.effects[link.writer].writes.iter().position(|w| w.place == link.place);
        let (Some(written), Some(read)) = (written, effects.reads.get(link.read)) else { return };
        let way = |to, latency| Edge {
            from: self.first[link.writer] + written,
            to,
            reader: link.reader,
            delta: link.delta,
            kind: if link.place.is_flag() { Kind::Flag } else { Kind::Register },
            place: Some(link.place),
            forward: None,
            latency,
        };
        let mut ways = Vec::new();
        let producer = (&code.instructions[link.writer], &code.effects[link.writer]);
        let reader = (instruction, effects);
        for (number, write) in effects.writes.iter().enumerate() {
            if effects.flows(read, write) {
                let latency = latencies.following(producer, reader, read, Output::of(write));
                ways.push(way(self.first[link.reader] + number, latency));
            }
        }
        if Input::of(read).is_some() && effects.stored(read) {
            let latency = latencies.following(producer, reader, read, Output::Memory);
            ways.push(way(self.first[link.reader] + effects.writes.len(), latency));
        }
        self.ways.extend(ways);
    }

    fn add_carried(
        &mut self,
        code: &Code,
        dependency: &Carried,
        forward: Class,
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
            self.ways.push(Edge {
                from,
                to,
                reader,
                delta: dependency.delta,
                kind: Kind::Memory,
                place: None,
                forward: Some((dependency.access, forward.least)),
                latency: Latency {
                    low: forwarding.low + own.low,
                    high: forwarding.high + own.high,
                    source,
                },
            });
        }
    }
}
