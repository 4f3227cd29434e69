//! Intervals as a chart: level 1 stacked over time, or software counts where there is no tree; its numbers in a table.

use super::pieces::{colour, legend, section, xml};
use super::software::label;
use crate::documents::report::Report;
use std::fmt::Write as _;

/// Pixels of the chart; the page scales it.
const WIDE: f64 = 1000.0;
const HIGH: f64 = 200.0;
/// The software counts that are drawn, where there is no tree.
const SOFTWARE: [&str; 3] = ["cpus_used", "page_faults", "context_switches"];

/// One interval: begin, end, and its values in the order of the labels.
struct Interval {
    span: (f64, f64),
    values: Vec<Option<f64>>,
}

/// The chart of all intervals; nothing of fewer than two.
pub(super) fn intervals(reports: &[Report]) -> String {
    let spans: Vec<(&Report, (f64, f64))> =
        reports.iter().filter_map(|report| Some((report, report.interval?))).collect();
    if spans.len() < 2 {
        return String::new();
    }
    let nodes = level_1(reports);
    let tree: Vec<Interval> = spans
        .iter()
        .map(|(report, span)| Interval {
            span: *span,
            values: nodes.iter().map(|(id, _)| share_of(report, id)).collect(),
        })
        .collect();
    let is_counted = tree.iter().any(|interval| interval.values.iter().any(Option::is_some));
    let body = if is_counted {
        let labels: Vec<&str> = nodes.iter().map(|(_, label)| *label).collect();
        let legend = legend(labels.iter().copied());
        chart("Level 1", &labels, &tree, 1.0, true) + &legend + &table(&labels, &tree, true)
    } else {
        software(&spans)
    };
    section("intervals", "Intervals", &body)
}

/// Ids and labels of level 1, of all places together.
fn level_1(reports: &[Report]) -> Vec<(&str, &str)> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for node in reports.iter().flat_map(|r| &r.nodes).filter(|node| node.level == 1) {
        if !found.iter().any(|(id, _)| *id == node.id) {
            found.push((&node.id, &node.label));
        }
    }
    found
}

/// A node's share where an interval has one of it; of several cores none stands for all.
fn share_of(report: &Report, id: &str) -> Option<f64> {
    let mut found = report.nodes.iter().filter(|node| node.id == id);
    let first = found.next()?;
    if found.next().is_some() { None } else { first.value }
}

/// Charts of software counts.
fn software(spans: &[(&Report, (f64, f64))]) -> String {
    let drawn = SOFTWARE.iter().filter(|name| {
        spans
            .iter()
            .any(|(r, _)| r.software.get(**name).copied().flatten().is_some_and(|v| v > 0.0))
    });
    let mut out = String::new();
    for name in drawn {
        let all: Vec<Interval> = spans
            .iter()
            .map(|(report, span)| Interval {
                span: *span,
                values: vec![report.software.get(*name).copied().flatten()],
            })
            .collect();
        let most = all.iter().filter_map(|i| i.values[0]).fold(0.0, f64::max);
        let label = label(name);
        out += &chart(&label, &[&label], &all, most, false);
        out += &table(&[&label], &all, false);
    }
    out
}

/// Values stacked from below; `top` is the value at the upper edge.
fn chart(title: &str, labels: &[&str], all: &[Interval], top: f64, is_share: bool) -> String {
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return String::new() };
    let (begin, length) = (first.span.0, (last.span.1 - first.span.0).max(f64::MIN_POSITIVE));
    let x = |time: f64| (time - begin) / length * WIDE;
    let mut out = format!(
        "<h3>{}</h3>\n<div class=\"chart\"><span class=\"axis\">{}</span><svg class=\"chart\" viewBox=\"0 0 {WIDE} \
         {HIGH}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{} over time\">\n",
        xml(title),
        written(top, is_share),
        xml(title)
    );
    for interval in all {
        let (from, to) = (x(interval.span.0), x(interval.span.1));
        let mut told = format!("{:.2} s to {:.2} s", interval.span.0, interval.span.1);
        let (mut shapes, mut below) = (String::new(), 0.0);
        for (label, value) in labels.iter().zip(&interval.values) {
            let Some(value) = value.filter(|value| value.is_finite()) else { continue };
            let _ = write!(told, "\n{label} {}", written(value, is_share));
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
    let _ = writeln!(
        out,
        "</svg><span class=\"axis ends\"><span>{:.1} s</span><span>{:.1} s</span></span></div>",
        first.span.0, last.span.1
    );
    out
}

/// The numbers of a chart, closed.
fn table(labels: &[&str], all: &[Interval], is_share: bool) -> String {
    let head: String = labels.iter().map(|label| format!("<th>{}</th>", xml(label))).collect();
    let mut out = format!(
        "<details class=\"counts\"><summary>the numbers</summary><div class=\"wide\"><table>\n<tr><th>seconds</th>\
         {head}</tr>\n"
    );
    for interval in all {
        let _ = write!(out, "<tr><td>{:.2}–{:.2}</td>", interval.span.0, interval.span.1);
        for value in &interval.values {
            let text = value.map_or_else(|| "not measured".to_owned(), |v| written(v, is_share));
            let _ = write!(out, "<td class=\"number\">{text}</td>");
        }
        out += "</tr>\n";
    }
    out + "</table></div></details>\n"
}

fn written(value: f64, is_share: bool) -> String {
    if is_share { format!("{:.1} %", 100.0 * value) } else { crate::format::number(value) }
}
