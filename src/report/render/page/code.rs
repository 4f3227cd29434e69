//! Renders hot functions and blocks, also of several events, and callers; functions line by line, where a line
//! opens to its instructions.

use super::pieces::{
    bar, code as named, opening, remark, section, share, share_with_error, short, stacked, xml,
};
use crate::documents::report::Report;
use crate::documents::report_code::{
    AnnotatedFunction, BlockRow, CodeRow, FunctionRow, LoopRow, SourceInstruction, SourceLine,
};
use crate::format;
use profile::hot::CallNode;
use std::fmt::Write as _;

/// Functions, blocks, events and callers; nothing without samples.
pub(super) fn code(report: &Report) -> String {
    let Some(sampled) = &report.sampled else { return String::new() };
    let lost = match sampled.lost {
        0 => String::new(),
        lost => format!(", {} lost", format::several(lost, "record")),
    };
    let samples = format::several(sampled.samples, "sample");
    let mut body = format!("<p>{samples} of {}{lost}</p>\n", xml(&sampled.event));
    body += &functions(report);
    body += &events(report);
    body += &loops(report);
    body += &blocks(report);
    if let Some(callers) = &report.callers {
        let _ = writeln!(body, "<h3>Callers of {}</h3>", xml(&callers.function));
        body += &table(calls(&callers.tree, 0).into_iter());
    }
    if let Some(callees) = &report.callees {
        let _ = writeln!(body, "<h3>Callees of {}</h3>", xml(&callees.function));
        body += &table(calls(&callees.tree, 0).into_iter());
    }
    let skid = (sampled.samples > 0).then_some(&sampled.skid);
    for note in skid.into_iter().chain(&sampled.notes) {
        let _ = writeln!(body, "<p class=\"remark\"><b>note:</b> {}</p>", xml(note));
    }
    section("code", "Hot code", &body)
}

/// A tree of callers or callees.
fn calls(nodes: &[CallNode], depth: usize) -> Vec<String> {
    // Em spaces, which a page keeps.
    let name = |node: &CallNode| named(&"\u{2003}".repeat(depth), &node.name, "");
    let row = |node: &CallNode| {
        line(node.share, "", &name(node), &format::several(node.samples, "sample"))
    };
    let rows = |node: &CallNode| [vec![row(node)], calls(&node.below, depth + 1)].concat();
    nodes.iter().flat_map(rows).collect()
}

fn table(rows: impl Iterator<Item = String>) -> String {
    format!("<table class=\"hot\">\n{}</table>\n", rows.collect::<String>())
}

/// A row: share, bar, the code of a name, and what else is known of it.
fn line(of: f64, parts: &str, name: &str, about: &str) -> String {
    let parts = if parts.is_empty() { bar(of, None, "var(--bar)") } else { parts.to_owned() };
    format!(
        "<tr><td class=\"number\">{}</td><td>{parts}</td><td>{name}<small>{}</small></td></tr>\n",
        share(of),
        xml(about)
    )
}

fn functions(report: &Report) -> String {
    if report.functions.is_empty() {
        return String::new();
    }
    let row = |row: &FunctionRow| {
        let place = match (&row.gap, &row.hottest) {
            (Some(gap), _) => Some(gap.clone()),
            (None, Some(hot)) => Some(format!("{}:{}", hot.file, hot.line)),
            (None, None) => row.file.as_ref().map(|file| at(file, row.line)),
        };
        let about = [Some(row.module.clone()), place, Some(format::several(row.samples, "sample"))];
        let about: Vec<String> = about.into_iter().flatten().collect();
        let name = named("", &row.name, &row.short);
        line(row.share, &parts(report, row), &name, &about.join(" · "))
    };
    format!("<h3>Functions</h3>\n{}", table(report.functions.iter().map(row)))
}

/// Level 1 of a function as a bar, where it was counted and is trusted.
fn parts(report: &Report, row: &FunctionRow) -> String {
    let trees = report.per_function.iter().flat_map(|of| &of.functions);
    let mut own =
        trees.filter(|tree| tree.trusted && tree.name == row.name && tree.module == row.module);
    own.next().map_or_else(String::new, |tree| {
        stacked(tree.nodes.iter().filter_map(|n| Some((n.label.as_str(), n.value?))))
    })
}

/// A range of addresses with its function.
fn named_code(code: &CodeRow) -> String {
    named(&format!("{}..{} ", code.start, code.end), &code.function, &code.function_short)
}

/// Loops, each less those within it; an estimate has them among its parts.
fn loops(report: &Report) -> String {
    if report.loops.is_empty() || report.estimate.is_some() {
        return String::new();
    }
    let row = |row: &LoopRow| {
        let code = &row.code;
        let head = (row.head != code.start).then(|| format!("head {}", row.head));
        let place = code.file.as_ref().map(|file| at(file, code.line));
        let about =
            [Some(code.module.clone()), head, place, Some(format::several(code.samples, "sample"))];
        let about: Vec<String> = about.into_iter().flatten().collect();
        line(code.share, "", &named_code(code), &about.join(" · "))
    };
    format!("<h3>Loops</h3>\n{}", table(report.loops.iter().map(row)))
}

/// Blocks that are shown nowhere else, or of which something was measured.
fn blocks(report: &Report) -> String {
    let is_shown = |row: &&BlockRow| {
        let place = |of: &CodeRow| (of.path.clone(), of.start, of.end);
        let is_same = |of: &LoopRow| place(&of.code) == place(&row.code);
        let is_new = report.estimate.is_none() && !report.loops.iter().any(is_same);
        is_new || row.measured.is_some() || row.cycles_per_entry.is_some()
    };
    let rows: Vec<&BlockRow> = report.blocks.iter().filter(is_shown).collect();
    if rows.is_empty() {
        return String::new();
    }
    let row = |row: &&BlockRow| {
        let code = &row.code;
        let depth = match code.loop_depth {
            0 => None,
            depth => Some(format!("loop depth {depth}")),
        };
        let place = code.file.as_ref().map(|file| at(file, code.line));
        let inlined = code.inlined.as_ref().map(|name| format!("inlined {}", short(name, "")));
        let cycles = row
            .cycles_per_entry
            .map(|cycles| format!("{} cycles per entry", format::cycles(cycles)));
        let isolated = row.measured.as_ref().and_then(|m| m.cycles);
        let isolated =
            isolated.map(|cycles| format!("{} cycles in isolation", format::cycles(cycles)));
        let about = [Some(code.module.clone()), depth, place, inlined, cycles, isolated];
        let about: Vec<String> =
            about.into_iter().flatten().chain([format::several(code.samples, "sample")]).collect();
        line(code.share, "", &named_code(code), &about.join(" · "))
    };
    format!("<h3>Blocks</h3>\n{}", table(rows.iter().map(row)))
}

/// Where the samples of each of several events are.
fn events(report: &Report) -> String {
    let mut out = String::new();
    for row in &report.events {
        let locates = match row.labels.as_slice() {
            [] => String::new(),
            labels => format!(", locates {}", labels.join(", ")),
        };
        let _ = writeln!(
            out,
            "<h3>{}</h3>",
            xml(&format!("{}{locates}: {}", row.name, format::several(row.samples, "sample")))
        );
        let of = |f: &crate::documents::report_code::EventFunction| {
            format!(
                "<tr><td class=\"number\">{}</td><td>{}</td></tr>\n",
                share_with_error(f.share, Some(f.error)),
                named("", &f.name, &f.short)
            )
        };
        let _ =
            writeln!(out, "<table>\n{}</table>", row.functions.iter().map(of).collect::<String>());
    }
    out
}

fn at(file: &str, line: Option<u32>) -> String {
    line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"))
}

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
