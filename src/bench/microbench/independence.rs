//! Checks a microbenchmark for dependencies, and computes the latency bound of those that are left.

use super::catalog::Catalog;
use super::generator::Microbenchmark;
use super::operand::Operand;
use super::{Dependency, LatencyBound};
use iced_x86::Register;
use isa::deps::memory::Settings;
use isa::deps::recurrence::Recurrence;
use isa::deps::{Analyser, Analysis, Code, RegisterDependency, Window};
use isa::effects::ArchReg;
use isa::latency::{Input, Latencies, Source};
use std::collections::BTreeSet;
use tma::{Core, Result};

/// Random runs of the analysis; addresses are one base plus displacements, so any values will do.
const RUNS: u32 = 3;

/// A dependency between two instructions, within or across iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    writer: usize,
    reader: usize,
    /// `None` for memory.
    reg: Option<ArchReg>,
}

/// Result of the check.
#[derive(Debug, Clone)]
pub struct Independence {
    /// Dependencies, one for each pair of forms and carrier.
    pub dependencies: Vec<Dependency>,
    /// Their latency bound per multiset; none if none is loop-carried.
    pub bound: Option<LatencyBound>,
    /// General-purpose registers that forms use implicitly and that carry such dependencies.
    pub implicit: Vec<Register>,
}

/// Finds all dependencies of `benchmark` on `core`.
///
/// # Errors
/// Its code cannot be decoded.
pub fn check(benchmark: &Microbenchmark, core: &Core) -> Result<Independence> {
    let code = Code::of_bytes(&benchmark.bytes, core.facts())?;
    let settings =
        Settings { window: Window::of(core).entries, runs: RUNS, initial_values: Vec::new() };
    let analysis = Analyser::new(Latencies::new(core)?).analyse(&code, &settings);
    let mut distinct: Vec<Dependency> = Vec::new();
    let mut implicit = Vec::new();
    let own = |edge: &Edge| {
        // The instruction that restores the stack pointer is not part of the multiset.
        let forms = benchmark.forms.len();
        edge.writer < forms && edge.reader < forms && edge.reg != Some(ArchReg::gpr(4))
    };
    for edge in edges(&code, &analysis).into_iter().filter(own) {
        let found = dependency(&edge, benchmark)?;
        let register = edge.reg.filter(|reg| is_implicit(benchmark, *reg));
        implicit.extend(register.and_then(|reg| Some(Register::RAX + u32::from(reg.as_gpr()?))));
        if !distinct.contains(&found) {
            distinct.push(found);
        }
    }
    let mut bound = bound(&analysis, benchmark.sets as f64).filter(|_| !distinct.is_empty());
    if let Some(bound) = &mut bound {
        let mut through: Vec<String> = distinct.iter().map(|found| found.through.clone()).collect();
        through.sort();
        through.dedup();
        bound.through = through;
    }
    implicit.sort();
    implicit.dedup();
    Ok(Independence { dependencies: distinct, bound, implicit })
}

/// Whether no pool has the register.
fn is_implicit(benchmark: &Microbenchmark, reg: ArchReg) -> bool {
    let pooled = |pool: &super::pools::Pool| {
        pool.read.iter().chain(&pool.write).any(|number| register_of(pool, *number) == Some(reg))
    };
    !benchmark.pools.all.iter().any(pooled)
}

/// Writer and reader pairs, whichever iteration writes.
fn edges(code: &Code, analysis: &Analysis) -> BTreeSet<Edge> {
    // Stack-engine updates have no latency.
    let is_timed = |dep: &&RegisterDependency| {
        let read = code.effects[dep.reader].reads.get(dep.read);
        read.is_some_and(|read| Input::of(read).is_some())
    };
    let links = analysis.register_deps.iter().filter(is_timed).map(|dep| Edge {
        writer: dep.writer,
        reader: dep.reader,
        reg: Some(dep.reg),
    });
    let memory = analysis.memory.dependencies.iter().map(|dep| Edge {
        writer: dep.writer,
        reader: dep.reader,
        reg: None,
    });
    links.chain(memory).collect()
}

/// An edge as the document reports it.
fn dependency(edge: &Edge, benchmark: &Microbenchmark) -> Result<Dependency> {
    let (writer, reader) = (benchmark.forms[edge.writer], benchmark.forms[edge.reader]);
    let name = |form| Catalog::name_of(form);
    let built = |through: String, rotation, unavoidable| Dependency {
        writer: name(writer),
        reader: name(reader),
        through,
        rotation,
        unavoidable,
    };
    let Some(reg) = edge.reg else {
        let slots = benchmark.forms.iter().filter(|form| **form == reader).count();
        return Ok(built("memory".to_owned(), slots, true));
    };
    if reg.is_flag() {
        return Ok(built(format!("flags {}", reg.name()), 1, true));
    }
    let class = |pool: &&super::pools::Pool, numbers: fn(&super::pools::Pool) -> &Vec<u32>| {
        numbers(pool).iter().any(|number| register_of(pool, *number) == Some(reg))
    };
    let written = benchmark.pools.all.iter().find(|pool| class(pool, |pool| &pool.write));
    let read_only = benchmark.pools.all.iter().any(|pool| class(&pool, |pool| &pool.read));
    Ok(match written {
        Some(pool) => {
            // Only forms that write such a register may read it, as a source or for a partial write.
            let usage = reader.usage()?;
            let operands = reader.operands();
            let own = operands.iter().zip(&usage.access).any(|(operand, access)| {
                matches!(operand, Operand::Register(class) if class.family() == pool.family)
                    && super::pools::is_written(*access)
            });
            built("destination".to_owned(), pool.write.len(), own)
        }
        None if read_only => built(format!("register {}", reg.name()), 1, false),
        None => built(format!("implicit {}", reg.name()), 1, true),
    })
}

fn register_of(pool: &super::pools::Pool, number: u32) -> Option<ArchReg> {
    use super::operand::{Class, Family};
    let class = match pool.family {
        Family::Gpr => Class::Gpr64,
        Family::Vector => Class::Zmm,
        Family::Mask => Class::Mask,
        Family::Mmx => Class::Mmx,
    };
    ArchReg::of(class.register(number))
}

/// The latency bound of the slowest loop-carried dependency per multiset.
fn bound(analysis: &Analysis, sets: f64) -> Option<LatencyBound> {
    let slowest = analysis.recurrences.first()?;
    let most = |value: fn(&Recurrence) -> f64| {
        analysis.recurrences.iter().map(value).fold(0.0, f64::max) / sets
    };
    let sources: BTreeSet<String> = slowest
        .path
        .iter()
        .map(|step| match step.latency.source {
            Source::Measured => "measured here".to_owned(),
            Source::Table(name) => name.to_owned(),
            Source::Assumed(why) => format!("assumed: {why}"),
        })
        .collect();
    Some(LatencyBound {
        low: most(|r| r.low),
        high: most(|r| r.high),
        through: Vec::new(),
        sources: sources.into_iter().collect(),
        binding: false,
    })
}
