//! The page: head, sections in order of what a reader looks for, findings and notes.

use super::pieces::{remark, section, xml};
use super::{code, estimate, intervals, software, source, tree, verdict};
use crate::documents::report::{Finding, Report};
use crate::format;
use crate::render::flame;
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");

/// The page of a report, and of the intervals that it is the whole of, if there are any.
pub fn page(report: &Report, of_intervals: &[Report]) -> String {
    let mut sections = vec![
        ("Verdict", verdict::verdict(report)),
        ("Tree", tree::trees(report)),
        ("Estimate", estimate::tree(report)),
        ("Flame graph", flame_graph(report)),
        ("Findings", findings(report)),
        ("Parts", estimate::parts(report)),
        ("Code", code::code(report)),
        ("Intervals", intervals::intervals(report, of_intervals)),
        ("Source", source::sources(report)),
        ("Software", software::software(report)),
        ("Notes", notes(report)),
    ];
    if report.nodes.iter().all(|node| node.value.is_none()) {
        // Sections with content come first.
        for not_there in ["Tree", "Findings"] {
            let at = sections.iter().position(|(name, _)| *name == not_there);
            let section = at.map(|at| sections.remove(at));
            let notes = sections.len() - 1;
            section.into_iter().for_each(|section| sections.insert(notes, section));
        }
    }
    let shown: Vec<&(&str, String)> =
        sections.iter().filter(|(_, body)| !body.is_empty()).collect();
    let link = |(name, body): &&(&str, String)| {
        // Every section begins with its id.
        let id = body.split('"').nth(1).unwrap_or_default();
        format!("<a href=\"#{id}\">{name}</a>\n")
    };
    let links: String = shown.iter().map(link).collect();
    let bodies: String = shown.iter().map(|(_, body)| body.as_str()).collect();
    // The policy forbids the page to load anything.
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
         <title>{}</title>\n<style>\n{}{STYLE}</style></head>\n<body>\n{}<nav>{links}</nav>\n<main>\n{bodies}</main>\n\
         <footer>tdtool {}</footer>\n</body></html>\n",
        xml(&title(report)),
        flame::FIGURE_STYLE,
        head(report),
        xml(&report.tool)
    )
}

/// The command, or what was measured.
fn title(report: &Report) -> String {
    report.measured_command().map_or_else(|| report.name(), format::command)
}

fn head(report: &Report) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts
        .extend([report.uarch.clone(), report.title.clone()].into_iter().filter(|t| !t.is_empty()));
    parts.push(report.source.label().to_owned());
    if report.measured_command().is_some() {
        let title = title(report);
        parts.extend(report.subject.iter().filter(|s| **s != title).cloned());
    }
    parts.extend(report.duration.map(format::seconds));
    if report.repeats > 1 {
        parts.push(format!("{} runs", report.repeats));
    }
    format!(
        "<header><h1>{}</h1>\n<p>{}</p></header>\n",
        xml(&title(report)),
        xml(&parts.join(" · "))
    )
}

fn findings(report: &Report) -> String {
    let verdict = report.conclusion.as_ref().map_or("", |found| &found.verdict);
    let body: String = report.findings.iter().map(|of| finding(of, verdict)).collect();
    if body.is_empty() { body } else { section("findings", "Findings", &body) }
}

/// A finding; not again what the verdict says.
fn finding(of: &Finding, verdict: &str) -> String {
    let mut out = match of.text == verdict {
        true => String::new(),
        false => format!("<p><b>{}</b></p>\n", xml(&of.text)),
    };
    // As in the text: `next:` is a command.
    let parts = [("means:", &of.meaning), ("causes:", &of.causes), ("advice:", &of.next)];
    for (word, text) in parts {
        if let Some(text) = text {
            out += &remark(word, text);
        }
    }
    out
}

fn flame_graph(report: &Report) -> String {
    match &report.flame_graph {
        Some(graph) if !graph.frames.is_empty() => {
            section("flame", "Flame graph", &flame::figure(graph))
        }
        _ => String::new(),
    }
}

fn notes(report: &Report) -> String {
    let mut body: String = report.notes.iter().map(|note| remark("note:", note)).collect();
    if !report.unread.is_empty() {
        let _ = writeln!(body, "<h3>Lines that were not parsed: {}</h3>", report.unread.len());
        for line in report.unread.iter() {
            let text = format!("{}:{}: {}: {}", line.file, line.line, line.why, line.text);
            let _ = writeln!(body, "<p>{}</p>", xml(&text));
        }
    }
    if body.is_empty() { body } else { section("notes", "Notes", &body) }
}
