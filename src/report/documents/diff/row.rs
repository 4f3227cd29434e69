//! A row of a comparison: both values, their difference, and its judgement against both errors.

use crate::documents::report::Place;
use serde::Serialize;

/// The judgement of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// Larger in B by more than both errors together.
    More,
    /// Smaller in B by more than both errors together.
    Less,
    /// Apart by more than both errors together, but those of a single run leave out how runs differ.
    OneRun,
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
    /// Shown name.
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
    /// Part of the measurement.
    #[serde(flatten)]
    pub place: Place,
}

/// Control of false findings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FalseFindings {
    /// `Benjamini-Hochberg`.
    pub method: &'static str,
    /// Expected share of false findings, at most.
    pub rate: f64,
    /// Rows that were judged.
    pub rows: usize,
    /// Rows that are beyond their own errors, but not beyond what chance makes among so many.
    pub withdrawn: usize,
}

/// A value of either report, with what identifies it.
#[derive(Debug, Clone, Default)]
pub struct Side {
    /// Id.
    pub id: String,
    /// Shown name.
    pub label: String,
    /// Level in the tree; 0 of others.
    pub level: u32,
    /// The value.
    pub value: Option<f64>,
    /// Half width of its 95 % interval.
    pub error: Option<f64>,
    /// Its unit.
    pub unit: String,
    /// Part of the measurement.
    pub place: Place,
}

impl DiffRow {
    /// The size of its change; of a row that only one side has, its value.
    pub fn change(&self) -> f64 {
        self.difference.or(self.a).or(self.b).unwrap_or(0.0).abs()
    }

    /// Whether it changed by more than both errors.
    pub fn is_judged(&self) -> bool {
        matches!(self.judgement, Judgement::More | Judgement::Less | Judgement::OneRun)
    }

    /// Whether no value that it has is beyond its error, and no change either: too few samples, say.
    pub fn is_below_error(&self) -> bool {
        let error = match (self.a, self.b) {
            (Some(_), Some(_)) => self.margin,
            (Some(_), None) => self.a_error,
            _ => self.b_error,
        };
        let most = self.a.into_iter().chain(self.b).fold(0.0, f64::max);
        !self.is_judged() && error.is_some_and(|error| most <= error)
    }

    /// A row of what both sides have, or one of them.
    pub fn of(named: &Side, a: Option<&Side>, b: Option<&Side>) -> Self {
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
        Self {
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
            DiffRow::of(&a, Some(&a), Some(&b)).judgement
        };
        assert_eq!(judged(0.06), Judgement::More);
        assert_eq!(judged(0.04), Judgement::Same);
        assert_eq!(judged(-0.06), Judgement::Less);
    }

    #[test]
    fn absent_is_absent_and_never_zero() {
        let (a, b) = (side(Some(0.3), None), side(None, None));
        let r = DiffRow::of(&a, Some(&a), Some(&b));
        assert_eq!((r.b, r.difference, r.judgement), (None, None, Judgement::Absent));
    }
}
