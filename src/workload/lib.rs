//! Built-in programs with a known bottleneck: to try the tool on, and to validate a table with.
//!
//! | file | concern |
//! |---|---|
//! | `catalog` | every program as data: name, expected node, parameters |
//! | `run` | options → checked set-up → timed slices → [`Summary`] |
//! | `memory` | mapped regions, and how much memory a program may ask for |
//! | `chase`, `stream`, `matmul`, `idle` | kernels that any processor runs |
//! | `x86` | kernels written in x86-64 assembly |
//!
//! Every program has a *control*: the same loop without the bottleneck. Nothing here prints;
//! programs are single-threaded, need no privilege and give their memory back. The kernels are
//! assembly where a compiler could otherwise change what is measured, hence `unsafe`.

mod catalog;
mod chase;
mod idle;
mod launch;
mod matmul;
mod memory;
mod random;
mod run;
mod size;
mod stream;
#[cfg_attr(not(target_arch = "x86_64"), path = "x86_absent.rs")]
mod x86;

pub use catalog::list;
pub use launch::{command, resolve};
pub use run::{Options, Rate, Summary, find, run};
pub use size::parse_size;

use serde::Serialize;
use tma::Result;
use tma::tables::{NodeId, Table};

/// A built-in program: what it does and what a top-down analysis should say about it.
#[derive(Debug, Clone, Serialize)]
pub struct Workload {
    /// Name on the command line.
    pub name: &'static str,
    /// One line: what it does.
    pub summary: &'static str,
    /// Node ids where its time should show.
    pub expected: Expected,
    /// What else to expect: other nodes, other figures, other processors.
    pub notes: &'static str,
    /// What `control` runs instead.
    pub control: &'static str,
    /// What one iteration is, in the singular.
    pub iteration: &'static str,
    /// What one repeat is.
    pub repeat: &'static str,
    /// The size parameter, where there is one.
    pub size: Option<SizeParameter>,
    /// Whether it is built for this architecture.
    pub available: bool,
    /// What one iteration counts towards a rate, where a rate is customary.
    #[serde(skip)]
    rate: Option<(f64, &'static str)>,
    #[serde(skip)]
    memory: fn(u64) -> Option<u64>,
    #[serde(skip)]
    build: fn(Setup) -> Result<Box<dyn Program>>,
}

/// Where in the tree a program's time should show: the vendors' own node ids, most specific
/// first, of which the first one that a table has counts. Empty where no node can show it.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Expected {
    /// Node ids of the Intel tables.
    pub intel: &'static [&'static str],
    /// Node ids of the AMD tables.
    pub amd: &'static [&'static str],
}

impl Expected {
    /// The node of `table` where the time should show; `None` if it has none for it.
    pub fn in_table(&self, table: &Table) -> Option<NodeId> {
        let ids = match table.vendor.as_str() {
            "GenuineIntel" => self.intel,
            "AuthenticAMD" => self.amd,
            _ => &[],
        };
        ids.iter().find_map(|id| table.node(id))
    }
}

/// What `size` means to a program.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct SizeParameter {
    /// `bytes`, or `rows` of a square matrix.
    pub unit: &'static str,
    /// What has this size.
    pub meaning: &'static str,
    /// Size if none is asked for.
    pub default: DefaultSize,
    /// Smallest size that makes sense.
    pub least: u64,
}

/// The size used if none is asked for.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "value")]
pub enum DefaultSize {
    /// Always this.
    Fixed(u64),
    /// At least this, and at least four times the last-level cache; less where memory is short.
    BeyondCaches(u64),
}

/// What a kernel is built from, checked already.
#[derive(Debug, Clone, Copy)]
struct Setup {
    /// Size in the program's unit; 0 where it has none.
    size: u64,
    /// Build the control.
    control: bool,
}

/// A kernel, ready to run.
trait Program {
    /// Runs some iterations, for tens of microseconds up to a few milliseconds where the problem
    /// allows it, and returns how many. A slice never crosses the end of a repeat.
    fn slice(&mut self) -> u64;

    /// Iterations in one repeat, not 0.
    fn per_repeat(&self) -> u64;

    /// A value that depends on the work done.
    fn checksum(&self) -> u64;
}
