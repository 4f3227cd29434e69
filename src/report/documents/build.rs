//! Builds the rows of the document, and the findings in words, from evaluation and flags.

use crate::documents::report::{CountRow, Finding, FindingKind, InfoRow, NodeRow, Place, Report};
use smol_str::SmolStr;
use tma::counts::{Counts, GroupCounts};
use tma::quantity::{Measured, Missing};
use tma::tables::{EventId, Node, NodeId, NodeKind, Table};
use tma::tree::{Evaluation, Flags, Undecided};

/// Which nodes a report shows.
#[derive(Debug, Clone)]
pub struct Selection {
    /// Tree nodes, sorted.
    pub tree: Vec<NodeId>,
    /// Info metrics and bottlenecks, sorted.
    pub beside: Vec<NodeId>,
    /// Rows have neither the counts behind a node nor the events that locate it.
    pub without_details: bool,
}

impl Selection {
    /// The tree down to `level`, all infos, and the bottlenecks view if `bottlenecks`.
    pub fn level(table: &Table, level: u32, bottlenecks: bool) -> Self {
        let tree = table.tree().filter(|(_, n)| n.level <= level).map(|(i, _)| i).collect();
        let shown = |kind| kind == NodeKind::Info || (bottlenecks && kind == NodeKind::Bottleneck);
        let beside = (0..).zip(&table.nodes).filter(|(_, n)| shown(n.kind)).map(|(i, _)| i);
        Self { tree, beside: beside.collect(), without_details: false }
    }

    /// By node, whether it is one of the tree's or leads to one: the bottleneck's path begins at level 1 even
    /// where only deeper nodes are shown.
    fn with_ancestors(&self, table: &Table) -> Vec<bool> {
        let mut shown = vec![false; table.nodes.len()];
        for &n in &self.tree {
            let up = std::iter::successors(Some(n), |&n| table.nodes[usize::from(n)].parent);
            up.for_each(|n| shown[usize::from(n)] = true);
        }
        shown
    }
}

/// The rows of one [`Counts`].
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// Nodes of the tree.
    pub nodes: Vec<NodeRow>,
    /// The bottlenecks view.
    pub bottlenecks: Vec<InfoRow>,
    /// Info metrics; those without a value only where nothing was counted.
    pub info: Vec<InfoRow>,
    /// Findings of the nodes.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Adds the rows of a part.
    pub fn add(&mut self, part: Part) {
        append(&mut self.nodes, part.nodes);
        append(&mut self.bottlenecks, part.bottlenecks);
        append(&mut self.info, part.info);
        append(&mut self.findings, part.findings);
    }
}

/// Most reports have one part, whose rows stay where they are.
fn append<T>(all: &mut Vec<T>, new: Vec<T>) {
    match all.is_empty() {
        true => *all = new,
        false => all.extend(new),
    }
}

/// Renders the selected nodes of the `evaluation` of `counts` into rows.
pub fn part(table: &Table, counts: &Counts, evaluation: &Evaluation, sel: &Selection) -> Part {
    let shown = sel.with_ancestors(table);
    let flags = Flags::among(table, evaluation, |n| shown[usize::from(n)]);
    let place = Place {
        core: counts.core.as_deref().map(Into::into),
        scope: counts.scope.as_deref().map(Into::into),
        interval: counts.interval.map(|(a, b)| (a.as_secs_f64(), b.as_secs_f64())),
    };
    let mut part = Part {
        nodes: Vec::with_capacity(sel.tree.len()),
        info: Vec::with_capacity(sel.beside.len()),
        ..Part::default()
    };
    for &n in &sel.tree {
        let mut row = node_row(table, evaluation, &flags, n, &place);
        if !sel.without_details {
            let sources = evaluation.sources(table, n);
            row.counts =
                sources.iter().map(|&(e, group)| count_row(table, counts, e, group)).collect();
            row.locate.clone_from(&table.nodes[usize::from(n)].spec.locate);
        }
        part.nodes.push(row);
    }
    let is_counted = counts.groups.iter().any(GroupCounts::has_counts);
    for &n in &sel.beside {
        let kind = table.nodes[usize::from(n)].kind;
        let has_value = evaluation.nodes[usize::from(n)].quantity.value.is_ok();
        if kind == NodeKind::Info && is_counted && !has_value {
            continue;
        }
        let row = info_row(&table.nodes[usize::from(n)], evaluation, n, &place);
        match kind {
            NodeKind::Bottleneck => part.bottlenecks.push(row),
            _ => part.info.push(row),
        }
    }
    part.findings = findings(table, evaluation, &flags, &sel.tree, &place);
    part
}

fn text_of(value: &Measured) -> Option<String> {
    value.as_ref().err().map(Missing::to_string)
}

fn node_row(
    table: &Table,
    evaluation: &Evaluation,
    flags: &Flags,
    n: NodeId,
    place: &Place,
) -> NodeRow {
    let node = &table.nodes[usize::from(n)];
    let result = &evaluation.nodes[usize::from(n)];
    let error = &result.quantity.error;
    NodeRow {
        id: node.id.clone(),
        label: node.label.clone(),
        parent: node.parent.map(|p| table.nodes[usize::from(p)].id.clone()),
        level: node.level,
        value: result.quantity.get(),
        error: error.as_ref().ok().copied(),
        no_error: error.as_ref().err().filter(|_| result.quantity.value.is_ok()).cloned(),
        running: result.quantity.running,
        over: result.over,
        flagged: flags.flagged[usize::from(n)],
        bottleneck: flags.bottleneck() == Some(n),
        mismeasured: flags.mismeasured[usize::from(n)],
        split: result.split,
        missing: text_of(&result.quantity.value),
        no_pmu: matches!(result.quantity.value, Err(Missing::NoPmu { .. })),
        estimate: node.spec.estimate.clone(),
        domain: node.spec.domain.clone(),
        related: if flags.flagged[usize::from(n)] {
            related(table, evaluation, n)
        } else {
            Vec::new()
        },
        locate: Vec::new(),
        counts: Vec::new(),
        place: place.clone(),
    }
}

/// Other nodes with an issue tag in common that are over their threshold, too.
fn related(table: &Table, evaluation: &Evaluation, n: NodeId) -> Vec<SmolStr> {
    let issues = &table.nodes[usize::from(n)].spec.issues;
    let shares = |node: &Node| node.spec.issues.iter().any(|i| issues.contains(i));
    let others = (0u16..).zip(&table.nodes).filter(|(m, node)| *m != n && shares(node));
    others
        .filter(|(m, _)| evaluation.nodes[usize::from(*m)].over == Some(true))
        .map(|(_, node)| node.id.clone())
        .collect()
}

/// The count of `event` in `group`; without such a group, that it is missing.
fn count_row(table: &Table, counts: &Counts, event: EventId, group: usize) -> CountRow {
    let name = table.events[usize::from(event)].name.clone();
    let group = counts.groups.get(group);
    let at = group.and_then(|g| Some((g, g.events().position(|e| e == event)?)));
    let Some((group, at)) = at else {
        let missing = Some("not among the counts".to_owned());
        return CountRow { event: name, value: None, running: None, missing };
    };
    let total = group.total(at);
    CountRow {
        event: name,
        running: group.running_share().filter(|_| total.is_ok()),
        missing: text_of(&total),
        value: total.ok(),
    }
}

fn info_row(node: &Node, evaluation: &Evaluation, n: NodeId, place: &Place) -> InfoRow {
    let result = &evaluation.nodes[usize::from(n)];
    InfoRow {
        id: node.id.clone(),
        label: node.label.clone(),
        value: result.quantity.get(),
        unit: node.spec.unit.clone().unwrap_or(SmolStr::new_static("ratio")),
        error: result.quantity.error.as_ref().ok().copied(),
        running: result.quantity.running,
        over: result.over,
        missing: text_of(&result.quantity.value),
        place: place.clone(),
    }
}

/// The findings that follow from the flags, of the nodes that are `shown`.
fn findings(
    table: &Table,
    evaluation: &Evaluation,
    flags: &Flags,
    shown: &[NodeId],
    place: &Place,
) -> Vec<Finding> {
    if shown.iter().all(|&n| evaluation.nodes[usize::from(n)].quantity.value.is_err()) {
        return Vec::new();
    }
    let words = Words { table, evaluation, place };
    let mut found = Vec::new();
    found.extend(flags.bottleneck().map(|n| words.bottleneck(n, &flags.path)));
    found.extend(flags.undecided.iter().flat_map(|undecided| words.undecided(undecided)));
    if found.is_empty() {
        let text = "No node is over its threshold: no single bottleneck stands out.".to_owned();
        found.push(words.finding(FindingKind::Nothing, None, text));
    }
    let mismeasured = shown.iter().filter(|&&n| flags.mismeasured[usize::from(n)]);
    found.extend(mismeasured.map(|&n| words.mismeasured(n)));
    found
}

/// Words of a finding's text.
struct Words<'a> {
    table: &'a Table,
    evaluation: &'a Evaluation,
    place: &'a Place,
}

impl Words<'_> {
    fn bottleneck(&self, n: NodeId, path: &[NodeId]) -> Finding {
        let path: Vec<&str> = path.iter().map(|&p| self.label(p)).collect();
        let text = format!("The bottleneck is {}, {}.", path.join(" > "), self.percent(n));
        self.finding(FindingKind::Bottleneck, Some(n), text)
    }

    /// One finding for each of the two.
    fn undecided(&self, undecided: &Undecided) -> [Finding; 2] {
        let (a, b) = (undecided.first, undecided.second);
        let text = format!(
            "Undecided between {} ({}) and {} ({}): they differ by at most {} points.",
            self.label(a),
            self.percent(a),
            self.label(b),
            self.percent(b),
            crate::format::at_most_points(undecided.margin)
        );
        let other = format!("{}, {}.", self.label(b), self.percent(b));
        [(a, text), (b, other)].map(|(n, text)| self.finding(FindingKind::Undecided, Some(n), text))
    }

    fn mismeasured(&self, n: NodeId) -> Finding {
        let text = format!(
            "{} is mismeasured: {} is outside -5..105 %. Multiplexing, a short run or a \
             faulty event made its counts inconsistent.",
            self.label(n),
            self.percent(n)
        );
        let next = "Measure longer, restrict --nodes, or use --no-multiplex.".to_owned();
        Finding { next: Some(next), ..self.finding(FindingKind::Mismeasured, Some(n), text) }
    }

    fn label(&self, n: NodeId) -> &str {
        &self.table.nodes[usize::from(n)].label
    }

    fn percent(&self, n: NodeId) -> String {
        let quantity = &self.evaluation.nodes[usize::from(n)].quantity;
        crate::format::share(quantity.get(), quantity.error.as_ref().ok().copied())
    }

    fn finding(&self, kind: FindingKind, n: Option<NodeId>, text: String) -> Finding {
        Finding {
            kind,
            node: n.map(|n| self.table.nodes[usize::from(n)].id.clone()),
            text,
            meaning: None,
            causes: None,
            next: None,
            place: self.place.clone(),
        }
    }
}
