//! Pieces of a page. All text of a document passes through [`xml`] here or where it is written. Names and reasons
//! are as short as in the text report, and whole where a pointer rests.

use crate::render::flame;
use crate::render::width::elided;
use std::fmt::Write as _;

pub(super) use crate::render::formats::xml;

/// The colour of what has none of its own.
const PLAIN: &str = "var(--bar)";

/// A share as people read it, and exactly for machines.
pub(super) fn share(value: f64) -> String {
    format!("<data value=\"{value}\">{:.1} %</data>", 100.0 * value)
}

/// A share and the half width of its interval.
pub(super) fn share_with_error(value: f64, error: Option<f64>) -> String {
    let error = error.map(|e| format!(" <small>±{:.1}</small>", 100.0 * e)).unwrap_or_default();
    share(value) + &error
}

/// The colour of a node by its label.
pub(super) fn colour(label: &str) -> &'static str {
    flame::of_node(label).unwrap_or(PLAIN)
}

/// A bar of a share, with its interval as a line across its end.
pub(super) fn bar(value: f64, interval: Option<(f64, f64)>, colour: &str) -> String {
    let percent = |share: f64| 100.0 * share.clamp(0.0, 1.0);
    let line = interval.map(|(low, high)| (percent(low), percent(high)));
    let line = line.map_or_else(String::new, |(low, high)| {
        format!("<u style=\"left:{low:.2}%;width:{:.2}%\"></u>", (high - low).max(0.0))
    });
    format!(
        "<span class=\"bar\" aria-hidden=\"true\"><i style=\"width:{:.2}%;background:{colour}\"></i>{line}</span>",
        percent(value)
    )
}

/// A bar of several parts with their labels.
pub(super) fn stacked<'a>(parts: impl Iterator<Item = (&'a str, f64)>) -> String {
    let mut out = "<span class=\"bar stacked\">".to_owned();
    for (label, value) in parts.filter(|(_, value)| *value > 0.0) {
        let _ = write!(
            out,
            "<i style=\"width:{:.2}%;background:{}\" title=\"{} {:.1} %\"></i>",
            100.0 * value.min(1.0),
            colour(label),
            xml(label),
            100.0 * value
        );
    }
    out + "</span>"
}

/// Meaning of these labels' colours.
pub(super) fn legend<'a>(labels: impl Iterator<Item = &'a str>) -> String {
    let entry = |label| {
        format!(
            "<span class=\"entry\"><i style=\"background:{}\"></i>{}</span>\n",
            colour(label),
            xml(label)
        )
    };
    format!("<p class=\"legend\">{}</p>\n", labels.map(entry).collect::<String>())
}

/// A section with a heading that links lead to.
pub(super) fn section(id: &str, heading: &str, body: &str) -> String {
    format!("<section id=\"{id}\">\n<h2>{}</h2>\n{body}</section>\n", xml(heading))
}

/// A paragraph that begins with a word about it.
pub(super) fn remark(word: &str, text: &str) -> String {
    format!("<p class=\"remark\"><b>{word}</b> {}</p>\n", xml(text))
}

/// Rows that open: a line, and what is below it; a plain line if nothing is.
pub(super) fn opening(class: &str, open: bool, line: &str, below: &str) -> String {
    if below.is_empty() {
        return format!("<div class=\"row {class}\"><div class=\"line\">{line}</div></div>\n");
    }
    let open = if open { " open" } else { "" };
    format!(
        "<details class=\"row {class}\"{open}><summary class=\"line\">{line}</summary>\n<div class=\"below\">\
         {below}</div></details>\n"
    )
}

/// Longest name that is shown whole: longer ones lose their middle, as in the text report.
const NAME: usize = 60;

/// A function's name without parameters, and not too long.
pub(super) fn short(name: &str, without: &str) -> String {
    elided(if without.is_empty() { name } else { without }, NAME)
}

/// A name as code; `before` it a place. The whole name is in the title if it is not shown.
pub(super) fn code(before: &str, name: &str, without: &str) -> String {
    let shown = short(name, without);
    let title = match shown == name {
        true => String::new(),
        false => format!(" title=\"{}\"", xml(name)),
    };
    format!("<code{title}>{}{}</code>", xml(before), xml(&shown))
}

/// Rows without a value: a line with the most frequent reason, and which by reason on demand.
pub(super) fn not_measured<'a>(
    missing: impl Iterator<Item = (&'a str, Option<&'a str>)>,
) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (label, why) in missing {
        let why = why.unwrap_or("no reason is given");
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, labels)) => labels.push(label),
            None => reasons.push((why, vec![label])),
        }
    }
    reasons.sort_by_key(|(_, labels)| std::cmp::Reverse(labels.len()));
    let Some((first, _)) = reasons.first() else { return String::new() };
    let number: usize = reasons.iter().map(|(_, labels)| labels.len()).sum();
    let others = match reasons.len() {
        1 => String::new(),
        of => format!(", and {} other reasons", of - 1),
    };
    let paragraph = |(why, labels): &(&str, Vec<&str>)| {
        format!("<p>{}: {}</p>\n", xml(why), xml(&labels.join(", ")))
    };
    format!(
        "<details class=\"counts\"><summary>{number} without a value: {}{others}</summary>{}</details>\n",
        xml(first),
        reasons.iter().map(paragraph).collect::<String>()
    )
}
