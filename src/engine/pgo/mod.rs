//! Exact counts of one or several runs, or recorded branches → a profile of a module for optimisers.
//!
//! | file | concern |
//! |---|---|
//! | `inputs` | earlier counts and recordings, by their content |
//! | `counted` | the documents of counts, added up, and their module |
//! | `recorded` | recorded branch stacks in place of counts |
//! | `code` | the functions of the module; where control goes from the ends of their blocks |
//! | `solved` | the flow through each function |
//! | `targets` | recorded targets of jumps and calls whose edges counts do not determine |
//! | `clusters` | the machine blocks of each function in a new order |
//! | `profgen` | llvm-profgen, which makes profiles for compilers |
//! | `order` | functions near those that call them |
//! | [`bolt`] | llvm-bolt: its command, a copy that it optimises |
//! | [`trial`] | the program against that copy |
//! | `same`, `executed` | whether both do the same; the code that each executed |

pub mod bolt;
mod clusters;
mod code;
mod counted;
mod executed;
mod inputs;
mod order;
mod profgen;
mod recorded;
mod same;
mod solved;
mod targets;
pub mod trial;

pub use clusters::{check_map, place_blocks, unmapped};
use code::Code;
use counted::Counted;
use iced_x86::FlowControl;
pub use inputs::Inputs;
use pmu::Command;
use probe::flow::{Flow, Flowing, How as Known};
pub use profgen::sample_profile;
pub use recorded::Recorded;
use report::documents::count::{Count, TargetRow};
use report::documents::pgo::{BlockRow, EdgeKind, EdgeRow, FunctionRow, How, Pgo, SCHEMA};
use report::format::several;
use std::collections::BTreeMap;
use std::path::Path;
use tma::{Address, Result};

/// Share of the executed instructions that a note is worth, in percent.
const WORTH: f64 = 0.1;

/// A module with its counts, and the flow by them.
pub struct Profile {
    counted: Counted,
    code: Code,
    flows: Vec<Flow>,
}

impl Profile {
    /// A module by documents of counts; their only one if none is given.
    ///
    /// # Errors
    /// They have no counts of such a module, or are of several or of another build; its file cannot be read.
    pub fn of(counts: &[Count], module: Option<&Path>) -> Result<Self> {
        let counted = Counted::of(counts, module)?;
        let code = Code::read(Path::new(&counted.module))?;
        counted.check_blocks(|start| code.is_block(start))?;
        let flows = solved::solve(&code, &counted);
        Ok(Self { counted, code, flows })
    }

    /// Records targets of jumps and calls in a further run, where the counts do not determine their edges. The signal
    /// that interrupted it.
    ///
    /// # Errors
    /// The command cannot be started or traced.
    pub fn record_targets(&mut self, command: &Command) -> Result<Option<i32>> {
        let module = &self.counted.module;
        let found = targets::recorded(&self.code, &self.flows, module, command)?;
        for (from, seen) in found.targets {
            let own = self.counted.targets.entry(from).or_default();
            for (to, count) in seen {
                let sum = own.entry(to).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        self.flows = solved::solve(&self.code, &self.counted);
        self.counted.notes.extend(found.notes);
        Ok(found.interrupted)
    }

    /// The recorded targets, as rows of a document of counts.
    pub fn targets(&self) -> Vec<TargetRow> {
        let row = |from: u64, to: u64, count: u64| TargetRow {
            module: self.counted.module.clone(),
            from: Address(from),
            to: Address(to),
            count,
        };
        let all = self.counted.targets.iter();
        all.flat_map(|(from, seen)| seen.iter().map(|(to, count)| row(*from, *to, *count)))
            .collect()
    }

    /// The document.
    pub fn document(&self) -> Pgo {
        let (counted, code) = (&self.counted, &self.code);
        let mut document = Pgo {
            schema: SCHEMA.to_owned(),
            module: counted.module.clone(),
            build_id: counted.build_id.clone(),
            has_relocations: code.module.has_relocations,
            has_lines: code.module.has_lines,
            runs: counted.runs,
            notes: counted.notes.clone(),
            ..Pgo::default()
        };
        for (function, flow) in code.functions.iter().zip(&self.flows) {
            let ran = |found: &Flowing| found.number() != Some(0);
            if flow.blocks.iter().any(ran) {
                self.enter(&mut document, function, flow);
            }
        }
        explain(&mut document);
        document.order = order::order(&document);
        document.notes.extend(disagreeing(code, &self.flows));
        document.notes.extend(dropped(code, &self.flows));
        let refused = self.refused(&document);
        document.notes.extend(refused);
        document
    }

    /// A note on blocks that could not be counted, and whose counts do not follow from others, if they are worth a word.
    fn refused(&self, document: &Pgo) -> Option<String> {
        let open = document.blocks.iter().filter(|row| row.how >= How::Fitted);
        let all: Vec<(&BlockRow, &String)> =
            open.filter_map(|row| Some((row, self.counted.refused.get(&row.start)?))).collect();
        let own = |row: &BlockRow| Some(row.count?.saturating_mul(row.instructions as u64));
        let sum = all.iter().map(|(row, _)| own(row)).sum::<Option<u64>>();
        let share = sum.map(|sum| document.executed.percent(sum));
        let ((first, why), blocks) = (all.first()?, several(all.len() as u64, "block"));
        let share = match share {
            Some(share) if share < WORTH => return None,
            Some(share) => format!(", {share:.1} % of the instructions"),
            None => String::new(),
        };
        Some(format!("{blocks} could not be counted{share}: at {}: {why}", first.start))
    }

    /// Adds the rows of a function.
    fn enter(&self, document: &mut Pgo, function: &code::Function, flow: &Flow) {
        let facts = &function.facts;
        let mut executed = Some(0_u64);
        for (block, found) in facts.blocks.iter().zip(&flow.blocks) {
            let Some(last) = block.instructions.last() else { continue };
            // A count without a probe of its own follows from others.
            let is_derived = self.counted.derived.contains(&block.start);
            let least = if is_derived { Known::Derived } else { Known::Counted };
            let (count, how) = (found.number(), how(found.how.max(least)));
            let number = block.instructions.len();
            let own = count.map(|count| count.saturating_mul(number as u64));
            document.executed.add(own, how);
            executed = executed.zip(own).map(|(sum, more)| sum.saturating_add(more));
            let (start, last) = (Address(block.start), Address(last.ip()));
            document.blocks.push(BlockRow { start, last, instructions: number, count, how });
        }
        let edge = |from: usize, to: u64, kind: EdgeKind, found: Flowing| {
            let block = &facts.blocks[from];
            let last = block.instructions.last().map_or(block.start, |last| last.ip());
            EdgeRow {
                block: Address(block.start),
                from: Address(last),
                to: Address(to),
                kind,
                count: found.number(),
                how: how(found.how.max(Known::Derived)),
            }
        };
        let mut edges: Vec<EdgeRow> = Vec::new();
        for one in &flow.edges {
            let (from, to) = (&facts.blocks[one.from], facts.blocks[one.to].start);
            let goes_on = from.instructions.last().is_some_and(|last| {
                !matches!(
                    last.flow_control(),
                    FlowControl::UnconditionalBranch | FlowControl::IndirectBranch
                )
            });
            let kind = if goes_on && to == from.end { EdgeKind::Next } else { EdgeKind::Jump };
            edges.push(edge(one.from, to, kind, one.flow));
        }
        for number in 0..facts.blocks.len() {
            let beyond = code::beyond(facts, number, flow, &self.counted.targets);
            let beyond = beyond.into_iter().filter(|one| self.code.has(one.to));
            edges.extend(beyond.map(|one| edge(number, one.to, one.kind, one.flow)));
        }
        edges.iter().for_each(|row| document.passed_edges.add(row.count, row.how));
        document.edges.extend(edges);
        document.functions.push(FunctionRow {
            name: function.name.clone(),
            start: Address(facts.range.start),
            end: Address(facts.range.end),
            other_entries: flow.entries.number(),
            how: how(flow.entries.how),
            executed,
        });
    }
}

fn how(of: Known) -> How {
    match of {
        Known::Counted => How::Counted,
        Known::Derived => How::Derived,
        Known::Sampled => How::Sampled,
        Known::Fitted => How::Fitted,
        Known::Unknown => How::Unknown,
    }
}

/// Leaves of the entries of functions those that no call or jump explains.
fn explain(document: &mut Pgo) {
    let mut explained: BTreeMap<Address, (u64, How)> = BTreeMap::new();
    for row in document.edges.iter().filter(|e| matches!(e.kind, EdgeKind::Call | EdgeKind::Tail)) {
        let (Some(count), (sum, how)) =
            (row.count, explained.entry(row.to).or_insert((0, How::Counted)))
        else {
            continue;
        };
        (*sum, *how) = (sum.saturating_add(count), row.how.max(*how));
    }
    for function in &mut document.functions {
        let Some((calls, how)) = explained.get(&function.start) else { continue };
        function.other_entries = function.other_entries.map(|all| all.saturating_sub(*calls));
        function.how = function.how.max(*how);
    }
}

/// A note on functions whose counts disagree.
fn disagreeing(code: &Code, solved: &[Flow]) -> Option<String> {
    let all = code.functions.iter().zip(solved);
    let all: Vec<&str> = all
        .filter(|(_, flow)| flow.imbalance > 0.0)
        .map(|(function, _)| function.name.as_str())
        .collect();
    let (first, rest) = all.split_first()?;
    let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    Some(format!(
        "counts disagree in {first}{more}: left in the middle by threads that ended, exceptions, or the end of a window"
    ))
}

/// A note on executions of unknown jumps without edges.
fn dropped(code: &Code, solved: &[Flow]) -> Option<String> {
    let all = code.functions.iter().zip(solved).filter(|(_, flow)| flow.dropped >= 1.0);
    let most = all.clone().max_by(|(_, a), (_, b)| a.dropped.total_cmp(&b.dropped))?;
    let sum: f64 = all.map(|(_, flow)| flow.dropped).sum();
    Some(format!(
        "{sum:.0} executions of indirect jumps have no edge, most of them in {}: there are too many possible targets, or \
         less than one each; --targets records them",
        most.0.name
    ))
}
