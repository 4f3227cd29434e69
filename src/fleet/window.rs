//! What one host did in a short time, `tdtool.window/1`. Later versions only add keys.
//!
//! A window holds rows that are added up already, by binary, function and control group. Addresses are those of the
//! binary (ELF p_vaddr) beside its build-id, so that a host without debug files can be named elsewhere and later.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::collections::BTreeMap;
use tma::Address;

/// The schema's name and version.
pub const SCHEMA: &str = "tdtool.window/1";

/// Where a number is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Counted by the core's PMU, or by the kernel.
    Counted,
    /// Estimated without a PMU, from samples, probes and blocks measured in isolation.
    Estimated,
    /// A share of samples.
    Sampled,
}

impl Source {
    /// The word that documents, labels and tables have for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Estimated => "estimated",
            Self::Sampled => "sampled",
        }
    }
}

/// What one host did in a short time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// [`SCHEMA`].
    pub schema: String,
    /// The host.
    pub host: Host,
    /// Begin, in milliseconds since 1970 (UTC) by the host's clock.
    pub start_ms: i64,
    /// Length in seconds, by a clock that nobody sets; `None` if unknown.
    pub seconds: Option<f64>,
    /// CPU seconds of the host that were not idle; `None` if only a part of it was measured.
    pub busy_seconds: Option<f64>,
    /// CPU seconds that recording took, with its children, since the window before; `None` in older windows.
    #[serde(default)]
    pub cost_seconds: Option<f64>,
    /// Samples that were lost; `None` without samples.
    pub lost: Option<u64>,
    /// Nodes of the host and of parts of it.
    pub nodes: Vec<Node>,
    /// Functions, by binary, control group and command.
    pub functions: Vec<Function>,
    /// Their hottest blocks.
    pub blocks: Vec<Block>,
    /// Counted events.
    pub counts: Vec<Count>,
    /// What the window lacks, and why.
    pub notes: Vec<String>,
}

/// A host and its processor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Its boot: a new one after each start (`/proc/sys/kernel/random/boot_id`).
    pub boot: Option<String>,
    /// The event table; `None` for a processor without one.
    pub uarch: Option<String>,
    /// The processor, as it names itself.
    pub processor: String,
    /// The kernel's release.
    pub kernel: String,
    /// Logical CPUs in use.
    pub cpus: u32,
    /// tdtool's version.
    pub tool: String,
    /// Labels that the user gave: region, instance type, service.
    pub labels: BTreeMap<String, String>,
}

/// A binary.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Binary {
    /// Its build-id in hexadecimal digits; `None` where it has none, or it could not be read.
    pub build_id: Option<SmolStr>,
    /// Its file name, or the kernel's name of it (`[kernel.kallsyms]`).
    pub module: SmolStr,
}

/// Whose a row is. `None` throughout: of the whole host.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// The binary.
    pub binary: Option<Binary>,
    /// The control group, as a path below the mount.
    pub cgroup: Option<SmolStr>,
    /// The command: the name of its thread.
    pub command: Option<SmolStr>,
    /// The socket.
    pub socket: Option<u32>,
}

/// A node of the tree, or of a part of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Whose it is.
    #[serde(flatten)]
    pub owner: Owner,
    /// The node's id.
    pub node: SmolStr,
    /// The node above; `None` at level 1.
    pub parent: Option<SmolStr>,
    /// Its level, from 1.
    pub level: u32,
    /// Its share of the owner's slots, 0 to 1; `None` with `missing`.
    pub share: Option<f64>,
    /// Lowest and highest share at 95 %; `None` if unknown.
    pub interval: Option<(f64, f64)>,
    /// Slots that the owner had; `None` if not counted.
    pub slots: Option<f64>,
    /// CPU seconds that the owner used, by which shares of many hosts are weighted; `None` if not measured.
    pub cpu_seconds: Option<f64>,
    /// Where the share is from.
    pub source: Source,
    /// Why there is no share.
    pub missing: Option<String>,
}

/// A function's part of the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// Whose it is: binary, control group and command.
    #[serde(flatten)]
    pub owner: Owner,
    /// First address in the binary; where no function is known, that of the sampled code.
    pub start: Address,
    /// Its name; `None` where the host has no symbols.
    pub name: Option<String>,
    /// Sampled event.
    pub event: SmolStr,
    /// Number of samples.
    pub samples: u64,
    /// CPU seconds that they stand for; `None` if the event does not tell time.
    pub cpu_seconds: Option<f64>,
}

/// A block of a function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// Whose it is.
    #[serde(flatten)]
    pub owner: Owner,
    /// First address of its function.
    pub function: Address,
    /// Its first address in the binary.
    pub start: Address,
    /// Its end, exclusive.
    pub end: Address,
    /// Number of samples.
    pub samples: u64,
    /// Cycles per entry in isolation; `None` if not measured.
    pub cycles: Option<f64>,
}

/// A count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// Whose it is.
    #[serde(flatten)]
    pub owner: Owner,
    /// The event, as its table or the kernel names it, with its unit in the name where it has one (`task_clock_ms`).
    pub event: SmolStr,
    /// Its count; `None` with `missing`.
    pub value: Option<f64>,
    /// Where it is from.
    pub source: Source,
    /// Why there is no count.
    pub missing: Option<String>,
}
