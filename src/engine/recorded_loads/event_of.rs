//! An event with its sums, and what rows of all tables have.

use super::gather::EventSums;
use loads::recorded::{Level, Sum};
use profile::event::Event;
use report::documents::loads::LevelsRow;

/// An event of a recording.
pub(crate) struct Of<'a> {
    pub event: &'a Event,
    /// Its number over all recordings.
    pub number: usize,
    pub source: &'a str,
    pub sums: &'a EventSums,
}

pub(crate) fn levels(sum: &Sum) -> LevelsRow {
    LevelsRow {
        lfb: sum.level(Level::Lfb),
        l1: sum.level(Level::L1),
        l2: sum.level(Level::L2),
        l3: sum.level(Level::L3),
        ram: sum.level(Level::Ram),
        remote_ram: sum.level(Level::RemoteRam),
        remote_cache: sum.level(Level::RemoteCache),
        other: sum.level(Level::Other),
    }
}
