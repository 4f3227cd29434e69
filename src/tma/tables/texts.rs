//! Meaning, usual causes and next step of each node, from `events/nodes.toml`.
//!
//! An entry `ID@VARIANT` goes before plain `ID`: the variant is a table's name (`zen2`) or what the
//! table's key `texts` says (`e` for E-cores, `paper`).

use super::{CoreKind, NodeKind, Table};

/// The text of one node or metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    /// Meaning of the value: a share of what, or a count of what.
    pub meaning: &'static str,
    /// Usual causes of a large value; only nodes have them.
    pub causes: Option<&'static str>,
    /// Next step: where to look or what to change; only nodes have it.
    pub next: Option<&'static str>,
    /// This entry reads as that one (vendors rename nodes).
    pub same: Option<&'static str>,
}

/// All texts.
#[derive(Debug, Clone, Copy)]
pub struct Texts(&'static [(&'static str, Text)]);

impl Texts {
    /// Texts by `node.ID` and `info.ID`, sorted.
    pub fn new(sorted: &'static [(&'static str, Text)]) -> Self {
        Self(sorted)
    }

    /// The text for the node `id` of `table`, if there is one.
    pub fn node(self, table: &Table, id: &str) -> Option<Text> {
        let kind = table.node(id).map_or(NodeKind::Tree, |n| table.nodes[usize::from(n)].kind);
        self.lookup(kind, id, &table.name, variant(table.texts.as_deref(), table.core))
    }

    /// Text for a table that is not compiled: its name, and the variant that fits.
    pub fn lookup(
        self,
        kind: NodeKind,
        id: &str,
        table: &str,
        variant: Option<&str>,
    ) -> Option<Text> {
        [Some(table), variant]
            .into_iter()
            .flatten()
            .find_map(|v| self.entry(kind, &format!("{id}@{v}")))
            .or_else(|| self.entry(kind, id))
    }

    /// The entry `id`, with `same` followed once: it never leads to a second one.
    fn entry(self, kind: NodeKind, id: &str) -> Option<Text> {
        let group = if kind == NodeKind::Info { "info" } else { "node" };
        let text = self.find(&format!("{group}.{id}"))?;
        match text.same {
            Some(other) => self.find(&format!("{group}.{other}")),
            None => Some(text),
        }
    }

    fn find(self, key: &str) -> Option<Text> {
        let at = self.0.binary_search_by_key(&key, |(key, _)| key).ok()?;
        Some(self.0[at].1)
    }
}

/// The variant of the texts that fits a table: its own `texts`, or `e` on an E-core.
pub fn variant(texts: Option<&str>, core: Option<CoreKind>) -> Option<&str> {
    match (texts, core) {
        (Some(variant), _) => Some(variant),
        (None, Some(CoreKind::E)) => Some("e"),
        _ => None,
    }
}
