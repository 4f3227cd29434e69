//! Nodes: names, formulas, parents, cycles, texts, and the words that units and domains are made of.

use super::finding::Findings;
use super::finding::Severity::{Error, Warning};
use crate::error::nearest;
use crate::formula::{Expr, parse};
use crate::tables::schema::{NodeSpec, TableFile};
use crate::tables::texts::{Texts, variant};
use crate::tables::{Const, NodeKind};
use std::collections::{HashMap, HashSet};

/// A node with its formulas, as far as they parse.
pub(super) struct Formulas<'f> {
    pub(super) node: &'f NodeSpec,
    pub(super) kind: NodeKind,
    pub(super) value: Option<Expr>,
    pub(super) over: Option<Expr>,
}

/// Checks all nodes; returns what parsed.
pub(super) fn check<'f>(
    file: &'f TableFile,
    texts: Texts,
    found: &mut Findings,
) -> Vec<Formulas<'f>> {
    let parsed: Vec<Formulas> = all(file).map(|(kind, node)| formulas(kind, node, found)).collect();
    let names = names(file, found);
    for node in &parsed {
        references(node, file, &names, found);
        parent(node, file, found);
        vocabulary(node, found);
        text(node, file, texts, found);
    }
    cycles(&parsed, found);
    parsed
}

fn all(file: &TableFile) -> impl Iterator<Item = (NodeKind, &NodeSpec)> {
    file.node
        .iter()
        .map(|n| (NodeKind::Tree, n))
        .chain(file.bottleneck.iter().map(|n| (NodeKind::Bottleneck, n)))
        .chain(file.info.iter().map(|n| (NodeKind::Info, n)))
}

fn formulas<'f>(kind: NodeKind, node: &'f NodeSpec, found: &mut Findings) -> Formulas<'f> {
    let mut read = |what: &str, text: &str| match parse(text) {
        Ok(expr) => Some(expr),
        Err(e) => {
            found.node(Error, &node.id, format!("{what}, {e}: `{text}`"));
            None
        }
    };
    let value = read("formula", &node.formula);
    let over = node.over.as_deref().and_then(|text| read("threshold", text));
    Formulas { node, kind, value, over }
}

/// Everything a formula may name.
fn names<'f>(file: &'f TableFile, found: &mut Findings) -> HashSet<&'f str> {
    let mut names: HashSet<&str> = file.events.keys().map(String::as_str).collect();
    for (_, node) in all(file) {
        if node.id.is_empty() {
            found.node(Error, &node.id, "a node without a name".into());
        }
        if !names.insert(&node.id) {
            found.node(Error, &node.id, "another node or event has this name".into());
        }
    }
    names
}

fn references(node: &Formulas, file: &TableFile, names: &HashSet<&str>, found: &mut Findings) {
    let id = &node.node.id;
    for (what, expr) in [("formula", &node.value), ("threshold", &node.over)] {
        let Some(expr) = expr else { continue };
        expr.names(&mut |name| {
            if !names.contains(name) {
                let near = nearest(name, names.iter().copied());
                let near = near.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
                let what =
                    format!("{what} names `{name}`, which is neither a node nor an event{near}");
                found.node(Error, id, what);
            } else if what == "threshold" && file.events.contains_key(name) {
                let what = format!("threshold compares the event `{name}`; it can compare nodes");
                found.node(Error, id, what);
            }
        });
        for name in constants(expr).into_iter().filter(|n| Const::from_name(n).is_none()) {
            let known = Const::ALL.map(Const::name).join(", ");
            let what = format!("{what} names the constant `#{name}`; there are {known}");
            found.node(Error, id, what);
        }
    }
    for event in &node.node.locate {
        if !file.events.contains_key(event) {
            let near = nearest(event, file.events.keys().map(String::as_str));
            let near = near.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
            found.node(Error, id, format!("locate names `{event}`, which is not an event{near}"));
        }
    }
}

fn constants(expr: &Expr) -> Vec<&str> {
    match expr {
        Expr::Const(name) => vec![name],
        Expr::Num(_) | Expr::Name(_) => Vec::new(),
        Expr::Neg(e) => constants(e),
        Expr::Bin(_, a, b) => [constants(a), constants(b)].concat(),
        Expr::If { cond, then, other } => {
            [constants(cond), constants(then), constants(other)].concat()
        }
    }
}

fn parent(node: &Formulas, file: &TableFile, found: &mut Findings) {
    let spec = node.node;
    let Some(parent) = &spec.parent else {
        if node.kind == NodeKind::Tree && spec.level != 1 {
            let what = format!("at level {} and without a parent", spec.level);
            found.node(Error, &spec.id, what);
        }
        return;
    };
    if node.kind != NodeKind::Tree {
        found.node(Error, &spec.id, "has a parent but is not a node of the tree".into());
        return;
    }
    let place = |id: &str| file.node.iter().position(|n| n.id == id);
    match (place(parent), place(&spec.id)) {
        (None, _) => {
            let near = nearest(parent, file.node.iter().map(|n| n.id.as_str()));
            let near = near.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
            found.node(Error, &spec.id, format!("its parent `{parent}` does not exist{near}"));
        }
        (Some(above), Some(at)) if above >= at => {
            found.node(Error, &spec.id, format!("stands before its parent `{parent}`"));
        }
        (Some(above), _) if file.node[above].level + 1 != spec.level => {
            let what = format!(
                "at level {} under `{parent}` at level {}",
                spec.level, file.node[above].level
            );
            found.node(Error, &spec.id, what);
        }
        _ => {}
    }
}

fn vocabulary(node: &Formulas, found: &mut Findings) {
    let spec = node.node;
    let lists: [(_, _, &[&str]); 2] =
        [("unit", &spec.unit, UNITS), ("domain", &spec.domain, DOMAINS)];
    for (what, word, known) in lists {
        let Some(word) = word else { continue };
        if !known.contains(&word.as_str()) {
            let near = nearest(word, known.iter().copied());
            let near = near.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
            found.node(Error, &spec.id, format!("{what} `{word}` is not known{near}"));
        }
    }
}

fn text(node: &Formulas, file: &TableFile, texts: Texts, found: &mut Findings) {
    let variant = variant(file.texts.as_deref(), file.core);
    if texts.lookup(node.kind, &node.node.id, &file.name, variant).is_none() {
        found.node(Warning, &node.node.id, "no text in events/nodes.toml".into());
    }
}

/// Formulas that need themselves: each cycle is reported once, at its first node.
fn cycles(parsed: &[Formulas], found: &mut Findings) {
    let index: HashMap<&str, usize> =
        parsed.iter().enumerate().map(|(i, f)| (f.node.id.as_str(), i)).collect();
    let uses: Vec<Vec<usize>> = parsed
        .iter()
        .map(|f| {
            let mut used = Vec::new();
            if let Some(expr) = &f.value {
                expr.names(&mut |name| used.extend(index.get(name)));
            }
            used
        })
        .collect();
    // 0 not seen, 1 on the path, 2 done.
    let mut state = vec![0u8; parsed.len()];
    for root in 0..parsed.len() {
        if state[root] != 0 {
            continue;
        }
        let mut path = vec![(root, 0)];
        state[root] = 1;
        while let Some((n, next)) = path.last_mut() {
            let Some(&m) = uses[*n].get(*next) else {
                state[*n] = 2;
                path.pop();
                continue;
            };
            *next += 1;
            match state[m] {
                0 => {
                    state[m] = 1;
                    path.push((m, 0));
                }
                1 => {
                    let from = path.iter().position(|(p, _)| *p == m).unwrap_or(0);
                    let ring: Vec<&str> =
                        path[from..].iter().map(|(p, _)| parsed[*p].node.id.as_str()).collect();
                    let what =
                        format!("its formula is circular: {} → {}", ring.join(" → "), ring[0]);
                    found.node(Error, ring[0], what);
                }
                _ => {}
            }
        }
    }
}

/// Units that info metrics may have; the empty one is a plain number.
pub const UNITS: &[&str] = &[
    "",
    "%",
    "instructions",
    "events",
    "slots",
    "cycles",
    "per 1000 instructions",
    "per 1000 µops",
    "instructions/cycle",
    "cycles/instruction",
    "ops/cycle",
    "GHz",
    "GB/s",
    "MB/s",
    "GFLOP/s",
    "s",
    "ns",
    "W",
];

/// Domains of a value: Intel's count domains. AMD's and hand-written tables use `Slots` and `Clocks`.
pub const DOMAINS: &[&str] = &[
    "Slots",
    "Slots_Estimated",
    "Scaled_Slots",
    "Clocks",
    "Clocks_Estimated",
    "Clocks_Calculated",
    "Clocks_Latency",
    "Clocks_Retired",
    "Core_Clocks",
    "Core_Execution",
    "Core_Utilization",
    "Cycles",
    "Stalls",
    "Uops",
    "Count",
    "Fraction",
    "Metric",
    "Inst_Metric",
    "Core_Metric",
    "System_Metric",
    "Seconds",
    "NanoSeconds",
    "GB/sec",
    "MB/sec",
];
