//! Costs in callgrind's format (Valgrind manual, "Callgrind Format Specification"), for callgrind_annotate and
//! kcachegrind.

use crate::documents::flame::{Costs, FunctionId};
use std::fmt::Write as _;

/// A file or function that is not known, as callgrind writes it.
const UNKNOWN: &str = "???";

/// The costs as a file of callgrind.
pub fn text(of: &Costs) -> String {
    let mut out = String::from("# callgrind format\nversion: 1\ncreator: tdtool\n");
    let _ = writeln!(out, "cmd: {}", line(&of.command));
    for remark in &of.remarks {
        let _ = writeln!(out, "desc: Note: {}", line(remark));
    }
    let _ = writeln!(out, "positions: {}", of.positions);
    // Names of events are separated by blanks.
    let names: Vec<String> = of.events.iter().map(|e| line(e).replace(' ', "_")).collect();
    for (name, event) in names.iter().zip(&of.events).filter(|(name, event)| name != event) {
        let _ = writeln!(out, "event: {name} : {}", line(event));
    }
    let _ = writeln!(out, "events: {}", names.join(" "));
    let _ = writeln!(out, "summary: {}", numbers(&of.summary));
    let (mut object, mut file) = (None, None);
    for function in &of.functions {
        let id = &function.id;
        if object != Some(&id.object) {
            let _ = writeln!(out, "\nob={}", name(&id.object));
            (object, file) = (Some(&id.object), None);
        }
        if file != Some(&id.file) {
            let _ = writeln!(out, "fl={}", file_of(id));
            file = Some(&id.file);
        }
        let _ = writeln!(out, "fn={}", name(&id.name));
        let mut within = None;
        for one in &function.lines {
            if one.file != within {
                let back = id.file.as_deref().unwrap_or(UNKNOWN);
                let to = one.file.as_deref();
                let _ = match to {
                    Some(to) => writeln!(out, "fi={}", name(to)),
                    None => writeln!(out, "fe={}", name(back)),
                };
                within.clone_from(&one.file);
            }
            let _ = writeln!(out, "{} {}", one.position, numbers(&one.costs));
        }
        if within.is_some() {
            let _ = writeln!(out, "fe={}", file_of(id));
        }
        for call in &function.calls {
            let callee = &call.callee;
            // Without them callgrind_annotate takes the callee for another function.
            let (object, function) = (name(&callee.object), name(&callee.name));
            let _ = writeln!(out, "cob={object}\ncfi={}\ncfn={function}", file_of(callee));
            let _ = writeln!(out, "calls={} 0\n0 {}", call.count, numbers(&call.costs));
        }
    }
    out
}

fn numbers(costs: &[u64]) -> String {
    costs.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

fn file_of(id: &FunctionId) -> String {
    id.file.as_deref().map_or_else(|| UNKNOWN.to_owned(), name)
}

/// A name on one line. One that begins with `(` would be an abbreviation.
fn name(text: &str) -> String {
    let text = line(text);
    match text.is_empty() {
        true => UNKNOWN.to_owned(),
        false if text.starts_with('(') => format!(" {text}"),
        false => text,
    }
}

fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '_' } else { c }).collect()
}
