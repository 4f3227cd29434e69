//! The report as one page of HTML that loads nothing: for a phone or a wide screen, dark or light, with the
//! keyboard. This file has the head, the sections in order of what a reader looks for, findings and notes, software
//! counts, and intervals as a chart: level 1 or software counts over time, with the phases found in them.
//!
//! | file | concern |
//! |---|---|
//! | `tree` | the counted tree and metrics; the estimated tree, with functions, loops and blocks |
//! | `code` | hot functions, blocks and callers; lines and instructions of functions |
//! | `pieces` | bars, shares, sections and short names that all of them use |
//! | `page.css` | the style |

mod code;
mod pieces;
mod tree;

use crate::documents::report::{Finding, Report};
use crate::documents::report_parts::Phase;
use crate::documents::series::{self, Interval, Series, level_1, software_label};
use crate::format;
use crate::render::{flame, over_time};
use pieces::{colour, legend, remark, section, xml};
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");

/// The page of a report, and of the intervals that it is the whole of, if there are any.
pub fn page(report: &Report, of_intervals: &[Report]) -> String {
    let mut sections = vec![
        ("Verdict", verdict(report)),
        ("Tree", tree::trees(report)),
        ("Estimate", tree::estimated_tree(report)),
        ("Flame graph", flame_graph(report)),
        ("Findings", findings(report)),
        ("Parts", tree::parts(report)),
        ("Code", code::code(report)),
        ("Intervals", intervals(report, of_intervals)),
        ("Source", code::sources(report)),
        ("Software", software(report)),
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
        flame::STYLE,
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
    let body: String = report.findings.iter().map(|of| finding(of, report)).collect();
    if body.is_empty() { body } else { section("findings", "Findings", &body) }
}

/// A finding; not again what the verdict says.
fn finding(of: &Finding, report: &Report) -> String {
    let mut out = match report.conclusion.as_ref().is_some_and(|found| found.verdict == of.text) {
        true => String::new(),
        false => format!("<p><b>{}</b></p>\n", xml(&of.text)),
    };
    // As in the text: `next:` is a command.
    let parts = [("means:", &report.meaning(of)), ("causes:", &of.causes), ("advice:", &of.next)];
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

/// The verdict and the next steps; nothing where nothing was measured.
fn verdict(report: &Report) -> String {
    let Some(found) = &report.conclusion else { return String::new() };
    let mut body = String::new();
    if !found.verdict.is_empty() {
        let _ = writeln!(body, "<p class=\"verdict\">{}</p>", xml(&found.verdict));
    }
    for step in &found.next {
        let (why, command) = (xml(&step.why), xml(&step.command));
        let _ = writeln!(
            body,
            "<p class=\"remark\"><b>next:</b> {why}: <code class=\"command\">{command}</code></p>"
        );
    }
    section("verdict", "Verdict", &body)
}

/// The counts of the kernel, or why they are missing.
fn software(report: &Report) -> String {
    if report.software.is_empty() {
        return String::new();
    }
    let mut rows = String::new();
    // A count of nothing says nothing.
    let says_something = |(_, value): &(&String, &Option<f64>)| **value != Some(0.0);
    for (name, value) in report.software.iter().filter(says_something) {
        let value = match value {
            Some(value) => shown(name, *value, report.software_error.get(name).copied()),
            None => {
                let why = report.software_missing.get(name);
                why.cloned().unwrap_or_else(|| "not measured".to_owned())
            }
        };
        let _ = writeln!(
            rows,
            "<tr><td>{}</td><td class=\"number\">{}</td></tr>",
            xml(&software_label(name)),
            xml(&value)
        );
    }
    let over = if report.repeats > 1 { ", mean of the runs" } else { "" };
    section("software", &format!("Software counts{over}"), &format!("<table>\n{rows}</table>\n"))
}

fn shown(name: &str, value: f64, error: Option<f64>) -> String {
    let text = match value {
        v if series::is_software_time(name) => format!("{v:.2} {}", series::software_unit(name)),
        v if v.fract() == 0.0 => format::count(v),
        v => format!("{v:.3}"),
    };
    let error = error.map(|e| format!(" ±{}", format::number(e))).unwrap_or_default();
    format!("{text}{error}")
}

/// Pixels of the chart; the page scales it.
const WIDE: f64 = 1000.0;
const HIGH: f64 = 200.0;
/// Most intervals that are drawn a second time, in the charts of phases.
const ZOOMED: usize = 5000;

/// The charts of all intervals and of their phases; nothing of fewer than two.
fn intervals(whole: &Report, reports: &[Report]) -> String {
    let all = level_1(reports).map_or_else(|| series::software(reports), |tree| vec![tree]);
    let mut body: String = all.iter().map(|series| drawn(series, &whole.phases)).collect();
    if body.is_empty() {
        return body;
    }
    for (number, phase) in whole.phases.iter().enumerate() {
        body += &of_phase(number + 1, phase, &all);
    }
    section("intervals", "Intervals", &body)
}

/// A chart with its legend and numbers.
fn drawn(series: &Series, phases: &[Phase]) -> String {
    let title = series_title(series);
    let chart = chart(&title, series, &series.intervals, phases);
    let legend = match series.labels.len() {
        1 => String::new(),
        _ => legend(series.labels.iter().map(String::as_str)),
    };
    format!("<h3>{}</h3>\n{chart}{legend}{}", xml(&title), table(series))
}

fn series_title(series: &Series) -> String {
    software_label(&series.heading())
}

/// A phase: its means, its functions, and its part of the charts.
fn of_phase(number: usize, phase: &Phase, all: &[Series]) -> String {
    let mut out = format!(
        "<details class=\"counts phase\"><summary>Phase {number}: {:.2} s to {:.2} s, {} intervals: {}</summary>\n",
        phase.from,
        phase.to,
        phase.intervals,
        xml(&over_time::phase_text(phase))
    );
    if all.iter().all(|series| series.intervals.len() <= ZOOMED) {
        for series in all {
            let within = |one: &&Interval| one.span.0 >= phase.from && one.span.1 <= phase.to;
            let part: Vec<Interval> = series.intervals.iter().filter(within).cloned().collect();
            let title = series_title(series);
            let _ = writeln!(out, "<p class=\"remark\">{}</p>", xml(&title));
            out += &chart(&title, series, &part, &[]);
        }
    }
    if !phase.functions.is_empty() {
        out += "<table>\n<tr><th>of its samples</th><th>function</th></tr>\n";
    }
    for function in &phase.functions {
        let _ = writeln!(
            out,
            "<tr><td class=\"number\">{}</td><td>{} <small>{}</small></td></tr>",
            format::share(Some(function.share), Some(function.error)),
            xml(&function.name),
            xml(&function.module)
        );
    }
    if !phase.functions.is_empty() {
        out += "</table>\n";
    }
    out + "</details>\n"
}

/// Values stacked from below, and the begins of phases.
fn chart(title: &str, series: &Series, all: &[Interval], phases: &[Phase]) -> String {
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return String::new() };
    let most = || series.intervals.iter().filter_map(|i| i.values[0]).fold(0.0, f64::max);
    let top = if series.is_share { 1.0 } else { most() };
    let (begin, length) = (first.span.0, (last.span.1 - first.span.0).max(f64::MIN_POSITIVE));
    let x = |time: f64| (time - begin) / length * WIDE;
    let mut out = format!(
        "<div class=\"chart\"><span class=\"axis\">{}</span><svg class=\"chart\" viewBox=\"0 0 {WIDE} \
         {HIGH}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{} over time\">\n",
        written(top, series.is_share),
        xml(title)
    );
    for interval in all {
        let (from, to) = (x(interval.span.0), x(interval.span.1));
        let mut told = format!("{:.2} s to {:.2} s", interval.span.0, interval.span.1);
        let (mut shapes, mut below) = (String::new(), 0.0);
        for (label, value) in series.labels.iter().zip(&interval.values) {
            let Some(value) = value else { continue };
            let _ = write!(told, "\n{label} {}", written(*value, series.is_share));
            let high = (value.max(0.0) / top).min(1.0 - below);
            let _ = write!(
                shapes,
                "<rect x=\"{from:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{:.2}\" style=\"fill:{}\"/>",
                (1.0 - below - high) * HIGH,
                (to - from).max(0.0),
                high * HIGH,
                colour(label)
            );
            below += high;
        }
        let _ = writeln!(out, "<g><title>{}</title>{shapes}</g>", xml(&told));
    }
    for (number, phase) in phases.iter().enumerate().skip(1) {
        let at = x(phase.from);
        let _ = writeln!(
            out,
            "<line class=\"phase\" x1=\"{at:.2}\" x2=\"{at:.2}\" y1=\"0\" y2=\"{HIGH}\"><title>phase {} \
             begins</title></line>",
            number + 1
        );
    }
    let _ = writeln!(
        out,
        "</svg><span class=\"axis ends\"><span>{:.1} s</span><span>{:.1} s</span></span></div>",
        first.span.0, last.span.1
    );
    out
}

/// The numbers of a chart, closed.
fn table(series: &Series) -> String {
    let head: String =
        series.labels.iter().map(|label| format!("<th>{}</th>", xml(label))).collect();
    let mut out = format!(
        "<details class=\"counts\"><summary>the numbers</summary><div class=\"wide\"><table>\n<tr><th>seconds</th>\
         {head}</tr>\n"
    );
    for interval in &series.intervals {
        let _ = write!(out, "<tr><td>{:.2}–{:.2}</td>", interval.span.0, interval.span.1);
        for value in &interval.values {
            let text =
                value.map_or_else(|| "not measured".to_owned(), |v| written(v, series.is_share));
            let _ = write!(out, "<td class=\"number\">{text}</td>");
        }
        out += "</tr>\n";
    }
    out + "</table></div></details>\n"
}

fn written(value: f64, is_share: bool) -> String {
    if is_share { format!("{:.1} %", 100.0 * value) } else { crate::format::number(value) }
}
