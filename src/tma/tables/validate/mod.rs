//! Finds everything that is wrong with a table file, not only the first thing.
//!
//! | file | concern |
//! |---|---|
//! | `finding` | findings with their nodes and lines |
//! | `nodes` | names, formulas, parents, cycles, texts |
//!
//! [`super::Table::parse`] stops at the first error because it must; this is for the person who
//! writes a table: every finding with its node and line. `tdtool tables check` prints them.
//!
//! Thresholds that can never hold, or look at the wrong node, are found by unfolding them into the alternatives of their
//! `or`s, each a set of bounds on nodes. Anything but a comparison of a node with a number counts as possible.

mod finding;
mod nodes;
#[cfg(test)]
mod tests;

use super::schema::{EventSpec, TableFile};
use super::texts::Texts;
use super::{NodeKind, PmuKind, Ring};
use crate::formula::{BinOp, Expr};
use finding::Severity::{Error, Note};
use finding::{Findings, Lines};
use nodes::Formulas;
use std::collections::{BTreeMap, HashMap, HashSet};

pub use finding::{Finding, Severity};
pub use nodes::{DOMAINS, UNITS};

/// The result of checking one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Errors first, then by line.
    pub findings: Vec<Finding>,
    /// Nodes, bottlenecks, info metrics and events; 0 where the file cannot be read.
    pub counts: [usize; 4],
}

/// Every finding about the table file `text` that is known as `name`, errors first, then by
/// line.
pub fn findings(name: &str, text: &str, texts: Texts) -> Vec<Finding> {
    report(name, text, texts).findings
}

/// The findings, and how much the file holds.
pub fn report(name: &str, text: &str, texts: Texts) -> Report {
    let mut found = Findings { lines: Lines::of(text), list: Vec::new() };
    let mut counts = [0; 4];
    match toml::from_str::<TableFile>(text) {
        Ok(file) => {
            counts = [file.node.len(), file.bottleneck.len(), file.info.len(), file.events.len()];
            check(name, &file, texts, &mut found);
        }
        Err(e) => {
            let line = e.span().map(|span| found.lines.at(span.start));
            let what =
                format!("the file cannot be read: {}", crate::text::name(e.message().trim_end()));
            found.list.push(Finding { severity: Severity::Error, about: None, line, what });
        }
    }
    let mut findings = found.list;
    findings.sort_by(|a, b| {
        let key = |f: &Finding| (std::cmp::Reverse(f.severity), f.line);
        key(a).cmp(&key(b)).then_with(|| a.what.cmp(&b.what))
    });
    findings.dedup();
    Report { findings, counts }
}

fn check(name: &str, file: &TableFile, texts: Texts, found: &mut Findings) {
    check_head(name, file, found);
    let formulas = nodes::check(file, texts, found);
    check_events(file, &formulas, found);
    check_thresholds(file, &formulas, found);
}

/// Checks the head of a file known as `name`.
fn check_head(name: &str, file: &TableFile, found: &mut Findings) {
    use Severity::{Error, Warning};
    if file.schema != 1 {
        let what = format!("version {} is not supported (this program supports 1)", file.schema);
        found.key(Error, "schema", what);
    }
    if !file.name.eq_ignore_ascii_case(name) {
        found.key(Error, "name", format!("`{}` in a file called `{name}`", file.name));
    }
    if !file.events.contains_key(&file.clocks) {
        found.key(Error, "clocks", format!("`{}` is not an event of this table", file.clocks));
    }
    if file.vendor != "any" && file.matches.is_empty() {
        found.key(
            Warning,
            "match",
            "no processor matches, so only --uarch selects this table (vendor `any` states that \
             intent)"
                .into(),
        );
    }
    if file.pipeline.width == 0 {
        found.key(Error, "pipeline", "a width of 0".into());
    }
    if file.source.is_empty() {
        found.key(Warning, "source", "no source of the facts is given".into());
    }
    if file.node.is_empty() && file.info.is_empty() {
        found.add(Error, None, "the table has no [[node]] and no [[info]]".into());
    }
}

/// Checks all events.
fn check_events(file: &TableFile, formulas: &[Formulas], found: &mut Findings) {
    for (name, spec) in &file.events {
        for what in wrong(file, spec) {
            found.event(Error, name, what);
        }
    }
    unused(file, formulas, found);
    duplicates(file, found);
}

/// Contradictions in the encoding of one event.
fn wrong(file: &TableFile, e: &EventSpec) -> Vec<String> {
    let mut list = Vec::new();
    let mut must = |holds: bool, what: String| {
        if !holds {
            list.push(what);
        }
    };
    if e.pmu == PmuKind::Core {
        let coded = e.code != 0 || e.umask != 0 || e.metric.is_some();
        must(coded, "a core event without a code".into());
        must(e.code <= 0xfff, format!("code {:#x} has more than 12 bits", e.code));
        must(e.umask <= 0xffff, format!("unit mask {:#x} has more than 16 bits", e.umask));
        must(e.cmask <= 0xff, format!("counter mask {} has more than 8 bits", e.cmask));
    }
    let fixed = file.counters.fixed;
    if let Some(n) = e.fixed {
        let what = format!("fixed counter {n} of {fixed}");
        must(u32::from(n) < fixed, what);
    }
    must(e.fixed.is_some() || !e.fixed_only, "fixed_only without fixed".into());
    must(e.metric.is_none_or(|m| m < 8), "metric is 0 to 7".into());
    must(e.extra.is_some() || e.value.is_none(), "value without extra".into());
    must(e.cmask != 0 || !e.inv, "inv without cmask counts nothing useful".into());
    if let Some(counters) = &e.counters {
        must(!counters.is_empty(), "counters is empty: no counter can count it".into());
        let general = file.counters.general;
        let outside = counters.iter().find(|c| u32::from(**c) >= general);
        let outside = outside.filter(|_| e.pmu == PmuKind::Core);
        let what = outside.map(|counter| format!("counter {counter} of {general}"));
        must(outside.is_none(), what.unwrap_or_default());
    }
    list
}

fn unused(file: &TableFile, formulas: &[Formulas], found: &mut Findings) {
    let mut used: HashSet<&str> = HashSet::from([file.clocks.as_str()]);
    for node in formulas {
        // A formula that did not parse might use anything.
        let Some(value) = &node.value else { return };
        value.names(&mut |name| {
            used.insert(name);
        });
        used.extend(node.node.locate.iter().map(String::as_str));
    }
    for name in file.events.keys().filter(|n| !used.contains(n.as_str())) {
        found.event(Note, name, "no formula and no locate uses it".into());
    }
}

/// One encoding under several names is counted several times.
fn duplicates(file: &TableFile, found: &mut Findings) {
    let mut by_encoding: HashMap<_, Vec<&str>> = HashMap::new();
    for (name, e) in file.events.iter().filter(|(_, e)| e.pmu == PmuKind::Core) {
        // Everything that determines a count; sampling and placement do not.
        let bits = [e.inv, e.edge, e.any, e.eq, e.percore];
        let ring = e.ring.map(|r| r == Ring::User);
        let key = (e.code, e.umask, e.cmask, bits, ring, e.extra, e.value, e.metric);
        by_encoding.entry(key).or_default().push(name);
    }
    for names in by_encoding.values().filter(|n| n.len() > 1) {
        found.event(Note, names[0], format!("has the encoding of {}", names[1..].join(", ")));
    }
}

/// More alternatives than any real threshold has; beyond them nothing is decided.
const MANY: usize = 256;

/// Greatest lower and least upper bound of a node, both exclusive.
type Bounds = BTreeMap<String, (f64, f64)>;

fn check_thresholds(file: &TableFile, formulas: &[Formulas], found: &mut Findings) {
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
