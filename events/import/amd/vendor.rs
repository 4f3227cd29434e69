//! A generation of Zen cores, and what its JSON says.

use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use tma::tables::Facts;
use tma::tables::schema::{EventSpec, NodeSpec};

/// One generation: everything that its JSON does not say.
pub struct Generation {
    pub name: &'static str,
    pub title: &'static str,
    /// Code names of its products.
    pub aliases: &'static [&'static str],
    pub family: u32,
    /// As the kernel assigns them (`bsp_init_amd` in arch/x86/kernel/cpu/amd.c).
    pub models: &'static [RangeInclusive<u32>],
    /// Ops dispatched a cycle, and entries of the retire queue (AMD's software optimization
    /// guides for families 17h, 19h and 1Ah).
    pub width: u32,
    pub reorder_buffer: u32,
    pub facts: fn() -> Facts,
    /// Event that counts retired ops.
    pub retired: &'static str,
    /// Makes the tree and adds to the notes what it could not say.
    pub tree: fn(&Generation, &Vendor) -> Result<Vec<NodeSpec>>,
}

/// Contents of one folder of JSON.
pub struct Vendor {
    /// Core events by name.
    pub events: BTreeMap<String, EventSpec>,
    /// Events that other PMUs count (L3, data fabric, memory controller).
    pub elsewhere: BTreeSet<String>,
    /// Names of the plain events that the list of recommended metrics adds.
    pub recommended: Vec<String>,
    /// Metrics in file order.
    pub metrics: Vec<Metric>,
}

/// A metric as the vendor writes it.
pub struct Metric {
    pub name: String,
    pub expr: String,
    pub scale: String,
    pub groups: Vec<String>,
}
