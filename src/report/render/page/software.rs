//! Software counts.

use super::pieces::{section, xml};
use crate::documents::report::Report;
use crate::documents::series::{self, software_label};
use crate::format;
use std::fmt::Write as _;

/// The counts of the kernel, or why they are missing.
pub(super) fn software(report: &Report) -> String {
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
