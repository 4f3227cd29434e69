//! Counts of a file → the values of a table's nodes.

use crate::trials::{self, Trials};
use report::documents::evaluation::{Evaluation, Row};
use std::collections::BTreeMap;
use std::path::Path;
use tma::counts::GroupCounts;
use tma::formula::Leaf;
use tma::quantity::Missing;
use tma::tables::{Node, Table};
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
    let input = trials::read(table, path)?;
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
