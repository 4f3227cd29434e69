//! Intel's sheet of all P cores, `TMA_Metrics-full.csv`: one column → metrics as perfmon has them.
//!
//! The sheet's dialect: an empty cell is the next one to the right among cores of the same
//! market; `#Name` is an auxiliary row, `##Node` the sum of a node's children, `$PEBS` the
//! latency at retirement of the event it stands beside, `& P` "and the parent's threshold".

use crate::linux::csv;
use crate::perfmon::{Metric, Threshold};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tma::formula::{BinOp, Expr, parse};

/// A row with something to compute.
struct Row {
    id: String,
    level: u32,
    parent: Option<String>,
    cell: String,
    domain: String,
    threshold: String,
    groups: String,
    locate: String,
}

/// One column of the sheet.
pub struct Sheet {
    column: String,
    rows: Vec<Row>,
    /// Auxiliary definitions, by name without `#`.
    aux: BTreeMap<String, String>,
    /// How formulas write an id: `Fetch_Latency`, `CLKS`, `Mispredictions`.
    bare: BTreeMap<String, String>,
}

impl Sheet {
    /// Reads column `column`.
    pub fn read(perfmon: &Path, column: &str) -> Result<Self> {
        let path = perfmon.join("TMA_Metrics-full.csv");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let lines = csv(text.trim_start_matches('\u{feff}'));
        let head = lines.iter().position(|l| l.first().is_some_and(|c| c == "Key"));
        let head = head.filter(|h| *h > 0).context("the sheet has no head")?;
        let place = |name: &str| {
            lines[head].iter().position(|c| c == name).with_context(|| format!("no column {name}"))
        };
        let (first, last) = (place(column)?, place("Locate-with")?);
        let market = |i: usize| lines[head - 1].get(i).map_or("", |c| c.trim());
        let cores: Vec<usize> = (first..last).filter(|i| market(*i) == market(first)).collect();
        let other = ["Count Domain", "Threshold", "Metric Group"].map(place);
        let [domain, threshold, groups] = other;
        let (domain, threshold, groups) = (domain?, threshold?, groups?);
        let mut sheet = Self {
            column: column.to_owned(),
            rows: vec![],
            aux: BTreeMap::new(),
            bare: BTreeMap::new(),
        };
        let mut path = Vec::<String>::new();
        for line in &lines[head + 1..] {
            let cell = |i: usize| line.get(i).map_or("", |c| c.trim());
            let value = cores.iter().map(|i| cell(*i)).find(|c| !c.is_empty()).unwrap_or("");
            let Some(depth) = (1..=6).find(|i| !cell(*i).is_empty()) else { continue };
            let (key, name) = (cell(0), cell(depth));
            let mut row = Row {
                id: name.to_owned(),
                level: 0,
                parent: None,
                cell: value.to_owned(),
                domain: cell(domain).to_owned(),
                threshold: cell(threshold).to_owned(),
                groups: cell(groups).to_owned(),
                locate: cell(last).to_owned(),
            };
            if key == "Aux" {
                sheet.aux.insert(name.trim_start_matches('#').to_owned(), value.to_owned());
                continue;
            } else if key == "Bottleneck" {
                row.id = format!("Bottleneck_{name}");
            } else if let Some(group) = key.strip_prefix("Info.") {
                row.id = format!("Info_{}_{name}", group.replace('.', "_"));
            } else if matches!(key.split('/').next(), Some("FE" | "BAD" | "BE" | "RET")) {
                path.truncate(depth - 1);
                row.parent = path.last().cloned();
                row.level = u32::try_from(depth)?;
                path.push(name.to_owned());
            } else {
                continue;
            }
            if value.is_empty() || value == "#NA" {
                continue;
            }
            sheet.bare.insert(name.to_owned(), row.id.clone());
            sheet.rows.push(row);
        }
        Ok(sheet)
    }

    /// All metrics that the column defines, and why others are left out.
    pub fn metrics(&self) -> (Vec<Metric>, Vec<String>) {
        let (mut made, mut left_out) = (Vec::new(), Vec::new());
        for row in &self.rows {
            match self.metric(row) {
                Ok(metric) => made.push(metric),
                Err(why) => left_out.push(format!("Left out {}: {why:#}.", row.id)),
            }
        }
        (made, left_out)
    }

    fn metric(&self, row: &Row) -> Result<Metric> {
        let mut parts = row.threshold.splitn(2, ';');
        let over = parts.next().unwrap_or_default().trim();
        let threshold = Threshold {
            formula: if over.is_empty() { String::new() } else { self.threshold(row)? },
            base_formula: None,
            threshold_issues: parts.next().unwrap_or_default().to_owned(),
        };
        Ok(Metric {
            metric_name: row.id.clone(),
            level: row.level,
            parent_category: row.parent.clone(),
            category: "TMA".to_owned(),
            unit_of_measure: if row.level > 0 { "percent" } else { "" }.to_owned(),
            count_domain: row.domain.clone(),
            base_formula: self.expr(&row.cell, 0)?.to_string(),
            threshold: Some(threshold),
            metric_group: row.groups.clone(),
            locate_with: self.locate(&row.locate).to_owned(),
            ..Metric::default()
        })
    }

    /// A cell, with everything of the sheet's own spelled out.
    fn expr(&self, cell: &str, depth: u32) -> Result<Expr> {
        if depth > 20 {
            bail!("`{cell}` defines itself");
        }
        let text = cell.replace("##", "SUM__").replace("$PEBS", "PEBS__");
        let parsed = parse(&text).map_err(|e| anyhow::anyhow!("{e}: {cell}"))?;
        self.spell_out(&parsed, depth)
    }

    fn spell_out(&self, expr: &Expr, depth: u32) -> Result<Expr> {
        let again = |e: &Expr| self.spell_out(e, depth);
        let boxed = |e: &Expr| again(e).map(Box::new);
        Ok(match expr {
            Expr::Num(_) => expr.clone(),
            Expr::Name(name) => self.name(name)?,
            Expr::Const(name) => {
                let cell = self.aux.get(name).filter(|c| !c.is_empty() && *c != "#NA");
                let cell = cell.with_context(|| format!("{} has no #{name}", self.column))?;
                self.expr(cell, depth + 1)?
            }
            Expr::Neg(e) => Expr::Neg(boxed(e)?),
            Expr::Bin(BinOp::Mul, a, b) => match (&**a, &**b) {
                (Expr::Name(event), Expr::Name(pebs)) if pebs == "PEBS__" => latency(event, None),
                (Expr::Name(event), Expr::Bin(BinOp::Min, pebs, cost))
                    if **pebs == Expr::Name("PEBS__".to_owned()) =>
                {
                    latency(event, Some(again(cost)?))
                }
                // The scale factors that a column sets to 1.
                _ => match again(b)? {
                    Expr::Num(1.0) => again(a)?,
                    b => Expr::Bin(BinOp::Mul, boxed(a)?, Box::new(b)),
                },
            },
            Expr::Bin(op, a, b) => match (op, again(a)?, again(b)?) {
                (BinOp::Eq, Expr::Num(a), Expr::Num(b)) => Expr::Num(f64::from(u8::from(a == b))),
                (op, a, b) => Expr::Bin(*op, Box::new(a), Box::new(b)),
            },
            // A condition that is constant for a column is decided here.
            Expr::If { cond, then, other } => match again(cond)? {
                Expr::Num(n) => again(if n == 0.0 { other } else { then })?,
                cond => Expr::If { cond: Box::new(cond), then: boxed(then)?, other: boxed(other)? },
            },
        })
    }

    fn name(&self, name: &str) -> Result<Expr> {
        if let Some(parent) = name.strip_prefix("SUM__") {
            let children = self.rows.iter().filter(|r| r.parent.as_deref() == Some(parent));
            let sum = children
                .map(|r| reference(&r.id))
                .reduce(|a, b| Expr::Bin(BinOp::Add, Box::new(a), Box::new(b)));
            return sum.with_context(|| format!("{parent} has no children"));
        }
        if let Some(id) = self.bare.get(name) {
            return Ok(reference(id));
        }
        Ok(match name {
            "TSC" => Expr::Name("tsc".to_owned()),
            "Num_CPUs" => Expr::Name("num_cpus".to_owned()),
            "DurationTimeInMilliSeconds" => Expr::Const("DURATION_MS".to_owned()),
            _ if name.contains('.') || name.starts_with("UNC_") || name.contains("_ENERGY_") => {
                Expr::Name(without_ps(name).to_lowercase())
            }
            // A row of another column, or an auxiliary one written without its #.
            _ => bail!("{} has no `{name}`", self.column),
        })
    }

    /// `> 0.1 & P; $issueBM` of `Branch_Mispredicts` → `Branch_Mispredicts > 0.1 & ( … )`.
    fn threshold(&self, row: &Row) -> Result<String> {
        let over = row.threshold.split(';').next().unwrap_or_default();
        let mut text = String::new();
        for word in over.replace('(', " ( ").replace(')', " ) ").split_whitespace() {
            let of = |id: &str| {
                let row = self.rows.iter().find(|r| r.id == id);
                row.with_context(|| format!("no {id}")).and_then(|r| self.threshold(r))
            };
            text += &match word {
                ">" | "<" => format!("{} {word}", row.id),
                "&" | "|" | "*" | "+" | "(" | ")" => word.to_owned(),
                "P" => format!("( {} )", of(row.parent.as_deref().context("no parent")?)?),
                "#HighIPC" => {
                    format!("{} > 0.35", self.expr("IPC / #Pipeline_Width", 0)?)
                }
                _ if word.starts_with('#') => self.expr(word, 0)?.to_string(),
                _ if word.parse::<f64>().is_ok() => word.to_owned(),
                _ => format!("( {} )", of(self.bare.get(word).context("unknown node")?)?),
            };
            text.push(' ');
        }
        Ok(text.trim_end().to_owned())
    }

    /// `SNB/JKT ? #NA : SKL/PTL ? X : Y` → what is for this column.
    fn locate<'a>(&self, cell: &'a str) -> &'a str {
        let mut rest = cell;
        while let Some((cores, choice)) = rest.split_once('?') {
            let (yes, no) = choice.split_once(" : ").unwrap_or((choice, ""));
            if cores.split('/').any(|c| c.trim() == self.column) {
                return yes.trim();
            }
            rest = no;
        }
        rest.trim()
    }
}

/// As perfmon's base formulas write a metric.
fn reference(id: &str) -> Expr {
    Expr::Name(format!("tma_{}", id.to_lowercase()))
}

/// An event times its latency at retirement; with a cost: at most that each, and the cost
/// where there is no latency. perfmon's files write it the same way.
fn latency(event: &str, cost: Option<Expr>) -> Expr {
    let event = without_ps(event).to_lowercase();
    let count = Box::new(Expr::Name(event.clone()));
    let cycles = Box::new(Expr::Name(format!("{event}:retire_latency")));
    let measured = Box::new(Expr::Bin(BinOp::Mul, count.clone(), cycles.clone()));
    let Some(cost) = cost else { return *measured };
    let at_cost = Box::new(Expr::Bin(BinOp::Mul, count, Box::new(cost)));
    Expr::If {
        cond: Box::new(Expr::Bin(BinOp::Ge, cycles, Box::new(Expr::Num(0.0)))),
        then: Box::new(Expr::Bin(BinOp::Min, measured, at_cost.clone())),
        other: at_cost,
    }
}

/// Older names mark precise events by a suffix.
fn without_ps(name: &str) -> String {
    let (base, modifiers) = name.split_at(name.find(':').unwrap_or(name.len()));
    format!("{}{modifiers}", base.strip_suffix("_PS").unwrap_or(base))
}
