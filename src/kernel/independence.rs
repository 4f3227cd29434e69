//! Checking a kernel for dependencies, and what those that are left bound.

use super::catalog::Catalog;
use super::document::{Bounded, Touching};
use super::generate::Kernel;
use super::operand::Operand;
use crate::Result;
use crate::code::Block;
use crate::code::effects::{Access, Effects, Place};
use crate::deps::latency::{Forward, Input, Latencies, Latency, Output, Source};
use std::collections::{BTreeMap, BTreeSet};

/// A value that one instruction writes and another reads, in the kernel run again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    writer: usize,
    reader: usize,
    /// Whether it is read in the next iteration.
    next: bool,
    /// `None` for memory.
    place: Option<Place>,
    input: Input,
}

impl Edge {
    fn output(&self) -> Output {
        match self.place {
            None => Output::Memory,
            Some(place) if place.is_flag() => Output::Flags,
            Some(_) => Output::Register,
        }
    }
}

/// What was found.
#[derive(Debug, Clone)]
pub struct Independence {
    /// Dependencies, one for each pair of forms and kind of place.
    pub dependencies: Vec<Touching>,
    /// Their bound on the multiset; none where nothing goes round.
    pub bound: Option<Bounded>,
}

/// Finds all dependencies of `kernel` on the processors of the table `uarch`.
///
/// # Errors
/// Its code is none.
pub fn check(kernel: &Kernel, uarch: Option<&str>) -> Result<Independence> {
    let block = Block::decode(&kernel.bytes)?;
    let effects: Vec<Effects> =
        block.instructions.iter().map(|inst| Effects::of(&inst.decoded, uarch)).collect();
    let edges = edges(&effects);
    let dependencies =
        edges.iter().map(|edge| touching(edge, kernel)).collect::<Result<Vec<_>>>()?;
    let mut distinct: Vec<Touching> = Vec::new();
    for found in dependencies {
        if !distinct.contains(&found) {
            distinct.push(found);
        }
    }
    let latencies = Latencies::of(uarch);
    let mut bound = bound(&block, &effects, &edges, kernel.sets as f64, &latencies);
    if let Some(bound) = &mut bound {
        let mut through: Vec<String> = distinct.iter().map(|found| found.through.clone()).collect();
        through.sort();
        through.dedup();
        bound.through = through;
    }
    Ok(Independence { dependencies: distinct, bound })
}

/// Who reads what whom wrote, over the second of two iterations.
fn edges(effects: &[Effects]) -> Vec<Edge> {
    let mut last: BTreeMap<Place, usize> = BTreeMap::new();
    let mut stores: Vec<(usize, Access)> = Vec::new();
    let mut found = BTreeSet::new();
    let count = effects.len();
    for step in 0..2 * count {
        let (reader, own) = (step % count, &effects[step % count]);
        let mut edge = |at: usize, place, input| {
            if step >= count {
                found.insert(Edge { writer: at % count, reader, next: at < count, place, input });
            }
        };
        for read in &own.reads {
            // What the stack engine moves takes no time.
            let Some(input) = Input::of(read) else { continue };
            if let Some(at) = last.get(&read.place) {
                edge(*at, Some(read.place), input);
            }
        }
        for load in own.memory.iter().filter(|access| access.load) {
            let newest = stores.iter().rev().find(|(_, store)| overlap(store, load));
            if let Some((at, _)) = newest {
                edge(*at, None, Input::Memory);
            }
        }
        for write in &own.writes {
            last.insert(write.place, step);
        }
        stores.extend(own.memory.iter().filter(|access| access.store).map(|a| (step, *a)));
    }
    found.into_iter().collect()
}

/// Whether two accesses with the same registers share bytes; others are taken to.
fn overlap(a: &Access, b: &Access) -> bool {
    if (a.base, a.index) != (b.base, b.index) {
        return true;
    }
    let end = |access: &Access| access.displacement + i64::from(access.bytes.max(1));
    a.displacement < end(b) && b.displacement < end(a)
}

/// An edge in words.
fn touching(edge: &Edge, kernel: &Kernel) -> Result<Touching> {
    let (writer, reader) = (kernel.forms[edge.writer], kernel.forms[edge.reader]);
    let name = |form| Catalog::all().name(form);
    let made = |through: String, in_turn, unavoidable| Touching {
        writer: name(writer),
        reader: name(reader),
        through,
        in_turn,
        unavoidable,
    };
    let Some(place) = edge.place else {
        let slots = kernel.forms.iter().filter(|form| **form == reader).count();
        return Ok(made("memory".to_owned(), slots, true));
    };
    if place.is_flag() {
        return Ok(made(format!("flags {}", place.name()), 1, true));
    }
    let class = |pool: &&super::pools::Pool, numbers: fn(&super::pools::Pool) -> &Vec<u32>| {
        numbers(pool).iter().any(|number| place_of(pool, *number) == Some(place))
    };
    let written = kernel.pools.all.iter().find(|pool| class(pool, |pool| &pool.write));
    let read_only = kernel.pools.all.iter().any(|pool| class(&pool, |pool| &pool.read));
    Ok(match written {
        Some(pool) => {
            // Only who writes such a register may read it: as a destination that is kept in part
            // or computed with.
            let usage = reader.usage()?;
            let operands = reader.operands();
            let own = operands.iter().zip(&usage.access).any(|(operand, access)| {
                matches!(operand, Operand::Register(class) if class.family() == pool.family)
                    && super::pools::is_written(*access)
            });
            made("destination".to_owned(), pool.write.len(), own)
        }
        None if read_only => made(format!("register {}", place.name()), 1, false),
        None => made(format!("implicit {}", place.name()), 1, true),
    })
}

fn place_of(pool: &super::pools::Pool, number: u32) -> Option<Place> {
    use super::operand::{Class, Family};
    let class = match pool.family {
        Family::Gpr => Class::Gpr64,
        Family::Vector => Class::Zmm,
        Family::Mask => Class::Mask,
        Family::Mmx => Class::Mmx,
    };
    Place::of(class.register(number))
}

/// Most edges that are looked into: beyond, no bound is told.
const MOST: usize = 4000;

/// A step from one edge to another: what it takes.
struct Step {
    from: usize,
    to: usize,
    latency: Latency,
}

/// The bound of the recurrences: the largest ratio of latency to iterations around any cycle.
fn bound(
    block: &Block,
    effects: &[Effects],
    edges: &[Edge],
    sets: f64,
    latencies: &Latencies,
) -> Option<Bounded> {
    if edges.is_empty() || edges.len() > MOST {
        return None;
    }
    let mut steps = Vec::new();
    for (from, e) in edges.iter().enumerate() {
        for (to, f) in edges.iter().enumerate().filter(|(_, f)| f.writer == e.reader) {
            let inst = &block.instructions[e.reader].decoded;
            // A value that comes and goes through memory is forwarded, and computed with between.
            let mut latency = if (e.input, f.output()) == (Input::Memory, Output::Memory) {
                let own =
                    latencies.between(inst, &effects[e.reader], Input::Register, Output::Register);
                let forward = latencies.forwarding(Forward::Few);
                Latency { low: own.low + forward.low, high: own.high + forward.high, ..forward }
            } else {
                latencies.between(inst, &effects[e.reader], e.input, f.output())
            };
            latency.high = latency.high.max(latency.low);
            steps.push(Step { from, to, latency });
        }
    }
    let next: Vec<f64> = edges.iter().map(|e| f64::from(u8::from(e.next))).collect();
    let low = ratio(edges.len(), &steps, &next, |latency| latency.low)?;
    let high = ratio(edges.len(), &steps, &next, |latency| latency.high)?;
    let mut sources = BTreeSet::new();
    for step in &steps {
        sources.insert(match &step.latency.source {
            Source::Measured => "measured here".to_owned(),
            Source::Table(name) => name.to_string(),
            Source::Assumed(why) => format!("assumed: {why}"),
        });
    }
    Some(Bounded {
        low: low / sets,
        high: high / sets,
        through: Vec::new(),
        sources: sources.into_iter().collect(),
        binding: false,
    })
}

/// The largest ratio of weight to iterations around a cycle of steps, by bisection: a cycle is
/// heavier than `ratio` exactly if it stays positive with `ratio` taken off for each iteration.
fn ratio(
    nodes: usize,
    steps: &[Step],
    next: &[f64],
    weight: impl Fn(&Latency) -> f64,
) -> Option<f64> {
    let heavier = |ratio: f64| {
        let mut longest = vec![0.0; nodes];
        for _ in 0..=nodes {
            let mut changed = false;
            for step in steps {
                let length = longest[step.from] + weight(&step.latency) - ratio * next[step.to];
                if length > longest[step.to] + 1e-6 {
                    longest[step.to] = length;
                    changed = true;
                }
            }
            if !changed {
                return false;
            }
        }
        true
    };
    let (mut low, mut high) = (0.0, steps.iter().map(|s| weight(&s.latency)).sum::<f64>() + 1.0);
    if !heavier(1e-3) {
        return None;
    }
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if heavier(middle) {
            low = middle
        } else {
            high = middle
        }
        if high - low < 1e-3 {
            break;
        }
    }
    Some((low + high) / 2.0)
}
