//! Two reports side by side: each difference judged against both errors.
//!
//! | file | concern |
//! |---|---|
//! | [`several`] | several runs as one report, their spread as its errors |
//! | [`gate`] | lines that a difference must not cross |
//! | [`judge`](mod@judge) | which of them it crosses |

pub mod gate;
pub mod judge;
pub mod several;

use crate::documents::report::{InfoRow, NodeRow, Place, Report};
use crate::format;
use gate::{Crossing, Gate};
use serde::Serialize;
use std::collections::HashMap;

/// The judgement of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// Larger in B by more than both errors together.
    More,
    /// Smaller in B by more than both errors together.
    Less,
    /// Within the errors.
    Same,
    /// Both values are there, but not both errors: the size is given, no judgement.
    Unjudged,
    /// Absent on one side, or on both.
    Absent,
}

/// One row: a node or info in both reports.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiffRow {
    /// Id.
    pub id: String,
    /// What we show.
    pub label: String,
    /// Level in the tree; 0 for infos.
    pub level: u32,
    /// Value and error in A.
    pub a: Option<f64>,
    /// Half width of A's 95 % interval.
    pub a_error: Option<f64>,
    /// Value in B.
    pub b: Option<f64>,
    /// Half width of B's 95 % interval.
    pub b_error: Option<f64>,
    /// B − A where both are there.
    pub difference: Option<f64>,
    /// Both errors, as independent ones: √(ea² + eb²).
    pub margin: Option<f64>,
    /// The judgement.
    pub judgement: Judgement,
    /// Unit of the values; `ratio` for shares, empty for plain numbers.
    pub unit: String,
    /// Which part of the measurement.
    #[serde(flatten)]
    pub place: Place,
}

/// The comparison, `tdtool.diff/1`.
#[derive(Debug, Clone, Serialize)]
pub struct Diff {
    /// `tdtool.diff/1`.
    pub schema: String,
    /// Titles of A and B: file, subject, duration.
    pub reports: [String; 2],
    /// Microarchitectures of A and B.
    pub uarch: [String; 2],
    /// Nodes in A's order, then those only in B.
    pub nodes: Vec<DiffRow>,
    /// Infos likewise.
    pub info: Vec<DiffRow>,
    /// Software counts likewise.
    pub software: Vec<DiffRow>,
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

/// A value of either report, with what identifies it.
#[derive(Clone)]
struct Side {
    id: String,
    label: String,
    level: u32,
    value: Option<f64>,
    error: Option<f64>,
    unit: String,
    place: Place,
}

impl From<&NodeRow> for Side {
    fn from(n: &NodeRow) -> Self {
        let (id, label, place) = (n.id.clone(), n.label.clone(), n.place.clone());
        let unit = "ratio".to_owned();
        Self { id, label, level: n.level, value: n.value, error: n.error, unit, place }
    }
}

impl From<&InfoRow> for Side {
    fn from(i: &InfoRow) -> Self {
        let (id, label, place) = (i.id.clone(), i.label.clone(), i.place.clone());
        let unit = i.unit.clone();
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
pub fn diff((file_a, a): (&str, &Report), (file_b, b): (&str, &Report)) -> Diff {
    let mut notes = Vec::new();
    if a.uarch != b.uarch {
        notes.push(format!(
            "different tables ({} and {}): nodes of one name may be defined differently",
            a.uarch, b.uarch
        ));
    }
    if a.repeats.min(b.repeats) < 2 {
        notes.push(
            "errors are of single runs and leave out run-to-run variation (-r N measures it)"
                .into(),
        );
    }
    Diff {
        schema: "tdtool.diff/1".into(),
        reports: [title(file_a, a), title(file_b, b)],
        uarch: [a.uarch.clone(), b.uarch.clone()],
        nodes: pair(
            a.nodes.iter().map(Side::from).collect(),
            b.nodes.iter().map(Side::from).collect(),
        ),
        info: pair(
            a.info.iter().map(Side::from).collect(),
            b.info.iter().map(Side::from).collect(),
        ),
        software: pair(software(a), software(b)),
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
        unit: if name.ends_with("_ms") { "ms".to_owned() } else { String::new() },
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
        rows.push(row(&left, Some(&left), right.as_ref()));
    }
    // What only B has, in B's order.
    for right in &b {
        let unpaired =
            rest.get(&right.id).is_some_and(|o| o.iter().any(|s| s.place == right.place));
        if unpaired {
            rows.push(row(right, None, Some(right)));
        }
    }
    rows
}

fn row(named: &Side, a: Option<&Side>, b: Option<&Side>) -> DiffRow {
    let value = |s: Option<&Side>| s.and_then(|s| s.value);
    let error = |s: Option<&Side>| s.and_then(|s| s.error);
    let difference = value(a).zip(value(b)).map(|(a, b)| b - a);
    let margin = error(a).zip(error(b)).map(|(a, b)| a.hypot(b));
    let judgement = match (difference, margin) {
        (None, _) => Judgement::Absent,
        (Some(_), None) => Judgement::Unjudged,
        (Some(d), Some(m)) if d > m => Judgement::More,
        (Some(d), Some(m)) if d < -m => Judgement::Less,
        _ => Judgement::Same,
    };
    DiffRow {
        id: named.id.clone(),
        label: named.label.clone(),
        level: named.level,
        a: value(a),
        a_error: error(a),
        b: value(b),
        b_error: error(b),
        difference,
        margin,
        judgement,
        unit: named.unit.clone(),
        place: named.place.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(value: Option<f64>, error: Option<f64>) -> Side {
        let (unit, place) = ("ratio".to_owned(), Place::default());
        Side { id: "X".into(), label: "X".into(), level: 1, value, error, unit, place }
    }

    #[test]
    fn a_difference_counts_only_beyond_both_errors() {
        // Hand calculation: errors 0.03 and 0.04 make a margin of 0.05.
        let judged = |d: f64| {
            let (a, b) = (side(Some(0.3), Some(0.03)), side(Some(0.3 + d), Some(0.04)));
            row(&a, Some(&a), Some(&b)).judgement
        };
        assert_eq!(judged(0.06), Judgement::More);
        assert_eq!(judged(0.04), Judgement::Same);
        assert_eq!(judged(-0.06), Judgement::Less);
    }

    #[test]
    fn absent_is_absent_and_never_zero() {
        let (a, b) = (side(Some(0.3), None), side(None, None));
        let r = row(&a, Some(&a), Some(&b));
        assert_eq!((r.b, r.difference, r.judgement), (None, None, Judgement::Absent));
    }

    #[test]
    fn a_node_of_b_alone_is_kept() {
        let rows = pair(vec![], vec![side(Some(0.1), None)]);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].a, None);
    }
}
