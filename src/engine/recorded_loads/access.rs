//! The samples of a recording, one by one, as accesses to memory.

use super::event::Sampled;
use loads::recorded::{Access, Operation};
use profile::address_space::{AddressSpaces, ModuleAddress};
use profile::files::SearchPaths;
use profile::module::Module;
use profile::record::Record;
use profile::recording::Stream;
use profile::sample::Sample;
use tma::Result;

/// A sampled instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Site {
    /// In a module.
    Known(ModuleAddress),
    /// Outside all known mappings, by its address in memory.
    Unknown(u64),
}

impl Site {
    pub fn place(self) -> Option<ModuleAddress> {
        match self {
            Self::Known(place) => Some(place),
            Self::Unknown(_) => None,
        }
    }

    pub fn address(self) -> u64 {
        match self {
            Self::Known(place) => place.address,
            Self::Unknown(address) => address,
        }
    }
}

/// A sample.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub event: usize,
    pub operation: Operation,
    /// Its access; `None` if it accesses no memory.
    pub access: Option<Access>,
    /// Data address, and the physical one.
    pub address: Option<u64>,
    pub physical: Option<u64>,
    /// Whether it is known how many events it stands for.
    pub has_period: bool,
    pub site: Site,
    pub sample: &'a Sample,
}

/// Calls `visit` with each sample, in order of time. Returns the modules, and the limits of the records that a
/// report must state.
///
/// # Errors
/// The recording cannot be read.
pub(crate) fn accesses(
    stream: &Stream,
    search: &SearchPaths,
    visit: &mut dyn FnMut(&Found<'_>, &mut AddressSpaces),
) -> Result<(Vec<Module>, Vec<String>)> {
    let sampled: Vec<Sampled> = stream.about.events.iter().map(Sampled::of).collect();
    let mut spaces = AddressSpaces::of(&stream.about, search.clone());
    let notes = stream.records.each(&mut |record| {
        let Record::Sample { event, sample } = &record else {
            spaces.apply(&record);
            return;
        };
        spaces.advance(sample.time);
        let Some(of) = sampled.get(*event) else { return };
        let found = found(*event, of, sample, &mut spaces);
        visit(&found, &mut spaces);
    })?;
    Ok((spaces.modules.all, notes))
}

fn found<'a>(
    event: usize,
    of: &Sampled,
    sample: &'a Sample,
    spaces: &mut AddressSpaces,
) -> Found<'a> {
    let ip = sample.ip.unwrap_or(0);
    let access = of.access(sample);
    let place =
        access.and_then(|_| spaces.resolve(sample.pid.unwrap_or(u32::MAX), ip, sample.user));
    let (address, physical) = of.addresses(sample);
    Found {
        event,
        operation: access.map_or(Operation::Prefetch, |(operation, _)| operation),
        access: access.map(|(_, access)| access),
        address,
        physical,
        has_period: of.period(sample).is_some(),
        site: place.map_or(Site::Unknown(ip), Site::Known),
        sample,
    }
}
