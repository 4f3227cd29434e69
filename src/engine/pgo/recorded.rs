//! Recorded branch stacks of a module as a profile: they are passed on as they were recorded to what takes such; as a
//! document, straight code is divided into blocks.

use super::code::Code;
use super::counted::build_id_of;
use super::order;
use crate::branches::{branches, module, program};
use crate::notes::add_new;
use iced_x86::FlowControl;
use profile::files::{Program, SearchPaths};
use report::documents::branches::{BranchKind, Branches};
use report::documents::pgo::{BlockRow, EdgeKind, EdgeRow, FunctionRow, How, Pgo, SCHEMA};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tma::{Address, Error, Result};

/// A module by recordings.
pub struct Recorded {
    /// The branches.
    pub branches: Branches,
    /// The module in their rows.
    pub name: String,
    /// Its file.
    pub program: Program,
    /// Its profile.
    pub document: Pgo,
}

impl Recorded {
    /// A module by recordings with branch stacks; that with most branches if none is given.
    ///
    /// # Errors
    /// One cannot be read; they have no branch stacks, or of several events; the module is not in them, or not here.
    pub fn of(files: &[PathBuf], file: Option<&Path>, mut search: SearchPaths) -> Result<Self> {
        search.programs.extend(file.map(Path::to_owned));
        let branches = branches(files, None, &search)?;
        let events: BTreeSet<&str> = branches.events.iter().map(|row| row.name.as_str()).collect();
        if events.len() > 1 {
            let all: Vec<&str> = events.into_iter().collect();
            return Err(Error::failed("a profile is of one event")
                .because(format!("branches were sampled by {}", all.join(", ")))
                .hint("`tdtool branches --event-number N --format bolt` exports one of them"));
        }
        let name = match file {
            None => module(&branches, None)?,
            Some(file) => named(&branches, file)?,
        };
        let program = program(&branches, &name, &search)
            .map_err(|error| error.hint("name it with --module FILE"))?;
        let code = Code::read(Path::new(program.path()))?;
        let mut document = Pgo {
            schema: SCHEMA.to_owned(),
            module: program.path().to_owned(),
            build_id: build_id_of(program.path()),
            has_relocations: code.module.has_relocations,
            has_lines: code.module.has_lines,
            runs: files.len(),
            notes: branches.notes.clone(),
            ..Pgo::default()
        };
        let biases = branches.events.iter().map(|event| event.bias.clone());
        add_new(&mut document.notes, biases);
        let passed = Passed::of(&branches, &name);
        code.functions.iter().for_each(|function| passed.enter(&mut document, function));
        document.order = order::order(&document);
        Ok(Self { branches, name, program, document })
    }
}

/// The name of a file's module in recordings: that of its build-id, else that of its path, else of its name.
fn named(branches: &Branches, file: &Path) -> Result<String> {
    let path = tma::files::resolved(file).map_err(|error| tma::error::unreadable(file, &error))?;
    let path = path.display().to_string();
    let id = build_id_of(&path);
    let same = branches.modules.iter().find(|row| row.build_id.is_some() && row.build_id == id);
    let own = branches.modules.iter().find(|row| row.path == path);
    match same.or(own) {
        Some(row) => Ok(row.path.clone()),
        None => {
            let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
            module(branches, name.as_deref())
        }
    }
}

/// How often control passed through the code of a module.
#[derive(Default)]
struct Passed {
    /// Changes of the number of passages, by address: the sum up to an instruction is its executions.
    changes: BTreeMap<u64, i128>,
    /// Straight code that ended with a taken branch, by its address.
    ended: BTreeMap<u64, u64>,
    /// Returns, and branches from other modules and from unknown places, by their targets.
    from_elsewhere: BTreeMap<u64, u64>,
    /// Taken branches by their ends.
    taken: BTreeMap<(u64, u64), (BranchKind, u64)>,
}

impl Passed {
    fn of(branches: &Branches, name: &str) -> Self {
        let mut found = Self::default();
        for range in branches.ranges.iter().filter(|row| row.module == name) {
            *found.changes.entry(range.first.0).or_default() += i128::from(range.count);
            *found.changes.entry(range.last.0.saturating_add(1)).or_default() -=
                i128::from(range.count);
            add(found.ended.entry(range.last.0).or_default(), range.count);
        }
        for edge in &branches.edges {
            let is_own = edge.module == name && edge.from.is_some();
            let ends_here = edge.to_module.as_ref().unwrap_or(&edge.module) == name;
            let (Some(to), true) = (edge.to, ends_here) else { continue };
            let own = is_own && edge.to_module.is_none();
            match (edge.from, edge.kind) {
                (Some(from), Some(kind)) if own && kind != BranchKind::Return => {
                    let (_, sum) = found.taken.entry((from.0, to.0)).or_insert((kind, 0));
                    add(sum, edge.count);
                }
                _ => add(found.from_elsewhere.entry(to.0).or_default(), edge.count),
            }
        }
        let mut sum = 0;
        for change in found.changes.values_mut() {
            sum += *change;
            *change = sum;
        }
        found
    }

    /// Executions of the instruction at an address.
    fn executions(&self, at: u64) -> u64 {
        let before = self.changes.range(..=at).next_back();
        before.and_then(|(_, sum)| u64::try_from(*sum).ok()).unwrap_or(0)
    }

    /// Adds the rows of a function, if it was executed.
    fn enter(&self, document: &mut Pgo, function: &super::code::Function) {
        let facts = &function.facts;
        let mut executed = 0_u64;
        let (mut blocks, mut edges) = (Vec::new(), Vec::new());
        for block in &facts.blocks {
            let Some(last) = block.instructions.last() else { continue };
            let (at, instructions) = (last.ip(), block.instructions.len());
            let count = self.executions(at);
            executed = executed.saturating_add(count.saturating_mul(instructions as u64));
            let (start, how) = (Address(block.start), How::Sampled);
            blocks.push(BlockRow {
                start,
                last: Address(at),
                instructions,
                count: Some(count),
                how,
            });
            let mut edge = |to: u64, kind: EdgeKind, count: u64| {
                if count > 0 {
                    let (from, to, count) = (Address(at), Address(to), Some(count));
                    edges.push(EdgeRow { block: start, from, to, kind, count, how });
                }
            };
            let mut next = count - self.ended.get(&at).copied().unwrap_or(0).min(count);
            for ((_, to), (kind, count)) in self.taken.range((at, 0)..=(at, u64::MAX)) {
                match (kind.is_call(), facts.range.contains(to)) {
                    (true, _) => edge(*to, EdgeKind::Call, *count),
                    (false, true) => edge(*to, EdgeKind::Jump, *count),
                    (false, false) => edge(*to, EdgeKind::Tail, *count),
                }
            }
            // What is called returns to the code after the call.
            if matches!(last.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
                add(&mut next, self.from_elsewhere.get(&block.end).copied().unwrap_or(0));
            }
            if facts.blocks.binary_search_by_key(&block.end, |block| block.start).is_ok() {
                edge(block.end, EdgeKind::Next, next);
            }
        }
        if executed == 0 {
            return;
        }
        blocks.iter().for_each(|row| {
            let own = row.count.map(|count| count.saturating_mul(row.instructions as u64));
            document.executed.add(own, row.how);
        });
        edges.iter().for_each(|row| document.passed_edges.add(row.count, row.how));
        document.blocks.extend(blocks);
        document.edges.extend(edges);
        let start = facts.range.start;
        document.functions.push(FunctionRow {
            name: function.name.clone(),
            start: Address(start),
            end: Address(facts.range.end),
            other_entries: Some(self.from_elsewhere.get(&start).copied().unwrap_or(0)),
            how: How::Sampled,
            executed: Some(executed),
        });
    }
}

fn add(sum: &mut u64, count: u64) {
    *sum = sum.saturating_add(count);
}
