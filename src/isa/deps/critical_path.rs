//! The backward slice of an instruction, and the longest path of latencies through it.
//!
//! The slice is walked back from the instruction through the iterations of the region, through registers, flags and
//! memory. Every instruction is taken once, as it was executed last before: at an instruction already in the slice the
//! walk stops, so that a loop-carried dependency adds one iteration of itself.

use super::Analysis;
use super::code::{Code, Kind};
use crate::effects::{ArchReg, Read, Role};
use crate::latency::{Input, Latencies, Latency, Output, Source};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Cycles from the start of a path to a result, at least and at most.
type Cycles = (f64, f64);

/// Dependencies of an instruction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CriticalPath {
    /// Indices of the instructions that it is computed by, itself aside.
    pub slice: BTreeSet<usize>,
    /// The path that takes longest, the instruction itself last.
    pub path: Vec<usize>,
    /// Cycles of the path, at least and at most; without those of the instruction itself if it is a branch.
    pub cycles: (f64, f64),
    /// Whether a latency on the path is assumed by the kind of the instruction.
    pub is_assumed: bool,
}

/// The part of an instruction's results that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Register(ArchReg),
    Stored,
    /// The address of a load.
    Address,
    /// The inputs of a branch.
    Branch,
}

/// An executed instruction: its iteration, counted back, and its index. The oldest is the smallest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Executed {
    back: Reverse<u32>,
    index: usize,
}

/// A way for a value into an instruction.
struct Way {
    from: Executed,
    how: Use,
    latency: Latency,
}

/// The slice of the instruction at index `root`: of a branch what it depends on, of a load what its address does.
/// `loaded` is the average latency of a load, where that is known; it stands in the place of the table's.
pub fn critical_path(
    code: &Code,
    analysis: &Analysis,
    latencies: &Latencies,
    root: usize,
    loaded: &dyn Fn(usize) -> Option<f64>,
) -> CriticalPath {
    let of = Walk { code, analysis, latencies, loaded };
    let is_load = of.code.effects.get(root).is_some_and(|e| e.memory.iter().any(|m| m.load));
    let is_branch = code.instructions.get(root).is_some_and(|i| i.is_jcc_short_or_near());
    let start = if is_load && !is_branch { Use::Address } else { Use::Branch };
    of.path(root, start)
}

struct Walk<'a> {
    code: &'a Code,
    analysis: &'a Analysis,
    latencies: &'a Latencies,
    loaded: &'a dyn Fn(usize) -> Option<f64>,
}

/// The longest path to a result: its cycles, where it comes from, whether a latency is assumed.
#[derive(Clone, Copy)]
struct Longest {
    cycles: Cycles,
    from: Option<usize>,
    is_assumed: bool,
}

impl Walk<'_> {
    fn path(&self, root: usize, start: Use) -> CriticalPath {
        let chosen = self.chosen(root, start);
        // The oldest first: what an instruction reads comes before it.
        let mut order: Vec<(Executed, &BTreeSet<Use>)> = chosen
            .iter()
            .map(|(&index, &(back, ref uses))| (Executed { back, index }, uses))
            .collect();
        order.sort_by_key(|(at, _)| *at);
        let mut longest: BTreeMap<usize, Longest> = BTreeMap::new();
        for (at, uses) in order {
            let own = self.longest(at, uses, &chosen, &longest);
            longest.insert(at.index, own);
        }
        let mut path = vec![root];
        while let Some(from) = path.last().and_then(|at| longest.get(at)?.from) {
            path.push(from);
        }
        path.reverse();
        let end = longest.get(&root);
        CriticalPath {
            slice: chosen.into_keys().filter(|index| *index != root).collect(),
            path,
            cycles: end.map_or((0.0, 0.0), |end| end.cycles),
            is_assumed: end.is_some_and(|end| end.is_assumed),
        }
    }

    /// The instructions of the slice at their last execution: iterations back, and the part of the result that is
    /// used.
    fn chosen(&self, root: usize, start: Use) -> BTreeMap<usize, (Reverse<u32>, BTreeSet<Use>)> {
        let mut chosen: BTreeMap<usize, (Reverse<u32>, BTreeSet<Use>)> = BTreeMap::new();
        let mut next = BinaryHeap::from([(Executed { back: Reverse(0), index: root }, start)]);
        while let Some((at, how)) = next.pop() {
            let (own, uses) = chosen.entry(at.index).or_insert((at.back, BTreeSet::new()));
            if *own != at.back || !uses.insert(how) {
                continue;
            }
            next.extend(self.ways(at, how).map(|way| (way.from, way.how)));
        }
        chosen
    }

    fn longest(
        &self,
        at: Executed,
        uses: &BTreeSet<Use>,
        chosen: &BTreeMap<usize, (Reverse<u32>, BTreeSet<Use>)>,
        known: &BTreeMap<usize, Longest>,
    ) -> Longest {
        let mut most = Longest { cycles: (0.0, 0.0), from: None, is_assumed: false };
        let mut offer = |from: Option<(usize, Longest)>, latency: Latency| {
            let before = from.map_or((0.0, 0.0), |(_, one)| one.cycles);
            let cycles = (before.0 + latency.low, before.1 + latency.high);
            if cycles.1 > most.cycles.1 || (most.from.is_none() && cycles.1 >= most.cycles.1) {
                let is_assumed = from.is_some_and(|(_, one)| one.is_assumed)
                    || (latency.high > 0.0 && matches!(latency.source, Source::Assumed(_)));
                most = Longest { cycles, from: from.map(|(index, _)| index), is_assumed };
            }
        };
        for how in uses {
            // Values from before the slice contribute only the instruction's own latency.
            self.reads(at.index, *how)
                .for_each(|read| offer(None, self.latency(at.index, read, *how)));
            self.own_load(at.index, *how).into_iter().for_each(|latency| offer(None, latency));
            for way in self.ways(at, *how) {
                let Executed { back, index } = way.from;
                let is_chosen = chosen.get(&index).is_some_and(|(own, _)| *own == back);
                if let Some(one) = known.get(&index).filter(|_| is_chosen) {
                    offer(Some((index, *one)), way.latency);
                }
            }
        }
        most
    }

    /// Sources of the values from which an instruction makes a result.
    fn ways(&self, at: Executed, how: Use) -> impl Iterator<Item = Way> + '_ {
        let Executed { back: Reverse(back), index } = at;
        let from =
            move |index, delta: u32| Executed { back: Reverse(back.saturating_add(delta)), index };
        let of_reader = move |reader: &usize| *reader == index;
        let registers = self.analysis.register_deps.iter().filter_map(move |one| {
            let read = self.code.effects.get(index)?.reads.get(one.read)?;
            let is_used = of_reader(&one.reader) && self.is_used(index, read, how);
            is_used.then(|| Way {
                from: from(one.writer, one.delta),
                how: Use::Register(one.reg),
                latency: self.latency(index, read, how),
            })
        });
        let stored = self.analysis.memory.dependencies.iter().filter_map(move |one| {
            let is_used = of_reader(&one.reader) && self.uses_loaded(index, how);
            is_used.then(|| Way {
                from: from(one.writer, one.delta),
                how: Use::Stored,
                latency: self.forwarded(one.writer, index, one.delta),
            })
        });
        registers.chain(stored)
    }

    fn reads(&self, index: usize, how: Use) -> impl Iterator<Item = &Read> {
        let all = self.code.effects.get(index).map(|effects| &effects.reads[..]);
        all.unwrap_or_default().iter().filter(move |read| self.is_used(index, read, how))
    }

    fn is_used(&self, index: usize, read: &Read, how: Use) -> bool {
        let Some(effects) = self.code.effects.get(index) else { return false };
        match how {
            Use::Register(reg) => {
                effects.writes.iter().any(|write| write.reg == reg && effects.flows(read, write))
            }
            Use::Stored => effects.flows_to_store(read),
            Use::Address => matches!(read.role, Role::Address(_)),
            Use::Branch => read.role != Role::Stack,
        }
    }

    fn uses_loaded(&self, index: usize, how: Use) -> bool {
        let Some(effects) = self.code.effects.get(index) else { return false };
        match how {
            Use::Register(reg) => {
                effects.writes.iter().any(|write| write.reg == reg && effects.loaded_flows(write))
            }
            Use::Stored | Use::Branch => true,
            Use::Address => false,
        }
    }

    /// From a value read to the result.
    fn latency(&self, index: usize, read: &Read, how: Use) -> Latency {
        let none = Latency { low: 0.0, high: 0.0, source: Source::Measured };
        let (Some(instruction), Some(effects)) =
            (self.code.instructions.get(index), self.code.effects.get(index))
        else {
            return none;
        };
        let Some(input) = Input::of(read) else { return none };
        if how == Use::Branch && instruction.is_jcc_short_or_near() {
            return none;
        }
        let output = output(how);
        match (self.loaded)(index).filter(|_| input == Input::Address) {
            Some(cycles) => self.with_load(index, cycles, how),
            None => self.latencies.between(instruction, effects, input, output),
        }
    }

    /// A load at an address that is known from the start.
    fn own_load(&self, index: usize, how: Use) -> Option<Latency> {
        let is_load = how == Use::Address || self.uses_loaded(index, how);
        (self.loaded)(index).filter(|_| is_load).map(|cycles| self.with_load(index, cycles, how))
    }

    /// An average latency, and the latency of computing from the loaded value, if anything follows the load.
    fn with_load(&self, index: usize, cycles: f64, how: Use) -> Latency {
        let own = self.code.instructions.get(index).zip(self.code.effects.get(index));
        let own = own.filter(|_| how != Use::Address);
        let output = output(how);
        let after = own.map(|(i, e)| self.latencies.between(i, e, Input::Memory, output));
        let after = after.unwrap_or(Latency { low: 0.0, high: 0.0, source: Source::Measured });
        Latency { low: cycles + after.low, high: cycles + after.high, source: after.source }
    }

    /// From a store through memory to the reader's result.
    fn forwarded(&self, writer: usize, reader: usize, delta: u32) -> Latency {
        let edges = self.analysis.edges.iter().filter(|edge| {
            (edge.writer, edge.reader, edge.delta, edge.kind)
                == (writer, reader, delta, Kind::Memory)
        });
        let longest = edges.map(|edge| edge.latency).max_by(|a, b| a.high.total_cmp(&b.high));
        longest.unwrap_or(Latency { low: 0.0, high: 0.0, source: Source::Measured })
    }
}

/// Where the result goes.
fn output(how: Use) -> Output {
    match how {
        Use::Register(reg) if reg.is_flag() => Output::Flags,
        Use::Stored => Output::Memory,
        Use::Register(_) | Use::Address | Use::Branch => Output::Register,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{Syntax, assemble};
    use crate::deps::memory::Settings;
    use crate::deps::{Analyser, Window};
    use tma::Core;

    /// The path of an instruction by index on Zen 3, whose latencies are those of uops.info: add 1, imul 3, shift 1,
    /// load of 64 bits 4 cycles.
    fn path(text: &str, root: usize, loaded: &[(usize, f64)]) -> CriticalPath {
        let core = Core::modelled(&events::library(), "zen3").unwrap();
        let latencies = Latencies::new(&core).unwrap();
        let code = Code::of_bytes(&assemble(text, Syntax::Intel).unwrap(), core.facts()).unwrap();
        let window = Window::of(&core).entries;
        let settings = Settings { window, runs: 3, initial_values: Vec::new() };
        let analysis = Analyser::new(latencies.clone()).analyse(&code, &settings);
        let of = |index| loaded.iter().find(|one| one.0 == index).map(|one| one.1);
        critical_path(&code, &analysis, &latencies, root, &of)
    }

    #[test]
    fn a_hashed_index_is_its_computation_and_the_load() {
        let text = "mov rax, rsi; imul rax, rdx; shr rax, 44; add rbx, [rdi+rax*8]; add rsi, 1";
        let found = path(text, 3, &[(3, 341.0)]);
        assert_eq!(found.slice, BTreeSet::from([0, 1, 2, 4]));
        assert_eq!(found.path, [4, 0, 1, 2, 3]);
        // 1 + 0 (eliminated) + 3 + 1, and the load.
        assert_eq!(found.cycles, (346.0, 346.0));
    }

    #[test]
    fn a_chase_is_taken_once() {
        let found = path("mov rax, [rax]; dec rcx", 0, &[(0, 200.0)]);
        assert_eq!((found.path, found.cycles), (vec![0], (200.0, 200.0)));
    }

    #[test]
    fn a_branch_depends_on_what_is_compared_also_through_memory() {
        let text =
            "mov rax, [rsi+rcx*8]; mov [rsp-8], rax; add rcx, 1; cmp qword ptr [rsp-8], 5; jne 0";
        let found = path(text, 4, &[(0, 50.0)]);
        assert_eq!(found.slice, BTreeSet::from([0, 1, 2, 3]));
        assert_eq!(found.path, [2, 0, 1, 3, 4]);
        // 1 + 50, a store forwarded, and the comparison; which is more than without the forwarding.
        assert!(found.cycles.1 >= 53.0 && found.cycles.1 < 70.0, "{found:?}");
    }
}
