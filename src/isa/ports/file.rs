//! The file format of the tables in `events/ports/`, and mistakes in them.
//!
//! ```toml
//! schema = 1
//! fused = ["cmp", "test"]             # one µop together with a conditional branch after them
//!
//! [sources]                           # names that the entries below refer to
//! llvm = "LLVM 22.1.8, scheduling model of znver4"
//!
//! [load]                              # ports of each load, by what is loaded
//! gpr = "p2|p3"
//! vector = "p2|p3"                    # also loads of instructions on vector registers
//! wide = "p2|p3"                      # of 64 bytes
//! source = "llvm"
//!
//! [store]                             # ports of each store: data and address
//! gpr = "p4|p9 p7|p8"
//! vector = "p4|p9 p7|p8"
//! wide = "p4*1 p9*1 p7|p8"
//! update_slots = 1                    # issue slots that a store adds to an instruction that also loads
//! source = "llvm"
//!
//! [[uops]]                            # of all these forms, without loads and stores
//! ports = "p0|p1|p5*2 p5"             # two µops for port 0, 1 or 5, and one for port 5
//! slots = 3                           # issue slots
//! complete = true                     # loads and stores are included (gathers); absent: not
//! source = "llvm"
//! forms = """
//! Haddps_xmm_xmmm128_reg
//! """
//! ```
//!
//! A form is named as [`Form`](crate::latency::Form) writes it. A memory form without an entry is as
//! its register form; an EVEX form as its VEX form. `div` and `idiv` are dividers, `ms0` is the microcode
//! sequencer.

use serde::Deserialize;
use std::collections::HashMap;
use std::fmt;
use tma::Cause;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub schema: u32,
    pub fused: Vec<String>,
    pub sources: HashMap<String, String>,
    pub load: Load,
    pub store: Store,
    pub uops: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Load {
    pub gpr: String,
    pub vector: String,
    pub wide: String,
    pub source: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Store {
    pub gpr: String,
    pub vector: String,
    pub wide: String,
    pub update_slots: f64,
    pub source: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub ports: String,
    pub slots: f64,
    #[serde(default)]
    pub complete: bool,
    pub source: String,
    pub forms: String,
}

impl File {
    /// Parses a table.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let file: Self = toml::from_str(text).map_err(|e| Invalid::Toml(e.into()))?;
        if file.schema != 1 {
            return Err(Invalid::Schema(file.schema));
        }
        Ok(file)
    }
}

/// A mistake in a table of ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invalid {
    /// It cannot be parsed.
    Toml(Cause<toml::de::Error>),
    /// It has another schema.
    Schema(u32),
    /// A source that it does not name.
    Source(String),
    /// A word that is no form.
    Form(String),
    /// A form that it lists twice.
    Twice(String),
    /// More ports than the bound supports: the number, and the limit.
    ManyPorts(usize, usize),
    /// A word that is no port.
    Port(String),
    /// A number of µops that is no number.
    Number(String),
    /// Ports with a number of µops that is not above 0.
    Amount(String),
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Toml(error) => error.fmt(f),
            Self::Schema(number) => write!(f, "schema {number} is not supported; expected 1"),
            Self::Source(key) => write!(f, "source {key} is not in [sources]"),
            Self::Form(name) => write!(f, "{name} is not a form"),
            Self::Twice(name) => write!(f, "{name} has two entries"),
            Self::ManyPorts(number, most) => write!(f, "{number} ports, of at most {most}"),
            Self::Port(name) => write!(f, "no port {name}"),
            Self::Number(word) => write!(f, "{word} is not a number"),
            Self::Amount(kind) => write!(f, "{kind} has no amount"),
        }
    }
}
