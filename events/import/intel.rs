//! Intel's tables: one machine's vendor files → one [`TableFile`].

use crate::encoding::{Core, normal_name};
use crate::formulas::{self, Names, names_of, without_hundred};
use crate::machines::{MACHINES, Machine, Metrics};
use crate::perfmon::{self, Events, Header, Metric};
use crate::repairs::{self, Fix};
use crate::{Generated, linux, names};
use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tdtool::tables::formula::Expr;
use tdtool::tables::schema::{Counters, EventSpec, NodeSpec, Pipeline, TableFile};
use tdtool::tables::{CoreKind, PmuKind};

/// All Intel tables.
pub fn tables(vendor: &Path) -> Result<Vec<Generated>> {
    MACHINES.iter().map(|m| read(vendor, m)?.table()).collect()
}

/// What the vendor's files say of one machine.
pub struct Read<'a> {
    pub machine: &'a Machine,
    events: Events,
    latencies: BTreeMap<String, f64>,
    matches: Vec<tdtool::tables::schema::MatchRule>,
    /// Metrics in the files' order, repaired.
    pub metrics: Vec<Metric>,
    header: Option<Header>,
    repairs: Vec<String>,
}

/// Reads and repairs.
pub fn read<'a>(vendor: &Path, machine: &'a Machine) -> Result<Read<'a>> {
    let perfmon = vendor.join("perfmon");
    let events = perfmon::events(&perfmon, machine.folder, machine.events)?;
    let (mut metrics, header) = match machine.metrics {
        Metrics::Perfmon(file) => {
            let file = perfmon::metrics(&perfmon, machine.folder, file)?;
            (file.metrics, Some(file.header))
        }
        Metrics::Linux(file) | Metrics::Earlier(file) => {
            let rows = linux::sheet(&perfmon)?;
            (linux::metrics(&vendor.join("perfmon-linux").join(file), &rows)?, None)
        }
    };
    let mut repairs = Vec::new();
    for metric in &mut metrics {
        repair(machine.name, metric, &mut repairs)?;
    }
    let mut read = Read {
        machine,
        events,
        latencies: perfmon::retire_latencies(&perfmon, machine.folder)?,
        matches: perfmon::processors(&perfmon, machine.folder, machine.events)?,
        metrics,
        header,
        repairs,
    };
    if matches!(machine.metrics, Metrics::Earlier(_)) {
        read.leave_out_unknown()?;
    }
    Ok(read)
}

/// Applies the repairs of one metric; each must find what it repairs.
fn repair(table: &str, metric: &mut Metric, log: &mut Vec<String>) -> Result<()> {
    let node = metric.metric_name.clone();
    for repair in repairs::of(table, &node) {
        match repair.what {
            Fix::Formula(from, to) => {
                ensure!(metric.base_formula.contains(from), "{table}: nothing to repair in {node}");
                metric.base_formula = metric.base_formula.replace(from, to);
            }
            Fix::Parent(parent) => {
                let same = metric.parent_category.as_deref() == Some(parent);
                ensure!(!same, "{table}: nothing to repair in {node}");
                metric.parent_category = Some(parent.to_owned());
            }
        }
        let line = format!("Repaired {node}: {}.", repair.why);
        if !log.contains(&line) {
            log.push(line);
        }
    }
    Ok(())
}

/// Part of a table that a metric belongs to.
fn is_tree(id: &str) -> bool {
    !id.starts_with("Info_") && !id.starts_with("Bottleneck_")
}

impl Read<'_> {
    fn core(&self) -> Core<'_> {
        Core {
            events: &self.events,
            general: self.machine.shape.general,
            latencies: &self.latencies,
        }
    }

    /// Drops metrics whose events or parents this core lacks, and those that read them.
    fn leave_out_unknown(&mut self) -> Result<()> {
        loop {
            let names = self.names();
            let ids: BTreeSet<String> =
                self.metrics.iter().map(|m| m.metric_name.clone()).collect();
            let mut gone = Vec::new();
            for m in &self.metrics {
                let formula = names.formula(&m.base_formula).map(|f| names_of(&f));
                let known = formula
                    .is_ok_and(|f| f.iter().all(|n| ids.contains(n) || self.core().knows(n)));
                let parent = m.parent_category.as_ref().is_none_or(|p| ids.contains(p));
                if !known || !parent {
                    gone.push(m.metric_name.clone());
                }
            }
            if gone.is_empty() {
                return Ok(());
            }
            self.metrics.retain(|m| !gone.contains(&m.metric_name));
            self.repairs.push(format!("Left out, for want of events: {}.", gone.join(", ")));
        }
    }

    /// The names of the file's metrics.
    pub fn names(&self) -> Names {
        Names::new(self.metrics.iter().map(|m| {
            (m.metric_name.as_str(), is_tree(&m.metric_name) && m.unit_of_measure == "percent")
        }))
    }

    /// The table.
    pub fn table(self) -> Result<Generated> {
        let machine = self.machine;
        let mut made =
            Made { read: &self, names: self.names(), events: BTreeMap::new(), notes: Vec::new() };
        made.event(machine.shape.clocks)?;
        let (mut tree, mut bottlenecks, mut infos) = (Vec::new(), Vec::new(), Vec::new());
        for metric in &self.metrics {
            let node = made
                .node(metric)
                .with_context(|| format!("{} {}", machine.name, metric.metric_name))?;
            match node.id.as_str() {
                id if id.starts_with("Info_") => infos.push(node),
                id if id.starts_with("Bottleneck_") => bottlenecks.push(node),
                _ => tree.push(node),
            }
        }
        let (events, left_out) = (made.events, made.notes);
        let mut notes: Vec<String> =
            machine.shape.notes.iter().chain(machine.notes).map(|s| (*s).to_owned()).collect();
        notes.extend(self.repairs.iter().cloned());
        notes.extend(left_out);
        let table = TableFile {
            schema: 1,
            name: machine.name.to_owned(),
            title: machine.title.to_owned(),
            vendor: "GenuineIntel".to_owned(),
            core: machine.core,
            pmu: match machine.core {
                None => "cpu",
                Some(CoreKind::P) => "cpu_core",
                Some(CoreKind::E) => "cpu_atom",
            }
            .to_owned(),
            source: self.source(),
            tma: self.header.as_ref().map(|h| h.tma_version.clone()),
            clocks: machine.shape.clocks.to_owned(),
            texts: machine.shape.texts.map(str::to_owned),
            notes,
            matches: self.matches.clone(),
            pipeline: Pipeline {
                width: machine.shape.width,
                reorder_buffer: machine.shape.reorder_buffer,
            },
            counters: Counters {
                general: machine.shape.general,
                general_smt: machine.shape.general_smt,
                fixed: machine.shape.fixed,
                topdown_levels: machine.shape.topdown_levels,
            },
            events,
            node: parents_first(tree)?,
            bottleneck: bottlenecks,
            info: infos,
        };
        Ok(Generated { folder: "intel", heading: heading(&table), table })
    }

    fn source(&self) -> Vec<String> {
        let of = |what: &str, file: &str, h: &Header| {
            let folder = self.machine.folder;
            format!("intel/perfmon {folder}/{what}/{file} {}, {}", h.version, h.date_published)
        };
        let mut source = vec![of("events", self.machine.events, &self.events.header)];
        match (&self.machine.metrics, &self.header) {
            (Metrics::Perfmon(file), Some(header)) => source.push(of("metrics", file, header)),
            (Metrics::Linux(file) | Metrics::Earlier(file), _) => {
                source.push(format!("intel/perfmon, in Linux form: {file}"));
                source.push("intel/perfmon E-core_TMA_Metrics.csv 4".to_owned());
            }
            (Metrics::Perfmon(_), None) => {}
        }
        source
    }
}

/// The comment at the head of the file.
fn heading(table: &TableFile) -> Vec<String> {
    [
        format!("{}: {}.", table.name, table.title),
        "Generated by tdtool-import from Intel's perfmon files (see `source`); do not edit by hand.".into(),
        "Event codes and formulas: Copyright (c) 2001-2026 Intel Corporation, BSD-3-Clause;".into(),
        "see LICENSE and NOTICE in this folder. docs/tables.md explains the keys.".into(),
    ]
    .into()
}

/// Stable order in which every node follows its parent.
fn parents_first(nodes: Vec<NodeSpec>) -> Result<Vec<NodeSpec>> {
    let (mut done, mut waiting) = (Vec::<NodeSpec>::new(), nodes);
    while !waiting.is_empty() {
        let before = done.len();
        let mut later = Vec::new();
        for node in waiting {
            let ready = node.parent.as_ref().is_none_or(|p| done.iter().any(|d| d.id == *p));
            if ready { done.push(node) } else { later.push(node) }
        }
        ensure!(done.len() > before, "no parent `{:?}`", later.first().map(|n| &n.parent));
        waiting = later;
    }
    Ok(done)
}

/// A table in the making.
struct Made<'a> {
    read: &'a Read<'a>,
    names: Names,
    events: BTreeMap<String, EventSpec>,
    notes: Vec<String>,
}

impl Made<'_> {
    /// Enters what a latency counts as where nothing measures it and the vendor has no mean:
    /// -1, which the formula's own `if latency >= 0` tests for.
    fn guard(&mut self, formula: &Expr) {
        let mut guarded = Vec::new();
        formulas::guarded_by_sign(formula, &mut guarded);
        for name in guarded {
            if let Some(spec) = self.events.get_mut(&name).filter(|s| s.pmu == PmuKind::Latency) {
                spec.default.get_or_insert(-1.0);
            }
        }
    }

    fn event(&mut self, name: &str) -> Result<()> {
        let spec = self.read.core().spec(name)?;
        self.events.entry(name.to_owned()).or_insert(spec);
        Ok(())
    }

    fn node(&mut self, m: &Metric) -> Result<NodeSpec> {
        let id = m.metric_name.clone();
        let tree = is_tree(&id);
        let percent = m.unit_of_measure == "percent";
        let mut formula = self.names.formula(&m.base_formula)?;
        let mut percent_formula = without_hundred(&formula).is_some();
        if !tree && percent {
            formula = without_hundred(&formula).context("percent without 100 *")?;
            percent_formula = false;
        }
        let latencies = self.events_of(&formula)?;
        self.guard(&formula);
        let threshold = m.threshold.as_ref().filter(|t| !t.formula.is_empty());
        let over = threshold.map(|t| match &t.base_formula {
            Some(text) => self.names.threshold(text, false),
            None => self.names.threshold(&t.formula, true),
        });
        let unit = if id.starts_with("Bottleneck_") {
            Some("%")
        } else if tree || percent {
            None
        } else {
            names::unit(&id, &m.count_domain, percent_formula)
        };
        let estimate = match latencies.first().map(|l| self.events[l].default) {
            None => names::estimate(&m.count_domain),
            Some(None) => Some(names::SAMPLED_LATENCY),
            Some(Some(mean)) if mean < 0.0 => Some(names::LATENCY_OR_COST),
            Some(Some(_)) => Some(names::LATENCY_OR_MEAN),
        };
        let issues = threshold.map_or("", |t| t.threshold_issues.as_str());
        Ok(NodeSpec {
            label: None,
            parent: m.parent_category.clone().filter(|p| tree && !p.is_empty()),
            level: if tree { m.level } else { 0 },
            formula: formula.to_string(),
            domain: Some(m.count_domain.clone()).filter(|d| !d.is_empty()),
            unit: unit.map(str::to_owned),
            over: over.transpose()?.map(|e| e.to_string()),
            locate: self.locate(&id, &m.locate_with)?,
            groups: list(&m.metric_group),
            issues: list(issues)
                .iter()
                .filter_map(|i| i.strip_prefix("$issue"))
                .map(str::to_owned)
                .collect(),
            estimate: estimate.map(str::to_owned),
            id,
        })
    }

    /// Enters a formula's events; returns those that are latencies at retirement.
    fn events_of(&mut self, formula: &Expr) -> Result<Vec<String>> {
        let mut latencies = Vec::new();
        let ids: BTreeSet<&str> =
            self.read.metrics.iter().map(|m| m.metric_name.as_str()).collect();
        for name in names_of(formula) {
            if !ids.contains(name.as_str()) {
                self.event(&name)?;
                if self.events[&name].pmu == PmuKind::Latency {
                    latencies.push(name);
                }
            }
        }
        Ok(latencies)
    }

    /// Sampling events; those without a record are left out, and a note says so.
    fn locate(&mut self, id: &str, text: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for name in list(text) {
            if name == "#NA" {
                continue;
            }
            let name = normal_name(name.strip_suffix("_PS").unwrap_or(&name));
            if !self.read.core().knows(&name) {
                self.notes
                    .push(format!("Left out: {name}, which would locate {id}, has no record."));
                continue;
            }
            self.event(&name)?;
            let period = self.read.core().period(&name);
            if let Some(spec) = self.events.get_mut(&name) {
                spec.period = period;
            }
            if !found.contains(&name) {
                found.push(name);
            }
        }
        Ok(found)
    }
}

/// The items of a list with `;` or `,`.
fn list(text: &str) -> Vec<String> {
    let items = text.split([';', ',']).map(str::trim).filter(|s| !s.is_empty());
    items.map(str::to_owned).collect()
}
