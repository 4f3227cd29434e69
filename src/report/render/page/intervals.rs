//! Intervals as a chart: level 1 stacked over time, or software counts where there is no tree; the phases found in
//! them, each with a chart of its own; the numbers in a table.

use super::pieces::{colour, legend, section, xml};
use crate::documents::report::Report;
use crate::documents::report_parts::Phase;
use crate::documents::series::software_label;
use crate::documents::series::{Interval, Series, level_1, software};
use crate::render::phases;
use std::fmt::Write as _;

/// Pixels of the chart; the page scales it.
const WIDE: f64 = 1000.0;
const HIGH: f64 = 200.0;
/// Most intervals that are drawn a second time, in the charts of phases.
const ZOOMED: usize = 5000;

/// The charts of all intervals and of their phases; nothing of fewer than two.
pub(super) fn intervals(whole: &Report, reports: &[Report]) -> String {
    let all = level_1(reports).map_or_else(|| software(reports), |tree| vec![tree]);
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
    let title = title(series);
    let chart = chart(&title, series, &series.intervals, phases);
    let legend = match series.labels.len() {
        1 => String::new(),
        _ => legend(series.labels.iter().map(String::as_str)),
    };
    format!("<h3>{}</h3>\n{chart}{legend}{}", xml(&title), table(series))
}

fn title(series: &Series) -> String {
    software_label(&series.heading())
}

/// A phase: its means, its functions, and its part of the charts.
fn of_phase(number: usize, phase: &Phase, all: &[Series]) -> String {
    let mut out = format!(
        "<details class=\"counts phase\"><summary>Phase {number}: {:.2} s to {:.2} s, {} intervals: {}</summary>\n",
        phase.from,
        phase.to,
        phase.intervals,
        xml(&phases::text(phase))
    );
    if all.iter().all(|series| series.intervals.len() <= ZOOMED) {
        for series in all {
            let within = |one: &&Interval| one.span.0 >= phase.from && one.span.1 <= phase.to;
            let part: Vec<Interval> = series.intervals.iter().filter(within).cloned().collect();
            let title = title(series);
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
            "<tr><td class=\"number\">{:.1} % ±{:.1}</td><td>{} <small>{}</small></td></tr>",
            100.0 * function.share,
            100.0 * function.error,
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
