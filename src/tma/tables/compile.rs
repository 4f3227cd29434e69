//! Compiles a table file: names become indices, formulas programs, and what a node needs is closed. Has the
//! mistakes in table files.

use super::schema::{NodeSpec, PmuKind, TableFile};
use super::table::{Const, Event, EventId, Node, NodeId, NodeKind, Table};
use crate::formula::{FormulaError, Leaf, Program, Resolve, Uncompiled, parse};
use std::collections::HashMap;
use std::fmt;

/// A mistake in a table file. Nodes are named by their ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invalid {
    /// It has another schema.
    Schema(u32),
    /// A name stands for two things.
    Twice(String),
    /// It has too many names.
    ManyNames,
    /// Its `clocks` are no event.
    Clocks(String),
    /// A text of a node does not parse; the text.
    Unparsed(NodeText, String, FormulaError, String),
    /// A text of a node does not compile; the name that was perhaps meant.
    Uncompiled(NodeText, String, Uncompiled, Option<String>),
    /// The parent of a node is not before it.
    NoParent(String, String),
    /// A node is not one level below its parent.
    Level {
        /// The node and its level.
        node: (String, u32),
        /// Its parent and the parent's level.
        parent: (String, u32),
    },
    /// A node below level 1 has no parent.
    Orphan(String, u32),
    /// The formulas of two nodes need each other.
    Cycle(String, String),
}

/// Which text of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeText {
    /// The formula of its value.
    Formula,
    /// The condition under which it is notable.
    Threshold,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schema(n) => write!(f, "schema {n} is not supported (this version supports 1)"),
            Self::Twice(name) => write!(f, "`{name}` is defined twice"),
            Self::ManyNames => f.write_str("more than 65,534 names"),
            Self::Clocks(name) => write!(f, "`clocks` is not an event: `{name}`"),
            Self::Unparsed(of, id, why, text) => write!(f, "{of} of `{id}`, {why}: `{text}`"),
            Self::Uncompiled(of, id, why, near) => {
                write!(f, "{of} of `{id}`: {why}")?;
                near.iter().try_for_each(|near| write!(f, "; did you mean `{near}`?"))
            }
            Self::NoParent(id, parent) => write!(f, "`{id}` has no parent `{parent}` before it"),
            Self::Level { node: (id, level), parent: (parent, above) } => {
                write!(f, "`{id}` is at level {level} under `{parent}` at level {above}")
            }
            Self::Orphan(id, level) => write!(f, "`{id}` is at level {level} and has no parent"),
            Self::Cycle(a, b) => write!(f, "formulas form a cycle through `{a}` and `{b}`"),
        }
    }
}

impl std::error::Error for Invalid {}

impl fmt::Display for NodeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Formula => "formula",
            Self::Threshold => "threshold",
        })
    }
}

impl Resolve for HashMap<String, Leaf> {
    fn name(&self, name: &str) -> Option<Leaf> {
        self.get(name).copied()
    }

    fn constant(&self, name: &str) -> Option<Leaf> {
        Const::from_name(name).map(|c| Leaf::Const(c as u8))
    }
}

impl Table {
    /// Compiles a table that is already read.
    pub fn compile(file: TableFile) -> Result<Self, Invalid> {
        if file.schema != 1 {
            return Err(Invalid::Schema(file.schema));
        }
        let names = name_index(&file)?;
        let events: Vec<Event> =
            file.events.into_iter().map(|(name, spec)| Event { name, spec }).collect();
        let specs = [
            (NodeKind::Tree, file.node),
            (NodeKind::Bottleneck, file.bottleneck),
            (NodeKind::Info, file.info),
        ];
        let mut nodes = Vec::new();
        for (kind, list) in specs {
            for spec in list {
                nodes.push(compile_node(kind, spec, &names, &nodes)?);
            }
        }
        let Some(Leaf::Event(clocks)) = names.get(&file.clocks).copied() else {
            return Err(Invalid::Clocks(file.clocks));
        };
        let order = dependency_order(&nodes)?;
        let mut by_id: Vec<NodeId> = (0..).take(nodes.len()).collect();
        by_id.sort_by(|a, b| nodes[usize::from(*a)].id.cmp(&nodes[usize::from(*b)].id));
        for smt in [0, 1] {
            close_events(&mut nodes, &order, smt);
        }
        for &n in &order {
            let through = nodes[usize::from(n)].formula.leaves().any(|l| match l {
                Leaf::Const(c) => usize::from(c) != Const::SmtOn.index(),
                Leaf::Node(m) => nodes[usize::from(m)].reads_constants,
                Leaf::Event(e) => events[usize::from(e)].spec.pmu == PmuKind::Tsc,
            });
            nodes[usize::from(n)].reads_constants = through;
        }
        Ok(Self {
            name: file.name,
            title: file.title,
            aliases: file.aliases,
            vendor: file.vendor,
            core: file.core,
            pmu: file.pmu,
            source: file.source,
            tma: file.tma,
            clocks,
            texts: file.texts,
            notes: file.notes,
            matches: file.matches,
            signature: file.signature,
            pipeline: file.pipeline,
            counters: file.counters,
            facts: file.facts,
            events,
            nodes,
            order,
            by_id,
        })
    }
}

fn name_index(file: &TableFile) -> Result<HashMap<String, Leaf>, Invalid> {
    let mut names = HashMap::new();
    for (i, name) in (0u16..).zip(file.events.keys()) {
        names.insert(name.clone(), Leaf::Event(i));
    }
    let nodes = file.node.iter().chain(&file.bottleneck).chain(&file.info);
    for (i, node) in (0u16..).zip(nodes) {
        if names.insert(node.id.clone(), Leaf::Node(i)).is_some() {
            return Err(Invalid::Twice(node.id.clone()));
        }
    }
    if names.len() >= usize::from(u16::MAX) {
        return Err(Invalid::ManyNames);
    }
    Ok(names)
}

fn compile_node(
    kind: NodeKind,
    spec: NodeSpec,
    names: &HashMap<String, Leaf>,
    before: &[Node],
) -> Result<Node, Invalid> {
    let id = &spec.id;
    let program = |of: NodeText, text: &str| {
        let unparsed = |e| Invalid::Unparsed(of, id.clone(), e, text.to_owned());
        Program::compile(&parse(text).map_err(unparsed)?, names).map_err(|why| {
            let unknown = match &why {
                Uncompiled::Name(name) => Some(name.clone()),
                Uncompiled::Constant(name) => Some(format!("#{name}")),
                Uncompiled::Large | Uncompiled::Long => None,
            };
            let known = names.keys().map(String::as_str);
            let near = unknown.and_then(|name| crate::error::nearest(&name, known));
            Invalid::Uncompiled(of, id.clone(), why, near.map(str::to_owned))
        })
    };
    let formula = program(NodeText::Formula, &spec.formula)?;
    let over = spec.over.as_deref().map(|t| program(NodeText::Threshold, t)).transpose()?;
    let parent = match &spec.parent {
        None => None,
        Some(p) => {
            let at = before.iter().position(|n| n.id == *p && n.kind == kind);
            let at = at.ok_or_else(|| Invalid::NoParent(id.clone(), p.clone()))?;
            if before[at].level + 1 != spec.level {
                let parent = (p.clone(), before[at].level);
                return Err(Invalid::Level { node: (id.clone(), spec.level), parent });
            }
            u16::try_from(at).ok()
        }
    };
    if kind == NodeKind::Tree && parent.is_none() && spec.level != 1 {
        return Err(Invalid::Orphan(id.clone(), spec.level));
    }
    Ok(Node {
        label: spec.label.clone().unwrap_or_else(|| id.replace('_', " ")).into(),
        id: id.into(),
        kind,
        parent,
        level: spec.level,
        formula,
        over,
        events: Default::default(),
        uses: Default::default(),
        reads_constants: false,
        spec,
    })
}

/// Depth-first order of formula references.
fn dependency_order(nodes: &[Node]) -> Result<Vec<NodeId>, Invalid> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut state = vec![State::New; nodes.len()];
    let mut order = Vec::with_capacity(nodes.len());
    for root in 0..nodes.len() {
        let mut stack = vec![(root, false)];
        while let Some((n, leaving)) = stack.pop() {
            if leaving {
                state[n] = State::Done;
                order.push(u16::try_from(n).unwrap_or(u16::MAX));
                continue;
            }
            if state[n] != State::New {
                continue;
            }
            state[n] = State::Open;
            stack.push((n, true));
            for leaf in nodes[n].formula.leaves() {
                let Leaf::Node(m) = leaf else { continue };
                match state[usize::from(m)] {
                    State::Open => {
                        let (a, b) = (&nodes[n].id, &nodes[usize::from(m)].id);
                        return Err(Invalid::Cycle(a.to_string(), b.to_string()));
                    }
                    State::New => stack.push((usize::from(m), false)),
                    State::Done => {}
                }
            }
        }
    }
    Ok(order)
}

/// Fills `events` and `uses` for one SMT state.
fn close_events(nodes: &mut [Node], order: &[NodeId], smt: usize) {
    let smt_on = Leaf::Const(Const::SmtOn as u8);
    for &n in order {
        let mut events: Vec<EventId> = Vec::new();
        let mut uses = Vec::new();
        let value = if smt == 1 { 1.0 } else { 0.0 };
        for leaf in nodes[usize::from(n)].formula.leaves_given(smt_on, value) {
            match leaf {
                Leaf::Event(e) => events.push(e),
                Leaf::Node(m) => {
                    uses.push(m);
                    events.extend(&nodes[usize::from(m)].events[smt]);
                }
                Leaf::Const(_) => {}
            }
        }
        for list in [&mut events, &mut uses] {
            list.sort_unstable();
            list.dedup();
        }
        let node = &mut nodes[usize::from(n)];
        node.events[smt] = events;
        node.uses[smt] = uses;
    }
}
