//! Findings of a check, with their nodes and lines in the table file.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt;
use toml::de::{DeTable, DeValue};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing to do.
    Note,
    /// The table works, but something is missing or doubtful.
    Warning,
    /// The table cannot be used, or gives wrong figures.
    Error,
}

/// One thing that is wrong or worth knowing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The node, event or key it is about.
    pub about: Option<String>,
    /// Line of the file, from 1.
    pub line: Option<usize>,
    /// The finding, in one sentence without a full stop.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.severity {
            Severity::Note => "note: ",
            Severity::Warning => "warning: ",
            Severity::Error => "error: ",
        })?;
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if let Some(about) = &self.about {
            write!(f, "{about}: ")?;
        }
        f.write_str(&self.what)
    }
}

/// Findings as the checks add them.
pub(super) struct Findings<'t> {
    pub(super) lines: Lines<'t>,
    pub(super) list: Vec<Finding>,
}

impl Findings<'_> {
    pub(super) fn add(
        &mut self,
        severity: Severity,
        about: Option<(&str, Option<usize>)>,
        what: String,
    ) {
        let (about, line) = match about {
            Some((about, line)) => (Some(about.to_owned()), line),
            None => (None, None),
        };
        self.list.push(Finding { severity, about, line, what });
    }

    pub(super) fn node(&mut self, severity: Severity, id: &str, what: String) {
        let line = self.lines.node(id);
        self.add(severity, Some((id, line)), what);
    }

    pub(super) fn event(&mut self, severity: Severity, name: &str, what: String) {
        let line = self.lines.event(name);
        self.add(severity, Some((name, line)), what);
    }

    pub(super) fn key(&mut self, severity: Severity, key: &str, what: String) {
        let line = self.lines.key(key);
        self.add(severity, Some((key, line)), what);
    }
}

/// Places in the text of a table, looked for when the first one is wanted.
pub(super) struct Lines<'t> {
    text: &'t str,
    places: OnceCell<Places>,
}

/// Byte offsets by name.
#[derive(Default)]
struct Places {
    nodes: HashMap<String, usize>,
    events: HashMap<String, usize>,
    keys: HashMap<String, usize>,
}

impl Places {
    /// Reads the places; a text that is no TOML has none.
    fn of(text: &str) -> Self {
        let mut places = Self::default();
        let Ok(root) = DeTable::parse(text) else { return places };
        for (key, value) in root.get_ref() {
            places.keys.insert(key.get_ref().to_string(), key.span().start);
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("events", DeValue::Table(events)) => {
                    for name in events.keys() {
                        places.events.insert(name.get_ref().to_string(), name.span().start);
                    }
                }
                ("node" | "bottleneck" | "info", DeValue::Array(nodes)) => {
                    for node in nodes.iter() {
                        let DeValue::Table(node) = node.get_ref() else { continue };
                        if let Some(id) = node.get("id")
                            && let Some(text) = id.get_ref().as_str()
                        {
                            // The first of two nodes with one name sets the place.
                            places.nodes.entry(text.to_owned()).or_insert(id.span().start);
                        }
                    }
                }
                _ => {}
            }
        }
        places
    }
}

impl<'t> Lines<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        Self { text, places: OnceCell::new() }
    }

    fn places(&self) -> &Places {
        self.places.get_or_init(|| Places::of(self.text))
    }

    /// Line of the byte at `offset`, from 1.
    pub(super) fn at(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        1 + before.iter().filter(|b| **b == b'\n').count()
    }

    pub(super) fn node(&self, id: &str) -> Option<usize> {
        let offset = self.line_start(&format!("id = \"{id}\"\n"));
        offset.or_else(|| self.places().nodes.get(id).copied()).map(|o| self.at(o))
    }

    pub(super) fn event(&self, name: &str) -> Option<usize> {
        let offset = self.line_start(&format!("\"{name}\" = "));
        offset.or_else(|| self.places().events.get(name).copied()).map(|o| self.at(o))
    }

    /// Line of a key at the top of the file.
    pub(super) fn key(&self, key: &str) -> Option<usize> {
        self.places().keys.get(key).map(|o| self.at(*o))
    }

    /// Where a line begins with `what`: as the importer writes it, found without parsing.
    fn line_start(&self, what: &str) -> Option<usize> {
        self.text
            .match_indices(what)
            .map(|(at, _)| at)
            .find(|at| at.checked_sub(1).is_none_or(|before| self.text.as_bytes()[before] == b'\n'))
    }
}
