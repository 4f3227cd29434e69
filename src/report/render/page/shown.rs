//! Names and reasons, as short as the text report has them; whole where a pointer rests.

use super::pieces::xml;
use crate::render::fit::elided;

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
