//! Functions line by line: a line opens to its instructions.

use super::pieces::{bar, opening, remark, section, share, xml};
use super::shown::code as named;
use crate::documents::report::Report;
use crate::documents::report_code::{AnnotatedFunction, SourceInstruction, SourceLine};
use std::fmt::Write as _;

/// The function that was asked for, and the hottest ones.
pub(super) fn sources(report: &Report) -> String {
    let mut shown: Vec<&AnnotatedFunction> = report.annotated.iter().collect();
    for of in &report.sources {
        let is_same = |other: &&AnnotatedFunction| {
            (&other.function, &other.module, other.start) == (&of.function, &of.module, of.start)
        };
        if !shown.iter().any(is_same) {
            shown.push(of);
        }
    }
    if shown.is_empty() {
        return String::new();
    }
    let body: String =
        shown.iter().enumerate().map(|(number, of)| function(of, number == 0)).collect();
    section("source", "Source and assembly", &body)
}

fn function(of: &AnnotatedFunction, open: bool) -> String {
    let mut body = "<div class=\"source\">\n".to_owned();
    let mut file = None;
    for line in &of.lines {
        if line.file.as_deref() != file {
            file = line.file.as_deref();
            let _ =
                writeln!(body, "<p class=\"file\">{}</p>", xml(file.unwrap_or("(no line known)")));
        }
        body += &source_line(line);
    }
    body += "</div>\n";
    of.missing.iter().for_each(|why| body += &remark("missing:", why));
    of.notes.iter().for_each(|note| body += &remark("note:", note));
    let line = format!(
        "<span class=\"value\">{}</span>{} <small>{}</small>",
        share(of.share),
        named("", &of.function, ""),
        xml(&format!(
            "{}, {}..{}; shares below are of its {} samples",
            of.module, of.start, of.end, of.samples
        ))
    );
    opening("function", open, &line, &body)
}

fn source_line(line: &SourceLine) -> String {
    let instructions: String = line.instructions.iter().map(instruction).collect();
    let Some(number) = line.line else { return instructions };
    let text = line.text.as_deref().unwrap_or_default().trim_end().replace('\t', "    ");
    let shown = columns(line.samples, line.share, &number.to_string(), &text);
    let class = if line.hottest { "code hottest" } else { "code" };
    opening(class, false, &shown, &instructions)
}

fn instruction(one: &SourceInstruction) -> String {
    let shown = columns(one.samples, one.share, &one.address.to_string(), &one.text);
    format!("<div class=\"instruction line\">{shown}</div>\n")
}

/// Share, bar, place and text of a line or an instruction.
pub(super) fn columns(samples: u64, of: f64, place: &str, text: &str) -> String {
    let (value, drawn) = match samples {
        0 => (String::new(), String::new()),
        _ => (share(of), bar(of, None, "var(--bar)")),
    };
    format!(
        "<span class=\"value\">{value}</span><span class=\"bars\">{drawn}</span><span class=\"place\">{}</span>\
         <code>{}</code>",
        xml(place),
        xml(text)
    )
}
