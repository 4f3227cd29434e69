//! Which line of a table file a node, an event or a key stands on.

use std::collections::HashMap;
use toml::de::{DeTable, DeValue};

/// Places in the text of a table.
pub(super) struct Lines<'t> {
    text: &'t str,
    nodes: HashMap<String, usize>,
    events: HashMap<String, usize>,
    keys: HashMap<String, usize>,
}

impl<'t> Lines<'t> {
    /// Reads the places; a text that is no TOML has none.
    pub(super) fn of(text: &'t str) -> Self {
        let mut lines =
            Self { text, nodes: HashMap::new(), events: HashMap::new(), keys: HashMap::new() };
        let Ok(root) = DeTable::parse(text) else { return lines };
        for (key, value) in root.get_ref() {
            lines.keys.insert(key.get_ref().to_string(), key.span().start);
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("events", DeValue::Table(events)) => {
                    for name in events.keys() {
                        lines.events.insert(name.get_ref().to_string(), name.span().start);
                    }
                }
                ("node" | "bottleneck" | "info", DeValue::Array(nodes)) => {
                    for node in nodes.iter() {
                        let DeValue::Table(node) = node.get_ref() else { continue };
                        if let Some(id) = node.get("id")
                            && let Some(text) = id.get_ref().as_str()
                        {
                            // The first of two nodes of one name keeps the place.
                            lines.nodes.entry(text.to_owned()).or_insert(id.span().start);
                        }
                    }
                }
                _ => {}
            }
        }
        lines
    }

    /// Line of the byte at `offset`, from 1.
    pub(super) fn at(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        1 + before.iter().filter(|b| **b == b'\n').count()
    }

    /// Line of the node `id`.
    pub(super) fn node(&self, id: &str) -> Option<usize> {
        self.nodes.get(id).map(|o| self.at(*o))
    }

    /// Line of the event `name`.
    pub(super) fn event(&self, name: &str) -> Option<usize> {
        self.events.get(name).map(|o| self.at(*o))
    }

    /// Line of a key at the top of the file.
    pub(super) fn key(&self, key: &str) -> Option<usize> {
        self.keys.get(key).map(|o| self.at(*o))
    }
}
