//! Reads all files of one machine, repairs known errors in them, and keeps what the machine has.
//!
//! Every change to a vendor's formula, parent or threshold is in [`REPAIRS`]; the tables' notes repeat it.

use crate::encoding::Core;
use crate::formulas::{Names, names_of};
use crate::linux;
use crate::machines::{Machine, Metrics};
use crate::perfmon::{self, Events, Header, Metric};
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
    for repair in repairs_of(table, &node) {
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

/// Kind of repair.
#[derive(Debug, Clone, Copy)]
pub enum Fix {
    /// Replace a piece of the base formula, everywhere in it.
    Formula(&'static str, &'static str),
    /// The parent that the file leaves out or has wrong.
    Parent(&'static str),
    /// The unit mask of an event that the file has wrong.
    Umask(u32),
}

/// One error.
#[derive(Debug, Clone, Copy)]
pub struct Repair {
    /// Tables it is in.
    pub tables: &'static [&'static str],
    /// Node, metric or event.
    pub node: &'static str,
    /// The change.
    pub what: Fix,
    /// Why it is right.
    pub why: &'static str,
}

macro_rules! latency {
    ($tables:expr, $node:literal, $cycles:literal) => {
        Repair {
            tables: $tables,
            node: $node,
            what: Fix::Formula(
                concat!(
                    "* ( ", $cycles, " * tma_info_system_core_frequency ) - ",
                    "( 3 * tma_info_system_core_frequency )"
                ),
                concat!(
                    "* ( ( ", $cycles, " * tma_info_system_core_frequency ) - ",
                    "( 3 * tma_info_system_core_frequency ) )"
                ),
            ),
            why: "the cost of an L2 hit is to be taken off each access's latency, as GNR writes it; without parentheses it is taken off the product once",
        }
    };
}

/// All of them.
pub const REPAIRS: &[Repair] = &[
    latency!(&["mtl", "lnl", "arl"], "L3_Hit_Latency", "12"),
    latency!(&["mtl", "lnl", "arl"], "Contested_Accesses", "27"),
    latency!(&["mtl", "lnl", "arl"], "Contested_Accesses", "28"),
    latency!(&["mtl", "lnl", "arl"], "Data_Sharing", "27"),
    latency!(&["lnl", "arl"], "Data_Sharing", "28"),
    Repair {
        tables: &["skx", "clx", "rkl"],
        node: "Serializing_Operation",
        what: Fix::Parent("Core_Bound"),
        why: "the parent given is a level too deep; its own level and threshold put it below Core_Bound",
    },
    Repair {
        tables: &["skx", "clx", "rkl"],
        node: "Nop_Instructions",
        what: Fix::Parent("Other_Light_Ops"),
        why: "the parent given is a level too high; its own level and threshold put it below Other_Light_Ops",
    },
    Repair {
        tables: &["icx"],
        node: "MEM_Bandwidth",
        what: Fix::Parent("L3_Miss_Bound"),
        why: "the file names no parent; its own threshold and the other servers have it below L3_Miss_Bound",
    },
    Repair {
        tables: &["icx"],
        node: "MEM_Latency",
        what: Fix::Parent("L3_Miss_Bound"),
        why: "the file names no parent; its own threshold and the other servers have it below L3_Miss_Bound",
    },
    Repair {
        tables: &["emr"],
        node: "Bottleneck_Data_Cache_Memory_Bandwidth",
        what: Fix::Formula(
            "( tma_memory_bound * hbm_bound / ( tma_l1_bound + tma_l2_bound + tma_l3_bound + tma_l3_miss_bound + tma_store_bound ) ) * tma_mem_bandwidth / ( tma_mem_bandwidth + tma_mem_latency ) + ",
            "",
        ),
        why: "the share of high-bandwidth memory, which this processor lacks, was left in; SPR has the formula without it",
    },
    Repair {
        tables: &["emr"],
        node: "Bottleneck_Data_Cache_Memory_Latency",
        what: Fix::Formula(
            "( tma_memory_bound * hbm_bound / ( tma_l1_bound + tma_l2_bound + tma_l3_bound + tma_l3_miss_bound + tma_store_bound ) ) * tma_mem_latency / ( tma_mem_bandwidth + tma_mem_latency ) + ",
            "",
        ),
        why: "the share of high-bandwidth memory, which this processor lacks, was left in; SPR has the formula without it",
    },
    Repair {
        tables: &["emr"],
        node: "Info_Botlnk_L0_Core_Bound_Likely",
        what: Fix::Formula(
            "tma_info_system  _smt_2t_utilization",
            "tma_info_system_smt_2t_utilization",
        ),
        why: "a blank fell into the name of a metric",
    },
    Repair {
        tables: &["skx", "clx"],
        node: "FP_ARITH_INST_RETIRED.8_FLOPS",
        what: Fix::Umask(0x60),
        why: "the file repeats the mask of 4_FLOPS; 256-bit single (0x20) and 512-bit double (0x40) make 0x60, as from Ice Lake on",
    },
];

/// The repairs of `node` in `table`.
pub fn repairs_of<'a>(table: &'a str, node: &'a str) -> impl Iterator<Item = &'static Repair> + 'a {
    REPAIRS.iter().filter(move |r| r.node == node && r.tables.contains(&table))
}
