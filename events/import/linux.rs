//! Metrics of E cores: Linux-form JSON and Intel's E-core sheet, both as perfmon would write them.

use crate::perfmon::{Metric, Threshold};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// A row of the sheet: an id and its place in the tree.
pub struct Row {
    /// `ICache_Misses`, `Info_Bottleneck_Mem_Exec_Bound_Cycles`.
    pub id: String,
    /// 0 for infos.
    pub level: u32,
    pub parent: Option<String>,
    /// A share in percent: the tree, and infos called `%_…`.
    pub percent: bool,
    pub domain: String,
}

/// Reads `E-core_TMA_Metrics.csv`.
pub fn sheet(perfmon: &Path) -> Result<Vec<Row>> {
    let path = perfmon.join("E-core_TMA_Metrics.csv");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let lines = csv(text.trim_start_matches('\u{feff}'));
    let head = lines.iter().find(|l| l.first().is_some_and(|c| c == "Key")).context("no head")?;
    let domain = head.iter().position(|c| c == "Count Domain").context("no Count Domain")?;
    let (mut rows, mut path) = (Vec::new(), Vec::<String>::new());
    for line in &lines {
        let cell = |i: usize| line.get(i).map_or("", |c| c.trim());
        let (key, name) = (cell(0), cell(1));
        let domain = cell(domain).to_owned();
        if let Some(group) = key.strip_prefix("Info.") {
            let id = format!("Info_{}_{}", group.trim(), name.trim_start_matches("%_"));
            let percent = name.starts_with("%_");
            rows.push(Row { id, level: 0, parent: None, percent, domain });
        } else if let Some(depth) = (1..=3).find(|i| !cell(*i).is_empty())
            && matches!(key, "FE" | "BAD" | "BE" | "RET")
        {
            path.truncate(depth - 1);
            let (id, parent) = (cell(depth).to_owned(), path.last().cloned());
            path.push(id.clone());
            rows.push(Row { id, level: u32::try_from(depth)?, parent, percent: true, domain });
        }
    }
    Ok(rows)
}

/// Comma-separated lines with quotes, which may span lines.
pub fn csv(text: &str) -> Vec<Vec<String>> {
    let (mut lines, mut line, mut cell, mut quoted) = (vec![], vec![], String::new(), false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => line.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                line.push(std::mem::take(&mut cell));
                lines.push(std::mem::take(&mut line));
            }
            '\r' => {}
            _ => cell.push(c),
        }
    }
    lines
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    metric_name: String,
    metric_expr: String,
    #[serde(default)]
    metric_threshold: String,
    #[serde(default)]
    metric_group: String,
    #[serde(default)]
    unit: String,
}

/// The atom metrics of a Linux-form file, in the order of the sheet.
pub fn metrics(path: &Path, rows: &[Row]) -> Result<Vec<Metric>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut entries: Vec<Entry> =
        serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    entries.retain(|e| e.unit == "cpu_atom");
    let mut found = Vec::new();
    for row in rows {
        let name = format!("tma_{}", row.id.to_lowercase());
        let at = entries.iter().position(|e| e.metric_name.replace("%_", "") == name);
        let Some(at) = at else { continue };
        let entry = entries.remove(at);
        let groups = entry.metric_group.split(';').filter(|g| !own_group(g));
        found.push(metric(
            row,
            vendor_form(&entry.metric_expr),
            Some(entry.metric_threshold),
            groups,
        ));
    }
    if let Some(left) = entries.first() {
        anyhow::bail!("{}: the sheet has no row for {}", path.display(), left.metric_name);
    }
    Ok(found)
}

/// Tags that only repeat the tree.
fn own_group(group: &str) -> bool {
    group == "Default" || group.starts_with("TopdownL") || group.starts_with("tma_")
}

/// A row as perfmon's metrics files would have it.
pub fn metric<'a>(
    row: &Row,
    formula: String,
    threshold: Option<String>,
    groups: impl Iterator<Item = &'a str>,
) -> Metric {
    let threshold = threshold.filter(|t| !t.is_empty()).map(|formula| Threshold {
        formula,
        base_formula: None,
        threshold_issues: String::new(),
    });
    Metric {
        metric_name: row.id.clone(),
        level: row.level,
        parent_category: row.parent.clone(),
        category: "TMA".to_owned(),
        unit_of_measure: if row.percent { "percent" } else { "" }.to_owned(),
        count_domain: row.domain.clone(),
        base_formula: formula,
        formula: String::new(),
        events: Vec::new(),
        constants: Vec::new(),
        threshold,
        metric_group: groups.collect::<Vec<_>>().join(";"),
        locate_with: String::new(),
    }
}

/// `cpu_atom@X@k / msr@tsc\,cpu=cpu_atom@` → `X:SUP / tsc`.
fn vendor_form(expr: &str) -> String {
    let expr = expr.replace("msr@tsc\\,cpu=cpu_atom@", "tsc");
    let mut text = String::new();
    let mut parts = expr.split('@').peekable();
    while let Some(before) = parts.next() {
        text += before.strip_suffix("cpu_atom").unwrap_or(before);
        let Some(event) = parts.next() else { break };
        text += event;
        // A letter after the closing @ is a ring.
        if let Some(after) = parts.peek() {
            match after.chars().next() {
                Some('u') => text += ":USER",
                Some('k') => text += ":SUP",
                _ => {}
            }
        }
        if let Some(after) = parts.peek_mut() {
            *after = after.trim_start_matches(['u', 'k']);
        }
    }
    text
}
