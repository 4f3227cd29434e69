//! `tdtool tables eval UARCH --counts FILE`: node values for counts from a file.
//!
//! The file has rows `trial,event,value`; the answer has rows `trial,node,value,over`, for every
//! node, bottleneck and info metric. Where counts are missing the value is empty. Where a formula
//! divides by a count of zero it is 0, because this command is for comparing tables with perf and
//! toplev, which have it so; a report calls such a value undefined. Standard error tells of both.

use super::print;
use crate::cli::Global;
use clap::Args;
use profile::counts::{Match, Names};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tma::counts::{Counts, GroupCounts};
use tma::error::nearest;
use tma::formula::Leaf;
use tma::quantity::Missing;
use tma::tables::{Const, EventId, Node, Table};
use tma::tree::{Evaluation, Evaluator};
use tma::{Error, Result};

/// Reasons that are listed before the rest is only counted.
const LISTED: usize = 12;

#[derive(Args)]
pub struct EvalArgs {
    /// Microarchitecture (`tdtool tables list` names them)
    #[arg(value_name = "UARCH")]
    name: String,
    /// CSV file with rows trial,event,value; constants as #SMT_ON, #DURATION_MS, #TSC_HZ,
    /// #SOCKETS, #CORES_PER_SOCKET
    #[arg(long, value_name = "FILE")]
    counts: PathBuf,
}

/// Prints `trial,node,value,over`.
pub fn run(global: &Global, args: &EvalArgs) -> Result<ExitCode> {
    let table = global.library()?.load(&args.name)?;
    let input = read(&table, &args.counts)?;
    let counted = |g: &GroupCounts| (0..g.events().len()).any(|i| g.total(i).is_ok());
    if !input.trials.iter().any(|(_, c)| c.groups.iter().any(counted)) {
        let file = args.counts.display();
        let error = Error::failed(format!("no event of {} in {file}", table.name));
        let error = match input.unknown.as_slice() {
            [] => error,
            unknown => error.because(format!("not in the table: {}", listed(unknown))),
        };
        return Err(error.hint(
            "`tdtool tables show NAME` has the events; rows are trial,event,value; `tdtool report FILE` \
             reads what perf and toplev write",
        ));
    }
    let mut out = String::from("trial,node,value,over\n");
    let mut why = Reasons::default();
    let mut evaluator = Evaluator::new(&table);
    for (trial, counts) in &input.trials {
        let evaluation = evaluator.values(counts);
        for (node, result) in table.nodes.iter().zip(&evaluation.nodes) {
            let over = over(node, result.over, &evaluation);
            match &result.quantity.value {
                Ok(value) => {
                    let _ = writeln!(out, "{trial},{},{value},{over}", node.id);
                }
                Err(missing @ Missing::Undefined(_)) => {
                    let _ = writeln!(out, "{trial},{},0,{over}", node.id);
                    why.zero.entry(missing.to_string()).or_default().push(place(node, trial));
                }
                Err(missing) => {
                    let _ = writeln!(out, "{trial},{},,", node.id);
                    why.empty.entry(missing.to_string()).or_default().push(place(node, trial));
                }
            }
        }
    }
    print(&out)?;
    tell("events not in the table", &input.unknown, &table);
    tell("without a value", &lines(why.empty), &table);
    tell("undefined, printed as 0 as perf and toplev do", &lines(why.zero), &table);
    Ok(ExitCode::SUCCESS)
}

/// The first few, and how many more.
fn listed(all: &[String]) -> String {
    let shown = all[..all.len().min(LISTED)].join(", ");
    match all.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Reason → the nodes it holds for.
#[derive(Default)]
struct Reasons {
    empty: BTreeMap<String, Vec<String>>,
    zero: BTreeMap<String, Vec<String>>,
}

fn place(node: &Node, trial: &str) -> String {
    format!("{} (trial {trial})", node.id)
}

fn lines(reasons: BTreeMap<String, Vec<String>>) -> Vec<String> {
    let line = |(reason, nodes): (String, Vec<String>)| match nodes.as_slice() {
        [first, rest @ ..] if !rest.is_empty() => {
            format!("{first} and {} more: {reason}", rest.len())
        }
        nodes => format!("{}: {reason}", nodes.concat()),
    };
    reasons.into_iter().map(line).collect()
}

/// 1, 0, or nothing where there is no threshold or a node in it is missing. A comparison with
/// an undefined value does not hold.
fn over(node: &Node, holds: Option<bool>, evaluation: &Evaluation) -> &'static str {
    let Some(threshold) = &node.over else { return "" };
    let missing = |leaf| match leaf {
        Leaf::Node(n) => matches!(
            &evaluation.nodes[usize::from(n)].quantity.value,
            Err(why) if !matches!(why, Missing::Undefined(_))
        ),
        _ => false,
    };
    match holds {
        Some(true) => "1",
        Some(false) => "0",
        None if threshold.leaves().any(missing) => "",
        None => "0",
    }
}

/// A short list on standard error.
#[allow(clippy::print_stderr)]
fn tell(what: &str, list: &[String], table: &Table) {
    if list.is_empty() {
        return;
    }
    eprintln!("{}: {what}:", table.name);
    for line in list.iter().take(LISTED) {
        eprintln!("  {line}");
    }
    if list.len() > LISTED {
        eprintln!("  … and {} more", list.len() - LISTED);
    }
}

/// What the file holds.
struct Input {
    /// In the order of the file.
    trials: Vec<(String, Counts)>,
    unknown: Vec<String>,
}

fn read(table: &Table, path: &Path) -> Result<Input> {
    let unreadable = |why: String| {
        Error::failed(format!("cannot read the counts in {}", path.display()))
            .because(why)
            .hint("rows are trial,event,value; the first line may be that heading")
    };
    let text = std::fs::read_to_string(path).map_err(|e| unreadable(e.to_string()))?;
    let names = Spellings::of(table);
    let mut trials: Vec<(String, Trial)> = Vec::new();
    let mut place: HashMap<String, usize> = HashMap::new();
    let mut unknown = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line == "trial,event,value" {
            continue;
        }
        let (trial, event, value) = cells(line)
            .ok_or_else(|| unreadable(format!("line {number}: `{line}` has not three cells")))?;
        let value = count(value)
            .ok_or_else(|| unreadable(format!("line {number}: `{value}` is no count")))?;
        let at = *place.entry(trial.to_owned()).or_insert_with(|| {
            trials.push((trial.to_owned(), Trial::default()));
            trials.len() - 1
        });
        match trials[at].1.take(names.find(event), value) {
            Taken::Yes => {}
            Taken::Twice => {
                let why = format!("line {number}: a second `{event}` in trial {trial}");
                return Err(unreadable(why));
            }
            Taken::No => {
                unknown.entry(event.to_owned()).or_insert(number);
            }
        }
    }
    if trials.is_empty() {
        return Err(unreadable("the file has no rows".into()));
    }
    Ok(Input {
        trials: trials.into_iter().map(|(name, t)| (name, t.counts(table))).collect(),
        unknown: unknown
            .into_iter()
            .map(|(name, line)| unknown_event(table, &name, line))
            .collect(),
    })
}

fn unknown_event(table: &Table, name: &str, line: usize) -> String {
    match nearest(name, table.events.iter().map(|e| e.name.as_str())) {
        Some(near) => format!("{name} (line {line}; did you mean {near}?)"),
        None => format!("{name} (line {line})"),
    }
}

/// The value of a cell; `None` if it is no count.
fn count(cell: &str) -> Option<Option<f64>> {
    match cell {
        "" | "<not counted>" | "<not supported>" => Some(None),
        text => text.parse::<f64>().ok().filter(|v| v.is_finite()).map(Some),
    }
}

/// What a row is about.
enum Subject {
    Constant(Const),
    /// An event under the table's own name.
    Named(EventId),
    /// An event with the encoding of one of the table's.
    Encoded(EventId),
    Unknown,
}

/// Names of events: first as the table spells them, then by their encoding.
struct Spellings<'t> {
    own: HashMap<String, EventId>,
    names: Names<'t>,
}

impl<'t> Spellings<'t> {
    fn of(table: &'t Table) -> Self {
        let own = (0..).zip(&table.events).map(|(id, e)| (normal(&e.name), id)).collect();
        Self { own, names: Names::new(table) }
    }

    fn find(&self, name: &str) -> Subject {
        if let Some(id) = self.own.get(&normal(name)) {
            return Subject::Named(*id);
        }
        match self.names.resolve(name) {
            Match::Constant(constant) => Subject::Constant(constant),
            Match::Event { id, only: None } => Subject::Encoded(id),
            _ => Subject::Unknown,
        }
    }
}

/// What became of a row.
enum Taken {
    Yes,
    Twice,
    No,
}

/// Counts of one trial, as they come in.
#[derive(Default)]
struct Trial {
    constants: [Option<Option<f64>>; 5],
    /// Value, and whether the row had the table's own name.
    events: HashMap<EventId, (Option<f64>, bool)>,
}

impl Trial {
    /// An event's own name goes before another name for its encoding.
    fn take(&mut self, subject: Subject, value: Option<f64>) -> Taken {
        match subject {
            Subject::Unknown => Taken::No,
            Subject::Constant(c) => match self.constants[c.index()].replace(value) {
                None => Taken::Yes,
                Some(_) => Taken::Twice,
            },
            Subject::Named(id) => match self.events.insert(id, (value, true)) {
                Some((_, true)) => Taken::Twice,
                _ => Taken::Yes,
            },
            Subject::Encoded(id) => match self.events.entry(id) {
                Entry::Occupied(_) => Taken::No,
                Entry::Vacant(free) => {
                    free.insert((value, false));
                    Taken::Yes
                }
            },
        }
    }

    /// All events in one group: the rows of a trial belong together.
    fn counts(self, table: &Table) -> Counts {
        let value = |(id, (value, _)): (EventId, (Option<f64>, bool))| {
            let name = || Missing::NotCounted(table.events[usize::from(id)].name.clone());
            (id, value.ok_or_else(name))
        };
        let mut events: Vec<_> = self.events.into_iter().map(value).collect();
        events.sort_unstable_by_key(|(id, _)| *id);
        Counts {
            groups: vec![GroupCounts::Imported { events, running: None, intervals: Vec::new() }],
            constants: self.constants.map(Option::flatten),
            ..Counts::default()
        }
    }
}

/// The three cells of a row; the event may be quoted and hold commas.
fn cells(line: &str) -> Option<(&str, &str, &str)> {
    let (trial, rest) = line.split_once(',')?;
    let (event, value) = rest.rsplit_once(',')?;
    let event = event.trim();
    let event = event.strip_prefix('"').and_then(|e| e.strip_suffix('"')).unwrap_or(event);
    Some((trial.trim(), event, value.trim()))
}

/// One spelling for one event: lower case, modifiers in order, `MSR/TSC/` as `tsc`.
fn normal(name: &str) -> String {
    let lower = name.to_lowercase();
    let mut parts = lower.split(':');
    let base = parts.next().unwrap_or_default();
    if base == "msr/tsc/" {
        return "tsc".into();
    }
    let mut modifiers: Vec<&str> = parts
        .map(|m| match m {
            "u" => "user",
            "k" => "sup",
            other => other,
        })
        .collect();
    modifiers.sort_unstable();
    std::iter::once(base).chain(modifiers).collect::<Vec<_>>().join(":")
}
