//! Thresholds that can never hold, or look at the wrong node.
//!
//! An expression is unfolded into the alternatives of its `or`s; each alternative is a set of bounds on nodes. If no
//! alternative can hold, the threshold is unreachable. Anything but a comparison of a node with a number counts as
//! possible.

use super::finding::Findings;
use super::finding::Severity::{Error, Note};
use super::nodes::Formulas;
use crate::formula::{BinOp, Expr};
use crate::tables::NodeKind;
use crate::tables::schema::TableFile;
use std::collections::{BTreeMap, HashMap, HashSet};

/// More alternatives than any real threshold has; beyond them nothing is decided.
const MANY: usize = 256;

/// Greatest lower and least upper bound of a node, both exclusive.
type Bounds = BTreeMap<String, (f64, f64)>;

pub(super) fn check(file: &TableFile, formulas: &[Formulas], found: &mut Findings) {
    // Shares lie between 0 and 1; above 1 a node is mismeasured and never flagged.
    let shares: HashSet<&str> = formulas
        .iter()
        .filter(|f| f.kind != NodeKind::Info && f.node.unit.is_none())
        .map(|f| f.node.id.as_str())
        .collect();
    let parents: HashMap<&str, &str> =
        file.node.iter().filter_map(|n| Some((n.id.as_str(), n.parent.as_deref()?))).collect();
    for node in formulas {
        let Some(over) = &node.over else { continue };
        let id = &node.node.id;
        let text = node.node.over.as_deref().unwrap_or_default();
        if let Some(alternatives) = alternatives(over)
            && !alternatives.iter().any(|bounds| possible(bounds, &shares))
        {
            found.node(Error, id, format!("the threshold can never hold: `{text}`"));
        }
        if node.kind == NodeKind::Tree {
            strangers(id, over, &shares, &parents, found);
        }
    }
}

fn possible(bounds: &Bounds, shares: &HashSet<&str>) -> bool {
    bounds.iter().all(|(name, (above, below))| {
        let (least, most) = if shares.contains(name.as_str()) {
            (0.0, 1.0)
        } else {
            (f64::NEG_INFINITY, f64::INFINITY)
        };
        *above < *below && *above < most && *below > least
    })
}

/// The alternatives of an expression, or `None` where there are too many.
fn alternatives(expr: &Expr) -> Option<Vec<Bounds>> {
    match expr {
        Expr::Bin(BinOp::Or, a, b) => {
            let mut both = alternatives(a)?;
            both.extend(alternatives(b)?);
            (both.len() <= MANY).then_some(both)
        }
        Expr::Bin(BinOp::And, a, b) => {
            let (a, b) = (alternatives(a)?, alternatives(b)?);
            if a.len() * b.len() > MANY {
                return None;
            }
            Some(a.iter().flat_map(|x| b.iter().map(move |y| both(x, y))).collect())
        }
        other => Some(vec![comparison(other)]),
    }
}

fn both(a: &Bounds, b: &Bounds) -> Bounds {
    let mut all = a.clone();
    for (name, (above, below)) in b {
        let bounds = all.entry(name.clone()).or_insert((f64::NEG_INFINITY, f64::INFINITY));
        *bounds = (bounds.0.max(*above), bounds.1.min(*below));
    }
    all
}

/// `node > number` and its kin; anything else bounds nothing.
fn comparison(expr: &Expr) -> Bounds {
    let Expr::Bin(op, a, b) = expr else { return Bounds::new() };
    let (name, number, above) = match (op, a.as_ref(), b.as_ref()) {
        (BinOp::Gt | BinOp::Ge, Expr::Name(name), Expr::Num(n)) => (name, *n, true),
        (BinOp::Lt | BinOp::Le, Expr::Name(name), Expr::Num(n)) => (name, *n, false),
        (BinOp::Lt | BinOp::Le, Expr::Num(n), Expr::Name(name)) => (name, *n, true),
        (BinOp::Gt | BinOp::Ge, Expr::Num(n), Expr::Name(name)) => (name, *n, false),
        _ => return Bounds::new(),
    };
    // `>= 1` can just hold: move the bound by less than any figure shows.
    let slack = if matches!(op, BinOp::Ge | BinOp::Le) { 1e-12 } else { 0.0 };
    let bounds =
        if above { (number - slack, f64::INFINITY) } else { (f64::NEG_INFINITY, number + slack) };
    Bounds::from([(name.clone(), bounds)])
}

/// Nodes of the tree that are neither the node itself nor above nor below it.
fn strangers(
    id: &str,
    over: &Expr,
    shares: &HashSet<&str>,
    parents: &HashMap<&str, &str>,
    found: &mut Findings,
) {
    let mut own = false;
    let mut others = Vec::new();
    over.names(&mut |name| {
        own |= name == id;
        let related = is_above(name, id, parents) || is_above(id, name, parents);
        let in_tree = shares.contains(name)
            && (parents.contains_key(name) || parents.values().any(|p| *p == name));
        if name != id && in_tree && !related {
            others.push(name.to_owned());
        }
    });
    if !own {
        found.node(Note, id, "its threshold does not compare its own value".into());
    }
    for other in others {
        let what = format!(
            "its threshold compares `{other}`, which is neither an ancestor nor a descendant"
        );
        found.node(Note, id, what);
    }
}

/// Whether `above` is an ancestor of `id`; a chain that never ends is cut.
fn is_above(above: &str, id: &str, parents: &HashMap<&str, &str>) -> bool {
    std::iter::successors(parents.get(id), |p| parents.get(**p))
        .take(parents.len() + 1)
        .any(|p| *p == above)
}
