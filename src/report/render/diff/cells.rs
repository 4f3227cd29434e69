//! The rows of a comparison as cells of text.

use super::code::in_one_run;
use crate::documents::diff::{Diff, DiffRow, Judgement};
use crate::format;

/// One row.
pub(super) struct Cells {
    pub name: String,
    /// Blanks before the name: two for each level below the first.
    pub indent: usize,
    pub a: String,
    pub b: String,
    pub difference: String,
    pub judgement: &'static str,
}

/// The rows that have a value.
pub(super) fn cells(diff: &Diff, ascii: bool) -> Vec<Cells> {
    let all = diff.nodes.iter().chain(&diff.info).chain(&diff.software);
    all.filter(|r| r.a.is_some() || r.b.is_some()).map(|r| of(r, ascii)).collect()
}

fn of(r: &DiffRow, ascii: bool) -> Cells {
    let place = r.place.title();
    let place = if place.is_empty() { place } else { format!(" ({place})") };
    let is_share = r.level > 0;
    let difference = match (r.difference, is_share) {
        (None, _) => String::new(),
        (Some(d), true) => format!("{:+.1} points", 100.0 * d),
        (Some(d), false) => format!("{}{}", if d >= 0.0 { "+" } else { "" }, format::number(d)),
    };
    let plus_minus = if ascii { "+-" } else { "±" };
    let cell = |value: Option<f64>, error: Option<f64>| match (value, is_share) {
        (None, _) => "absent".to_owned(),
        (Some(_), true) => format::share(value, error).replace('±', plus_minus),
        (Some(v), false) => match error {
            Some(error) => format!("{} {plus_minus} {}", format::number(v), format::number(error)),
            None => format::number(v),
        },
    };
    Cells {
        name: format!("{}{place}", r.label),
        indent: 2 * r.level.saturating_sub(1) as usize,
        a: cell(r.a, r.a_error),
        b: cell(r.b, r.b_error),
        difference,
        judgement: match r.judgement {
            Judgement::More => "more in B",
            Judgement::Less => "less in B",
            Judgement::OneRun => in_one_run(r),
            Judgement::Same => "same within the errors",
            Judgement::Unjudged => "not judged: no errors",
            Judgement::Absent => "",
        },
    }
}
