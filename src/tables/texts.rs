//! What a node means, its usual causes and the next step, from `events/nodes.toml`.
//!
//! The file is parsed when the first text is wanted. An entry `ID@VARIANT` goes before plain
//! `ID`: the variant is a table's name (`zen2`) or what the table's key `texts` says (`e` for
//! E-cores, `paper`).

use super::{CoreKind, NodeKind, Table};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::OnceLock;

/// The embedded file.
static FILE: &str = include_str!("../../events/nodes.toml");

/// What is said of one node or metric.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// What the value is a share of, or what it counts.
    #[serde(default)]
    pub meaning: String,
    /// What usually makes it large; only nodes have it.
    #[serde(default)]
    pub causes: Option<String>,
    /// What to look at or change next; only nodes have it.
    #[serde(default)]
    pub next: Option<String>,
    /// This entry reads as that one (vendors rename nodes).
    #[serde(default)]
    same: Option<String>,
}

/// The parsed file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Texts {
    #[serde(default)]
    node: HashMap<String, Text>,
    #[serde(default)]
    info: HashMap<String, Text>,
}

impl Texts {
    /// Follows `same` once: it never leads to a second one.
    fn get(&self, kind: NodeKind, id: &str) -> Option<&Text> {
        let entries = if kind == NodeKind::Info { &self.info } else { &self.node };
        let text = entries.get(id)?;
        match &text.same {
            Some(other) => entries.get(other),
            None => Some(text),
        }
    }
}

fn texts() -> &'static Texts {
    static TEXTS: OnceLock<Texts> = OnceLock::new();
    // A test parses the file; a text less is no reason to fail a report.
    TEXTS.get_or_init(|| toml::from_str(FILE).unwrap_or_default())
}

/// The text for the node `id` of `table`, if there is one.
pub fn node(table: &Table, id: &str) -> Option<&'static Text> {
    let kind = table.node(id).map_or(NodeKind::Tree, |n| table.nodes[usize::from(n)].kind);
    lookup(kind, id, &table.name, variant(table.texts.as_deref(), table.core))
}

/// The variant of the texts that fits a table: its own `texts`, or `e` on an E-core.
pub fn variant(texts: Option<&str>, core: Option<CoreKind>) -> Option<&str> {
    match (texts, core) {
        (Some(variant), _) => Some(variant),
        (None, Some(CoreKind::E)) => Some("e"),
        _ => None,
    }
}

/// As [`node()`], for a table that is not compiled.
pub fn lookup(
    kind: NodeKind,
    id: &str,
    table: &str,
    variant: Option<&str>,
) -> Option<&'static Text> {
    [Some(table), variant]
        .into_iter()
        .flatten()
        .find_map(|v| texts().get(kind, &format!("{id}@{v}")))
        .or_else(|| texts().get(kind, id))
}

/// Whether [`lookup`] finds a text; parses nothing.
pub fn exists(kind: NodeKind, id: &str, table: &str, variant: Option<&str>) -> bool {
    let group = if kind == NodeKind::Info { "info" } else { "node" };
    let has = |id: &str| sections().contains_key(&format!("{group}.{id}"));
    has(id) || [Some(table), variant].into_iter().flatten().any(|v| has(&format!("{id}@{v}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_file_parses_and_every_alias_leads_somewhere() {
        let texts: Texts = toml::from_str(FILE).expect("events/nodes.toml parses");
        for entries in [&texts.node, &texts.info] {
            for (id, text) in entries {
                let target = text.same.as_ref().map_or(Some(text), |s| entries.get(s));
                let target = target.unwrap_or_else(|| panic!("{id} is the same as nothing"));
                assert!(target.same.is_none(), "{id}: an alias of an alias");
                assert!(!target.meaning.is_empty(), "{id} says nothing");
            }
            for (id, text) in entries.iter().filter(|_| std::ptr::eq(entries, &texts.node)) {
                let whole = text.same.is_some() || (text.causes.is_some() && text.next.is_some());
                assert!(whole, "{id} names no causes or no next step");
            }
        }
    }

    #[test]
    fn a_variant_goes_before_the_plain_entry() {
        let get = |table, variant| lookup(NodeKind::Tree, "Frontend_Bound", table, variant);
        let plain = get("skx", None).expect("text");
        assert_ne!(Some(plain), get("adl-e", Some("e")));
        assert_ne!(Some(plain), get("paper", Some("paper")));
        assert_eq!(Some(plain), get("skx", Some("nothing")));
    }

    #[test]
    fn zen5_reads_zen4s_texts_under_its_own_names() {
        let get = |id| lookup(NodeKind::Tree, id, "zen5", None);
        assert!(get("backend_bound_by_memory").is_some());
        assert_eq!(get("backend_bound_by_memory"), get("backend_bound_memory"));
    }
}
