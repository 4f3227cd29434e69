//! Findings of a check, with their nodes and lines.

use super::lines::Lines;
use std::fmt;

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
