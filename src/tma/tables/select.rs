//! Node lists, as `--nodes` takes them: ids, wildcards, tags, levels, ancestors.
//!
//! ```text
//! list := item { "," item }        item := ["+" | "-"] ["^"] pattern ["^"] ["/" level]
//! ```
//!
//! | pattern | takes |
//! |---|---|
//! | `L1_Bound` | that node (case does not matter; `Memory_Bound.L1_Bound` works, too) |
//! | `Memory_Bound*` | every node of the tree that matches, and all below it |
//! | `Memory_Bound*/4` | of these the ones at level 4 or above (the level in the tree, as toplev counts) |
//! | `^L1_Bound` | the node and its ancestors |
//! | `MemoryBW` | every node with that tag, where no node has that name |
//!
//! A wildcard takes nodes of the tree; metrics only where it matches no node. A list of plain
//! items is the whole answer; one in which every item begins with `+` or `-` changes the whole
//! tree (or the part of it down to a level).

use super::{NodeId, NodeKind, Table};
use crate::error::{Error, Result, nearest};
use std::collections::BTreeSet;

/// The nodes that `list` names, in table order. A list of `+` and `-` items changes the whole
/// tree.
///
/// # Errors
/// A name that the table does not have (with the nearest one), a level that is no number, or a
/// list that leaves nothing.
pub fn select(table: &Table, list: &str) -> Result<Vec<NodeId>> {
    select_from(table, list, table.depth())
}

/// As [`select()`], where a list of `+` and `-` items changes the tree down to `level`.
pub fn select_from(table: &Table, list: &str, level: u32) -> Result<Vec<NodeId>> {
    let items = list
        .split(',')
        .map(str::trim)
        .filter(|i| !i.is_empty())
        .map(Item::parse)
        .collect::<Result<Vec<_>>>()?;
    let mut chosen = BTreeSet::new();
    if items.iter().all(|i| i.sign != Sign::Plain) {
        chosen.extend(table.tree().filter(|(_, n)| n.level <= level).map(|(n, _)| n));
    }
    for item in &items {
        let named = item.nodes(table)?;
        match item.sign {
            Sign::Minus => chosen.retain(|n| !named.contains(n)),
            Sign::Plain | Sign::Plus => chosen.extend(named),
        }
    }
    if chosen.is_empty() {
        return Err(Error::usage(format!("`{list}` selects no node of {}", table.name))
            .hint("NODE* selects a node and all below it, /N levels 1 to N"));
    }
    Ok(chosen.into_iter().collect())
}

#[derive(Clone, Copy, PartialEq)]
enum Sign {
    Plain,
    Plus,
    Minus,
}

struct Item<'a> {
    sign: Sign,
    pattern: &'a str,
    ancestors: bool,
    level: Option<u32>,
}

impl<'a> Item<'a> {
    fn parse(text: &'a str) -> Result<Self> {
        let (sign, rest) = match text.split_at_checked(1) {
            Some(("+", rest)) => (Sign::Plus, rest),
            Some(("-", rest)) => (Sign::Minus, rest),
            _ => (Sign::Plain, text),
        };
        let (rest, level) = match rest.split_once('/') {
            None => (rest, None),
            Some((pattern, level)) => {
                let number = level.trim_end_matches('^').parse().map_err(|_| {
                    Error::usage(format!("`{level}` in `{text}` is not a level"))
                        .hint("write NODE*/LEVEL, for example Memory_Bound*/4")
                })?;
                (pattern, Some(number))
            }
        };
        let pattern = rest.trim_start_matches('^').trim_end_matches('^');
        Ok(Self { sign, pattern, ancestors: text.contains('^'), level })
    }

    fn nodes(&self, table: &Table) -> Result<BTreeSet<NodeId>> {
        let mut found = self.by_name(table);
        if found.is_empty() {
            found = tagged(table, self.pattern);
        }
        if found.is_empty() {
            return Err(self.unknown(table));
        }
        if self.pattern.ends_with('*') {
            // Parents come first, so one pass takes whole subtrees.
            let below = |n: NodeId, found: &BTreeSet<NodeId>| {
                table.nodes[usize::from(n)].parent.is_some_and(|p| found.contains(&p))
            };
            for (n, _) in table.tree() {
                if below(n, &found) {
                    found.insert(n);
                }
            }
        }
        if let Some(level) = self.level {
            found.retain(|n| (1..=level).contains(&table.nodes[usize::from(*n)].level));
        }
        if self.ancestors {
            let ancestors: Vec<NodeId> = found.iter().flat_map(|n| lineage(table, *n)).collect();
            found.extend(ancestors);
        }
        Ok(found)
    }

    fn by_name(&self, table: &Table) -> BTreeSet<NodeId> {
        let kinds: [&[NodeKind]; 2] = [&[NodeKind::Tree], &[NodeKind::Bottleneck, NodeKind::Info]];
        let of = |kinds: &[NodeKind]| -> BTreeSet<NodeId> {
            (0..)
                .zip(&table.nodes)
                .filter(|(n, node)| {
                    kinds.contains(&node.kind)
                        && (matches(self.pattern, &node.id)
                            || self.pattern.contains('.')
                                && matches(self.pattern, &full_name(table, *n)))
                })
                .map(|(n, _)| n)
                .collect()
        };
        let tree = of(kinds[0]);
        if tree.is_empty() { of(kinds[1]) } else { tree }
    }

    fn unknown(&self, table: &Table) -> Error {
        let error = Error::usage(format!("{} has no node `{}`", table.name, self.pattern));
        let ids = table.nodes.iter().map(|n| n.id.as_str());
        let tags = table.nodes.iter().flat_map(|n| &n.spec.groups).map(String::as_str);
        match nearest(self.pattern.trim_matches('*'), ids.chain(tags)) {
            Some(near) => error.hint(format!(
                "did you mean `{near}`? `tdtool tables show {}` lists them",
                table.name
            )),
            None => error.hint(format!("`tdtool tables show {}` lists them", table.name)),
        }
    }
}

/// All nodes that carry the tag.
fn tagged(table: &Table, pattern: &str) -> BTreeSet<NodeId> {
    (0..)
        .zip(&table.nodes)
        .filter(|(_, node)| node.spec.groups.iter().any(|g| matches(pattern, g)))
        .map(|(n, _)| n)
        .collect()
}

/// The ancestors of `n`, nearest first.
fn lineage(table: &Table, n: NodeId) -> impl Iterator<Item = NodeId> + '_ {
    std::iter::successors(table.nodes[usize::from(n)].parent, |p| {
        table.nodes[usize::from(*p)].parent
    })
}

/// `Backend_Bound.Memory_Bound.L1_Bound`.
fn full_name(table: &Table, n: NodeId) -> String {
    let mut ids: Vec<&str> =
        lineage(table, n).map(|p| table.nodes[usize::from(p)].id.as_str()).collect();
    ids.reverse();
    ids.push(&table.nodes[usize::from(n)].id);
    ids.join(".")
}

/// Whether `name` matches `pattern` with `*` (any text) and `?` (one character), whatever the
/// case. Linear in the product of the lengths.
fn matches(pattern: &str, name: &str) -> bool {
    let lower = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<Vec<char>>();
    let (pattern, name) = (lower(pattern), lower(name));
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                // Let the last star take one character more.
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    n = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}
