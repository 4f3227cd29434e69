//! `tdtool tables eval UARCH --counts FILE`: node values for counts from a file.
//!
//! The file has rows `trial,event,value`; the answer has rows `trial,node,value,over`, for every
//! node, bottleneck and info metric. What cannot be computed has an empty value, and standard
//! error says why.

use super::print;
use crate::cli::Global;
use clap::Args;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tdtool::counts::{Counts, GroupCounts};
use tdtool::quantity::Missing;
use tdtool::tables::{Const, EventId, Table};
use tdtool::topdown::Evaluator;
use tdtool::{Error, Result};

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
    let mut out = String::from("trial,node,value,over\n");
    let mut why: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut evaluator = Evaluator::new(&table);
    for (trial, counts) in &input.trials {
        let evaluation = evaluator.values(counts);
        for (node, result) in table.nodes.iter().zip(&evaluation.nodes) {
            let over = match result.over {
                Some(true) => "1",
                Some(false) => "0",
                None => "",
            };
            match &result.quantity.value {
                Ok(value) => {
                    let _ = writeln!(out, "{trial},{},{value},{over}", node.id);
                }
                Err(missing) => {
                    let _ = writeln!(out, "{trial},{},,", node.id);
                    let place = format!("{} (trial {trial})", node.id);
                    why.entry(missing.to_string()).or_default().push(place);
                }
            }
        }
    }
    print(&out)?;
    tell("events not in the table", &input.unknown, &table);
    let why: Vec<String> = why
        .into_iter()
        .map(|(reason, nodes)| match nodes.as_slice() {
            [one] => format!("{one}: {reason}"),
            [first, rest @ ..] => format!("{first} and {} more: {reason}", rest.len()),
            [] => reason,
        })
        .collect();
    tell("without a value", &why, &table);
    Ok(ExitCode::SUCCESS)
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
    let names: HashMap<String, EventId> =
        (0..).zip(&table.events).map(|(id, e)| (normal(&e.name), id)).collect();
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
        let value = match value {
            "" | "<not counted>" | "<not supported>" => None,
            text => match text.parse::<f64>() {
                Ok(v) if v.is_finite() => Some(v),
                _ => return Err(unreadable(format!("line {number}: `{text}` is no count"))),
            },
        };
        let at = *place.entry(trial.to_owned()).or_insert_with(|| {
            trials.push((trial.to_owned(), Trial::default()));
            trials.len() - 1
        });
        let into = &mut trials[at].1;
        let known = match event.strip_prefix('#') {
            Some(name) => Const::from_name(name).map(|c| into.constant(c, value)),
            None => names.get(&normal(event)).map(|id| into.event(*id, value)),
        };
        match known {
            Some(true) => {}
            Some(false) => {
                return Err(unreadable(format!(
                    "line {number}: a second `{event}` in trial {trial}"
                )));
            }
            None => {
                unknown.entry(event.to_owned()).or_insert(number);
            }
        }
    }
    if trials.is_empty() {
        return Err(unreadable("the file has no rows".into()));
    }
    Ok(Input {
        trials: trials.into_iter().map(|(name, t)| (name, t.counts(table))).collect(),
        unknown: unknown.into_iter().map(|(name, line)| format!("{name} (line {line})")).collect(),
    })
}

/// Counts of one trial, as they come in.
#[derive(Default)]
struct Trial {
    constants: [Option<Option<f64>>; 5],
    events: HashMap<EventId, Option<f64>>,
}

impl Trial {
    /// Takes a constant; `false` if it is there already.
    fn constant(&mut self, constant: Const, value: Option<f64>) -> bool {
        self.constants[constant.index()].replace(value).is_none()
    }

    /// Takes an event; `false` if it is there already.
    fn event(&mut self, id: EventId, value: Option<f64>) -> bool {
        self.events.insert(id, value).is_none()
    }

    /// All events in one group: the rows of a trial belong together.
    fn counts(self, table: &Table) -> Counts {
        let value = |(id, value): (EventId, Option<f64>)| {
            let name = || Missing::NotCounted(table.events[usize::from(id)].name.clone());
            (id, value.ok_or_else(name))
        };
        let mut events: Vec<_> = self.events.into_iter().map(value).collect();
        events.sort_unstable_by_key(|(id, _)| *id);
        Counts {
            groups: vec![GroupCounts::Imported { events, running: None }],
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
