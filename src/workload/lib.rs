//! Built-in programs with a known bottleneck, for trying the tool and validating tables.
//!
//! | file | concern |
//! |---|---|
//! | `catalog` | every program as data: name, expected node, parameters |
//! | `run` | options → checked setup → timed slices → [`Summary`]; several copies at the same time |
//! | `memory` | mapped regions, how much memory a program may use; reproducible random orders |
//! | `loops`, `matmul` | portable loops |
//! | `x86` | loops in x86-64 assembly |
//! | `fenced` | latencies of single loads from each cache and from memory |
//! | `core_facts` | measured facts of the core |
//! | `in_flight` | number of cache misses in flight |
//! | `command_line` | sizes as text; the command line that runs a program |
//!
//! Every program has a *control*: the same loop without the bottleneck. Nothing here prints;
//! a copy of a program is single-threaded; programs need no privilege and free their memory. Loops are in assembly
//! where a compiler could change what is measured, hence `unsafe`.

mod catalog;
mod command_line;
#[cfg(target_arch = "x86_64")]
pub mod core_facts;
#[cfg(target_arch = "x86_64")]
mod fenced;
#[cfg(target_arch = "x86_64")]
mod in_flight;
mod loops;
mod matmul;
mod memory;
mod run;
#[cfg_attr(not(target_arch = "x86_64"), path = "x86_absent.rs")]
mod x86;

use serde::Serialize;
use tma::Result;
use tma::tables::{NodeId, Table};

pub use catalog::list;
pub use command_line::{command, parse_size, resolve};
#[cfg(target_arch = "x86_64")]
pub use fenced::{Fenced, Triple, caches, fenced_loads};
#[cfg(target_arch = "x86_64")]
pub use in_flight::{InFlight, misses_in_flight};
pub use run::{Options, Rate, Summary, find, run};

/// A built-in program, and its expected result in a top-down analysis.
#[derive(Debug, Clone, Serialize)]
pub struct Workload {
    /// Name on the command line.
    pub name: &'static str,
    /// Description in one line.
    pub summary: &'static str,
    /// Ids of the nodes of its bottleneck.
    pub expected: Expected,
    /// Further expectations: other nodes, figures, processors.
    pub notes: &'static str,
    /// The loop of its control.
    pub control: &'static str,
    /// Name of one iteration, in the singular.
    pub iteration: &'static str,
    /// Description of one repeat.
    pub repeat: &'static str,
    /// The size parameter, if there is one.
    pub size: Option<SizeParameter>,
    /// Whether it is built for this architecture.
    pub available: bool,
    /// Amount per iteration and unit of its rate, if a rate is customary.
    #[serde(skip)]
    rate: Option<(f64, &'static str)>,
    #[serde(skip)]
    memory: fn(u64) -> Option<u64>,
    #[serde(skip)]
    build: fn(Setup) -> Result<Box<dyn Program>>,
}

/// The nodes of a program's bottleneck: the vendors' node ids, most specific first; the first one
/// that a table has is expected. Empty if no node can show it.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Expected {
    /// Node ids of the Intel tables.
    pub intel: &'static [&'static str],
    /// Node ids of the AMD tables.
    pub amd: &'static [&'static str],
}

impl Expected {
    /// The node of the bottleneck in `table`; `None` if it has none.
    pub fn in_table(&self, table: &Table) -> Option<NodeId> {
        let ids = match table.vendor.as_str() {
            "GenuineIntel" => self.intel,
            "AuthenticAMD" => self.amd,
            _ => &[],
        };
        ids.iter().find_map(|id| table.node(id))
    }
}

/// The size parameter of a program.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct SizeParameter {
    /// `bytes`, or `rows` of a square matrix.
    pub unit: &'static str,
    /// Object whose size it is.
    pub meaning: &'static str,
    /// Default size.
    pub default: DefaultSize,
    /// Smallest permitted size.
    pub least: u64,
}

/// A default size.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "value")]
pub enum DefaultSize {
    /// This size.
    Fixed(u64),
    /// The larger of this and four times the last-level cache; less if memory is short.
    BeyondCaches(u64),
}

/// Checked parameters of a program.
#[derive(Debug, Clone, Copy)]
struct Setup {
    /// Size in the program's unit; 0 if it has none.
    size: u64,
    /// Build the control.
    control: bool,
}

/// A program that is ready to run.
trait Program {
    /// Runs some iterations, for tens of microseconds to a few milliseconds if possible, and returns
    /// how many. A slice never crosses the end of a repeat.
    fn slice(&mut self) -> u64;

    /// Iterations in one repeat, not 0.
    fn per_repeat(&self) -> u64;

    /// A value that depends on the work done.
    fn checksum(&self) -> u64;
}
