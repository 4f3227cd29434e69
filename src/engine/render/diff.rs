//! Two reports compared, as text.

use crate::documents::diff::{Diff, DiffRow, Judgement};
use crate::format;
use std::fmt::Write as _;

/// The comparison as text.
pub fn render(diff: &Diff, ascii: bool) -> String {
    let mut out = String::new();
    for (name, report) in ["A", "B"].iter().zip(&diff.reports) {
        let _ = writeln!(out, "{name}: {report}");
    }
    for note in &diff.notes {
        let _ = writeln!(out, "note: {note}");
    }
    let _ = writeln!(out);
    let plus_minus = if ascii { "+-" } else { "±" };
    let indent = |r: &DiffRow| 2 * r.level.saturating_sub(1) as usize;
    let all = || diff.nodes.iter().chain(&diff.info).chain(&diff.software);
    let rows = || all().filter(|r| r.a.is_some() || r.b.is_some());
    let name = |r: &DiffRow| {
        let place = format::place(&r.place);
        let place = if place.is_empty() { place } else { format!(" ({place})") };
        format!("{:i$}{}{place}", "", r.label, i = indent(r))
    };
    let width = rows().map(|r| name(r).chars().count()).max().unwrap_or(4).max(4);
    let _ = writeln!(out, "{:width$}  {:>16}  {:>16}  {:>10}", "", "A", "B", "B - A");
    for r in rows() {
        let ratio = r.level > 0;
        let cell = |value: Option<f64>, error: Option<f64>| match (value, ratio) {
            (None, _) => "absent".to_owned(),
            (Some(_), true) => format::share(value, error).replace('±', plus_minus),
            (Some(v), false) => format::number(v),
        };
        let difference = match (r.difference, ratio) {
            (None, _) => String::new(),
            (Some(d), true) => format!("{:+.1} points", 100.0 * d),
            (Some(d), false) => format!("{}{}", if d >= 0.0 { "+" } else { "" }, format::number(d)),
        };
        let verdict = match r.judgement {
            Judgement::More => "more in B",
            Judgement::Less => "less in B",
            Judgement::Same => "same within the errors",
            Judgement::Unjudged => "not judged: no errors",
            Judgement::Absent => "",
        };
        let line = format!(
            "{:width$}  {:>16}  {:>16}  {difference:>12}  {verdict}",
            name(r),
            cell(r.a, r.a_error),
            cell(r.b, r.b_error)
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::report::Place;

    #[test]
    fn an_absent_value_is_shown_as_absent() {
        let row = DiffRow {
            id: "X".into(),
            label: "X".into(),
            level: 1,
            a: Some(0.3),
            a_error: None,
            b: None,
            b_error: None,
            difference: None,
            margin: None,
            judgement: Judgement::Absent,
            place: Place::default(),
        };
        let diff = Diff {
            schema: String::new(),
            reports: ["a.json: true".into(), "b.json: false".into()],
            uarch: Default::default(),
            nodes: vec![row],
            info: vec![],
            software: vec![],
            notes: vec![],
        };
        let text = render(&diff, true);
        assert!(text.contains("absent"), "{text}");
        assert!(text.starts_with("A: a.json: true\nB: b.json: false\n"), "{text}");
    }
}
