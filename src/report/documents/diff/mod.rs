//! Two reports side by side: each difference judged against both errors.
//!
//! | file | concern |
//! |---|---|
//! | [`row`](mod@row) | a row: both values, their difference, its judgement; functions, loops and blocks |
//! | [`runs`] | several runs as one report, their spread as its errors; what single runs leave unknown |
//! | [`compare`](mod@compare) | code of both sides, by time gained or lost |
//! | `timed`, `matched` | the code of one side with its times; which rows are the same code |
//! | [`judge`](mod@judge) | lines that a difference crosses; how many differences chance may have made |

pub mod compare;
pub mod judge;
mod matched;
pub mod paired;
pub mod row;
pub mod runs;
pub mod timed;

use crate::documents::report::{InfoRow, NodeRow, Place, Report};
use crate::documents::series;
use crate::format;
use row::CodeDiff;
use serde::Serialize;
use std::collections::HashMap;
use tma::{Error, Result};

pub use row::{DiffRow, FalseFindings, Judgement, Side};

/// The comparison, `tdtool.diff/1`.
#[derive(Debug, Clone, Serialize)]
pub struct Diff {
    /// `tdtool.diff/1`.
    pub schema: String,
    /// Titles of A and B: file, subject, duration.
    pub reports: [String; 2],
    /// Microarchitectures of A and B.
    pub uarch: [String; 2],
    /// Whether a side is a single run: errors of nodes and counts leave out how runs differ.
    pub is_single: bool,
    /// Nodes in A's order, then those only in B.
    pub nodes: Vec<DiffRow>,
    /// Infos likewise.
    pub info: Vec<DiffRow>,
    /// Software counts likewise.
    pub software: Vec<DiffRow>,
    /// Functions, loops and blocks, where both sides have some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeDiff>,
    /// Control of differences that chance makes among many rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub false_findings: Option<FalseFindings>,
    /// Lines that were not to be crossed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
    /// Limits of the comparison.
    pub notes: Vec<String>,
}

impl Diff {
    /// Conditions that came to this.
    pub fn gates(&self, crossing: Crossing) -> impl Iterator<Item = &Gate> {
        self.gates.iter().filter(move |gate| gate.crossing == crossing)
    }
}

impl From<&NodeRow> for Side {
    fn from(n: &NodeRow) -> Self {
        let (id, label, place) = (n.id.to_string(), n.label.to_string(), n.place.clone());
        let unit = "ratio".to_owned();
        Self { id, label, level: n.level, value: n.value, error: n.error, unit, place }
    }
}

impl From<&InfoRow> for Side {
    fn from(i: &InfoRow) -> Self {
        let (id, label, place) = (i.id.to_string(), i.label.to_string(), i.place.clone());
        let unit = i.unit.to_string();
        Self { id, label, level: 0, value: i.value, error: i.error, unit, place }
    }
}

/// `FILE: what was measured, how long`.
fn title(file: &str, report: &Report) -> String {
    let mut parts = report.subject.clone();
    parts.extend(report.duration.map(format::seconds));
    parts.extend((report.repeats > 1).then(|| format!("{} runs", report.repeats)));
    if parts.is_empty() { file.to_owned() } else { format!("{file}: {}", parts.join(", ")) }
}

/// Compares `a` with `b`, which are in these files.
pub fn diff(file_a: &str, a: &Report, file_b: &str, b: &Report) -> Diff {
    let mut notes = Vec::new();
    // Samples alone have no table.
    if a.uarch != b.uarch && !a.uarch.is_empty() && !b.uarch.is_empty() {
        notes.push(format!(
            "different tables ({} and {}): nodes of one name may be defined differently",
            a.uarch, b.uarch
        ));
    }
    Diff {
        schema: "tdtool.diff/1".into(),
        reports: [title(file_a, a), title(file_b, b)],
        uarch: [a.uarch.clone(), b.uarch.clone()],
        is_single: a.repeats.min(b.repeats) < 2,
        nodes: pair(
            a.nodes.iter().map(Side::from).collect(),
            b.nodes.iter().map(Side::from).collect(),
        ),
        info: pair(
            a.info.iter().map(Side::from).collect(),
            b.info.iter().map(Side::from).collect(),
        ),
        software: pair(software(a), software(b)),
        code: None,
        false_findings: None,
        gates: Vec::new(),
        notes,
    }
}

fn software(report: &Report) -> Vec<Side> {
    let side = |(name, value): (&String, &Option<f64>)| Side {
        id: name.clone(),
        label: name.clone(),
        level: 0,
        value: *value,
        error: report.software_error.get(name).copied(),
        unit: series::software_unit(name).to_owned(),
        place: Place::default(),
    };
    report.software.iter().map(side).collect()
}

fn pair(a: Vec<Side>, b: Vec<Side>) -> Vec<DiffRow> {
    let mut rest: HashMap<String, Vec<Side>> = HashMap::new();
    for side in &b {
        rest.entry(side.id.clone()).or_default().push(side.clone());
    }
    let mut rows = Vec::new();
    for left in a {
        let others = rest.entry(left.id.clone()).or_default();
        let at = others.iter().position(|o| o.place == left.place);
        let right = at.map(|i| others.remove(i));
        rows.push(DiffRow::of(&left, Some(&left), right.as_ref()));
    }
    // Rows that only B has, in B's order.
    for right in &b {
        let unpaired =
            rest.get(&right.id).is_some_and(|o| o.iter().any(|s| s.place == right.place));
        if unpaired {
            rows.push(DiffRow::of(right, None, Some(right)));
        }
    }
    rows
}

/// A line that a difference must not cross (`--fail-if`): `ipc < -2%`.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    name: String,
    is_above: bool,
    bound: f64,
    is_relative: bool,
}

/// How a difference lies to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Crossing {
    /// Across it, and beyond its error.
    Crossed,
    /// Not across it, or within its error.
    Held,
    /// There is no difference, or no error of it that has how runs differ.
    Undecided,
}

/// A condition and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gate {
    /// As it was given.
    pub condition: String,
    /// B against A: per cent of A, percentage points, or in the row's unit.
    pub change: Option<f64>,
    /// Half width of its 95 % interval.
    pub margin: Option<f64>,
    /// `%`, `points`, or the row's unit.
    pub unit: String,
    /// Verdict.
    pub crossing: Crossing,
    /// Why it is undecided; of one that is held, that its error reaches across.
    pub reason: Option<String>,
}

/// Reads conditions separated by commas: `ipc < -2%, Backend_Bound > +3, time > +5%, sum > +10%`. With `%` the bound
/// is relative to A; without, it is in percentage points for shares and in the row's unit for others. Names of
/// functions may have commas and angle brackets.
///
/// # Errors
/// One is not `NAME < NUMBER` or `NAME > NUMBER`.
pub fn conditions(text: &str) -> Result<Vec<Condition>> {
    let mut found = Vec::new();
    let mut open = String::new();
    for one in text.split(',') {
        open += one;
        match condition(open.trim()) {
            Some(condition) => {
                found.push(condition);
                open.clear();
            }
            // The comma of a name.
            None => open.push(','),
        }
    }
    match found.is_empty() || open.chars().any(|c| c != ',' && !c.is_whitespace()) {
        true => Err(wrong(if found.is_empty() { text } else { open.trim_end_matches(',') })),
        false => Ok(found),
    }
}

fn wrong(text: &str) -> Error {
    Error::usage(format!("`{}` is no condition", text.trim()))
        .because("a condition is NAME < NUMBER or NAME > NUMBER, of a change from A to B")
        .hint("--fail-if 'ipc < -2%, Backend_Bound > +3, time > +5%'")
}

fn condition(text: &str) -> Option<Condition> {
    let at = text.rfind(['<', '>'])?;
    let (name, rest) = (text[..at].trim(), text[at + 1..].trim());
    let number = rest.strip_suffix('%').unwrap_or(rest).trim();
    let bound: f64 = number.parse().ok().filter(|n: &f64| n.is_finite())?;
    let is_above = text[at..].starts_with('>');
    let name = (!name.is_empty()).then(|| name.to_owned())?;
    Some(Condition { name, is_above, bound, is_relative: rest.ends_with('%') })
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (relation, percent) =
            (if self.is_above { '>' } else { '<' }, if self.is_relative { "%" } else { "" });
        write!(f, "{} {relation} {:+}{percent}", self.name, self.bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_of_b_alone_is_kept() {
        let rows = pair(vec![], vec![Side { id: "X".into(), value: Some(0.1), ..Side::default() }]);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].a, None);
    }
}
