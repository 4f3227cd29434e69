//! Counts of a file, as rows `trial,event,value` → the values of a table's nodes (`tdtool tables eval`).

use profile::counts::{Match, Names};
use report::documents::tables::{Evaluation, Row};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
use tma::counts::{Counts, GroupCounts};
use tma::error::nearest;
use tma::formula::Leaf;
use tma::quantity::Missing;
use tma::tables::{Const, EventId, Node, Table};
use tma::tree::{Evaluation as Values, Evaluator};
use tma::{Error, Result};

/// Unknown events that an error lists before it only counts the rest.
const LISTED: usize = 12;

/// Evaluates the counts in the file at `path` with `table`.
///
/// # Errors
/// The file cannot be read, or has no event of the table.
///
/// ```
/// use engine::evaluated::evaluate;
///
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("counts.csv");
/// std::fs::write(&file, "trial,event,value\na,TotalSlots,4000\na,FetchBubbles,800\n")?;
///
/// let evaluation = evaluate(&*engine::library().load("paper")?, &file)?;
/// let row = |id| evaluation.rows.iter().find(|row| row.node == id).expect("a node");
/// // 800 / 4000, over its threshold of 0.15; the events of bad speculation are not counted.
/// assert_eq!((row("Frontend_Bound").value, row("Frontend_Bound").over), (Some(0.2), Some(true)));
/// assert_eq!(row("Bad_Speculation").value, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn evaluate(table: &Table, path: &Path) -> Result<Evaluation> {
    let input = read(table, path)?;
    if !input.trials.iter().any(|(_, c)| c.groups.iter().any(GroupCounts::has_counts)) {
        return Err(nothing_counted(table, path, &input));
    }
    let mut out = Evaluation { table: table.name.clone(), ..Evaluation::default() };
    let (mut missing, mut undefined) = (Nodes::new(), Nodes::new());
    let mut evaluator = Evaluator::new(table);
    for (trial, counts) in &input.trials {
        let values = evaluator.values(counts);
        for (node, result) in table.nodes.iter().zip(&values.nodes) {
            let mut over = over(node, result.over, &values);
            let place = || format!("{} (trial {trial})", node.id);
            let value = match &result.quantity.value {
                Ok(value) => Some(*value),
                Err(why @ Missing::Undefined(_)) => {
                    undefined.entry(why.to_string()).or_default().push(place());
                    Some(0.0)
                }
                Err(why) => {
                    missing.entry(why.to_string()).or_default().push(place());
                    over = None;
                    None
                }
            };
            out.rows.push(Row { trial: trial.clone(), node: node.id.to_string(), value, over });
        }
    }
    out.unknown = input.unknown;
    out.missing = by_reason(missing);
    out.undefined = by_reason(undefined);
    Ok(out)
}

/// Reason → the nodes it holds for.
type Nodes = BTreeMap<String, Vec<String>>;

fn by_reason(nodes: Nodes) -> Vec<String> {
    let line = |(reason, nodes): (String, Vec<String>)| match nodes.as_slice() {
        [first, rest @ ..] if !rest.is_empty() => {
            format!("{first} and {} more: {reason}", rest.len())
        }
        nodes => format!("{}: {reason}", nodes.concat()),
    };
    nodes.into_iter().map(line).collect()
}

fn nothing_counted(table: &Table, path: &Path, input: &Trials) -> Error {
    let error = Error::failed(format!("no event of {} in {}", table.name, path.display()));
    let error = match input.unknown.as_slice() {
        [] => error,
        unknown => error.because(format!("not in the table: {}", listed(unknown))),
    };
    error.hint(
        "`tdtool tables show NAME --all` lists the events; rows are trial,event,value; `tdtool report \
         FILE` reads what perf and toplev write",
    )
}

/// The first few, and how many more.
fn listed(all: &[String]) -> String {
    let shown = all[..all.len().min(LISTED)].join(", ");
    match all.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// A comparison with an undefined value does not hold; one with a missing value is not known.
fn over(node: &Node, holds: Option<bool>, values: &Values) -> Option<bool> {
    let threshold = node.over.as_ref()?;
    let missing = |leaf| match leaf {
        Leaf::Node(n) => matches!(
            &values.nodes[usize::from(n)].quantity.value,
            Err(why) if !matches!(why, Missing::Undefined(_))
        ),
        _ => false,
    };
    match holds {
        Some(holds) => Some(holds),
        None if threshold.leaves().any(missing) => None,
        None => Some(false),
    }
}

/// The counts in a file.
#[derive(Debug, Clone, Default)]
pub struct Trials {
    /// Name and counts of each trial, in the order of the file.
    pub trials: Vec<(String, Counts)>,
    /// Events that the table lacks, each with its first line.
    pub unknown: Vec<String>,
}

/// Reads the counts of `table`'s events in the file at `path`.
///
/// # Errors
/// The file cannot be read, is empty, or has a malformed or repeated row.
pub fn read(table: &Table, path: &Path) -> Result<Trials> {
    let unreadable = |why: &dyn fmt::Display| {
        Error::failed(format!("cannot read the counts in {}", path.display()))
            .because(why)
            .hint("rows are trial,event,value; the first line may be that heading")
    };
    let text = tma::files::read_text(path, tma::files::LONGEST_TEXT).map_err(|e| unreadable(&e))?;
    parse(table, &text).map_err(|why| unreadable(&why))
}

/// An error in the rows of a file.
enum Malformed {
    /// A line has other cells than three.
    Cells(usize, String),
    /// The value in a line is not a count.
    Value(usize, String),
    /// A line has an event again, of a trial.
    Repeated(usize, String, String),
    /// There are none.
    Empty,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cells(number, line) => {
                write!(f, "line {number}: `{line}` does not have 3 cells")
            }
            Self::Value(number, value) => write!(f, "line {number}: `{value}` is not a count"),
            Self::Repeated(number, event, trial) => {
                write!(f, "line {number}: a second `{event}` in trial {trial}")
            }
            Self::Empty => f.write_str("the file has no rows"),
        }
    }
}

fn parse(table: &Table, text: &str) -> std::result::Result<Trials, Malformed> {
    let names = EventNames::of(table);
    let mut trials: Vec<(String, Trial)> = Vec::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    let mut unknown = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line == "trial,event,value" {
            continue;
        }
        let (trial, event, value) =
            cells(line).ok_or_else(|| Malformed::Cells(number, line.to_owned()))?;
        let value = count(value).ok_or_else(|| Malformed::Value(number, value.to_owned()))?;
        let at = *index.entry(trial.to_owned()).or_insert_with(|| {
            trials.push((trial.to_owned(), Trial::default()));
            trials.len() - 1
        });
        match trials[at].1.add(names.find(event), value) {
            Added::Yes => {}
            Added::Repeated => {
                return Err(Malformed::Repeated(number, event.to_owned(), trial.to_owned()));
            }
            Added::No => {
                unknown.entry(event.to_owned()).or_insert(number);
            }
        }
    }
    if trials.is_empty() {
        return Err(Malformed::Empty);
    }
    Ok(Trials {
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

/// The three cells of a row; the event may be quoted and hold commas.
fn cells(line: &str) -> Option<(&str, &str, &str)> {
    let (trial, rest) = line.split_once(',')?;
    let (event, value) = rest.rsplit_once(',')?;
    let event = event.trim();
    let event = event.strip_prefix('"').and_then(|e| e.strip_suffix('"')).unwrap_or(event);
    Some((trial.trim(), event, value.trim()))
}

/// The value of a cell, `None` inside for perf's words for no count; `None` if it is not a count.
fn count(cell: &str) -> Option<Option<f64>> {
    match cell {
        "" | "<not counted>" | "<not supported>" => Some(None),
        text => text.parse::<f64>().ok().filter(|v| v.is_finite()).map(Some),
    }
}

/// The subject of a row.
enum Subject {
    Constant(Const),
    /// An event under the table's own name.
    Named(EventId),
    /// An event with the encoding of one of the table's.
    Encoded(EventId),
    Unknown,
}

/// Finds events by the table's own names, then by their encoding.
struct EventNames<'t> {
    own: HashMap<String, EventId>,
    names: Names<'t>,
}

impl<'t> EventNames<'t> {
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

/// Whether a row was used.
enum Added {
    Yes,
    Repeated,
    No,
}

/// The counts of one trial while they are read.
#[derive(Default)]
struct Trial {
    constants: [Option<Option<f64>>; 5],
    /// Value, and whether the row had the table's own name.
    events: HashMap<EventId, (Option<f64>, bool)>,
}

impl Trial {
    /// An event's own name takes precedence over another name for its encoding.
    fn add(&mut self, subject: Subject, value: Option<f64>) -> Added {
        match subject {
            Subject::Unknown => Added::No,
            Subject::Constant(c) => match self.constants[c.index()].replace(value) {
                None => Added::Yes,
                Some(_) => Added::Repeated,
            },
            Subject::Named(id) => match self.events.insert(id, (value, true)) {
                Some((_, true)) => Added::Repeated,
                _ => Added::Yes,
            },
            Subject::Encoded(id) => match self.events.entry(id) {
                Entry::Occupied(_) => Added::No,
                Entry::Vacant(free) => {
                    free.insert((value, false));
                    Added::Yes
                }
            },
        }
    }

    /// All events in one group: the rows of a trial belong together.
    fn counts(self, table: &Table) -> Counts {
        let value = |(id, (value, _)): (EventId, (Option<f64>, bool))| {
            let name = || Missing::NotCounted(table.events[usize::from(id)].name.clone().into());
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
