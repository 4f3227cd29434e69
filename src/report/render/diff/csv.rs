//! A comparison as CSV: one row per node, info, software count, function, loop, block, and part of one of them.

use crate::documents::diff::row::CodeRow;
use crate::documents::diff::{Diff, DiffRow};
use crate::render::csv::{self, number};
use smol_str::SmolStr;

/// Column names, the first line.
const HEADER: &str = "kind,id,module,start_a,start_b,part,core,scope,a,a_error,b,b_error,difference,margin,judgement,unit";

/// Renders a comparison.
pub fn render(diff: &Diff) -> String {
    let mut out = format!("{HEADER}\n");
    let plain = [("node", &diff.nodes), ("info", &diff.info), ("software", &diff.software)];
    for (kind, rows) in plain {
        for row in rows {
            let place = &row.place;
            let text = |part: &Option<SmolStr>| part.as_deref().unwrap_or_default().to_owned();
            let begin = [kind.to_owned(), row.id.clone()].into_iter();
            let empty = std::iter::repeat_n(String::new(), 4);
            add(&mut out, begin.chain(empty).chain([text(&place.core), text(&place.scope)]), row);
        }
    }
    let Some(code) = &diff.code else { return out };
    if let Some(row) = &code.program {
        of_code(&mut out, "program", row);
    }
    for (kind, rows) in
        [("function", &code.functions), ("loop", &code.loops), ("block", &code.blocks)]
    {
        rows.iter().for_each(|row| of_code(&mut out, kind, row));
    }
    out
}

fn of_code(out: &mut String, kind: &str, row: &CodeRow) {
    let start = |side: usize| row.start[side].map(|at| at.to_string()).unwrap_or_default();
    let begin = |part: &str| {
        let (id, module) = (row.time.id.clone(), row.module.clone());
        [kind.to_owned(), id, module, start(0), start(1), part.to_owned()]
            .into_iter()
            .chain([String::new(), String::new()])
    };
    add(out, begin(""), &row.time);
    for part in &row.parts {
        add(out, begin(&part.id), part);
    }
}

/// A line: what the row is, and its numbers.
fn add(out: &mut String, begin: impl Iterator<Item = String>, row: &DiffRow) {
    let numbers = [row.a, row.a_error, row.b, row.b_error, row.difference, row.margin];
    let judgement = serde_json::to_value(row.judgement).ok();
    let judgement = judgement.and_then(|value| Some(value.as_str()?.to_owned()));
    let end = [judgement.unwrap_or_default(), row.unit.clone()];
    *out += &csv::row(begin.chain(numbers.map(number)).chain(end));
    out.push('\n');
}
