//! Mispredictions of the branches of chosen functions: outcomes in bursts, from a run of their own → a
//! model of branch predictors → numbers and cycles, always labelled as modelled.

use crate::nesting::{self, Nesting, recursive};
use crate::predicting::{self, Costs, Executed};
use crate::steps::{self, Subject};
use crate::tested;
use crate::trips::{self, Followed};
use branches::predictor::{Branch, Kind, LONGEST_HISTORY};
use branches::sampled::{self, Estimate, estimate};
use iced_x86::FlowControl;
use probe::bursts::{Burst, Observed, Pace, Record, Recorded};
use probe::count::Wanted;
use probe::facts::Function;
use probe::plan::{Request, What, branches};
use report::documents::Purpose;
use report::documents::count::{BranchKind, BranchRow, Count, Modelled, ModelledSource, by_place};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use tma::self_test::Rules;
use tma::{Address, Core, Result};

/// Stacks whose pages are this far apart or more are of different threads: 1 MiB; threads of glibc have
/// stacks of 8.
const APART: u32 = 256;
/// Bits of an address in a file; above them the model has the file's number.
const ADDRESS: u32 = 48;
/// The returns of a function have its address with this bit, which no address in a file has.
const RETURNS: u64 = 1 << 47;

/// Records branches once more, and adds what a predictor does with them. The signal that interrupted it.
///
/// # Errors
/// As [`Subject::record`].
pub fn enter(
    document: &mut Count,
    subject: &mut Subject<'_>,
    functions: &[(&str, &Wanted)],
    core: &Arc<Core>,
    rarest: f64,
) -> Result<Option<i32>> {
    let asked = Asked::new(document, functions, rarest);
    let requests = |number: usize, function: &Function| asked.requests(number, function);
    let recorded = subject.record(&asked.wanted, &requests, Pace::default())?;
    document.cost.push(subject.cost(Purpose::Branches, &recorded));
    document.notes.extend(steps::notes(Purpose::Branches, &recorded));
    add(document, functions, core, asked, &recorded);
    Ok(recorded.interrupted)
}

/// The branches to record, and what is known of their functions once they are read.
pub struct Asked {
    wanted: Vec<Wanted>,
    /// By file, those that are left out.
    rare: BTreeMap<PathBuf, BTreeSet<u64>>,
    /// Whether trips are followed, too.
    has_trips: bool,
    recursive: BTreeSet<usize>,
    followed: RefCell<BTreeMap<usize, Followed>>,
    /// Function and address → loads that the jump waits for.
    loads: RefCell<BTreeMap<(usize, u64), u32>>,
    calls: RefCell<BTreeSet<(usize, u64)>>,
    returns: RefCell<Returns>,
}

/// The address of the return of functions without other jumps and calls, by that of the function in its page, as files are
/// mapped; none where functions there differ.
type Returns = BTreeMap<u64, Option<u64>>;
const IN_PAGE: u64 = 0xfff;

/// The address of a function's return, if nothing else in it jumps but for conditional branches.
fn only_return(function: &Function) -> Option<u64> {
    let lasts = function.blocks.iter().filter_map(|block| block.instructions.last());
    let mut jumps = lasts.filter(|last| {
        !matches!(last.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch)
    });
    let only = jumps.next().filter(|last| last.flow_control() == FlowControl::Return)?;
    jumps.next().is_none().then(|| only.ip())
}

impl Asked {
    /// Of these functions, whose blocks are counted.
    pub fn new(document: &Count, functions: &[(&str, &Wanted)], rarest: f64) -> Self {
        let wanted: Vec<Wanted> = functions.iter().map(|(_, wanted)| (*wanted).clone()).collect();
        Self {
            rare: if rarest > 0.0 { rare(document, rarest) } else { BTreeMap::new() },
            has_trips: rarest <= 0.0,
            recursive: recursive(&wanted),
            wanted,
            followed: RefCell::default(),
            loads: RefCell::default(),
            calls: RefCell::default(),
            returns: RefCell::default(),
        }
    }

    /// The branches of a function, by its number.
    pub fn requests(&self, number: usize, function: &Function) -> Vec<Request> {
        let is_rare = |request: &Request| {
            let own = self.rare.get(self.wanted[number].path.as_path());
            own.is_some_and(|own| own.contains(&request.at))
        };
        let last = |b: &probe::facts::Block| Some((number, b.instructions.last()?.ip()));
        let jumps = function
            .blocks
            .iter()
            .filter_map(|b| Some((last(b)?, nesting::loads(&b.instructions))));
        self.loads.borrow_mut().extend(jumps);
        let is_call = |b: &&probe::facts::Block| {
            let last = b.instructions.last();
            last.is_some_and(|one| one.flow_control() == FlowControl::IndirectCall)
        };
        self.calls.borrow_mut().extend(function.blocks.iter().filter(is_call).filter_map(last));
        let returns = only_return(function);
        let mut all = self.returns.borrow_mut();
        let own = all.entry(function.range.start & IN_PAGE).or_insert(returns);
        *own = own.filter(|own| Some(*own) == returns);
        drop(all);
        if self.has_trips {
            self.followed.borrow_mut().insert(number, Followed::of(function));
        }
        let entry = self.recursive.contains(&number).then(|| nesting::entered(function)).flatten();
        branches(function).into_iter().filter(|request| !is_rare(request)).chain(entry).collect()
    }
}

/// Adds what a predictor does with recorded branches.
pub fn add(
    document: &mut Count,
    functions: &[(&str, &Wanted)],
    core: &Arc<Core>,
    asked: Asked,
    recorded: &Recorded,
) {
    let Asked { wanted, has_trips, followed, loads, calls, returns, .. } = asked;
    let wanted = wanted.as_slice();
    let (calls, executions) = (calls.into_inner(), executions(document));
    let runs = |one: &Observed| {
        let module = wanted[one.function].path.display().to_string();
        executions.get(&module).and_then(|all| within(all, one.request.at))
    };
    let executed = executed(recorded.observed.iter().filter(|one| runs(one) > Some(0)), &calls);
    let rules = predicting::enter(document, tested::answers(core).ok().flatten(), executed);
    let streams: Vec<(bool, Vec<Record>)> = recorded
        .bursts
        .iter()
        .flat_map(|burst| threads(burst, recorded.tasks > 0))
        .map(|(burst, records)| (burst.is_first, records))
        .collect();
    if has_trips {
        trips::enter(document, recorded, wanted, &followed.into_inner(), &streams);
    }
    let (loads, costs) = (loads.into_inner(), Costs::of(document));
    let addresses = addresses(recorded, wanted);
    let targets = Targets { calls: &calls, returns: &returns.into_inner() };
    let found = modelled(recorded, &addresses, targets, &rules);
    let mut rows = by_place(&document.branches, |row| (&row.module, row.address));
    for (number, observed) in recorded.observed.iter().enumerate() {
        let (name, of) = functions[observed.function];
        let at = observed.request.at;
        let runs = runs(observed);
        let estimate = found.get(&addresses[number]);
        let waits_for = loads.get(&(observed.function, at)).copied().unwrap_or(0);
        let cycles = costs.one(&observed.request.what, waits_for);
        let mispredicted = runs.and_then(|runs| modelled_of(runs, estimate, cycles));
        let reason = mispredicted.is_none().then(|| match (&observed.refused, runs) {
            (Some(why), _) => format!("not recorded: {why}"),
            (None, None) => "its block has no count".to_owned(),
            _ => "not executed while branches were recorded".to_owned(),
        });
        let is_entry = observed.request.what == What::Entered;
        let address = Address(if is_entry { of.range.start } else { at });
        let place = (of.path.display().to_string(), address);
        let row = match rows.get(&place) {
            Some(row) if !is_entry => *row,
            _ => {
                let row = document.branches.len();
                document.branches.push(BranchRow {
                    module: place.0.clone(),
                    function: name.to_owned(),
                    address: place.1,
                    executions: runs,
                    kind: if is_entry { BranchKind::Return } else { BranchKind::Indirect },
                    ..BranchRow::default()
                });
                if !is_entry {
                    rows.insert(place, row);
                }
                row
            }
        };
        let row = &mut document.branches[row];
        (row.mispredicted, row.reason) = (mispredicted, reason);
    }
    for row in document.branches.iter_mut().filter(|r| r.mispredicted.is_none()) {
        let why = match recorded.interrupted {
            Some(_) if recorded.observed.is_empty() => "not recorded: interrupted before",
            _ => "not recorded: it is not certain to be code",
        };
        row.reason.get_or_insert_with(|| why.to_owned());
    }
    let refused = recorded.observed.iter().filter(|o| o.refused.is_some()).count();
    if refused > 0 {
        document.notes.push(format!(
            "{refused} of {} branches were not recorded, and are not in the history of the others",
            recorded.observed.len()
        ));
    }
}

/// The kinds of these branches; `calls` are the indirect calls among them, by function and address.
fn executed<'a>(
    all: impl Iterator<Item = &'a Observed>,
    calls: &BTreeSet<(usize, u64)>,
) -> Executed {
    let mut found = Executed::default();
    for one in all {
        found.targets |= one.request.what == What::Target;
        found.calls |= calls.contains(&(one.function, one.request.at));
        found.returns |= one.request.what == What::Entered;
    }
    found
}

/// The branches, by file, that go one way in no larger share of their executions than this.
fn rare(document: &Count, share: f64) -> BTreeMap<PathBuf, BTreeSet<u64>> {
    let mut all: BTreeMap<PathBuf, BTreeSet<u64>> = BTreeMap::new();
    for row in &document.branches {
        let (Some(taken), Some(not)) = (row.taken, row.not_taken) else { continue };
        if (taken.min(not) as f64) <= share * (taken + not) as f64 {
            all.entry(PathBuf::from(&row.module)).or_default().insert(row.address.0);
        }
    }
    all
}

/// The row of a branch that ran `runs` times.
fn modelled_of(runs: u64, estimate: Option<&Estimate>, cycles: Option<f64>) -> Option<Modelled> {
    let of = |share: f64| share * runs as f64;
    let (seen, share, interval, is_learning) = match estimate {
        Some(e) => (e.seen, e.share, e.interval, e.is_learning),
        None if runs == 0 => (0, 0.0, (0.0, 0.0), false),
        None => return None,
    };
    Some(Modelled {
        value: of(share),
        low: of(interval.0),
        high: of(interval.1),
        seen,
        cycles: cycles.map(|cycles| of(share) * cycles),
        each: cycles,
        source: ModelledSource::Modelled,
        is_learning,
    })
}

/// Blocks: first address, address after, entries.
type Blocks = Vec<(u64, u64, u64)>;

/// The blocks of each module, in order.
fn executions(document: &Count) -> BTreeMap<String, Blocks> {
    let mut all: BTreeMap<String, Blocks> = BTreeMap::new();
    for block in &document.blocks {
        let of = all.entry(block.module.clone()).or_default();
        of.push((block.start.0, block.end.0, block.count));
    }
    all.values_mut().for_each(|blocks| blocks.sort_unstable());
    all
}

/// Entries of the block with this address.
fn within(blocks: &Blocks, at: u64) -> Option<u64> {
    let index = blocks.partition_point(|(start, _, _)| *start <= at).checked_sub(1)?;
    let (_, end, count) = blocks[index];
    (at < end).then_some(count)
}

/// The addresses of the branches for the model, in which files have addresses of their own.
fn addresses(recorded: &Recorded, wanted: &[Wanted]) -> Vec<u64> {
    let mut files = BTreeMap::new();
    for (number, one) in wanted.iter().enumerate() {
        files.entry(one.path.as_path()).or_insert(number as u64);
    }
    let address = |observed: &Observed| {
        let file = files[wanted[observed.function].path.as_path()];
        let returns = if observed.request.what == What::Entered { RETURNS } else { 0 };
        observed.request.at | returns | file << ADDRESS
    };
    recorded.observed.iter().map(address).collect()
}

/// What is known of indirect branches.
#[derive(Clone, Copy)]
struct Targets<'a> {
    /// The calls among them, by function and address.
    calls: &'a BTreeSet<(usize, u64)>,
    returns: &'a Returns,
}

/// Mispredictions of all branches by the model.
fn modelled(
    recorded: &Recorded,
    addresses: &[u64],
    Targets { calls, returns }: Targets<'_>,
    rules: &Rules,
) -> BTreeMap<u64, Estimate> {
    let is_call: Vec<bool> = recorded
        .observed
        .iter()
        .map(|one| calls.contains(&(one.function, one.request.at)))
        .collect();
    let branches = |records: &[Record]| {
        let (mut nesting, mut all) = (Nesting::default(), Vec::with_capacity(records.len()));
        for Record { site, value, .. } in records {
            let address = addresses[*site as usize];
            let kind = match recorded.observed[*site as usize].request.what {
                What::Outcome => Kind::Conditional { taken: *value != 0 },
                What::Entered => {
                    nesting.enter(address, *value, &mut all);
                    continue;
                }
                _ if is_call[*site as usize] => {
                    let returns = returns.get(&(*value & IN_PAGE)).copied().flatten();
                    Kind::Called { target: *value, returns }
                }
                // The others that this run has asked for are targets.
                _ => Kind::Indirect { target: *value },
            };
            all.push(Branch { address, kind });
        }
        all
    };
    let bursts = recorded.bursts.iter().flat_map(|burst| threads(burst, recorded.tasks > 0));
    let bursts: Vec<sampled::Burst> = bursts
        .map(|(burst, records)| {
            let branches = branches(&records);
            sampled::Burst { is_first: burst.is_first, is_last: burst.is_last, branches }
        })
        .collect();
    estimate(LONGEST_HISTORY, rules, &bursts)
}

/// The records of each thread.
fn threads(burst: &Burst, are_several: bool) -> Vec<(&Burst, Vec<Record>)> {
    if !are_several {
        return vec![(burst, burst.records.clone())];
    }
    let mut pages: Vec<u32> = burst.records.iter().map(|r| r.stack).collect();
    pages.sort_unstable();
    pages.dedup();
    let stacks: Vec<&[u32]> = pages.chunk_by(|a, b| b - a < APART).collect();
    let mut all = vec![(burst, Vec::new()); stacks.len()];
    for record in &burst.records {
        let of = stacks.partition_point(|stack| stack.last().is_some_and(|p| *p < record.stack));
        all[of].1.push(*record);
    }
    all
}
