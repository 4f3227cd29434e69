//! Checking a kernel for dependencies, and what those that are left bound.

use super::catalog::Catalog;
use super::document::{Bounded, Touching};
use super::generate::Kernel;
use super::operand::Operand;
use isa::deps::memory::Settings;
use isa::deps::recurrence::Recurrence;
use isa::deps::{Analyser, Analysis, Code, RegisterDependency, Window};
use isa::effects::ArchReg;
use isa::latency::{Input, Latencies, Source};
use std::collections::BTreeSet;
use tma::{Core, Result};

/// Runs with random values: addresses are one base and displacements, so any would do.
const RUNS: u32 = 3;

/// A value that one instruction writes and another reads, in the kernel run again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    writer: usize,
    reader: usize,
    /// `None` for memory.
    reg: Option<ArchReg>,
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
pub fn check(kernel: &Kernel, core: &Core) -> Result<Independence> {
    let code = Code::of_bytes(&kernel.bytes, core.facts())?;
    let settings =
        Settings { window: Window::of(core).entries, runs: RUNS, initial_values: Vec::new() };
    let analysis = Analyser::new(Latencies::new(core)?).analyse(&code, &settings);
    let mut distinct: Vec<Touching> = Vec::new();
    let own = |edge: &Edge| {
        // What puts the stack pointer back is none of the forms.
        let forms = kernel.forms.len();
        edge.writer < forms && edge.reader < forms && edge.reg != Some(ArchReg::gpr(4))
    };
    for edge in edges(&code, &analysis).into_iter().filter(own) {
        let found = touching(&edge, kernel)?;
        if !distinct.contains(&found) {
            distinct.push(found);
        }
    }
    let mut bound = bound(&analysis, kernel.sets as f64).filter(|_| !distinct.is_empty());
    if let Some(bound) = &mut bound {
        let mut through: Vec<String> = distinct.iter().map(|found| found.through.clone()).collect();
        through.sort();
        through.dedup();
        bound.through = through;
    }
    Ok(Independence { dependencies: distinct, bound })
}

/// Who reads what whom wrote, whichever iteration wrote it.
fn edges(code: &Code, analysis: &Analysis) -> BTreeSet<Edge> {
    // What the stack runner moves takes no time.
    let waits = |link: &&RegisterDependency| {
        let read = code.effects[link.reader].reads.get(link.read);
        read.is_some_and(|read| Input::of(read).is_some())
    };
    let links = analysis.register_deps.iter().filter(waits).map(|link| Edge {
        writer: link.writer,
        reader: link.reader,
        reg: Some(link.reg),
    });
    let memory = analysis.memory.dependencies.iter().map(|carried| Edge {
        writer: carried.writer,
        reader: carried.reader,
        reg: None,
    });
    links.chain(memory).collect()
}

/// An edge in words.
fn touching(edge: &Edge, kernel: &Kernel) -> Result<Touching> {
    let (writer, reader) = (kernel.forms[edge.writer], kernel.forms[edge.reader]);
    let name = |form| Catalog::name_of(form);
    let made = |through: String, in_turn, unavoidable| Touching {
        writer: name(writer),
        reader: name(reader),
        through,
        in_turn,
        unavoidable,
    };
    let Some(reg) = edge.reg else {
        let slots = kernel.forms.iter().filter(|form| **form == reader).count();
        return Ok(made("memory".to_owned(), slots, true));
    };
    if reg.is_flag() {
        return Ok(made(format!("flags {}", reg.name()), 1, true));
    }
    let class = |pool: &&super::pools::Pool, numbers: fn(&super::pools::Pool) -> &Vec<u32>| {
        numbers(pool).iter().any(|number| place_of(pool, *number) == Some(reg))
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
        None if read_only => made(format!("register {}", reg.name()), 1, false),
        None => made(format!("implicit {}", reg.name()), 1, true),
    })
}

fn place_of(pool: &super::pools::Pool, number: u32) -> Option<ArchReg> {
    use super::operand::{Class, Family};
    let class = match pool.family {
        Family::Gpr => Class::Gpr64,
        Family::Vector => Class::Zmm,
        Family::Mask => Class::Mask,
        Family::Mmx => Class::Mmx,
    };
    ArchReg::of(class.register(number))
}

/// The bound of the slowest recurrence on the multiset.
fn bound(analysis: &Analysis, sets: f64) -> Option<Bounded> {
    let slowest = analysis.recurrences.first()?;
    let most = |value: fn(&Recurrence) -> f64| {
        analysis.recurrences.iter().map(value).fold(0.0, f64::max) / sets
    };
    let sources: BTreeSet<String> = slowest
        .path
        .iter()
        .map(|way| match way.latency.source {
            Source::Measured => "measured here".to_owned(),
            Source::Table(name) => name.to_owned(),
            Source::Assumed(why) => format!("assumed: {why}"),
        })
        .collect();
    Some(Bounded {
        low: most(|r| r.low),
        high: most(|r| r.high),
        through: Vec::new(),
        sources: sources.into_iter().collect(),
        binding: false,
    })
}
