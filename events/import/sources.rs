//! Reading all that the vendor's files say of one machine, repaired and reduced to what it has.

use crate::encoding::Core;
use crate::formulas::{Names, names_of};
use crate::linux;
use crate::machines::{Machine, Metrics};
use crate::perfmon::{self, Events, Header, Metric};
use crate::repairs::{self, Fix};
use crate::sheet::Sheet;
use anyhow::{Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tma::tables::schema::MatchRule;

/// One machine in the vendor's files.
pub struct Read<'a> {
    pub machine: &'a Machine,
    pub events: Events,
    pub latencies: BTreeMap<String, f64>,
    pub matches: Vec<MatchRule>,
    /// Metrics in the files' order, repaired.
    pub metrics: Vec<Metric>,
    pub header: Option<Header>,
    /// Repairs and omissions, as notes for the table.
    pub repairs: Vec<String>,
}

/// Reads and repairs.
pub fn read<'a>(vendor: &Path, machine: &'a Machine) -> Result<Read<'a>> {
    let perfmon = vendor.join("perfmon");
    let events = perfmon::events(&perfmon, machine.folder, machine.events)?;
    let mut repairs = Vec::new();
    let (mut metrics, header) = match machine.metrics {
        Metrics::Perfmon(file) => {
            let file = perfmon::metrics(&perfmon, machine.folder, file)?;
            (file.metrics, Some(file.header))
        }
        Metrics::Linux(file) | Metrics::Earlier(file) => {
            let rows = linux::sheet(&perfmon)?;
            (linux::metrics(&vendor.join("perfmon-linux").join(file), &rows)?, None)
        }
        Metrics::Sheet(column) => {
            let (metrics, left_out) = Sheet::read(&perfmon, column)?.metrics();
            repairs.extend(left_out);
            (metrics, None)
        }
    };
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
    if matches!(machine.metrics, Metrics::Earlier(_) | Metrics::Sheet(_)) {
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
            // Events are put right where they are encoded.
            Fix::Umask(_) => continue,
        }
        let line = format!("Repaired {node}: {}.", repair.why);
        if !log.contains(&line) {
            log.push(line);
        }
    }
    Ok(())
}

/// Whether a metric is a node of the tree.
pub fn is_tree(id: &str) -> bool {
    !id.starts_with("Info_") && !id.starts_with("Bottleneck_")
}

impl Read<'_> {
    /// Core data against which its events resolve.
    pub fn core(&self) -> Core<'_> {
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

    /// Version of the TMA method.
    pub fn tma(&self) -> Option<String> {
        match (&self.header, &self.machine.metrics) {
            (Some(header), _) => Some(header.tma_version.clone()),
            (None, Metrics::Sheet(_)) => Some("5.2".to_owned()),
            (None, _) => None,
        }
    }

    /// The files, with versions and dates.
    pub fn source(&self) -> Vec<String> {
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
            (Metrics::Sheet(column), _) => {
                source.push(format!("intel/perfmon TMA_Metrics-full.csv 5.2, column {column}"));
            }
            (Metrics::Perfmon(_), None) => {}
        }
        source
    }
}
