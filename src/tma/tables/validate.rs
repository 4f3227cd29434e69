//! Everything that is wrong with a table file, not only the first thing.
//!
//! [`super::Table::parse`] stops at the first error because it must; this is for the person who
//! writes a table: every finding with its node and line. `tdtool tables check` prints them.

mod events;
mod lines;
mod nodes;
mod threshold;

use super::schema::TableFile;
use lines::Lines;
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
    /// What was found, in one sentence without a full stop.
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

/// Units that info metrics may have; the empty one is a plain number.
pub const UNITS: &[&str] = &[
    "",
    "%",
    "instructions",
    "events",
    "slots",
    "cycles",
    "per 1000 instructions",
    "per 1000 µops",
    "instructions/cycle",
    "cycles/instruction",
    "ops/cycle",
    "GHz",
    "GB/s",
    "MB/s",
    "GFLOP/s",
    "s",
    "ns",
    "W",
];

/// What a value can be a share of, or be: Intel's count domains. AMD's and hand-written tables
/// use `Slots` and `Clocks`.
pub const DOMAINS: &[&str] = &[
    "Slots",
    "Slots_Estimated",
    "Scaled_Slots",
    "Clocks",
    "Clocks_Estimated",
    "Clocks_Calculated",
    "Clocks_Latency",
    "Clocks_Retired",
    "Core_Clocks",
    "Core_Execution",
    "Core_Utilization",
    "Cycles",
    "Stalls",
    "Uops",
    "Count",
    "Fraction",
    "Metric",
    "Inst_Metric",
    "Core_Metric",
    "System_Metric",
    "Seconds",
    "NanoSeconds",
    "GB/sec",
    "MB/sec",
];

/// What a check of one file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Errors first, then by line.
    pub findings: Vec<Finding>,
    /// Nodes, bottlenecks, info metrics and events; 0 where the file cannot be read.
    pub counts: [usize; 4],
}

/// Every finding about the table file `text` that is known as `name`, errors first, then by
/// line.
pub fn findings(name: &str, text: &str) -> Vec<Finding> {
    report(name, text).findings
}

/// The findings, and how much the file holds.
pub fn report(name: &str, text: &str) -> Report {
    let mut found = Found { lines: Lines::of(text), list: Vec::new() };
    let mut counts = [0; 4];
    match toml::from_str::<TableFile>(text) {
        Ok(file) => {
            counts = [file.node.len(), file.bottleneck.len(), file.info.len(), file.events.len()];
            check(name, &file, &mut found);
        }
        Err(e) => {
            let line = e.span().map(|span| found.lines.at(span.start));
            let what = format!("the file cannot be read: {}", e.message().trim_end());
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

/// The checks' way to report.
struct Found<'t> {
    lines: Lines<'t>,
    list: Vec<Finding>,
}

impl Found<'_> {
    fn add(&mut self, severity: Severity, about: Option<(&str, Option<usize>)>, what: String) {
        let (about, line) = match about {
            Some((about, line)) => (Some(about.to_owned()), line),
            None => (None, None),
        };
        self.list.push(Finding { severity, about, line, what });
    }

    fn node(&mut self, severity: Severity, id: &str, what: String) {
        let line = self.lines.node(id);
        self.add(severity, Some((id, line)), what);
    }

    fn event(&mut self, severity: Severity, name: &str, what: String) {
        let line = self.lines.event(name);
        self.add(severity, Some((name, line)), what);
    }

    fn key(&mut self, severity: Severity, key: &str, what: String) {
        let line = self.lines.key(key);
        self.add(severity, Some((key, line)), what);
    }
}

fn check(name: &str, file: &TableFile, found: &mut Found) {
    head(name, file, found);
    let formulas = nodes::check(file, found);
    events::check(file, &formulas, found);
    threshold::check(file, &formulas, found);
}

fn head(name: &str, file: &TableFile, found: &mut Found) {
    use Severity::{Error, Warning};
    if file.schema != 1 {
        let what = format!("version {} is not known to this program (it knows 1)", file.schema);
        found.key(Error, "schema", what);
    }
    if !file.name.eq_ignore_ascii_case(name) {
        found.key(Error, "name", format!("`{}` in a file called `{name}`", file.name));
    }
    if !file.events.contains_key(&file.clocks) {
        found.key(Error, "clocks", format!("`{}` is no event of this table", file.clocks));
    }
    if file.vendor != "any" && file.matches.is_empty() {
        found.key(
            Warning,
            "match",
            "no processor is matched, so only --uarch finds this table (vendor `any` says that \
             this is meant)"
                .into(),
        );
    }
    if file.pipeline.width == 0 {
        found.key(Error, "pipeline", "a width of 0".into());
    }
    if file.source.is_empty() {
        found.key(Warning, "source", "where the facts come from is not said".into());
    }
    if file.node.is_empty() {
        found.add(Error, None, "the table has no [[node]]".into());
    }
}

#[cfg(test)]
mod tests;
