//! What a node means, its usual causes and the next step, from `events/nodes.toml`.
//!
//! A section of the file is parsed when its text is wanted. An entry `ID@VARIANT` goes before plain
//! `ID`: the variant is a table's name (`zen2`) or what the table's key `texts` says (`e` for
//! E-cores, `paper`).

use super::{CoreKind, NodeKind, Table};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::OnceLock;

/// The embedded file.
static FILE: &str = events::NODES;

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

/// The sections of the file by their header's text, such as `node.Frontend_Bound`. A section is
/// parsed when its text is wanted: a report wants a few of several hundred.
fn sections() -> &'static HashMap<String, &'static str> {
    static SECTIONS: OnceLock<HashMap<String, &'static str>> = OnceLock::new();
    SECTIONS.get_or_init(|| {
        let after_header = |section: &'static str| {
            let (header, body) = section.split_once("]\n")?;
            Some((header.replace('"', ""), body))
        };
        FILE.split("\n[").filter_map(after_header).collect()
    })
}

/// The entry `id`, with `same` followed once: it never leads to a second one.
fn entry(kind: NodeKind, id: &str) -> Option<Text> {
    let group = if kind == NodeKind::Info { "info" } else { "node" };
    // A test parses every section; a text less is no reason to fail a report.
    let parsed = |id: &str| -> Option<Text> {
        toml::from_str(sections().get(&format!("{group}.{id}"))?).ok()
    };
    let text = parsed(id)?;
    match &text.same {
        Some(other) => parsed(other),
        None => Some(text),
    }
}

/// The text for the node `id` of `table`, if there is one.
pub fn node(table: &Table, id: &str) -> Option<Text> {
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
pub fn lookup(kind: NodeKind, id: &str, table: &str, variant: Option<&str>) -> Option<Text> {
    [Some(table), variant]
        .into_iter()
        .flatten()
        .find_map(|v| entry(kind, &format!("{id}@{v}")))
        .or_else(|| entry(kind, id))
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

    /// The parsed file.
    #[derive(Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Texts {
        node: HashMap<String, Text>,
        info: HashMap<String, Text>,
    }

    #[test]
    fn every_section_is_found_by_itself() {
        let texts: Texts = toml::from_str(FILE).expect("events/nodes.toml parses");
        assert_eq!(sections().len(), texts.node.len() + texts.info.len());
        for (kind, entries) in [(NodeKind::Tree, &texts.node), (NodeKind::Info, &texts.info)] {
            for (id, text) in entries.iter().filter(|(_, t)| t.same.is_none()) {
                assert_eq!(entry(kind, id).as_ref(), Some(text), "{id}");
            }
        }
    }

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
        assert_ne!(Some(&plain), get("adl-e", Some("e")).as_ref());
        assert_ne!(Some(&plain), get("paper", Some("paper")).as_ref());
        assert_eq!(Some(&plain), get("skx", Some("nothing")).as_ref());
    }

    #[test]
    fn zen5_reads_zen4s_texts_under_its_own_names() {
        let get = |id| lookup(NodeKind::Tree, id, "zen5", None);
        assert!(get("backend_bound_by_memory").is_some());
        assert_eq!(get("backend_bound_by_memory"), get("backend_bound_memory"));
    }
}
