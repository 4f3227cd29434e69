//! Why something cannot be sampled.

use super::note::NO_PMU;
use nix::errno::Errno;
use pmu::machine::Finding;
use std::fmt;
use tma::Error;
use tma::quantity::Missing;

/// Why something cannot be sampled.
#[derive(Debug, Clone)]
pub(super) enum WhyNot {
    /// There is no core PMU.
    NoPmu,
    /// The machine lacks this, so that no hardware event can be sampled.
    Blocked(String),
    /// No table describes the processor.
    NoTable,
    /// No PMU counts for the cores of this table.
    NoCounters(String),
    /// The PMU cannot count an event of the table.
    Uncoded(Missing),
    /// A table has no event of this name: the table, and the name.
    NoEvent(String, String),
    /// An event, which the kernel refuses.
    Refused(String, Errno),
    /// Cycles cannot be sampled.
    NoCycles(Errno),
    /// Samples cannot hold counts.
    NoCounts(Errno),
    /// Level 1 of a table needs this many groups of counters.
    Groups(String, usize),
    /// No event is there to sample at.
    NothingToSample,
    /// No table says how to locate this node.
    Unlocatable(String),
    /// No event locates this node here, for the reason if one is known.
    NotLocated(String, Option<Box<WhyNot>>),
    /// No node of the tree can be located, for the reason if there is one of all.
    NoneLocated(Option<Box<WhyNot>>),
    /// The event that was named cannot be sampled.
    Named(Error),
}

impl WhyNot {
    /// The obstacle to all hardware events.
    pub fn no_hardware(blocked: Option<&Finding>) -> Self {
        blocked.map_or(Self::NoPmu, |finding| Self::Blocked(finding.what.clone()))
    }

    /// Whether that is because no hardware event can be sampled.
    pub fn is_no_hardware(&self) -> bool {
        match self {
            Self::NoPmu | Self::Blocked(_) => true,
            Self::NotLocated(_, Some(why)) | Self::NoneLocated(Some(why)) => why.is_no_hardware(),
            _ => false,
        }
    }
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPmu => f.write_str(NO_PMU),
            Self::Blocked(what) => f.write_str(what),
            Self::NoTable => f.write_str("no table describes this processor"),
            Self::NoCounters(table) => write!(f, "no PMU counts for {table}"),
            Self::Uncoded(why) => why.fmt(f),
            Self::NoEvent(table, name) => write!(f, "{table} has no event {name}"),
            Self::Refused(name, errno) => write!(f, "{name}: {}", errno.desc()),
            Self::NoCycles(errno) => write!(f, "the kernel refuses cycles ({})", errno.desc()),
            Self::NoCounts(errno) => {
                write!(f, "the kernel refuses to read counts at samples ({})", errno.desc())
            }
            Self::Groups(table, groups) => {
                write!(f, "level 1 of {table} needs {groups} groups of counters")
            }
            Self::NothingToSample => f.write_str("no event to sample"),
            Self::Unlocatable(node) => write!(f, "no event is known to locate {node}"),
            Self::NotLocated(node, None) => write!(f, "no event locates {node} here"),
            Self::NotLocated(node, Some(why)) => write!(f, "no event locates {node} here: {why}"),
            Self::NoneLocated(None) => f.write_str("no node of the tree can be located here"),
            Self::NoneLocated(Some(why)) => write!(f, "no node can be located: {why}"),
            Self::Named(error) => error.fmt(f),
        }
    }
}
